"""Words, dates and numbers of an answer: tags, neighbours of dates and numbers, and equal answers.

Tags are those of TextBlob's pattern tagger: a lexicon with rules of context (Brill's form), whose
data are part of the package. Answers are compared by SQuAD's normalisation, and by containment of
whole words.
"""

import calendar
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np

from trustassay.text.quantities import read_values, read_values_of_words

Kind = Literal["entity", "date", "number", "word"]


@dataclass(frozen=True, slots=True)
class Distractor:
    """A whole answer in which one word or entity is replaced."""

    text: str
    """The wrong answer."""
    source: str
    """``dbpedia``, ``embedding``, ``pos``, ``number``, ``date``, ``pool``, ``llm``, or the name of
    another source."""
    level: int
    """Of the words that were replaced, from 1 (they tell most) to 4."""
    replaced: str
    """The words that were replaced."""
    replacement: str
    """The words in their place."""


@dataclass(frozen=True, slots=True)
class Slot:
    """Words of an answer that can be replaced, ``answer[start:end]``."""

    text: str
    """The words."""
    start: int
    """Their first character."""
    end: int
    """The character after them."""
    kind: Kind
    """What they are."""
    level: int
    """How much they tell, from 1 (most) to 4."""
    tag: str = ""
    """Part of speech (Penn Treebank) of a word, or of an entity's last word."""
    types: tuple[str, ...] = ()
    """Of an entity in a knowledge base, from a linker."""


_ARTICLES = frozenset(("a", "an", "the"))
MAX_CACHED_CHARS = 200
"""Characters up to which the normalisation of a text is cached; longer texts rarely recur."""
MAX_NUMBER_CHARS = 60
"""Characters up to which a text is read as a number in words."""


def split_words(text: str) -> tuple[str, ...]:
    """Return the words of a text in the form in which they are compared (:func:`normalise`)."""
    return tuple(normalise(text).split())


def normalise(text: str) -> str:
    """Return a text in the form in which it is compared: small letters, no signs, no articles.

    As SQuAD's normalisation, except that letters are compared in their compatibility form (NFKC,
    case folded), that punctuation and ASCII symbols separate words (``1997-1998`` is two), and that
    a text of nothing else is compared as it stands.
    """
    # `__wrapped__` bypasses the cache, which long texts would fill without being met again.
    return (
        _normalise_cached(text)
        if len(text) < MAX_CACHED_CHARS
        else _normalise_cached.__wrapped__(text)
    )


@lru_cache(maxsize=65_536)
def _normalise_cached(text: str) -> str:
    # Twice: folding the case of some letters gives a text that is no longer in normal form.
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    words = text.translate(_SIGNS).split()
    message = " ".join(word for word in words if word not in _ARTICLES)
    return message or " ".join(text.split())


class _Signs(dict[int, str]):
    """Translates each sign to a space: punctuation of any script, and the symbols of ASCII.

    It is a mapping for ``str.translate`` that fills itself as characters occur.
    """

    def __missing__(self, code: int) -> str:
        sign = chr(code)
        kind = unicodedata.category(sign)[0]
        is_sign = kind == "P" or (kind == "S" and sign.isascii())
        return self.setdefault(code, " " if is_sign else sign)


_SIGNS = _Signs()


def contains_words(text: str, part: str) -> bool:
    """Whether the words of ``part`` occur one after the other in ``text``; both are normalised.

    A part without words occurs in no text.
    """
    return bool(part) and f" {part} " in f" {text} "


def is_same_answer(text: str, answer: str, aliases: Sequence[str] = ()) -> bool:
    """Whether ``text`` is the answer, or is right if an alias is.

    It is the answer if one contains the other by whole words, or both are the same number. It is
    right if it equals an alias, is part of one, or contains one that the answer does not contain.
    """
    if any(is_same_number(text, other) for other in (answer, *aliases)):
        return True
    candidate, of_answer = normalise(text), normalise(answer)
    if (
        candidate == of_answer
        or contains_words(candidate, of_answer)
        or contains_words(of_answer, candidate)
    ):
        return True
    for alias in map(normalise, aliases):
        if candidate == alias or contains_words(alias, candidate):
            return True
        # An alias that the answer contains too is the shared frame, not the replaced part.
        if contains_words(candidate, alias) and not contains_words(of_answer, alias):
            return True
    return False


