"""A sketch of the questions of a run in a thousand characters, to compare runs by it."""

import heapq
from collections.abc import Iterable

from trustassay.core.sample import question_key
from trustassay.runs.lines import hash64

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
