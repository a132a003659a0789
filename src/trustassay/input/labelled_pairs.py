"""Reads labelled pairs: a premise, a hypothesis, and whether the premise supports it."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trustassay.core.labels import CONTRADICTED, NOT_STATED, fold_label, read_word
from trustassay.errors import did_you_mean
from trustassay.input.answer_tables import read_answer_table
from trustassay.input.records import InputError, raise_faults

PAIR_FIELDS = ("premise", "hypothesis", "label", "kind")
"""Fields of a row that are read; ``kind`` may be missing."""
CONTRADICTION_NUMBER = "2"
"""The label of a contradiction in many data sets of entailment."""
MAX_FAULTS_LISTED = 5


@dataclass(frozen=True, slots=True)
class LabelledPair:
    """A premise and a hypothesis with a label."""

    premise: str
    """The text that may support the hypothesis."""
    hypothesis: str
    """The statement."""
    supported: bool
    """Whether the premise supports the hypothesis."""
    kind: str = ""
    """The kind of the pair, for figures by kind; empty without one."""
    contradicted: bool | None = None
    """Whether the premise contradicts the hypothesis; ``None`` where the label does not say."""


def read_pairs(
    path: Path, *, fields: Mapping[str, str] | None = None, supported: str = ""
) -> list[LabelledPair]:
    """Read labelled pairs from ``.jsonl``, ``.json``, ``.csv`` or ``.tsv``, packed or not.

    Args:
        path: the file.
        fields: names of columns by field: ``{"premise": "passage"}``.
        supported: the label of supported pairs, where it is not one of the usual words; every
            other label then means not supported.

    Raises:
        InputError: the file cannot be read, a field is missing, a label is not known, or all
            labels mean the same; names the first faulty rows.
    """
    column_names = {name: name for name in PAIR_FIELDS}
    for name, column in (fields or {}).items():
        if name not in column_names:
            raise InputError(did_you_mean("field of a labelled pair", name, PAIR_FIELDS))
        column_names[name] = column
    pairs: list[LabelledPair] = []
    faults: list[str] = []
    # All rows are read before any is refused, so that the message can name several faulty ones.
    rows = read_answer_table(path, column_names.values()).list_records()
    columns = list(dict.fromkeys(column for _, row in rows for column in row))
    for name in ("premise", "hypothesis", "label"):
        if rows and column_names[name] not in columns:
            raise InputError(
                f"{path}: expected a field {column_names[name]}, or --field {name}=COLUMN; the "
                f"file has {', '.join(columns)}"
            )
    for where, row in rows:
        try:
            pairs.append(_build_pair(row, column_names, supported))
        except ValueError as error:
            faults.append(f"{where}: {error}")
    raise_faults(faults, MAX_FAULTS_LISTED)
    # Nothing can be measured with pairs of a single kind.
    if len({pair.supported for pair in pairs}) < 2:
        raise InputError(
            f"{path}: expected both supported and unsupported pairs, got {len(pairs):,} of one kind"
        )
    return pairs


def _build_pair(
    row: Mapping[str, Any], column_names: Mapping[str, str], supported: str
) -> LabelledPair:
    premise, hypothesis = (
        _read_pair_text(row, column_names[name]) for name in ("premise", "hypothesis")
    )
    kind = row.get(column_names["kind"])
    value = row.get(column_names["label"])
    label = _is_supported(value, column_names["label"], supported)
    word, contradicted = fold_label(str(value)), None
    # Labels such as "false" do not say whether the premise contradicts; these stay ``None``.
    if label or word in CONTRADICTED | NOT_STATED:
        contradicted = not label and word in CONTRADICTED
    return LabelledPair(premise, hypothesis, label, "" if kind is None else str(kind), contradicted)


def _read_pair_text(row: Mapping[str, Any], column: str) -> str:
    value = row.get(column)
    if not isinstance(value, str):
        raise ValueError(f"{column}: expected a text, got {value!r:.60}")
    return value


def _is_supported(value: Any, column: str, supported: str) -> bool:
    # A label that the user names is compared exactly, with its case.
    if supported and value is not None:
        return str(value).strip() == supported
    meaning = None if isinstance(value, list | dict) else read_word(str(value))
    if meaning is not None:
        return meaning == 1
    # "2" is no word for wrong elsewhere.
    if fold_label(str(value)) == CONTRADICTION_NUMBER:
        return False
    raise ValueError(
        f"{column}: expected entailment, neutral, contradiction, supported, not_supported, "
        f"true, false, 1 or 0, got {value!r:.60}; name another label with --supported"
    )
