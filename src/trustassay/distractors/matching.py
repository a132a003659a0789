"""Whether two answers say the same: SQuAD's normalisation, and containment by whole words."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from functools import lru_cache

__all__ = ["contains", "normalised", "says_the_same", "words_of"]

_ARTICLES = frozenset(("a", "an", "the"))
SHORT = 200
"""Characters of a text that is kept with its normalisation; longer ones seldom come again."""


def words_of(text: str) -> tuple[str, ...]:
    """Return the words of a text as they are compared (:func:`normalised`)."""
    return tuple(normalised(text).split())


def normalised(text: str) -> str:
    """Return a text as it is compared: small letters, no signs, no articles, single spaces.

    As SQuAD's normalisation, except that letters are compared by their compatibility form (NFKC,
    case folded), that any punctuation or ASCII symbol parts words (``1997-1998`` is two), and that
    a text of nothing else is compared as it stands.
    """
    return _kept(text) if len(text) < SHORT else _normalised(text)


def _normalised(text: str) -> str:
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    words = text.translate(_SIGNS).split()
    found = " ".join(word for word in words if word not in _ARTICLES)
    return found or " ".join(text.split())


_kept = lru_cache(maxsize=65_536)(_normalised)


class _Signs(dict[int, str]):
    """Makes a space of each sign: punctuation of any script, and the symbols of ASCII."""

    def __missing__(self, code: int) -> str:
        sign = chr(code)
        kind = unicodedata.category(sign)[0]
        is_sign = kind == "P" or (kind == "S" and sign.isascii())
        return self.setdefault(code, " " if is_sign else sign)


_SIGNS = _Signs()


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
