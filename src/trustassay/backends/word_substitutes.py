"""``embedding`` and ``pos`` without a file: substitutes from one group of words, near or random.

Which words of a name are replaced, and by words of which group, depends on its parts.

TextBlob's lexicon gives the words and their tags. The vocabulary of the embedded encoder, which is
roughly in the order of frequency, says which of them are common, and its table of word embeddings
how near they are to each other. Nothing is downloaded, and nothing computed but means and products.
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

from trustassay.backends.embedded import load_encoder, read_card
from trustassay.core.capabilities import BatchLimits, SubstitutesRequest, Vectors

GIVEN, SURNAME, PLACE, PEOPLE = "given name", "surname", "place", "people"

_NAMES = tomllib.loads(files("trustassay.backends").joinpath("names.toml").read_text("utf-8"))
EXAMPLES: Mapping[str, Sequence[str]] = {k: v.split() for k, v in _NAMES["examples"].items()}
PLACES: Mapping[str, Sequence[str]] = {k: v.split() for k, v in _NAMES["places"].items()}
"""Kinds of places, with examples of each."""
HALVES, _FRAGMENTS, TITLES = (frozenset(words.split()) for words in _NAMES["others"].values())
FRAGMENTS = HALVES | _FRAGMENTS
"""Words that are no names by themselves: halves of names, short forms, particles."""

KIND_MARGIN = 0.06
"""By how much more a name must resemble the examples of its kind than those of any other kind."""
_PLACES = frozenset(word for words in PLACES.values() for word in words)
COMMON_PERSON, COMMON_OTHER = 0.1, 0.15
"""The same margin for names that are also common words: of a person (``Mark``), of others."""
RARITY_PER_PIECE = 0.3
"""How much rarer a word counts for each further piece of the tokenizer, as a natural logarithm."""
MAX_SURNAME_CHARACTERS = 10
"""Characters of a surname of several pieces; longer ones are mostly not surnames."""
WORDS_PER_BLOCK = 4096
"""Words whose vectors are computed at once."""
NAMES = ("NNP", "NNPS")

Indices = NDArray[np.int64]


class WordTable:
    """About 47,000 words with their unit vectors, in groups of words that can replace each other.

    words: the words, group after group.
    vectors: their unit vectors, shape (words, d).
    rarity: natural logarithm of the rank by frequency, roughly; the rarest are not ranked.
    groups: indices of the words by tag (``NN``), and of names by kind (``surname``), the most
        frequent first.
    """

    def __init__(self) -> None:
        """Build the table from the lexicon and the embedded encoder's table."""
        from textblob.en import lexicon

        len(lexicon)  # it is read when it is first asked for something
        self.lexicon: dict[str, str] = dict(lexicon)
        self.name = f"{read_card()['version']}+textblob-{version('textblob')}"
        reader = load_encoder("embedder")
        self._tokenizer = reader.tokenizer
        rows = self._tokenizer.get_vocab()
        pieces = reader.rows.astype(np.float32) * reader.scales[:, None]
        pieces /= np.maximum(np.linalg.norm(pieces, axis=1, keepdims=True), 1e-12)
        self._pieces: Vectors = pieces
        self._kinds = tuple(EXAMPLES)
        self._centres = _compute_centres(pieces, rows, EXAMPLES)
        self._place_centres = _compute_centres(pieces, rows, PLACES)
        # 1. Choose the words, and sort them by frequency.
        usable = [text for text in self.lexicon if self._is_usable(text)]
        encoded = self._tokenizer.encode_batch(usable, add_special_tokens=False)
        listed = sorted(
            (self._compute_rarity(encoding.ids), text, encoding.ids)
            for text, encoding in zip(usable, encoded, strict=True)
        )
        # 2. Find the group of each word.
        vectors = _mean_vectors(pieces, [ids for *_, ids in listed])
        sorted_in: dict[str, list[int]] = {}
        for index, (_, text, ids) in enumerate(listed):
            group = self._first_tag(text)
            if text[0].isupper():
                group = self._find_kind(vectors[index], KIND_MARGIN)
                if len(ids) > 1 and not (group == SURNAME and len(text) <= MAX_SURNAME_CHARACTERS):
                    continue  # the pieces of rare names tell surnames alone
                if len(text) < 4 and group == PLACE:
                    continue
            if group:
                sorted_in.setdefault(group, []).append(index)
        # A group stands in one piece, so that a product with its vectors copies nothing.
        order = [index for place_indices in sorted_in.values() for index in place_indices]
        # 3. Sort the table by groups.
        self.words = tuple(listed[index][1] for index in order)
        self.rarity: Vectors = np.array([listed[index][0] for index in order], dtype=np.float32)
        self.vectors: Vectors = vectors[order]
        ends = np.cumsum([0, *map(len, sorted_in.values())])
        self.groups: dict[str, Indices] = {
            name: np.arange(start, end, dtype=np.int64)
            for name, start, end in zip(sorted_in, ends, ends[1:], strict=False)
        }
        # 4. Divide places into countries, states and cities.
        place_indices = self.groups[PLACE]
        of_place = np.array([self._nearest_place(self.vectors[index]) for index in place_indices])
        self.groups |= {name: place_indices[of_place == name] for name in PLACES}

    def vector(self, text: str) -> Vectors | None:
        """Return the unit vector of words, the mean of their pieces; ``None`` for a blank text."""
        ids = self._tokenise(text)
        return _scale_to_unit(self._pieces[ids].mean(axis=0)) if ids else None

    def kind(self, word: str) -> str:
        """Return the kind of name that a word is; empty if it is none, or that is uncertain."""
        if not word[:1].isalpha():
            return ""
        if word in _PLACES:  # also China and Turkey, which are common words, too
            return PLACE
        ids = self._tokenise(word)
        # The pieces of a rare name say little about its kind.
        if len(ids) != 1:
            return ""
        result = self._find_kind(self._pieces[ids[0]], KIND_MARGIN)
        if not self.common_tag(word):
            return result
        # A common word must be a much clearer case.
        margin = COMMON_PERSON if result in (GIVEN, SURNAME) else COMMON_OTHER
        return self._find_kind(self._pieces[ids[0]], margin)

    def rarity_of(self, text: str) -> float:
        """Return the rarity of words: the mean of theirs."""
        rows = map(self._tokenise, text.split())
        return float(np.mean([self._compute_rarity(ids) for ids in rows if ids] or [0.0]))

    def kind_of_place(self, words: str) -> str:
        """Return whether a place is a ``country``, a ``state`` or a ``city``."""
        vector = self.vector(words)
        return PLACE if vector is None else self._nearest_place(vector)

    def common_tag(self, word: str) -> str:
        """Return the tag of a word in lower case; empty if it is only known as a name."""
        tag = self._first_tag(word.lower())
        return "" if tag in NAMES else tag

    def _first_tag(self, word: str) -> str:
        """Return the first tag of a word, as it is written."""
        return self.lexicon.get(word, "").split("|")[0]

    def _tokenise(self, text: str) -> list[int]:
        """Return the pieces of a text."""
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    def _is_usable(self, text: str) -> bool:
        """Whether a word is written as its kind requires, and a name is not also a common word."""
        if not (text.isascii() and text.isalpha() and len(text) > 2):
            return False
        if text.islower():
            return self._first_tag(text) not in NAMES
        is_common = text.lower() in self.lexicon or text.lower() in FRAGMENTS
        return text == text.capitalize() and not is_common

    def _compute_rarity(self, ids: Sequence[int]) -> float:
        """Return the logarithm of a word's rank; several pieces are rarer than all single ones."""
        if len(ids) == 1:
            return math.log1p(ids[0])
        return math.log1p(len(self._pieces)) + RARITY_PER_PIECE * (len(ids) - 1)

    def _find_kind(self, vector: Vectors, margin: float) -> str:
        """Return the kind whose examples a vector resembles most; empty if that is uncertain."""
        kinds, likeness = self._kinds, self._centres @ vector
        second, first = np.argsort(likeness)[-2:]
        if {kinds[first], kinds[second]} == {PLACE, PEOPLE}:  # Sweden is near to Swedish
            margin /= 3
        return kinds[first] if likeness[first] - likeness[second] >= margin else ""

    def _nearest_place(self, vector: Vectors) -> str:
        """Return the kind of place whose examples a vector resembles most."""
        return tuple(PLACES)[int((self._place_centres @ vector).argmax())]


