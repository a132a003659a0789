"""Doors for other evaluation tools, one file a tool; each imports its tool, and nothing else does.

All stand on :mod:`~.resident`. LlamaIndex has a package of its own.
"""
