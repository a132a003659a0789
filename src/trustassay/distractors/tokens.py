"""Words of an answer: their tags, what of them can be replaced, and when two answers say the same.

Tags are those of TextBlob's pattern tagger, a lexicon with rules of context (Brill's form); it
brings its data. Answers are compared by SQuAD's normalisation, and by containment of whole words.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, Literal, NamedTuple

Kind = Literal["entity", "date", "number", "word"]


@dataclass(frozen=True, slots=True)
class Distractor:
    """A whole answer in which one word or entity is replaced.

    source: ``dbpedia``, ``embedding``, ``pos``, ``number``, ``date``, ``pool``, ``llm``, or the
    name that another source was given.
    level: of the words that were replaced, 1 (they tell most) to 4.
    """

    text: str
    source: str
    level: int
    replaced: str
    replacement: str


@dataclass(frozen=True, slots=True)
class Slot:
    """Words of an answer that can be replaced, ``answer[start:end]``.

    level: 1 to 4. tag: part of speech (Penn Treebank) of a word, or of an entity's last one.
    types: of an entity in a knowledge base, as a linker told them.
    """

    text: str
    start: int
    end: int
    kind: Kind
    level: int
    tag: str = ""
    types: tuple[str, ...] = ()


_ARTICLES = frozenset(("a", "an", "the"))
SHORT = 200
"""Characters of a text that is kept with its normalisation; longer ones seldom come again."""


def words_of(text: str) -> tuple[str, ...]:
    """Return the words of a text as they are compared (:func:`normalised`)."""
    return tuple(normalised(text).split())


def normalised(text: str) -> str:
    """Return a text as it is compared: small letters, no signs, no articles, single spaces.

    As SQuAD's normalisation, except that letters are compared by their compatibility form (NFKC,
    case folded), that any punctuation or ASCII symbol parts words (``1997-1998`` is two), and that
    a text of nothing else is compared as it stands.
    """
    return _kept(text) if len(text) < SHORT else _normalised(text)


def _normalised(text: str) -> str:
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    words = text.translate(_SIGNS).split()
    found = " ".join(word for word in words if word not in _ARTICLES)
    return found or " ".join(text.split())


_kept = lru_cache(maxsize=65_536)(_normalised)


class _Signs(dict[int, str]):
    """Makes a space of each sign: punctuation of any script, and the symbols of ASCII."""

    def __missing__(self, code: int) -> str:
        sign = chr(code)
        kind = unicodedata.category(sign)[0]
        is_sign = kind == "P" or (kind == "S" and sign.isascii())
        return self.setdefault(code, " " if is_sign else sign)


_SIGNS = _Signs()


def contains(whole: str, part: str) -> bool:
    """Whether the words of ``part`` stand one after the other in ``whole``; both are normalised.

    No words are in no text.
    """
    return bool(part) and f" {part} " in f" {whole} "


def says_the_same(text: str, answer: str, aliases: Sequence[str] = ()) -> bool:
    """Whether ``text`` is the answer, or is right if an alias is.

    It is the answer if one contains the other by whole words. It is right if it equals an alias,
    stands in one, or holds one that the answer does not hold.
    """
    own, of_answer = normalised(text), normalised(answer)
    if own == of_answer or contains(own, of_answer) or contains(of_answer, own):
        return True
    for alias in map(normalised, aliases):
        if own == alias or contains(alias, own):
            return True
        if contains(own, alias) and not contains(of_answer, alias):
            return True
    return False


_TOKEN = re.compile(r"\d+(?:[.,:]\d+)*(?:st|nd|rd|th|s)?\b|[^\W_]+(?:['’.&][^\W_]+)*|[^\w\s]|_")

FUNCTION_TAGS = frozenset("CC DT EX IN LS MD PDT POS PRP PRP$ RP SYM TO UH WDT WP WP$ WRB".split())
FUNCTION_WORDS = frozenset(
    "a an the and or but nor not no yes of in on at by for from to into with as than that this "
    "these those there here it its he him his she her they them their we us our you your i me my "
    "who whom whose which what when where why how is are was were be been being am has have had "
    "having do does did doing will would shall should can could may might must also so such then "
    "s t just very more most some any each other own same both all only".split()
)
"""Words that carry no subject of their own."""


class Token(NamedTuple):
    """A word or sign ``text[start:end]`` and its Penn Treebank tag."""

    text: str
    start: int
    end: int
    tag: str

    @property
    def word(self) -> bool:
        """Whether it is a word or a number, and no sign."""
        return self.text[0].isalnum()

    @property
    def functional(self) -> bool:
        """Whether it only holds the sentence together."""
        return self.tag in FUNCTION_TAGS or self.text.lower() in FUNCTION_WORDS


def tagged(text: str) -> list[Token]:
    """Return the tokens of a text.

    A word in small letters that is known only as a name is tagged as one (``wisconsin``).
    """
    found = list(_TOKEN.finditer(text))
    if not found:
        return []
    parser, lexicon = _tagger()
    tags = [str(tag) for _, tag in parser.find_tags([match[0] for match in found])]
    return [
        Token(match[0], match.start(), match.end(), _name_tag(match[0], lexicon) or tag)
        for match, tag in zip(found, tags, strict=True)
    ]


def _name_tag(word: str, lexicon: Any) -> str | None:
    """Return the tag of a name that is known by its capital alone (``Chinese``, ``wisconsin``)."""
    tag = lexicon.get(word.capitalize())
    if tag is None or word.lower() in lexicon:
        return None
    if word.islower():
        return str(tag) if tag in ("NNP", "NNPS") else None
    return "NNP" if word == word.capitalize() and tag in ("JJ", "NN") else None


@cache
def _tagger() -> tuple[Any, Any]:
    from textblob.en import lexicon, parser

    len(lexicon)  # it is read when it is first asked for something
    return parser, lexicon


_WORD = re.compile(
    r"\b(who|whom|whose|when|where|why|how (?:many|much|long|old|often|far|tall)|how|which|what)\b"
)
_PERSONS = (
    "person author writer actor actress singer president king queen man woman player director"
).split()
_TYPES = ("city", "town", "country", "state", "county", "province")
_PLACES = "city town country state county province region continent island".split()


def asked_for(question: str) -> str:
    """Return the word by which a question asks: ``who``, ``when``, ``how many``, ..., else empty.

    With ``which`` and ``what`` goes the word after them (``what year``), which tells the kind.
    """
    text = question.lower()
    if not (match := _WORD.search(text)):
        return ""
    after = re.match(r"\s+([a-z]+)", text[match.end() :])
    if match[1] in ("which", "what") and after:
        return f"what {after[1]}"
    return "who" if match[1] in ("whom", "whose") else match[1]


def kind_asked_for(question: str) -> Kind | None:
    """Return the kind of words that answer a question, where its own word tells that."""
    word = asked_for(question)
    if word in ("when", "what year", "what date", "what day", "what decade", "what century"):
        return "date"
    if word in ("how many", "how much", "how long", "how old", "how often", "how far", "how tall"):
        return "number"
    return "entity" if word in ("who", "where") else None


def likely_types(question: str) -> tuple[str, ...]:
    """Return the type of the names that a question asks for.

    ``Person``, ``Place``, or of places ``Country``, ``State``, ``City``; none where it tells none.
    """
    word = asked_for(question)
    if word == "who" or word in (f"what {one}" for one in _PERSONS):
        return ("Person",)
    if word == "where":
        return ("Place",)
    place = next((one for one in _PLACES if word == f"what {one}"), "")
    return (place.capitalize() if place in _TYPES else "Place",) if place else ()
