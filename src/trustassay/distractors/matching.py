"""Whether two answers say the same: SQuAD's normalisation, and containment by whole words."""

from __future__ import annotations

import string
from collections.abc import Sequence
from functools import lru_cache

__all__ = ["contains", "normalised", "says_the_same", "words_of"]

_ARTICLES = frozenset(("a", "an", "the"))
_SIGNS = str.maketrans(dict.fromkeys(string.punctuation + "‘’“”–—…", " "))


def words_of(text: str) -> tuple[str, ...]:
    """Return the words of a text as they are compared (:func:`normalised`)."""
    return tuple(normalised(text).split())


@lru_cache(maxsize=65_536)
def normalised(text: str) -> str:
    """Return a text as it is compared: small letters, no signs, no articles, single spaces.

    As SQuAD's normalisation, except that a sign parts words (``1997-1998`` is two), and that a text
    of nothing else is compared as it stands.
    """
    words = text.lower().translate(_SIGNS).split()
    found = " ".join(word for word in words if word not in _ARTICLES)
    return found or " ".join(text.lower().split())


def contains(whole: str, part: str) -> bool:
    """Whether the words of ``part`` stand one after the other in ``whole``; both are normalised.

    No words are in no text.
    """
    return bool(part) and f" {part} " in f" {whole} "


def says_the_same(text: str, answer: str, aliases: Sequence[str] = ()) -> bool:
    """Whether ``text`` is the answer, or is right if an alias is.

    It is the answer if one contains the other by whole words. It is right if it equals an alias,
    stands in one, or holds one that the answer does not hold.
    """
    own, of_answer = normalised(text), normalised(answer)
    if own == of_answer or contains(own, of_answer) or contains(of_answer, own):
        return True
    for alias in map(normalised, aliases):
        if own == alias or contains(alias, own):
            return True
        if contains(own, alias) and not contains(of_answer, alias):
            return True
    return False
