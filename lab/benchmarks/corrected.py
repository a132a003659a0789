"""How often the intervals of corrected shares hold the true share.

    python -m lab.benchmarks.corrected choices --out FOLDER --write    # a quarter of an hour, one
    core python -m lab.benchmarks.corrected estimates --out FOLDER --write  # ten minutes or so

``choices`` (``results/corrected.json``): the share of right answers that commands print
(:func:`~trustassay.compare.corrected.estimate_stratified_rate`), by which answers have labels:

1. 2,000 or 300 questions, of which none, a fifth or four fifths are not answered. Raters call one
   of ten refusals right.
2. Of the others a judge passes right ones with the probability ``accuracy``, wrong ones with its
   complement. Its score is also a little worse for wrong answers within an outcome.
3. 50 to 500 labels, chosen in the ways of :data:`CHOICES`. Where a command gives no figure, none is
   counted. How coverage depends on the labels of the outcome that has fewest is counted, too, with
   fewer than :data:`~trustassay.compare.corrected.MIN_LABELS_OF_OUTCOME`.

``estimates`` (``results/coverage-corrected.json``): 2,000 answers, all answered. 50 to 500 have
labels: a random sample of them (prediction-powered), or of an earlier run in which half of the
answers were right (Rogan-Gladen). Also differences of two runs, paired and not, whose judges err
otherwise; groups of answers to a question; and what one judge's errors, pooled, make of two groups.
Beside them, on the first draws of each cell, glide-py and truescore, if they can be imported
(``pip install --target FOLDER glide-py truescore``).
"""

from __future__ import annotations

import argparse
import json
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab.results import write_result
from trustassay.compare.corrected import (
    MIN_LABELS_OF_OUTCOME,
    JudgedAnswers,
    estimate_stratified_rate,
)
from trustassay.statistics.corrected import (
    LabelCorrectedShare,
    assign_strata,
    difference_of_rates,
    error_bounds,
    prediction_powered,
    rogan_gladen,
    strata_bounds,
)

Array = NDArray[Any]
ANSWERS = 2000
ACCURACIES = (0.6, 0.7, 0.8, 0.9, 0.95)
SHARES = (0.05, 0.2, 0.5, 0.95)
LABELS = (50, 100, 200, 500)
BAND = (93.0, 97.5)
AT_ONCE = 50
POPULATIONS = (ANSWERS, 300)
REFUSED = (0.0, 0.2, 0.8)
"""The share of questions that are not answered."""
RIGHT_REFUSALS = 0.1
"""The share of refusals that raters call right."""
LABEL_BINS = (1, 3, 5, 6, 7, 8, 10, 12, 15, 20, 30, 50)
"""The first numbers of the bins of labels of the outcome with fewest."""
MANY_IN_CELL = 100
"""Intervals of a cell from which its coverage says something by itself."""


def coverage_of(bounds: Sequence[tuple[float, float] | None], truth: float) -> dict[str, float]:
    """Return how often, in per cent of those with bounds, they hold the truth, and their width."""
    there = np.array([one for one in bounds if one], dtype=float).reshape(-1, 2)
    if not len(there):
        return {"intervals": 0}
    holds = (there[:, 0] <= truth + 1e-9) & (truth - 1e-9 <= there[:, 1])
    width = float((there[:, 1] - there[:, 0]).mean())
    return {
        "coverage": round(100 * float(holds.mean()), 2),
        "width": round(width, 4),
        "intervals": len(there),
    }


def draw_answers(
    rng: np.random.Generator, share: float, se: float, sp: float, shape: tuple[int, ...]
) -> tuple[Array, Array]:
    """Return which answers are right, and which are called good."""
    right = rng.random(shape) < share
    return right, rng.random(shape) < np.where(right, se, 1 - sp)


