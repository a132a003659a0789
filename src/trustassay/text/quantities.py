"""Reads numbers, dates and quantities in English text.

There are two readings.

* :func:`read_values` reads every number, date and time of day as a value, to tell whether another
  text has the same one at all: "3 pm" is 15:00, "1.5k" is 1,500.
* :func:`read_quantities` reads what is counted or measured, and how exact it is. A quantity is an
  interval in the base unit of its dimension, so that "3 feet" and "0.91 metres", or "more than 40"
  and "46", can be compared. A quantity that cannot be read with certainty is left out.

The time grows linearly with the length of a text.
"""

import math
import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeVar

from trustassay.text.words import MAX_CACHED_CHARACTERS, NUMERALS, is_empty_word, is_negation, stem

# Words for numbers, months and days -------------------------------------------------------------

_NUMBER_WORDS = {word: float(value) for word, value in NUMERALS.items()} | {
    word: 10.0 * n
    for n, word in enumerate("twenty thirty forty fifty sixty seventy eighty ninety".split(), 2)
}
_ORDINALS = {
    word: float(n)
    for n, word in enumerate(
        "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth "
        "thirteenth fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth "
        "twentieth".split(),
        1,
    )
}
MONTHS = (
    "january february march april may june july august september october november december".split()
)
MONTH_NUMBERS = {form: n for n, name in enumerate(MONTHS, 1) for form in (name, name[:3])} | {
    "sept": 9
}
"""Numbers of the months by their names and abbreviations."""
SHORT_MONTHS = frozenset(MONTH_NUMBERS) - frozenset(MONTHS)
"""Abbreviations, which a full stop may follow without ending the sentence: "3 Mar. 2021"."""
WEEKDAYS = "monday tuesday wednesday thursday friday saturday sunday".split()

# Units --------------------------------------------------------------------------------------------

# Singular words by dimension, each with the base units in one of it.
_UNITS_BY_DIMENSION: dict[str, dict[str, float]] = {
    "length": {
        "m": 1, "metre": 1, "meter": 1, "km": 1e3, "kilometre": 1e3, "kilometer": 1e3,
        "cm": 0.01, "centimetre": 0.01, "centimeter": 0.01, "mm": 0.001, "millimetre": 0.001,
        "millimeter": 0.001, "mile": 1609.344, "yard": 0.9144, "foot": 0.3048, "feet": 0.3048,
        "ft": 0.3048, "inch": 0.0254, "inche": 0.0254,
    },
    "mass": {
        "g": 0.001, "gram": 0.001, "gramme": 0.001, "kg": 1, "kilo": 1, "kilogram": 1,
        "kilogramme": 1, "mg": 1e-6, "milligram": 1e-6, "tonne": 1e3, "ounce": 0.02835,
        "oz": 0.02835, "lb": 0.45359, "pound": 0.45359,
    },
    "volume": {
        "litre": 1, "liter": 1, "ml": 0.001, "millilitre": 0.001, "milliliter": 0.001,
        "cl": 0.01,
    },
    "time": {
        "second": 1, "sec": 1, "minute": 60, "min": 60, "hour": 3600, "hr": 3600, "h": 3600,
        "day": 86400, "week": 604800, "fortnight": 1209600, "month": 2629800,
        "year": 31557600, "yr": 31557600, "decade": 315576000,
    },
    "data": {
        "kb": 1e3, "kilobyte": 1e3, "mb": 1e6, "megabyte": 1e6, "gb": 1e9, "gigabyte": 1e9,
        "tb": 1e12, "terabyte": 1e12,
    },
    "area": {"hectare": 1e4, "acre": 4046.86},
    "power": {
        "watt": 1, "kw": 1e3, "kilowatt": 1e3, "mw": 1e6, "megawatt": 1e6, "gw": 1e9,
        "gigawatt": 1e9,
    },
    "length/time": {"mph": 0.44704, "kph": 0.27778, "kmh": 0.27778},
    "%": {"%": 1, "percent": 1, "percentage": 1},
    "points": {"point": 1},
    "USD": {"$": 1, "dollar": 1, "usd": 1},
    "GBP": {"gbp": 1},
    "EUR": {"€": 1, "euro": 1, "eur": 1},
}  # fmt: skip
_UNITS = {
    word: (dimension, factor)
    for dimension, units in _UNITS_BY_DIMENSION.items()
    for word, factor in units.items()
}

# Values -----------------------------------------------------------------------------------------

