"""How often the intervals of corrected shares hold the true share.

    python -m benchmarks.corrected --out FOLDER            # ten minutes or so of one core
    python -m benchmarks.corrected --out FOLDER --write    # into benchmarks/results/

2,000 answers, of which a judge calls some good: right answers with the probability ``accuracy``,
wrong ones with its complement. 50 to 500 have labels: a random sample of them (prediction-powered),
or of an earlier run in which half of the answers were right (Rogan-Gladen). Also differences of two
runs, paired and not, whose judges err otherwise; groups of answers to a question; and what one
judge's errors, pooled, make of two groups. Beside them, on the first draws of each cell, glide-py
and truescore, if they can be imported (``pip install --target FOLDER glide-py truescore``).
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.results import write_result
from trustassay.statistics.corrected import (
    Rate,
    difference_of_rates,
    error_bounds,
    prediction_powered,
    rogan_gladen,
    strata_bounds,
    strata_of,
)

Array = NDArray[Any]
ANSWERS = 2000
ACCURACIES = (0.6, 0.7, 0.8, 0.9, 0.95)
SHARES = (0.05, 0.2, 0.5, 0.95)
LABELS = (50, 100, 200, 500)
BAND = (93.0, 97.5)
AT_ONCE = 50


def held(bounds: Sequence[tuple[float, float] | None], truth: float) -> dict[str, float]:
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


def drawn(
    rng: np.random.Generator, share: float, se: float, sp: float, shape: tuple[int, ...]
) -> tuple[Array, Array]:
    """Return which answers are right, and which are called good."""
    right = rng.random(shape) < share
    return right, rng.random(shape) < np.where(right, se, 1 - sp)


def one_share(share: float, accuracy: float, labels: int, draws: int, beside: int) -> list[Any]:
    """Return the coverage of a share by both estimates, and of others on the first draws."""
    rng = np.random.default_rng([int(100 * share), int(100 * accuracy), labels])
    right, good = drawn(rng, share, accuracy, accuracy, (draws, ANSWERS))
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
    before, called = drawn(rng, 0.5, accuracy, accuracy, (draws, labels))
    errors = []
    for row in range(draws):
        parts = (good[row], called[row][before[row]], called[row][~before[row]])
        errors.append(error_bounds(np.array([(p.sum(), (~p).sum()) for p in parts], float), rng))
    rows = [
        {"estimate": "prediction-powered", **held([tuple(one) for one in powered], share)},
        {"estimate": "Rogan-Gladen", **held(errors, share)},
    ]
    for name, estimate in others().items() if beside else ():
        found = [estimate(right[row], good[row], labels) for row in range(min(beside, draws))]
        rows.append({"estimate": name, **held(found, share)})
        ours = [tuple(one) for one in powered[: len(found)]]
        rows[-1]["ours_on_these"] = held(ours, share)["coverage"]
    return [{"share": share, "accuracy": accuracy, "labels": labels, **one} for one in rows]


Estimate = Callable[[Array, Array, int], "tuple[float, float] | None"]


def others() -> dict[str, Estimate]:
    """Return the estimates of other packages that can be imported; ``None``: they give none."""
    found: dict[str, Estimate] = {}
    with suppress(ImportError):
        estimators = import_module("glide.estimators")

        def glide(right: Array, good: Array, n: int) -> tuple[float, float] | None:
            y = np.where(np.arange(len(right)) < n, right, np.nan).astype(float)
            try:
                told = estimators.PPIMeanEstimator().estimate(y, good.astype(float))
            except ValueError:
                return None
            return told.confidence_interval.lower_bound, told.confidence_interval.upper_bound

        found["glide-py: PPIMeanEstimator"] = glide
    try:
        correct = import_module("truescore.correct")
    except ImportError:
        return found
    for method in ("ppi_estimate", "rogan_gladen_estimate"):

        def told(
            right: Array, good: Array, n: int, method: str = method
        ) -> tuple[float, float] | None:
            try:
                one = getattr(correct, method)(
                    good.astype(int), right[:n].astype(int), np.arange(n)
                )
            except ValueError:
                return None
            return one.low, one.high

        found[f"truescore: {method}"] = told
    return found


def powered(right: Array, good: Array, labelled: Array, units: Array, rng: Any) -> Rate:
    labels = np.where(labelled, right, np.nan).astype(float)
    return prediction_powered(strata_of(good.astype(float)), labels, units, rng)


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
        found: dict[str, list[Any]] = {"own labels": [], "Rogan-Gladen, own errors": []}
        pooled: list[Any] = []
        for _ in range(draws):
            hard = rng.random(half)
            sides, errors = [], []
            for number, (share, se, sp) in enumerate((first, second)):
                own = hard if paired else rng.random(half)
                # of a pair both are right or wrong together as often as not
                own = np.where(rng.random(half) < 0.5, own, rng.random(half))
                right = own < share
                good = rng.random(half) < np.where(right, se, 1 - sp)
                units = np.arange(half) + (0 if paired else number * half)
                labelled = np.arange(half) < labels // 2
                sides.append(powered(right, good, labelled, units, rng))
                known, called = drawn(rng, 0.5, se, sp, (labels // 2,))
                errors.append(
                    (good, units, (called, known, -1 - np.arange(labels // 2) - number * half))
                )
            found["own labels"].append(difference_of_rates(*sides)[1])
            found["Rogan-Gladen, own errors"].append(
                difference_of_rates(*(rogan_gladen(*one, rng) for one in errors))[1]
            )
            both = tuple(np.concatenate([one[2][part] for one in errors]) for part in range(3))
            same = [rogan_gladen(good, units, both, rng) for good, units, _ in errors]  # type: ignore[arg-type]
            pooled.append(difference_of_rates(*same)[1])
        found["Rogan-Gladen, pooled errors (not offered)"] = pooled
        truth = second[0] - first[0]
        for estimate, bounds in found.items():
            case = {"first": first, "second": second, "labels": labels, "estimate": estimate}
            rows.append({"case": name, **case, **held(bounds, truth)})
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
            rows.append({"share": share, "labels": labels, "estimate": name, **held(one, share)})
    return rows


def kept(out: Path, part: str, made: Callable[..., list[Any]], given: tuple[Any, ...]) -> list[Any]:
    """Return the rows of a job, from its file if there is one."""
    path = out / f"{part}-{'-'.join(map(str, given))}.json"
    if not path.exists():
        path.write_text(json.dumps(made(*given)), encoding="utf-8")
    return list(json.loads(path.read_text(encoding="utf-8")))


def figures_of(out: Path, draws: int, beside: int, workers: int | None) -> dict[str, Any]:
    """Measure everything."""
    # where intervals are easier, fewer draws say as much
    drawn = {n: draws if n <= 100 else draws * 2 // 5 for n in LABELS}
    jobs: list[tuple[str, Callable[..., list[Any]], tuple[Any, ...]]] = [
        ("shares", one_share, (share, accuracy, n, drawn[n], beside if n == 50 else 0))
        for n, accuracy, share in product(LABELS, ACCURACIES, SHARES)
    ]
    jobs += [("differences", differences, (n, draws // 5)) for n in (100, 400)]
    jobs += [("answers of questions", clustered, (n, draws // 5)) for n in (200, 500)]
    rows: dict[str, list[Any]] = {}
    with ProcessPoolExecutor(workers) as pool:
        jobs.sort(key=lambda job: job[0])
        waiting = [(part, pool.submit(kept, out, part, made, given)) for part, made, given in jobs]
        for part, one in waiting:
            rows.setdefault(part, []).extend(one.result())
            print(part, len(rows[part]), list(rows[part][-1].values()), flush=True)
    shares = rows["shares"]
    summary = []
    for name in dict.fromkeys(row["estimate"] for row in shares):
        own = [row["coverage"] for row in shares if row["estimate"] == name and row["intervals"]]
        inside = sum(BAND[0] <= one <= BAND[1] for one in own)
        ends = {"least": min(own), "most": max(own), "mean": round(float(np.mean(own)), 2)}
        summary.append({"estimate": name, "cells": len(own), "in_band": inside, **ends})
    return {"draws": draws, "band": BAND, "summary": summary, **rows}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--out", type=Path, required=True, help="a folder: goes on where it stopped"
    )
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--beside", type=int, default=100, help="draws given to other packages")
    parser.add_argument("--workers", type=int, help="processes; default: one a core")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    figures = figures_of(options.out, options.draws, options.beside, options.workers)
    for row in figures["summary"]:
        print(row)
    if options.write:
        data = f"simulated: {ANSWERS:,} answers, judges and labels drawn at random"
        print(
            write_result(
                "coverage-corrected",
                "python -m benchmarks.corrected --out FOLDER --write",
                data,
                figures,
            )
        )


if __name__ == "__main__":
    main()
