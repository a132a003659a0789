"""English words with their part of speech, or the kind of name that they are, and their vectors.

TextBlob's lexicon says which words there are and how each is tagged. The vocabulary of the embedded
encoder, which stands roughly in the order of frequency, says which of them are common, and its
table of word embeddings how near they are to each other: nothing is downloaded, and nothing
computed but means and products.
"""

import math
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trustassay.backends.embedded import card, encoder

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

Floats = NDArray[np.float32]
Indices = NDArray[np.int64]


@dataclass(frozen=True)
class WordTable:
    """About 47,000 words, group after group, their unit vectors, and groups of like words.

    rarity: natural logarithm of the rank by frequency, roughly; the rarest are not ranked.
    groups: places of the words by tag (``NN``), and of names by kind (``surname``), the most
    frequent first.
    """

    name: str
    words: tuple[str, ...]
    vectors: Floats
    rarity: Floats
    groups: Mapping[str, Indices]
    lexicon: Mapping[str, str]
    _reader: Any
    _pieces: Floats
    _kinds: tuple[str, ...]
    _centres: Floats
    _nearest_place: Callable[[Floats], str]

    def vector(self, text: str) -> Floats | None:
        """Return the unit vector of words, the mean of their pieces; ``None`` for a blank."""
        ids = self._reader.tokenizer.encode(text, add_special_tokens=False).ids
        return _unit(self._pieces[ids].mean(axis=0)) if ids else None

    def kind(self, word: str) -> str:
        """Return the kind of name that a word is; empty where it is none, or that is not sure."""
        if not word[:1].isalpha():
            return ""
        if word in _PLACES:  # also China and Turkey, which are common words, too
            return PLACE
        ids = self._reader.tokenizer.encode(word, add_special_tokens=False).ids
        if len(ids) != 1:
            return ""
        found = _kind(self._pieces[ids[0]], self._centres, self._kinds, MARGIN)
        if not self.common_tag(word):
            return found
        margin = COMMON_PERSON if found in (GIVEN, SURNAME) else COMMON_OTHER
        return _kind(self._pieces[ids[0]], self._centres, self._kinds, margin)

    def rarity_of(self, text: str) -> float:
        """Return how rare words are: the mean of theirs."""
        reader, size = self._reader.tokenizer, len(self._pieces)
        rows = [reader.encode(w, add_special_tokens=False).ids for w in text.split()]
        return float(np.mean([_rarity(ids, size) for ids in rows if ids] or [0.0]))

    def kind_of_place(self, words: str) -> str:
        """Return whether a place is a ``country``, a ``state`` or a ``city``."""
        vector = self.vector(words)
        return PLACE if vector is None else self._nearest_place(vector)

    def common_tag(self, word: str) -> str:
        """Return the tag of a word in small letters; empty where it is known as a name alone."""
        tag = self.lexicon.get(word.lower(), "").split("|")[0]
        return "" if tag in NAMES else tag


