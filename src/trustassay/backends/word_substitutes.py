"""``embedding`` and ``pos`` without a file: substitutes from one group of words, near or random.

Which words of a name are replaced, and by words of which group, depends on its parts.

Things of a kind that :mod:`~trustassay.backends.kinds` lists are replaced by others of that list.
For all others, TextBlob's lexicon gives the words and their tags. The vocabulary of the embedded
encoder, which is roughly in the order of frequency, says which of them are common, and its table of
word embeddings how near they are to each other. Nothing is downloaded, and nothing computed but
means and products.
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
from trustassay.backends.kinds import load_kinds
from trustassay.core.capabilities import BatchLimits, SubstitutesRequest, Vectors

GIVEN, SURNAME, PLACE, PEOPLE = "given name", "surname", "place", "people"
MAN, WOMAN = "man", "woman"
"""Given names by sex, groups within those of given names; ``woman`` is also a type of requests."""

_NAMES = tomllib.loads(files("trustassay.backends").joinpath("names.toml").read_text("utf-8"))
EXAMPLES: Mapping[str, Sequence[str]] = {k: v.split() for k, v in _NAMES["examples"].items()}
PLACES: Mapping[str, Sequence[str]] = {k: v.split() for k, v in _NAMES["places"].items()}
"""Kinds of places, with examples of each."""
KINGS, QUEENS = "kings", "queens"
_RULERS: Mapping[str, Sequence[str]] = {k: v.split() for k, v in _NAMES["rulers"].items()}
"""Given names that rulers and saints have."""
_RARE_SURNAMES = frozenset(_NAMES["surnames"]["rare"].split())
HALVES, _FRAGMENTS, _NOTORIOUS, TITLES = (
    frozenset(words.split()) for words in _NAMES["others"].values()
)
_UNUSED = HALVES | _FRAGMENTS | _NOTORIOUS
"""Words that replace no name: halves of names, short forms, particles, names of dictators."""

KIND_MARGIN = 0.06
"""By how much more a name must resemble the examples of its kind than those of any other kind."""
_PLACES = frozenset(word for words in PLACES.values() for word in words)
SUBSTITUTE_MARGIN = 0.1
"""The same margin for names of persons that are substitutes."""
SEX_MARGIN = 0.03
"""By how much more a given name must resemble those of one sex to be a substitute."""
COMMON_PERSON, COMMON_OTHER = 0.1, 0.15
"""The same margin for names that are also common words: of a person (``Mark``), of others."""
RARITY_PER_PIECE = 0.3
"""How much rarer a word counts for each further piece of the tokenizer, as a natural logarithm."""
_WOMEN_EXAMPLES = "Mary Susan Linda Anna Laura Julia Helen Karen Nancy Maria Emily Alice".split()
WORDS_PER_BLOCK = 4096
"""Words whose vectors are computed at once."""
NAMES = ("NNP", "NNPS")

Indices = NDArray[np.int64]


class WordTable:
    """Words with their unit vectors, in groups of words that can replace each other.

    Common words of several pieces are left out: the mean of their pieces says nothing of their
    meaning, and many of them are misspelt.

    words: the words, group after group.
    vectors: their unit vectors, shape (words, d).
    rarity: natural logarithm of the rank by frequency, roughly; the rarest are not ranked.
    groups: indices of the words by tag (``NN``), and of names by kind (``surname``), the most
        frequent first; and of the members of each list of kinds by its name.
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
        men = [name for name in EXAMPLES[GIVEN] if name not in _WOMEN_EXAMPLES]
        self._sex_centres = _compute_centres(pieces, rows, {MAN: men, WOMAN: _WOMEN_EXAMPLES})
        # 1. Choose the words, and sort them by frequency.
        usable = [text for text in self.lexicon if self._is_usable(text)]
        usable += sorted(_RARE_SURNAMES.difference(usable))
        encoded = self._tokenizer.encode_batch(usable, add_special_tokens=False)
        listed = sorted(
            (self._compute_rarity(encoding.ids), text, encoding.ids)
            for text, encoding in zip(usable, encoded, strict=True)
        )
        # 2. Find the group of each word.
        vectors = _mean_vectors(pieces, [ids for *_, ids in listed])
        sorted_in: dict[str, list[int]] = {}
        for index, (_, text, ids) in enumerate(listed):
            if group := self._find_group(text, ids, vectors[index]):
                sorted_in.setdefault(group, []).append(index)
        # A group stands in one piece, so that a product with its vectors copies nothing.
        order = [index for indices in sorted_in.values() for index in indices]
        # 3. Sort the table by groups; the lists of kinds follow.
        members = {**load_kinds().members, **_RULERS}
        encoded = self._tokenizer.encode_batch(
            [member for names in members.values() for member in names], add_special_tokens=False
        )
        ids_of_members = [encoding.ids for encoding in encoded]
        self.words = (
            *(listed[index][1] for index in order),
            *(member for names in members.values() for member in names),
        )
        self.rarity: Vectors = np.array(
            [listed[index][0] for index in order] + list(map(self._compute_rarity, ids_of_members)),
            dtype=np.float32,
        )
        self.vectors: Vectors = np.concatenate(
            [vectors[order], _mean_vectors(pieces, ids_of_members)]
        )
        ends = np.cumsum([0, *map(len, sorted_in.values()), *map(len, members.values())])
        self.groups: dict[str, Indices] = {
            name: np.arange(start, end, dtype=np.int64)
            for name, start, end in zip([*sorted_in, *members], ends, ends[1:], strict=False)
        }
        self.groups[PLACE] = np.concatenate([self.groups[name] for name in PLACES])
        # 4. Divide given names into those of men and of women.
        given_names = self.groups[GIVEN]
        of_man, of_woman = self._sex_centres @ self.vectors[given_names].T
        clearly = np.abs(of_woman - of_man) >= SEX_MARGIN
        self.groups |= {
            MAN: given_names[clearly & (of_man > of_woman)],
            WOMAN: given_names[clearly & (of_woman > of_man)],
        }

    def _find_group(self, text: str, ids: Sequence[int], vector: Vectors) -> str:
        """Return the group of a word of the lexicon; empty if it is to replace none."""
        if text.islower():
            return self._first_tag(text) if len(ids) == 1 else ""
        group = self._find_kind(vector, KIND_MARGIN)
        # The lists of kinds have places.
        if group == PLACE:
            return ""
        # The pieces of rare names tell no kind.
        if len(ids) > 1:
            return SURNAME if text in _RARE_SURNAMES else ""
        is_doubtful = group in (GIVEN, SURNAME)
        return self._find_kind(vector, SUBSTITUTE_MARGIN) if is_doubtful else group

    def is_woman(self, name: str) -> bool:
        """Whether a given name resembles those of women more than those of men.

        A rare name, and what is no given name, as ``Kobe``, which is a city's, counts as a woman's
        if it ends as most of those do.
        """
        vector = self.vector(name)
        is_known = len(self._tokenise(name)) == 1
        if vector is None or not is_known or self._find_kind(vector, KIND_MARGIN) != GIVEN:
            return name.endswith("a")
        of_man, of_woman = self._sex_centres @ vector
        return bool(of_woman > of_man)

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
        if vector is None:
            return PLACE
        return tuple(PLACES)[int((self._place_centres @ vector).argmax())]

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
        is_common = text.lower() in self.lexicon or text.lower() in _UNUSED
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
_EPITHET = re.compile(r" (?:of|the) ")
_REGNAL_NAME = re.compile(r" (?:[IVX]+|the [A-Z]\w+)\b")
"""What follows a ruler's name: his number, or how he is called."""
_REGNAL_TITLES = frozenset(
    "king queen prince princess emperor empress pope saint st tsar duke duchess archduke".split()
)
"""Titles before a given name alone."""
_FEMALE_TITLES = frozenset("queen princess empress duchess".split())
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
    first_word, epithet = words.partition(" ")[0], _EPITHET.search(words)
    is_of_person = first_word.lower() in TITLES or kind_of(first_word) == GIVEN
    if is_of_person and epithet:  # Duke Ernest of Saxony stays of Saxony
        matches = [match for match in matches if match.start() < epithet.start()]
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
MAX_NEAR_WORDS = 100
"""Of these, the words that substitutes are taken from."""
_PLURALS = {"stomach": "stomachs", "fish": "fish", "sheep": "sheep", "deer": "deer"}
MAX_OF_LIST = 16
"""Substitutes that are taken from a list of kinds, the most alike."""
SYNONYM_COSINE = 0.9
"""Cosine from which on two names count as one."""
COMMON_SYNONYM_COSINE = 0.57
"""The same for common words: 0.57 to 0.75 for ``walked`` and ``strolled``, ``big`` and ``large``,
``purchase`` and ``buy``; below it are, for example, ``red`` and ``blue``."""

