"""Which passages speak of a statement, and which of their sentences hold its words."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from trustassay.metrics.grounding.sentences import Splitter
from trustassay.sample import Document
from trustassay.words import content_words

__all__ = ["Part", "Piece", "joined", "names", "nearest", "parts", "pieces", "shared", "written"]

LONGEST = 400
"""Words of a passage up to which it is put to the entailer as a whole, and of its parts."""

JOINED_WORDS = 80
"""Words of joined evidence: what the embedded entailer reads at once."""
JOINED_PIECES = 4


_WRITTEN = re.compile(r"[^\W_]+(?:['’.,-][^\W_]+)*")


class Piece(NamedTuple):
    """A sentence of a passage; ``passage`` counts from 0."""

    passage: int
    place: int
    text: str
    words: frozenset[str]


class Part(NamedTuple):
    """What is put to the entailer: a passage, or sentences in a row of a long one."""

    passage: int
    premise: str
    words: frozenset[str]


def parts(documents: Sequence[Document], found: Sequence[Piece]) -> list[Part]:
    """Return the passages, long ones in parts of up to 400 words; ``found`` are their sentences.

    A passage has its title before it, if it has one, and so has each of its parts. One without a
    text is none.
    """
    rows: list[Part] = []
    by_passage = defaultdict[int, list[Piece]](list)
    for piece in found:
        by_passage[piece.passage].append(piece)
    for number, document in enumerate(documents):
        if document.blank:
            continue
        title = f"Title: {document.title}\n" if document.title else ""
        if len(document.text.split()) <= LONGEST:
            rows.append(_part(number, title + document.text))
            continue
        own = [piece.text.split() for piece in by_passage[number]]
        texts: list[list[str]] = [[]]
        for start, sentence in ((i, w) for w in own for i in range(0, len(w), LONGEST)):
            words = sentence[start : start + LONGEST]
            if texts[-1] and len(texts[-1]) + len(words) > LONGEST:
                texts.append([])
            texts[-1] += words
        rows += [_part(number, title + " ".join(text)) for text in texts]
    return rows


def _part(number: int, premise: str) -> Part:
    return Part(number, premise, _words(premise))


def pieces(documents: Sequence[Document], split: Splitter) -> list[Piece]:
    """Return the sentences of all passages."""
    return [
        Piece(number, place, sentence.strip(), _words(sentence))
        for number, document in enumerate(documents)
        for place, sentence in enumerate(split(document.text))
        if sentence.strip()
    ]


def nearest(statement: str, rows: Sequence[Part], most: int) -> list[tuple[Part, float]]:
    """Return the parts that hold the largest share of a statement's content words.

    Each with that share, 0 to 1; the first of equal ones, and no more than ``most``.
    """
    wanted = _words(statement)
    shares = [len(wanted & row.words) / max(1, len(wanted)) for row in rows]
    order = sorted(range(len(rows)), key=lambda place: -shares[place])
    return [(rows[place], shares[place]) for place in order[:most]]


def shared(statement: str, own: Sequence[Piece]) -> float:
    """Return the largest share of a statement's content words, 0 to 1, that two neighbouring
    sentences of a passage hold; ``own`` are its sentences.
    """
    wanted = _words(statement)
    pairs = zip(own, own[1:] or own, strict=False)
    held = (len(wanted & (one.words | other.words)) for one, other in pairs)
    return max(held, default=0) / max(1, len(wanted))


def written(sentence: str) -> list[str]:
    """Return the words and numbers of a sentence as they are written."""
    return _WRITTEN.findall(sentence)


def names(sentence: str) -> list[str]:
    """Return the words of a sentence that begin with a capital letter, but for its first word."""
    return [word for word in written(sentence)[1:] if word[0].isupper() and _words(word)]


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


def _words(text: str) -> frozenset[str]:
    return frozenset(content_words(text))
