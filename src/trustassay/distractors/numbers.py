"""Numbers in an answer, and their plausible neighbours: written alike, never with leading zeros."""

from __future__ import annotations

import re

import numpy as np

from trustassay.distractors.values import Slot

__all__ = ["found", "neighbours"]

_DIGITS = re.compile(
    r"(?<![\w.,:/-])[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?(?![\w-])"
    r"|(?<![\w.,:/-])[0-9]+(?:\.[0-9]+)?(?:st|nd|rd|th)?(?![\w-])"
)
_MOST_DIGITS = 18
"""Longer numbers are marks rather than amounts, and do not fit a random integer."""
_UNITS = "zero one two three four five six seven eight nine ten eleven twelve".split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_ORDINALS = (
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth".split()
)
_SCALES = "hundred thousand million billion trillion".split()
_SERIES = (_UNITS[1:], _TENS, _ORDINALS, _SCALES)
_WORDS = re.compile(
    rf"\b(?:{'|'.join(one for series in _SERIES for one in series)})\b", re.IGNORECASE
)


def found(text: str) -> list[Slot]:
    """Return the numbers of a text, in digits or as a word."""
    spans = [*_DIGITS.finditer(text), *_WORDS.finditer(text)]
    slots = [Slot(one[0], one.start(), one.end(), "number", 2, "CD") for one in spans]
    return sorted(slots, key=lambda one: one.start)


def neighbours(text: str, n: int, rng: np.random.Generator) -> list[str]:
    """Return up to n other numbers, written as ``text`` is, in random order.

    Of the same number of digits and of similar size (between half and twice as much, and at least
    10 others where the digits allow that); decimals, separators and ordinals are kept. None of
    a number of more than 18 digits.
    """
    for series in _SERIES:
        if text.lower() in series:
            others = [one for one in series if one != text.lower()]
            words = [others[i] for i in rng.permutation(len(others))[:n]]
            return [one.capitalize() if text[:1].isupper() else one for one in words]
    if not _DIGITS.fullmatch(text):
        return []
    body = re.sub(r"(st|nd|rd|th)$", "", text)
    ordinal = body != text
    whole, _, decimals = body.replace(",", "").partition(".")
    if len(whole + decimals) > _MOST_DIGITS or (whole[0] == "0" and len(whole) > 1):
        return []
    scale = 10 ** len(decimals)
    value = int(whole) * scale + int(decimals or 0)
    lowest = 0 if len(whole) == 1 and (decimals or value == 0) else 1
    least = max(
        10 ** (len(whole) - 1) * scale if len(whole) > 1 else lowest, min(value // 2, value - 10)
    )
    most = min(10 ** len(whole) * scale - 1, max(2 * value, value + 10))
    size = most - least + 1
    step = _step(value, decimals)
    places = rng.permutation(size) if size <= 10_000 else rng.integers(0, size, 8 * n)
    values = [least + int(place) for place in places]
    if step > 1:  # a round number has round neighbours
        values = [one // step * step for one in values]
    chosen = [one for one in dict.fromkeys(values) if one != value and least <= one <= most][:n]
    return [_written(one, scale, len(decimals), "," in text, ordinal) for one in chosen]


def _step(value: int, decimals: str) -> int:
    """Return the power of ten that a number of at least three digits is rounded to."""
    if decimals or value < 100:
        return 1
    step = 1
    while value % (step * 10) == 0 and step * 100 <= value:
        step *= 10
    return step


def _written(value: int, scale: int, decimals: int, grouped: bool, ordinal: bool) -> str:
    whole, part = divmod(value, scale)
    text = f"{whole:,}" if grouped else str(whole)
    if decimals:
        text += f".{part:0{decimals}d}"
    return text + _suffix(whole) if ordinal else text


def _suffix(value: int) -> str:
    if value % 100 in (11, 12, 13):
        return "th"
    return {1: "st", 2: "nd", 3: "rd"}.get(value % 10, "th")
