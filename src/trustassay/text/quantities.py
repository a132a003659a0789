"""Reads quantities in English text: numbers, units, money, dates, ordinals, and how exact they are.

A quantity is an interval in the base unit of its dimension, so that "3 feet" and "0.91 metres", or
"more than 40" and "46", can be compared. What is not read for certain is left out. The work grows
linearly with the length of a text.
"""

import math
import re
import tomllib
from functools import lru_cache
from importlib.resources import files
from typing import NamedTuple

from trustassay.text.words import REMEMBERED, is_empty_word, is_negation, stem

LONGEST_NUMBER = 18
"""Characters; longer ones are codes, not quantities."""
LARGEST = 1e18
"""Larger numbers are taken for this one."""
YEARS = range(1000, 2101)
NOUNS = 3
"""Words after a number that may be what is counted."""


class Quantity(NamedTuple):
    """A quantity that a text states.

    dimension: what it can be compared with: ``length``, ``USD``, ``date`` (days), ``day`` (of a
        year), ``count``, ``ordinal`` and so on. low, high: bounds in the base unit, infinite on an
        open side. form: ``point``, ``range`` (both ends are stated), ``bound`` ("more than") or
        ``about``. start, end: characters. place: number of its first token. step: half of what its
        last digit stands for, in the base unit. factor: base units in the unit that was written.
        nouns: stems of what is counted.
    """

    dimension: str
    low: float
    high: float
    form: str
    start: int
    end: int
    place: int
    step: float = 0.0
    factor: float = 1.0
    nouns: tuple[str, ...] = ()


class Reading(NamedTuple):
    """The quantities of a text and its other content words.

    places: by stem, the numbers of the tokens that have it, ascending. sentences: by token, the
    number of its sentence. negated: numbers of the sentences with a negation.
    """

    quantities: tuple[Quantity, ...]
    places: dict[str, list[int]]
    sentences: list[int]
    negated: frozenset[int]


_DATA = tomllib.loads(files(__package__).joinpath("quantities.toml").read_text("utf-8"))


def _numbered(key: str, first: int) -> dict[str, float]:
    names = enumerate(_DATA[key].split(), first)
    return {name: float(number) for number, every in names for name in every.split(",")}


def _kinds(key: str) -> dict[str, str]:
    return {words: kind for kind, text in _DATA[key].items() for words in text.split(", ")}


_SMALL: dict[str, float] = _numbered("small", 0) | _DATA["tens"]
_ORDINALS, _MONTHS = _numbered("ordinals", 1), _numbered("months", 1)
_SHORT_MONTHS = frozenset(name for name in _MONTHS if len(name) < 5) - {"may", "june", "july"}
_SCALES: dict[str, float] = _DATA["scales"]
_UNITS = {word: (kind, by) for kind, units in _DATA["units"].items() for word, by in units.items()}
_DEGREES: dict[str, list[float]] = _DATA["degrees"]
_BOUNDS, _BOUNDS_AFTER = _kinds("bounds"), _kinds("bounds_after")
_BEFORE_YEARS, _SKIPPED = (frozenset(_DATA[key].split()) for key in ("before_years", "skipped"))
_CURRENCIES = {"$": "USD", "us$": "USD", "£": "GBP", "€": "EUR"}
_MONEY_SCALES = {"m": 1e6, "k": 1e3, "b": 1e9}
_SUFFIXES = frozenset(("st", "nd", "rd", "th"))
_DASHES, _GLUED = frozenset("-–—"), frozenset("/.,#_:")
_PER = frozenset(("per", "/", "a", "an", "each", "every"))
_BEFORE_DIGITS = frozenset((*_MONTHS, *_BOUNDS))
_UNREAD = frozenset((*_ORDINALS, *_SUFFIXES, "am", "pm"))
"""After what these follow, a number is a time of day, a fraction or part of an ordinal."""
_STARTS = frozenset((*_SMALL, *_ORDINALS, "a", "half"))
_TOKEN = re.compile(
    r"(?:us)?[$£€]|\d+(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?|[^\W\d_]+(?:['’][^\W\d_]+)?|[^\w\s]|\n",
    re.IGNORECASE,
)
_GOES_ON = re.compile(r"[.,:/_]\d|, \d{3}\b")
"""After digits that are part of a larger number, a time of day or a fraction."""
_MAYBE = re.compile(rf"\d|\b(?:{'|'.join((*_SMALL, *_SCALES, *_ORDINALS))})\b", re.IGNORECASE)


def may_have_quantities(text: str) -> bool:
    """Return whether a text has a digit or a word for a number."""
    return _MAYBE.search(text) is not None


