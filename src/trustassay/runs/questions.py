"""Which questions a run asked, in a thousand characters, so that runs can be compared by them."""

import heapq
from collections.abc import Iterable

from trustassay.runs.lines import hash64
from trustassay.sample import question_key

QUESTIONS = "questions"
"""The key in ``summary.json``; runs of earlier versions have none."""
SKETCH_SIZE = 64
"""Hashes that are kept. The share of common questions is then known to 6 points or better."""
LEAST_SHARED = 0.5
"""The share of the questions of two runs that both asked, from which their figures are of one line.
Below it a difference may come from the questions alone."""
_DIGITS = 16
"""Hexadecimal digits of a hash."""


def sketch_questions(questions: Iterable[str]) -> str:
    """Return the smallest hashes of different questions, as hexadecimal digits.

    Of two sets the smallest hashes of both together are a random draw, and those of them that
    stand in both sketches estimate the share of common questions (Broder 1997, "On the resemblance
    and containment of documents").
    """
    # A heap of negative numbers has the largest of the kept hashes at its top.
    kept: list[int] = []
    known = set[int]()
    for question in questions:
        value = hash64(question_key(question))
        if value in known or (len(kept) == SKETCH_SIZE and value >= -kept[0]):
            continue
        known.add(value)
        heapq.heappush(kept, -value)
        if len(kept) > SKETCH_SIZE:
            known.remove(-heapq.heappop(kept))
    return "".join(f"{value:0{_DIGITS}x}" for value in sorted(known))


def read_sketch(sketch: str) -> frozenset[str]:
    """Return the hashes of a sketch."""
    return frozenset(sketch[at : at + _DIGITS] for at in range(0, len(sketch), _DIGITS))


def share_questions(first: frozenset[str], second: frozenset[str]) -> bool:
    """Whether at least :data:`LEAST_SHARED` of the questions of two runs were asked in both.

    It is not known, and so false, where one has no sketch.
    """
    if first.isdisjoint(second):
        return False
    # Hashes have the same number of digits, so texts sort as the numbers do.
    drawn = sorted(first | second)[:SKETCH_SIZE]
    in_both = sum(one in first and one in second for one in drawn)
    return in_both >= LEAST_SHARED * len(drawn)
