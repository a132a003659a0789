"""The decisions of faithfulness: from probabilities to the verdict on a sentence, and an answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from trustassay.capabilities import Entailment

__all__ = ["OF_ANSWERS", "Verdict", "contradicting", "supporting", "worst"]

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

    Only passages count that speak of what the statement speaks of: whose ``nearness``, the share
    of its content words that they hold, is ``near`` or more.
    """
    places = [place for place in range(len(rows)) if nearness[place] >= near]
    if not places:
        return None
    most = max(places, key=lambda place: rows[place].contradiction)
    return most if rows[most].contradiction >= threshold else None


def worst(verdicts: Sequence[Verdict]) -> Verdict:
    """Return the verdict on an answer: contradicted if any statement is, else not found, ..."""
    for verdict in ("contradicted", "not found", "supported"):
        if verdict in verdicts:
            return verdict
    return "no claim"