_MONTH = rf"(?P<month>(?:{'|'.join(MONTH_NUMBERS)})\b\.?)"
_DAY = r"(?P<day>[0-3]?\d)(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>[12]\d{3})"
_DATES = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        # 2021-03-05, 2021/3/5; of 2021-03-05T10:00 the time is left, to be read as one
        r"(?<!\d)(?P<year>[12]\d{3})[-/.](?P<month>[01]?\d)[-/.](?P<day>[0-3]?\d)"
        r"(?:t(?=\d\d:\d\d)|(?:t[\d:.]+z?)?(?![\d-]))",
        # 3/5/2021 or 03.05.21: either number may be the day
        r"(?<![\d.])(?P<first>[0-3]?\d)[-/.](?P<second>[0-3]?\d)[-/.](?P<year>[12]\d{3}"
        r"|\d\d)(?![\d.]\d)",
        # the 3rd of March 2021, 3 March
        rf"(?<!\d)(?:the )?{_DAY}(?: of)?[ -]{_MONTH}(?:,?[ -]{_YEAR})?(?!\d)",
        # March 3, 2021; but not "March 3.5"
        rf"\b{_MONTH} (?:the )?{_DAY}(?!\d|[:.,]\d)(?:,?(?: of)? {_YEAR})?(?!\d)",
        # March 2021
        rf"\b{_MONTH},?(?: of)? {_YEAR}(?!\d)",
    )
]
_TIME = re.compile(
    # 3 pm, 3:30 p.m.
    r"(?<![\d.,])(?P<hour>[01]?\d"
    r"|2[0-4])(?:[:.h](?P<minute>[0-5]\d)(?::[0-5]\d)?)?\s?(?P<half>[ap]\.?\s?m\b\.?)"
    # half past nine, quarter to 10
    r"|\b(?P<part>half|quarter) (?P<side>past|to) (?P<spoken>\w+)\b"
    # 15:30, 15:30:00
    r"|(?<![\d:.,])(?P<hour24>[01]?\d|2[0-4]):(?P<minute24>[0-5]\d)(?::[0-5]\d)?(?![\d:])"
    r"|\b(?P<word>noon|midday|midnight)\b",
    re.IGNORECASE,
)
MAX_DIGITS = 18
"""Digits of a number; longer ones are codes."""
_VALUE_SCALES = {
    "one": 1.0, "dozen": 12, "hundred": 1e2, "thousand": 1e3, "k": 1e3, "million": 1e6, "mn": 1e6,
    "mio": 1e6, "m": 1e6, "billion": 1e9, "bn": 1e9, "b": 1e9, "trillion": 1e12, "tn": 1e12,
    "lakh": 1e5, "crore": 1e7,
}  # fmt: skip
_LARGE = frozenset("hundred thousand million billion trillion".split())
MAX_SPELLED_ORDINAL = 12
"""The largest ordinal in words that counts as a value."""
_SHARES = {
    "half": (0.5, 50.0, 2.0), "quarter": (0.25, 25.0, 4.0), "double": (2.0,), "twice": (2.0,),
    "triple": (3.0,), "thrice": (3.0,), "dozen": (12.0,), "decade": (10.0,), "century": (100.0,),
    "once": (1.0,), "single": (1.0,), "both": (2.0,), "pair": (2.0,), "couple": (2.0,),
    "fortnight": (14.0, 2.0),
}  # fmt: skip
"""Numbers that a word may stand for: "half" is 0.5, 50 (percent) or one of 2."""
# What may stand behind "98. 7", so that it is one number.
_SHARE_OR_UNIT = (
    rf"(?= ?%| (?:per cent|million|billion|trillion|{'|'.join(filter(str.isalpha, _UNITS))})s?\b)"
)
# A comma and a space part two numbers behind the name of a month ("May 5, 300 people") and in a
# list ("98, 99, 100").
_NO_LIST = (
    "".join(rf"(?<!\b{name} )(?<!\b{name}\. )(?<!\b{name} \. )" for name in MONTH_NUMBERS)
    + r"(?<!\d,)(?<!\d, )(?<!\d , )(?<!\d )(?<!\d[-–/:])"
)
_DIGITS = (
    # 1,000.5 and 1,000
    r"\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?"
    # 1.000.000,50 and 1.000,50 and 1.000.000, as most of Europe writes them
    r"|\d{1,3}(?:\.\d{3})+,\d{1,2}(?![\d,])|\d{1,3}(?:\.\d{3}){2,}(?![\d.]\d)"
    # 1 000 000, with a space of any width
    r"|(?<!\d[ \u00a0\u202f])\d{1,3}(?:[ \u00a0\u202f]\d{3})+(?![ \u00a0\u202f]?\d)(?:\.\d+)?"
    # 235, 000 and 235 , 000, as tokenisers part it
    rf"|(?=\d){_NO_LIST}\d{{1,3}}(?: ?, \d{{3}})+(?!\.?\d| ?, ?\d|[-–/:]| and \d)"
    # 98. 7 percent
    rf"|\d{{1,3}}\. \d{{1,2}}(?![\d.,/:-]){_SHARE_OR_UNIT}"
    # 3,5 and 3.5 and 3
    r"|\d+,\d{1,2}(?![\d,])|\d+(?:\.\d+)?"
)
"""Digits with separators of either convention and with the spaces of tokenised texts."""
_COMMA_DECIMALS = re.compile(r"[\d.]*,\d{1,2}")


