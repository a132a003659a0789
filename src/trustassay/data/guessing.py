"""Guesses of what unknown fields hold, for messages that propose a command; never to read them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from trustassay.data.spelling import normal

__all__ = ["guesses"]

_WORDS: Mapping[str, tuple[str, ...]] = {
    "question": (
        *("question", "query", "prompt", "ask", "instruction", "utterance", "request", "input"),
        *("user", "message"),
    ),
    "response": (
        *("response", "answer", "reply", "completion", "output", "prediction", "generat"),
        *("assistant", "bot", "result"),
    ),
    "documents": (
        *("document", "passage", "context", "source", "evidence", "chunk", "retriev"),
        *("knowledge", "article", "snippet"),
    ),
}
"""Words in the names of fields, the most telling first."""
_ABOUT = frozenset(
    {"id", "ids", "at", "time", "date", "timestamp", "score", "count", "tokens", "model", "name"}
    | {"type", "url", "link", "language", "rating", "label", "latency", "version", "format"}
)
"""Words of names that hold something about a text, and not the text."""


@lru_cache(maxsize=256)
def guesses(names: tuple[str, ...], taken: tuple[str, ...] = ()) -> Mapping[str, str]:
    """Return the best guess of a name for the question, the response and the documents.

    ``taken`` are names that are known to hold something else.
    """
    free = {name: normal(name) for name in names if name not in taken}
    free = {name: known for name, known in free.items() if _ABOUT.isdisjoint(known.split("_"))}
    found: dict[str, str] = {}
    for field, words in _WORDS.items():
        by_word = (name for word in words for name, known in free.items() if word in known)
        best = next(by_word, None)
        if best is not None:
            found[field] = best
            del free[best]
    return found
