"""``embedding`` and ``pos`` without a file: words of one group, the nearest or drawn at random.

Which words of a name are replaced, and by words of which group, is decided by its parts.

TextBlob's lexicon says which words there are and how each is tagged. The vocabulary of the embedded
encoder, which stands roughly in the order of frequency, says which of them are common, and its
table of word embeddings how near they are to each other: nothing is downloaded, and nothing
computed but means and products.
"""

import hashlib
import math
import re
import tomllib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import Prefix

from trustassay.backends.embedded import card, encoder
from trustassay.capabilities import BatchLimits, SubstitutesRequest, Vectors

GIVEN, SURNAME, PLACE, PEOPLE = "given name", "surname", "place", "people"

_NAMES = tomllib.loads(files("trustassay.backends").joinpath("names.toml").read_text("utf-8"))
EXAMPLES: Mapping[str, Sequence[str]] = {k: v.split() for k, v in _NAMES["examples"].items()}
PLACES: Mapping[str, Sequence[str]] = {k: v.split() for k, v in _NAMES["places"].items()}
"""Kinds of places, by examples, too."""
HALVES, _FRAGMENTS, TITLES = (frozenset(words.split()) for words in _NAMES["others"].values())
FRAGMENTS = HALVES | _FRAGMENTS
"""What is no name by itself: halves of names, short forms, particles."""

MARGIN = 0.06
"""So much nearer a name is to the examples of its kind than to those of any other."""
_PLACES = frozenset(word for words in PLACES.values() for word in words)
COMMON_PERSON, COMMON_OTHER = 0.1, 0.15
"""The same of a name that is a common word, too: of a person (``Mark``), of anything else."""
PIECE = 0.3
"""So much rarer (natural logarithm) a word counts for each further piece that it is read in."""
LONGEST_SURNAME = 10
"""Characters of a surname of several pieces; longer ones are mostly no surnames."""
TOGETHER = 4096
"""Words whose vectors are made at once."""
NAMES = ("NNP", "NNPS")

Indices = NDArray[np.int64]


