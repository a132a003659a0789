"""Reads the labelled pairs, keeps the clearly licensed ones, and checks what it keeps.

The data is found by TRUSTASSAY_SHARED, else ../shared. TRUSTASSAY_TRAINING_ROWS, when set, is how
many rows of each set figures are made from: for trying the build out, not for figures to keep.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

__all__ = [
    "ALLOWED",
    "DEV",
    "LABELS",
    "NOT_ENTAILMENT",
    "Judged",
    "Pair",
    "allowed_rows",
    "attribution",
    "check",
    "folded",
    "lines",
    "nli",
    "split",
    "training_rows",
]

DATA = Path(os.environ.get("TRUSTASSAY_SHARED", "../shared")) / "data"
ROWS = int(os.environ.get("TRUSTASSAY_TRAINING_ROWS", "0")) or None
LABELS = ("entailment", "neutral", "contradiction")
NOT_ENTAILMENT = 3
"""Label of two-class sources: neutral or contradiction, nobody said which."""

ALLOWED = {
    "vitaminc_real": 32_237,
    "vitaminc_synthetic": 19_402,
    "cad_snli": 9_882,
    "fever_dev": 8_847,
    "snli_dev": 9_834,
    "mnli": 8_426,
    "random_negative": 6_000,
    "breaking_nli": 3_994,
    "help": 1_934,
}
"""Sources with a clear open licence, and how many rows each must have."""

DEV = ("snli", "mnli", "vitaminc", "fever_symmetric")
HELD_OUT_PERCENT = 5


class Pair(NamedTuple):
    """A premise, a hypothesis, and its label: an index into LABELS, or NOT_ENTAILMENT."""

    premise: str
    hypothesis: str
    label: int
    source: str


class Judged(NamedTuple):
    """A passage, a sentence, whether people found it supported, and the claim it belongs to."""

    premise: str
    hypothesis: str
    supported: bool
    claim: str


def lines(path: Path) -> Iterable[dict[str, Any]]:
    """Return the rows of a gzipped JSON Lines file."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


def _pair(row: dict[str, Any]) -> Pair:
    label = row["label"]
    number = NOT_ENTAILMENT if label == "not_entailment" else LABELS.index(label)
    return Pair(row["premise"], row["hypothesis"], number, row.get("source", ""))


@cache
def allowed_rows() -> tuple[Pair, ...]:
    """Return every row of an allowed source, in the file's order."""
    rows = lines(DATA / "nli" / "train.jsonl.gz")
    return tuple(_pair(row) for row in rows if row["source"] in ALLOWED)


@cache
def training_rows() -> tuple[Pair, ...]:
    """Return the allowed rows without those whose premise is in a development set.

    The file still had 1,108 rows (most of ``fever_dev``) with a FEVER-symmetric premise.
    """
    known = {folded(row.premise) for name in DEV for row in nli(name)}
    return tuple(row for row in allowed_rows() if folded(row.premise) not in known)


@cache
def nli(name: str) -> tuple[Pair, ...]:
    """Return a labelled development set, never trained on.

    name: snli, mnli, vitaminc, fever_symmetric, or (evaluation only) sick, anli.
    """
    folder = DATA / "nli"
    path = folder / f"dev_{name}.jsonl.gz"
    if name in {"sick", "anli"}:
        path = folder / "eval_only_nc" / f"{name}_test.jsonl.gz"
    return tuple(_pair(row) for row in lines(path))


@cache
def attribution(name: str) -> tuple[Judged, ...]:
    """Return a set of sentences judged against passages, such as ``begin_wow_dev``."""
    return tuple(
        Judged(
            row["premise"] if "premise" in row else " ".join(row["premise_sentences"]),
            row["hypothesis"],
            row["label"] == 1,
            row["hypothesis"] if name.startswith(("wice", "healthver")) else f"{name} {number}",
        )
        for number, row in enumerate(lines(DATA / "attribution" / f"{name}.jsonl.gz"))
    )


def split(rows: Iterable[Pair]) -> tuple[list[Pair], list[Pair]]:
    """Split into rows to train on and 5 % to fit the combination on, by the premise's hash."""
    train: list[Pair] = []
    held_out: list[Pair] = []
    for row in rows:
        digest = hashlib.sha256(folded(row.premise).encode()).digest()
        part = int.from_bytes(digest[:4], "big") % 100
        (held_out if part < HELD_OUT_PERCENT else train).append(row)
    return train, held_out


def check() -> dict[str, int]:
    """Return training rows per source; ValueError when a count is off or a dev pair is there."""
    counts = Counter(row.source for row in allowed_rows())
    if counts != Counter(ALLOWED):
        raise ValueError(f"sources differ from what was checked: {dict(counts)}")
    pairs = {(folded(row.premise), folded(row.hypothesis)) for row in training_rows()}
    for name in (*DEV, "sick", "anli"):
        shared = pairs & {(folded(row.premise), folded(row.hypothesis)) for row in nli(name)}
        if shared:
            raise ValueError(f"{len(shared)} pairs of {name} are in the training rows")
    return dict(Counter(row.source for row in training_rows()))


def folded(text: str) -> str:
    """Return a text in lower case with single spaces."""
    return " ".join(text.casefold().split())
