"""Whether two answers say the same: SQuAD's normalisation, and containment by whole words."""

from __future__ import annotations

import re
import string
from collections.abc import Sequence

__all__ = ["contains", "normalised", "says_the_same", "words_of"]

_ARTICLES = frozenset(("a", "an", "the"))
_SIGNS = str.maketrans(dict.fromkeys(string.punctuation + "‘’“”–—…", " "))


def words_of(text: str) -> tuple[str, ...]:
    """Return the words of a text in small letters, without signs and articles.

    As SQuAD's normalisation, except that a sign parts words (``1997-1998`` is two).
    """
    words = text.lower().translate(_SIGNS).split()
    return tuple(word for word in words if word not in _ARTICLES)


def normalised(text: str) -> str:
    """Return a text as it is compared: small letters, no signs, no articles, single spaces.

    A text of nothing else is compared as it stands.
    """
    return " ".join(words_of(text)) or re.sub(r"\s+", " ", text.strip().lower())


def contains(whole: Sequence[str], part: Sequence[str]) -> bool:
    """Whether the words ``part`` stand one after the other in ``whole``; no words never do."""
    n = len(part)
    return n > 0 and any(tuple(whole[i : i + n]) == tuple(part) for i in range(len(whole) - n + 1))


def says_the_same(text: str, answer: str, aliases: Sequence[str] = ()) -> bool:
    """Whether ``text`` is the answer, or is right if an alias is.

    It is the answer if one contains the other by whole words. It is right if it equals an alias,
    stands in one, or holds one that the answer does not hold.
    """
    own, of_answer = words_of(text), words_of(answer)
    if normalised(text) == normalised(answer):
        return True
    if contains(own, of_answer) or contains(of_answer, own):
        return True
    for alias in aliases:
        other = words_of(alias)
        if normalised(text) == normalised(alias) or contains(other, own):
            return True
        if contains(own, other) and not contains(of_answer, other):
            return True
    return False
