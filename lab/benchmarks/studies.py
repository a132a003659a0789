"""How often intervals of ``study`` hold the truth, how often its tests raise a false alarm, and
how long 10,000 resamples take beside a plain loop.

    python -m lab.benchmarks.studies                           # the tables of docs/people/study.md
    python -m lab.benchmarks.studies --only coverage --part 0.2
    python -m lab.benchmarks.studies --only speed

A population is 50,000 made-up questions with one or two answers each, whose figures are the true
ones. Questions are drawn from it again and again, and looked at as ``study`` does.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trustassay.statistics.auroc import auroc_difference, auroc_interval
from trustassay.statistics.correlation import BIASED, BY_CLASS, WEIGHTED_MEASURES, value_of
from trustassay.statistics.resampling import cluster_weights, holm, resample_interval

Floats = NDArray[np.float64]
Places = NDArray[np.int64]
POPULATION = 50_000
SIZES = {40: 1000, 200: 600, 1000: 240}
"""Questions, and how many sets of so many are drawn."""
FEWEST_TOLD = 20
"""Intervals of which is told how many hold the truth."""
REPLICATES = 500
"""A quarter of what ``study`` draws, for time: the ends of intervals are somewhat less exact."""
OF_ANY_LABEL = ("prr", "kendall", "spearman", "pearson")


class Made(NamedTuple):
    """Scores and labels of questions, shape (questions, answers of each)."""

    scores: Floats
    labels: Floats


def classes(
    rng: np.random.Generator,
    n: int,
    *,
    apart: float,
    share: float = 0.5,
    levels: int = 0,
    answers: int = 1,
    together: float = 0.0,
) -> Made:
    """Return labels of two classes and scores from 0 to 1, ``apart`` standard deviations apart on
    the logit scale; ``together``: the share of the scores' and labels' variance that the answers to
    a question have in common.
    """

    def noise() -> Floats:
        common, own = rng.normal(size=(n, 1)), rng.normal(size=(n, answers))
        return np.asarray(together**0.5 * common + (1 - together) ** 0.5 * own)

    labels = (noise() > np.quantile(rng.normal(size=100_000), 1 - share)).astype(float)
    scores = 1 / (1 + np.exp(-(apart * (labels - 0.5) + noise())))
    return Made(np.round(scores * (levels - 1)) / (levels - 1) if levels else scores, labels)


def grades(rng: np.random.Generator, n: int, *, levels: int = 0) -> Made:
    """Return labels on a scale, or real ones, and scores that go with them."""
    quality = rng.normal(size=(n, 1))
    labels = quality + rng.normal(size=(n, 1))
    if levels:
        labels = np.clip(np.round(labels + levels / 2), 0, levels - 1)
    scores = 1 / (1 + np.exp(-(quality + rng.normal(size=(n, 1)))))
    return Made(scores, labels)


Population = Callable[[np.random.Generator, int], Made]
BINARY: Mapping[str, Population] = {
    "good": lambda rng, n: classes(rng, n, apart=1.5),
    "excellent": lambda rng, n: classes(rng, n, apart=3.0),
    "says nothing": lambda rng, n: classes(rng, n, apart=0.0),
    "a tenth is right": lambda rng, n: classes(rng, n, apart=1.5, share=0.1),
    "five different scores": lambda rng, n: classes(rng, n, apart=1.5, levels=5),
    "two answers a question": lambda rng, n: classes(rng, n, apart=1.5, answers=2, together=0.6),
}
GRADED: Mapping[str, Population] = {
    "five levels": lambda rng, n: grades(rng, n, levels=5),
    "real labels": grades,
}


def intervals(
    made: Made, measures: Sequence[str], rng: np.random.Generator
) -> Mapping[str, object]:
    """Return the interval of each measure, or why there is none, as ``study`` does."""
    questions = np.repeat(np.arange(len(made.scores)), made.scores.shape[1])
    x, y = made.scores.ravel(), made.labels.ravel()
    figures = {name: WEIGHTED_MEASURES[name](x, y) for name in measures if name != "auroc"}
    drawn: dict[str, list[Floats]] = {name: [] for name in figures}
    for weights in cluster_weights(questions, rng, REPLICATES):
        for name, figure in figures.items():
            drawn[name].append(figure(weights))
    ones = np.ones((1, len(x)))
    two = set(np.unique(y)) <= {0.0, 1.0}
    rarer = int(min(y.sum(), len(y) - y.sum())) if two else None
    own = {"auroc": auroc_interval(x, y, questions)} if "auroc" in measures else {}
    return own | {
        name: resample_interval(
            np.concatenate(d),
            len(made.scores),
            biased=float(figures[name](ones)[0]) if name in BIASED else None,
            rarer=rarer if name in BY_CLASS else None,
        )
        for name, d in drawn.items()
    }


def coverage(part: float) -> None:
    """Print how often the intervals hold the true figure, in per cent of those that there are."""
    header = " | ".join(f"n = {n}" for n in SIZES)
    print(f"| population | figure | true | {header} |\n| --- | --- | --- |{' --- |' * len(SIZES)}")
    for name, population in {**BINARY, **GRADED}.items():
        measures = list(WEIGHTED_MEASURES) if name in BINARY else list(OF_ANY_LABEL)
        whole = population(np.random.default_rng(1), POPULATION)
        truth = {m: true_value(m, whole) for m in measures}
        cells: dict[str, list[str]] = {m: [] for m in measures}
        for n, most in SIZES.items():
            draws = round(part * most)
            hits, there = dict.fromkeys(measures, 0), dict.fromkeys(measures, 0)
            for draw in range(draws):
                rng = np.random.default_rng([n, draw])
                places = rng.integers(0, POPULATION, n)
                made = Made(whole.scores[places], whole.labels[places])
                for m, interval in intervals(made, measures, rng).items():
                    if isinstance(interval, tuple):
                        there[m] += 1
                        hits[m] += interval[0] - 1e-9 <= truth[m] <= interval[1] + 1e-9
            for m in measures:
                without = round(100 * (draws - there[m]) / draws)
                said = f"{100 * hits[m] / there[m]:.1f}" if there[m] >= FEWEST_TOLD else "none"
                cells[m].append(said + (f" ({without})" if without else ""))
        for m in measures:
            print(f"| {name} | `{m}` | {truth[m]:.3f} | {' | '.join(cells[m])} |", flush=True)


def true_value(measure: str, whole: Made) -> float:
    """Return a figure of the whole population."""
    value = value_of(WEIGHTED_MEASURES[measure], whole.scores.ravel(), whole.labels.ravel())
    assert value is not None
    return value


class Rivals(NamedTuple):
    """Scores that are equally good: how far apart the classes are, what their errors have in
    common, how many different scores there are (0: all), and the answers of a question."""

    apart: float
    common: float
    levels: int = 0
    answers: int = 1
    share: float = 0.5


RIVALS: Mapping[str, Rivals] = {
    "much in common": Rivals(1.5, 0.8),
    "nothing in common": Rivals(1.5, 0.0),
    "both say nothing": Rivals(0.0, 0.3),
    "excellent": Rivals(3.0, 0.5),
    "five different scores": Rivals(1.5, 0.5, levels=5),
    "a tenth is right": Rivals(1.5, 0.5, share=0.1),
    "two answers a question": Rivals(1.5, 0.5, answers=2),
}


def rivals(rng: np.random.Generator, n: int, of: Rivals, scores: int) -> tuple[Floats, Floats]:
    """Return scores, shape (scores, n), and labels of n questions."""
    each, common = (n, of.answers), of.common**0.5
    base = rng.normal(size=(n, 1)) if of.answers > 1 else np.zeros((n, 1))
    labels = (base + rng.normal(size=each) > 0).astype(float)
    if of.share != 0.5:
        labels = (rng.random(each) < of.share).astype(float)
    shared = rng.normal(size=each)
    found = []
    for _ in range(scores):
        own = rng.normal(size=each) + (rng.normal(size=(n, 1)) if of.answers > 1 else 0.0)
        score = of.apart * labels + common * shared + (1 - of.common) ** 0.5 * own
        if of.levels:
            score = np.clip(np.round(score), -1, of.levels - 2)
        found.append(score.ravel())
    return np.stack(found), labels.ravel()


def p_values(scores: Floats, labels: Floats, questions: Places) -> Floats:
    """Return the p-value of every two scores' difference in AUROC, as ``study`` does; NaN: none."""
    tests = [auroc_difference(*two, labels, questions) for two in itertools.combinations(scores, 2)]
    return np.array([np.nan if test.p is None else test.p for test in tests])


