"""Do the promises of `calibrate` hold? By simulation, and on labelled runs by repeated splits.

    python -m lab.benchmarks.calibrating [--only guarantees|likeness] [--part 0.1]
    python -m lab.benchmarks.calibrating --run runs/begin --label attributable \\
        --positive "Fully attributable" --metric faithfulness.support

Guarantees: sets of n labelled questions are drawn from populations of known risk, a threshold is
found, and the population says what is wrong among all answers above it. Likeness: how often two
sets of one population are said to differ. With --run, the questions of a labelled run are divided
at random again and again; one part is calibrated on, the other says what came of it.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trustassay.people.calibrate.fitting import LabelledScores, find_promises, fit
from trustassay.people.study.answers import read_answers
from trustassay.people.study.labels import LabelSource, read_answer_labels
from trustassay.runs.calibrator import FALSE_ALARM_RATE, ThresholdPromise
from trustassay.statistics.calibration import calibration_error, fit_combination, mean_log_loss
from trustassay.statistics.comparison import (
    DistributionSummary,
    compare_distribution,
    summarise_distribution,
)
from trustassay.statistics.conformal import risk_control_threshold, selective_threshold
from trustassay.statistics.regression import Isotonic, sigmoid
from trustassay.statistics.resampling import holm

Floats = NDArray[np.float64]
SIZES = (50, 200, 1000)
RISKS = (0.05, 0.1, 0.2)
DELTA = 0.05
DRAWS = 1000
SPLITS = 300
WHOLE = 2_000_000
PART_OF_IT = 40_000
"""Of the population, where its risk is computed anew for each draw."""


class Made(NamedTuple):
    """Scores of answers, shape (n, d), whether each is wrong, and its question."""

    scores: Floats
    wrong: Floats
    questions: NDArray[np.int64]


class Columns(NamedTuple):
    """Scores and parts of answers, each of shape (n,), and the number of each one's question."""

    values: Sequence[Floats]
    questions: NDArray[np.int64]


class Split(NamedTuple):
    """What came of one split: among the accepted ones of the rest the share that is wrong (``None``
    where nothing can be accepted), the share accepted, the share accepted and wrong, and log loss
    and ECE of the probabilities and of the score itself.
    """

    among: float | None
    share: float
    lost: float
    quality: Sequence[float]


Make = Callable[[np.random.Generator, int], Made]


def simple(wrong_at: Callable[[Floats], Floats], levels: int = 0) -> Make:
    """Return a population of one normal score, rounded to a few levels if these are given."""

    def make(rng: np.random.Generator, n: int) -> Made:
        x = rng.normal(size=n)
        if levels:
            x = np.round(x * levels / 4) * 4 / levels
        return Made(x[:, None], (rng.random(n) < wrong_at(x)).astype(float), np.arange(n))

    return make


def two_answers(rng: np.random.Generator, n: int) -> Made:
    """Two answers a question, which have the question's difficulty in common."""
    x = rng.normal(size=n) + rng.normal(size=(2, n)) / 2
    wrong = rng.random(n) < sigmoid(-3.5 * x - 1)
    return Made(x.reshape(-1, 1), wrong.ravel().astype(float), np.tile(np.arange(n), 2))


def two_scores(rng: np.random.Generator, n: int) -> Made:
    """Two scores, each of which says something, to be combined."""
    x = rng.normal(size=(n, 2))
    wrong = rng.random(n) < sigmoid(-3 * x[:, 0] - 2 * x[:, 1] - 1.5)
    return Made(x, wrong.astype(float), np.arange(n))


POPULATIONS: dict[str, Make] = {
    "good": simple(lambda x: sigmoid(-2.5 * x - 0.8)),
    "excellent": simple(lambda x: sigmoid(-5 * x - 2.5)),
    "the best scores err": simple(lambda x: np.where(x > 1.3, 0.15, sigmoid(-5 * x - 3))),
    "five different scores": simple(lambda x: sigmoid(-5 * x - 2.5), levels=5),
    "says nothing, 5.5 % wrong": simple(lambda x: np.full(len(x), 0.055)),
    "says nothing, 11 % wrong": simple(lambda x: np.full(len(x), 0.11)),
    "two answers a question": two_answers,
    "two scores combined": two_scores,
}


def halves(made: Made, rng: np.random.Generator) -> tuple[Made, Callable[[Floats], Floats]]:
    """Return what thresholds are found on, and the score: of several scores, the combination that
    was fitted on the other half of the questions."""
    if made.scores.shape[1] == 1:
        return made, lambda table: np.asarray(table[:, 0])
    first = rng.permutation(len(made.wrong)) < len(made.wrong) // 2
    labels = 1 - made.wrong[first]
    if len(set(labels.tolist())) < 2:
        return Made(made.scores[:0], made.wrong[:0], made.questions[:0]), lambda table: table[:, 0]
    fit = fit_combination(made.scores[first], labels)
    rest = Made(made.scores[~first], made.wrong[~first], made.questions[~first])
    return rest, fit.log_odds


