"""Which numbers, dates and names of a claim no passage has.

A claim with such a detail cannot be supported, whatever a reader says. What is written otherwise is
the same ("two" and 2, 3 pm and 15:00, WHO and World Health Organization), and so is what can be
computed from values that are given.
"""

import math
import re
import unicodedata
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import chain, permutations

from rapidfuzz import fuzz

from trustassay.judging.short_replies import asks_whether
from trustassay.text.grammar import is_common_word, is_known_name
from trustassay.text.values import MONTHS, Value, read_values, values_of_words
from trustassay.text.words import content_words, is_empty_word

FEW = 12
"""Numbers of which sums, differences, products and ratios are known, too."""
ALIKE = 83
"""Likeness of two names, 0 to 100, from which one is another spelling of the other."""
LOOK_BACK = 40
"""Characters before a number in which is looked for what makes it a bound, rounded or negative."""
SHORTEST_STEM = 4
"""Letters of a word that may be the beginning of another form of it."""
_ABOUT = 0.1
"""How far, as a share, a number may be from another that is called "about" it."""
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
"""What makes a round number a bound that a number near it keeps: "over 80" of 84."""
_BOUND_WIDTH = 0.5
"""How far, as a share, a number may be from the bound that it keeps."""
_FALLS = re.compile(
    r"\b(?:fell|falls?|fallen|drop(?:s|ped)?|declin\w+|decreas\w+|los[et]\w*|loss(?:es)?"
    r"|shr[aiu]nk|down|lower"
    r"|minus|negative|below zero|reduc\w+|cut)\b[^.;]{0,40}$",
    re.IGNORECASE,
)
"""Words before a number that stand for a minus."""
_ORDINAL = re.compile(
    r"(?<!\ba )(?<!\bone )(?<!\btwo )\b(third|fourth|fifth|sixth|seventh|eighth|ninth"
    r"|tenth|eleventh|twelfth)\b"
    r"(?![- ](?:part|person|of))",
    re.IGNORECASE,
)
"""Numbers in words; "first" and "second" have too many other meanings."""
_COMPUTES = re.compile(
    r"\b(?:total|sum|average|mean|median|difference|combined|altogether|together|twice"
    r"|half|times|percent|more"
    r"|less|fewer|per|each|later|earlier|after|before|ago|old|older|younger|aged?|years?"
    r"|months?|weeks?|days?|hours?|minutes?|seconds?"
    r"|kilomet\w+|km|met(?:er|re)s?|kg|kilograms?|grams?|miles?|feet"
    r"|increase[ds]?|decrease[ds]?|rose|fell|grew|gained|lost|left|remaining|rest)\b|%",
    re.IGNORECASE,
)
"""Words by which a number may be computed from others."""
_FACTORS = (60.0, 3600.0, 24.0, 7.0, 12.0, 52.0, 365.0, 1000.0, 100.0)
"""Of units of time, and of prefixes: "2 hours" is "120 minutes"."""
_CODE = re.compile(
    r"(?<![\w.-])(?=[\w-]*\d)(?=[\w-]*[^\W\d_])[^\W_]+(?:-[^\W_]+)*(?![\w-])"
    r"|(?<![\w.])\d+(?:\.\d+){2,}(?![\w.]\w)"
)
"""A word with letters and digits, as "B12", and the number of a version."""
_QUANTITY = re.compile(
    r"\d+(?:st|nd|rd|th|s|[a-z]{1,3})|\d+-[a-z]+(?:-[a-z]+)?"
    r"|(?:pre|mid|post|early|late|non|under|over|age[ds]?|top|sub)-\d+s?|\d+x\d+",
    re.IGNORECASE,
)
"""What has letters and digits and is a number with a unit, or belongs to one: "5th", "10-year"."""
_NAME = re.compile(r"[^\W_]+(?:['.&-][^\W_]+)*")
_SENTENCE_START = re.compile(r"(?:[.!?:;]\s+|[\"'(]\s*|-\s)$")
_CAPITALS = re.compile(r"[A-Z][\w'-]*(?:(?: (?:of|the|and|for))? [A-Z][\w'-]*){1,7}")
_UMLAUT = re.compile("([aou])e")
"""As ä, ö and ü are written without dots."""
_ROMAN = dict(
    zip("II III IV V VI VII VIII IX X XI XII".split(), map(float, range(2, 13)), strict=True)
)
_TITLES = frozenset(
    "mr mrs ms dr prof sir madam st mt saint the a an i no yes am pm ad bc ce bce".split()
)
_DAYS = frozenset("monday tuesday wednesday thursday friday saturday sunday".split())
_SHORT_CALENDAR = frozenset(
    "jan feb mar apr jun jul aug sep sept oct nov dec mon tue tues wed thu fri sat sun".split()
)
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
"""Names of the same thing; those in capitals are not "us"."""
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
"""The words of each group, and what finds one of its names in a passage."""


