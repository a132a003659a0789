"""Integrations with other evaluation tools, one file per tool; only that file imports the tool.

All of them use :mod:`~.resident`. The integration with LlamaIndex is a package of its own.
"""
