"""Putting a substitute into an answer, so that case and article agree."""

from __future__ import annotations

import re

from trustassay.distractors.values import Slot

__all__ = ["agreeing", "substituted"]

_NUMBER = re.compile(r"[0-9]+(?:,[0-9]{3})*")
_ARTICLE = re.compile(r"\b(an?)(\s+)$", re.IGNORECASE)
_BEGINS = re.compile(r"(?:^|[.!?:\"“'‘(\n])\s*$")
"""Before the first word of a sentence."""
_VOWEL_SOUND = re.compile(r"[aeiou]|hour|honest|honou?r|heir", re.IGNORECASE)
_CONSONANT_SOUND = re.compile(r"uni(?!n|m)|us[aeiu]|eu|one\b|once\b|ut[ei]", re.IGNORECASE)


def substituted(answer: str, slot: Slot, replacement: str) -> str:
    """Return the answer with the words of the slot replaced; ``a`` and ``an`` before them agree.

    A capital within a sentence is no article (``Vitamin A deficiency``).
    """
    before = answer[: slot.start]
    article = _ARTICLE.search(before)
    if article and (article[1].islower() or _BEGINS.search(before[: article.start()])):
        before = before[: article.start()] + _article(article[1], replacement) + article[2]
    return before + replacement + answer[slot.end :]


def agreeing(slot: Slot, replacement: str) -> str:
    """Return a substitute in the case of the words that it replaces.

    All small where those are; a capital at the beginning where they have one.
    """
    if slot.text.islower():
        return replacement.lower()
    if slot.text[:1].isupper() and replacement[:1].islower():
        return replacement[:1].upper() + replacement[1:]
    return replacement


def _article(article: str, replacement: str) -> str:
    found = "an" if _begins_with_a_vowel(replacement) else "a"
    return found.capitalize() if article[0].isupper() else found


def _begins_with_a_vowel(text: str) -> bool:
    """Whether words begin so when they are spoken; of digits eight, eleven and eighteen do."""
    if not (number := _NUMBER.match(text)):
        return bool(_VOWEL_SOUND.match(text)) and not _CONSONANT_SOUND.match(text)
    digits = number[0].replace(",", "")
    first = digits[: len(digits) % 3 or 3]  # 11 of 11,000
    hundreds = digits[:2] if len(number[0]) == 4 else ""  # 1888 is eighteen hundred and more
    return first[0] == "8" or first in ("11", "18") or hundreds in ("11", "18")
