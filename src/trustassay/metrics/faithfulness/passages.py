"""Which passages speak of a statement, and which of their sentences hold its words."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from trustassay.metrics.grounding.sentences import Splitter
from trustassay.sample import Document
from trustassay.words import content_words

__all__ = ["Piece", "joined", "nearest", "pieces", "premise"]

JOINED_WORDS = 80
"""Words of joined evidence: what the embedded entailer reads at once."""
JOINED_PIECES = 4


class Piece(NamedTuple):
    """A sentence of a passage; ``passage`` counts from 0."""

    passage: int
    place: int
    text: str
    words: frozenset[str]


def premise(document: Document) -> str:
    """Return a passage as entailment reads it: its title, if it has one, and its text."""
    return f"Title: {document.title}\n{document.text}" if document.title else document.text


def pieces(documents: Sequence[Document], split: Splitter) -> list[Piece]:
    """Return the sentences of all passages."""
    return [
        Piece(number, place, sentence.strip(), _words(sentence))
        for number, document in enumerate(documents)
        for place, sentence in enumerate(split(document.text))
        if sentence.strip()
    ]


def nearest(statement: str, documents: Sequence[Document], most: int) -> list[tuple[int, float]]:
    """Return the passages that hold the largest share of a statement's content words.

    Each with that share, 0 to 1; the first of equal ones, and no more than ``most``.
    """
    wanted = _words(statement)
    shares = [len(wanted & _words(premise(one))) / max(1, len(wanted)) for one in documents]
    order = sorted(range(len(documents)), key=lambda number: -shares[number])
    return [(number, shares[number]) for number in order[:most]]


def joined(statement: str, candidates: Sequence[Piece]) -> list[Piece]:
    """Return sentences that together hold the statement's words, in reading order.

    One after the other that which adds most words, until none adds any, or they are four, or have
    80 words.
    """
    missing = set(_words(statement))
    left, chosen, length = list(candidates), list[Piece](), 0
    while left and missing and len(chosen) < JOINED_PIECES:
        best = max(left, key=lambda piece: len(piece.words & missing))
        gained = best.words & missing
        size = len(best.text.split())
        if not gained:
            break
        left.remove(best)
        if length + size > JOINED_WORDS and chosen:
            continue
        chosen.append(best)
        missing -= gained
        length += size
    return sorted(chosen)


@lru_cache(maxsize=16_384)
def _words(text: str) -> frozenset[str]:
    return frozenset(content_words(text))