word_table = cache(WordTable)
"""Returns the table, which is built once."""


def _compute_centres(
    pieces: Vectors, rows: Mapping[str, int], examples: Mapping[str, Sequence[str]]
) -> Vectors:
    """Return the mean direction of the examples of each kind, shape (kinds, d)."""
    result = [pieces[[rows[example.lower()] for example in words]] for words in examples.values()]
    return np.stack([_scale_to_unit(vectors.mean(axis=0)) for vectors in result])


def _scale_to_unit(vector: Vectors) -> Vectors:
    """Return a vector scaled to length 1."""
    return np.asarray(vector / max(float(np.linalg.norm(vector)), 1e-12), dtype=np.float32)


def _mean_vectors(pieces: Vectors, piece_ids: Sequence[Sequence[int]]) -> Vectors:
    """Return the unit vector of the mean of each word's pieces, shape (words, d)."""
    blocks = []
    # In blocks, since the vectors of all pieces at once would take much memory.
    for start in range(0, len(piece_ids), WORDS_PER_BLOCK):
        block = piece_ids[start : start + WORDS_PER_BLOCK]
        starts = np.cumsum([0, *map(len, block)])[:-1]
        sums = np.add.reduceat(pieces[[piece for ids in block for piece in ids]], starts)
        blocks.append(sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-12))
    return np.concatenate(blocks)


