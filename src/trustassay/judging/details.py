"""Finds the numbers, dates and names of a claim that no passage has.

A claim with such a detail cannot be supported, whatever a reader says. Other spellings count as the
same ("two" and 2, 3 pm and 15:00, WHO and World Health Organization), and so do values that can be
computed from those of the passages.
"""

import datetime
import math
import re
import unicodedata
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import chain, permutations

from rapidfuzz import fuzz

from trustassay.judging.completion import asks_whether
from trustassay.text.grammar import is_common_word, is_known_name
from trustassay.text.quantities import (
    MONTH_NUMBERS,
    MONTHS,
    SHORT_MONTHS,
    WEEKDAYS,
    TextValue,
    read_values,
    read_values_of_words,
)
from trustassay.text.words import MIN_STEM_LETTERS, content_words, has_form, is_empty_word

MAX_NUMBERS_COMBINED = 12
"""Numbers of the passages up to which sums, differences, products and ratios are tried."""
MIN_NAME_SIMILARITY = 83
"""Similarity of two names, 0 to 100, from which they are spellings of one name."""
MAX_CHARACTERS_BEFORE = 40
"""Characters before a number that are searched for words that make it a bound, rounded or
negative."""
_ABOUT = 0.1
"""Relative distance that "about" allows between two numbers."""
_ROUNDED = re.compile(
    r"\b(?:about|around|approximately|approx\.?|roughly|nearly|almost|some|close to|circa"
    r"|ca\.?)\s+[$€£]?$|[~≈]\s?$",
    re.IGNORECASE,
)
_BOUND = re.compile(
    r"\b(?:(?P<least>over|more than|at least|exceed(?:s|ed|ing)|greater than)"
    r"|under|less than|fewer than|nearly|almost)\s+[$€£]?$",
    re.IGNORECASE,
)
"""Words before a round number by which it is a bound for a number near it: "over 80" for 84."""
_BOUND_WIDTH = 0.5
"""Largest relative distance of a number from its bound; "over 80" says little about 500."""
_FALLS = re.compile(
    r"\b(?:fell|falls?|fallen|drop(?:s|ped)?|declin\w+|decreas\w+|los[et]\w*|loss(?:es)?"
    r"|shr[aiu]nk|down|lower"
    r"|minus|negative|below zero|reduc\w+|cut)\b[^.;]{0,40}$",
    re.IGNORECASE,
)
"""Words before a number that mean a minus: "fell by 3 percent"."""
_ORDINAL = re.compile(
    r"(?<!\ba )(?<!\bone )(?<!\btwo )\b(third|fourth|fifth|sixth|seventh|eighth|ninth"
    r"|tenth|eleventh|twelfth)\b"
    r"(?![- ](?:part|person|of))",
    re.IGNORECASE,
)
"""Ordinals in words that are checked; "first" and "second" have too many other meanings."""
_COMPUTES = re.compile(
    r"\b(?:total|sum|average|mean|median|difference|combined|altogether|together|twice"
    r"|half|times|percent|more"
    r"|less|fewer|per|each|later|earlier|after|before|ago|old|older|younger|aged?|years?"
    r"|months?|weeks?|days?|hours?|minutes?|seconds?"
    r"|kilomet\w+|km|met(?:er|re)s?|kg|kilograms?|grams?|miles?|feet"
    r"|increase[ds]?|decrease[ds]?|rose|fell|grew|gained|lost|left|remaining|rest)\b|%",
    re.IGNORECASE,
)
"""Words in a claim by which its numbers may be computed from others."""
_FACTORS = (60.0, 3600.0, 24.0, 7.0, 12.0, 52.0, 365.0, 1000.0, 100.0)
"""Factors between units of time, and of prefixes: "2 hours" is "120 minutes"."""
_CODE = re.compile(
    r"(?<![\w.-])(?=[\w-]*\d)(?=[\w-]*[^\W\d_])[^\W_]+(?:-[^\W_]+)*(?![\w-])"
    r"|(?<![\w.])\d+(?:\.\d+){2,}(?![\w.]\w)"
)
"""A word with letters and digits, such as "B12", or the number of a version, such as "3.2.1"."""
_QUANTITY = re.compile(
    r"\d+(?:st|nd|rd|th|s|[a-z]{1,3})|\d+-[a-z]+(?:-[a-z]+)?"
    r"|(?:pre|mid|post|early|late|non|under|over|age[ds]?|top|sub)-\d+s?|\d+x\d+",
    re.IGNORECASE,
)
"""Words with letters and digits that are a number with a unit, not a code: "5th", "10-year"."""
_NAME = re.compile(r"[^\W_]+(?:['.&-][^\W_]+)*")
_SENTENCE_START = re.compile(r"(?:[.!?:;]\s+|[\"'(]\s*|-\s)$")
# A row of capitalised words, which may be the long form of an acronym: "World Health Organization".
_CAPITALS = re.compile(r"[A-Z][\w'-]*(?:(?: (?:of|the|and|for))? [A-Z][\w'-]*){1,7}")
_UMLAUT = re.compile("([aou])e")
"""The spelling of ä, ö and ü without dots: "Mueller"."""
_ROMAN = dict(
    zip("II III IV V VI VII VIII IX X XI XII".split(), map(float, range(2, 13)), strict=True)
)
_TITLES = frozenset(
    "mr mrs ms dr prof sir madam st mt saint the a an i no yes am pm ad bc ce bce".split()
)
_SHORT_CALENDAR = SHORT_MONTHS | {day[:3] for day in WEEKDAYS} | {"tues"}
_SAME_NAMES = [
    "US, USA, U.S., United States, America, American",
    "UK, U.K., United Kingdom, Great Britain, Britain, British, England, English",
    "EU, E.U., European Union, Europe, European",
    "France, French",
    "Spain, Spanish",
    "Netherlands, Dutch, Holland",
    "Germany, German",
    "Switzerland, Swiss",
    "Poland, Polish",
    "Turkey, Turkish",
    "Denmark, Danish",
    "Greece, Greek",
    "Wales, Welsh",
    "Ireland, Irish",
    "China, Chinese",
    "USD, dollar",
    "EUR, euro",
    "GBP, pound",
    "Celsius, centigrade, °C",
    "Fahrenheit, °F",
    "Covid-19, covid, covid19, coronavirus, SARS-CoV-2, 2019-nCoV",
]
"""Names of the same thing. A name in capitals must be written so: "US" is not "us"."""
_NAMES_OF = [
    (
        frozenset(word.rstrip(".") for word in group.lower().replace(",", "").split()),
        re.compile(
            "|".join(
                rf"(?<!\w){re.escape(name)}(?!\w)"
                if name.isupper()
                else rf"\b(?i:{re.escape(name)})"
                for name in group.split(", ")
            )
        ),
    )
    for group in _SAME_NAMES
]
"""For each group its words in small letters, and a pattern that finds its names in a passage."""


