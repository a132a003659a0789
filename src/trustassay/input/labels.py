"""Reads labels of answers as people write them: numbers, words for right and wrong, or levels.

All commands with labels use this module (``study``, ``calibrate``, ``label``, ``rank`` and those
with ``--labels``), so that a file means the same in all of them. What a single word or number says
is in :mod:`trustassay.core.labels`.
"""

import json
import math
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from trustassay.core.json_form import JsonForm
from trustassay.core.labels import (
    MAX_LABEL_CHARACTERS,
    NO,
    YES,
    fold_label,
    is_about_wrong,
    is_missing,
    is_undecided,
    parse_number,
    parse_percent,
    read_word,
)
from trustassay.input.records import InputError

LabelKind = Literal["binary", "ordinal", "real"]

MAX_LABEL_LEVELS = 11
"""Distinct whole numbers up to which labels are levels of a scale; with more they are real."""
MIN_READABLE_SHARE = 0.8
"""Share of labels, of those that are there, that must be readable for the others to be left out."""
MAX_WORDS_LISTED = 8
"""Unreadable labels that a message lists; the others are counted."""
MAX_LABEL = 1e100
"""Largest absolute value of a label or a rating; squares of larger numbers may overflow."""
WAYS_OUT = (
    "name the label that means right with --positive WORD, or a scale with --levels of `study`"
)


@dataclass(frozen=True, slots=True)
class UnreadLabels(JsonForm):
    """Labels that are left out, since they say neither a number nor what is right."""

    json_names = ("count", "labels", "words", "first", "undecided")
    count: int
    labels: int
    """All labels that are there, readable or not."""
    words: Mapping[str, int]
    """The unreadable labels with their numbers, the most frequent first."""
    first: str = ""
    """The id, or the place, of the first of them."""
    undecided: int = 0
    """How many of ``count`` say that a person could not tell."""

    @classmethod
    def of(cls, words: Iterable[tuple[str, str]], labels: int) -> "UnreadLabels":
        """Count unreadable labels, each with its id or place, among ``labels`` in all."""
        # A wrong column may have whole texts.
        pairs = [(word[:MAX_LABEL_CHARACTERS], place) for word, place in words]
        counts = Counter(word for word, _ in pairs)
        return cls(
            len(pairs),
            labels,
            dict(counts.most_common()),
            pairs[0][1] if pairs else "",
            sum(count for word, count in counts.items() if is_undecided(word)),
        )

    @property
    def too_many(self) -> bool:
        """Whether the readable labels are too few to leave the others out."""
        # Who cannot tell wrote no wrong word: such labels say nothing about the column.
        others = self.labels - self.undecided
        return self.count - self.undecided > (1 - MIN_READABLE_SHARE) * others + 1e-9

    def list_words(self) -> str:
        """List the words with their numbers."""
        listed = list(self.words.items())[:MAX_WORDS_LISTED]
        message = ", ".join(f"{word[:40]!r} ({n:,})" for word, n in listed)
        more = len(self.words) - len(listed)
        return message + (f" and {more:,} more" if more else "")

    def describe(self, subject: str, ways_out: str = WAYS_OUT) -> str:
        """Describe in one line what is left out of labels, and what to do."""
        first = f", the first at {self.first[:80]!r}" if self.first else ""
        if self.count == self.undecided:
            return (
                f"{subject}: {self.count:,} of {self.labels:,} are undecided and left out{first}: "
                f"{self.list_words()}"
            )
        return (
            f"{subject}: {self.count:,} of {self.labels:,} cannot be read and are left out{first}: "
            f"{self.list_words()}; {ways_out}"
        )


@dataclass(frozen=True, slots=True)
class LabelValues:
    """Labels as numbers."""

    kind: LabelKind
    """``binary`` (0 and 1), ``ordinal`` (levels) or ``real``."""
    values: Sequence[float]
    """The labels in the order of the input; NaN for a missing one, or one that cannot be read."""
    words: Sequence[str] = ()
    """The words of the levels, the lowest first; empty where the labels were not levels."""
    opposite: str = ""
    """The options that read labels of two classes the other way round, if there are any."""
    unread: UnreadLabels | None = None
    """The labels that cannot be read, if there are any."""
    uses_positive: bool = False
    """Whether the words that the user named for right occur."""
    undecided: Sequence[int] = ()
    """The places of labels that are there and say neither: "cannot tell", or unreadable."""

    @property
    def missing_count(self) -> int:
        """The number of labels without a value."""
        return sum(map(math.isnan, self.values))


class _LabelReading(NamedTuple):
    """What each label means."""

    kind: LabelKind
    numbers: Mapping[str, float]
    """By the text of a label, its value; texts that cannot be read are left out."""
    words: Sequence[str] = ()
    uses_positive: bool = False