UNKNOWN = ""
"""The group of a name of no known kind."""

_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_INITIAL = "initial"
_UNREPLACED_WORDS = (
    frozenset("of the de la du van von der den del da di al el bin ibn y and".split()) | TITLES
)
_PLACE_NAME_WORDS = frozenset(
    "north south east west new upper lower great central united states kingdom republic union "
    "saint city island islands".split()
)
"""Common words in names of places."""
_KNOWN_KINDS = (GIVEN, SURNAME, PLACE, PEOPLE)


class NamePart(NamedTuple):
    """A part of a name that is replaced."""

    start: int
    """First character in the name."""
    end: int
    """Character after the last one."""
    group: str
    """Group of the words that may replace it."""


def split_name(
    words: str, kind_of: Callable[[str], str], common_tag: Callable[[str], str]
) -> list[NamePart]:
    """Return the parts of a name, of one or several words, that are replaced together.

    * A person: all given names, and the surname.
    * A place whose words are all names: the whole.
    * Otherwise the words that are names of a known kind, while all others stay (``University of
      California``), or that are not known as common words.
    * Otherwise every word, by its tag in lower case.
    """
    matches = [
        match for match in _WORD.finditer(words) if match[0].lower() not in _UNREPLACED_WORDS
    ]
    kinds = [_find_kind(match[0], kind_of) for match in matches]
    common = [common_tag(match[0]) for match in matches]
    # From the most to the least specific case.
    if _is_person(kinds, common):
        groups = [_INITIAL if kind == _INITIAL else GIVEN for kind in kinds[:-1]] + [SURNAME]
    elif _is_place(kinds, [match[0] for match in matches], common):
        return [NamePart(matches[0].start(), matches[-1].end(), PLACE)]
    elif any(kind in _KNOWN_KINDS for kind in kinds):  # the Supreme Court of Canada
        groups = [kind if kind in _KNOWN_KINDS else _INITIAL for kind in kinds]
    elif any(kind not in (UNKNOWN, _INITIAL) for kind in kinds):
        groups = [kind or _INITIAL for kind in kinds]
    else:  # Lake Tahoe keeps its lake, but of Black Sea both are replaced
        # Words that are not common words are the name proper, if there are any.
        unknown = "" in common
        groups = [_INITIAL if tag and unknown else tag for tag in common]
    return [
        NamePart(match.start(), match.end(), group)
        for match, group in zip(matches, groups, strict=True)
        if group != _INITIAL
    ]


def _find_kind(word: str, kind_of: Callable[[str], str]) -> str:
    """Return the kind of one word of a name."""
    if len(word) == 1:
        return _INITIAL
    return PLACE if word.lower() in HALVES else kind_of(word)


def _is_person(kinds: Sequence[str], common: Sequence[str]) -> bool:
    """Whether a name of several words is a person's.

    So if one word is a given name, an initial or a surname, no other is a place or a people, and
    none but the last is only a common word.
    """
    if len(kinds) < 2 or not {GIVEN, SURNAME, _INITIAL} & set(kinds):
        return False
    if kinds[0] == GIVEN and len(kinds) == 2:  # also Jack London, and Irving Berlin
        return True
    before = zip(kinds[:-1], common[:-1], strict=True)
    if any(kind == UNKNOWN and tag for kind, tag in before):
        return False
    return {GIVEN, SURNAME, _INITIAL, UNKNOWN}.issuperset(kinds)