def risk_above(scores: Floats, wrong: Floats) -> Callable[[float], tuple[float, float]]:
    """Return what gives, of a threshold, the share of wrong answers above it, and of all answers
    the share that is above it and wrong."""
    order = np.argsort(-scores, kind="stable")
    ranked, bad = -scores[order], np.cumsum(wrong[order])

    def risk(above: float) -> tuple[float, float]:
        k = int(np.searchsorted(ranked, -above, side="left"))
        return (float(bad[k - 1] / k) if k else 0.0), (float(bad[k - 1] / len(bad)) if k else 0.0)

    return risk


def risk_by_question(made: Made) -> Callable[[float], tuple[float, float]]:
    """Return the same where questions have several answers: each question counts once."""
    scores, wrong, of = made.scores[:, 0], made.wrong > 0, made.questions
    sizes = np.bincount(of)

    def risk(above: float) -> tuple[float, float]:
        taken = scores > above
        accepted, bad = (
            np.bincount(of[which], minlength=len(sizes)) for which in (taken, taken & wrong)
        )
        some = accepted > 0
        return (
            float((bad[some] / accepted[some]).mean()) if some.any() else 0.0,
            float((bad / sizes).mean()),
        )

    return risk


def guarantees(part: float) -> None:
    """Print how often each promise was kept."""
    print(
        "| population | risk | n | promise kept, % | accept something, % | accepted, % | "
        "wrong among them, % | accepted and wrong, % |\n" + "| --- " * 8 + "|"
    )
    draws = max(20, round(DRAWS * part))
    for name, make in POPULATIONS.items():
        rng = np.random.default_rng(11)
        whole = make(rng, WHOLE if make is not two_answers else PART_OF_IT)
        for alpha in RISKS:
            for n in SIZES:
                print(_row(name, make, whole, alpha, n, draws), flush=True)


def _row(name: str, make: Make, whole: Made, alpha: float, n: int, draws: int) -> str:
    rng = np.random.default_rng([n, round(1000 * alpha)])
    fixed = None
    if whole.scores.shape[1] == 1:
        several = len(whole.wrong) > len(np.unique(whole.questions))
        fixed = risk_by_question(whole) if several else risk_above(whole.scores[:, 0], whole.wrong)
    kept, found, share, risks, lost = 0, 0, 0.0, [], []
    for _ in range(draws):
        made, score = halves(make(rng, n), rng)
        if not len(made.wrong):
            kept += 1
            continue
        risk = fixed or risk_above(score(whole.scores[:PART_OF_IT]), whole.wrong[:PART_OF_IT])
        given = (score(made.scores), made.wrong, made.questions)
        passed = selective_threshold(*given, alpha=alpha, delta=DELTA, rng=rng)
        expected = risk_control_threshold(*given, alpha=alpha)
        kept += passed is None or risk(passed.above)[0] <= alpha
        lost.append(risk(expected.above)[1] if expected else 0.0)
        if passed:
            found += 1
            share += passed.answers / len(made.wrong)
            risks.append(risk(passed.above)[0])
    among = f"{100 * np.mean(risks):.1f}" if risks else "–"
    return (
        f"| {name} | {alpha:g} | {n} | {100 * kept / draws:.1f} | {100 * found / draws:.1f} | "
        f"{100 * share / draws:.1f} | {among} | {100 * np.mean(lost):.2f} |"
    )


def like(rng: np.random.Generator, questions: int, answers: int, moved: float = 0.0) -> Columns:
    """Return a score, a part that goes with it and one of five values, some of them missing."""
    common = np.repeat(rng.normal(size=questions), answers)
    x = common + rng.normal(size=questions * answers) / 2 + moved
    part = x + rng.normal(size=len(x))
    few = np.round(2 * sigmoid(x + rng.normal(size=len(x)))) / 2
    part[rng.random(len(x)) < 0.05] = np.nan
    return Columns([x, part, few], np.repeat(np.arange(questions), answers))


def alarmed(kept: Sequence[DistributionSummary], new: Columns) -> bool:
    """Whether any column is said to be unlike, as `score --calibrator` says it."""
    pairs = zip(kept, new.values, strict=True)
    return (
        min(holm([compare_distribution(one, x, new.questions).p for one, x in pairs]))
        < FALSE_ALARM_RATE
    )


