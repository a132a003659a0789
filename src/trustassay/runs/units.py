"""Which answers of a run belong together: the units of its intervals, and its questions.

A unit is what is independent of the others: a question with all answers to it, by default.
"""

import heapq
import json
from array import array
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trustassay.core.sample import is_blank, question_key
from trustassay.runs.folder import RunFolder
from trustassay.runs.lines import hash64
from trustassay.statistics import Bools, Places

QUESTION = "question"
"""The default: all answers to a question."""
ANSWER = "answer"
"""Each answer by itself."""
UNIT = "unit"
"""The key of the unit in run.json, where it is not the default."""


def read_units(folder: RunFolder, unit: str | None = None) -> Places | None:
    """Return the number of each sample's unit in input order, from 0.

    A sample that is a unit by itself has -1. If all are, ``None`` is returned.

    Args:
        unit: ``None`` or ``question``: all answers to a question; case and white space do not
            count. If all answers to it have documents, only those belong together that share a
            document, directly or through others: one instruction for many texts is not one
            question. ``answer``: each by itself. Else a field of the samples, with dots into
            objects: samples with the same value belong together, those without it do not.
    """
    # With single answers as units no sample has to be read.
    return None if unit == ANSWER else _number_units(compute_unit_keys(folder, unit))


def compute_unit_keys(folder: RunFolder, unit: str | None = None) -> NDArray[np.uint64]:
    """Return a key of each sample's unit, shape (n,); a unit has the same key in other runs.

    Args:
        unit: as in :func:`read_units`. For ``answer`` the key is that of the sample's id.
    """
    if unit in (None, QUESTION):
        return _build_question_keys(folder)
    keys = array("Q")
    for place, record in enumerate(folder.sample_records()):
        value = record["id"] if unit == ANSWER else read_unit(record, str(unit))
        # A sample without the field is a unit by itself: the place makes its key unique.
        text = f"alone:{place}" if value is None else json.dumps(value, sort_keys=True)
        keys.append(hash64(text))
    return np.array(keys, dtype=np.uint64)


def _build_question_keys(folder: RunFolder) -> NDArray[np.uint64]:
    """Return a key for each sample, equal for samples of one unit."""
    questions = array("Q")
    for number, record in enumerate(folder.sample_records(), 1):
        try:
            # ``question_key`` removes case and white space.
            questions.append(hash64(question_key(record["question"])))
        except (KeyError, TypeError, AttributeError):
            raise folder.build_sample_error(number, "has no question") from None
    keys = np.array(questions, dtype=np.uint64)
    _, place, counts = np.unique(keys, return_inverse=True, return_counts=True)
    is_repeated = counts[place] > 1
    # The documents are read only if a question occurs more than once.
    if is_repeated.any():
        _split_by_documents(folder, keys, is_repeated)
    return keys


def _split_by_documents(folder: RunFolder, keys: NDArray[np.uint64], is_repeated: Bools) -> None:
    """Give answers to one question different keys, in place, if they share no document.

    Args:
        is_repeated: which samples have a question that occurs more than once.
    """
    # A forest of disjoint sets (union-find): samples with one root belong together.
    parents = list(range(len(keys)))

    def root(place: int) -> int:
        while parents[place] != place:
            # Halving the path keeps the trees flat.
            parents[place] = parents[parents[place]]
            place = parents[place]
        return place

    first: dict[tuple[int, int], int] = {}
    undivided: set[int] = set()
    for place, record in enumerate(folder.sample_records()):
        if not is_repeated[place]:
            continue
        question = int(keys[place])
        texts = [str(document.get("text") or "") for document in record.get("documents") or ()]
        texts = [text for text in texts if not is_blank(text)]
        # An answer without documents could be about any of them, so all answers stay together.
        if not texts:
            undivided.add(question)
        for text in texts:
            # The same text under two questions does not join them.
            first_place = first.setdefault((question, hash64(text)), place)
            parents[root(place)] = root(first_place)
    for place in np.flatnonzero(is_repeated).tolist():
        if int(keys[place]) not in undivided:
            # The key of the question, changed by the first sample of its group.
            keys[place] ^= np.uint64(hash64(f"unit {root(place)}"))


def _number_units(keys: NDArray[np.uint64]) -> Places | None:
    _, place, counts = np.unique(keys, return_inverse=True, return_counts=True)
    # No unit has two samples: intervals are then those of single answers.
    if (counts <= 1).all():
        return None
    return np.where(counts[place] > 1, place, -1).astype(np.int64)


def read_unit(sample: Mapping[str, Any], name: str) -> Any:
    """Return the value of a field that samples of one unit share; ``None`` if it is empty."""
    value = read_domain(sample, name)
    return None if value in ("", []) else value


def read_domain(sample: Mapping[str, Any], name: str) -> Any:
    """Return the value of a sample's field, or of the field of that name under ``metadata``.

    ``None`` if there is none.

    Args:
        name: dots descend into objects: ``source.site``.
    """
    # Fields of the input that are not canonical are kept under ``metadata``.
    for outer in (sample, sample.get("metadata")):
        value: Any = outer
        for part in name.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
        if value is not None:
            return value
    return None


QUESTIONS = "questions"
"""The key in ``summary.json``; runs of earlier versions have none."""
SKETCH_SIZE = 64
"""Hashes of a sketch. The share of common questions has a standard error of 6 points or less."""
MIN_SHARED_QUESTIONS = 0.5
"""The share of common questions from which the figures of two runs can be compared. Below it a
difference may come from the questions alone."""
_HASH_DIGITS = 16
"""Hexadecimal digits of a hash."""


def sketch_questions(questions: Iterable[str]) -> str:
    """Return the smallest hashes of different questions, as hexadecimal digits.

    The smallest hashes of two sets together are a random sample of their union. The share of these
    that stand in both sketches estimates the share of common questions (Broder 1997, "On the
    resemblance and containment of documents").
    """
    # A heap of negative numbers: the largest hash of the sketch is at its top.
    heap: list[int] = []
    hashes = set[int]()
    for question in questions:
        value = hash64(question_key(question))
        if value in hashes or (len(heap) == SKETCH_SIZE and value >= -heap[0]):
            continue
        hashes.add(value)
        heapq.heappush(heap, -value)
        if len(heap) > SKETCH_SIZE:
            hashes.remove(-heapq.heappop(heap))
    return "".join(f"{value:0{_HASH_DIGITS}x}" for value in sorted(hashes))


def read_sketch(sketch: str) -> frozenset[str]:
    """Return the hashes of a sketch."""
    return frozenset(
        sketch[start : start + _HASH_DIGITS] for start in range(0, len(sketch), _HASH_DIGITS)
    )


def share_questions(first: frozenset[str], second: frozenset[str]) -> bool:
    """Whether two runs share at least :data:`MIN_SHARED_QUESTIONS` of their questions.

    False if one of them has no sketch.
    """
    # Also true of an empty sketch, which would make a division by nothing below.
    if first.isdisjoint(second):
        return False
    # Hashes have the same number of digits, so texts sort as the numbers do.
    sample = sorted(first | second)[:SKETCH_SIZE]
    in_both = sum(value in first and value in second for value in sample)
    return in_both >= MIN_SHARED_QUESTIONS * len(sample)
