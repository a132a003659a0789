"""Which samples of a run belong together: what is independent in an interval is a unit."""

from __future__ import annotations

import json
from array import array
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trustassay.data.records import InputError
from trustassay.runs.folder import RunFolder
from trustassay.runs.grouping import domain_of
from trustassay.runs.hashing import hash64
from trustassay.sample import is_blank, question_key

__all__ = ["ANSWER", "QUESTION", "UNIT", "check_unit", "read_units"]

Units = NDArray[np.int64]
QUESTION = "question"
"""The default: all answers to a question."""
ANSWER = "answer"
"""Each answer by itself."""
UNIT = "unit"
"""The key of the unit in run.json, where it is not the default."""


def read_units(folder: RunFolder, unit: str | None = None) -> Units | None:
    """Return the number of each sample's unit in input order, from 0 on, -1 for a sample that is
    one by itself; ``None`` if all are.

    Args:
        unit: ``None`` or ``question``: all answers to a question, whose case and white space do not
            count. Where all answers to it have documents, only those that share one with each
            other, directly or through others, belong together: one instruction for many texts is
            not one question. ``answer``: each by itself. Else a field of the samples, with dots
            into objects: samples with the same value belong together, those without it do not.

    Raises:
        RunFolderError: the samples are damaged.
    """
    if unit == ANSWER:
        return None
    if unit in (None, QUESTION):
        return _numbers(_by_question(folder))
    keys = array("Q")
    for place, record in enumerate(folder.sample_records()):
        value = _value(record, str(unit))
        text = f"alone:{place}" if value is None else json.dumps(value, sort_keys=True)
        keys.append(hash64(text))
    return _numbers(np.array(keys, dtype=np.uint64))


def check_unit(samples: Path, unit: str | None) -> None:
    """Check that a file of canonical samples has the field that says what is independent.

    Raises:
        InputError: no sample has it.
    """
    if unit in (None, QUESTION, ANSWER):
        return
    with samples.open("rb") as file:
        if not any(_value(json.loads(line), str(unit)) is not None for line in file):
            raise InputError(
                f"unit: no sample has the field {unit!r}; expected question, answer, or a field of "
                "the samples (dots descend into objects)"
            )


def _value(record: Mapping[str, Any], field: str) -> Any:
    found = domain_of(record, field)
    return None if found in ("", []) else found


def _by_question(folder: RunFolder) -> NDArray[np.uint64]:
    """Return a key for each sample that those of its unit share."""
    questions = array("Q")
    for number, record in enumerate(folder.sample_records(), 1):
        try:
            questions.append(hash64(question_key(record["question"])))
        except (KeyError, TypeError, AttributeError):
            raise folder.bad_sample(number, "has no question") from None
    keys = np.array(questions, dtype=np.uint64)
    _, place, counts = np.unique(keys, return_inverse=True, return_counts=True)
    repeated = counts[place] > 1
    if repeated.any():
        _part_by_documents(folder, keys, repeated)
    return keys


def _part_by_documents(
    folder: RunFolder, keys: NDArray[np.uint64], repeated: NDArray[np.bool_]
) -> None:
    """Give answers to one question other keys if they share no document; in place."""
    parents = list(range(len(keys)))

    def root(place: int) -> int:
        while parents[place] != place:
            parents[place] = parents[parents[place]]
            place = parents[place]
        return place

    first: dict[tuple[int, int], int] = {}
    whole: set[int] = set()
    for place, record in enumerate(folder.sample_records()):
        if not repeated[place]:
            continue
        question = int(keys[place])
        texts = [str(one.get("text") or "") for one in record.get("documents") or ()]
        texts = [text for text in texts if not is_blank(text)]
        if not texts:
            whole.add(question)
        for text in texts:
            before = first.setdefault((question, hash64(text)), place)
            parents[root(place)] = root(before)
    for place in np.flatnonzero(repeated).tolist():
        if int(keys[place]) not in whole:
            keys[place] ^= np.uint64(hash64(f"unit {root(place)}"))


def _numbers(keys: NDArray[np.uint64]) -> Units | None:
    _, place, counts = np.unique(keys, return_inverse=True, return_counts=True)
    if (counts <= 1).all():
        return None
    return np.where(counts[place] > 1, place, -1).astype(np.int64)