def likeness(part: float) -> None:
    """Print how often sets are said to be unlike: of one population, and of one that has moved."""
    print(
        "| labelled questions | new ones | answers each | same, % | moved by 0.2, % | by 0.5, % |"
        "\n" + "| --- " * 6 + "|"
    )
    draws = max(20, round(DRAWS * part))
    for n in SIZES:
        for m in (100, 1000):
            for answers in (1, 3):
                rng = np.random.default_rng([n, m, answers])
                counts = dict.fromkeys((0.0, 0.2, 0.5), 0)
                for _ in range(draws):
                    old = like(rng, n, answers)
                    kept = [summarise_distribution(x, old.questions) for x in old.values]
                    for moved in counts:
                        counts[moved] += alarmed(kept, like(rng, m, answers, moved))
                told = " | ".join(f"{100 * count / draws:.1f}" for count in counts.values())
                print(f"| {n} | {m} | {answers} | {told} |", flush=True)


def splits(given: argparse.Namespace) -> None:
    """Print what came of calibrators of some questions of a labelled run, on the others."""
    columns = [given.label]
    answers = read_answers([Path(path) for path in given.run], columns)
    label = read_answer_labels(answers, LabelSource(fields=columns, positive=given.positive))[0][0]
    by_name = {column.name: column.values for column in answers.columns}
    values = np.stack([by_name[name] for name in given.metric], axis=1)
    used = ~np.isnan(label.values)
    _, questions = np.unique(answers.questions[used], return_inverse=True)
    rows = LabelledScores(values[used], label.values[used], questions)
    count = questions.max() + 1
    print(f"{used.sum()} answers to {count} questions, {100 * rows.right.mean():.1f} % right")
    print(
        "| questions | risk | promise kept, % | accept something, % | accepted of the rest, % | "
        "wrong among them, % | accepted and wrong, % | log loss | ECE | of the score: log loss | "
        "ECE |\n" + "| --- " * 11 + "|"
    )
    draws = max(10, round(SPLITS * given.part))
    for n in (100, 200, count // 2):
        told = [_split(rows, n, seed) for seed in range(draws)]
        for place, alpha in enumerate(RISKS):
            print(_split_row(n, alpha, [one[place] for one in told]), flush=True)


def _split(rows: LabelledScores, n: int, seed: int) -> list[Split]:
    """Calibrate on n questions, and look at the others."""
    rng = np.random.default_rng(seed)
    chosen = np.isin(rows.questions, rng.permutation(rows.questions.max() + 1)[:n])
    fitted = fit(rows.of(chosen), None, seed)
    rest = rows.of(~chosen)
    single = rows.scores.shape[1] == 1
    if isinstance(fitted.model, Isotonic):
        chances = fitted.model.at(rest.scores[:, 0])
    else:
        chances = fitted.model.probabilities(rest.scores)
    ranks = rest.scores[:, 0] if single else chances
    known = ~np.isnan(chances)
    quality = [*_quality(chances[known], rest.right[known])]
    raw = np.clip(rest.scores[known, 0], 0.001, 0.999)
    quality += _quality(raw, rest.right[known]) if single else [math.nan, math.nan]
    found = find_promises(fitted, RISKS, 1 - DELTA, seed)
    of = np.unique(rest.questions, return_inverse=True)[1]
    risk = risk_by_question(Made(ranks[:, None], 1 - rest.right, of))
    told = []
    for passed, expected in zip(found[: len(RISKS)], found[len(RISKS) :], strict=True):
        among = None if passed.without else risk(_above(passed))[0]
        lost = 0.0 if expected.without else risk(_above(expected))[1]
        share = float(passed.accepts(ranks).mean())
        told.append(Split(among, share, lost, quality))
    return told


def _above(promise: ThresholdPromise) -> float:
    return -math.inf if promise.above is None else promise.above


def _quality(chances: Floats, right: Floats) -> list[float]:
    return [mean_log_loss(chances, right), calibration_error(chances, right) or 0.0]


def _split_row(n: int, alpha: float, told: Sequence[Split]) -> str:
    among = [one.among for one in told if one.among is not None]
    kept = 100 * np.mean([one.among is None or one.among <= alpha for one in told])
    wrong = f"{100 * np.mean(among):.1f}" if among else "–"
    quality = np.mean([one.quality for one in told], axis=0)
    cells = " | ".join("–" if math.isnan(one) else f"{one:.3f}" for one in quality)
    share = 100 * np.mean([one.share for one in told])
    lost = 100 * np.mean([one.lost for one in told])
    return (
        f"| {n} | {alpha:g} | {kept:.1f} | {100 * len(among) / len(told):.1f} | {share:.1f} | "
        f"{wrong} | {lost:.2f} | {cells} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--part", type=float, default=1.0, help="of the sets that are drawn")
    parser.add_argument("--only", choices=["guarantees", "likeness"])
    parser.add_argument("--run", action="append", default=[], help="a labelled run")
    parser.add_argument("--label", default="label")
    parser.add_argument("--positive", action="append", default=[])
    parser.add_argument("--metric", action="append", default=[])
    given = parser.parse_args()
    started = time.monotonic()
    if given.run:
        splits(given)
    if not given.run and given.only != "likeness":
        guarantees(given.part)
    if not given.run and given.only != "guarantees":
        likeness(given.part)
    print(f"{time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
