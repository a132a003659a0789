"""Populations of questions with one or several answers each: declared figures, ranks, win rates."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from lab.benchmarks.coverage.counting import POPULATION, Interval, Places, Study
from trustassay.core.assessment import Mean, Quantile, Share, Statistic, compute_interval
from trustassay.metrics.pairwise.metric import RATES, compute_rate, estimate_rates
from trustassay.statistics.intervals import RowSums
from trustassay.statistics.ranking import rank_models

__all__ = ["POPULATIONS", "declared", "ranked", "won"]

Floats = NDArray[np.float64]
Rng = np.random.Generator
MOST = 10
"""Answers of the largest question."""


def _alike(rng: Rng, mean: float, correlation: float) -> Floats:
    """Return each question's own share of right answers, which correlates its answers so much."""
    total = (1 - correlation) / correlation
    return rng.beta(total * mean, total * (1 - mean), POPULATION)


def _yes(rng: Rng, own: Floats) -> Floats:
    return (rng.random((POPULATION, MOST)) < own[:, None]).astype(np.float64)


def _some(rng: Rng, values: Floats, own: Floats | None = None) -> Floats:
    """Leave each question from 1 to all of its answers; where ``own`` is given the fewer the larger
    that is.
    """
    most = np.full(POPULATION, MOST) if own is None else np.rint(MOST - (MOST - 1) * own)
    size = 1 + np.floor(rng.random(POPULATION) * most)
    return np.where(np.arange(MOST) < size[:, None], values, np.nan)


def _scores(rng: Rng, own: Floats) -> Floats:
    """Return scores about each question's own mean."""
    return rng.beta(4 * own[:, None] + 0.05, 4 * (1 - own[:, None]) + 0.05, (POPULATION, MOST))


def _erratic(rng: Rng) -> Floats:
    """Return scores near 0, but for a tenth of the questions."""
    odd = rng.random(POPULATION) < 0.1
    return _scores(rng, np.where(odd, rng.beta(8, 4, POPULATION), rng.beta(1, 40, POPULATION)))


def _own(correlation: float, mean: float) -> Callable[[Rng], Floats]:
    return lambda rng: _yes(rng, _alike(rng, mean, correlation))


def _related(rng: Rng) -> Floats:
    own = _alike(rng, 0.7, 0.33)
    return _some(rng, _yes(rng, own), own)


POPULATIONS: Mapping[str, Callable[[Rng], Floats]] = {
    "0/1, one answer, 70 %": lambda rng: _own(0.33, 0.7)(rng)[:, :1],
    "0/1, one answer, 97 %": lambda rng: _own(0.33, 0.97)(rng)[:, :1],
    "0/1, 10 answers, 70 %, correlation .33": _own(0.33, 0.7),
    "0/1, 10 answers, 97 %, correlation .33": _own(0.33, 0.97),
    "0/1, 10 answers, 70 %, correlation .9": _own(0.9, 0.7),
    "0/1, 10 answers, 70 %, correlation .02": _own(0.02, 0.7),
    "0/1, 1 to 10 answers, 70 %, correlation .33": lambda rng: _some(rng, _own(0.33, 0.7)(rng)),
    "0/1, 1 to 10 answers, fewer where right": _related,
    "scores, one answer, skewed": lambda rng: rng.beta(1, 19, (POPULATION, 1)),
    "scores, 10 answers, skewed": lambda rng: _scores(rng, rng.beta(1, 19, POPULATION)),
    "scores, 1 to 10 answers, a tenth erratic": lambda rng: _some(rng, _erratic(rng)),
}
"""Values by question and answer, shape (questions, answers); NaN where there is no answer."""


def _of(values: Floats, places: Places) -> tuple[Floats, Places]:
    """Return the values of drawn questions, and the number of each one's question."""
    drawn = values[places]
    there = ~np.isnan(drawn)
    return drawn[there], np.nonzero(there)[0]