def one_share(share: float, accuracy: float, labels: int, draws: int, beside: int) -> list[Any]:
    """Return the coverage of a share by both estimates, and of others on the first draws."""
    rng = np.random.default_rng([int(100 * share), int(100 * accuracy), labels])
    right, good = draw_answers(rng, share, accuracy, accuracy, (draws, ANSWERS))
    y, f = right[:, :labels], good[:, :labels]
    n = np.stack([(~f).sum(1), f.sum(1)], axis=1).astype(float)
    of_right = np.stack([(y & ~f).sum(1), (y & f).sum(1)], axis=1).astype(float)
    all_ = np.stack([(~good).sum(1), good.sum(1)], axis=1).astype(float)
    powered = np.concatenate(
        [
            strata_bounds(
                all_[at : at + AT_ONCE], of_right[at : at + AT_ONCE], n[at : at + AT_ONCE], rng
            ).T
            for at in range(0, draws, AT_ONCE)
        ]
    )
    before, called = draw_answers(rng, 0.5, accuracy, accuracy, (draws, labels))
    errors = []
    for row in range(draws):
        parts = (good[row], called[row][before[row]], called[row][~before[row]])
        errors.append(error_bounds(np.array([(p.sum(), (~p).sum()) for p in parts], float), rng))
    rows = [
        {"estimate": "prediction-powered", **coverage_of([tuple(one) for one in powered], share)},
        {"estimate": "Rogan-Gladen", **coverage_of(errors, share)},
    ]
    for name, estimate in others().items() if beside else ():
        bounds = [estimate(right[row], good[row], labels) for row in range(min(beside, draws))]
        rows.append({"estimate": name, **coverage_of(bounds, share)})
        ours = [tuple(one) for one in powered[: len(bounds)]]
        rows[-1]["ours_on_these"] = coverage_of(ours, share)["coverage"]
    return [{"share": share, "accuracy": accuracy, "labels": labels, **one} for one in rows]


Estimate = Callable[[Array, Array, int], "tuple[float, float] | None"]


def others() -> dict[str, Estimate]:
    """Return the estimates of other packages that can be imported; ``None``: they give none."""
    estimates: dict[str, Estimate] = {}
    with suppress(ImportError):
        estimators = import_module("glide.estimators")

        def glide(right: Array, good: Array, n: int) -> tuple[float, float] | None:
            y = np.where(np.arange(len(right)) < n, right, np.nan).astype(float)
            try:
                interval = estimators.PPIMeanEstimator().estimate(y, good.astype(float))
            except ValueError:
                return None
            ends = interval.confidence_interval
            return ends.lower_bound, ends.upper_bound

        estimates["glide-py: PPIMeanEstimator"] = glide
    with suppress(ImportError):
        correct = import_module("truescore.correct")

        def truescore(right: Array, good: Array, n: int) -> tuple[float, float] | None:
            try:
                result = correct.ppi_estimate(good.astype(int), right[:n].astype(int), np.arange(n))
            except ValueError:
                return None
            return result.low, result.high

        estimates["truescore: ppi_estimate"] = truescore
    return estimates


def powered(
    right: Array, good: Array, labelled: Array, units: Array, rng: Any
) -> LabelCorrectedShare:
    labels = np.where(labelled, right, np.nan).astype(float)
    return prediction_powered(assign_strata(good.astype(float)), labels, units, rng)