def _plain_digits(digits: str) -> str:
    """Return a match of ``_DIGITS`` with nothing but digits and a decimal point."""
    if _COMMA_DECIMALS.fullmatch(digits):
        return digits.replace(".", "").replace(",", ".")
    if digits.count(".") > 1:
        return digits.replace(".", "")
    return re.sub(r"[,\s]", "", digits)


# A sign, a currency, digits, and a scale ("million") or its letter ("5k"). Not behind a letter and
# a hyphen: "A-4".
_NUMBER = re.compile(
    r"(?<!\w)(?<!\d[.,])(?<![A-Za-z]-)(?P<sign>(?<!\d)[-+](?=[$€£]?\d))?[$€£]?"
    rf"(?P<digits>{_DIGITS})"
    r"(?:\s?(?P<scale>hundred|thousand|million|billion|trillion|mn|mio|bn|tn|dozen|lakh|crore)\b"
    r"|(?P<letter>[kmb])(?![\w/]))?",
    re.IGNORECASE,
)
# "3/4", "2 1/2": denominators from 2 to 16, so that dates and scores are no fractions.
_FRACTION = re.compile(
    r"(?<![\w/.,])(?:(?P<whole>\d{1,3})[ -])?(?P<over>\d{1,2})/(?P<under>[2-9]|1[0-6])(?![\w/])"
)
_WORD = re.compile(r"[a-z]+", re.IGNORECASE)


class TextValue(NamedTuple):
    """A number, date or time of day that a text states."""

    kind: str
    """``number``, ``date`` or ``time``."""
    numbers: tuple[float, ...]
    """The number; or year, month and day, with 0 for what is missing; or the minute of the day. A
    time without am or pm gives two values."""
    start: int
    """Offset of its first character."""
    end: int
    """Offset behind its last character."""
    step: float = 0.0
    """Half of the unit of a number's last digit: 0.5 for "46", 0.05 for "4.6"."""


def read_values(text: str) -> list[TextValue]:
    """Return the values of a folded text in order; numbers in words are included."""
    values: list[TextValue] = []
    # One flag for each character that belongs to a date, a time or a fraction: the digits in it are
    # no numbers by themselves. Dates come first, since "2021-03-05T10:00" has
    # a time in it.
    occupied = bytearray(len(text))
    for kind, readings in (("date", _find_dates(text)), ("time", _find_times(text))):
        for start, end, readings_here in readings:
            if not any(occupied[start:end]):
                occupied[start:end] = b"\1" * (end - start)
                values += [TextValue(kind, reading, start, end) for reading in readings_here]
    fractions = list(_find_fractions(text))
    for value in fractions:
        occupied[value.start : value.end] = b"\1" * (value.end - value.start)
    plain = (*_find_numbers(text), *_find_number_words(text))
    values += [
        *fractions,
        *(value for value in plain if not any(occupied[value.start : value.end])),
    ]
    return sorted(values, key=lambda value: value.start)


def spell_dates(text: str) -> str:
    """Return a text with full dates as ``3 March 2021`` and times with am or pm as ``15:00``.

    A date stays as it is where the day and the month cannot be told apart.
    """
    changes = []
    if _MAY_BE_DATE.search(text):
        for start, end, days in _find_dates(text):
            # Several readings: 3/5/2021 is in March or in May.
            (year, month, day), *other_readings = days
            if not other_readings and year and day:
                spelled = f"{day:.0f} {MONTHS[int(month) - 1].title()} {year:.0f}"
                # The "T" of 2021-03-05T10:00 parts the date from its time.
                spelled += " " * (text[end - 1] in "tT")
                changes.append((start, end, spelled))
    for match in _TIME.finditer(text):
        if match["half"]:
            hour = int(match["hour"]) % 12 + 12 * (match["half"][0] in "pP")
            changes.append((*match.span(), f"{hour}:{match['minute'] or '00'}"))
    result, next_start = text, len(text)
    # From the end, so that earlier offsets stay valid; the longest of those with the same start is
    # first, and any that overlaps with it is left out.
    for start, end, spelled in sorted(changes, key=lambda change: (-change[0], change[1])):
        if end <= next_start:
            result, next_start = f"{result[:start]}{spelled}{result[end:]}", start
    return result


