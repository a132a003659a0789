"""Labels of answers, as people write them: numbers, or words for right and wrong, or levels."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from trustassay.data.layouts import NAMES
from trustassay.data.ratings import LARGEST, refuse, table_rows
from trustassay.data.records import InputError
from trustassay.errors import did_you_mean

Kind = Literal["binary", "ordinal", "real"]

POSITIVE, NEGATIVE = (frozenset(NAMES["labels"][kind].split()) for kind in ("right", "wrong"))
"""Words for an answer that is right, and for one that is not, as :func:`folded` writes them."""
MOST_LEVELS = 11
"""Different whole numbers up to which labels are levels of a scale."""
TOLD = 8


@dataclass(frozen=True, slots=True)
class LabelValues:
    """Labels as numbers, in the order given; NaN is a missing one.

    kind: binary labels are 0 and 1. words: what the numbers mean, where they were words.
    """

    kind: Kind
    values: Sequence[float]
    words: Sequence[str] = ()

    @property
    def missing(self) -> int:
        """How many are missing."""
        return sum(map(math.isnan, self.values))


def label_values(
    name: str, given: Sequence[Any], *, positive: Sequence[str] = (), levels: Sequence[str] = ()
) -> LabelValues:
    """Read labels. ``None``, an empty text and NaN are missing.

    Args:
        name: of the field, for messages.
        given: numbers, booleans, texts.
        positive: words that mean right; every other then means wrong. Applies where one occurs.
        levels: words of an ordinal scale, the lowest first. Applies where a label is one of them.

    Two different numbers are binary, the larger one being 1; up to eleven whole numbers are
    ordinal, all others real.

    Raises:
        InputError: all are missing, one is neither a number nor a word, a number is not finite,
            or words are not known; the message names those that were found.
    """
    texts = [_text(name, value) for value in given]
    there = [text for text in texts if text]
    if not there:
        raise InputError(f"label {name}: all {len(given):,} labels are missing")
    wanted, scale = [folded(one) for one in positive], [folded(one) for one in levels]
    if any(folded(text) in wanted for text in there):
        result = [float(folded(text) in wanted) if text else math.nan for text in texts]
        return LabelValues("binary", result)
    if any(folded(text) in scale for text in there):
        return LabelValues("ordinal", _places(name, texts, scale), tuple(levels))
    numbers = [math.nan if not text else as_number(text) for text in texts]
    if not any(number is None for number in numbers):
        return _numbers(name, [math.nan if one is None else one for one in numbers])
    return LabelValues("binary", _by_words(name, texts))


def folded(text: str) -> str:
    """Return a word as it is compared: without case, and ``_`` for spaces and hyphens."""
    return "_".join(text.casefold().replace("-", " ").split())


def _text(name: str, value: Any) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, bool):
        return str(int(value))
    if not isinstance(value, str | int | float):
        kind = "an object" if isinstance(value, dict) else "a list"
        inside = f"; name a field in it ({name}.…)" if isinstance(value, dict) and value else ""
        raise InputError(f"label {name}: expected a number or a word, got {kind}{inside}")
    return str(value).strip()


def as_number(text: str) -> float | None:
    """Return the number that a text is, if it is one."""
    try:
        return float(text)
    except ValueError:
        return None


def _numbers(name: str, values: Sequence[float]) -> LabelValues:
    there = [value for value in values if not math.isnan(value)]
    if strange := [value for value in there if not abs(value) <= LARGEST]:
        raise InputError(f"label {name}: expected finite numbers, got {strange[0]:g}")
    different = sorted(set(there))
    if set(different) <= {0.0, 1.0}:
        return LabelValues("binary", values)
    if len(different) == 2:
        high = different[1]
        result = [value if math.isnan(value) else float(value == high) for value in values]
        return LabelValues("binary", result, [f"{value:g}" for value in different])
    whole = all(value.is_integer() for value in there)
    return LabelValues("ordinal" if whole and len(different) <= MOST_LEVELS else "real", values)


def _places(name: str, texts: Sequence[str], scale: Sequence[str]) -> list[float]:
    """Return the places of words on a scale."""
    if strange := [text for text in texts if text and folded(text) not in scale]:
        raise InputError(
            f"label {name}: {strange[0][:40]!r} is not among the levels {', '.join(scale)}"
        )
    return [float(scale.index(folded(text))) if text else math.nan for text in texts]


def _by_words(name: str, texts: Sequence[str]) -> list[float]:
    """Return 1 for words that mean right, 0 for those that mean wrong."""
    known = {"", *POSITIVE, *NEGATIVE}
    if unknown := Counter(text for text in texts if folded(text) not in known):
        message = ", ".join(f"{text[:40]!r} ({n:,})" for text, n in unknown.most_common(TOLD))
        more = f" and {len(unknown) - TOLD:,} more" if len(unknown) > TOLD else ""
        raise InputError(
            f"label {name}: does not say what is right: {message}{more}; expected numbers, or "
            "words such as yes and no, correct and incorrect, supported and not_supported; "
            "--positive WORD names what is right, --levels the words of a scale"
        )
    return [float(folded(text) in POSITIVE) if text else math.nan for text in texts]


PAIR_FIELDS = ("premise", "hypothesis", "label", "kind")
"""What is read of a row; ``kind`` may be missing."""
SUPPORTED, OTHER, CONTRADICTED, NOT_STATED = (
    frozenset(NAMES["labels"][kind].split())
    for kind in ("supported", "other", "contradicted", "not_stated")
)
"""Words for what a premise supports, and for all else; of these, those that tell contradicted from
not stated."""
FAULTS_TOLD = 5


@dataclass(frozen=True, slots=True)
class LabelledPair:
    """A pair, whether the premise supports the hypothesis, and its kind (empty: none given).

    contradicted: whether the premise says otherwise; None where the label does not tell.
    """

    premise: str
    hypothesis: str
    supported: bool
    kind: str = ""
    contradicted: bool | None = None


def read_pairs(
    path: Path, *, fields: Mapping[str, str] | None = None, supported: str = ""
) -> list[LabelledPair]:
    """Read labelled pairs from ``.jsonl``, ``.json``, ``.csv`` or ``.tsv``, packed or not.

    Args:
        path: of the file.
        fields: names of columns by what they are: ``{"premise": "passage"}``.
        supported: the label of what is supported, where it is none of the usual words; every
            other label is then of what is not.

    Raises:
        InputError: the file cannot be read, a field is missing, a label is not known, or all
            labels mean the same; names the first faulty rows.
    """
    named = {name: name for name in PAIR_FIELDS}
    for name, column in (fields or {}).items():
        if name not in named:
            raise InputError(did_you_mean("field of a labelled pair", name, PAIR_FIELDS))
        named[name] = column
    made: list[LabelledPair] = []
    faults: list[str] = []
    rows = list(table_rows(path, faults))
    columns = list(dict.fromkeys(column for _, row in rows for column in row))
    for name in ("premise", "hypothesis", "label"):
        if rows and named[name] not in columns:
            raise InputError(
                f"{path}: expected a field {named[name]}, or --field {name}=COLUMN; it has "
                f"{', '.join(columns)}"
            )
    for where, row in rows:
        try:
            made.append(_pair(row, named, supported))
        except ValueError as error:
            faults.append(f"{where}: {error}")
    refuse(faults, FAULTS_TOLD)
    if len({pair.supported for pair in made}) < 2:
        raise InputError(f"{path}: expected supported and other pairs, got {len(made):,} of a kind")
    return made


def _pair(row: Mapping[str, Any], named: Mapping[str, str], supported: str) -> LabelledPair:
    premise, hypothesis = (_pair_text(row, named[name]) for name in ("premise", "hypothesis"))
    kind = row.get(named["kind"])
    value = row.get(named["label"])
    label = _supported(value, named["label"], supported)
    word, contradicted = folded(str(value)), None
    if label or word in CONTRADICTED | NOT_STATED:
        contradicted = not label and word in CONTRADICTED
    return LabelledPair(premise, hypothesis, label, "" if kind is None else str(kind), contradicted)


def _pair_text(row: Mapping[str, Any], column: str) -> str:
    value = row.get(column)
    if not isinstance(value, str):
        raise ValueError(f"{column}: expected a text, got {value!r:.60}")
    return value


def _supported(value: Any, column: str, supported: str) -> bool:
    word = folded(str(value))
    if supported and value is not None:
        return str(value).strip() == supported
    if word in SUPPORTED:
        return True
    if word in OTHER:
        return False
    raise ValueError(
        f"{column}: expected entailment, neutral, contradiction, supported, not_supported, "
        f"true, false, 1 or 0, got {value!r:.60}; --supported names another word"
    )
