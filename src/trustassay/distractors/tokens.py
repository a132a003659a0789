"""Words, dates and numbers of an answer: their tags, neighbours of dates and numbers, and when two
answers say the same.

Tags are those of TextBlob's pattern tagger, a lexicon with rules of context (Brill's form); it
brings its data. Answers are compared by SQuAD's normalisation, and by containment of whole words.
"""

import calendar
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np

from trustassay.text.patterns import read_patterns

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
    return _normalised(text) if len(text) < SHORT else _normalised.__wrapped__(text)


@lru_cache(maxsize=65_536)
def _normalised(text: str) -> str:
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    words = text.translate(_SIGNS).split()
    message = " ".join(word for word in words if word not in _ARTICLES)
    return message or " ".join(text.split())


class _Signs(dict[int, str]):
    """Makes a space of each sign: punctuation of any script, and the symbols of ASCII."""

    def __missing__(self, code: int) -> str:
        sign = chr(code)
        kind = unicodedata.category(sign)[0]
        is_sign = kind == "P" or (kind == "S" and sign.isascii())
        return self.setdefault(code, " " if is_sign else sign)


_SIGNS = _Signs()


def contains(text: str, part: str) -> bool:
    """Whether the words of ``part`` stand one after the other in ``whole``; both are normalised.

    No words are in no text.
    """
    return bool(part) and f" {part} " in f" {text} "