_MAY_BE_DATE = re.compile(
    rf"\d[-/.]\d|\b{_MONTH.replace('?P<month>', '?:')} ?\d|\d(?:st|nd|rd"
    rf"|th)?(?: of)? {_MONTH.replace('?P<month>', '?:')}",
    re.IGNORECASE,
)


def read_values_of_words(text: str) -> Iterator[float]:
    """Yield the values of words such as "half", "twice" and "third"."""
    for match in _WORD.finditer(text):
        word = match[0].lower()
        yield from _SHARES.get(word, ())
        if _ORDINALS.get(word, math.inf) <= MAX_SPELLED_ORDINAL:
            yield _ORDINALS[word]


def _find_dates(text: str) -> Iterator[tuple[int, int, list[tuple[float, ...]]]]:
    if not any(map(str.isdigit, text)):
        return
    for pattern in _DATES:
        for match in pattern.finditer(text):
            groups = match.groupdict()
            year = int(groups.get("year") or 0)
            # The pattern for numbers alone, in which the year may have two digits.
            if "first" in groups:
                # Two digits: 00 to 49 are of this century, 50 to 99 of the last one.
                year += 2000 * (year < 50) + 1900 * (50 <= year < 100)
                pair = int(groups["first"]), int(groups["second"])
                # Both orders, once only where they are equal.
                days = [(year, month, day) for day, month in {pair, pair[::-1]}]
            else:
                name = (groups["month"] or "").lower().rstrip(".")
                if groups["month"] == "may":
                    continue  # "5 may reapply"
                month = int(name) if name.isdigit() else MONTH_NUMBERS[name[:3]]
                days = [(year, month, int(groups.get("day") or 0))]
            good: list[tuple[float, ...]] = [
                candidate
                for candidate in days
                if candidate[1] in range(1, 13) and candidate[2] < 32
            ]
            if good:
                yield match.start(), match.end(), good


def _find_times(text: str) -> Iterator[tuple[int, int, list[tuple[float, ...]]]]:
    for match in _TIME.finditer(text):
        if match["word"]:
            # Midnight is the start or the end of a day.
            minutes = [0, 24 * 60] if match["word"].lower() == "midnight" else [12 * 60]
        elif match["part"]:
            minutes = _read_spoken_time(match["part"], match["side"], match["spoken"])
            if not minutes:
                continue
        elif match["half"]:
            hour = int(match["hour"]) % 12 + 12 * (match["half"][0] in "pP")
            minutes = [hour * 60 + int(match["minute"] or 0)]
        else:
            minutes = _minutes_of_both_halves(int(match["hour24"]), int(match["minute24"]))
        yield match.start(), match.end(), [(float(minute),) for minute in minutes]


def _minutes_of_both_halves(hour: int, minute: int) -> list[int]:
    """Return the minutes of the day that a time without am or pm may mean."""
    minutes = hour * 60 + minute
    return [minutes, minutes + 12 * 60] if 0 < hour < 12 else [minutes]


def _read_spoken_time(part: str, side: str, spoken: str) -> list[int]:
    """Return the minutes of the day for "half past nine"; none if the hour is not a number."""
    hour = float(spoken) if spoken.isdigit() else _NUMBER_WORDS.get(spoken.lower(), 0.0)
    if not 0 < hour < 13:
        return []
    minutes = 30 if part.lower() == "half" else 15
    if side.lower() == "to":
        hour, minutes = (hour - 1) or 12, 60 - minutes
    return _minutes_of_both_halves(int(hour), minutes)


def _find_fractions(text: str) -> Iterator[TextValue]:
    for match in _FRACTION.finditer(text):
        value = int(match["whole"] or 0) + int(match["over"]) / int(match["under"])
        yield TextValue("number", (value,), match.start(), match.end())


def _find_numbers(text: str) -> Iterator[TextValue]:
    for match in _NUMBER.finditer(text):
        digits = _plain_digits(match["digits"])
        if len(digits) > MAX_DIGITS:
            continue
        # A currency sign before the digits is not part of the value.
        start, end = match.start("sign" if match["sign"] else "digits"), match.end()
        # "50m" may be metres or millions, "5b" a section.
        scales = [_VALUE_SCALES[(match["scale"] or match["letter"] or "one").lower()]]
        scales += [1.0] if match["letter"] and match["letter"] in "mMbB" else []
        for scale in scales:
            step = 0.5 * 10.0 ** -len(digits.partition(".")[2]) * scale
            value = float(digits) * scale * (-1 if match["sign"] == "-" else 1)
            yield TextValue("number", (value,), start, end, step)


