"""Reads quantities in English text: numbers, units, money, dates, ordinals, and how exact they are.

A quantity is an interval in the base unit of its dimension, so that "3 feet" and "0.91 metres", or
"more than 40" and "46", can be compared. A quantity that cannot be read with certainty is left out.
The time grows linearly with the length of a text.
"""

import math
import re
import tomllib
from functools import lru_cache
from importlib.resources import files
from typing import NamedTuple

from trustassay.text.words import MAX_CACHED_CHARACTERS, is_empty_word, is_negation, stem

MAX_NUMBER_CHARACTERS = 18
"""Characters; longer ones are codes, not quantities."""
MAX_NUMBER = 1e18
"""Larger numbers are cut off at this one, so that no sum or product becomes infinite."""
YEARS = range(1000, 2101)
MAX_COUNTED_NOUNS = 3
"""Words after a number that may name what is counted."""


class Quantity(NamedTuple):
    """A quantity that a text states."""

    dimension: str
    """What it can be compared with: ``length``, ``USD``, ``date`` (days), ``day`` (of a year),
    ``count``, ``ordinal`` and so on."""
    low: float
    """Lower bound in the base unit; minus infinity where it is open."""
    high: float
    """Upper bound in the base unit; infinity where it is open."""
    form: str
    """``point``, ``range`` (both ends are stated), ``bound`` ("more than") or ``about``."""
    start: int
    """Offset of its first character."""
    end: int
    """Offset behind its last character."""
    place: int
    """Index of its first token."""
    step: float = 0.0
    """Half of the unit of its last digit, in the base unit: the precision of a rounded number."""
    factor: float = 1.0
    """Base units in one of the unit that was written."""
    nouns: tuple[str, ...] = ()
    """Stems of the words for what is counted."""


class TextQuantities(NamedTuple):
    """The quantities of a text and its other content words."""

    quantities: tuple[Quantity, ...]
    """In reading order."""
    places: dict[str, list[int]]
    """By stem, the indices of the tokens that have it, ascending."""
    sentences: list[int]
    """By token, the number of its sentence."""
    negated: frozenset[int]
    """Numbers of the sentences with a negation."""


_DATA = tomllib.loads(files(__package__).joinpath("quantities.toml").read_text("utf-8"))


def _number_names(key: str, first: int) -> dict[str, float]:
    names = enumerate(_DATA[key].split(), first)
    return {name: float(number) for number, every in names for name in every.split(",")}


def _invert_phrases(key: str) -> dict[str, str]:
    return {words: kind for kind, text in _DATA[key].items() for words in text.split(", ")}


_SMALL: dict[str, float] = _number_names("small", 0) | _DATA["tens"]
_ORDINALS, _MONTHS = _number_names("ordinals", 1), _number_names("months", 1)
# Abbreviations, which a full stop may follow without ending the sentence: "3 Mar. 2021".
_SHORT_MONTHS = frozenset(name for name in _MONTHS if len(name) < 5) - {"may", "june", "july"}
_SCALES: dict[str, float] = _DATA["scales"]
_UNITS = {word: (kind, by) for kind, units in _DATA["units"].items() for word, by in units.items()}
_DEGREES: dict[str, list[float]] = _DATA["degrees"]
_BOUNDS, _BOUNDS_AFTER = _invert_phrases("bounds"), _invert_phrases("bounds_after")
_BEFORE_YEARS, _SKIPPED = (frozenset(_DATA[key].split()) for key in ("before_years", "skipped"))
_CURRENCIES = {"$": "USD", "us$": "USD", "£": "GBP", "€": "EUR"}
# "$3m", "$20k": the letter directly behind the number.
_MONEY_SCALES = {"m": 1e6, "k": 1e3, "b": 1e9}
_SUFFIXES = frozenset(("st", "nd", "rd", "th"))
_DASHES, _GLUED = frozenset("-–—"), frozenset("/.,#_:")
_PER = frozenset(("per", "/", "a", "an", "each", "every"))
_BEFORE_DIGITS = frozenset((*_MONTHS, *_BOUNDS))
_UNREAD = frozenset((*_ORDINALS, *_SUFFIXES, "am", "pm"))
"""Words after a number by which it is a time of day, a fraction or part of an ordinal."""
# Words at which a quantity in words may begin: "twenty", "third", "a dozen", "half a million".
_STARTS = frozenset((*_SMALL, *_ORDINALS, "a", "half"))
# Currency signs, numbers with thousands separators, words with apostrophes, single characters of
# punctuation, and line ends (which end a sentence).
_TOKEN = re.compile(
    r"(?:us)?[$£€]|\d+(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?|[^\W\d_]+(?:['’][^\W\d_]+)?|[^\w\s]|\n",
    re.IGNORECASE,
)
_GOES_ON = re.compile(r"[.,:/_]\d|, \d{3}\b")
"""Behind digits that are part of a larger number, a time of day or a fraction: ":30", "/4"."""
_MAYBE = re.compile(rf"\d|\b(?:{'|'.join((*_SMALL, *_SCALES, *_ORDINALS))})\b", re.IGNORECASE)


