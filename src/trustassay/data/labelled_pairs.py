"""Labelled pairs: a premise, a hypothesis, and whether the one supports the other."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trustassay.data.labels import RIGHT, WRONG, folded
from trustassay.data.layouts import NAMES
from trustassay.data.ratings import refuse, table_rows
from trustassay.data.records import InputError
from trustassay.errors import did_you_mean

PAIR_FIELDS = ("premise", "hypothesis", "label", "kind")
"""What is read of a row; ``kind`` may be missing."""
CONTRADICTED, NOT_STATED = (
    frozenset(NAMES["labels"][kind].split()) for kind in ("contradicted", "not_stated")
)
"""Of the words for what a premise does not support, those that tell contradicted and not stated
apart."""
CONTRADICTION_NUMBER = "2"
"""How many data sets of entailment write a contradiction."""
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
    if word in RIGHT:
        return True
    if word in WRONG or word == CONTRADICTION_NUMBER:
        return False
    raise ValueError(
        f"{column}: expected entailment, neutral, contradiction, supported, not_supported, "
        f"true, false, 1 or 0, got {value!r:.60}; --supported names another word"
    )