def _find_number_words(text: str) -> Iterator[TextValue]:
    """Yield numbers that are spelled: "twenty-five", "three hundred and two thousand"."""
    reader = _QuantityReader(text)
    i = 0
    while i < len(reader.spans):
        word = reader.words[i]
        number = reader.read_number(i) if word in _NUMBER_WORDS or word in ("a", "half") else None
        # Of words for a share, :func:`read_values_of_words` gives the values.
        if number is None or (word == "a" and reader.words[i + 1] not in _LARGE):
            i += 1
            continue
        start, end = reader.spans[i][0], reader.spans[number.end - 1][1]
        yield TextValue("number", (number.value,), start, end, number.step)
        i = number.end


# Quantities -------------------------------------------------------------------------------------

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
    ``count``, ``ordinal``, ``age`` and so on."""
    low: float
    """Lower bound in the base unit; minus infinity where it is open."""
    high: float
    """Upper bound in the base unit; infinity where it is open."""
    form: str
    """``point``, ``range`` (both ends are stated), ``bound`` ("more than"), ``about``, or
    ``period`` for the time of something else ("in the past year")."""
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
    """Stems of the words for what is counted, or of what a date is an attribute of: "the 1994
    film"."""
    neighbour: str = ""
    """Stem of the nearest content word before it in its sentence, else behind it."""
    subject: frozenset[str] = frozenset()
    """Stems of the names in its clause, else in the nearest clause of the sentence with names."""


class TextQuantities(NamedTuple):
    """The quantities of a text and its other content words."""

    quantities: tuple[Quantity, ...]
    """In reading order."""
    by_sentence: dict[int, list[Quantity]]
    """The same by the number of their sentence."""
    places: dict[str, list[int]]
    """By stem, the indices of the tokens that have it, ascending."""
    sentences: list[int]
    """By token, the number of its sentence."""
    negated: frozenset[int]
    """Numbers of the sentences with a negation."""


_SCALES = {
    "dozen": 12, "hundred": 100, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12,
    "mn": 1e6, "bn": 1e9, "tn": 1e12,
}  # fmt: skip
_CELSIUS, _FAHRENHEIT = (1.0, 0.0), (0.5555555556, -17.7777777778)
_DEGREES = {"celsius": _CELSIUS, "c": _CELSIUS, "fahrenheit": _FAHRENHEIT, "f": _FAHRENHEIT}
"""By name, factor and offset to degrees Celsius."""
_BOUNDS = {
    phrase: bound
    for bound, phrases in {
        "above": "more than, greater than, higher than, longer than, older than, larger than, "
        "over, above, exceeding, exceeds, exceeded, exceed",
        "from": "at least, no less than, no fewer than, not less than, not fewer than, minimum of",
        "below": "fewer than, less than, lower than, shorter than, younger than, smaller than, "
        "under, below",
        "to": "up to, at most, no more than, not more than, maximum of, as many as, as much as",
        "near": "about, around, approximately, roughly, some, circa, ca, approx, ~, close to, "
        "estimated",
        "almost": "nearly, almost",
        "after": "after",
        "before": "before, prior to",
        "open": "by, until, till, since",
        "none": "several, few, many",
    }.items()
    for phrase in phrases.split(", ")
}
"""Words before a quantity that make it an interval.

After those of "none" it is not read; after those of "open" a date is not.
"""
_BOUNDS_AFTER = {
    **dict.fromkeys(("or more", "or older", "or above"), "from"),
    **dict.fromkeys(("or less", "or fewer", "or below"), "to"),
}
"""Words after it."""
_BEFORE_YEARS = frozenset(
    "in since the from by until till during early late mid of after before year a an his her its "
    "their and to for ( , - – —".split()
)
"""What a year may follow, even where a word in small letters comes next."""
_SKIPPED = frozenset("of the these those its his her their our other more different - – —".split())
"""What is left out between a number and what is counted."""
_CURRENCIES = {"$": "USD", "us$": "USD", "us $": "USD", "£": "GBP", "€": "EUR"}
# "$3m", "$20k": the letter directly behind the number.
_MONEY_SCALES = {"m": 1e6, "k": 1e3, "b": 1e9}
_SUFFIXES = frozenset(("st", "nd", "rd", "th"))
_DASHES, _GLUED = frozenset("-–—"), frozenset("/.,#_:")
_PER = frozenset(("per", "/", "a", "an", "each", "every"))
_BEFORE_DIGITS = frozenset((*MONTH_NUMBERS, *_BOUNDS))
_UNREAD = frozenset((*_ORDINALS, *_NUMBER_WORDS, *_SUFFIXES, "am", "pm"))
"""Words after a number by which it is a time of day, a fraction or part of an ordinal."""
# Words at which a quantity in words may begin: "twenty", "third", "a dozen", "half a million".
_STARTS = frozenset((*_NUMBER_WORDS, *_ORDINALS, "a", "half"))
# Numbers of notes ("[1, 4]"), currency signs, numbers, words with apostrophes, single characters of
# punctuation, and line ends (which end a sentence).
_TOKEN = re.compile(
    rf"\[\d+(?: ?[-–,] ?\d+)*\]|(?:\bus ?)?[$£€]|{_DIGITS}|[^\W\d_]+(?:['’][^\W\d_]+)?|[^\w\s]|\n",
    re.IGNORECASE,
)
_GOES_ON = re.compile(r"[.,:_]\d| ?/ ?\d")
"""Behind digits that are part of a larger number, a time of day or a fraction: ":30", "/4"."""
_CLAUSE_ENDS = frozenset(", ; : ( ) – — - and but while whereas with than".split())
_ENDS = re.compile(r"\s*(?:[.;,)!?]|$)")
"""Behind a number without a noun."""
_COUNTED = frozenset(("count", "points", "%", "USD", "GBP", "EUR"))
"""Dimensions that a later number of the sentence may leave out."""
_PERIODS = frozenset("past last previous next coming this".split())
_PERIOD_SECONDS = _UNITS_BY_DIMENSION["time"] | {"quarter": 7889400}
_DETERMINERS = frozenset("a an the this that its his her their our".split())
_ERAS = frozenset(("bc", "bce", "ad", "ce"))
_MONTHS_IN_CAPITALS = frozenset(("may", "march", "mar"))
"""Months that are words of another meaning in small letters."""
_MAYBE = re.compile(
    rf"\d|\b(?:{'|'.join((*_NUMBER_WORDS, *_SCALES, *_ORDINALS))})\b", re.IGNORECASE
)


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


