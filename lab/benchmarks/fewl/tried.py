"""Other ways to weigh references on TrustScore's set, by the similarity ``novel``, no penalty.

Dawid and Skene (1979) for raters who choose among classes: two answers are of one class where
their similarity is at least 0.5, a rater is right with its own probability, and wrong ones are of
one of M other classes. The probabilities are found by expectation maximisation, without labels.
"""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lab.benchmarks.fewl.figures import Floats, Systems
from lab.benchmarks.fewl.measuring import Variant
from lab.benchmarks.fewl.sets import SYSTEMS
from lab.benchmarks.fewl.tables import OURS_SIMILARITY, cells, measured_set, row
from trustassay.backends.similarity import compute_novel_agreement

SAME = 0.5
OTHERS = 10
"""Classes of wrong answers."""
STEPS = 100


def show(work: Path) -> None:
    """Print the figures of each way beside those of equal weights and of ours."""
    records, numbers = measured_set("trustscore", OURS_SIMILARITY, work)
    judge = Systems(records)
    rows = [records[i : i + len(SYSTEMS)] for i in range(0, len(records), len(SYSTEMS))]
    alike = np.ones((len(rows), len(SYSTEMS), len(SYSTEMS)))
    for number, answers in enumerate(rows):
        for i, j in combinations(range(len(SYSTEMS)), 2):
            texts = (answers[i]["response"], answers[j]["response"], answers[i]["question"])
            alike[number, i, j] = alike[number, j, i] = compute_novel_agreement(*texts)
    accuracy, right = dawid_skene(alike >= SAME)
    print(f"right with probability {dict(zip(SYSTEMS, accuracy.round(3).tolist(), strict=True))}")
    odds = accuracy * OTHERS / (1 - accuracy)
    weights = np.where(np.eye(len(SYSTEMS), dtype=bool), 0.0, np.log(odds))
    weighted = np.einsum("nij,ij->ni", alike, weights / weights.sum(axis=1, keepdims=True))
    row(["", *judge.columns, "within source"])
    row(["---"] * (len(judge.columns) + 2))
    for name, scores in (
        ("equal weights", numbers.scores(Variant("agreement", penalty=False))),
        ("weights by one factor", numbers.scores(Variant("agreement", "agreement", penalty=False))),
        ("weights by the log odds of Dawid and Skene", weighted.ravel()),
        ("probability of being right by Dawid and Skene", right.ravel()),
    ):
        row([name, *cells(judge, scores)])


def dawid_skene(same: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Return each rater's probability of being right, and that of each answer, shape (n, R).

    Args:
        same: whether the answers of two raters to a question are of one class, shape (n, R, R).

    A rater's class holds those that say the same as it. The right class is that of one of the
    raters, or none of theirs.
    """
    _, raters, _ = same.shape
    sizes = same.sum(axis=2)
    accuracy = np.full(raters, 0.6)
    for _ in range(STEPS):
        says, says_not = np.log(accuracy), np.log((1 - accuracy) / OTHERS)
        logs = np.where(same, says, says_not).sum(axis=2)  # if the class of i is the right one
        # Each class counts once, though one of two raters appears twice; the right one may be any
        # of those that nobody named.
        logs = logs - np.log(sizes)
        nobody = says_not.sum() + np.log(OTHERS + 1 - (1 / sizes).sum(axis=1, keepdims=True))
        together = np.hstack([logs, nobody])
        shares = np.exp(together - together.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
        right = np.einsum("nj,nij->ni", shares[:, :raters], same)
        accuracy = np.clip(right.mean(axis=0), 0.01, 0.99)
    return accuracy, right