@cache
def word_table() -> WordTable:
    """Return the table, made once."""
    lexicon, release = _lexicon()
    reader = encoder("embedder")
    rows = reader.tokenizer.get_vocab()
    pieces = reader.rows.astype(np.float32) * reader.scales[:, None]
    pieces /= np.maximum(np.linalg.norm(pieces, axis=1, keepdims=True), 1e-12)
    kinds = tuple(EXAMPLES)
    centres = _centres(pieces, rows, EXAMPLES)
    usable = [text for text, tag in lexicon.items() if _usable(text, tag.split("|")[0], lexicon)]
    encoded = reader.tokenizer.encode_batch(usable, add_special_tokens=False)
    listed = sorted(
        (_rarity(one.ids, len(rows)), text, one.ids)
        for text, one in zip(usable, encoded, strict=True)
    )
    vectors = _means(pieces, [ids for *_, ids in listed])
    of_places = tuple(PLACES)
    place_centres = _centres(pieces, rows, PLACES)

    def nearest_place(vector: Floats) -> str:
        return of_places[int((place_centres @ vector).argmax())]

    sorted_in: dict[str, list[int]] = {}
    for place, (_, text, ids) in enumerate(listed):
        group = lexicon[text].split("|")[0]
        if text[0].isupper():
            group = _kind(vectors[place], centres, kinds, MARGIN)
            if len(ids) > 1 and not (group == SURNAME and len(text) <= LONGEST_SURNAME):
                continue  # the pieces of rare names tell surnames alone
            if len(text) < 4 and group == PLACE:
                continue
        if group:
            sorted_in.setdefault(group, []).append(place)
    # A group stands in one piece, so that a product with its vectors copies nothing.
    order = [place for places in sorted_in.values() for place in places]
    listed, vectors = [listed[place] for place in order], vectors[order]
    ends = np.cumsum([0, *map(len, sorted_in.values())])
    groups = {
        name: np.arange(start, end, dtype=np.int64)
        for name, start, end in zip(sorted_in, ends, ends[1:], strict=False)
    }
    of_place = np.array([nearest_place(vectors[place]) for place in groups[PLACE]])
    groups |= {name: groups[PLACE][of_place == name] for name in of_places}
    return WordTable(
        f"{card()['version']}+textblob-{release}",
        tuple(text for _, text, _ in listed),
        vectors,
        np.array([rarity for rarity, *_ in listed], dtype=np.float32),
        groups,
        lexicon,
        reader,
        pieces,
        kinds,
        centres,
        nearest_place,
    )


def _centres(
    pieces: Floats, rows: Mapping[str, int], examples: Mapping[str, Sequence[str]]
) -> Floats:
    """Return the mean direction of the examples of each kind, shape (kinds, d)."""
    found = [pieces[[rows[one.lower()] for one in words]] for words in examples.values()]
    return np.stack([_unit(vectors.mean(axis=0)) for vectors in found])


def _usable(text: str, tag: str, lexicon: Mapping[str, str]) -> bool:
    """Whether a word is written as its kind is, and a name is no common word, too."""
    if not (text.isascii() and text.isalpha() and len(text) > 2):
        return False
    if text.islower():
        return tag not in NAMES
    known = text.lower() in lexicon or text.lower() in FRAGMENTS
    return text == text.capitalize() and not known


def _rarity(ids: Sequence[int], size: int) -> float:
    """Return the logarithm of a word's rank; one of several pieces is rarer than all others."""
    if len(ids) == 1:
        return math.log1p(ids[0])
    return math.log1p(size) + PIECE * (len(ids) - 1)


def _kind(vector: Floats, centres: Floats, kinds: tuple[str, ...], margin: float) -> str:
    likeness = centres @ vector
    second, first = np.argsort(likeness)[-2:]
    if {kinds[first], kinds[second]} == {PLACE, PEOPLE}:  # Sweden is near to Swedish
        margin /= 3
    return kinds[first] if likeness[first] - likeness[second] >= margin else ""


def _unit(vector: Floats) -> Floats:
    return np.asarray(vector / max(float(np.linalg.norm(vector)), 1e-12), dtype=np.float32)


def _means(pieces: Floats, places: Sequence[Sequence[int]]) -> Floats:
    """Return the unit vector of the mean of each word's pieces, shape (words, d)."""
    made = []
    for start in range(0, len(places), TOGETHER):
        block = places[start : start + TOGETHER]
        starts = np.cumsum([0, *map(len, block)])[:-1]
        sums = np.add.reduceat(pieces[[one for ids in block for one in ids]], starts)
        made.append(sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-12))
    return np.concatenate(made)


def _lexicon() -> tuple[dict[str, str], str]:
    from textblob.en import lexicon

    len(lexicon)  # it is read when it is first asked for something
    return dict(lexicon), version("textblob")
