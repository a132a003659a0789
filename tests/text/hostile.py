"""Texts that make a careless pattern slow: each repeats what begins something and never ends it."""

from __future__ import annotations

HOSTILE = {
    "open brackets": "[" * 50_000,
    "open numbers": "[1," * 20_000,
    "open blanks": "[1" + " " * 50_000,
    "blanks": "[" + " " * 50_000,
    "digits": "[" + "1" * 50_000,
    "markers": "[1]" * 17_000,
    "marker list": "[1], " * 10_000,
    "ranges": "[1-999]" * 7_000,
    "dashes": "a-" * 30_000,
    "elements": "a, " * 17_000,
    "cited lines": "- a [1]\n" * 6_000,
    "bullets": "- " * 25_000,
    "numbering": "1. " * 17_000,
    "letters": "x" * 50_000,
    "surrogates": "\ud800" * 50_000,
}