def read(text: str) -> Reading:
    """Return the quantities and the other content words of a text."""
    return _read(text) if len(text) <= REMEMBERED else _Reader(text).reading()


@lru_cache(maxsize=256)
def _read(text: str) -> Reading:
    return _Reader(text).reading()


class _Number(NamedTuple):
    value: float
    step: float
    end: int


class _Unit(NamedTuple):
    dimension: str
    factor: float = 1.0
    offset: float = 0.0


class _Reader:
    """Reads a text once from left to right; positions are numbers of tokens."""

    def __init__(self, text: str) -> None:
        self.text = text
        result = list(_TOKEN.finditer(text))
        self.spans = [match.span() for match in result]
        raw = [match.group() for match in result]
        self.capital = [word[0].isupper() for word in raw]
        self.words = [word.lower() for word in raw] + [""] * 4  # also for positions below 0
        self.sentences: list[int] = []
        number = 0
        for i, word in enumerate(raw):
            self.sentences.append(number)
            if word in ("\n", "|"):
                number += 1
            elif (
                word in (".", "!", "?") and text[self.spans[i][1] : self.spans[i][1] + 1].isspace()
            ):
                number += len(self.words[i - 1]) > 1 and self.words[i - 1] not in _MONTHS

    def reading(self) -> Reading:
        """Return what the text has."""
        result: list[Quantity] = []
        places: dict[str, list[int]] = {}
        i = 0
        while i < len(self.spans):
            word = self.words[i]
            digits = word[0].isdecimal()
            if digits or word in _STARTS or (word in _MONTHS and self.capital[i]):
                made, end = self.quantity(i, digits)
                result += made
                if end > i:
                    i = end
                    continue
            if word[0].isalpha() and not is_empty_word(word):
                places.setdefault(stem(word), []).append(i)
            i += 1
        words = zip(self.words, self.sentences, strict=False)
        negated = frozenset(number for word, number in words if is_negation(word))
        return Reading(tuple(result), places, self.sentences, negated)

    def quantity(self, i: int, digits: bool) -> tuple[list[Quantity], int]:
        """Return what begins at a position, and the next position: ``i`` where nothing does."""
        if digits and self.is_code(i):
            return [], i + 1
        for part in (self.date, self.ordinal, self.amount):
            made, end = part(i)
            if end > i:
                return made, end
        return [], i

    def close(self, i: int) -> bool:
        """Return whether a token follows the one before it without a space."""
        return 0 < i < len(self.spans) and self.spans[i - 1][1] == self.spans[i][0]

    def is_code(self, i: int) -> bool:
        """Return whether digits are part of a name, a version, a fraction, a time or a list."""
        before, end = self.words[i - 1], self.spans[i][1]
        first = i == 0 or self.sentences[i - 1] != self.sentences[i]
        named = not first and self.capital[i - 1] and before != "us$"
        hyphenated = before in _DASHES and self.close(i - 1) and self.words[i - 2] != "mid"
        return (
            len(self.words[i]) > LONGEST_NUMBER
            or _GOES_ON.match(self.text, end) is not None
            or (first and self.text[end : end + 1] == ".")
            or (named and not is_empty_word(before) and before not in _BEFORE_DIGITS)
            or (self.close(i) and (before.isalpha() or before in _GLUED))
            or (self.close(i) and hyphenated and self.words[i - 2].isalpha())
        )

    def number(self, i: int) -> _Number | None:
        """Return the number, in digits or words, that begins at a position."""
        word = self.words[i]
        if word[:1].isdecimal():
            plain = word.replace(",", "")
            zeros = 0 if "." in plain else len(plain) - len(plain.rstrip("0"))
            value = float(plain)
            step = 0.5 * 10.0 ** (
                zeros if zeros > 1 and value >= 1000 else -len(plain.partition(".")[2])
            )
            end = i + 1
            while scale := _SCALES.get(self.words[end + (self.words[end] == "-")]):
                value, step = min(value * scale, LARGEST), min(step, 0.5) * scale
                end += 1 + (self.words[end] == "-")
            return _Number(value, min(step, LARGEST), end)
        total, current, step, end = 0.0, 0.0, 0.5, i
        if word in ("a", "half"):
            end += 1 + (word == "half" and self.words[i + 1] == "a")
            current = 1.0 if word == "a" else 0.5
            if self.words[end] not in _SCALES:
                return None
        while True:
            joined = end > i and self.words[end] in ("-", "and")
            word = self.words[end + joined]
            small, scale = _SMALL.get(word), _SCALES.get(word)
            if small is not None and (
                end == i
                or (small and total + current >= 20 and current % (10 if small < 10 else 100) == 0)
            ):
                current, step = current + small, 0.5
            elif scale and not (joined and self.words[end] == "and"):
                current = min((current or 1.0) * scale, LARGEST)
                if scale >= 1000:
                    total, current, step = total + current, 0.0, 0.5 * scale
            else:
                return _Number(total + current, step, end) if end > i else None
            end += 1 + joined

    def date(self, i: int) -> tuple[list[Quantity], int]:
        """Return a date, a year, a decade, or a span of years such as 1914-18."""
        day = self.day(i)
        end = i + (1 + (self.words[i + 1] in _SUFFIXES) if day else 0)
        end += day > 0 and self.words[end] == "of"
        month, year = int(_MONTHS.get(self.words[end], 0)), self.year(i)
        if month and self.capital[end]:
            end += 1 + (self.words[end + 1] == "." and self.words[end] in _SHORT_MONTHS)
            if not day and (day := self.day(end)):
                end += 1 + (self.words[end + 1] in _SUFFIXES)
            comma = self.words[end] in (",", "of")
            year = self.year(end + comma)
            end += comma + 1 if year else 0
        elif year and self.is_year(i):
            month, day, end = 0, 0, i + 1
            short = self.words[end + 1]
            end += self.words[end] in ("'", "’")
            if self.words[end] == "s" and self.close(end):
                return self.years(i, end + 1, year, year + (99 if year % 100 == 0 else 9))
            if self.words[end] in _DASHES and short.isdecimal():
                last = int(f"{str(year)[: -len(short)]}{short}") if len(short) in (2, 4) else 0
                return self.years(i, end + 2, year, last, "range") if last > year else ([], end + 2)
        else:
            return [], i
        made, end = self.years(i, end, year, year, "point", month, day) if year else ([], end)
        if month and day:
            made.append(self.made("day", 31 * month + day, 31 * month + day, i, end))
        return made, end

    def day(self, i: int) -> int:
        """Return the day of a month that is at a position, 0: none is."""
        word = self.words[i]
        return int(word) if len(word) < 3 and word.isdecimal() and int(word) < 32 else 0

    def year(self, i: int) -> int:
        """Return the year that may be at a position, 0: none is."""
        word = self.words[i]
        return int(word) if len(word) == 4 and word.isdecimal() and int(word) in YEARS else 0

    def is_year(self, i: int) -> bool:
        """Return whether a number of four digits is a year and not an amount."""
        before, after = self.words[i - 1], self.words[i + 1]
        if after in _SCALES or before in _CURRENCIES or self.unit(i, i + 1)[0]:
            return False
        counted = after.isalpha() and not is_empty_word(after) and not self.capital[i + 1]
        open_end = self.bound(i) in ("above", "from", "below", "to", "almost")
        return before in _BEFORE_YEARS or not (counted or open_end)

    def years(
        self, i: int, end: int, first: int, last: int, form: str = "point", *day: int
    ) -> tuple[list[Quantity], int]:
        """Return the time from the first to the last year, or a month or a day of one year."""
        month, day_of = (*day, 0, 0)[:2]
        low = 372 * first + 31 * (month or 1) + (day_of or 1)
        high = 372 * last + 31 * (month or 12) + (day_of or 31)
        if self.words[end] in ("bc", "bce") or self.bound(i) == "none":
            return [], end
        return [self.made("date", low, high, i, end, form=form)], end

    def ordinal(self, i: int) -> tuple[list[Quantity], int]:
        """Return the ordinal at a position with what has that place, or a century."""
        word, end = self.words[i], i + 1
        hyphen = self.words[end] == "-"
        if word.isdecimal() and self.words[end] in _SUFFIXES:
            value, end = float(word), end + 1
        elif word in _ORDINALS:
            value = _ORDINALS[word]
        elif _SMALL.get(word, 0) >= 20 and _ORDINALS.get(self.words[end + hyphen], 10) < 10:
            value, end = _SMALL[word] + _ORDINALS[self.words[end + hyphen]], end + hyphen + 1
        else:
            return [], i
        if self.words[end + (self.words[end] == "-")] == "century":
            return self.years(i, end + 1, int(value) * 100 - 100, int(value) * 100 - 1)
        nouns = self.nouns(end)
        if not nouns or self.words[end] == "of" or self.words[i - 1] in ("a", "one", "two"):
            return [], end
        return [self.made("ordinal", value, value, i, end, nouns=nouns)], end

    def amount(self, i: int) -> tuple[list[Quantity], int]:
        """Return the number or range at a position with its unit or what is counted."""
        first = self.number(i)
        if first is None or self.bound(i) == "none" or self.words[first.end] in _UNREAD:
            return [], first.end if first else i
        unit, end = self.unit(i, first.end)
        form, low, high = "point", first.value, first.value
        if second := self.second(i, end):
            other, after = self.unit(i, second.end)
            rising = low < second.value
            if not (unit or other or (rising and self.nouns(after))) and self.words[end] != "to":
                return [], after  # a result such as 3-2
            if rising and (unit is None or unit == other):
                form, high, unit, end = "range", second.value, other, after
        nouns = () if unit else self.nouns(end)
        if not unit and self.words[i - 1] in ("aged", "age"):
            unit = _Unit(*_UNITS["year"])
        if self.words[i] == "one" and first.end == i + 1 and not unit:
            return [], i
        kind, factor, offset = unit or _Unit("count")
        low, high = low * factor + offset, high * factor + offset
        made = self.made(kind, low, high, i, end, form=form, nouns=nouns)
        return [made._replace(step=first.step * factor, factor=factor)], end

    def second(self, i: int, end: int) -> _Number | None:
        """Return the other end of a range, after "to", a dash or, after "between", "and"."""
        joint = self.words[end]
        before = self.words[i - 1 - (self.words[i - 1] in _CURRENCIES)]
        place = end + 1 + (self.words[end + 1] in _CURRENCIES)
        joined = joint in _DASHES or joint == "to" or (joint == "and" and before == "between")
        number = self.words[place][:1].isdecimal() or self.words[place] in _SMALL
        return self.number(place) if joined and number else None

    def unit(self, i: int, end: int) -> tuple[_Unit | None, int]:
        """Return the unit at a position, of a number that begins at ``i``, and what is next."""
        at = end + (self.words[end] == "-" and self.close(end))
        word, after = self.words[at], self.words[at + 1]
        squared = word in ("square", "sq")
        if money := _CURRENCIES.get(self.words[i - 1]):
            scale = _MONEY_SCALES.get(word, 1.0) if self.close(at) else 1.0
            unit, at = _Unit(money, scale), end + (scale > 1)
        elif word in ("°", "degrees", "degree") and after in _DEGREES:
            unit, at = _Unit("temperature", *_DEGREES[after]), at + 2
        elif word == "per" and after == "cent":
            unit, at = _Unit("%"), at + 2
        else:
            result = _UNITS.get((after if squared else word).removesuffix("s"))
            if result is None or (len(word) == 1 and word.isalpha() and self.capital[at]):
                return None, end
            unit, at = _Unit(*result), at + 1 + squared
            unit = _Unit("area", unit.factor**2) if squared else unit
        below = _UNITS.get(self.words[at + 1].removesuffix("s"), ("", 0))
        if self.words[at] in _PER and below[0] == "time":
            return _Unit(f"{unit.dimension}/time", unit.factor / below[1]), at + 2
        return unit, at

    def bound(self, i: int) -> str:
        """Return what the words before a quantity make of it, empty: nothing."""
        i -= self.words[i - 1] in _CURRENCIES
        texts = (" ".join(self.words[max(0, i - n) : i]) for n in (3, 2, 1))
        return next((_BOUNDS[text] for text in texts if text in _BOUNDS), "")

    def made(
        self,
        kind: str,
        low: float,
        high: float,
        i: int,
        end: int,
        *,
        form: str = "point",
        nouns: tuple[str, ...] = (),
    ) -> Quantity:
        """Return a quantity of the tokens from ``i`` to ``end``, as the words around it have it."""
        after = f"{self.words[end]} {self.words[end + 1]}"
        bound = _BOUNDS_AFTER.get(after, "from" if self.words[end] == "+" else self.bound(i))
        dated = kind in ("date", "day")
        if form != "point" or (
            bound not in ("after", "before", "near") if dated else bound in ("after", "before")
        ):
            bound = ""
        edge = 0.0 if bound in ("from", "to") else 1 if dated else max(abs(high) * 1e-9, 1e-9)
        near = 1100 if dated else abs(high) / 10
        if bound in ("above", "after", "from"):
            low, high, form = high + edge, math.inf, "bound"
        elif bound in ("below", "before", "to"):
            low, high, form = -math.inf, low - edge, "bound"
        elif bound in ("near", "almost"):
            low, high, form = low - near, high + near * (bound == "near"), "about"
        start = self.spans[i - (self.words[i - 1] in _CURRENCIES)][0]
        stop = self.spans[end - 1][1]
        return Quantity(kind, low, high, form, start, stop, i, nouns=nouns)

    def nouns(self, i: int) -> tuple[str, ...]:
        """Return the stems of up to three words after a number, up to where its phrase ends."""
        result: list[str] = []
        for word in self.words[i : min(i + 2 * NOUNS, len(self.spans))]:
            if word not in _SKIPPED:
                if not word[0].isalpha() or is_empty_word(word) or len(result) == NOUNS:
                    break
                result.append(stem(word))
        return tuple(result)