def differences(labels: int, draws: int) -> list[Any]:
    """Return the coverage of differences: of two runs, of two groups, with errors of their own."""
    rng = np.random.default_rng([labels, 5])
    cases = [
        ("two groups", (0.6, 0.95, 0.6), (0.6, 0.6, 0.95), False),
        ("two groups", (0.9, 0.95, 0.7), (0.8, 0.7, 0.95), False),
        ("two groups", (0.2, 0.8, 0.9), (0.1, 0.9, 0.7), False),
        ("two runs, paired", (0.7, 0.9, 0.8), (0.75, 0.8, 0.7), True),
        ("two runs, paired", (0.95, 0.9, 0.7), (0.9, 0.8, 0.8), True),
    ]
    rows = []
    for name, first, second, paired in cases:
        half = ANSWERS // 2
        bounds_of: dict[str, list[Any]] = {"own labels": [], "Rogan-Gladen, own errors": []}
        pooled: list[Any] = []
        for _ in range(draws):
            hard = rng.random(half)
            sides, errors = [], []
            for number, (share, se, sp) in enumerate((first, second)):
                hardness = hard if paired else rng.random(half)
                # of a pair both are right or wrong together as often as not
                hardness = np.where(rng.random(half) < 0.5, hardness, rng.random(half))
                right = hardness < share
                good = rng.random(half) < np.where(right, se, 1 - sp)
                units = np.arange(half) + (0 if paired else number * half)
                labelled = np.arange(half) < labels // 2
                sides.append(powered(right, good, labelled, units, rng))
                known, called = draw_answers(rng, 0.5, se, sp, (labels // 2,))
                errors.append(
                    (good, units, (called, known, -1 - np.arange(labels // 2) - number * half))
                )
            bounds_of["own labels"].append(difference_of_rates(*sides)[1])
            bounds_of["Rogan-Gladen, own errors"].append(
                difference_of_rates(*(rogan_gladen(*one, rng) for one in errors))[1]
            )
            both = tuple(np.concatenate([one[2][part] for one in errors]) for part in range(3))
            same = [rogan_gladen(good, units, both, rng) for good, units, _ in errors]  # type: ignore[arg-type]
            pooled.append(difference_of_rates(*same)[1])
        bounds_of["Rogan-Gladen, pooled errors (not offered)"] = pooled
        truth = second[0] - first[0]
        for estimate, bounds in bounds_of.items():
            case = {"first": first, "second": second, "labels": labels, "estimate": estimate}
            rows.append({"case": name, **case, **coverage_of(bounds, truth)})
    return rows


def clustered(labels: int, draws: int) -> list[Any]:
    """Return the coverage of a share of answers of which four are to a question, as hard."""
    rng = np.random.default_rng([labels, 6])
    rows = []
    for share in (0.3, 0.7, 0.9):
        bounds, alone = [], []
        units = np.repeat(np.arange(ANSWERS // 4), 4)
        for _ in range(draws):
            ease = rng.beta(2 * share, 2 * (1 - share), ANSWERS // 4)
            right = rng.random(ANSWERS) < ease[units]
            good = rng.random(ANSWERS) < np.where(right, 0.85, 0.25)
            labelled = units < labels // 4
            bounds.append(powered(right, good, labelled, units, rng).interval)
            alone.append(powered(right, good, labelled, np.arange(ANSWERS), rng).interval)
        for name, one in (("questions as units", bounds), ("answers as units (wrong)", alone)):
            rows.append(
                {"share": share, "labels": labels, "estimate": name, **coverage_of(one, share)}
            )
    return rows


Choice = Callable[[np.random.Generator, Array, Array, int], Array]
"""What chooses the answers that get a label: which have failed, shape (n,), how bad each is by its
score (NaN: not answered), and how many labels there are; returns their places."""


def choose_at_random(rng: np.random.Generator, failed: Array, _badness: Array, n: int) -> Array:
    return rng.permutation(len(failed))[:n]


def choose_flagged_first(rng: np.random.Generator, failed: Array, _badness: Array, n: int) -> Array:
    order = rng.permutation(len(failed))
    return order[np.argsort(~failed[order], kind="stable")][:n]


def choose_worst_first(rng: np.random.Generator, failed: Array, badness: Array, n: int) -> Array:
    """Choose by the score alone; what has none comes last, in random order."""
    order = rng.permutation(len(failed))
    return order[np.argsort(-badness[order], kind="stable")][:n]


def choose_flagged_only(rng: np.random.Generator, failed: Array, _badness: Array, n: int) -> Array:
    return rng.permutation(np.flatnonzero(failed))[:n]


def choose_half_and_half(rng: np.random.Generator, failed: Array, badness: Array, n: int) -> Array:
    """Choose half of the labels among failed answers, the others among all that are left."""
    flagged = choose_flagged_only(rng, failed, badness, n // 2)
    rest = np.setdiff1d(np.arange(len(failed)), flagged)
    return np.concatenate([flagged, rng.permutation(rest)[: n - len(flagged)]])


CHOICES: dict[str, Choice] = {
    "at random": choose_at_random,
    "flagged first, then at random": choose_flagged_first,
    "worst score first": choose_worst_first,
    "flagged only": choose_flagged_only,
    "half flagged, half at random": choose_half_and_half,
}


def make_answers(
    rng: np.random.Generator, answers: int, share: float, accuracy: float, refused: float
) -> tuple[Array, JudgedAnswers]:
    """Return which answers raters call right, and the answers as a metric judges them, without
    labels.
    """
    right, passed = draw_answers(rng, share, accuracy, accuracy, (answers,))
    is_refused = rng.random(answers) < refused
    right = np.where(is_refused, rng.random(answers) < RIGHT_REFUSALS, right)
    # Passed answers have a badness below 1, failed ones above. Within an outcome wrong answers are
    # somewhat worse: else the worst ones would be a random sample.
    within = rng.random(answers)
    badness = np.where(passed, 0.0, 1.0) + np.where(right, within, np.sqrt(within))
    strata = np.where(is_refused, 2, np.where(passed, 0, 1))
    return right, JudgedAnswers(
        strata,
        np.where(is_refused, np.nan, badness),
        np.where(is_refused, np.nan, badness),
        passed & ~is_refused,
        np.full(answers, np.nan),
        np.arange(answers),
        np.zeros(answers),
        ("passed", "failed", "not answered"),
    )


def fewest_labels(judged: JudgedAnswers) -> int:
    """Return the labels of the outcome that has fewest, of those with answers without a label."""
    counts = []
    for place in np.unique(judged.strata):
        labels = judged.labels[judged.strata == place]
        if np.isnan(labels).any():
            counts.append(int((~np.isnan(labels)).sum()))
    return min(counts, default=LABEL_BINS[-1])


def bin_of(labels: int) -> int:
    """Return the first number of the bin of :data:`LABEL_BINS` in which a number of labels lies."""
    return max(edge for edge in LABEL_BINS if edge <= labels)


def choices(answers: int, labels: int, accuracy: float, draws: int) -> list[Any]:
    """Return how often a figure is given, and holds, by how the answers with labels were chosen."""
    rows = []
    for place, (choice, refused, share) in enumerate(product(CHOICES, REFUSED, SHARES)):
        rng = np.random.default_rng([answers, labels, int(100 * accuracy), place, 7])
        truth = refused * RIGHT_REFUSALS + (1 - refused) * share
        counts: Counter[str] = Counter()
        by_fewest: defaultdict[int, list[int]] = defaultdict(lambda: [0, 0])
        for _ in range(draws):
            right, judged = make_answers(rng, answers, share, accuracy, refused)
            places = CHOICES[choice](rng, judged.strata == 1, judged.badness, labels)
            judged.labels[places] = right[places]
            rate, note = estimate_stratified_rate(judged, rng)
            fewest = fewest_labels(judged)
            if (
                rate is None
                and 0 < fewest < MIN_LABELS_OF_OUTCOME
                and note.startswith("too few labels")
            ):
                # What the figure would be if fewer labels were enough: for the bins alone.
                known = prediction_powered(judged.strata, judged.labels, judged.units, rng)
                add_to_bin(by_fewest, fewest, known, truth)
            if rate is None:
                counts["no figure"] += 1
                continue
            counts["figures"] += 1
            counts["holds"] += holds(rate, truth)
            add_to_bin(by_fewest, fewest, rate, truth)
        case = {"choice": choice, "answers": answers, "not_answered": refused, "share": share}
        case |= {"accuracy": accuracy, "labels": labels, "draws": draws}
        bins = {str(edge): by_fewest[edge] for edge in sorted(by_fewest)}
        rows.append(
            {**case, **{name: counts[name] for name in ("figures", "holds")}, "by_fewest": bins}
        )
    return rows


def holds(rate: LabelCorrectedShare, truth: float) -> bool:
    """Whether the interval of a share holds the true one."""
    assert rate.interval is not None
    return rate.interval[0] <= truth + 1e-9 and truth - 1e-9 <= rate.interval[1]


def add_to_bin(
    bins: dict[int, list[int]], fewest: int, rate: LabelCorrectedShare, truth: float
) -> None:
    """Count an interval, and whether it holds, by the labels of the outcome with fewest."""
    counts = bins[bin_of(fewest)]
    counts[0] += 1
    counts[1] += holds(rate, truth)


def pool_rows(rows: Sequence[Mapping[str, Any]], *keys: str) -> list[dict[str, Any]]:
    """Return the coverage over all cells that are equal in these keys."""
    groups: defaultdict[tuple[Any, ...], list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        groups[tuple(row[key] for key in keys)].append(row)
    pooled = []
    for values, cells in groups.items():
        sums = {name: sum(cell[name] for cell in cells) for name in ("draws", "figures", "holds")}
        figures = {"given": percent(sums["figures"], sums["draws"])}
        figures |= {"coverage": percent(sums["holds"], sums["figures"])}
        # Cells of few figures say little by themselves: three standard errors around the band.
        outside = [cell for cell in cells if cell["figures"] and is_outside(cell)]
        figures |= {"cells": sum(cell["figures"] > 0 for cell in cells), "outside": len(outside)}
        pooled.append({**dict(zip(keys, values, strict=True)), **figures})
    return pooled


def percent(part: int, whole: int) -> float | None:
    """Return a percentage; ``None`` of nothing."""
    return round(100 * part / whole, 2) if whole else None


def is_outside(cell: Mapping[str, Any]) -> bool:
    """Whether the coverage of a cell is outside the band beyond what its draws may do by chance."""
    coverage = 100 * cell["holds"] / cell["figures"]
    low, high = (3 * 100 * math.sqrt(end / 100 * (1 - end / 100) / cell["figures"]) for end in BAND)
    return bool(coverage < BAND[0] - low or coverage > BAND[1] + high)


def pool_bins(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the coverage by the labels of the outcome with fewest."""
    sums: defaultdict[int, list[int]] = defaultdict(lambda: [0, 0])
    worst: defaultdict[int, list[float]] = defaultdict(list)
    for row in rows:
        for edge, (count, hits) in row["by_fewest"].items():
            sums[int(edge)][0] += count
            sums[int(edge)][1] += hits
            if count >= MANY_IN_CELL:
                worst[int(edge)].append(100 * hits / count)
    return [
        {
            "labels_from": edge,
            "intervals": count,
            "coverage": percent(hits, count),
            "least_of_a_cell": round(min(worst[edge]), 2) if worst[edge] else None,
        }
        for edge, (count, hits) in sorted(sums.items())
    ]


def choice_figures(out: Path, draws: int, workers: int | None) -> dict[str, Any]:
    """Measure coverage by how the answers with labels were chosen."""
    jobs: list[Job] = [
        ("choices", choices, (answers, labels, accuracy, draws))
        for answers, labels, accuracy in product(POPULATIONS, LABELS, ACCURACIES)
        if labels < answers
    ]
    cells = rows_of_jobs(out, jobs, workers)["choices"]
    random_within = [row for row in cells if row["choice"] != "worst score first"]
    return {
        "draws": draws,
        "band": BAND,
        "fewest_labels": MIN_LABELS_OF_OUTCOME,
        "choices": pool_rows(cells, "choice"),
        "by_not_answered": pool_rows(cells, "choice", "answers", "not_answered"),
        "by_labels": pool_rows(cells, "choice", "answers", "labels"),
        "by_share": pool_rows(cells, "choice", "share"),
        "by_fewest": pool_bins(random_within),
        "outside": [
            {key: value for key, value in row.items() if key != "by_fewest"}
            for row in cells
            if row["figures"] and is_outside(row)
        ],
    }


Job = tuple[str, Callable[..., list[Any]], tuple[Any, ...]]
"""A part of the measurement, the function that makes its rows, and its arguments."""


def rows_of_jobs(out: Path, jobs: Sequence[Job], workers: int | None) -> dict[str, list[Any]]:
    """Run jobs, or read their files, and return their rows by part."""
    rows: dict[str, list[Any]] = {}
    with ProcessPoolExecutor(workers) as pool:
        waiting = [
            (part, pool.submit(read_or_run, out, part, job, arguments))
            for part, job, arguments in jobs
        ]
        for part, one in waiting:
            rows.setdefault(part, []).extend(one.result())
            print(part, len(rows[part]), list(rows[part][-1].values()), flush=True)
    return rows


def read_or_run(
    out: Path, part: str, job: Callable[..., list[Any]], arguments: tuple[Any, ...]
) -> list[Any]:
    """Return the rows of a job, from its file if there is one."""
    path = out / f"{part}-{'-'.join(map(str, arguments))}.json"
    if not path.exists():
        path.write_text(json.dumps(job(*arguments)), encoding="utf-8")
    return list(json.loads(path.read_text(encoding="utf-8")))


def estimate_figures(out: Path, draws: int, beside: int, workers: int | None) -> dict[str, Any]:
    """Measure the coverage of both estimates, of differences and of groups."""
    # where intervals are easier, fewer draws say as much
    draws_of = {n: draws if n <= 100 else draws * 2 // 5 for n in LABELS}
    jobs: list[Job] = [
        ("shares", one_share, (share, accuracy, n, draws_of[n], beside if n == 50 else 0))
        for n, accuracy, share in product(LABELS, ACCURACIES, SHARES)
    ]
    jobs += [("differences", differences, (n, draws // 5)) for n in (100, 400)]
    jobs += [("answers of questions", clustered, (n, draws // 5)) for n in (200, 500)]
    jobs.sort(key=lambda job: job[0])
    rows = rows_of_jobs(out, jobs, workers)
    shares = rows["shares"]
    summary = []
    for name in dict.fromkeys(row["estimate"] for row in shares):
        coverages = [
            row["coverage"] for row in shares if row["estimate"] == name and row["intervals"]
        ]
        inside = sum(BAND[0] <= one <= BAND[1] for one in coverages)
        mean = round(float(np.mean(coverages)), 2)
        ends = {"least": min(coverages), "most": max(coverages), "mean": mean}
        summary.append({"estimate": name, "cells": len(coverages), "in_band": inside, **ends})
    return {"draws": draws, "band": BAND, "summary": summary, **rows}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("choices", "estimates"))
    parser.add_argument(
        "--out", type=Path, required=True, help="a folder: goes on where it stopped"
    )
    parser.add_argument("--draws", type=int, help="default: 250 for choices, 1,000 for estimates")
    parser.add_argument("--beside", type=int, default=100, help="draws given to other packages")
    parser.add_argument("--workers", type=int, help="processes; default: one a core")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    command = f"python -m lab.benchmarks.corrected {options.what} --out FOLDER --write"
    if options.what == "choices":
        draws = options.draws or 250
        figures = choice_figures(options.out, draws, options.workers)
        for row in [*figures["choices"], *figures["by_fewest"]]:
            print(row)
        name, data = "corrected", "simulated: answers, judges, and labels chosen in five ways"
    else:
        figures = estimate_figures(
            options.out, options.draws or 1000, options.beside, options.workers
        )
        for row in figures["summary"]:
            print(row)
        name = "coverage-corrected"
        data = f"simulated: {ANSWERS:,} answers, judges and labels drawn at random"
    if options.write:
        print(write_result(name, command, data, figures))


if __name__ == "__main__":
    main()