WORD_WEIGHT = 0.5
"""Weight of the nearness to the word, in addition to the nearness to the pivot."""
PIVOT_RANKS = range(2, 12)
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
        is_same = load_kinds().is_same
        return [
            [text for text in self._find_substitutes(request) if not is_same(request.words, text)]
            for request in requests
        ]

    def _find_substitutes(self, request: SubstitutesRequest) -> list[str]:
        """Return the substitutes for one request."""
        words = request.words
        if result := self._substitutes_of_kind(request):
            return result
        if request.tag not in NAMES:
            tags = [request.tag]
            if request.tag in ("VBD", "VBN") and words.endswith("ed"):
                tags = ["VBD", "VBN"]  # the two pasts of most verbs are written alike
            return [] if " " in words else self._substitutes_of_part(words, tags, request.k)
        parts = split_name(words, self._table.kind, self._table.common_tag)
        # Types of a knowledge base say what a name is, where its words do not.
        likely = [kind for kind in map(_kind_of_type, request.types) if kind]
        if PLACE in likely and len(parts) > 1 and all(p.group == UNKNOWN for p in parts):
            parts = [NamePart(parts[0].start, parts[-1].end, UNKNOWN)]  # a place is one thing
        # The first of a person's given names decides for all.
        first_name = next((words[p.start : p.end] for p in parts if p.group != SURNAME), "")
        is_woman = "Woman" in request.types or self._table.is_woman(first_name)
        lists = [
            self._substitutes_of_part(
                words[p.start : p.end], self._groups_of_part(p, likely, words, is_woman), request.k
            )
            for p in parts
        ]
        # The n-th substitutes of all parts form the n-th substitute of the name.
        several = [_replace_parts(words, parts, row) for row in zip(*lists, strict=False)]
        return list(dict.fromkeys(several)) if parts else []

    def _substitutes_of_kind(self, request: SubstitutesRequest) -> list[str]:  # noqa: ARG002
        """Return other things of the kind that a list has; none unless the source reads lists."""
        return []

    def _groups_of_part(
        self, part: NamePart, likely: Sequence[str], words: str, is_woman: bool
    ) -> Sequence[str]:
        """Return the groups of words that can replace a part of a name.

        If the kind of the part is not known, the types of the request decide; if they say nothing
        either, all names and nouns are allowed.
        """
        if part.group == PLACE:  # a country for a country, where the question does not ask for more
            place_kinds = [kind for kind in likely if kind in PLACES]
            return place_kinds or [self._table.kind_of_place(words[part.start : part.end])]
        is_first_of_several = part.start == 0 and part.end < len(words)
        if likely == [SURNAME] and part.group == UNKNOWN and is_first_of_several:
            part = part._replace(group=GIVEN)
        title = words.partition(" ")[0].lower()
        is_regnal = title in _REGNAL_TITLES and part.group in (GIVEN, SURNAME, UNKNOWN)
        if part.group == GIVEN or is_regnal:
            is_woman = title in _FEMALE_TITLES if is_regnal else is_woman
            if is_regnal or _REGNAL_NAME.search(words):
                return [QUEENS if is_woman else KINGS]
            return [WOMAN if is_woman else MAN]
        # What the question asks for tells more than an uncertain kind.
        if likely and part.group in ("other", UNKNOWN):
            return ["city"] if PLACE in likely else likely
        is_known = part.group in EXAMPLES or (part.group in self._table.groups and not likely)
        return [part.group] if is_known else likely or [*EXAMPLES, "NN"]

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
        original's own rarity, it could be recognised among its substitutes. All others follow as
        they are ranked: sorted by rarity, those that are equally rare would be in the order of the
        table, which is that of the alphabet.
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
        return np.concatenate([turns, ranked[~np.isin(ranked, turns)]])


