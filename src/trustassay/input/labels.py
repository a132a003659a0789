"""Reads labels of answers as people write them: numbers, words for right and wrong, or levels.

All commands with labels use this module (``study``, ``calibrate``, ``label`` and those with
``--labels``), so that a file means the same in all of them.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from trustassay.input.layouts import NAMES
from trustassay.input.records import InputError

LabelKind = Literal["binary", "ordinal", "real"]

RIGHT, WRONG = (frozenset(NAMES["labels"][kind].split()) for kind in ("right", "wrong"))
"""Words for a right and for a wrong answer, in the form of :func:`fold_label`."""
MAX_LABEL_LEVELS = 11
"""Distinct whole numbers up to which labels are levels of a scale; with more they are real."""
MAX_WORDS_LISTED = 8
"""Unknown words that a message lists; the others are counted."""
MAX_LABEL = 1e100
"""Largest absolute value of a label or a rating; squares of larger numbers may overflow."""


@dataclass(frozen=True, slots=True)
class LabelValues:
    """Labels as numbers."""

    kind: LabelKind
    """``binary`` (0 and 1), ``ordinal`` (levels) or ``real``."""
    values: Sequence[float]
    """The labels in the order of the input; NaN for a missing one."""
    words: Sequence[str] = ()
    """The words of the levels, the lowest first; empty where the labels were not levels."""

    @property
    def missing_count(self) -> int:
        """The number of missing labels."""
        return sum(map(math.isnan, self.values))


def read_labels(
    name: str,
    labels: Sequence[Any],
    *,
    positive: Sequence[str] = (),
    at_least: float | None = None,
    levels: Sequence[str] = (),
) -> LabelValues:
    """Read labels. ``None``, an empty text and NaN are missing.

    Args:
        name: the name of the field, for messages.
        labels: numbers, booleans or texts.
        positive: words or numbers that mean right; all others then mean wrong. Applies where at
            least one of them occurs.
        at_least: the number from which a label means right. Applies where all labels are numbers.
        levels: words of an ordinal scale, the lowest first. Applies where at least one of them
            occurs; of two levels the higher one means right.

    Without these options 0 and 1 are binary, up to eleven distinct whole numbers ordinal, and all
    other numbers real; nothing says which of two numbers such as 1 and 2 means right. Words, also
    beside 0 and 1, mean right or wrong as listed in ``names.toml``.

    Raises:
        InputError: all labels are missing, a label is neither a number nor a word, a number is not
            finite, or words are unknown; the message lists these words.
    """
    texts = [_read_label_text(name, label) for label in labels]
    texts_present = [text for text in texts if text]
    if not texts_present:
        raise InputError(f"label {name}: all {len(labels):,} labels are missing")
    words = [fold_label(text) for text in texts]
    right, scale = {fold_label(word) for word in positive}, [fold_label(word) for word in levels]
    # The order decides: words that the user names come before numbers, and numbers before the words
    # that are known here.
    if right.intersection(words):
        return LabelValues("binary", _read_binary_words(words, right))
    if set(scale).intersection(words):
        kind: LabelKind = "binary" if len(scale) == 2 else "ordinal"
        return LabelValues(kind, _find_levels(name, texts, scale), tuple(levels))
    numbers = [parse_number(text) for text in texts_present]
    # Only if every label is a number; "yes" beside 1 is read as words.
    if None not in numbers:
        return _read_numbers(name, [float(text or math.nan) for text in texts], at_least)
    _refuse_unknown(name, texts_present)
    return LabelValues("binary", _read_binary_words(words, RIGHT))


def fold_label(text: str) -> str:
    """Return a label in the form in which labels are compared.

    Case is dropped, spaces and hyphens become ``_``, and numbers get one spelling: 1.0 is 1.
    """
    number = parse_number(text)
    if number is not None:
        return f"{number:.15g}"
    return "_".join(text.casefold().replace("-", " ").split())


def is_right_or_wrong(text: str) -> bool:
    """Whether a text is a known word for right or wrong."""
    return fold_label(text) in RIGHT | WRONG


def parse_number(text: str) -> float | None:
    """Return a text as a number, or ``None`` where it is not one."""
    try:
        return float(text)
    except ValueError:
        return None


def _read_label_text(name: str, value: Any) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    # Before numbers, since ``True`` is an ``int`` in Python.
    if isinstance(value, bool):
        return str(int(value))
    if not isinstance(value, str | int | float):
        kind = "an object" if isinstance(value, dict) else "a list"
        inside = f"; name a field in it ({name}.…)" if isinstance(value, dict) and value else ""
        raise InputError(f"label {name}: expected a number or a word, got {kind}{inside}")
    return str(value).strip()


def _read_binary_words(words: Sequence[str], right: set[str] | frozenset[str]) -> list[float]:
    return [float(word in right) if word else math.nan for word in words]


def _read_numbers(name: str, values: Sequence[float], at_least: float | None) -> LabelValues:
    present = [value for value in values if not math.isnan(value)]
    # "not ... <=" also catches infinities.
    if too_large := [value for value in present if not abs(value) <= MAX_LABEL]:
        raise InputError(f"label {name}: expected finite numbers, got {too_large[0]:g}")
    if at_least is not None:
        result = [value if math.isnan(value) else float(value >= at_least) for value in values]
        return LabelValues("binary", result)
    if set(present) <= {0.0, 1.0}:
        return LabelValues("binary", values)
    are_whole = all(value.is_integer() for value in present)
    are_few = len(set(present)) <= MAX_LABEL_LEVELS
    return LabelValues("ordinal" if are_whole and are_few else "real", values)


def _find_levels(name: str, texts: Sequence[str], scale: Sequence[str]) -> list[float]:
    """Return the indices of words on a scale; NaN for an empty text."""
    if unknown := [text for text in texts if text and fold_label(text) not in scale]:
        raise InputError(
            f"label {name}: {unknown[0][:40]!r} is not among the levels {', '.join(scale)}"
        )
    return [float(scale.index(fold_label(text))) if text else math.nan for text in texts]


def _refuse_unknown(name: str, texts: Sequence[str]) -> None:
    """Raise an :class:`InputError` that lists the words that mean neither right nor wrong."""
    if unknown := Counter(text for text in texts if not is_right_or_wrong(text)):
        words = unknown.most_common(MAX_WORDS_LISTED)
        message = ", ".join(f"{text[:40]!r} ({n:,})" for text, n in words)
        more = len(unknown) - MAX_WORDS_LISTED
        message += f" and {more:,} more" if more > 0 else ""
        raise InputError(
            f"label {name}: does not say what is right: {message}; expected numbers, or "
            "words such as yes and no, correct and incorrect, supported and not_supported; "
            "--positive WORD names what is right, --levels the words of a scale"
        )