class KnownDetails:
    """The details that some passages have, beside those of their titles and of the question."""

    def __init__(self, texts: Sequence[str], titles: Sequence[str], question: str) -> None:
        """
        Args:
            texts: of the passages, folded.
            titles: theirs, folded; they may complete what a text says.
            question: what was asked, folded. Its names are no inventions of the answer, nor are its
                numbers, unless it asks whether they are right.
        """
        self._texts = [*texts, *filter(None, titles)]
        self._question = question
        self._given = [question] if question and not asks_whether(question) else []

    @cached_property
    def _values(self) -> list[Value]:
        return [value for text in (*self._texts, *self._given) for value in read_values(text)]

    @cached_property
    def _numbers(self) -> list[float]:
        """All numbers of the passages, also those inside of dates and times, ascending; one that
        occurs more often is there twice."""
        result: list[float] = []
        for text in (*self._texts, *self._given):
            for value in read_values(text):
                hours = 60.0 if value.kind == "time" else 1.0
                numbers = [one / hours for one in value.numbers]
                result += numbers
                if value.kind == "number" and _FALLS.search(text[: value.start][-LOOK_BACK:]):
                    result += [-one for one in numbers]
            result += [_ROMAN[word] for word in _NAME.findall(text) if word in _ROMAN]
        result += [one for text in self._texts for one in values_of_words(text)]
        return sorted(one for one, count in Counter(result).items() for _ in range(min(count, 2)))

    @cached_property
    def _words(self) -> list[str]:
        """All words of passages, titles and question, folded, ascending."""
        texts = [*self._texts, self._question]
        return sorted({_plain(word) for text in texts for word in _NAME.findall(text)})

    @cached_property
    def _stems(self) -> frozenset[str]:
        return frozenset(
            stem for text in [*self._texts, self._question] for stem in content_words(text)
        )

    @cached_property
    def _acronyms(self) -> frozenset[str]:
        """Names in capitals, and the first letters of names of several words."""
        result: set[str] = set()
        for text in [*self._texts, self._question]:
            run: list[str] = []
            for word in [*_NAME.findall(text), ""]:
                if word[:1].isupper():
                    run.append(word)
                    if word.isupper() and 1 < len(word) < 7:
                        result.add(word.lower())
                elif word.lower() not in ("of", "the", "and", "for", "de", "in"):
                    letters = "".join(one[0] for one in run).lower()
                    result |= {
                        letters[start:end]
                        for start in range(len(letters))
                        for end in range(start + 2, len(letters) + 1)
                    }
                    run = []
        return frozenset(result)

    def missing(self, claim: str) -> list[str]:
        """Return the numbers, dates and names of a folded claim that are nowhere, as written."""
        return [*self.missing_values(claim), *self._missing_names(claim, read_values(claim))]

    def missing_values(self, claim: str) -> list[str]:
        """Return the numbers, dates, times and codes of a folded claim that are nowhere."""
        values = read_values(claim)
        spans: dict[tuple[int, int], bool] = {}
        for value in values:  # a time or a date may be read in two ways
            span = value.start, value.end
            spans[span] = spans.get(span, False) or self._has(value, claim, values)
        for match in _ORDINAL.finditer(claim):
            spans[match.span()] = any(self._is_known(one, 0.0) for one in values_of_words(match[0]))
        dates = [(one.start, one.end) for one in values if one.kind == "date"]
        for match in _CODE.finditer(claim):
            in_date = any(start <= match.start() and match.end() <= end for start, end in dates)
            if not in_date and not _QUANTITY.fullmatch(match[0]):
                spans[match.span()] = self._knows_code(match[0])
        absent = [
            claim[start:end].rstrip(".") for (start, end), known in spans.items() if not known
        ]
        return list(dict.fromkeys(absent))

    def _knows_code(self, code: str) -> bool:
        plain = _plain(code)
        return self._stands(plain) or code in self._written or self._has_same_name(plain)

    @cached_property
    def _written(self) -> str:
        """All texts as they are written."""
        return "\n".join([*self._texts, self._question])

    # Numbers

    def _has(self, value: Value, claim: str, values: Sequence[Value]) -> bool:
        """Whether the passages have a value of a claim, which has ``values``."""
        if value.kind == "time":
            known = {one.numbers for one in self._values if one.kind == "time"}
            return value.numbers in known or self._is_known(value.numbers[0] / 60, 0.0)
        if value.kind == "date":
            return self._has_date(value)
        before = claim[max(0, value.start - LOOK_BACK) : value.start]
        return (
            value.numbers[0] in (0.0, 1.0)
            or self._has_number(value, before)
            or self._has_one_near(value.numbers[0], before, claim[value.end : value.end + 1])
            or self._can_compute(value, claim, values)
        )

    def _has_number(self, value: Value, before: str) -> bool:
        """Whether the passages have a number that something stands before; a fall has a minus."""
        number = value.numbers[0]
        return self._is_known(number, value.step) or (
            _FALLS.search(before) is not None and self._is_known(-number, value.step)
        )

    def _has_one_near(self, number: float, before: str, after: str) -> bool:
        """Whether the passages have what a number stands for by the words around it: "about 500",
        "over 80", "the 1970s"."""
        if _ROUNDED.search(before) and self._is_known(number, abs(number) * _ABOUT):
            return True
        if after == "s" and number % 10 == 0 and self._is_between(number, number + 9.999):
            return True
        bound = _BOUND.search(before)
        if bound is None or number % 5:
            return False
        other = number * (1 + _BOUND_WIDTH if bound["least"] else 1 - _BOUND_WIDTH)
        return self._is_between(*sorted((number, other)))

    def _can_compute(self, value: Value, claim: str, values: Sequence[Value]) -> bool:
        """Whether a number can be computed from numbers that the passages have.

        Ones that only the claim has would vouch for each other: of two, one is given.
        """
        number = value.numbers[0]
        others = [one for one in values if one.kind == "number" and one.start != value.start]
        known_numbers = [
            one.numbers[0] for one in others if self._is_known(one.numbers[0], one.step)
        ]
        if any(math.isclose(number, one, rel_tol=1e-3) for one in _computed(known_numbers)):
            return True
        if not _COMPUTES.search(claim):
            return False
        if any(self._is_known(one, 0.0) for by in _FACTORS for one in (number * by, number / by)):
            return True
        near = [one for one in self._numbers if one > 1]
        # "In 1952 it was 50 years old", of 1902.
        pairs = [(one, other.numbers[0]) for one in near for other in others]
        results = chain(_computed(near), *map(_computed, pairs))
        return len(near) <= FEW and any(math.isclose(number, one, rel_tol=6e-3) for one in results)

    def _is_between(self, least: float, most: float) -> bool:
        """Whether the passages have a number from ``least`` to ``most``."""
        place = bisect_left(self._numbers, least)
        return place < len(self._numbers) and self._numbers[place] <= most

    def _is_known(self, number: float, step: float) -> bool:
        """Whether the passages have a number, or one that is rounded to it."""
        rounds = abs(number) >= 10 or step < 0.5
        margin = max(step * (1 + 1e-9) if rounds else 0.0, abs(number) * 1e-9)
        return self._is_between(number - margin, number + margin)

    def _has_date(self, value: Value) -> bool:
        """Whether the passages have a date; of a month and a year each may stand elsewhere."""
        year, month, day = value.numbers
        dates = [one.numbers for one in self._values if one.kind == "date"]
        if not day:
            return self._is_known(year, 0.0) and (
                month in self._months or any(one[1] == month for one in dates)
            )
        for known in dates:
            if known[1:] == (month, day) and (not year or known[0] in (0.0, year)):
                return not year or known[0] == year or self._is_known(year, 0.0)
        return False

    @cached_property
    def _months(self) -> frozenset[int]:
        """The numbers of the months that the passages name."""
        # With a capital: "may" and "march" are other words, too.
        return frozenset(
            n
            for n, name in enumerate(MONTHS, 1)
            if re.search(
                rf"\b(?:{name.title()}|{name[:3].title()}|{name[:4].title()})\b", self._written
            )
        )

    # Names

    def _missing_names(self, claim: str, values: Sequence[Value]) -> list[str]:
        result = []
        taken = {place for one in values for place in range(one.start, one.end)}
        in_title_case = _is_title_case(claim)
        for match in _NAME.finditer(claim):
            word, start = match[0], match.start()
            begins = not start or _SENTENCE_START.search(claim[max(0, start - 4) : start])
            is_name = _is_name(word, capital_tells=not (begins or in_title_case))
            if start not in taken and is_name and not self._knows_name(word, claim):
                result.append(word)
        return list(dict.fromkeys(result))

    def _knows_name(self, word: str, claim: str) -> bool:
        """Whether the passages, their titles or the question have a name of a claim."""
        plain = _plain(word)
        if plain in MONTHS:
            return MONTHS.index(plain) + 1 in self._months
        if plain in _DAYS:
            return any(map(self._stands, (plain, f"{plain}s", plain[:3], plain[:4], plain[:5])))
        parts = [part for part in re.split(r"['.&-]", plain) if len(part) > 1]
        return (
            plain in _TITLES | _SHORT_CALENDAR
            or is_empty_word(plain)
            or self._begins(plain)
            or not self._stems.isdisjoint(content_words(word))
            or plain.replace(".", "") in self._acronyms
            or (word in _ROMAN and self._is_known(_ROMAN[word], 0.0))
            or self._has_same_name(plain)
            or self._is_acronym(word)
            or self._is_part_of_acronym(word, claim)
            or self._is_first_name(word, claim)
            or (len(parts) > 1 and all(self._begins(one) or one.isdigit() for one in parts))
            or (len(plain) > 4 and any(_is_other_spelling(plain, one) for one in self._words))
        )

    def _has_same_name(self, plain: str) -> bool:
        """Whether the passages have another name of the same thing."""
        return any(plain in words and names.search(self._written) for words, names in _NAMES_OF)

    def _is_acronym(self, word: str) -> bool:
        """Whether letters in capitals are the first ones of words in a row, as ADE of "adverse drug
        events"."""
        letters = word.removesuffix("s")
        capitals = sum(map(str.isupper, letters))
        return capitals > 2 and len(letters) < 7 and letters.lower() in self._initials

    @cached_property
    def _initials(self) -> str:
        texts = [*self._texts, self._question]
        return " ".join("".join(word[0] for word in _NAME.findall(text)).lower() for text in texts)

    def _is_first_name(self, word: str, claim: str) -> bool:
        """Whether a word stands before a surname that the passages have without a first name."""
        before = rf"\b{re.escape(word)} (?:[A-Z][\w.'-]* )?([A-Z][\w'-]+)"
        for surname in re.findall(before, claim):
            if self._stands(_plain(surname)):
                full = re.compile(rf"\b[A-Z][\w'-]+ (?:[A-Z][\w.'-]* )?{re.escape(surname)}\b")
                return full.search(self._written) is None
        return False

    def _begins(self, plain: str) -> bool:
        """Whether a word stands there, or one that begins with it or that it begins with."""
        place = bisect_left(self._words, plain)
        after = self._words[place] if place < len(self._words) else ""
        if after == plain or (len(plain) >= SHORTEST_STEM and after.startswith(plain)):
            return True
        shorter = (
            plain[:length]
            for length in range(len(plain) - 1, max(SHORTEST_STEM, len(plain) - 4) - 1, -1)
        )
        return any(self._stands(one) for one in shorter)

    def _stands(self, plain: str) -> bool:
        place = bisect_left(self._words, plain)
        return place < len(self._words) and self._words[place] == plain

    def _is_part_of_acronym(self, word: str, claim: str) -> bool:
        """Whether a word is one of a name whose first letters the passages have in its place."""
        for run in _CAPITALS.findall(claim):
            words = [one for one in run.split() if one[0].isupper()]
            places = range(len(words))
            for start, end in (
                (a, b) for a in places for b in places if a < b and word in words[a : b + 1]
            ):
                letters = (one if one in _ROMAN else one[0] for one in words[start : end + 1])
                if self._stands("".join(letters).lower()):
                    return True
        return False