def is_same_number(text: str, other: str) -> bool:
    """Whether two texts are one number, in digits or in words: ``12``, ``twelve``, ``a dozen``."""
    if len(text) > MAX_NUMBER_CHARS or len(other) > MAX_NUMBER_CHARS:
        return False
    value = _read_number(text)
    return value is not None and value == _read_number(other)


@lru_cache(maxsize=8192)
def _read_number(text: str) -> float | None:
    """Return the number that a text is, ``None`` if it is anything else or more than one number."""
    folded = re.sub(r"^(?:an?|the)\s+", "", text.strip().rstrip(".").lower())
    values = read_values(folded)
    if len(values) == 1 and values[0].kind == "number":
        is_whole_text = values[0].start == 0 and values[0].end == len(folded)
        return values[0].numbers[0] if is_whole_text else None
    return next(read_values_of_words(folded), None) if folded.isalpha() else None


# Numbers with separators and endings ("1,000", "12:30", "21st", "1990s"), words with inner signs
# ("O'Neill", "AT&T"), and single signs.
_TOKEN = re.compile(
    r"\d+(?:[.,:]\d+)*(?:st|nd|rd|th|s)?\b|[^\W_]+(?:['’.&](?!s\b)[^\W_]+)*|[^\w\s]|_"
)

FUNCTION_TAGS = frozenset("CC DT EX IN LS MD PDT POS PRP PRP$ RP SYM TO UH WDT WP WP$ WRB".split())
FUNCTION_WORDS = frozenset(
    "a an the and or but nor not no yes of in on at by for from to into with as than that this "
    "these those there here it its he him his she her they them their we us our you your i me my "
    "who whom whose which what when where why how is are was were be been being am has have had "
    "having do does did doing will would shall should can could may might must also so such then "
    "s t just very more most some any each other own same both all only".split()
)
"""Words without a subject of their own."""


class TaggedToken(NamedTuple):
    """A word or sign ``text[start:end]`` and its Penn Treebank tag."""

    text: str
    """The word or sign."""
    start: int
    """Its first character."""
    end: int
    """The character after it."""
    tag: str
    """Its Penn Treebank tag."""

    @property
    def is_word(self) -> bool:
        """Whether it is a word or a number, and not a sign."""
        return self.text[0].isalnum()

    @property
    def is_functional(self) -> bool:
        """Whether it only holds the sentence together."""
        return self.tag in FUNCTION_TAGS or self.text.lower() in FUNCTION_WORDS


def tag_words(text: str) -> list[TaggedToken]:
    """Return the tokens of a text.

    A word in small letters that the lexicon only has as a name is tagged as one (``wisconsin``).
    """
    result = list(_TOKEN.finditer(text))
    if not result:
        return []
    # All tokens in one call, since the tags depend on the neighbours.
    parser, lexicon = _load_tagger()
    tags = [str(tag) for _, tag in parser.find_tags([match[0] for match in result])]
    return [
        TaggedToken(match[0], match.start(), match.end(), _find_name_tag(match[0], lexicon) or tag)
        for match, tag in zip(result, tags, strict=True)
    ]


def _find_name_tag(word: str, lexicon: Any) -> str | None:
    """Return the tag of a name that only its capital shows (``Chinese``, ``wisconsin``), or
    ``None``."""
    tag = lexicon.get(word.capitalize())
    if tag is None or word.lower() in lexicon:
        return None
    if word.islower():
        return str(tag) if tag in ("NNP", "NNPS") else None
    return "NNP" if word == word.capitalize() and tag in ("JJ", "NN") else None


