"""Replies that ``uncertainty:samples=auto`` asks for, and verdicts that it changes.

    python -m lab.benchmarks.uncertainty_auto --out FOLDER                 # two minutes; goes on
    python -m lab.benchmarks.uncertainty_auto --out FOLDER --passages 119  # all, five minutes

Simulated: values of replies with a known mean, each 0 or 1 (a reply agrees, or it does not) or from
a beta distribution with most of its weight near both ends. Of each mean: the replies asked for, the
calls saved, the share of answers for which all were asked, and the share whose verdict is not that
of all ``most`` replies, which the promise bounds by 1 - confidence. Beside it, without a promise,
the share on the other side of the line than the true mean: of ``auto``, and of always asking all.
``of the expected score``: the other promise that could be made, that the verdict is that of
infinitely many replies: what it would ask for, and leave open at ``most``.

Real: biographies of ``selfcheck-wikibio`` (the shared data), ten replies each, read with the
included entailer; in the order of the file, and in 200 random orders of the same replies. Writes
``results/uncertainty-auto.json``.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab.benchmarks.uncertainty import record
from lab.benchmarks.which_metric.sets import lines
from lab.results import write_result
from trustassay import score
from trustassay.metrics.uncertainty import Uncertainty
from trustassay.statistics.resampling import generator
from trustassay.statistics.sequential import decide_sides

Floats = NDArray[np.float64]
DEFAULTS = Uncertainty(samples="auto")
CONFIDENCE, LEAST = DEFAULTS.confidence, DEFAULTS.least
LINES = (0.5, 0.3)
MOST = (10, 20)
MEANS = (0.02, 0.1, 0.2, 0.3, 0.4, 0.45, 0.49, 0.51, 0.55, 0.6, 0.7, 0.8, 0.9, 0.98)
ENDLESS = 10**9
"""As many replies as that are drawn as if each were put back: their mean is the expected score."""


def stops(values: Floats, line: float, total: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return after how many values each row is decided, all where none, and its side or 0."""
    told = decide_sides(values, line, total, CONFIDENCE)
    told[:, : LEAST - 1] = 0
    place = np.where(told.any(axis=1), (told != 0).argmax(axis=1), values.shape[1] - 1)
    return place + 1, told[np.arange(len(told)), place]


def figures_of(values: Floats, line: float, mean: float | None = None) -> dict[str, Any]:
    """Return what is asked for and what it changes, of rows of ``most`` values each."""
    most = values.shape[1]
    asked, _ = stops(values, line, most)
    known = np.arange(1, most + 1) <= asked[:, None]
    side = (values * known).sum(axis=1) >= asked * line - 1e-9  # as the metric: its own mean
    of_all = values.sum(axis=1) >= most * line - 1e-9
    result: dict[str, Any] = {
        "asked": round(float(asked.mean()), 2),
        "saved": round(100 * float(1 - asked.mean() / most), 1),
        "all asked": round(100 * float((asked == most).mean()), 1),
        "changed": round(100 * float((side != of_all).mean()), 2),
    }
    if mean is not None:
        expected, told = stops(values, line, ENDLESS)
        result |= {
            "other side than the mean": round(100 * float((side != (mean >= line)).mean()), 2),
            "the same of all": round(100 * float((of_all != (mean >= line)).mean()), 2),
            "of the expected score": {
                "asked": round(float(expected.mean()), 2),
                "open": round(100 * float((told == 0).mean()), 1),
                "wrong": round(100 * float((told == (-1 if mean >= line else 1)).mean()), 2),
            },
        }
    return result


def drawn(kind: str, mean: float, runs: int, most: int) -> Floats:
    rng = generator(0, "uncertainty-auto", kind, str(mean), str(most))
    if kind == "0 or 1":
        return (rng.random((runs, most)) < mean).astype(np.float64)
    return rng.beta(mean / 2, (1 - mean) / 2, (runs, most))


def simulated(runs: int) -> dict[str, Any]:
    """Return the figures by line, most, kind of values and their mean, and the worst of all."""
    result: dict[str, Any] = {}
    worst = 0.0
    for line in LINES:
        for most in MOST:
            for kind in ("0 or 1", "beta"):
                own = {m: figures_of(drawn(kind, m, runs, most), line, m) for m in MEANS}
                worst = max(worst, *(one["changed"] for one in own.values()))
                for mean, one in own.items():
                    place = result.setdefault(str(line), {}).setdefault(str(most), {})
                    place.setdefault(kind, {})[str(mean)] = one
    return {"runs": runs, "most changed": worst, "by line": result}


def values_of(out: Path, count: int) -> Floats:
    """Return the score of each reply alone, shape (passages, 10)."""
    rows = list(lines("selfcheck-wikibio/passages"))[:count]
    samples = [
        {**record(row, place, 10), "id": f"{place}-{number}", "resamples": [reply, reply]}
        for place, row in enumerate(rows)
        for number, reply in enumerate(row["sample_passages"][:10])
    ]
    run = score(
        samples,
        metrics=[Uncertainty(parts="selfcheck_nli")],
        out=out / f"replies-{count}",
        report=False,
        progress=True,
    )
    scores = {one.id: one.score for one in run.assessments}
    return np.array([[scores[f"{i}-{j}"] for j in range(10)] for i in range(len(rows))])


def replayed(values: Floats, orders: int = 200) -> dict[str, Any]:
    """Return the figures of real replies, in their order and in random ones."""
    rng = generator(0, "uncertainty-auto", "orders")
    shuffled = np.concatenate([rng.permuted(values, axis=1) for _ in range(orders)])
    return {
        "passages": len(values),
        "by line": {
            str(line): {
                "doubtful": round(100 * float((values.mean(axis=1) >= line).mean()), 1),
                "in their order": figures_of(values, line),
                "in random orders": figures_of(shuffled, line),
            }
            for line in (0.5, 0.7, 0.8)
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--passages", type=int, default=40)
    parser.add_argument("--runs", type=int, default=20_000)
    options = parser.parse_args()
    figures = {
        "confidence": CONFIDENCE,
        "least": LEAST,
        "simulated": simulated(options.runs),
        "wikibio": replayed(values_of(options.out, options.passages)),
    }
    command = (
        f"python -m lab.benchmarks.uncertainty_auto --out FOLDER --passages {options.passages}"
    )
    data = (
        f"simulated replies; the first {options.passages} of 119 passages about people by GPT-3, "
        "ten other replies each"
    )
    write_result("uncertainty-auto", command, data, figures)
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
