"""``embedding`` and ``pos`` without a file: words of one group, the nearest or drawn at random."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from trustassay.backends.name_kinds import EXAMPLES, PLACE, SURNAME
from trustassay.backends.name_phrases import Part, parts_of
from trustassay.backends.word_table import NAMES, word_table
from trustassay.capabilities import BatchLimits, SubstitutesRequest

__all__ = ["DrawnWords", "NearWords"]

NEAREST = 1000
"""Neighbours that are looked at."""
CAP = 0.9
"""Cosine from which on two words count as saying the same."""

Indices = NDArray[np.int64]


class _ListedWords:
    """What both have in common: the groups of the table, and names of several words."""

    limits = BatchLimits(items=256, tokens=None)

    def __init__(self) -> None:
        self._table = word_table()

    def substitutes(self, requests: Sequence[SubstitutesRequest]) -> list[list[str]]:
        """Return up to k substitutes of each request: words of its tag, names of its kind."""
        return [self._found(one) for one in requests]

    def _found(self, request: SubstitutesRequest) -> list[str]:
        words = request.words
        if request.tag not in NAMES:
            return [] if " " in words else self._of_part(words, self._tags(request), request.k)
        parts = parts_of(words, self._table.kind, self._table.common_tag)
        likely = [kind for kind in map(_kind_of_type, request.types) if kind]
        lists = [
            self._of_part(words[p.start : p.end], self._groups(p, likely), request.k) for p in parts
        ]
        several = [_joined(words, parts, row) for row in zip(*lists, strict=False)]
        return list(dict.fromkeys(several)) if parts else []

    def _groups(self, part: Part, likely: Sequence[str]) -> Sequence[str]:
        """Return the groups for a part of a name: what the types say where its kind is not known,
        all names and nouns where those say nothing."""
        if part.group in self._table.groups:
            return [part.group]
        return likely or [*EXAMPLES, "NN"]

    def _tags(self, request: SubstitutesRequest) -> list[str]:
        """Return the groups of a word: its tag; the two pasts of most verbs are written alike."""
        if request.tag in ("VBD", "VBN") and request.words.endswith("ed"):
            return ["VBD", "VBN"]
        return [request.tag]

    def _of_part(self, words: str, groups: Sequence[str], k: int) -> list[str]:
        places = [self._table.groups[one] for one in groups if one in self._table.groups]
        if not places:
            return []
        texts = self._table.words
        ranked = (texts[i] for i in self._ranked(words, np.sort(np.concatenate(places))))
        found: list[str] = []
        for text in ranked:
            if len(found) == k:
                break
            if not _akin(text, words):
                found.append(text)
        return found

    def _ranked(self, words: str, places: Indices) -> Indices:
        raise NotImplementedError


class NearWords(_ListedWords):
    """The nearest words by cosine; two above the cap say the same."""

    def __init__(self) -> None:
        super().__init__()
        self.name = f"embedding:{self._table.name}"

    def _ranked(self, words: str, places: Indices) -> Indices:
        vector = self._table.vector(words)
        if vector is None:
            return places[:0]
        likeness = self._table.vectors[places] @ vector
        order = np.argsort(-likeness, kind="stable")[:NEAREST]
        return places[order[likeness[order] < CAP]]


class DrawnWords(_ListedWords):
    """Words of one group in an order that looks random, and is the same for the same words."""

    def __init__(self) -> None:
        super().__init__()
        self.name = f"pos:{self._table.name}"

    def _ranked(self, words: str, places: Indices) -> Indices:
        digest = hashlib.blake2b(words.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        rng = np.random.default_rng(int.from_bytes(digest, "big"))
        return np.asarray(rng.permutation(places))


def _kind_of_type(name: str) -> str:
    """Return the kind of name that a type of a knowledge base stands for; empty for others."""
    local = name.rpartition(":")[2].lower()
    if local in ("person", "agent"):
        return SURNAME
    return PLACE if local in ("place", "location", "gpe", "loc", "city", "country") else ""


def _joined(words: str, parts: Sequence[Part], found: Sequence[str]) -> str:
    """Return words with their parts replaced."""
    text, end = "", 0
    for part, replacement in zip(parts, found, strict=True):
        own = words[part.start]
        first = replacement[0].upper() if own.isupper() else replacement[0].lower()
        text += words[end : part.start] + first + replacement[1:]
        end = part.end
    return text + words[end:]


def _akin(one: str, other: str) -> bool:
    """Whether two words look like forms of one word: they begin alike for most of their length."""
    one, other = one.lower(), other.lower()
    common = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), None)
    shorter = min(len(one), len(other))
    return (shorter if common is None else common) >= max(4, 0.7 * shorter)
