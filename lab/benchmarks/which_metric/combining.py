"""Scores against each other, and put together against the best single one, on data that neither the
combination nor the choice of the best has seen.

A table holds the scores of n answers by d columns, shape (n, d), without gaps. What was fitted is
held fast in the resamples: an interval tells how far other answers would move the difference, and
not how far other labels to fit on would.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lab.benchmarks.which_metric.logistic import fit_combination, fold_numbers
from trustassay.statistics.correlation import WeightedFigure, auroc, weighted_auroc
from trustassay.statistics.intervals import Interval
from trustassay.statistics.resampling import (
    bootstrap_test,
    cluster_weights,
    generator,
    resample_interval,
)

Floats = NDArray[np.float64]
Places = NDArray[np.int64]
FOLDS = 5
REPEATS = 5
RESAMPLES = 2000


class Scores(NamedTuple):
    """What is known of the answers of a set: scores by column, labels of 0 and 1, questions."""

    name: str
    columns: Sequence[str]
    table: Floats
    labels: Floats
    questions: Places

    def only(self, columns: Sequence[str]) -> Scores:
        """Return these columns of the answers that have a value of each."""
        table = self.table[:, [self.columns.index(one) for one in columns]]
        whole = ~np.isnan(table).any(axis=1)
        _, questions = np.unique(self.questions[whole], return_inverse=True)
        return Scores(self.name, columns, table[whole], self.labels[whole], questions)


class Difference(NamedTuple):
    """Two AUROCs of the same n answers, the first less the second, its interval and p."""

    n: int
    first: float
    second: float
    value: float
    interval: Interval | None
    p: float | None
    chosen: Mapping[str, int]
    """The columns that were the second, by how often."""


def auroc_with_interval(
    scores: Floats, labels: Floats, questions: Places, resamples: int = RESAMPLES
) -> tuple[float, Interval | str]:
    """Return an AUROC, and its interval or why there is none."""
    figure = weighted_auroc(scores, labels)
    _, clusters = np.unique(questions, return_inverse=True)
    rng = generator(0, "which-metric", "alone")
    drawn = [figure(weights) for weights in cluster_weights(clusters, rng, resamples)]
    rarer = int(min(labels.sum(), len(labels) - labels.sum()))
    interval = resample_interval(np.concatenate(drawn), int(clusters.max()) + 1, rarer=rarer)
    return float(figure(np.ones((1, len(labels))))[0]), interval


def best_column(table: Floats, labels: Floats) -> int:
    """Return the column of the largest AUROC, of equal ones the first."""
    found = [auroc(column, labels) or 0.0 for column in table.T]
    return int(np.argmax(found))


def compared(of: Scores, first: str, second: str, resamples: int = RESAMPLES) -> Difference:
    """Compare two columns of a set."""
    both = of.only([first, second])
    sides = [weighted_auroc(column, both.labels) for column in both.table.T]
    return _difference(both, sides[:1], sides[1:], {second: 1}, f"{first} {second}", resamples)


def out_of_fold_gain(of: Scores, resamples: int = RESAMPLES) -> Difference:
    """Compare the combination with the best single column, both from the other four fifths.

    Folds are of whole questions. A pair of a right and a wrong answer counts only within a fold,
    since two folds are scored by two fits. The mean of five ways to part the questions.
    """
    sides: tuple[list[WeightedFigure], list[WeightedFigure]] = ([], [])
    chosen: dict[str, int] = {}
    for repeat in range(REPEATS):
        rng = generator(0, "which-metric", of.name, "folds", str(repeat))
        folds = fold_numbers(of.questions, of.labels, FOLDS, rng)
        combined, single = np.empty(len(folds)), np.empty(len(folds))
        for fold in range(FOLDS):
            mine = folds == fold
            best = best_column(of.table[~mine], of.labels[~mine])
            fit = fit_combination(of.table[~mine], of.labels[~mine])
            combined[mine], single[mine] = fit.log_odds(of.table[mine]), of.table[mine, best]
            chosen[of.columns[best]] = chosen.get(of.columns[best], 0) + 1
        for side, scores in zip(sides, (combined, single), strict=True):
            side.append(within_folds(scores, of.labels, folds))
    return _difference(of, *sides, chosen, "out of fold", resamples)


def left_out_gain(of: Scores, others: Sequence[Scores], resamples: int = RESAMPLES) -> Difference:
    """Compare the combination fitted on other sets with the column that is best there, by the mean
    of its AUROC over them. Answers of all other sets count alike in the fit.
    """
    means = [
        np.mean([auroc(one.table[:, place], one.labels) or 0.0 for one in others])
        for place in range(len(of.columns))
    ]
    best = int(np.argmax(means))
    table = np.concatenate([one.table for one in others])
    fit = fit_combination(table, np.concatenate([one.labels for one in others]))
    sides = [
        weighted_auroc(fit.log_odds(of.table), of.labels),
        weighted_auroc(of.table[:, best], of.labels),
    ]
    return _difference(of, sides[:1], sides[1:], {of.columns[best]: 1}, "left out", resamples)


def within_folds(scores: Floats, labels: Floats, folds: Places) -> WeightedFigure:
    """Return the AUROC over pairs of answers of the same fold."""
    parts = [np.flatnonzero(folds == fold) for fold in np.unique(folds)]
    figures = [weighted_auroc(scores[places], labels[places]) for places in parts]

    def figure(weights: Floats) -> Floats:
        wins, pairs = np.zeros(len(weights)), np.zeros(len(weights))
        for places, one in zip(parts, figures, strict=True):
            w = weights[:, places]
            here = (w @ labels[places]) * (w @ (1 - labels[places]))
            wins += np.where(here > 0, np.nan_to_num(one(w)) * here, 0.0)
            pairs += here
        return np.where(pairs > 0, wins / np.maximum(pairs, 1), np.nan)

    return figure


def _difference(
    of: Scores,
    first: Sequence[WeightedFigure],
    second: Sequence[WeightedFigure],
    chosen: Mapping[str, int],
    purpose: str,
    resamples: int,
) -> Difference:
    """Return the mean of the first figures less that of the second."""
    ones = np.ones((1, len(of.labels)))
    one, other = (float(np.mean([f(ones)[0] for f in side])) for side in (first, second))
    rng = generator(0, "which-metric", of.name, purpose)
    drawn = np.concatenate(list(_drawn(of.questions, first, second, rng, resamples)))
    told = bootstrap_test(one - other, drawn, len(np.unique(of.questions)))
    return Difference(len(of.labels), one, other, told.value, told.interval, told.p, chosen)


def _drawn(
    questions: Places,
    first: Sequence[WeightedFigure],
    second: Sequence[WeightedFigure],
    rng: np.random.Generator,
    resamples: int,
) -> Iterator[Floats]:
    for weights in cluster_weights(questions, rng, resamples):
        one, other = (np.mean([f(weights) for f in side], axis=0) for side in (first, second))
        yield one - other


def wrong_together(of: Scores) -> tuple[int, int]:
    """Return how many wrong answers every column accepts, and how many right ones none does, where
    each accepts as many answers as are right; of equal scores the first ones.
    """
    right = int(of.labels.sum())
    accepted = np.zeros(of.table.shape, dtype=bool)
    for place, column in enumerate(of.table.T):
        accepted[np.argsort(-column, kind="stable")[:right], place] = True
    is_right = of.labels > 0
    every, none = accepted.all(axis=1), ~accepted.any(axis=1)
    return int((every & ~is_right).sum()), int((none & is_right).sum())
