"""Folds hold whole clusters and both classes, and predictions come from the other folds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trustassay.statistics.calibration import fold_numbers, out_of_fold


@settings(deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 10))
def test_whole_clusters_and_balanced_classes(seed: int, folds: int) -> None:
    rng = np.random.default_rng(seed)
    clusters = rng.integers(0, 150, 400)
    labels = (rng.random(400) < 0.3).astype(float)
    found = fold_numbers(clusters, labels, folds, rng)
    assert all(len(set(found[clusters == one])) == 1 for one in set(clusters.tolist()))
    assert set(found.tolist()) == set(range(folds))
    shares = [labels[found == fold].sum() / labels.sum() for fold in range(folds)]
    assert max(shares) - min(shares) < 8 / labels.sum()  # no more than about a cluster's
    sizes = np.bincount(found)
    assert sizes.max() - sizes.min() < 25


def test_another_order_of_the_rows_is_another_seed_and_the_same_seed_the_same_folds() -> None:
    clusters, labels = np.arange(40), np.arange(40) % 2
    first, again, other = (
        fold_numbers(clusters, labels, 4, np.random.default_rng(seed)) for seed in (1, 1, 2)
    )
    assert first.tolist() == again.tolist() != other.tolist()


def test_refused_where_a_fold_would_miss_a_class() -> None:
    with pytest.raises(ValueError, match="2 to 3 folds"):
        fold_numbers(range(10), [1, 1, 1, *[0] * 7], 4, np.random.default_rng(0))
    with pytest.raises(ValueError, match="got 1"):
        fold_numbers(range(10), [1, 0] * 5, 1, np.random.default_rng(0))


def test_predictions_come_from_the_other_folds() -> None:
    labels, folds = np.array([1.0, 0, 1, 1, 0, 0]), [0, 0, 1, 1, 2, 2]

    def fit(x: np.ndarray, y: np.ndarray, clusters: np.ndarray):  # type: ignore[no-untyped-def]
        return lambda table: np.full(len(table), y.mean() + 10 * len(clusters))

    found = out_of_fold(fit, np.zeros((6, 2)), labels, range(6), folds)
    assert found.tolist() == [40.5, 40.5, 40.25, 40.25, 40.75, 40.75]
