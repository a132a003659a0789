"""Putting a substitute into an answer, so that case and article agree."""

from __future__ import annotations

import re

from trustassay.distractors.values import Slot

__all__ = ["agreeing", "substituted"]

_ARTICLE = re.compile(r"\b(an?)(\s+)$", re.IGNORECASE)
_VOWEL_SOUND = re.compile(r"[aeiou]|hour|honest|honou?r|heir", re.IGNORECASE)
_CONSONANT_SOUND = re.compile(r"uni(?!n|m)|us[aeiu]|eu|one\b|once\b|ut[ei]", re.IGNORECASE)


def substituted(answer: str, slot: Slot, replacement: str) -> str:
    """Return the answer with the words of the slot replaced; ``a`` and ``an`` before them agree."""
    before = answer[: slot.start]
    if article := _ARTICLE.search(before):
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
    vowel = bool(_VOWEL_SOUND.match(replacement)) and not _CONSONANT_SOUND.match(replacement)
    found = "an" if vowel else "a"
    return found.capitalize() if article[0].isupper() else found
