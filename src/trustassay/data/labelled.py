"""Labelled pairs of a premise and a hypothesis, of any file of rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trustassay.data.formats import InputError
from trustassay.data.ratings import table_rows
from trustassay.errors import did_you_mean

__all__ = ["PAIR_FIELDS", "LabelledPair", "read_pairs"]

PAIR_FIELDS = ("premise", "hypothesis", "label", "kind")
"""What is read of a row; ``kind`` may be missing."""
SUPPORTED = frozenset({"entailment", "entailed", "supported", "supports", "true", "yes", "1"})
OTHER = frozenset(
    "neutral contradiction contradicted refuted refutes not_entailment not_supported not_stated "
    "unsupported false no 0 2".split()
)
"""Words for what a premise supports, and for all else; the numbers are those of the field."""
CONTRADICTED = frozenset({"contradiction", "contradicted", "refuted", "refutes"})
NOT_STATED = frozenset({"neutral", "not_stated"})
"""Of the other words, those that tell contradicted from not stated."""
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
    if faults:
        more = f"; and {len(faults) - FAULTS_TOLD:,} more" if len(faults) > FAULTS_TOLD else ""
        raise InputError("; ".join(faults[:FAULTS_TOLD]) + more)
    if len({pair.supported for pair in made}) < 2:
        raise InputError(f"{path}: expected supported and other pairs, got {len(made):,} of a kind")
    return made


def _pair(row: Mapping[str, Any], named: Mapping[str, str], supported: str) -> LabelledPair:
    premise, hypothesis = (_text(row, named[name]) for name in ("premise", "hypothesis"))
    kind = row.get(named["kind"])
    value = row.get(named["label"])
    label = _supported(value, named["label"], supported)
    contradicted = False if label else _contradicted(value)
    return LabelledPair(premise, hypothesis, label, "" if kind is None else str(kind), contradicted)


def _text(row: Mapping[str, Any], column: str) -> str:
    value = row.get(column)
    if not isinstance(value, str):
        raise ValueError(f"{column}: expected a text, got {value!r:.60}")
    return value


def _supported(value: Any, column: str, supported: str) -> bool:
    word = _word(value)
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


def _contradicted(value: Any) -> bool | None:
    word = _word(value)
    return word in CONTRADICTED if word in CONTRADICTED | NOT_STATED else None


def _word(value: Any) -> str:
    return str(value).strip().casefold().replace(" ", "_").replace("-", "_")