_Item = TypeVar("_Item")


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
                number += len(self.words[i - 1]) > 1 and self.words[i - 1] not in MONTH_NUMBERS

    def read_text(self) -> TextQuantities:
        """Return what the text has."""
        result: list[Quantity] = []
        places: dict[str, list[int]] = {}
        i = 0
        while i < len(self.spans):
            word = self.words[i]
            digits = word[0].isdecimal()
            if digits or word in _STARTS or self.month_at(i) or self.is_period(i):
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
        quantities = tuple(self.complete(result, places))
        by_sentence: dict[int, list[Quantity]] = {}
        for quantity in quantities:
            by_sentence.setdefault(self.sentences[quantity.place], []).append(quantity)
        return TextQuantities(quantities, by_sentence, places, self.sentences, negated)

    def read_quantity(self, i: int, digits: bool) -> tuple[list[Quantity], int]:
        """Return what begins at a position, and the next position: ``i`` where nothing does."""
        if digits and self.is_code(i):
            return [], i + 1
        if self.is_period(i):
            seconds = _PERIOD_SECONDS[self.words[i]]
            return [self.build_quantity("time", seconds, seconds, i, i + 1, form="period")], i + 1
        # Dates first: "3 March" would otherwise be an amount of three.
        for read_part in (self.read_date, self.read_ordinal, self.read_amount):
            quantities, end = read_part(i)
            if end > i:
                return quantities, end
        return [], i

    def is_period(self, i: int) -> bool:
        """Return whether a unit of time follows "past" and the like: "in the past year"."""
        return self.words[i - 1] in _PERIODS and self.words[i] in _PERIOD_SECONDS

    def follows_directly(self, i: int) -> bool:
        """Return whether a token follows the one before it without a space."""
        return 0 < i < len(self.spans) and self.spans[i - 1][1] == self.spans[i][0]

    def is_code(self, i: int) -> bool:
        """Return whether digits are part of a name, a version, a fraction, a time or a list."""
        before, end = self.words[i - 1], self.spans[i][1]
        # The conditions in order: too long; followed by ".5", ":30" or "/4"; the number of a list
        # item ("1. "); a year before Christ; behind a capitalised word ("Route 66",
        # "Boeing 747"); glued to a word or sign ("v2", "#3"); behind a hyphenated word
        # ("covid-19").
        first = i == 0 or self.sentences[i - 1] != self.sentences[i]
        behind_name = not first and self.capital[i - 1] and before not in _CURRENCIES
        hyphenated = (
            before in _DASHES and self.follows_directly(i - 1) and self.words[i - 2] != "mid"
        )
        return (
            len(self.words[i]) > MAX_NUMBER_CHARACTERS
            or _GOES_ON.match(self.text, end) is not None
            or (first and self.text[end : end + 1] == ".")
            or self.words[i + 1] in _ERAS
            or (
                behind_name
                and not is_empty_word(before)
                and before not in _BEFORE_DIGITS
                and not self.month_at(i + 1)
            )
            or (self.follows_directly(i) and (before.isalpha() or before in _GLUED))
            or before == "/"
            or (self.follows_directly(i) and hyphenated and self.words[i - 2].isalpha())
        )

    def read_number(self, i: int) -> _TextNumber | None:
        """Return the number, in digits or words, that begins at a position."""
        word = self.words[i]
        if word[:1].isdecimal():
            # The step is half of the last significant digit: 0.5 for "46", 0.05 for "4.6", 500 for
            # "12,000".
            plain = _plain_digits(word)
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
            small, scale = _NUMBER_WORDS.get(word), _SCALES.get(word)
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
                break
            end += 1 + joined
        if end == i:
            return None
        if self.words[end : end + 3] == ["and", "a", "half"]:
            # "two and a half", "two and a half million"
            scale = _SCALES.get(self.words[end + 3], 1.0)
            number = min((total + current + 0.5) * scale, MAX_NUMBER)
            return _TextNumber(number, 0.5 * scale, end + 3 + (scale > 1))
        return _TextNumber(total + current, step, end)

    def read_date(self, i: int) -> tuple[list[Quantity], int]:
        """Return a date, a year, a decade, or a span of years such as 1914-18."""
        # Day before the month: "3 March", "the 3rd of March".
        day = self.day_at(i)
        end = i + (1 + (self.words[i + 1] in _SUFFIXES) if day else 0)
        end += day > 0 and self.words[end] == "of"
        month, year = self.month_at(end), self.year_at(i)
        if iso := _DATES[0].match(self.text, self.spans[i][0]):
            # 2021-03-05
            year, month, day = (int(iso[name]) for name in ("year", "month", "day"))
            if month not in range(1, 13) or day not in range(1, 32):
                return [], i
            end = i + 5
        elif month:
            end += 1 + (self.words[end + 1] == "." and self.words[end] in SHORT_MONTHS)
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

    def month_at(self, i: int) -> int:
        """Return the number of the month whose name is at a position, 0: none is."""
        word = self.words[i]
        # "may" and "march" are verbs in small letters.
        return (
            0 if word in _MONTHS_IN_CAPITALS and not self.capital[i] else MONTH_NUMBERS.get(word, 0)
        )

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
        if self.words[end] in ("bc", "bce") or self.find_bound(i) == "open":
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
        elif _NUMBER_WORDS.get(word, 0) >= 20 and _ORDINALS.get(self.words[end + hyphen], 10) < 10:
            value, end = _NUMBER_WORDS[word] + _ORDINALS[self.words[end + hyphen]], end + hyphen + 1
        else:
            return [], i
        # The 19th century is 1800 to 1899.
        if self.words[end + (self.words[end] == "-")] == "century":
            return self.build_years(i, end + 1, int(value) * 100 - 100, int(value) * 100 - 1)
        nouns = self.nouns_after(end)
        # Fractions ("two thirds", "a third last year") and "the third of" are no ordinals of
        # something.
        fraction = self.words[i - 1] in ("one", "two") or self.words[end] in ("of", *_PERIODS)
        if not nouns or fraction:
            return [], end
        return [self.build_quantity("ordinal", value, value, i, end, nouns=nouns)], end

    def read_amount(self, i: int) -> tuple[list[Quantity], int]:
        """Return the number or range at a position with its unit or what is counted."""
        first = self.read_number(i)
        if first is None:
            return [], i
        # "few" or "several" before it, "am" or "th" behind it, and words for numbers in a row
        # ("twelve fifty"): not a certain amount.
        in_row = self.words[i - 1] in _NUMBER_WORDS and self.words[i] in _NUMBER_WORDS
        if in_row or self.find_bound(i) == "none" or self.words[first.end] in _UNREAD:
            return [], first.end
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
        age = self.is_age(i, end, unit)
        if age:
            # "aged 40" means years.
            unit = (unit or _MeasureUnit(*_UNITS["year"]))._replace(dimension="age")
        # "one" without a unit is mostly a pronoun: "one of them", "this one".
        if self.words[i] == "one" and first.end == i + 1 and not unit:
            return [], i
        kind, factor, offset = unit or _MeasureUnit("count")
        low, high = low * factor + offset, high * factor + offset
        quantity = self.build_quantity(kind, low, high, i, end, form=form, nouns=nouns)
        return [quantity._replace(step=first.step * factor, factor=factor)], end

    def is_age(self, i: int, end: int, unit: _MeasureUnit | None) -> bool:
        """Return whether an amount is an age: "aged 40", "Ann, 40,", "40 - year - old"."""
        if unit:
            after = end + (self.words[end] == "-")
            return unit.dimension == "time" and self.words[after] in ("old", "olds")
        before = self.words[i - 1] if self.words[i - 1] != "of" else self.words[i - 2]
        behind_name = before == "," and i > 1 and self.capital[i - 2]
        return before in ("aged", "age") or (behind_name and self.words[end] in (",", "."))

    def read_range_end(self, i: int, end: int) -> _TextNumber | None:
        """Return the other end of a range, after "to", a dash or, after "between", "and"."""
        joint = self.words[end]
        before = self.words[i - 1 - (self.words[i - 1] in _CURRENCIES)]
        place = end + 1 + (self.words[end + 1] in _CURRENCIES)
        joined = joint in _DASHES or joint == "to" or (joint == "and" and before == "between")
        # The token must begin a number, in digits or in a simple word.
        number = self.words[place][:1].isdecimal() or self.words[place] in _NUMBER_WORDS
        return self.read_number(place) if joined and number else None

    def read_unit(self, i: int, end: int) -> tuple[_MeasureUnit | None, int]:
        """Return the unit at a position, of a number that begins at ``i``, and what is next."""
        # "a 3-mile walk", "a 3 - mile walk"
        at = end + (self.words[end] == "-")
        word, after = self.words[at], self.words[at + 1]
        if at > end and not self.follows_directly(end) and len(word) < 3:
            return None, end
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
        # "before the 1990s"
        i -= self.words[i - 1] in ("the", "a", "an") and self.words[i - 2] in _BOUNDS
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
        before = self.words[i - 1]
        if kind == "date" and before in _DETERMINERS and form == "point":
            nouns = self.nouns_after(end)
        start = self.spans[i - (self.words[i - 1] in _CURRENCIES)][0]
        stop = self.spans[end - 1][1]
        return Quantity(kind, low, high, form, start, stop, i, nouns=nouns)

    def complete(
        self, quantities: list[Quantity], places: dict[str, list[int]]
    ) -> Iterator[Quantity]:
        """Yield quantities with their subject and neighbour, and a count without a noun as another.

        "Leeds have 28 points, with Sheffield on 27": 27 points. The other quantity must be before
        it in the same sentence, and only punctuation may follow the number.
        """
        words = sorted((i, word) for word, indices in places.items() for i in indices)
        names = self.find_names()
        before: Quantity | None = None
        for quantity in quantities:
            i = quantity.place
            if before and self.sentences[before.place] != self.sentences[i]:
                before = None
            bare = quantity.dimension == "count" and not quantity.nouns
            result = quantity._replace(
                subject=self.nearest_in_sentence(i, names, frozenset()),
                neighbour=self.nearest_in_sentence(i, words, ""),
            )
            if before and bare and _ENDS.match(self.text, quantity.end):
                result = result._replace(
                    dimension=before.dimension,
                    low=quantity.low * before.factor,
                    high=quantity.high * before.factor,
                    step=quantity.step * before.factor,
                    factor=before.factor,
                    nouns=before.nouns,
                )
            if result.dimension in _COUNTED:
                before = result
            yield result

    def find_names(self) -> list[tuple[int, frozenset[str]]]:
        """Return, for each clause with names, the index of its first token and the stems of these.

        Names are words with a capital that are no function words, months or bounds.
        """
        result: list[tuple[int, frozenset[str]]] = []
        start = 0
        for i, capital in enumerate(self.capital):
            word = self.words[i]
            if word in _CLAUSE_ENDS or (i and self.sentences[i - 1] != self.sentences[i]):
                start = i
            if capital and not is_empty_word(word) and word not in _BEFORE_DIGITS:
                same = bool(result) and result[-1][0] == start
                names = result.pop()[1] if same else frozenset()
                result.append((start, names | {stem(word)}))
        return result

    def nearest_in_sentence(
        self, i: int, items: Sequence[tuple[int, _Item]], nothing: _Item
    ) -> _Item:
        """Return the last item before a token in its sentence, else the first one behind it.

        Args:
            i: index of the token.
            items: values with the indices of their tokens, ascending.
            nothing: the result where the sentence has none.
        """
        k = bisect_left(items, i, key=lambda item: item[0])
        for index, value in (*items[max(k - 1, 0) : k], *items[k : k + 1]):
            if self.sentences[index] == self.sentences[i]:
                return value
        return nothing

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