class KnownDetails:
    """The details of some passages, of their titles and of the question.

    Everything that is derived from the texts is computed when it is first needed, because most
    claims need little of it.
    """

    def __init__(self, texts: Sequence[str], titles: Sequence[str], question: str) -> None:
        """
        Args:
            texts: the texts of the passages, folded.
            titles: their titles, folded; a title may complete its text.
            question: the question, folded. The answer has not invented the names in it, nor the
                numbers, unless the question asks whether they are right.
        """
        self._texts = [*texts, *filter(None, titles)]
        self._question = question
        self._question_texts = [question] if question and not asks_whether(question) else []

    @cached_property
    def _values(self) -> list[TextValue]:
        return [
            value for text in (*self._texts, *self._question_texts) for value in read_values(text)
        ]

    @cached_property
    def _numbers(self) -> list[float]:
        """All numbers of the passages, also those inside dates and times, ascending.

        A number that occurs more than once is listed twice, so that it can be combined with itself.
        """
        result: list[float] = []
        for text in (*self._texts, *self._question_texts):
            for value in read_values(text):
                # Minutes of the day become hours: a claim may say "9 o'clock" or "at 9".
                hours = 60.0 if value.kind == "time" else 1.0
                numbers = [number_read / hours for number_read in value.numbers]
                result += numbers
                # "fell by 3 percent" also has -3.
                if value.kind == "number" and _FALLS.search(
                    text[: value.start][-MAX_CHARACTERS_BEFORE:]
                ):
                    result += [-number_read for number_read in numbers]
            result += [_ROMAN[word] for word in _NAME.findall(text) if word in _ROMAN]
        result += [
            number_read for text in self._texts for number_read in read_values_of_words(text)
        ]
        return sorted(
            number_read
            for number_read, count in Counter(result).items()
            for _ in range(min(count, 2))
        )

    @cached_property
    def _words(self) -> list[str]:
        """All words of passages, titles and question, normalised, ascending for bisection."""
        texts = [*self._texts, self._question]
        return sorted({_normalise_word(word) for text in texts for word in _NAME.findall(text)})

    @cached_property
    def _stems(self) -> frozenset[str]:
        return frozenset(
            stem for text in [*self._texts, self._question] for stem in content_words(text)
        )

    @cached_property
    def _acronyms(self) -> frozenset[str]:
        """Names in capitals, and the initials of names of several words, in small letters."""
        result: set[str] = set()
        for text in [*self._texts, self._question]:
            run: list[str] = []
            for word in [*_NAME.findall(text), ""]:
                if word[:1].isupper():
                    run.append(word)
                    if word.isupper() and 1 < len(word) < 7:
                        result.add(word.lower())
                # Small words do not interrupt a name: "University of Applied Sciences".
                elif word.lower() not in ("of", "the", "and", "for", "de", "in"):
                    letters = "".join(name_word[0] for name_word in run).lower()
                    # Every part of the row: an acronym may leave out words at either end.
                    result |= {
                        letters[start:end]
                        for start in range(len(letters))
                        for end in range(start + 2, len(letters) + 1)
                    }
                    run = []
        return frozenset(result)

    def find_missing(self, claim: str) -> list[str]:
        """Return the numbers, dates and names of a folded claim that no passage has, as written."""
        return [*self.find_missing_values(claim), *self.find_missing_names(claim)]

    def find_missing_values(self, claim: str) -> list[str]:
        """Return the numbers, dates, times and codes of a folded claim that no passage has."""
        values = read_values(claim)
        spans: dict[tuple[int, int], bool] = {}
        # A time or a date may be read in two ways; it is known if either reading is.
        for value in values:
            span = value.start, value.end
            spans[span] = spans.get(span, False) or self._has_value(value, claim, values)
        for match in _ORDINAL.finditer(claim):
            spans[match.span()] = any(
                self._has_close_number(item, 0.0) for item in read_values_of_words(match[0])
            )
        dates = [(item.start, item.end) for item in values if item.kind == "date"]
        for match in _CODE.finditer(claim):
            in_date = any(start <= match.start() and match.end() <= end for start, end in dates)
            # The codes inside a date ("2021-03-05T10") and numbers with units were checked as
            # values.
            if in_date or _QUANTITY.fullmatch(match[0]):
                continue
            # "1.26" of the version "1.26.4" is no number of its own.
            for start, end in list(spans):
                if match.start() <= start and end <= match.end():
                    del spans[start, end]
            spans[match.span()] = self._knows_code(match[0])
        absent = [
            claim[start:end].rstrip(".") for (start, end), is_known in spans.items() if not is_known
        ]
        return list(dict.fromkeys(absent))

    def _knows_code(self, code: str) -> bool:
        plain = _normalise_word(code)
        return self._has_word(plain) or code in self._joined_texts or self._has_same_name(plain)

    @cached_property
    def _joined_texts(self) -> str:
        """All texts as they are written, in one."""
        return "\n".join([*self._texts, self._question])

    # Numbers

    def _has_value(self, value: TextValue, claim: str, values: Sequence[TextValue]) -> bool:
        """Whether the passages have a value of a claim; ``values`` are all values of the claim."""
        if value.kind == "time":
            known_times = {
                known_value.numbers for known_value in self._values if known_value.kind == "time"
            }
            return value.numbers in known_times or self._has_close_number(
                value.numbers[0] / 60, 0.0
            )
        if value.kind == "date":
            return self._has_date(value)
        before = claim[max(0, value.start - MAX_CHARACTERS_BEFORE) : value.start]
        return (
            # 0 and 1 are often words ("no", "a", "one of them") and no details.
            value.numbers[0] in (0.0, 1.0)
            or self._has_number(value, before)
            or self._has_one_near(value.numbers[0], before, claim[value.end : value.end + 1])
            or self._can_compute(value, claim, values)
        )

    def _has_number(self, value: TextValue, before: str) -> bool:
        """Whether the passages have a number; behind a word such as "fell" also its negative.

        Args:
            value: the number.
            before: the text before it.
        """
        number = value.numbers[0]
        return self._has_close_number(number, value.step) or (
            _FALLS.search(before) is not None and self._has_close_number(-number, value.step)
        )

    def _has_one_near(self, number: float, before: str, after: str) -> bool:
        """Whether the passages have a number that this one stands for by the words around it.

        These are "about 500", "over 80" and "the 1970s".
        """
        if _ROUNDED.search(before) and self._has_close_number(number, abs(number) * _ABOUT):
            return True
        if after == "s" and number % 10 == 0 and self._has_number_between(number, number + 9.999):
            return True
        bound = _BOUND.search(before)
        # Only round numbers are bounds: "over 83" is a claim about 83.
        if bound is None or number % 5:
            return False
        other = number * (1 + _BOUND_WIDTH if bound["least"] else 1 - _BOUND_WIDTH)
        return self._has_number_between(*sorted((number, other)))

    def _can_compute(self, value: TextValue, claim: str, values: Sequence[TextValue]) -> bool:
        """Whether a number can be computed from numbers of the passages.

        Two numbers that only the claim has cannot confirm each other: of each pair, at least one
        is from the passages.
        """
        number = value.numbers[0]
        other_values = [
            candidate
            for candidate in values
            if candidate.kind == "number" and candidate.start != value.start
        ]
        known_numbers = [
            candidate.numbers[0]
            for candidate in other_values
            if self._has_close_number(candidate.numbers[0], candidate.step)
        ]
        # First from numbers that the claim names and the passages have; these need no words of
        # arithmetic around them.
        if any(
            math.isclose(number, candidate, rel_tol=1e-3)
            for candidate in _compute_pairs(known_numbers)
        ):
            return True
        # Further computations only where the claim has words for one: among many numbers some pair
        # gives nearly any result.
        if not _COMPUTES.search(claim):
            return False
        if any(
            self._has_close_number(candidate, 0.0)
            for by in _FACTORS
            for candidate in (number * by, number / by)
        ):
            return True
        # Pairs of passage numbers, and pairs of one with another number of the claim. With more
        # than twelve numbers chance hits are too likely. The tolerance allows for rounding.
        near = [candidate for candidate in self._numbers if candidate > 1]
        # "In 1952 it was 50 years old" follows from 1902.
        pairs = [(candidate, other.numbers[0]) for candidate in near for other in other_values]
        results = chain(_compute_pairs(near), *map(_compute_pairs, pairs))
        return len(near) <= MAX_NUMBERS_COMBINED and any(
            math.isclose(number, candidate, rel_tol=6e-3) for candidate in results
        )

    def _has_number_between(self, least: float, most: float) -> bool:
        """Whether the passages have a number from ``least`` to ``most``."""
        place = bisect_left(self._numbers, least)
        return place < len(self._numbers) and self._numbers[place] <= most

    def _has_close_number(self, number: float, step: float) -> bool:
        """Whether the passages have a number, or one that is rounded to it."""
        # A small whole number is no rounded one: "3" does not stand for 2.8.
        rounds = abs(number) >= 10 or step < 0.5
        margin = max(step * (1 + 1e-9) if rounds else 0.0, abs(number) * 1e-9)
        return self._has_number_between(number - margin, number + margin)

    def _has_date(self, value: TextValue) -> bool:
        """Whether the passages have a date; a month and a year may stand at different places."""
        year, month, day = value.numbers
        dates = [date_value.numbers for date_value in self._values if date_value.kind == "date"]
        if not day:
            return self._has_close_number(year, 0.0) and (
                month in self._months or any(date_value[1] == month for date_value in dates)
            )
        # Month and day must stand together; the year may be elsewhere or, in the passage, missing.
        for known_date in dates:
            if known_date[1:] == (month, day) and (not year or known_date[0] in (0.0, year)):
                return not year or known_date[0] == year or self._has_close_number(year, 0.0)
        return False

    @cached_property
    def _months(self) -> frozenset[int]:
        """The numbers of the months that the passages name, also in dates."""
        in_dates = frozenset(int(date.numbers[1]) for date in self._values if date.kind == "date")
        # With a capital: "may" and "march" are other words, too.
        return in_dates | frozenset(
            n
            for n, name in enumerate(MONTHS, 1)
            if re.search(
                rf"\b(?:{name.title()}|{name[:3].title()}|{name[:4].title()})\b", self._joined_texts
            )
        )

    @cached_property
    def _weekdays(self) -> frozenset[str]:
        """The days of the week of the passages' dates."""
        dates = {tuple(map(int, date.numbers)) for date in self._values if date.kind == "date"}
        result = set()
        for year, month, day in dates:
            # A date without a year or a day has no weekday, and 30 February does not exist.
            with suppress(ValueError):
                result.add(WEEKDAYS[datetime.date(year, month, day).weekday()])
        return frozenset(result)

    # Names

    def find_missing_names(self, claim: str) -> list[str]:
        """Return the names of a folded claim that no passage has, as written."""
        result = []
        values = read_values(claim)
        value_places = {place for value in values for place in range(value.start, value.end)}
        in_title_case = _is_title_case(claim)
        for match in _NAME.finditer(claim):
            word, start = match[0], match.start()
            # The first word of a sentence has a capital anyway, so it is a name only if it is no
            # common word.
            begins = not start or _SENTENCE_START.search(claim[max(0, start - 4) : start])
            is_name = _is_name(word, capital_tells=not (begins or in_title_case))
            if start not in value_places and is_name and not self._knows_name(word, claim):
                result.append(word)
        return list(dict.fromkeys(result))

    def _knows_name(self, word: str, claim: str) -> bool:
        """Whether the passages, their titles or the question have a name of a claim."""
        plain = _normalise_word(word)
        # Months and days have abbreviations of their own.
        if plain in MONTHS:
            return MONTH_NUMBERS[plain] in self._months
        if plain in WEEKDAYS:
            forms = plain, f"{plain}s", plain[:3], plain[:4], plain[:5]
            return plain in self._weekdays or any(map(self._has_word, forms))
        parts = [part for part in re.split(r"['.&-]", plain) if len(part) > 1]
        return (
            # From cheap tests to costly ones; any of them is enough. The last one compares with
            # every word.
            plain in _TITLES | _SHORT_CALENDAR
            or is_empty_word(plain)
            or self._has_form_of(plain)
            or not self._stems.isdisjoint(content_words(word))
            or plain.replace(".", "") in self._acronyms
            or (word in _ROMAN and self._has_close_number(_ROMAN[word], 0.0))
            or self._has_same_name(plain)
            or self._is_acronym(word)
            or self._is_part_of_acronym(word, claim)
            or self._is_first_name(word, claim)
            or (
                len(parts) > 1
                and all(
                    self._has_form_of(part_or_word) or part_or_word.isdigit()
                    for part_or_word in parts
                )
            )
            or (
                len(plain) > 4
                and any(_is_other_spelling(plain, part_or_word) for part_or_word in self._words)
            )
        )

    def _has_same_name(self, plain: str) -> bool:
        """Whether the passages have another name for the same thing."""
        return any(
            plain in words and names.search(self._joined_texts) for words, names in _NAMES_OF
        )

    def _is_acronym(self, word: str) -> bool:
        """Whether a word in capitals consists of the initials of words in a row.

        ADE stands for "adverse drug events", which need no capitals.
        """
        letters = word.removesuffix("s")
        capitals = sum(map(str.isupper, letters))
        return capitals > 2 and len(letters) < 7 and letters.lower() in self._initials

    @cached_property
    def _initials(self) -> str:
        texts = [*self._texts, self._question]
        return " ".join("".join(word[0] for word in _NAME.findall(text)).lower() for text in texts)

    def _is_first_name(self, word: str, claim: str) -> bool:
        """Whether a word is the first name for a surname that the passages have without one."""
        before = rf"\b{re.escape(word)} (?:[A-Z][\w.'-]* )?([A-Z][\w'-]+)"
        for surname in re.findall(before, claim):
            if self._has_word(_normalise_word(surname)):
                full = re.compile(rf"\b[A-Z][\w'-]+ (?:[A-Z][\w.'-]* )?{re.escape(surname)}\b")
                return full.search(self._joined_texts) is None
        return False

    def _has_form_of(self, plain: str) -> bool:
        """Whether the texts have a word, a longer form, or one up to four letters shorter."""
        shortest = max(MIN_STEM_LETTERS, len(plain) - 4)
        return has_form(self._words, plain) or any(
            self._has_word(plain[:length]) for length in range(shortest, len(plain))
        )

    def _has_word(self, plain: str) -> bool:
        place = bisect_left(self._words, plain)
        return place < len(self._words) and self._words[place] == plain

    def _is_part_of_acronym(self, word: str, claim: str) -> bool:
        """Whether a word belongs to a name of which the passages have the acronym instead."""
        for run in _CAPITALS.findall(claim):
            words = [name_word for name_word in run.split() if name_word[0].isupper()]
            places = range(len(words))
            for start, end in (
                (a, b) for a in places for b in places if a < b and word in words[a : b + 1]
            ):
                # A Roman number stays whole: "World War II" is "WWII".
                letters = (
                    name_word if name_word in _ROMAN else name_word[0]
                    for name_word in words[start : end + 1]
                )
                if self._has_word("".join(letters).lower()):
                    return True
        return False