def _is_other_spelling(word: str, known: str) -> bool:
    """Whether two words are spellings of one name; those of two names are both in the lexicon, as
    Austria and Australia."""
    if known[:1] != word[:1] or abs(len(known) - len(word)) > 2:
        return False
    if _UMLAUT.sub(r"\1", known) == _UMLAUT.sub(r"\1", word):
        return True
    return fuzz.ratio(word, known) >= ALIKE and not (is_known_name(word) and is_known_name(known))


def _computed(numbers: Iterable[float]) -> Iterable[float]:
    """Yield sums, differences, products, ratios and percentages of two of some numbers."""
    known = list(numbers)[: FEW + 4]
    for a, b in permutations(known, 2):
        yield a + b
        yield a - b
        yield a * b
        if b:
            yield a / b
            yield 100 * a / b
            yield 100 * (a - b) / b
    if len(known) > 1:
        yield sum(known)
        yield sum(known) / len(known)


def _is_title_case(claim: str) -> bool:
    """Whether most words of a claim begin with a capital, so that none tells of a name."""
    words = [word for word in _NAME.findall(claim) if not is_empty_word(word.lower())]
    return len(words) > 3 and 4 * sum(word[0].isupper() for word in words) > 3 * len(words)


def _is_name(word: str, *, capital_tells: bool) -> bool:
    """Whether a word of a claim is a name; codes with digits are none.

    ``capital_tells``: whether a common word in its place has no capital letter.
    """
    if any(map(str.isdigit, word)) or not word[0].isupper() or len(word) < 2:
        return False
    return capital_tells or not is_common_word(word)


def _plain(word: str) -> str:
    """Return a word in small letters, without accents and a genitive."""
    parts = unicodedata.normalize("NFKD", word.removesuffix("'s"))
    return "".join(c for c in parts if not unicodedata.combining(c)).casefold()