@cache
def _load_tagger() -> tuple[Any, Any]:
    """Return TextBlob's parser and lexicon, loaded on first use."""
    from textblob.en import lexicon, parser

    len(lexicon)  # loads it: TextBlob reads its data on first use
    return parser, lexicon


# The longer forms first: "how many" must not be read as "how".
_QUESTION_WORD = re.compile(
    r"\b(who|whom|whose|when|where|why|how (?:many|much|long|old|often|far|tall)|how|which|what)\b"
)
_PERSON_NOUNS = frozenset(
    "person author writer poet novelist playwright screenwriter journalist actor actress singer "
    "musician composer artist painter director producer comedian president leader king queen "
    "emperor monarch ruler prince princess man woman boy girl player driver jockey athlete golfer "
    "boxer winner coach manager scientist inventor physicist philosopher explorer politician "
    "figure senator governor judge officer general character husband wife father mother son "
    "daughter brother sister founder owner designer architect host presenter captain".split()
)
_FEMALE_NOUNS = frozenset(
    "actress woman girl wife mother daughter sister aunt girlfriend heroine female".split()
)
_PLACE_NOUNS = frozenset(
    "place location area region land territory city town village capital country nation state "
    "county province continent island district suburb hometown birthplace".split()
)
_VAGUE_PLACE_NOUNS = ("place", "location", "area", "region", "land", "territory", "district")
_DATE_NOUNS = frozenset("year years date day decade century time".split())
_NUMBER_NOUNS = frozenset(
    "number population percentage percent age height length distance amount price temperature "
    "score size weight speed".split()
)


def find_question_word(question: str) -> str:
    """Return the word by which a question asks: ``who``, ``when``, ``how many``, ...; otherwise
    empty.

    For ``which`` and ``what`` it includes the next word (``what year``), which tells the kind.
    """
    text = question.lower()
    matches = list(_QUESTION_WORD.finditer(text))
    if not matches:
        return ""
    # "An actor who played what": within a question, "who" mostly begins a relative clause.
    starts = [match for match in matches[:1] if len(text[: match.start()].split()) < 2]
    choices = [match for match in matches if match[1].startswith(("what", "which", "how "))]
    match = next(iter([*starts, *choices]), matches[-1])
    next_word = re.match(r"\s+([a-z]+)", text[match.end() :])
    if match[1] in ("which", "what") and next_word:
        return f"what {next_word[1]}"
    return "who" if match[1] in ("whom", "whose") else match[1]


_ASKS_FOR_NOUN = re.compile(
    r"\b(?:which|what)(?:'s)?\s+(?:(?:is|was|are|were|'s)\s+(?:the|a|an|his|her|its|their)?\s*)?"
    r"(?:(?:name|names|kind|kinds|type|types|sort)\s+(?:of|for)\s+(?:the|a|an)?\s*)?",
    re.IGNORECASE,
)
_NOUN_PHRASE_TAGS = ("NN", "JJ", "VBG", "VBN", "CD", "POS")
_MAX_NOUN_PHRASE_WORDS = 6


@lru_cache(maxsize=8192)
def find_noun_asked_for(question: str) -> tuple[str, ...]:
    """Return the noun by which ``which`` or ``what`` asks, in small letters and in the singular.

    ``which South American city`` asks for a ``city``, ``what is the name of the strait`` for a
    ``strait``. A noun before it gives a more specific one, which comes first:
    ``("concentration camp", "camp")``. Empty if the question does not ask so.
    """
    if not (match := _ASKS_FOR_NOUN.search(question)):
        return ()
    # The question as a whole is tagged, since tags depend on the words around.
    phrase: list[TaggedToken] = []
    for token in tag_words(question):
        if token.start < match.end():
            continue
        belongs = token.tag.startswith(_NOUN_PHRASE_TAGS) and not token.is_functional
        belongs = belongs or token.text == "US"  # which the tagger takes for a pronoun
        if not belongs or len(phrase) == _MAX_NOUN_PHRASE_WORDS:
            break
        phrase.append(token)
    while phrase and not phrase[-1].tag.startswith("NN"):
        phrase.pop()
    if not phrase:
        return ()
    head = _find_singular(phrase[-1].text.lower())
    compound = f"{phrase[-2].text.lower()} {head}" if len(phrase) > 1 else head
    return tuple(dict.fromkeys((compound, head)))