def alarms(part: float) -> None:
    """Print how often scores that are equally good are told apart at 5 %, in per cent."""
    header = " | ".join(f"n = {n}" for n in SIZES)
    print(f"| scores | tests | {header} |\n| --- | --- |{' --- |' * len(SIZES)}")
    for name, of in RIVALS.items():
        for scores in (2, 4):
            cells = []
            for n, most in SIZES.items():
                draws = round(part * most)
                raised, there = 0, 0
                for draw in range(draws):
                    rng = np.random.default_rng([n, draw, scores])
                    x, y = rivals(rng, n, of, scores)
                    questions = np.repeat(np.arange(n), of.answers)
                    p = p_values(x, y, questions)
                    p = p[~np.isnan(p)]
                    there += bool(len(p))
                    raised += bool(len(p)) and min(holm(p.tolist())) < 0.05
                cells.append(f"{100 * raised / max(there, 1):.1f}")
            tests = scores * (scores - 1) // 2
            words = f"{tests}, any corrected" if tests > 1 else "1"
            print(f"| {name} | {words} | {' | '.join(cells)} |", flush=True)


def speed(n: int = 1000, replicates: int = 10_000) -> None:
    """Print seconds of CPU for all resamples at once and in a loop over scikit-learn and scipy."""
    from scipy import stats  # type: ignore[import-untyped]
    from sklearn.metrics import average_precision_score, brier_score_loss, roc_auc_score

    made = classes(np.random.default_rng(0), n, apart=1.5)
    x, y = made.scores.ravel(), made.labels.ravel()
    plain: Mapping[str, Callable[[Floats, Floats], float]] = {
        "auroc": lambda a, b: float(roc_auc_score(b, a)),
        "auprc": lambda a, b: float(average_precision_score(b, a)),
        "kendall": lambda a, b: float(stats.kendalltau(a, b).statistic),
        "spearman": lambda a, b: float(stats.spearmanr(a, b).statistic),
        "pearson": lambda a, b: float(stats.pearsonr(a, b).statistic),
        "brier": lambda a, b: float(brier_score_loss(b, a)),
    }
    print(
        f"| figure | at once, s | loop, s | times |  <!-- {replicates:,} resamples, n = {n:,} -->"
    )
    print("| --- | --- | --- | --- |")
    for name, measure in WEIGHTED_MEASURES.items():
        began = time.process_time()
        figure = measure(x, y)
        for weights in cluster_weights(np.arange(n), np.random.default_rng(0), replicates):
            figure(weights)
        once = time.process_time() - began
        if name not in plain:
            print(f"| `{name}` | {once:.2f} | – | – |", flush=True)
            continue
        rng, began = np.random.default_rng(0), time.process_time()
        for _ in range(replicates):
            places = rng.integers(0, n, n)
            plain[name](x[places], y[places])
        loop = time.process_time() - began
        print(f"| `{name}` | {once:.2f} | {loop:.1f} | {loop / once:.0f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--part", type=float, default=1.0, help="of the sets that are drawn")
    parser.add_argument("--only", choices=["coverage", "alarms", "speed"])
    args = parser.parse_args()
    if args.only in (None, "coverage"):
        coverage(args.part)
    if args.only in (None, "alarms"):
        alarms(args.part)
    if args.only in (None, "speed"):
        speed()


if __name__ == "__main__":
    main()