def read_labels(
    name: str,
    labels: Sequence[Any],
    *,
    ids: Sequence[str] = (),
    scale: Sequence[Any] = (),
    positive: Sequence[str] = (),
    at_least: float | None = None,
    levels: Sequence[str] = (),
) -> LabelValues:
    """Read labels. ``None``, NaN, blank texts and such as "nan" and "N/A" are missing.

    Args:
        name: the name of the field, for messages.
        labels: numbers, booleans or texts.
        ids: the id of the answer of each label, for messages.
        scale: labels that could have been given, which help to recognise the kind.
        positive: words or numbers that mean right; all others then mean wrong. Applies where at
            least one of them occurs; where all labels are yes and no, one stands for the others
            of its kind, such as false and 0 for no.
        at_least: the number from which a label means right. Applies where labels are numbers.
        levels: words of an ordinal scale, the lowest first. Applies where at least one of them
            occurs; of two levels the higher one means right.

    Without these options labels are read as numbers, as per cent, or as words for right and wrong,
    also beside 0 and 1, whichever reads most of them. Numbers are binary where they are only 0 and
    1, 0 and 100, or -1 and 1; up to eleven distinct whole numbers, not per cent, are ordinal, and
    all others real. Nothing says which of two numbers such as 1 and 2 means right. Where at least
    80 % of the labels can be read, the others are left out and counted; words such as "unsure" are
    left out in any number, unless an option names them.

    Raises:
        InputError: all labels are missing; fewer can be read, and the message lists the others;
            or yes and no may mean the opposite, as in a field named ``hallucinated``.
    """
    texts = [_label_text(label) for label in labels]
    counts = Counter(filter(None, texts))
    if not counts:
        raise InputError(f"label {name}: all {len(labels):,} labels are missing")
    # Objects and lists are no words that `--positive` could speak of; "unsure" may be a level.
    options = {fold_label(word) for word in (*positive, *levels)}
    left_out = {text for text in counts if is_undecided(text) and fold_label(text) not in options}
    left_out |= {
        text
        for text, label in zip(texts, labels, strict=True)
        if isinstance(label, Mapping | list | tuple)
    }
    possible = dict.fromkeys(filter(None, map(_label_text, scale)), 0) | counts
    readable = {text: count for text, count in possible.items() if text not in left_out}
    reading = _choose_reading(name, readable, positive, at_least, levels)
    undecided = [place for place, t in enumerate(texts) if t and t not in reading.numbers]
    unread = UnreadLabels.of(
        ((texts[place], ids[place] if ids else "") for place in undecided), counts.total()
    )
    if unread.too_many or unread.count == unread.labels:
        has_objects = any(isinstance(label, Mapping) for label in labels)
        raise _build_unread_error(name, unread, reading.words, has_objects=has_objects)
    return LabelValues(
        reading.kind,
        [reading.numbers.get(text, math.nan) for text in texts],
        reading.words,
        _build_opposite(reading, counts) if at_least is None else "",
        unread if unread.count else None,
        reading.uses_positive,
        undecided,
    )


def _build_unread_error(
    name: str, unread: UnreadLabels, levels: Sequence[str], *, has_objects: bool
) -> InputError:
    if levels:
        message = f"not among the levels {', '.join(levels)}: {unread.list_words()}"
        return InputError(f"label {name}: {message}")
    inside = f"; name a field inside the object ({name}.FIELD)" if has_objects else ""
    return InputError(
        f"label {name}: it is not clear which labels mean right: {unread.list_words()}; expected "
        "numbers, or words such as yes and no, correct and incorrect, supported and not_supported"
        f"{inside}; {WAYS_OUT}"
    )


def _build_opposite(reading: _LabelReading, counts: Mapping[str, int]) -> str:
    """Return the options that make the words for wrong those for right."""
    if reading.kind != "binary":
        return ""
    wrong = {fold_label(text): text for text in counts if reading.numbers.get(text) == 0}
    words = list(wrong.values())
    # Where all labels are yes and no, one word stands for all of its kind.
    if {fold_label(text) for text in counts} <= YES | NO:
        words = ["yes"] * bool(YES & wrong.keys()) + ["no"] * bool(NO & wrong.keys())
    return " ".join(map(_write_positive, words)) if len(words) <= MAX_WORDS_LISTED else ""


def _write_positive(word: str) -> str:
    # With a sign of equality, so that -1 is no option.
    return f"--positive={word}" if word.startswith("-") else shlex.join(["--positive", word])


def _label_text(value: Any) -> str:
    """Return a label as text, empty where it is missing."""
    if isinstance(value, Mapping | list | tuple):
        return json.dumps(value, ensure_ascii=False, default=str)
    # Before numbers, since ``True`` is an ``int`` in Python.
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        # 1.0 in a stored sample was 1, or true, in most files.
        return "" if math.isnan(value) else str(int(value) if value.is_integer() else value)
    text = str(value).strip()
    return "" if value is None or is_missing(text) else text


