"""The decisions of faithfulness: from probabilities to the verdict on a sentence, and an answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from trustassay.capabilities import Entailment

Verdict: TypeAlias = Literal["supported", "not found", "contradicted", "no claim"]
OF_ANSWERS = ("supported", "not found", "contradicted", "no claim", "refused")
"""Verdicts on whole answers."""


def supporting(rows: Sequence[Entailment], threshold: float) -> int | None:
    """Return the place of the passage that entails a statement most, if one does.

    ``rows`` are the passages' probabilities; of equal ones the first counts.
    """
    if not rows:
        return None
    best = max(range(len(rows)), key=lambda place: rows[place].entailment)
    return best if rows[best].entailment >= threshold else None


def contradicting(
    rows: Sequence[Entailment], nearness: Sequence[float], threshold: float, near: float
) -> int | None:
    """Return the place of the passage that contradicts a statement most, if one does.

    Only passages count that speak of what the statement speaks of: whose ``nearness``, 0 to 1, is
    ``near`` or more.
    """
    places = [place for place in range(len(rows)) if nearness[place] >= near]
    if not places:
        return None
    most = max(places, key=lambda place: rows[place].contradiction)
    return most if rows[most].contradiction >= threshold else None


BORDERLINE = 0.1
"""Probability above the threshold up to which a supported statement is borderline."""
NEUTRAL = 0.1
"""What the probability of "neither" weighs against that of contradiction."""
DETAIL = 0.5
"""By what a missing number or name is multiplied."""


def standing(found: Entailment, *, detail_missing: bool) -> float:
    """Return what puts statements in order, 0 to 1: e / (e + c + n / 10), for the probabilities of
    entailment, contradiction and neither; halved where a number or a name is missing.

    What a passage contradicts stands below what none says: chat around the facts is not said,
    either. 0 where all are 0. Measured by ``benchmarks/ordering.py``.
    """
    against = found.contradiction + NEUTRAL * found.neutral
    total = found.entailment + against
    value = found.entailment / total if total else 0.0
    return round(DETAIL * value if detail_missing else value, 6)


def is_borderline(entailment: float, threshold: float, *, detail_missing: bool) -> bool:
    """Whether a supported statement is near the line: in doubt, and shown so."""
    return detail_missing or entailment < min(1.0, threshold + BORDERLINE)


def worst(verdicts: Sequence[str]) -> Verdict:
    """Return the verdict on an answer: contradicted if any statement is, else not found, ..."""
    order: Sequence[Verdict] = ("contradicted", "not found", "supported")
    return next((verdict for verdict in order if verdict in verdicts), "no claim")
