"""Reads numbers, dates and times of day in a text as values: "3 pm" is 15:00, "1.5k" is 1,500.

:mod:`trustassay.text.quantities` reads the meaning of quantities, so that they can be compared.
This module reads every number, to tell whether another text has the same number at all.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from trustassay.text.words import NUMERALS

MONTHS = (
    "january february march april may june july august september october november december".split()
)
_MONTH_NUMBERS = {name[:length]: n for n, name in enumerate(MONTHS, 1) for length in (3, 9)}
_MONTH = rf"(?P<month>(?:{'|'.join(MONTHS)}|{'|'.join(name[:3] for name in MONTHS)}|sept)\b\.?)"
_DAY = r"(?P<day>[0-3]?\d)(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>[12]\d{3})"
_DATES = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        # 2021-03-05, 2021/3/5, 2021-03-05T10:00
        r"(?<!\d)(?P<year>[12]\d{3})[-/.](?P<month>[01]?\d)[-/.](?P<day>[0-3]?\d)(?:t[\d:.]+z?)?(?![\d-])",
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
_SCALES = {
    "one": 1.0, "dozen": 12, "hundred": 1e2, "thousand": 1e3, "k": 1e3, "million": 1e6, "mn": 1e6,
    "mio": 1e6, "m": 1e6, "billion": 1e9, "bn": 1e9, "b": 1e9, "trillion": 1e12, "tn": 1e12,
    "lakh": 1e5, "crore": 1e7,
}  # fmt: skip
_LARGE = frozenset("hundred thousand million billion trillion".split())
_TENS = {
    word: 10.0 * n
    for n, word in enumerate("twenty thirty forty fifty sixty seventy eighty ninety".split(), 2)
}
_SMALL = {word: float(value) for word, value in NUMERALS.items()}
_ORDINALS = {
    word: float(n)
    for n, word in enumerate(
        "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth".split(),
        1,
    )
}
_SHARES = {
    "half": (0.5, 50.0, 2.0), "quarter": (0.25, 25.0, 4.0), "double": (2.0,), "twice": (2.0,),
    "triple": (3.0,), "thrice": (3.0,), "dozen": (12.0,), "decade": (10.0,), "century": (100.0,),
    "once": (1.0,), "single": (1.0,), "both": (2.0,), "pair": (2.0,), "couple": (2.0,),
    "fortnight": (14.0, 2.0),
}  # fmt: skip
"""Numbers that a word may stand for: "half" is 0.5, 50 (percent) or one of 2."""
# A sign, a currency, digits with separators of either convention ("1,000.5", "1 000", "1.000,50",
# "3,5"), and a scale ("million") or its letter ("5k"). Not behind a letter and a hyphen: "A-4".
_NUMBER = re.compile(
    r"(?<!\w)(?<!\d[.,])(?<![A-Za-z]-)(?P<sign>(?<!\d)[-+](?=[$€£]?\d))?[$€£]?"
    r"(?P<digits>\d{1,3}(?:[, ]\d{3})+(?![\d])(?:\.\d+)?|\d{1,3}(?:\.\d{3})+,\d{1,2}(?!\d)"
    r"|\d+,\d{1,2}(?![\d,])|\d+(?:\.\d+)?)"
    r"(?:\s?(?P<scale>hundred|thousand|million|billion|trillion|mn|mio|bn|tn|dozen|lakh|crore)\b"
    r"|(?P<letter>[kmb])(?![\w/]))?",
    re.IGNORECASE,
)
_COMMA_DECIMALS = re.compile(r".*,\d{1,2}")
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


def values_of_words(text: str) -> Iterator[float]:
    """Yield the values of words such as "half", "twice" and "third"."""
    for match in _WORD.finditer(text):
        word = match[0].lower()
        yield from _SHARES.get(word, ())
        if word in _ORDINALS:
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
                month = int(name) if name.isdigit() else _MONTH_NUMBERS[name[:3]]
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
    hour = float(spoken) if spoken.isdigit() else _SMALL.get(spoken.lower(), 0.0)
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
        digits = match["digits"]
        if _COMMA_DECIMALS.fullmatch(digits):  # as most of Europe writes them: 1.500,00
            digits = digits.replace(".", "").replace(",", ".")
        digits = re.sub("[, ]", "", digits)
        if len(digits) > MAX_DIGITS:
            continue
        # A currency sign before the digits is not part of the value.
        start, end = match.start("sign" if match["sign"] else "digits"), match.end()
        # "50m" may be metres or millions, "5b" a section.
        scales = [_SCALES[(match["scale"] or match["letter"] or "one").lower()]]
        scales += [1.0] if match["letter"] and match["letter"] in "mMbB" else []
        for scale in scales:
            step = 0.5 * 10.0 ** -len(digits.partition(".")[2]) * scale
            value = float(digits) * scale * (-1 if match["sign"] == "-" else 1)
            yield TextValue("number", (value,), start, end, step)


def _continues_number(number: float, value: float) -> bool:
    """Whether a number in words continues with one below a hundred: "hundred thirty"."""
    tens = number % 100
    return number > 0 and (tens == 0 or (value < 10 and tens >= 20 and number % 10 == 0))


def _find_number_words(text: str) -> Iterator[TextValue]:
    """Yield numbers that are spelled: "twenty-five", "three hundred and two thousand"."""
    words = [(match[0].lower(), match.start(), match.end()) for match in _WORD.finditer(text)]
    place = 0
    while place < len(words):
        # The same scheme as in ``quantities``: ``current`` is the part below the next scale of
        # 1,000.
        total = current = 0.0
        start, step = place, 0.5
        while place < len(words):
            word = words[place][0]
            # Only spaces and hyphens may stand between the words of a number.
            if place > start and text[words[place - 1][2] : words[place][1]].strip(" -"):
                break
            value = _SMALL.get(word, _TENS.get(word))
            following = words[place + 1][0] if place + 1 < len(words) else ""
            if word == "a" and place == start and following in _LARGE:
                value = 1.0  # "a thousand"
            if value is not None and (place == start or _continues_number(total + current, value)):
                current += value
            # Scale words of one or two letters ("k", "mn") only count behind digits.
            elif word in _SCALES and len(word) > 2 and place > start:
                current *= _SCALES[word]
                step = 0.5 * _SCALES[word]
                if _SCALES[word] >= 1000:
                    total, current = total + current, 0.0
            # "three hundred and two", but not "two and three"
            elif not (
                word == "and"
                and place > start
                and place + 1 < len(words)
                and words[place - 1][0] in _SCALES
                and words[place + 1][0] in (_SMALL.keys() | _TENS.keys())
            ):
                break
            place += 1
        if place > start:
            # "two and a half million"
            behind = [word for word, _, _ in words[place : place + 4]]
            half = 0.5 if behind[:3] == ["and", "a", "half"] else 0.0
            place += 3 if half else 0
            scale = _SCALES[behind[3]] if half and behind[3:] and behind[3] in _LARGE else 1.0
            place += scale > 1
            number, end = (total + current + half) * scale, words[place - 1][2]
            yield TextValue("number", (number,), words[start][1], end, step)
        else:
            place += 1