def _find_singular(noun: str) -> str:
    """Return the singular of a noun, by its ending."""
    if noun.endswith("ies") and len(noun) > 4:
        return f"{noun[:-3]}y"
    is_plural = noun.endswith("s") and not noun.endswith(("ss", "us", "is", "ics", "series"))
    if is_plural and noun.endswith(("ches", "shes", "sses", "xes")):
        return noun[:-2]
    return noun[:-1] if is_plural else noun


def find_expected_kind(question: str) -> Kind | None:
    """Return the kind of words that answer a question, if its question word tells it."""
    word = find_question_word(question)
    head = next(iter(find_noun_asked_for(question)[-1:]), "")
    if word == "when" or (word.startswith("what") and head in _DATE_NOUNS):
        return "date"
    if word.startswith("how ") or (word.startswith("what") and head in _NUMBER_NOUNS):
        return "number"
    return "entity" if word in ("who", "where") else None


def find_likely_types(question: str) -> tuple[str, ...]:
    """Return the types of what a question asks for, the most specific one first.

    ``Person`` (and ``Woman``), ``Place``, or the noun after ``which`` or ``what``, as ``City`` or
    ``Concentration camp``; none if the question does not tell.
    """
    word, nouns = find_question_word(question), find_noun_asked_for(question)
    is_of_woman = not _FEMALE_NOUNS.isdisjoint(split_words(question))
    person = ("Person", "Woman") if is_of_woman else ("Person",)
    if word == "who":
        return person
    if word == "where":
        return ("Place",)
    if not word.startswith("what") or not nouns:
        return ()
    if nouns[-1] in _PERSON_NOUNS:
        return person
    if nouns[-1] in _VAGUE_PLACE_NOUNS:
        return ("Place",)
    return tuple(noun.capitalize() for noun in nouns)


def asks_for_place(question: str) -> bool:
    """Whether a question asks where something is, or for a place."""
    nouns = find_noun_asked_for(question)
    return find_question_word(question) == "where" or bool(nouns and nouns[-1] in _PLACE_NOUNS)


MAX_YEARS_APART = 20
"""A year is varied by at most this many years."""
LATEST_KNOWN_YEAR = 2025
"""The neighbours of a date up to this year are not later than it either."""

_MONTHS = list(calendar.month_name)[1:]
_SHORT_MONTHS = [*(name[:3] for name in _MONTHS), "Sept"]
# Of ASCII alone: without regard to case, other letters would match, too.
_MONTH = rf"(?P<month>(?a:{'|'.join(_MONTHS + _SHORT_MONTHS)}))\b\.?"
_DAY = r"(?P<day>3[01]|[12][0-9]|0?[1-9])(?P<suffix>st|nd|rd|th)?"
_YEAR = r"(?P<year>1[0-9]{3}|20[0-9]{2})"
# "march" and "may" are words, too.
_UNAMBIGUOUS_MONTHS = [name for name in _MONTHS if name not in ("March", "May")]
# The longest first: "1 May 1912" is found before "May 1912".
_DATE_FORMS = [
    re.compile(form, re.IGNORECASE)
    for form in (
        # 1912-05-01
        rf"(?<![\w-]){_YEAR}-(?P<month>0[1-9]|1[0-2])-(?P<day>0[1-9]|[12][0-9]|3[01])(?![\w-])",
        # May 1st, 1912
        rf"\b{_MONTH}\s{{1,9}}{_DAY}(?:\s{{0,9}},)?\s{{1,9}}{_YEAR}\b",
        # 1 May 1912
        rf"\b{_DAY}\s{{1,9}}(?:of\s{{1,9}})?{_MONTH},?\s{{1,9}}{_YEAR}\b",
        # May 1912
        rf"\b{_MONTH},?\s{{1,9}}{_YEAR}\b",
        # May 1st
        rf"\b{_MONTH}\s{{1,9}}{_DAY}\b",
        # 1st of May
        rf"\b{_DAY}\s{{1,9}}(?:of\s{{1,9}})?{_MONTH}(?!\w)",
        # 1912-1918, 1912/18
        rf"(?<![\w-]){_YEAR}(?P<dash>\s?[-–—/]\s?)(?P<until>[0-9]{{4}}|[0-9]{{2}})(?![\w-])",
        # 1910s
        r"(?<![\w-])(?P<decade>1[0-9]{2}0|20[0-9]0)['’]?s\b",
        # 1912
        rf"(?<![\w.,$£€#/-]){_YEAR}(?![\w/-]|[.,][0-9]|\s{{0,9}}%)",
        r"\b(?P<weekday>Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday)\b",
        rf"\b(?P<month>(?a:{'|'.join(_UNAMBIGUOUS_MONTHS)}))\b",
    )
]


