"""The numbers of an assessment by judges: what score, verdict and summary are made of."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from trustassay.metrics.judge import maths
from trustassay.metrics.judge.asking import Asking, Vote
from trustassay.metrics.judge.options import JudgeOptions

__all__ = ["level_of", "parts_of", "values_of"]

FAULTS = ("none", "several", "outside", "empty")


def values_of(options: JudgeOptions, votes: Sequence[Vote]) -> list[float]:
    """Return the values of the levels that votes give; unreadable ones have none."""
    return [options.scale.values[vote.label] for vote in votes if vote.label is not None]


def level_of(options: JudgeOptions, votes: Sequence[Vote]) -> str:
    """Return the level that most votes give, of which at least one can be read."""
    labels = [vote.label for vote in votes if vote.label is not None]
    return maths.majority(labels, options.scale.values)


def parts_of(
    options: JudgeOptions, asking: Asking, votes: Sequence[Vote], passing: maths.Passing
) -> dict[str, float]:
    """Return the parts; ``votes`` are those that can be read, 1 or more."""
    values = values_of(options, votes)
    parts: dict[str, float] = {
        "votes": len(votes),
        "unreadable": len(asking.votes) - len(votes),
        "repairs": sum(vote.tries > 1 for vote in asking.votes),
        "cut": sum(vote.cut for vote in asking.votes),
        "mean": _mean(values),
        "median": float(np.median(values)),
        "level_place": _place(options, votes),
        "passing": passing.share,
        "passing_low": passing.interval[0],
        "passing_high": passing.interval[1],
    }
    for label in options.scale.values:
        if count := sum(vote.label == label for vote in votes):
            parts[f"votes:{label}"] = count
    for fault in FAULTS:
        if count := sum(vote.fault == fault for vote in asking.votes):
            parts[f"unreadable_{fault}"] = count
    if len(votes) > 1:
        parts["flip_rate"] = maths.flip_rate(passing)
    if told := [vote.expected for vote in votes if vote.expected is not None]:
        parts["expected_score"] = _mean(told)
    parts |= _by_judge(options, asking, votes)
    if spreads := list(_spreads(options, asking, votes)):
        parts["sd"] = _mean(spreads)
        parts["steady"] = int(max(spreads) == 0)
    sides = [values_of(options, [v for v in votes if v.order == o]) for o in asking.orders]
    if len(sides) > 1 and all(sides):
        parts["order_difference"] = _mean(sides[0]) - _mean(sides[1])
    return parts


def _by_judge(options: JudgeOptions, asking: Asking, votes: Sequence[Vote]) -> dict[str, float]:
    """Return each judge's mean and level, where there are several judges."""
    parts: dict[str, float] = {}
    for judge in asking.judges if len(asking.judges) > 1 else ():
        if own := [vote for vote in votes if vote.judge == judge]:
            parts[f"mean:{judge}"] = _mean(values_of(options, own))
            parts[f"place:{judge}"] = _place(options, own)
    return parts


def _spreads(options: JudgeOptions, asking: Asking, votes: Sequence[Vote]) -> Iterator[float]:
    """Yield the deviation of each judge in each order; single votes have none."""
    for judge in asking.judges:
        for order in asking.orders:
            own = [vote for vote in votes if (vote.judge, vote.order) == (judge, order)]
            if (spread := maths.spread(values_of(options, own))) is not None:
                yield spread


def _place(options: JudgeOptions, votes: Sequence[Vote]) -> int:
    return list(options.scale.values).index(level_of(options, votes))


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)
