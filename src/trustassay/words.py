"""English words as they are compared: folded, without endings, without those that say nothing."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

REMEMBERED = 10_000
"""Characters of the longest text whose words are kept in memory."""
_WORD = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_]+(?:['’][^\W\d_]+)?")
_NEGATIONS = frozenset(
    "no not none never neither nor nobody nothing nowhere cannot without hardly fails".split()
)
_EMPTY_WORDS = frozenset(
    "a an the this that these those it its he she they them his her their i you we who whom which "
    "what where when how is are was were be been being am do does did has have had having will "
    "would can could may might must shall should of in on at by for with from to into onto as and "
    "or but if then than so such there here also very more most some any each both all about "
    "between during after before over under up down out off again just only own same too s".split()
)
_NUMERALS = {
    word: str(value)
    for value, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
        "fifteen sixteen seventeen eighteen nineteen twenty".split()
    )
}


def plain_words(text: str) -> Iterator[str]:
    """Yield the words of a text in order, folded; numerals and numbers as digits: ``1,000`` and
    ``1000`` are the same word, and so are ``two`` and ``2``.
    """
    for match in _WORD.finditer(unicodedata.normalize("NFKC", text).casefold()):
        word = match.group()
        bare = _NUMERALS.get(word, word).replace("’", "'")
        yield bare.replace(",", "").rstrip(".") if bare[0].isdigit() else bare


def is_negation(word: str) -> bool:
    """Whether a word as :func:`plain_words` gives it negates."""
    return word in _NEGATIONS or word.endswith("n't")


def is_empty_word(word: str) -> bool:
    """Whether a word as :func:`plain_words` gives it says nothing by itself, as "the" and "is"."""
    return word in _EMPTY_WORDS


def content_words(text: str) -> tuple[str, ...]:
    """Return the different content words of a text in order, without common English endings:
    "elephants" is "elephant" and "lived" is "liv". Negations and words that say nothing by
    themselves are left out.
    """
    return _content_words(text) if len(text) <= REMEMBERED else _content_words.__wrapped__(text)


@lru_cache(maxsize=8192)
def _content_words(text: str) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for word in plain_words(text):
        if word[0].isdigit():
            found[word] = None
        elif not is_negation(word) and word not in _EMPTY_WORDS:
            found[_stem(word)] = None
    return tuple(found)


def _stem(word: str) -> str:
    word = word.removesuffix("'s")
    for ending in ("ingly", "edly", "ing", "ies", "ied", "es", "ed", "ly", "s", "e", "y"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


def amount(n: int, one: str, several: str = "") -> str:
    """Return ``1 reply``, ``2 replies``: by default the plural ends in an s."""
    return f"{n:.0f} {one if n == 1 else several or one + 's'}"