def _is_other_spelling(word: str, known_word: str) -> bool:
    """Whether two words are spellings of the same name.

    If both are names in the lexicon, they are different names, such as Austria and Australia.
    """
    if known_word[:1] != word[:1] or abs(len(known_word) - len(word)) > 2:
        return False
    if _UMLAUT.sub(r"\1", known_word) == _UMLAUT.sub(r"\1", word):
        return True
    return fuzz.ratio(word, known_word) >= MIN_NAME_SIMILARITY and not (
        is_known_name(word) and is_known_name(known_word)
    )


def _compute_pairs(numbers: Iterable[float]) -> Iterable[float]:
    """Yield the sum, difference, product, ratio and percentage of each pair of numbers, and the sum
    and mean of all of them."""
    # Bounded, because the number of pairs grows with the square.
    numbers_used = list(numbers)[: MAX_NUMBERS_COMBINED + 4]
    for a, b in permutations(numbers_used, 2):
        yield a + b
        yield a - b
        yield a * b
        if b:
            yield a / b
            yield 100 * a / b
            yield 100 * (a - b) / b
    if len(numbers_used) > 1:
        yield sum(numbers_used)
        yield sum(numbers_used) / len(numbers_used)


def _is_title_case(claim: str) -> bool:
    """Whether most words of a claim begin with a capital, so that a capital shows no name."""
    words = [word for word in _NAME.findall(claim) if not is_empty_word(word.lower())]
    return len(words) > 3 and 4 * sum(word[0].isupper() for word in words) > 3 * len(words)


def _is_name(word: str, *, capital_tells: bool) -> bool:
    """Whether a word of a claim is a name; codes with digits are not.

    Args:
        word: the word.
        capital_tells: whether a common word at its place would have no capital letter.
    """
    if any(map(str.isdigit, word)) or not word[0].isupper() or len(word) < 2:
        return False
    return capital_tells or not is_common_word(word)


def _normalise_word(word: str) -> str:
    """Return a word in small letters, without accents and a genitive."""
    # NFKD parts letters from their accents, which are then dropped.
    parts = unicodedata.normalize("NFKD", word.removesuffix("'s"))
    return "".join(c for c in parts if not unicodedata.combining(c)).casefold()
