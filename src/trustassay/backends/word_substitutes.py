"""``embedding`` and ``pos`` without a file: words of one group, the nearest or drawn at random.

Which words of a name are replaced, and by words of which group, is decided by its parts.
"""

from __future__ import annotations

import hashlib
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trustassay.backends.word_table import (
    EXAMPLES,
    GIVEN,
    HALVES,
    NAMES,
    PEOPLE,
    PLACE,
    PLACES,
    SURNAME,
    TITLES,
    word_table,
)
from trustassay.capabilities import BatchLimits, SubstitutesRequest, Vectors

UNKNOWN = ""
"""The group of a name of no known kind."""

_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_INITIAL = "initial"
_KEPT = frozenset("of the de la du van von der den del da di al el bin ibn y and".split()) | TITLES
_BESIDE = frozenset(
    "north south east west new upper lower great central united states kingdom republic union "
    "saint city island islands".split()
)
"""Common words in the names of places."""
_TELLING = (GIVEN, SURNAME, PLACE, PEOPLE)


class Part(NamedTuple):
    """Characters ``words[start:end]`` of a name, and the group of what may replace them."""

    start: int
    end: int
    group: str


def parts_of(
    words: str, kind_of: Callable[[str], str], common_tag: Callable[[str], str]
) -> list[Part]:
    """Return the parts of a name of one or several words that are replaced together.

    A person: all given names and the surname. A place of names alone: the whole. Else the words
    that are names of a known kind, while all others stay (``University of California``), or that
    are known as no common word. Else every word, by its tag in small letters.
    """
    found = [one for one in _WORD.finditer(words) if one[0].lower() not in _KEPT]
    kinds = [_kind(one[0], kind_of) for one in found]
    common = [common_tag(one[0]) for one in found]
    if _is_person(kinds, common):
        groups = [_INITIAL if kind == _INITIAL else GIVEN for kind in kinds[:-1]] + [SURNAME]
    elif _is_place(kinds, [one[0] for one in found], common):
        return [Part(found[0].start(), found[-1].end(), PLACE)]
    elif any(kind in _TELLING for kind in kinds):  # the Supreme Court of Canada
        groups = [kind if kind in _TELLING else _INITIAL for kind in kinds]
    elif any(kind not in (UNKNOWN, _INITIAL) for kind in kinds):
        groups = [kind or _INITIAL for kind in kinds]
    else:  # Lake Tahoe keeps its lake, but of Black Sea both are replaced
        unknown = "" in common
        groups = [_INITIAL if tag and unknown else tag for tag in common]
    return [
        Part(one.start(), one.end(), group)
        for one, group in zip(found, groups, strict=True)
        if group != _INITIAL
    ]


def _kind(word: str, kind_of: Callable[[str], str]) -> str:
    if len(word) == 1:
        return _INITIAL
    return PLACE if word.lower() in HALVES else kind_of(word)


def _is_person(kinds: Sequence[str], common: Sequence[str]) -> bool:
    """Whether a name of several words is a person's: one is a given name, an initial or a surname,
    no other a place or a people, and none but the last a common word only."""
    if len(kinds) < 2 or not {GIVEN, SURNAME, _INITIAL} & set(kinds):
        return False
    if kinds[0] == GIVEN and len(kinds) == 2:  # also Jack London, and Irving Berlin
        return True
    before = zip(kinds[:-1], common[:-1], strict=True)
    if any(kind == UNKNOWN and tag for kind, tag in before):
        return False
    return {GIVEN, SURNAME, _INITIAL, UNKNOWN}.issuperset(kinds)


def _is_place(kinds: Sequence[str], words: Sequence[str], common: Sequence[str]) -> bool:
    """Whether a name is that of a place, and holds no common word but a direction."""
    own = [
        (kind, tag)
        for kind, word, tag in zip(kinds, words, common, strict=True)
        if word.lower() not in _BESIDE
    ]
    if not own:
        return len(words) > 1
    return PLACE in kinds and all(kind == PLACE or not (kind or tag) for kind, tag in own)


NEAREST = 1000
"""Neighbours that are looked at."""
NEAR = 600
"""Of them, those that substitutes are taken from."""
CAP = 0.9
"""Cosine from which on two words count as saying the same."""

OWN = 0.5
"""What nearness to the word counts beside nearness to the pivot."""
PIVOTS = range(4, 24)
"""Ranks of the neighbours of which one is drawn as the pivot."""
WINDOW = 1.5
"""How far the rarity (natural logarithm of the rank) of substitutes is from their middle."""
SHIFT = -0.6
"""How much more frequent that middle is on average, since frequent words run out first."""
SPREAD = 0.75
"""Standard deviation of that middle around the rarity of what is replaced."""

Indices = NDArray[np.int64]


