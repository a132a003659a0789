"""The differences of two texts, word by word."""

from __future__ import annotations

import re
from typing import NamedTuple

from rapidfuzz.distance import Indel

__all__ = ["Piece", "compared"]

MOST_WORDS = 4000
"""Words beyond which two answers are shown without marks: comparing takes their product."""
_WORDS = re.compile(r"\s*\S+|\s+$")


class Piece(NamedTuple):
    """A stretch of an answer; ``kind`` is ``same``, ``new``, or ``gone`` (in the original only)."""

    kind: str
    text: str


def compared(original: str, other: str) -> list[Piece] | None:
    """Return ``other`` in pieces, words of ``original`` that it lacks among them; ``None`` if
    the two are too long.
    """
    before, after = _WORDS.findall(original), _WORDS.findall(other)
    if max(len(before), len(after)) > MOST_WORDS:
        return None
    alike = [[word.strip() for word in words] for words in (before, after)]
    pieces: list[Piece] = []
    gone = new = ""
    for step in Indel.opcodes(*alike):
        if step.tag == "equal":
            pieces += _marked(gone, new)
            pieces.append(Piece("same", "".join(after[step.dest_start : step.dest_end])))
            gone = new = ""
        else:
            gone += "".join(before[step.src_start : step.src_end])
            new += "".join(after[step.dest_start : step.dest_end])
    return pieces + _marked(gone, new)


def _marked(gone: str, new: str) -> list[Piece]:
    """Return the removed and the new words as pieces; the space before them is not marked."""
    pieces = []
    for kind, text in (("gone", gone), ("new", new)):
        words = text.lstrip()
        if space := text[: len(text) - len(words)]:
            pieces.append(Piece("same", space))
        if words:
            pieces.append(Piece(kind, words))
    return pieces
