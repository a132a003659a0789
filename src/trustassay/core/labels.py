"""What a single label says: words for right and wrong, numbers, and texts that are no label.

The words are in ``labels.toml``. :mod:`trustassay.input.labels` reads whole columns of labels.
"""

import math
import re
import tomllib
import unicodedata
from functools import lru_cache
from importlib.resources import files
from typing import Any

_WORDS = tomllib.loads(files("trustassay.core").joinpath("labels.toml").read_text(encoding="utf-8"))
# A comma before three digits may separate thousands (1,000) or decimals, unless it follows a 0.
_NUMBER = re.compile(
    r"[+-]?(?!0*[1-9]\d*,\d{3}(?!\d))(?:\d+(?:[.,]\d*)?|[.,]\d+)(?:e[+-]?\d+)?", re.IGNORECASE
)
_PERCENT = re.compile(r"(.*?)\s*(?:%|per ?cent|pct|prozent)", re.IGNORECASE)
_ACCENTS = re.compile("[\u0300-\u036f]")
# Selectors of an emoji's look, tones of skin, and characters without a width.
_INVISIBLE = re.compile("[\ufe0e\ufe0f\U0001f3fb-\U0001f3ff\u200b-\u200d\ufeff]")
_SURROUNDING = " \t\r\n\"'`.,;:!()[]«»„“”‘’‚。、「」『』"
_STARS = re.compile(r"\*+(.*?)\*+")
_BETWEEN_WORDS = re.compile(r"(?<=\w)[\s_-]+(?=\w)")
MAX_LABEL_CHARACTERS = 200
"""A longer text is a wrong column, and no label; the patterns would take long on it."""


def parse_number(text: str) -> float | None:
    """Return a text as a finite number, with a point or a comma before decimals; else ``None``.

    A number such as 1,000 is ambiguous, and so none.
    """
    folded = _fold_characters(text)
    if len(folded) > MAX_LABEL_CHARACTERS or not _NUMBER.fullmatch(folded):
        return None
    number = float(folded.replace(",", "."))
    return number if math.isfinite(number) else None


def parse_percent(text: str) -> float | None:
    """Return a text such as 85 % as a number, here 85, or ``None`` where it is not one."""
    folded = _fold_characters(text)
    match = _PERCENT.fullmatch(folded) if len(folded) <= MAX_LABEL_CHARACTERS else None
    return parse_number(match[1]) if match else None


def fold_label(text: str) -> str:
    """Return a label in the form in which labels are compared.

    Case, accents, surrounding punctuation and the colour of an emoji are dropped, spaces and
    hyphens between words become ``_``, and numbers get one spelling: 1.0 is 1. True and false are
    1 and 0, as they are in files that have booleans.
    """
    folded = _fold_characters(text).casefold()
    if len(folded) > MAX_LABEL_CHARACTERS:
        return folded
    number, percent = parse_number(folded), parse_percent(folded)
    if number is not None:
        return f"{number:.15g}"
    if percent is not None:
        return f"{percent:.15g}%"
    if stars := _STARS.fullmatch(folded):
        folded = stars[1]
    # What consists of punctuation alone stays as it is.
    bare = folded.strip(_SURROUNDING) or folded
    if bare != folded and parse_number(bare) is not None:
        return fold_label(bare)
    word = _BETWEEN_WORDS.sub("_", bare)
    return {"true": "1", "false": "0"}.get(word, word)


def _fold_characters(text: str) -> str:
    text = text.strip()
    if text.isascii() or len(text) > MAX_LABEL_CHARACTERS:
        return text
    folded = unicodedata.normalize("NFKC", text).replace("\N{MINUS SIGN}", "-")
    # Only accents of Latin letters: in Japanese such marks make another word.
    letters = _ACCENTS.sub("", unicodedata.normalize("NFD", folded))
    return _INVISIBLE.sub("", unicodedata.normalize("NFC", letters)).strip()


def _read_words(name: str) -> frozenset[str]:
    words = {fold_label(word) for word in _WORDS[name].split()}
    # "thumbsUp" and "NotSupported" are written without a space.
    return frozenset(words | {word.replace("_", "") for word in words})


YES, NO = _read_words("yes"), _read_words("no")
"""Words that mean what the name of a label asks, in the form of :func:`fold_label`."""
RIGHT, WRONG = YES | _read_words("right"), NO | _read_words("wrong")
"""Words for a right and for a wrong answer, in the form of :func:`fold_label`."""
CONTRADICTED, NOT_STATED = _read_words("contradicted"), _read_words("not_stated")
"""Words for claims that the evidence contradicts, and on which it is silent."""
_MISSING, _UNDECIDED = _read_words("missing"), _read_words("undecided")
_NEGATIONS = tuple(
    form
    for word in _WORDS["negations"].split()
    for form in dict.fromkeys((_fold_characters(word), _fold_characters(word).replace("_", "")))
)


@lru_cache(maxsize=4096)
def read_word(text: str) -> float | None:
    """Return 1 for a word that means right, 0 for one that means wrong, else ``None``."""
    word = fold_label(text)
    if word in RIGHT:
        return 1.0
    if word in WRONG:
        return 0.0
    # Not one of these words is for right as it stands, so something was removed here.
    return 0.0 if any(word.removeprefix(form) in RIGHT for form in _NEGATIONS) else None


def is_missing(text: str) -> bool:
    """Whether a text says that there is no label: it is blank, or such as nan, N/A or None."""
    return not _fold_characters(text) or fold_label(text) in _MISSING


@lru_cache(maxsize=4096)
def is_undecided(text: str) -> bool:
    """Whether a text says that a person could not tell what is right, or skipped the answer."""
    # "unsure?" is "unsure"; a question mark alone is a word by itself.
    return fold_label(text.strip().rstrip("?") or "?") in _UNDECIDED


def normalise_label(value: Any) -> float | str | None:
    """Return a label as samples hold it: a number, else a text as it was written, else ``None``.

    Booleans are 1 and 0, also as text: a file of CSV has no others. What is no label at all, such
    as an infinite number, becomes text, so that whoever reads labels can complain about it.
    """
    if value is None:
        return None
    text = str(value).strip()
    try:
        # A text may have a comma before its decimals, or an underscore, which ``float`` accepts.
        number = parse_number(value) if isinstance(value, str) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = None
    if number is not None and math.isfinite(number):
        return number
    if is_missing(text):
        return None
    # Words such as yes stay: which of them mean right, `--positive` may say.
    return {"true": 1.0, "false": 0.0}.get(text.casefold(), text)


def read_single_label(label: float | str | None) -> float | None:
    """Return the number of a label by itself; above 0 it means right.

    Words count 1 or 0, 85 % counts 85. ``None`` without a label, and where it cannot be read.
    """
    if not isinstance(label, str):
        return label
    for read in (parse_number, parse_percent, read_word):
        if (number := read(label)) is not None:
            return number
    return None


def is_about_wrong(name: str) -> bool:
    """Whether the name of a label says what is wrong, as ``is_hallucinated`` does."""
    folded = _fold_characters(name).casefold()
    tokens = re.split(r"[\W_]+", folded)
    names = _WORDS["names"]
    if not set(tokens).isdisjoint(names["without"].split()):
        return False
    return any(_fold_characters(part) in folded for part in names["wrong"].split())