def find_dates(text: str) -> list[Slot]:
    """Return the dates of a text; of overlapping forms the longest."""
    slots: list[Slot] = []
    # The forms are in the order of their length: "1 May 1912" is found before "May 1912".
    for form in _DATE_FORMS:
        for match in form.finditer(text):
            if not any(match.start() < s.end and s.start < match.end() for s in slots):
                slots.append(Slot(match[0], match.start(), match.end(), "date", 1, "CD"))
    return sorted(slots, key=lambda slot: slot.start)


def find_year(date: str) -> int | None:
    """Return the first year of a date; ``None`` if it has none."""
    match = re.search(r"(?<![0-9])[12][0-9]{3}(?![0-9])", date)
    return int(match[0]) if match else None


def draw_date_neighbours(text: str, n: int, rng: np.random.Generator) -> list[str]:
    """Return up to n other dates, written as ``text`` is, with one field changed.

    Within each field in random order: first those of another year (at most 20 apart), then of
    another month, then of another day. Since all differ in one field only, the original is not
    recognisable as their middle. Empty if ``text`` is no date, or one that does not exist.
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
    """Return other dates, in a list for each field that is varied."""
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
    # A date that does not exist, as 31 February, is not varied.
    if not _is_existing_date(year, month, day):
        return []
    years = _near_years(year) if year is not None else []
    months = [n for n in range(1, 13) if month is not None and _is_existing_date(year, n, day)]
    days = range(1, 32) if day is not None else []
    return [
        [
            _replace_field(match, "year", str(other))
            for other in years
            if _is_existing_date(other, month, day)
        ],
        [_replace_field(match, "month", _write_month(other, fields["month"])) for other in months],
        [_replace_day(match, other) for other in days if _is_existing_date(year, month, other)],
    ]


def _near_years(year: int) -> range:
    """Return the years up to 20 before and after a year, none in the future of a past one."""
    return range(
        max(1000, year - MAX_YEARS_APART), min(year + MAX_YEARS_APART, _find_latest_year(year)) + 1
    )


def _find_latest_year(year: int) -> int:
    """Return the latest plausible year beside another one: in the future only if that one is."""
    return LATEST_KNOWN_YEAR if year <= LATEST_KNOWN_YEAR else 2099


def _vary_span(match: re.Match[str], start_year: int, until: str) -> list[str]:
    """Return spans of years of the same length that begin up to 20 years earlier or later."""
    # "1939-45" ends in the century in which it begins, "1899-02" in the next.
    end_year = int(until) if len(until) == 4 else start_year // 100 * 100 + int(until)
    if len(until) == 2 and end_year < start_year:
        end_year += 100
    if end_year < start_year:
        return []
    spans = ((other, str(other + end_year - start_year)) for other in _near_years(start_year))
    cut = 0 if len(until) == 4 else -2
    return [f"{other}{match['dash']}{end[cut:]}" for other, end in spans]


def _is_existing_date(year: int | None, month: int | None, day: int | None) -> bool:
    """Whether a date exists; without a year it may be 29 February."""
    if month is None or day is None:
        return True
    return day <= calendar.monthrange(2000 if year is None else year, month)[1]


def _read_month(month: str) -> int:
    """Return the number of a month from its digits or its name, short or in full."""
    short = [name[:3].lower() for name in _MONTHS]
    return int(month) if month.isdecimal() else short.index(month[:3].lower()) + 1


def _write_month(number: int, like: str) -> str:
    """Return a month written like another one: in digits, short or in full, in the same case."""
    if like.isdecimal():
        return f"{number:02d}"
    full = _MONTHS[number - 1]
    # "May" is both its short and its full form.
    short = like.lower() != "may" and like.lower() in [name.lower() for name in _SHORT_MONTHS]
    return _copy_case(full[:3] if short else full, like)


def _copy_case(text: str, like: str) -> str:
    """Return a text in the case of another one, if that is all small or all capitals."""
    if like.islower():
        return text.lower()
    return text.upper() if like.isupper() else text


def _replace_field(match: re.Match[str], field: str, value: str, extra: int = 0) -> str:
    """Return a date with another value of a field, which also replaces ``extra`` characters after
    it."""
    start, end = match.start(field) - match.start(), match.end(field) - match.start()
    return match[0][:start] + value + match[0][end + extra :]


def _replace_day(match: re.Match[str], day: int) -> str:
    """Return a date with another day, with its leading zero or ordinal ending adapted."""
    old = match["day"]
    # A zero in front, or an ISO date ("1912-05-12"), shows that days have two digits here.
    text = f"{day:0{len(old)}d}" if old[0] == "0" or match[0][:4].isdecimal() else str(day)
    suffix = match.groupdict().get("suffix") or ""
    if suffix:
        text += _find_ordinal_suffix(day)
    return _replace_field(match, "day", text, len(suffix))


# "1,000,000.5"; or "42", "3.14", "21st". Not after a letter or one of ".,:/-", nor before a letter
# or a hyphen: "A4" and "10-12" have none.
_DIGITS = re.compile(
    r"(?<![\w.,:/-])[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?(?![\w-])"
    r"|(?<![\w.,:/-])[0-9]+(?:\.[0-9]+)?(?:st|nd|rd|th)?(?![\w-])"
)
_MAX_DIGITS = 18
"""Longer numbers are codes rather than amounts, and do not fit in a random integer."""
_UNITS = "zero one two three four five six seven eight nine ten eleven twelve".split()
_TEENS = "thirteen fourteen fifteen sixteen seventeen eighteen nineteen".split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_COMPOUNDS = [f"{tens}-{unit}" for tens in _TENS for unit in _UNITS[1:10]]
_ORDINALS = (
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth".split()
)
_SCALES = "hundred thousand million billion trillion".split()
_SERIES = (_COMPOUNDS, _UNITS[1:], _TEENS, _TENS, _ORDINALS, _SCALES)
_NUMBER_WORD = re.compile(
    rf"\b(?:{'|'.join(one for series in _SERIES for one in series)})\b", re.IGNORECASE
)


def find_numbers(text: str) -> list[Slot]:
    """Return the numbers of a text, in digits or as one word."""
    spans = [*_DIGITS.finditer(text), *_NUMBER_WORD.finditer(text)]
    slots = [Slot(match[0], match.start(), match.end(), "number", 2, "CD") for match in spans]
    return sorted(slots, key=lambda slot: slot.start)


def select_same_form(text: str, replacements: Sequence[str]) -> list[str]:
    """Return the replacements of a date or number that are written as it is; of other texts, all.

    A year for a year, a word for a word of its series (units, tens, scales), digits for digits with
    the same separators, decimals and ending; and no ``one`` in place of several.
    """
    if not (form := _find_form(text)):
        return list(replacements)
    return [replacement for replacement in replacements if _find_form(replacement) == form]


def _find_form(text: str) -> str:
    """Return in which form a text is a date or number, empty if it is neither."""
    text = text.lower()
    if text in ("1", "one"):
        return "one"
    for series in _SERIES:
        if text in series:
            return f"series of {series[0]}"
    for form in _DATE_FORMS:
        if form.fullmatch(text):
            return form.pattern
    if not _DIGITS.fullmatch(text):
        return ""
    return re.sub("[0-9]+", "0", re.sub("(st|nd|rd|th)$", "th", text))


def draw_number_neighbours(text: str, n: int, rng: np.random.Generator) -> list[str]:
    """Return up to n other numbers, written as ``text`` is, in random order.

    They have as many digits and a similar size (between half and twice as much, and at least 10
    others if the digits allow it); decimals, separators and ordinal endings are kept. ``1`` is no
    neighbour, as its noun has no plural. None for a number of more than 18 digits.
    """
    # A number word is replaced by another one of its series: a unit by a unit, a scale by a scale.
    for series in _SERIES:
        if text.lower() in series:
            other_words = [word for word in series if word not in ("one", text.lower())]
            chosen_words = [other_words[i] for i in rng.permutation(len(other_words))[:n]]
            return [
                candidate.capitalize() if text[:1].isupper() else candidate
                for candidate in chosen_words
            ]
    if not _DIGITS.fullmatch(text):
        return []
    body = re.sub(r"(st|nd|rd|th)$", "", text)
    ordinal = body != text
    integer, _, decimals = body.replace(",", "").partition(".")
    # Also none for "007", which is a code and not an amount.
    if len(integer + decimals) > _MAX_DIGITS or (integer[0] == "0" and len(integer) > 1):
        return []
    # Decimals are computed with as whole numbers of their last digit, without rounding errors.
    scale = 10 ** len(decimals)
    value = int(integer) * scale + int(decimals or 0)
    lowest = 0 if decimals or value == 0 else 1
    # The smallest number with as many digits before the point.
    lowest = 10 ** (len(integer) - 1) * scale if len(integer) > 1 else lowest
    low = max(lowest, min(value // 2, value - 10))
    high = min(10 ** len(integer) * scale - 1, max(2 * value, value + 10))
    size = high - low + 1
    step = _find_round_step(value, decimals)
    # A permutation of a large range would need memory in proportion; 8 n draws give n different
    # values almost always.
    places = rng.permutation(size) if size <= 10_000 else rng.integers(0, size, 8 * n)
    values = [low + int(place) for place in places]
    if step > 1:  # a round number has round neighbours
        values = [candidate // step * step for candidate in values]
    selected = [
        candidate
        for candidate in dict.fromkeys(values)
        if candidate != value and low <= candidate <= high
        # "1 legs" is seen through.
        if candidate != 1 or decimals or ordinal
    ][:n]
    return [
        _write_number(candidate, scale, len(decimals), "," in text, ordinal)
        for candidate in selected
    ]


def _find_round_step(value: int, decimals: str) -> int:
    """Return the power of ten to which a number of at least three digits is rounded."""
    if decimals or value < 100:
        return 1
    step = 1
    while value % (step * 10) == 0 and step * 100 <= value:
        step *= 10
    return step


def _write_number(value: int, scale: int, decimals: int, grouped: bool, ordinal: bool) -> str:
    """Return a number with the decimals, separators and ordinal ending of the original."""
    integer, part = divmod(value, scale)
    text = f"{integer:,}" if grouped else str(integer)
    if decimals:
        text += f".{part:0{decimals}d}"
    return text + _find_ordinal_suffix(integer) if ordinal else text


def _find_ordinal_suffix(value: int) -> str:
    """Return the ending of an ordinal: 1st, 2nd, 3rd, 11th."""
    if value % 100 in (11, 12, 13):
        return "th"
    return {1: "st", 2: "nd", 3: "rd"}.get(value % 10, "th")
