"""Words of a text: plain, content words, stems, negations, and amounts in words."""

import re
import string
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
NUMERALS = {
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
        bare = NUMERALS.get(word, word).replace("’", "'")
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
    result: dict[str, None] = {}
    for word in plain_words(text):
        if word[0].isdigit():
            result[word] = None
        elif not is_negation(word) and word not in _EMPTY_WORDS:
            result[stem(word)] = None
    return tuple(result)


def stem(word: str) -> str:
    """Return a word in lower case without common English endings."""
    word = word.removesuffix("'s")
    for ending in ("ingly", "edly", "ing", "ies", "ied", "es", "ed", "ly", "s", "e", "y"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(?:a|an|the)\b")


def normalise_squad(text: str) -> str:
    """Lower-case, delete ASCII punctuation, drop a/an/the, squeeze white space (SQuAD)."""
    bare = text.lower().translate(_PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", bare).split())


@lru_cache(maxsize=4096)
def normalise(text: str) -> str:
    """Fold case, width and typographic forms; dashes and slashes part words; drop articles.

    A text that is an article alone ("A", "The") keeps it: an answer never becomes empty by that.
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    kept = []
    for character in folded:
        category = unicodedata.category(character)
        if category == "Pd" or character in "/\\":
            kept.append(" ")
        elif category[0] != "P":
            kept.append(character)
    bare = unicodedata.normalize("NFKC", "".join(kept))
    words = _ARTICLES.sub(" ", bare).split() or bare.split()
    return " ".join(words)


def amount(count: float, singular: str, plural: str = "") -> str:
    """Return a count with its noun: ``1 answer``, ``1,000 answers``, ``2 replies``."""
    return f"{count:,.0f} {singular if count == 1 else plural or singular + 's'}"
