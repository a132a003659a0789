"""What many votes of judges say of one answer: its score, its scatter, and whether it passes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np

from trustassay.statistics.intervals import binomial_interval

Aggregate = Literal["mean", "median", "majority", "expected"]
Outcome = Literal["passes", "fails", "undecided"]

FEWEST_VOTES = 5
"""Votes from which on their interval decides; five that agree are just enough for 95 %."""


class Passing(NamedTuple):
    """How many of n votes pass."""

    passing: int
    n: int

    @property
    def share(self) -> float:
        """The share of votes that pass; n is 1 or more."""
        return self.passing / self.n

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of that share: mid-P, as of all shares here."""
        return binomial_interval(self.passing, self.n)


def majority(labels: Sequence[str], values: Mapping[str, float]) -> str:
    """Return the label that most votes give; of several such, that of the least value.

    ``labels`` has 1 or more; ``values`` gives the value of each, in the order of the rubric, the
    later of which wins among equal values.
    """
    counts = Counter(labels)
    most = max(counts.values())
    tied = [label for label in reversed(list(values)) if counts[label] == most]
    return min(tied, key=values.__getitem__)


def spread(values: Sequence[float]) -> float | None:
    """Return the sample standard deviation of one judge's votes, n - 1 below the sum of squares.

    ``None`` for fewer than two votes, of which nothing can be said.
    """
    return None if len(values) < 2 else float(np.std(values, ddof=1))


def flip_rate(votes: Passing) -> float:
    """Return the percentage of votes on the lesser side of the threshold, 0 to 50."""
    return 100.0 * min(votes.passing, votes.n - votes.passing) / votes.n


def outcome(votes: Passing) -> Outcome:
    """Return what the votes decide: passes or fails, or neither.

    From :data:`FEWEST_VOTES` on it is undecided where the 95 % interval of the share that passes
    holds one half. Fewer votes decide by their majority, and a tie does not.
    """
    if votes.n < FEWEST_VOTES:
        doubled = 2 * votes.passing
        return "undecided" if doubled == votes.n else "passes" if doubled > votes.n else "fails"
    low, high = votes.interval
    return "passes" if low > 0.5 else "fails" if high < 0.5 else "undecided"


def settled(votes: Passing, left: int) -> bool:
    """Whether up to ``left`` further votes cannot change what is decided, however they fall.

    A further vote that passes moves the interval up, one that does not moves it down, so it is
    enough to look at the ends: none, all passing, none passing.
    """
    if votes.n == 0:
        return left == 0
    if votes.n < FEWEST_VOTES <= votes.n + left:
        return False  # the rule itself is about to change
    now = outcome(votes)
    ends = (Passing(votes.passing + left, votes.n + left), Passing(votes.passing, votes.n + left))
    return all(outcome(end) == now for end in ends)


def expected_value(
    logprobs: Mapping[str, float], values: Mapping[str, float]
) -> tuple[float, float] | None:
    """Return the mean value of the levels by their probabilities, and how much those sum up to.

    Args:
        logprobs: natural log-probability of the labels that were told; others count as 0.
        values: of all labels.

    ``None`` where no label has a probability above 0.
    """
    weights = {label: math.exp(min(logprobs[label], 0.0)) for label in logprobs if label in values}
    total = math.fsum(weights.values())
    if total <= 0:
        return None
    return math.fsum(weights[k] * values[k] for k in weights) / total, min(total, 1.0)