class _ListedWords(ABC):
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
            tags = [request.tag]
            if request.tag in ("VBD", "VBN") and words.endswith("ed"):
                tags = ["VBD", "VBN"]  # the two pasts of most verbs are written alike
            return [] if " " in words else self._of_part(words, tags, request.k)
        parts = parts_of(words, self._table.kind, self._table.common_tag)
        likely = [kind for kind in map(_kind_of_type, request.types) if kind]
        lists = [
            self._of_part(words[p.start : p.end], self._groups(p, likely, words), request.k)
            for p in parts
        ]
        several = [_joined(words, parts, row) for row in zip(*lists, strict=False)]
        return list(dict.fromkeys(several)) if parts else []

    def _groups(self, part: Part, likely: Sequence[str], words: str) -> Sequence[str]:
        """Return the groups for a part of a name: what the types say where its kind is not known,
        all names and nouns where those say nothing."""
        if part.group == PLACE:  # a country for a country, where the question does not ask for more
            asked = [kind for kind in likely if kind in PLACES]
            return asked or [self._table.kind_of_place(words[part.start : part.end])]
        if part.group in EXAMPLES or (part.group in self._table.groups and not likely):
            return [part.group]
        return likely or [*EXAMPLES, "NN"]

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

    @abstractmethod
    def _ranked(self, words: str, places: Indices) -> Indices:
        """Return the places of a group, best first."""

    def _balanced(self, words: str, ranked: Indices) -> Indices:
        """Return ranked words about as rare as others, in turn rarer and more frequent; the middle
        is drawn around the rarity of the original, which would else be found there."""
        rng = _rng(words, "rarity")
        middle = self._table.rarity_of(words) + rng.normal(SHIFT, SPREAD)
        rarity = self._table.rarity[ranked] - middle
        near = np.abs(rarity) <= WINDOW
        sides = [ranked[near & (rarity < 0)], ranked[near & (rarity >= 0)]]
        if rng.random() < 0.5:
            sides.reverse()
        paired = min(map(len, sides))
        turns = np.stack([side[:paired] for side in sides], axis=1).ravel()
        rest = np.setdiff1d(ranked, turns)
        nearest = np.argsort(np.abs(self._table.rarity[rest] - middle), kind="stable")
        return np.concatenate([turns, rest[nearest]])


class NearWords(_ListedWords):
    """Near words by cosine; two above the cap say the same.

    Were they the nearest to the word itself, it would stand in the middle of its substitutes, and
    be found there. So one of its neighbours, the pivot, is drawn, and what is near to that comes
    first; the pivot is no substitute. Of those, words that are about as rare as the word.
    """

    def __init__(self) -> None:
        super().__init__()
        self.name = f"embedding:1+{self._table.name}"

    def _ranked(self, words: str, places: Indices) -> Indices:
        vector = self._table.vector(words)
        if vector is None or not len(places):
            return places[:0]
        table = self._table
        likeness = _rows(table.vectors, places) @ vector
        many = min(NEAREST, len(likeness))
        order = np.argpartition(-likeness, many - 1)[:many]
        order = order[np.lexsort((order, -likeness[order]))]
        near = places[order[likeness[order] < CAP]][:NEAR]
        if len(near) < PIVOTS.stop:
            return near
        pivot = near[int(_rng(words, "pivot").integers(PIVOTS.start, PIVOTS.stop))]
        near = near[near != pivot]
        centre = table.vectors[pivot] + OWN * vector
        ranked = near[np.argsort(-(table.vectors[near] @ centre), kind="stable")]
        return self._balanced(words, ranked)


class DrawnWords(_ListedWords):
    """Words of one group that are about as rare, in an order that looks random.

    It is the same for the same words.
    """

    def __init__(self) -> None:
        super().__init__()
        self.name = f"pos:1+{self._table.name}"

    def _ranked(self, words: str, places: Indices) -> Indices:
        return self._balanced(words, _rng(words, "pos").permutation(places))


def _rows(vectors: Vectors, places: Indices) -> Vectors:
    """Return some rows, as a view where they stand in one piece."""
    if len(places) and places[-1] - places[0] + 1 == len(places):
        return vectors[places[0] : places[-1] + 1]
    return vectors[places]


def _rng(words: str, purpose: str) -> np.random.Generator:
    """Return a generator that depends on the words and the purpose alone."""
    text = f"{purpose}\x1f{words}".encode("utf-8", "surrogatepass")
    digest = hashlib.blake2b(text, digest_size=8).digest()
    return np.random.default_rng(int.from_bytes(digest, "big"))


def _kind_of_type(name: str) -> str:
    """Return the kind of name that a type of a knowledge base stands for; empty for others."""
    local = name.rpartition(":")[2].lower()
    if local in ("person", "agent"):
        return SURNAME
    local = {"county": "state", "province": "state", "town": "city"}.get(local, local)
    if local in PLACES:
        return local
    return PLACE if local in ("place", "location", "gpe", "loc") else ""


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