def declared(name: str) -> Study:
    """Return the study of means, shares and quantiles that a metric declares."""
    values = POPULATIONS[name](np.random.default_rng(1))
    every = values[~np.isnan(values)]
    statistics: dict[str, Statistic] = {"mean": Mean()}
    if name.startswith("0/1"):
        statistics["share"] = Share("yes")
    else:
        statistics |= {"median": Quantile(0.5), "p90": Quantile(0.9)}
    truth = {"mean": float(every.mean()), "share": 100 * float(every.mean())}
    truth |= {"median": float(np.median(every)), "p90": float(np.quantile(every, 0.9))}

    def draw(places: Places) -> Mapping[str, Interval | None]:
        numbers, questions = _of(values, places)
        alone = np.bincount(questions)[questions] == 1
        units = np.where(alone, -1, questions)
        found = {
            k: compute_interval(one, numbers, units, (0.0, 1.0)) for k, one in statistics.items()
        }
        return {key: None if isinstance(one, str) else one for key, one in found.items()}

    return Study(name, {key: truth[key] for key in statistics}, draw)


def ranked(right: float, apart: float = 0.0) -> Study:
    """Return the study of three models that answer the same questions, one answer each.

    right: the share of right answers of the first two; apart: by how much the third is worse.
    """
    rng = np.random.default_rng(1)
    own = _alike(rng, right, 0.33)
    shares = np.stack([own, own, own * (1 - apart / right)], axis=1)
    values = (rng.random((POPULATION, 3)) < shares).astype(np.float64)
    means = values.mean(axis=0)
    truth = {f"mean {m}": float(means[m]) for m in range(3)}
    truth |= {"first less second": float(means[0] - means[1])}
    truth |= {"first less third": float(means[0] - means[2])}

    def draw(places: Places) -> Mapping[str, Interval | None]:
        found = rank_models(values[places].T, np.random.default_rng(0), bounds=(0.0, 1.0))
        at = {model: place for place, model in enumerate(found.order)}
        ends: dict[str, Interval | None] = {f"mean {m}": found.intervals[at[m]] for m in range(3)}
        for one in found.differences:
            pair = (found.order[one.better], found.order[one.worse])
            if 0 in pair and one.interval:
                other = "second" if 1 in pair else "third"
                low, high = one.interval
                ends[f"first less {other}"] = (low, high) if pair[0] == 0 else (-high, -low)
        return {key: ends.get(key) for key in truth}

    return Study(
        f"three models, {100 * right:g} % right, one {100 * apart:g} points worse", truth, draw
    )


WON: Mapping[str, tuple[float, float, float, float, int]] = {
    # better, sure, first: how often the better answer is better, the judge sure, the place decides
    "half won": (0.5, 0.8, 0.2, 0.0, 1),
    "85 % won": (0.85, 0.8, 0.2, 0.0, 1),
    "97 % won": (0.97, 0.9, 0.1, 0.0, 1),
    "half won, 5 answers a question": (0.5, 0.8, 0.2, 0.5, 5),
}


def won(name: str) -> Study:
    """Return the study of a judge's choices between two answers, each pair in both orders."""
    better, sure, first, correlation, size = WON[name]
    rng = np.random.default_rng(1)
    shape = (POPULATION, size)
    share = _alike(rng, better, correlation)[:, None] if correlation else np.full(shape, better)
    wins = rng.random(shape) < share
    one = np.where(wins, 0, 1)  # A, or B
    other = 1 - one
    biased = rng.random(shape) < first
    unsure = rng.random(shape) > sure
    one, other = np.where(biased, 0, one), np.where(biased, 0, other)
    cell = 4 * np.where(unsure, 2, one) + other
    table = np.bincount(cell.ravel(), minlength=16).reshape(4, 4)
    truth = {key: compute_rate(key, table) for key in RATES}

    def draw(places: Places) -> Mapping[str, Interval | None]:
        sums = RowSums(16)
        rows = np.eye(16)[cell[places].ravel()]
        sums.add(rows, None if size == 1 else np.repeat(np.arange(len(places)), size))
        found = estimate_rates(sums)
        return {key: found[key].interval for key in truth}

    return Study(name, truth, draw)