def may_have_quantities(text: str) -> bool:
    """Whether a text has a digit or a word for a number; a cheap test before reading it."""
    return _MAYBE.search(text) is not None


def read_quantities(text: str) -> TextQuantities:
    """Read the quantities and the other content words of a text; readings of shorter texts are
    cached."""
    return _read(text) if len(text) <= MAX_CACHED_CHARACTERS else _QuantityReader(text).read_text()


@lru_cache(maxsize=256)
def _read(text: str) -> TextQuantities:
    return _QuantityReader(text).read_text()


class _TextNumber(NamedTuple):
    """A number in digits or words."""

    value: float
    """The number."""
    step: float
    """Half of the unit of its last significant digit."""
    end: int
    """Index of the token behind it."""


class _MeasureUnit(NamedTuple):
    """A unit; a value in the base unit is ``value * factor + offset``."""

    dimension: str
    """What it measures, as in :class:`Quantity`."""
    factor: float = 1.0
    """Base units in one of it."""
    offset: float = 0.0
    """Added after scaling; only units of temperature have one."""


class _QuantityReader:
    """Reads a text once from left to right; all positions are indices of tokens."""

    def __init__(self, text: str) -> None:
        self.text = text
        result = list(_TOKEN.finditer(text))
        self.spans = [match.span() for match in result]
        raw = [match.group() for match in result]
        self.capital = [word[0].isupper() for word in raw]
        # Four empty words at the end, so that looking ahead by up to four tokens, or back from the
        # first one (index -1 is the last element), needs no test of bounds.
        self.words = [word.lower() for word in raw] + [""] * 4
        self.sentences: list[int] = []
        number = 0
        for i, word in enumerate(raw):
            self.sentences.append(number)
            if word in ("\n", "|"):
                number += 1
            elif (
                word in (".", "!", "?") and text[self.spans[i][1] : self.spans[i][1] + 1].isspace()
            ):
                # A full stop behind a single letter or a month ends no sentence: "J. Lind", "3 Mar.
                # 2021".
                number += len(self.words[i - 1]) > 1 and self.words[i - 1] not in _MONTHS

    def read_text(self) -> TextQuantities:
        """Return what the text has."""
        result: list[Quantity] = []
        places: dict[str, list[int]] = {}
        i = 0
        while i < len(self.spans):
            word = self.words[i]
            digits = word[0].isdecimal()
            # Months only with a capital: "may" and "march" are verbs.
            if digits or word in _STARTS or (word in _MONTHS and self.capital[i]):
                quantities_here, end = self.read_quantity(i, digits)
                result += quantities_here
                if end > i:
                    i = end
                    continue
            # Any other word with a meaning is kept by its stem, for what stands near a quantity.
            if word[0].isalpha() and not is_empty_word(word):
                places.setdefault(stem(word), []).append(i)
            i += 1
        words = zip(self.words, self.sentences, strict=False)
        negated = frozenset(number for word, number in words if is_negation(word))
        return TextQuantities(tuple(result), places, self.sentences, negated)

    def read_quantity(self, i: int, digits: bool) -> tuple[list[Quantity], int]:
        """Return what begins at a position, and the next position: ``i`` where nothing does."""
        if digits and self.is_code(i):
            return [], i + 1
        # Dates first: "3 March" would otherwise be an amount of three.
        for read_part in (self.read_date, self.read_ordinal, self.read_amount):
            quantities, end = read_part(i)
            if end > i:
                return quantities, end
        return [], i

    def follows_directly(self, i: int) -> bool:
        """Return whether a token follows the one before it without a space."""
        return 0 < i < len(self.spans) and self.spans[i - 1][1] == self.spans[i][0]

    def is_code(self, i: int) -> bool:
        """Return whether digits are part of a name, a version, a fraction, a time or a list."""
        before, end = self.words[i - 1], self.spans[i][1]
        # The conditions in order: too long; followed by ".5", ":30" or "/4"; the number of a list
        # item ("1. "); behind a capitalised word ("Route 66", "Boeing 747"); glued to a word or
        # sign ("v2", "#3"); behind a hyphenated word ("covid-19").
        first = i == 0 or self.sentences[i - 1] != self.sentences[i]
        behind_name = not first and self.capital[i - 1] and before != "us$"
        hyphenated = (
            before in _DASHES and self.follows_directly(i - 1) and self.words[i - 2] != "mid"
        )
        return (
            len(self.words[i]) > MAX_NUMBER_CHARACTERS
            or _GOES_ON.match(self.text, end) is not None
            or (first and self.text[end : end + 1] == ".")
            or (behind_name and not is_empty_word(before) and before not in _BEFORE_DIGITS)
            or (self.follows_directly(i) and (before.isalpha() or before in _GLUED))
            or (self.follows_directly(i) and hyphenated and self.words[i - 2].isalpha())
        )

    def read_number(self, i: int) -> _TextNumber | None:
        """Return the number, in digits or words, that begins at a position."""
        word = self.words[i]
        if word[:1].isdecimal():
            # The step is half of the last significant digit: 0.5 for "46", 0.05 for "4.6", 500 for
            # "12,000".
            plain = word.replace(",", "")
            zeros = 0 if "." in plain else len(plain) - len(plain.rstrip("0"))
            value = float(plain)
            step = 0.5 * 10.0 ** (
                zeros if zeros > 1 and value >= 1000 else -len(plain.partition(".")[2])
            )
            end = i + 1
            # "3 million", "2-million": each scale multiplies, so "3 hundred thousand" works.
            while scale := _SCALES.get(self.words[end + (self.words[end] == "-")]):
                value, step = min(value * scale, MAX_NUMBER), min(step, 0.5) * scale
                end += 1 + (self.words[end] == "-")
            return _TextNumber(value, min(step, MAX_NUMBER), end)
        # Number words: ``current`` is the part below the next scale of 1,000, ``total`` what is
        # complete.
        total, current, step, end = 0.0, 0.0, 0.5, i
        if word in ("a", "half"):
            end += 1 + (word == "half" and self.words[i + 1] == "a")
            current = 1.0 if word == "a" else 0.5
            # "a" and "half" are numbers only before a scale: "a dozen", "half a million".
            if self.words[end] not in _SCALES:
                return None
        while True:
            joined = end > i and self.words[end] in ("-", "and")
            word = self.words[end + joined]
            small, scale = _SMALL.get(word), _SCALES.get(word)
            # A word continues the number only where it fits: "twenty three", "hundred and five",
            # but not "three three" or "twenty eleven".
            if small is not None and (
                end == i
                or (small and total + current >= 20 and current % (10 if small < 10 else 100) == 0)
            ):
                current, step = current + small, 0.5
            elif scale and not (joined and self.words[end] == "and"):
                current = min((current or 1.0) * scale, MAX_NUMBER)
                if scale >= 1000:
                    total, current, step = total + current, 0.0, 0.5 * scale
            else:
                return _TextNumber(total + current, step, end) if end > i else None
            end += 1 + joined

    def read_date(self, i: int) -> tuple[list[Quantity], int]:
        """Return a date, a year, a decade, or a span of years such as 1914-18."""
        # Day before the month: "3 March", "the 3rd of March".
        day = self.day_at(i)
        end = i + (1 + (self.words[i + 1] in _SUFFIXES) if day else 0)
        end += day > 0 and self.words[end] == "of"
        month, year = int(_MONTHS.get(self.words[end], 0)), self.year_at(i)
        if month and self.capital[end]:
            end += 1 + (self.words[end + 1] == "." and self.words[end] in _SHORT_MONTHS)
            # Day behind the month: "March 3", "Mar. 3rd".
            if not day and (day := self.day_at(end)):
                end += 1 + (self.words[end + 1] in _SUFFIXES)
            # "March 3, 2021", "March of 2021"
            comma = self.words[end] in (",", "of")
            year = self.year_at(end + comma)
            end += comma + 1 if year else 0
        elif year and self.is_year(i):
            month, day, end = 0, 0, i + 1
            # "1990s", "1990's": ten years, or a hundred ("1900s").
            short = self.words[end + 1]
            end += self.words[end] in ("'", "’")
            if self.words[end] == "s" and self.follows_directly(end):
                return self.build_years(i, end + 1, year, year + (99 if year % 100 == 0 else 9))
            if self.words[end] in _DASHES and short.isdecimal():
                # "1914-18" takes the first digits from the first year. A year below the first is no
                # range.
                last = int(f"{str(year)[: -len(short)]}{short}") if len(short) in (2, 4) else 0
                return (
                    self.build_years(i, end + 2, year, last, "range")
                    if last > year
                    else ([], end + 2)
                )
        else:
            return [], i
        quantities, end = (
            self.build_years(i, end, year, year, "point", month, day) if year else ([], end)
        )
        if month and day:
            # The day of the year also by itself, so that "3 March" and "3 March 2021" can be
            # compared.
            quantities.append(
                self.build_quantity("day", 31 * month + day, 31 * month + day, i, end)
            )
        return quantities, end

    def day_at(self, i: int) -> int:
        """Return the day of a month that is at a position, 0: none is."""
        word = self.words[i]
        return int(word) if len(word) < 3 and word.isdecimal() and int(word) < 32 else 0

    def year_at(self, i: int) -> int:
        """Return the year that may be at a position, 0: none is."""
        word = self.words[i]
        return int(word) if len(word) == 4 and word.isdecimal() and int(word) in YEARS else 0

    def is_year(self, i: int) -> bool:
        """Return whether a number of four digits is a year and not an amount."""
        before, after = self.words[i - 1], self.words[i + 1]
        # "2000 million", "$2000", "2000 km" are amounts.
        if after in _SCALES or before in _CURRENCIES or self.read_unit(i, i + 1)[0]:
            return False
        # "2000 people" and "over 2000" are amounts, except behind words such as "in" and "since".
        counted = after.isalpha() and not is_empty_word(after) and not self.capital[i + 1]
        open_end = self.find_bound(i) in ("above", "from", "below", "to", "almost")
        return before in _BEFORE_YEARS or not (counted or open_end)

    def build_years(
        self, i: int, end: int, first: int, last: int, form: str = "point", *day: int
    ) -> tuple[list[Quantity], int]:
        """Return the time from the first to the last year, or a month or a day of one year."""
        month, day_of = (*day, 0, 0)[:2]
        # Days on a scale with 31 days a month and 372 a year: order is all that matters here.
        low = 372 * first + 31 * (month or 1) + (day_of or 1)
        high = 372 * last + 31 * (month or 12) + (day_of or 31)
        # Years before Christ, and spans such as "until 1990", are not read: their direction is
        # open.
        if self.words[end] in ("bc", "bce") or self.find_bound(i) == "none":
            return [], end
        return [self.build_quantity("date", low, high, i, end, form=form)], end

    def read_ordinal(self, i: int) -> tuple[list[Quantity], int]:
        """Return the ordinal at a position with what has that place, or a century."""
        word, end = self.words[i], i + 1
        hyphen = self.words[end] == "-"
        if word.isdecimal() and self.words[end] in _SUFFIXES:
            value, end = float(word), end + 1
        elif word in _ORDINALS:
            value = _ORDINALS[word]
        # "twenty-third" in words
        elif _SMALL.get(word, 0) >= 20 and _ORDINALS.get(self.words[end + hyphen], 10) < 10:
            value, end = _SMALL[word] + _ORDINALS[self.words[end + hyphen]], end + hyphen + 1
        else:
            return [], i
        # The 19th century is 1800 to 1899.
        if self.words[end + (self.words[end] == "-")] == "century":
            return self.build_years(i, end + 1, int(value) * 100 - 100, int(value) * 100 - 1)
        nouns = self.nouns_after(end)
        # Fractions ("a third", "two thirds") and "the third of" are no ordinals of something.
        if not nouns or self.words[end] == "of" or self.words[i - 1] in ("a", "one", "two"):
            return [], end
        return [self.build_quantity("ordinal", value, value, i, end, nouns=nouns)], end

    def read_amount(self, i: int) -> tuple[list[Quantity], int]:
        """Return the number or range at a position with its unit or what is counted."""
        first = self.read_number(i)
        # "few", "several", "until" before it, or "am" and "th" behind it: not a certain amount.
        if first is None or self.find_bound(i) == "none" or self.words[first.end] in _UNREAD:
            return [], first.end if first else i
        unit, end = self.read_unit(i, first.end)
        form, low, high = "point", first.value, first.value
        if second := self.read_range_end(i, end):
            # "3-2" is a result and is skipped: no unit, no noun, and no "to" between.
            other, after = self.read_unit(i, second.end)
            rising = low < second.value
            if (
                not (unit or other or (rising and self.nouns_after(after)))
                and self.words[end] != "to"
            ):
                return [], after  # a result such as 3-2
            # "3 to 5 km", "3 km to 5 km", but not "3 km to 5 hours"
            if rising and (unit is None or unit == other):
                form, high, unit, end = "range", second.value, other, after
        nouns = () if unit else self.nouns_after(end)
        # "aged 40" means years.
        if not unit and self.words[i - 1] in ("aged", "age"):
            unit = _MeasureUnit(*_UNITS["year"])
        # "one" without a unit is mostly a pronoun: "one of them", "this one".
        if self.words[i] == "one" and first.end == i + 1 and not unit:
            return [], i
        kind, factor, offset = unit or _MeasureUnit("count")
        low, high = low * factor + offset, high * factor + offset
        quantity = self.build_quantity(kind, low, high, i, end, form=form, nouns=nouns)
        return [quantity._replace(step=first.step * factor, factor=factor)], end

    def read_range_end(self, i: int, end: int) -> _TextNumber | None:
        """Return the other end of a range, after "to", a dash or, after "between", "and"."""
        joint = self.words[end]
        before = self.words[i - 1 - (self.words[i - 1] in _CURRENCIES)]
        place = end + 1 + (self.words[end + 1] in _CURRENCIES)
        joined = joint in _DASHES or joint == "to" or (joint == "and" and before == "between")
        # The token must begin a number, in digits or in a simple word.
        number = self.words[place][:1].isdecimal() or self.words[place] in _SMALL
        return self.read_number(place) if joined and number else None

    def read_unit(self, i: int, end: int) -> tuple[_MeasureUnit | None, int]:
        """Return the unit at a position, of a number that begins at ``i``, and what is next."""
        # "a 3-mile walk"
        at = end + (self.words[end] == "-" and self.follows_directly(end))
        word, after = self.words[at], self.words[at + 1]
        squared = word in ("square", "sq")
        if money := _CURRENCIES.get(self.words[i - 1]):
            scale = _MONEY_SCALES.get(word, 1.0) if self.follows_directly(at) else 1.0
            unit, at = _MeasureUnit(money, scale), end + (scale > 1)
        elif word in ("°", "degrees", "degree") and after in _DEGREES:
            unit, at = _MeasureUnit("temperature", *_DEGREES[after]), at + 2
        elif word == "per" and after == "cent":
            unit, at = _MeasureUnit("%"), at + 2
        else:
            result = _UNITS.get((after if squared else word).removesuffix("s"))
            # A capital letter is no unit: "3 M" may be anything. The letter's case was folded in
            # ``words``.
            if result is None or (len(word) == 1 and word.isalpha() and self.capital[at]):
                return None, end
            unit, at = _MeasureUnit(*result), at + 1 + squared
            unit = _MeasureUnit("area", unit.factor**2) if squared else unit
        # A rate: "km per hour", "litres a day".
        below = _UNITS.get(self.words[at + 1].removesuffix("s"), ("", 0))
        if self.words[at] in _PER and below[0] == "time":
            return _MeasureUnit(f"{unit.dimension}/time", unit.factor / below[1]), at + 2
        return unit, at

    def find_bound(self, i: int) -> str:
        """Return what the words before a quantity make of it, empty: nothing."""
        i -= self.words[i - 1] in _CURRENCIES
        # The longest phrase first: "no more than" before "more than".
        texts = (" ".join(self.words[max(0, i - n) : i]) for n in (3, 2, 1))
        return next((_BOUNDS[text] for text in texts if text in _BOUNDS), "")

    def build_quantity(
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
        # Words behind the quantity ("40 or more", "40+") win over those before it.
        bound = _BOUNDS_AFTER.get(after, "from" if self.words[end] == "+" else self.find_bound(i))
        dated = kind in ("date", "day")
        # "after" and "before" are for dates, "more than" and the like for amounts; no bound for a
        # range.
        if form != "point" or (
            bound not in ("after", "before", "near") if dated else bound in ("after", "before")
        ):
            bound = ""
        # "more than 40" excludes 40: by one day for a date, by a tiny share otherwise.
        edge = 0.0 if bound in ("from", "to") else 1 if dated else max(abs(high) * 1e-9, 1e-9)
        # "about" means ten percent, or three years of 372 days for a date.
        near = 1100 if dated else abs(high) / 10
        if bound in ("above", "after", "from"):
            low, high, form = high + edge, math.inf, "bound"
        elif bound in ("below", "before", "to"):
            low, high, form = -math.inf, low - edge, "bound"
        elif bound in ("near", "almost"):
            # "almost 40" is below 40, "about 40" on both sides.
            low, high, form = low - near, high + near * (bound == "near"), "about"
        start = self.spans[i - (self.words[i - 1] in _CURRENCIES)][0]
        stop = self.spans[end - 1][1]
        return Quantity(kind, low, high, form, start, stop, i, nouns=nouns)

    def nouns_after(self, i: int) -> tuple[str, ...]:
        """Return the stems of up to three words after a number, up to where its phrase ends."""
        result: list[str] = []
        for word in self.words[i : min(i + 2 * MAX_COUNTED_NOUNS, len(self.spans))]:
            if word not in _SKIPPED:
                if not word[0].isalpha() or is_empty_word(word) or len(result) == MAX_COUNTED_NOUNS:
                    break
                # At most six tokens and three words, up to punctuation or an empty word.
                result.append(stem(word))
        return tuple(result)