class NearWords(_ListedWords):
    """The nearest words by cosine; two words above the cap are synonyms.

    If these were the words nearest to the word itself, it would be in the middle of its
    substitutes, and could be recognised. So one of its neighbours, the pivot, is drawn, and the
    words nearest to the pivot come first. The pivot is not a substitute. Of these words, those of
    similar rarity are used.
    """

    def __init__(self) -> None:
        super().__init__()
        self.name = f"embedding:2+{self._table.name}"

    def _substitutes_of_kind(self, request: SubstitutesRequest) -> list[str]:
        """Return other members of the list of the words' kind; none if no list has it."""
        from textblob.en.inflect import pluralize, singularize  # takes a second

        words, k = request.words, min(request.k, MAX_OF_LIST)
        is_plural = request.tag == "NNS"
        kinds = load_kinds()
        name = kinds.find(singularize(words) if is_plural else words, request.types)
        # "Golden Eagle" is a bird, and no name.
        member, list_of_member = kinds.find_member(words, request.types)
        is_name = request.tag in NAMES and not member
        # A common noun takes the place of no name, nor a name that of a common noun.
        if not name or kinds.is_of_names(name) != is_name:
            return []
        if is_plural and kinds.section_of[name] == "stuff":
            return []
        # A name that is clearly a person's is no member of what the question asks for.
        if not kinds.lists_of.get(words.lower()) and self._is_person(request):
            return []
        indices = self._table.groups[name]
        near = self._order_near(words, indices, SYNONYM_COSINE)
        result = [self._table.words[i] for i in near]
        if is_plural:
            result = [pluralize(text, custom=_PLURALS) for text in result]
        if member and name == list_of_member:  # a professional baseball player, a tennis player
            is_title = member[0].isupper()
            result = [
                words.replace(member, text.title() if is_title else text)
                for text in result
                if text != member.lower()
            ]
        same = (words.lower(), words.lower().removeprefix("the "))
        return [text for text in result if text.lower() not in same][:k]

    def _is_person(self, request: SubstitutesRequest) -> bool:
        """Whether a name is that of a person, by its parts."""
        if request.tag not in NAMES:
            return False
        parts = split_name(request.words, self._table.kind, self._table.common_tag)
        return len(parts) > 1 and parts[0].group == GIVEN and parts[-1].group == SURNAME

    def _rank(self, words: str, indices: Indices) -> Indices:
        is_common = bool(len(indices)) and self._table.words[indices[0]].islower()
        cap = COMMON_SYNONYM_COSINE if is_common else SYNONYM_COSINE
        return self._balance_rarity(words, self._order_near(words, indices, cap))

    def _order_near(self, words: str, indices: Indices, cap: float) -> Indices:
        """Return the indices of near words in the order of likeness to the pivot and the words.

        Words whose cosine is ``cap`` or more are left out.
        """
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
        near = indices[order[likeness[order] < cap]][:MAX_NEAR_WORDS]
        # A small group has no neighbours to draw from.
        if len(near) < PIVOT_RANKS.stop:
            return near
        pivot = near[int(_rng(words, "pivot").integers(PIVOT_RANKS.start, PIVOT_RANKS.stop))]
        near = near[near != pivot]
        centre = table.vectors[pivot] + WORD_WEIGHT * vector
        ranked: Indices = near[np.argsort(-(table.vectors[near] @ centre), kind="stable")]
        return ranked


class DrawnWords(_ListedWords):
    """Words of one group of similar rarity, in an order that looks random.

    The order is the same for the same words.
    """

    def __init__(self) -> None:
        super().__init__()
        self.name = f"pos:2+{self._table.name}"

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
