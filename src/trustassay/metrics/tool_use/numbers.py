"""Numbers that an answer may compute: from data of results, and from other numbers of it.

Computed are only what an answer usually needs, because among many numbers some pair gives nearly
any result: totals of one field ("price" of two legs), numbers of elements, and sums, differences
and products of the few numbers that the answer itself states or that calls were made with.
"""

import json
import math
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import combinations
from typing import Any

from trustassay.text.quantities import read_values

MAX_PAIRED = 12
"""Numbers up to which all pairs of them are combined; of more, only neighbours."""
MAX_RUN = 8
"""Numbers in a row of which a total may be."""
_NUMBER = re.compile(r"[$€£]?\s?-?(\d[\d,]*(?:\.\d+)?)\s?%?")
# "ending in 1784", "the last four digits are 1784"
_ENDING = re.compile(
    r"\b(?:end(?:s|ing|ed)?(?: in| with)?|last (?:\w+ )?digits(?: are)?:?)\W{0,3}(\d{3,8})\b",
    re.IGNORECASE,
)
# The digits behind the last underscore of an id, "1784" of "gift_card_1784"; three or more of them,
# since "2" of "item_2" may be any number.
_LAST_OF_ID = re.compile(r"(?<=[^\W_]_)\d{3,}(?!\w|[.,]\d)")
_PLAIN = re.compile(r"(?<![\w.,])\d{3,}(?!\w|[.,]\d)")
_DIFFERENCE = re.compile(
    r"\b(?:total|sum|difference|remain\w*|balance|left|change|refund\w*|overall|altogether"
    r"|now (?:has|have|holds|stands))\b",
    re.IGNORECASE,
)


def parse_number(text: str) -> float | None:
    """Return the number that a text is, without its sign; ``None`` for any other text."""
    match = _NUMBER.fullmatch(text.strip())
    return float(match[1].replace(",", "")) if match else None


@lru_cache(maxsize=64)
def read_field_totals(passage: str) -> frozenset[float]:
    """Return totals of the numbers of one field of JSON, and the lengths of its lists.

    A field is a path of names; elements of lists share their fields.
    """
    fields: dict[str, list[float]] = {}
    totals: set[float] = set()
    with suppress(ValueError, RecursionError):
        waiting: list[tuple[str, Any]] = [("", json.loads(passage))]
        # Depth first and in order, so that values of neighbours stand together.
        while waiting:
            path, value = waiting.pop()
            if isinstance(value, dict):
                waiting += [(f"{path}.{name}", item) for name, item in reversed(value.items())]
            elif isinstance(value, list):
                totals.add(float(len(value)))
                waiting += [(path, item) for item in reversed(value)]
            elif not isinstance(value, bool | None):
                number = parse_number(str(value))
                if number is not None:
                    fields.setdefault(path, []).append(number)
    for numbers in fields.values():
        totals |= _compute_totals(numbers)
    return frozenset(totals)


def _compute_totals(numbers: Sequence[float]) -> set[float]:
    """Return the totals of numbers: of all, of those that follow each other, of pairs of a few."""
    result = {sum(numbers)} if len(numbers) > 1 else set[float]()
    for start in range(len(numbers)):
        for end in range(start + 2, min(start + MAX_RUN, len(numbers)) + 1):
            result.add(sum(numbers[start:end]))
    if len(set(numbers)) <= MAX_PAIRED:
        result |= {a + b for a, b in combinations(numbers, 2)}
    return result


def find_computed(
    answer: str,
    missing: Iterable[str],
    passages: Iterable[str],
    arguments: Iterable[str],
    known: Iterable[float],
) -> frozenset[str]:
    """Return the missing values of an answer that can be computed.

    Args:
        answer: the answer, folded.
        missing: the values of it that no text has, as written.
        passages: the results of tools.
        arguments: the arguments of calls since the last question.
        known: the numbers of results, for differences to those of the answer.
    """
    open_values = {text: number for text in missing if (number := _read_number(text)) is not None}
    absent = {*open_values.values()}
    totals = {total for passage in passages for total in read_field_totals(passage)}
    stated = _read_numbers(answer)
    used = [number for text in arguments for number in _read_numbers(text)]
    known_numbers = {abs(number) for number in known}
    result: set[str] = set()
    # A number that was computed may be part of the next one: subtotals, then the total.
    while open_values:
        pool = [number for number in stated if number not in absent]
        candidates = totals | _compute_totals(pool) | _combine([*pool, *used])
        # Also a number of a result by itself, which may have a sign there: a refund of 20 is -20.
        differences = known_numbers | {
            abs(a - b) for a in known_numbers for b in dict.fromkeys(pool[:MAX_PAIRED]) if b > 1
        }
        now = {
            text
            for text, number in open_values.items()
            if _has_near(candidates, number)
            # A difference to any number of a result only where the sentence speaks of one.
            or (_says_difference(answer, text) and _has_near(differences, number))
        }
        if not now:
            break
        absent -= {open_values.pop(text) for text in now}
        result |= now
    return frozenset(result)


def _has_near(numbers: Iterable[float], number: float) -> bool:
    return any(math.isclose(number, other, rel_tol=1e-6) for other in numbers)


def _says_difference(answer: str, value: str) -> bool:
    return any(value in line and _DIFFERENCE.search(line) for line in answer.splitlines())


def _read_number(text: str) -> float | None:
    """Return the number that a value of an answer is, also in words: "two"."""
    number = parse_number(text)
    if number is None and text.isalpha():
        number = next(iter(_read_numbers(text)), None)
    return number


def _read_numbers(text: str) -> list[float]:
    return [abs(value.numbers[0]) for value in read_values(text) if value.kind == "number"]


def _combine(numbers: Sequence[float]) -> set[float]:
    """Return sums, differences and products of pairs of a few numbers, also of one with itself."""
    distinct = [number for number in dict.fromkeys(numbers) if number > 1]
    if len(distinct) > MAX_PAIRED:
        return set()
    result = {number * number for number in distinct if number <= MAX_PAIRED}
    for a, b in combinations(distinct, 2):
        result |= {a + b, abs(a - b), a * b}
    return result


def find_endings(answer: str, texts: Iterable[str]) -> frozenset[str]:
    """Return the numbers of an answer that end a longer number or id of the texts.

    The answer says that it is an end ("ending in 1784" of card_1591784), or the number is all that
    stands behind the last underscore of an id ("gift card 1784" of gift_card_1784).
    """
    joined = "\n".join(texts)
    ends = {
        digits
        for digits in _ENDING.findall(answer)
        if re.search(rf"\w{digits}(?!\w)", joined) is not None
    }
    return frozenset(ends | {*_LAST_OF_ID.findall(joined)}.intersection(_PLAIN.findall(answer)))