def _choose_reading(
    name: str,
    counts: Mapping[str, int],
    positive: Sequence[str],
    at_least: float | None,
    levels: Sequence[str],
) -> _LabelReading:
    """Choose what labels mean.

    Args:
        counts: the number of labels by text; 0 for those that only could have been given.
    """
    numbers = _read_texts(counts, _parse_label_number)
    # The usual case, of which there may be millions: numbers that no option speaks of.
    if len(numbers) == len(counts) and not (positive or levels):
        return _read_numbers(name, numbers, counts, at_least)
    # 1. Words that the user names come first.
    folded = {text: fold_label(text) for text in counts}
    right = {fold_label(word) for word in positive}
    words_present = set(folded.values())
    # Where labels are yes and no in any form, "no" also stands for false and 0, and makes every
    # label wrong if all are yes. Among the numbers 0 to 5, "no" does not stand for 0.
    is_yes_or_no = bool(right) and right | words_present <= YES | NO
    if is_yes_or_no:
        right = set(YES if right & YES else ()) | set(NO if right & NO else ())
    if right & words_present or is_yes_or_no:
        values = {text: float(word in right) for text, word in folded.items()}
        return _LabelReading("binary", values, uses_positive=True)
    scale = [fold_label(word) for word in levels]
    if words_present.intersection(scale):
        kind: LabelKind = "binary" if len(scale) == 2 else "ordinal"
        places = {t: float(scale.index(word)) for t, word in folded.items() if word in scale}
        return _LabelReading(kind, places, tuple(levels))
    # 2. What reads most labels. Of equal ones the first: 0 and 1 are numbers.
    percents, words = _read_texts(counts, parse_percent), _read_texts(counts, read_word)
    values = max((numbers, percents, words), key=lambda read: sum(counts[text] for text in read))
    if values is not words:
        return _read_numbers(name, values, counts, at_least, of_percents=values is percents)
    # Words such as supported mean the same under any name, yes and no do not.
    if all(folded[text] in YES | NO for text in words):
        _check_direction(name, words, counts)
    return _LabelReading("binary", words)


def _read_numbers(
    name: str,
    values: Mapping[str, float],
    counts: Mapping[str, int],
    at_least: float | None,
    *,
    of_percents: bool = False,
) -> _LabelReading:
    """Say what labels mean that are numbers, by their texts."""
    if at_least is not None:
        # 0.8 would accept nearly every label.
        if of_percents and 0 < at_least <= 1:
            raise InputError(
                f"label {name}: is in per cent; expected a threshold from 0 to 100, for example "
                f"{100 * at_least:g}, got {at_least:g}"
            )
        return _LabelReading("binary", {t: float(v >= at_least) for t, v in values.items()})
    kind, right = _classify_numbers(set(values.values()), of_percents=of_percents)
    if kind != "binary":
        return _LabelReading(kind, values)
    classes = {text: float(value == right) for text, value in values.items()}
    _check_direction(name, classes, counts)
    return _LabelReading("binary", classes)


def _read_texts(texts: Iterable[str], read: Callable[[str], float | None]) -> dict[str, float]:
    return {text: value for text in texts if (value := read(text)) is not None}


def _parse_label_number(text: str) -> float | None:
    number = parse_number(text)
    return number if number is not None and abs(number) <= MAX_LABEL else None


def _classify_numbers(values: set[float], *, of_percents: bool) -> tuple[LabelKind, float]:
    """Return the kind of numbers, and the one that means right if they are of two classes."""
    # 0 and 100 are per cent with or without a sign; -1 and 1 are thumbs down and up.
    for wrong, right in ((0.0, 1.0), (0.0, 100.0), (-1.0, 1.0)):
        if values <= {wrong, right} and not (of_percents and right == 1):
            return "binary", right
    are_levels = all(v.is_integer() for v in values) and len(values) <= MAX_LABEL_LEVELS
    return "ordinal" if are_levels and not of_percents else "real", math.nan


def _check_direction(name: str, values: Mapping[str, float], counts: Mapping[str, int]) -> None:
    """Raise InputError for a yes under a name that says what is wrong."""
    if not (values and is_about_wrong(name)):
        return
    words = sorted((text for text in values if counts[text]), key=lambda text: -counts[text])
    listed = ", ".join(f"{text[:40]!r} ({counts[text]:,})" for text in words[:MAX_WORDS_LISTED])
    wrong, right = (
        next((text for text in words if values[text] == value), default)
        for value, default in ((0.0, "no"), (1.0, "yes"))
    )
    raise InputError(
        f"label {name}: its name is about errors, so its labels may mean the opposite: {listed}; "
        f"use {_write_positive(wrong)} if an answer labelled {wrong} is right, else "
        f"{_write_positive(right)}"
    )