def says_the_same(text: str, answer: str, aliases: Sequence[str] = ()) -> bool:
    """Whether ``text`` is the answer, or is right if an alias is.

    It is the answer if one contains the other by whole words. It is right if it equals an alias,
    stands in one, or holds one that the answer does not hold.
    """
    candidate, of_answer = normalised(text), normalised(answer)
    if candidate == of_answer or contains(candidate, of_answer) or contains(of_answer, candidate):
        return True
    for alias in map(normalised, aliases):
        if candidate == alias or contains(alias, candidate):
            return True
        if contains(candidate, alias) and not contains(of_answer, alias):
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
    result = list(_TOKEN.finditer(text))
    if not result:
        return []
    parser, lexicon = _tagger()
    tags = [str(tag) for _, tag in parser.find_tags([match[0] for match in result])]
    return [
        Token(match[0], match.start(), match.end(), _name_tag(match[0], lexicon) or tag)
        for match, tag in zip(result, tags, strict=True)
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


_QUESTION_WORD = re.compile(
    r"\b(who|whom|whose|when|where|why|how (?:many|much|long|old|often|far|tall)|how|which|what)\b"
)
_PERSON_NOUNS = (
    "person author writer actor actress singer president king queen man woman player director"
).split()
_PLACE_TYPES = ("city", "town", "country", "state", "county", "province")
_PLACE_NOUNS = "city town country state county province region continent island".split()


def asked_for(question: str) -> str:
    """Return the word by which a question asks: ``who``, ``when``, ``how many``, ..., else empty.

    With ``which`` and ``what`` goes the word after them (``what year``), which tells the kind.
    """
    text = question.lower()
    if not (match := _QUESTION_WORD.search(text)):
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
    if word == "who" or word in (f"what {noun}" for noun in _PERSON_NOUNS):
        return ("Person",)
    if word == "where":
        return ("Place",)
    place = word.removeprefix("what ")
    is_place = place != word and place in _PLACE_NOUNS
    return (place.capitalize() if place in _PLACE_TYPES else "Place",) if is_place else ()


MAX_YEARS_APART = 20
"""A year is varied by so many at most."""
LATEST_KNOWN_YEAR = 2025
"""Where a date is not in the future, its neighbours are not either."""

_MONTHS = list(calendar.month_name)[1:]
_SHORT_MONTHS = [*(name[:3] for name in _MONTHS), "Sept"]
_PARTIAL_PATTERNS = ("month", "day", "year")
_DATE_FORMS = [
    re.compile(pattern, re.IGNORECASE)
    for name, pattern in read_patterns("dates.toml", __package__).items()
    if name not in _PARTIAL_PATTERNS
]


def date_slots(text: str) -> list[Slot]:
    """Return the dates of a text, the longest form that fits each."""
    slots: list[Slot] = []
    for form in _DATE_FORMS:
        for match in form.finditer(text):
            if not any(match.start() < s.end and s.start < match.end() for s in slots):
                slots.append(Slot(match[0], match.start(), match.end(), "date", 1, "CD"))
    return sorted(slots, key=lambda slot: slot.start)


def date_neighbours(text: str, n: int, rng: np.random.Generator) -> list[str]:
    """Return up to n other dates, written as ``text`` is, with one field changed.

    In random order, first those of another year (by at most 20), then of another month, then of
    another day: where all differ in one field, the original is not in their middle. Empty where
    ``text`` is no date, or one that does not exist.
    """
    for form in _DATE_FORMS:
        if match := form.fullmatch(text):
            result: list[str] = []
            for alternatives in _vary_fields(match):
                remaining = [date for date in alternatives if date != text]
                result += [remaining[i] for i in rng.permutation(len(remaining))]
            return result[:n]
    return []


def _vary_fields(match: re.Match[str]) -> list[list[str]]:
    """Return other dates, a list for each field that is varied."""
    fields = {name: value for name, value in match.groupdict().items() if value}
    if "weekday" in fields:
        return [[_copy_case(name, fields["weekday"]) for name in calendar.day_name]]
    if "decade" in fields:
        decade = int(fields["decade"])
        near = range(max(1000, decade - 50), _find_latest_year(decade) + 1, 10)
        return [
            [_replace_field(match, "decade", str(other)) for other in near if other <= decade + 50]
        ]
    if "until" in fields:
        return [_vary_span(match, int(fields["year"]), fields["until"])]
    month = _read_month(fields["month"]) if "month" in fields else None
    year = int(fields["year"]) if "year" in fields else None
    day = int(fields["day"]) if "day" in fields else None
    if not _exists(year, month, day):
        return []
    years = _near_years(year) if year is not None else []
    months = [n for n in range(1, 13) if month is not None and _exists(year, n, day)]
    days = range(1, 32) if day is not None else []
    return [
        [
            _replace_field(match, "year", str(other))
            for other in years
            if _exists(other, month, day)
        ],
        [_replace_field(match, "month", _write_month(other, fields["month"])) for other in months],
        [_replace_day(match, other) for other in days if _exists(year, month, other)],
    ]


def _near_years(year: int) -> range:
    return range(
        max(1000, year - MAX_YEARS_APART), min(year + MAX_YEARS_APART, _find_latest_year(year)) + 1
    )


def _find_latest_year(year: int) -> int:
    """Return the latest year that is plausible beside another: the future beside the future."""
    return LATEST_KNOWN_YEAR if year <= LATEST_KNOWN_YEAR else 2099


def _vary_span(match: re.Match[str], first: int, until: str) -> list[str]:
    """Return spans of years of the same length that begin up to 20 years earlier or later."""
    last = int(until) if len(until) == 4 else first // 100 * 100 + int(until)
    if len(until) == 2 and last < first:
        last += 100
    if last < first:
        return []
    ends = ((other, str(other + last - first)) for other in _near_years(first))
    cut = 0 if len(until) == 4 else -2
    return [f"{other}{match['dash']}{end[cut:]}" for other, end in ends]


def _exists(year: int | None, month: int | None, day: int | None) -> bool:
    if month is None or day is None:
        return True
    return day <= calendar.monthrange(2000 if year is None else year, month)[1]


def _read_month(month: str) -> int:
    short = [name[:3].lower() for name in _MONTHS]
    return int(month) if month.isdecimal() else short.index(month[:3].lower()) + 1


def _write_month(number: int, like: str) -> str:
    """Return a month written like another: in digits, short, or in full; in its case."""
    if like.isdecimal():
        return f"{number:02d}"
    full = _MONTHS[number - 1]
    short = like.lower() != "may" and like.lower() in [name.lower() for name in _SHORT_MONTHS]
    return _copy_case(full[:3] if short else full, like)


def _copy_case(text: str, like: str) -> str:
    if like.islower():
        return text.lower()
    return text.upper() if like.isupper() else text


def _replace_field(match: re.Match[str], field: str, value: str, longer: int = 0) -> str:
    """Return a date with another value in a field, and in so many characters behind it."""
    start, end = match.start(field) - match.start(), match.end(field) - match.start()
    return match[0][:start] + value + match[0][end + longer :]


def _replace_day(match: re.Match[str], day: int) -> str:
    old = match["day"]
    text = f"{day:0{len(old)}d}" if old[0] == "0" or match[0][:4].isdecimal() else str(day)
    suffix = match.groupdict().get("suffix") or ""
    if suffix:
        text += _ordinal_suffix(day)
    return _replace_field(match, "day", text, len(suffix))


_DIGITS = re.compile(
    r"(?<![\w.,:/-])[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?(?![\w-])"
    r"|(?<![\w.,:/-])[0-9]+(?:\.[0-9]+)?(?:st|nd|rd|th)?(?![\w-])"
)
_MAX_DIGITS = 18
"""Longer numbers are marks rather than amounts, and do not fit a random integer."""
_UNITS = "zero one two three four five six seven eight nine ten eleven twelve".split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_ORDINALS = (
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth".split()
)
_SCALES = "hundred thousand million billion trillion".split()
_SERIES = (_UNITS[1:], _TENS, _ORDINALS, _SCALES)
_NUMBER_WORD = re.compile(
    rf"\b(?:{'|'.join(one for series in _SERIES for one in series)})\b", re.IGNORECASE
)


def number_slots(text: str) -> list[Slot]:
    """Return the numbers of a text, in digits or as a word."""
    spans = [*_DIGITS.finditer(text), *_NUMBER_WORD.finditer(text)]
    slots = [Slot(match[0], match.start(), match.end(), "number", 2, "CD") for match in spans]
    return sorted(slots, key=lambda slot: slot.start)


def number_neighbours(text: str, n: int, rng: np.random.Generator) -> list[str]:
    """Return up to n other numbers, written as ``text`` is, in random order.

    Of the same number of digits and of similar size (between half and twice as much, and at least
    10 others where the digits allow that); decimals, separators and ordinals are kept. None of
    a number of more than 18 digits.
    """
    for series in _SERIES:
        if text.lower() in series:
            other_words = [candidate for candidate in series if candidate != text.lower()]
            words = [other_words[i] for i in rng.permutation(len(other_words))[:n]]
            return [
                candidate.capitalize() if text[:1].isupper() else candidate for candidate in words
            ]
    if not _DIGITS.fullmatch(text):
        return []
    body = re.sub(r"(st|nd|rd|th)$", "", text)
    ordinal = body != text
    integer, _, decimals = body.replace(",", "").partition(".")
    if len(integer + decimals) > _MAX_DIGITS or (integer[0] == "0" and len(integer) > 1):
        return []
    scale = 10 ** len(decimals)
    value = int(integer) * scale + int(decimals or 0)
    lowest = 0 if decimals or value == 0 else 1
    lowest = 10 ** (len(integer) - 1) * scale if len(integer) > 1 else lowest
    least = max(lowest, min(value // 2, value - 10))
    most = min(10 ** len(integer) * scale - 1, max(2 * value, value + 10))
    size = most - least + 1
    step = _find_round_step(value, decimals)
    places = rng.permutation(size) if size <= 10_000 else rng.integers(0, size, 8 * n)
    values = [least + int(place) for place in places]
    if step > 1:  # a round number has round neighbours
        values = [candidate // step * step for candidate in values]
    chosen = [
        candidate
        for candidate in dict.fromkeys(values)
        if candidate != value and least <= candidate <= most
    ][:n]
    return [
        _write_number(candidate, scale, len(decimals), "," in text, ordinal) for candidate in chosen
    ]


def _find_round_step(value: int, decimals: str) -> int:
    """Return the power of ten that a number of at least three digits is rounded to."""
    if decimals or value < 100:
        return 1
    step = 1
    while value % (step * 10) == 0 and step * 100 <= value:
        step *= 10
    return step


def _write_number(value: int, scale: int, decimals: int, grouped: bool, ordinal: bool) -> str:
    integer, part = divmod(value, scale)
    text = f"{integer:,}" if grouped else str(integer)
    if decimals:
        text += f".{part:0{decimals}d}"
    return text + _ordinal_suffix(integer) if ordinal else text


def _ordinal_suffix(value: int) -> str:
    if value % 100 in (11, 12, 13):
        return "th"
    return {1: "st", 2: "nd", 3: "rd"}.get(value % 10, "th")