def _is_place(kinds: Sequence[str], words: Sequence[str], common: Sequence[str]) -> bool:
    """Whether a name is that of a place, and has no common word except directions and the like."""
    name_words = [
        (kind, tag)
        for kind, word, tag in zip(kinds, words, common, strict=True)
        if word.lower() not in _PLACE_NAME_WORDS
    ]
    if not name_words:
        return len(words) > 1
    return PLACE in kinds and all(kind == PLACE or not (kind or tag) for kind, tag in name_words)


MAX_NEIGHBOURS = 1000
"""Nearest words that are looked at."""
MAX_NEAR_WORDS = 600
"""Of these, the words that substitutes are taken from."""
SYNONYM_COSINE = 0.9
"""Cosine from which on two words count as synonyms."""

WORD_WEIGHT = 0.5
"""Weight of the nearness to the word, in addition to the nearness to the pivot."""
PIVOT_RANKS = range(4, 24)
"""Ranks of the neighbours from which the pivot is drawn."""
RARITY_WINDOW = 1.5
"""Largest distance of a substitute's rarity (natural logarithm of the rank) from the middle."""
RARITY_SHIFT = -0.6
"""Mean of the middle's distance from the word's rarity.

It is below 0, as frequent words run out first.
"""
RARITY_SPREAD = 0.75
"""Standard deviation of that distance."""


class _ListedWords(ABC):
    """Common part of both sources: the groups of the table, and names of several words."""

    limits = BatchLimits(items=256, tokens=None)

    def __init__(self) -> None:
        self._table = word_table()

    def substitutes(self, requests: Sequence[SubstitutesRequest]) -> list[list[str]]:
        """Return up to k substitutes for each request: words of its tag, or names of its kind."""
        return [self._find_substitutes(request) for request in requests]

    def _find_substitutes(self, request: SubstitutesRequest) -> list[str]:
        """Return the substitutes for one request."""
        words = request.words
        if request.tag not in NAMES:
            tags = [request.tag]
            if request.tag in ("VBD", "VBN") and words.endswith("ed"):
                tags = ["VBD", "VBN"]  # the two pasts of most verbs are written alike
            return [] if " " in words else self._substitutes_of_part(words, tags, request.k)
        parts = split_name(words, self._table.kind, self._table.common_tag)
        # Types of a knowledge base say what a name is, where its words do not.
        likely = [kind for kind in map(_kind_of_type, request.types) if kind]
        lists = [
            self._substitutes_of_part(
                words[p.start : p.end], self._groups_of_part(p, likely, words), request.k
            )
            for p in parts
        ]
        # The n-th substitutes of all parts form the n-th substitute of the name.
        several = [_replace_parts(words, parts, row) for row in zip(*lists, strict=False)]
        return list(dict.fromkeys(several)) if parts else []

    def _groups_of_part(self, part: NamePart, likely: Sequence[str], words: str) -> Sequence[str]:
        """Return the groups of words that can replace a part of a name.

        If the kind of the part is not known, the types of the request decide; if they say nothing
        either, all names and nouns are allowed.
        """
        if part.group == PLACE:  # a country for a country, where the question does not ask for more
            place_kinds = [kind for kind in likely if kind in PLACES]
            return place_kinds or [self._table.kind_of_place(words[part.start : part.end])]
        if part.group in EXAMPLES or (part.group in self._table.groups and not likely):
            return [part.group]
        return likely or [*EXAMPLES, "NN"]

    def _substitutes_of_part(self, words: str, groups: Sequence[str], k: int) -> list[str]:
        """Return up to k substitutes for words, from some groups."""
        indices = [self._table.groups[group] for group in groups if group in self._table.groups]
        if not indices:
            return []
        texts = self._table.words
        # Lazy: of thousands of words, usually only a few are needed.
        ranked = (texts[i] for i in self._rank(words, np.sort(np.concatenate(indices))))
        result: list[str] = []
        for text in ranked:
            if len(result) == k:
                break
            if not _looks_akin(text, words):
                result.append(text)
        return result

    @abstractmethod
    def _rank(self, words: str, indices: Indices) -> Indices:
        """Return the indices of a group's words, best first."""

    def _balance_rarity(self, words: str, ranked: Indices) -> Indices:
        """Return ranked words of similar rarity first, alternately rarer and more frequent.

        They are balanced around a middle that is drawn near the rarity of the original. Around the
        original's own rarity, it could be recognised among its substitutes.
        """
        rng = _rng(words, "rarity")
        middle = self._table.rarity_of(words) + rng.normal(RARITY_SHIFT, RARITY_SPREAD)
        rarity = self._table.rarity[ranked] - middle
        near = np.abs(rarity) <= RARITY_WINDOW
        sides = [ranked[near & (rarity < 0)], ranked[near & (rarity >= 0)]]
        if rng.random() < 0.5:
            sides.reverse()
        paired = min(map(len, sides))
        # One of each side in turn, as long as both last.
        turns = np.stack([side[:paired] for side in sides], axis=1).ravel()
        remaining = np.setdiff1d(ranked, turns)
        nearest = np.argsort(np.abs(self._table.rarity[remaining] - middle), kind="stable")
        return np.concatenate([turns, remaining[nearest]])