class WordTable:
    """About 47,000 words, group after group, their unit vectors, and groups of like words.

    rarity: natural logarithm of the rank by frequency, roughly; the rarest are not ranked.
    groups: places of the words by tag (``NN``), and of names by kind (``surname``), the most
    frequent first.
    """

    def __init__(self) -> None:
        from textblob.en import lexicon

        len(lexicon)  # it is read when it is first asked for something
        self.lexicon: dict[str, str] = dict(lexicon)
        self.name = f"{card()['version']}+textblob-{version('textblob')}"
        reader = encoder("embedder")
        self._tokenizer = reader.tokenizer
        rows = self._tokenizer.get_vocab()
        pieces = reader.rows.astype(np.float32) * reader.scales[:, None]
        pieces /= np.maximum(np.linalg.norm(pieces, axis=1, keepdims=True), 1e-12)
        self._pieces: Vectors = pieces
        self._kinds = tuple(EXAMPLES)
        self._centres = _centres(pieces, rows, EXAMPLES)
        self._place_centres = _centres(pieces, rows, PLACES)
        usable = [text for text in self.lexicon if self._is_usable(text)]
        encoded = self._tokenizer.encode_batch(usable, add_special_tokens=False)
        listed = sorted(
            (self._rarity(one.ids), text, one.ids)
            for text, one in zip(usable, encoded, strict=True)
        )
        vectors = _means(pieces, [ids for *_, ids in listed])
        sorted_in: dict[str, list[int]] = {}
        for place, (_, text, ids) in enumerate(listed):
            group = self._tag(text)
            if text[0].isupper():
                group = self._kind(vectors[place], MARGIN)
                if len(ids) > 1 and not (group == SURNAME and len(text) <= LONGEST_SURNAME):
                    continue  # the pieces of rare names tell surnames alone
                if len(text) < 4 and group == PLACE:
                    continue
            if group:
                sorted_in.setdefault(group, []).append(place)
        # A group stands in one piece, so that a product with its vectors copies nothing.
        order = [place for places in sorted_in.values() for place in places]
        self.words = tuple(listed[place][1] for place in order)
        self.rarity: Vectors = np.array([listed[place][0] for place in order], dtype=np.float32)
        self.vectors: Vectors = vectors[order]
        ends = np.cumsum([0, *map(len, sorted_in.values())])
        self.groups: dict[str, Indices] = {
            name: np.arange(start, end, dtype=np.int64)
            for name, start, end in zip(sorted_in, ends, ends[1:], strict=False)
        }
        places = self.groups[PLACE]
        of_place = np.array([self._nearest_place(self.vectors[place]) for place in places])
        self.groups |= {name: places[of_place == name] for name in PLACES}

    def vector(self, text: str) -> Vectors | None:
        """Return the unit vector of words, the mean of their pieces; ``None`` for a blank."""
        ids = self._ids(text)
        return _unit(self._pieces[ids].mean(axis=0)) if ids else None

    def kind(self, word: str) -> str:
        """Return the kind of name that a word is; empty where it is none, or that is not sure."""
        if not word[:1].isalpha():
            return ""
        if word in _PLACES:  # also China and Turkey, which are common words, too
            return PLACE
        ids = self._ids(word)
        if len(ids) != 1:
            return ""
        result = self._kind(self._pieces[ids[0]], MARGIN)
        if not self.common_tag(word):
            return result
        margin = COMMON_PERSON if result in (GIVEN, SURNAME) else COMMON_OTHER
        return self._kind(self._pieces[ids[0]], margin)

    def rarity_of(self, text: str) -> float:
        """Return how rare words are: the mean of theirs."""
        rows = map(self._ids, text.split())
        return float(np.mean([self._rarity(ids) for ids in rows if ids] or [0.0]))

    def kind_of_place(self, words: str) -> str:
        """Return whether a place is a ``country``, a ``state`` or a ``city``."""
        vector = self.vector(words)
        return PLACE if vector is None else self._nearest_place(vector)

    def common_tag(self, word: str) -> str:
        """Return the tag of a word in small letters; empty where it is known as a name alone."""
        tag = self._tag(word.lower())
        return "" if tag in NAMES else tag

    def _tag(self, word: str) -> str:
        return self.lexicon.get(word, "").split("|")[0]

    def _ids(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    def _is_usable(self, text: str) -> bool:
        """Whether a word is written as its kind is, and a name is no common word, too."""
        if not (text.isascii() and text.isalpha() and len(text) > 2):
            return False
        if text.islower():
            return self._tag(text) not in NAMES
        known = text.lower() in self.lexicon or text.lower() in FRAGMENTS
        return text == text.capitalize() and not known

    def _rarity(self, ids: Sequence[int]) -> float:
        """Return the logarithm of a word's rank; one of several pieces is rarer than all others."""
        if len(ids) == 1:
            return math.log1p(ids[0])
        return math.log1p(len(self._pieces)) + PIECE * (len(ids) - 1)

    def _kind(self, vector: Vectors, margin: float) -> str:
        kinds, likeness = self._kinds, self._centres @ vector
        second, first = np.argsort(likeness)[-2:]
        if {kinds[first], kinds[second]} == {PLACE, PEOPLE}:  # Sweden is near to Swedish
            margin /= 3
        return kinds[first] if likeness[first] - likeness[second] >= margin else ""

    def _nearest_place(self, vector: Vectors) -> str:
        return tuple(PLACES)[int((self._place_centres @ vector).argmax())]


word_table = cache(WordTable)
"""Returns the table, made once."""


def _centres(
    pieces: Vectors, rows: Mapping[str, int], examples: Mapping[str, Sequence[str]]
) -> Vectors:
    """Return the mean direction of the examples of each kind, shape (kinds, d)."""
    result = [pieces[[rows[one.lower()] for one in words]] for words in examples.values()]
    return np.stack([_unit(vectors.mean(axis=0)) for vectors in result])


def _unit(vector: Vectors) -> Vectors:
    return np.asarray(vector / max(float(np.linalg.norm(vector)), 1e-12), dtype=np.float32)


def _means(pieces: Vectors, places: Sequence[Sequence[int]]) -> Vectors:
    """Return the unit vector of the mean of each word's pieces, shape (words, d)."""
    made = []
    for start in range(0, len(places), TOGETHER):
        block = places[start : start + TOGETHER]
        starts = np.cumsum([0, *map(len, block)])[:-1]
        sums = np.add.reduceat(pieces[[one for ids in block for one in ids]], starts)
        made.append(sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-12))
    return np.concatenate(made)


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
    result = [one for one in _WORD.finditer(words) if one[0].lower() not in _KEPT]
    kinds = [_kind(one[0], kind_of) for one in result]
    common = [common_tag(one[0]) for one in result]
    if _is_person(kinds, common):
        groups = [_INITIAL if kind == _INITIAL else GIVEN for kind in kinds[:-1]] + [SURNAME]
    elif _is_place(kinds, [one[0] for one in result], common):
        return [Part(result[0].start(), result[-1].end(), PLACE)]
    elif any(kind in _TELLING for kind in kinds):  # the Supreme Court of Canada
        groups = [kind if kind in _TELLING else _INITIAL for kind in kinds]
    elif any(kind not in (UNKNOWN, _INITIAL) for kind in kinds):
        groups = [kind or _INITIAL for kind in kinds]
    else:  # Lake Tahoe keeps its lake, but of Black Sea both are replaced
        unknown = "" in common
        groups = [_INITIAL if tag and unknown else tag for tag in common]
    return [
        Part(one.start(), one.end(), group)
        for one, group in zip(result, groups, strict=True)
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
        result: list[str] = []
        for text in ranked:
            if len(result) == k:
                break
            if not _akin(text, words):
                result.append(text)
        return result

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
        whole = places[-1] - places[0] + 1 == len(places)  # then a view of the table serves
        rows = table.vectors[places[0] : places[-1] + 1] if whole else table.vectors[places]
        likeness = rows @ vector
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
    return Prefix.similarity(one, other) >= max(4, 0.7 * min(len(one), len(other)))
