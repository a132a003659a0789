"""Trust_OV: what the two parts are worth together, and what several claims are worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from trustassay.verdicts import Verdict

TABLE: Mapping[tuple[Verdict, bool], float] = {
    ("support", True): 1.0,
    ("support", False): 0.8,
    ("neutral", True): 0.6,
    ("neutral", False): 0.4,
    ("contradict", True): 0.2,
    ("contradict", False): 0.0,
}
"""Zheng et al. 2024, Table 3: by what the facts say, and whether the model keeps to its answer."""


def trust_ov(verdict: Verdict, *, consistent: bool) -> float:
    """Return Trust_OV, 0 to 1, of an answer (Zheng et al. 2024, Table 3)."""
    return TABLE[verdict, consistent]


def bounds(verdict: Verdict) -> tuple[float, float]:
    """Return the least and the largest Trust_OV of an answer of which only the facts are known."""
    return TABLE[verdict, False], TABLE[verdict, True]


def mean(scores: Sequence[float]) -> float | None:
    """Return the mean of the claims' scores, each counting the same; ``None`` without any.

    The paper leaves answers of several claims out (A.1); the mean is this package's choice: it is
    the expected score of a claim drawn from the answer, and one claim gives its own score.
    """
    return sum(scores) / len(scores) if scores else None


def weakest(scores: Sequence[float | None]) -> int | None:
    """Return the place of the lowest score, the first of equal ones; ``None`` without any."""
    known = [(score, place) for place, score in enumerate(scores) if score is not None]
    return min(known)[1] if known else None