class NearWords(_ListedWords):
    """The nearest words by cosine; two words above the cap are synonyms.

    If these were the words nearest to the word itself, it would be in the middle of its
    substitutes, and could be recognised. So one of its neighbours, the pivot, is drawn, and the
    words nearest to the pivot come first. The pivot is not a substitute. Of these words, those of
    similar rarity are used.
    """

    def __init__(self) -> None:
        super().__init__()
        self.name = f"embedding:1+{self._table.name}"

    def _rank(self, words: str, indices: Indices) -> Indices:
        vector = self._table.vector(words)
        if vector is None or not len(indices):
            return indices[:0]
        table = self._table
        is_contiguous = indices[-1] - indices[0] + 1 == len(
            indices
        )  # then a view of the table serves
        rows = (
            table.vectors[indices[0] : indices[-1] + 1] if is_contiguous else table.vectors[indices]
        )
        likeness = rows @ vector
        neighbour_count = min(MAX_NEIGHBOURS, len(likeness))
        # Ties are broken by the index, so that the order is the same on every machine.
        order = np.argpartition(-likeness, neighbour_count - 1)[:neighbour_count]
        order = order[np.lexsort((order, -likeness[order]))]
        near = indices[order[likeness[order] < SYNONYM_COSINE]][:MAX_NEAR_WORDS]
        # A small group has no neighbours to draw from.
        if len(near) < PIVOT_RANKS.stop:
            return near
        pivot = near[int(_rng(words, "pivot").integers(PIVOT_RANKS.start, PIVOT_RANKS.stop))]
        near = near[near != pivot]
        centre = table.vectors[pivot] + WORD_WEIGHT * vector
        ranked = near[np.argsort(-(table.vectors[near] @ centre), kind="stable")]
        return self._balance_rarity(words, ranked)


class DrawnWords(_ListedWords):
    """Words of one group of similar rarity, in an order that looks random.

    The order is the same for the same words.
    """

    def __init__(self) -> None:
        super().__init__()
        self.name = f"pos:1+{self._table.name}"

    def _rank(self, words: str, indices: Indices) -> Indices:
        return self._balance_rarity(words, _rng(words, "pos").permutation(indices))


def _rng(words: str, purpose: str) -> np.random.Generator:
    """Return a generator that only depends on the words and the purpose."""
    text = f"{purpose}\x1f{words}".encode("utf-8", "surrogatepass")
    digest = hashlib.blake2b(text, digest_size=8).digest()
    return np.random.default_rng(int.from_bytes(digest, "big"))


def _kind_of_type(name: str) -> str:
    """Return the kind of name that a type of a knowledge base means; empty for other types."""
    local = name.rpartition(":")[2].lower()
    if local in ("person", "agent"):
        return SURNAME
    # In types such as DBpedia:City only the last part counts.
    local = {"county": "state", "province": "state", "town": "city"}.get(local, local)
    if local in PLACES:
        return local
    return PLACE if local in ("place", "location", "gpe", "loc") else ""


def _replace_parts(words: str, parts: Sequence[NamePart], replacements: Sequence[str]) -> str:
    """Return words with their parts replaced."""
    text, end = "", 0
    for part, replacement in zip(parts, replacements, strict=True):
        original = words[part.start]
        first = replacement[0].upper() if original.isupper() else replacement[0].lower()
        text += words[end : part.start] + first + replacement[1:]
        end = part.end
    return text + words[end:]


def _looks_akin(first: str, second: str) -> bool:
    """Whether two words look like forms of one: most of the shorter is a common beginning."""
    first, second = first.lower(), second.lower()
    return Prefix.similarity(first, second) >= max(4, 0.7 * min(len(first), len(second)))
