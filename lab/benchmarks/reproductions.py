"""What can be computed again of published tables: Table 1 of TrustScore (Zheng et al. 2024).

    python -m lab.benchmarks.reproductions ../shared/data/trustscore/qa_human_check.json

The file is the authors' ``qa_human_check.json`` (github.com/dannalily/TrustScore): 1,000 questions,
the answers of three systems, and a human label for each. Prints Pearson's r with the label in the
layout of the paper's table, beside the paper's value, and then for every part of ``reference`` that
asks no model four measures of agreement with bootstrap intervals. Takes some minutes. Needs
pip install '.[reference]'; METEOR is left out where WordNet is not installed.
"""

from __future__ import annotations

import argparse
import math
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trustassay import score
from trustassay.input import LocatedSample, read_samples
from trustassay.metrics import Reference
from trustassay.statistics.correlation import MEASURES, Measure, pearson
from trustassay.statistics.distributions import incomplete_beta
from trustassay.statistics.resampling import generator, percentile_interval

Floats = NDArray[np.float64]
Columns = Mapping[str, Mapping[str, Floats]]
"""By system, and by part, the values of all its answers, with the labels as ``label``."""

SYSTEMS = {"flan": "FLAN-T5", "llama": "LLaMA", "gpt": "GPT-3.5"}
NAN = None
TABLE_1: Mapping[str, tuple[str, tuple[float | None, ...]]] = {
    "em": ("Exact Match", (0.635, NAN, NAN)),
    "bleu_1": ("BLEU-1", (0.655, 0.435, 0.289)),
    "bleu_4": ("BLEU-4", (0.536, 0.376, 0.228)),
    "rouge_l": ("ROUGE-L", (0.607, 0.533, 0.382)),
    "meteor": ("METEOR", (0.603, 0.536, 0.106)),
}
"""The rows that need no model, as the paper prints them."""


def pearson_p(r: float, n: int) -> float:
    """Return the two-sided p-value of Pearson's r of n pairs: of Student's t with n - 2 degrees.

    t^2 = r^2 (n - 2) / (1 - r^2), so p = I_{1 - r^2}((n - 2) / 2, 1 / 2). With 2 pairs it is 1.
    """
    return 1.0 if n < 3 else incomplete_beta((n - 2) / 2, 0.5, 1 - r * r)


def bootstrap_interval(
    measure: Measure,
    x: ArrayLike,
    y: ArrayLike,
    rng: np.random.Generator,
    replicates: int = 1000,
    level: float = 0.95,
) -> tuple[float, float] | None:
    """Return the percentile interval of a measure over resamples of the pairs (Efron 1979).

    Resamples in which the measure is not defined are left out; ``None`` where it never is.
    """
    a, b = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    drawn = []
    for _ in range(replicates if len(a) else 0):
        picks = rng.integers(0, len(a), len(a))
        value = measure(a[picks], b[picks])
        drawn.append(math.nan if value is None else value)
    return percentile_interval(drawn, level)


def measured(file: Path, metric: Reference, folder: Path) -> Columns:
    """Return what a metric gives the answers of each system."""
    located = read_samples(file)
    samples = {one.sample.id: one.sample for one in located if isinstance(one, LocatedSample)}
    run = score(file, metrics=metric, out=folder, progress=True)
    found: dict[str, dict[str, list[float]]] = {name: {} for name in SYSTEMS}
    for assessment in run.assessments:
        sample = samples[assessment.id]
        assert assessment.error is None, assessment.error
        assert sample.model and isinstance(sample.label, float)
        for part, value in {**assessment.parts, "label": sample.label}.items():
            found[sample.model].setdefault(part, []).append(value)
    return {
        name: {part: np.array(values) for part, values in columns.items()}
        for name, columns in found.items()
    }


def show_table_1(columns: Columns) -> None:
    """Print the paper's values and ours: r, and its p."""
    print("| metric |", " | ".join(f"{name}: paper | here (p)" for name in SYSTEMS.values()), "|")
    print("| --- " * (1 + 2 * len(SYSTEMS)) + "|")
    for part, (title, printed) in TABLE_1.items():
        cells = []
        for system, value in zip(SYSTEMS, printed, strict=True):
            cells.append("NAN" if value is None else f"{value:.3f}")
            cells.append(_r_and_p(columns[system].get(part), columns[system]["label"]))
        print(f"| {title} |", " | ".join(cells), "|")
    crossed = _r_and_p(columns["gpt"].get("meteor"), columns["llama"]["label"])
    print(f"\nMETEOR of GPT-3.5's answers against the labels of LLaMA's: {crossed}")


def _r_and_p(values: Floats | None, labels: Floats) -> str:
    if values is None:
        return "no WordNet"
    r = pearson(values, labels)
    if r is None:
        return f"not defined: all {values[0]:g}"
    return f"{r:.3f} ({pearson_p(r, len(labels)):.0e})"


def show_agreement(rows: Mapping[str, Floats], labels: Floats, system: str, resamples: int) -> None:
    """Print the four measures of agreement of each part with the labels, with intervals."""
    print(f"\n**{SYSTEMS[system]}**\n")
    print("| part |", " | ".join(MEASURES), "|")
    print("| --- " * (1 + len(MEASURES)) + "|")
    for name, values in rows.items():
        cells = []
        for title, measure in MEASURES.items():
            value = measure(values, labels)
            rng = generator(0, "reproductions", system, title)
            interval = bootstrap_interval(measure, values, labels, rng, resamples)
            shown = value is not None and interval is not None
            cells.append(f"{value:.3f} [{interval[0]:.3f}, {interval[1]:.3f}]" if shown else "-")  # type: ignore[index]
        print(f"| {name} |", " | ".join(cells), "|", flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    """Score the file by both recipes and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--resamples", type=int, default=1000, help="of the bootstrap; 0 for none")
    chosen = parser.parse_args(arguments)
    if not chosen.file.is_file():
        parser.error(f"{chosen.file}: no such file; expected TrustScore's qa_human_check.json")
    with tempfile.TemporaryDirectory() as folder:
        paper = Reference(recipe="trustscore-paper")
        by_paper = measured(chosen.file, paper, Path(folder, "paper"))
        show_table_1(by_paper)
        if not chosen.resamples:
            return
        best = measured(chosen.file, Reference(), Path(folder, "best"))
        first = measured(chosen.file, Reference(aggregate="first"), Path(folder, "first"))
        for system in SYSTEMS:
            labels = best[system]["label"]
            rows = {f"`{part}`": values for part, values in best[system].items() if part != "label"}
            for part in ("token_f1", "rouge_l", "meteor"):
                if part in first[system]:
                    rows[f"`{part}`, first gold answer"] = first[system][part]
            for part in ("bleu_1", "bleu_4"):
                rows[f"`{part}`, the paper's recipe"] = by_paper[system][part]
            show_agreement(rows, labels, system, chosen.resamples)


if __name__ == "__main__":
    main()
