"""ROC and what is kept: against scikit-learn, and by hand."""

from __future__ import annotations

import numpy as np
import pytest

from tests.lazily import needed
from trustassay.statistics.calibration import calibration_error, reliability_bins
from trustassay.statistics.curves import kept_means, roc_curve

metrics = needed("sklearn.metrics")


def test_roc_is_scikit_learns() -> None:
    rng = np.random.default_rng(0)
    scores = rng.integers(0, 6, 80).astype(float)
    labels = (scores + rng.normal(0, 3, 80) > 3).astype(float)
    found = roc_curve(scores, labels)
    expected = metrics.roc_curve(labels, scores, drop_intermediate=False)
    assert found[0] == pytest.approx(expected[0])
    assert found[1] == pytest.approx(expected[1])
    with pytest.raises(ValueError, match="both classes"):
        roc_curve([1, 2], [1, 1])


def test_kept_means_by_hand() -> None:
    # The first alone, then two that tie with a mean of 1/2, one by one.
    assert kept_means([3, 2, 2], [1, 0, 1]).tolist() == pytest.approx([1, 0.75, 2 / 3])


def test_reliability_bins_make_up_the_calibration_error() -> None:
    rng = np.random.default_rng(0)
    chances = np.append(rng.random(60), 1.0)
    truth = rng.random(61) < chances
    bins = reliability_bins(chances, truth)
    assert sum(one.n for one in bins) == 61
    error = sum(one.n * abs(one.chance - one.true) for one in bins) / 61
    assert error == pytest.approx(calibration_error(chances, truth))
