"""Splits texts into words: plain words, content words, stems; negations, normal forms, plurals."""

import re
import string
import unicodedata
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import lru_cache

MAX_CACHED_CHARACTERS = 10_000
"""Characters of the longest text whose words are cached."""
# Numbers with separators ("1,000.5"), and words with one apostrophe ("isn't", "o'clock").
_WORD = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_]+(?:['’][^\W\d_]+)?")
_NEGATIONS = frozenset(
    "no not none never neither nor nobody nothing nowhere cannot without hardly fails".split()
)
# Function words. Negations are kept apart, since they change what a sentence says.
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
    """Yield the words of a text in order and in small letters, with numerals as digits.

    ``1,000`` and ``1000`` are the same word, and so are ``two`` and ``2``.
    """
    for match in _WORD.finditer(unicodedata.normalize("NFKC", text).casefold()):
        word = match.group()
        bare = NUMERALS.get(word, word).replace("’", "'")
        yield bare.replace(",", "").rstrip(".") if bare[0].isdigit() else bare


def is_negation(word: str) -> bool:
    """Whether a word, as :func:`plain_words` gives it, is a negation."""
    return word in _NEGATIONS or word.endswith("n't")


def is_empty_word(word: str) -> bool:
    """Whether a word, as :func:`plain_words` gives it, is a function word such as "the"."""
    return word in _EMPTY_WORDS


def content_words(text: str) -> tuple[str, ...]:
    """Return the stems of the distinct content words of a text in order.

    "elephants" gives "elephant" and "lived" gives "liv". Negations and function words are left
    out. Results for texts of up to 10,000 characters are cached.
    """
    return (
        _content_words(text)
        if len(text) <= MAX_CACHED_CHARACTERS
        else _content_words.__wrapped__(text)
    )


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
    # Longer endings first. At least three letters stay, so that "sing" is not cut to "s".
    for ending in ("ingly", "edly", "ing", "ies", "ied", "es", "ed", "ly", "s", "e", "y"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


MIN_STEM_LETTERS = 4
"""Letters of the shortest word that may be the beginning of another form of it."""


def has_form(words: Sequence[str], word: str) -> bool:
    """Whether sorted words contain a word, or one that begins with it: "cancel", "cancelled"."""
    place = bisect_left(words, word)
    # The first word that is not before it in the alphabet begins with it, if any does.
    after = words[place] if place < len(words) else ""
    return after == word or (len(word) >= MIN_STEM_LETTERS and after.startswith(word))


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
    characters = []
    for character in folded:
        category = unicodedata.category(character)
        # Dashes and slashes separate words; other punctuation is dropped without a trace.
        if category == "Pd" or character in "/\\":
            characters.append(" ")
        elif category[0] != "P":
            characters.append(character)
    # Once more, because dropping punctuation may bring a letter and a combining mark together.
    bare = unicodedata.normalize("NFKC", "".join(characters))
    # "A" and "The" are answers, too (a letter of a choice, a band): without the second part they
    # would become empty.
    words = _ARTICLES.sub(" ", bare).split() or bare.split()
    return " ".join(words)


def list_quoted(texts: Sequence[str]) -> str:
    """Return the first six texts, each in quotation marks, so that no number reads as a count."""
    return ", ".join(f"“{text}”" for text in texts[:6])
