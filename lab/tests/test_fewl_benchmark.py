"""What ``lab.benchmarks.fewl`` computes by itself: figures over counted questions, and the
variants."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lab.benchmarks.fewl import measuring
from lab.benchmarks.fewl.figures import Pairs, half, weighted_auroc
from lab.benchmarks.fewl.measuring import Variant, measured
from lab.benchmarks.fewl.tried import dawid_skene
from trustassay.statistics.correlation import auroc

TOWNS = {"Rome": "Alba", "Oslo": "Bruno", "Bern": "Clio", "Graz": "Dario"}
RECORDS = [
    {
        "id": f"{number}-{kind}",
        "question": f"Who built lamp {number} of {town}?",
        "response": response,
        "references": {"one": f"The smith {smith}.", "two": "" if number == 2 else "Nobody."},
        "wrong_answers": ["Nobody."],
        "corrected_answers": [f"A smith built it in {town}."],
        "number": number,
        "kind": kind,
    }
    for number, (town, smith) in enumerate(TOWNS.items())
    for kind, response in (("right", f"Some smith, {smith}"), ("wrong", "Nobody at all"))
]


def test_a_counted_auroc_is_that_of_samples_repeated() -> None:
    rng = np.random.default_rng(0)
    scores = rng.integers(0, 6, 30).astype(float)
    labels = rng.integers(0, 2, 30).astype(bool)
    counts = rng.integers(0, 4, (5, 30)).astype(float)
    for row, found in zip(counts, weighted_auroc(scores, labels, counts), strict=True):
        again = row.astype(int)
        expected = auroc(np.repeat(scores, again), np.repeat(labels, again))
        assert found == pytest.approx(expected, abs=1e-12)
    one_kind = weighted_auroc(scores, np.ones(30, dtype=bool), counts)
    assert one_kind.tolist() == [0.5] * 5


def test_a_tie_counts_half_or_not_at_all_and_an_answer_without_a_score_comes_last() -> None:
    pairs = Pairs(RECORDS)
    scores = np.array([1.0, 0.0, 1.0, 1.0, 0.0, np.nan, np.nan, 0.0])
    assert pairs.measure(scores, np.ones((1, 4))).tolist() == [[62.5]]
    assert pairs.measure(scores, np.ones((1, 4)), tie=0.0).tolist() == [[50.0]]
    assert pairs.measure(scores, half(4, 1)).tolist() == [[25.0]]


def test_variants_are_what_the_metric_returns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``measured`` itself compares them, with one reference that is silent once."""
    ways = ("agreement", "ours", "single-best")
    found = measured(RECORDS, "novel", ways, tmp_path)
    assert found.present.sum(axis=1).tolist() == [2, 2, 2, 2, 1, 1, 2, 2]
    assert (found.scores(Variant("agreement"))[::2] > 0).all()
    away = measuring.Measured.scores
    monkeypatch.setattr(
        measuring.Measured, "scores", lambda self, variant: away(self, variant) + 1e-4
    )
    (tmp_path / "numbers.npz").unlink()
    with pytest.raises(SystemExit, match="the metric's scores are up to"):
        measured(RECORDS, "novel", ways, tmp_path)


def test_dawid_and_skene_find_who_is_right() -> None:
    """Three raters of known accuracy; wrong ones give one of ten other answers."""
    rng = np.random.default_rng(0)
    accuracy = np.array([0.9, 0.7, 0.4])
    right = rng.random((4000, 3)) < accuracy
    said = np.where(right, 0, rng.integers(1, 11, right.shape))
    found, probability = dawid_skene(said[:, :, None] == said[:, None, :])
    assert found == pytest.approx(accuracy, abs=0.05)
    assert probability[right].mean() > 0.85
    assert probability[~right].mean() < 0.3
