"""Calibration error and balanced accuracy: by hand, against scikit-learn, and their bounds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trustassay.statistics.calibration import (
    balanced_accuracy,
    balanced_accuracy_interval,
    calibration_error,
)
from trustassay.statistics.regression import sigmoid

CHANCES = [0.9, 0.6, 0.6, 0.2]
TRUTH = [True, True, False, False]
PAIRS = st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=40)


def test_calibration_error_by_hand() -> None:
    # two bins: 0.2 against 0 of 1; 0.9 + 0.6 + 0.6 against 2 of 3: (0.2 + 0.1) / 4
    assert calibration_error(CHANCES, TRUTH, bins=2) == pytest.approx((0.2 + 0.1) / 4)
    assert calibration_error([1.0, 0.0], [True, False]) == 0
    assert calibration_error([1.0, 0.0], [False, True]) == 1
    assert calibration_error([], []) is None


def test_balanced_accuracy_by_hand() -> None:
    # both supported reach 0.5, one of the two others does not
    assert balanced_accuracy(CHANCES, TRUTH) == 0.75
    assert balanced_accuracy(CHANCES, TRUTH, 0.6) == 0.75
    assert balanced_accuracy(CHANCES, TRUTH, 0.7) == 0.75
    assert balanced_accuracy([0.3], [True]) is None
    assert balanced_accuracy([], []) is None


@settings(deadline=None)
@given(PAIRS)
def test_bounds_and_scikit_learn(rows: list[tuple[float, bool]]) -> None:
    chances, truth = np.array([c for c, _ in rows]), np.array([t for _, t in rows])
    from sklearn.metrics import balanced_accuracy_score

    error = calibration_error(chances, truth)
    assert error is not None
    assert abs(chances.mean() - truth.mean()) - 1e-9 <= error <= 1 + 1e-9
    found = balanced_accuracy(chances, truth)
    if truth.any() and not truth.all():
        assert found == pytest.approx(balanced_accuracy_score(truth, chances >= 0.5))
    else:
        assert found is None


def test_the_interval_of_a_balanced_accuracy_is_of_both_classes_and_of_units() -> None:
    true = np.tile([1, 1, 0, 0], 40)
    said = np.where(np.arange(160) % 7 == 0, 1 - true, true).astype(float)
    one_by_one = np.full(160, -1)
    alone = balanced_accuracy_interval(said, true, one_by_one)
    together = balanced_accuracy_interval(said, true, np.arange(160) // 4)
    assert alone and together
    value = balanced_accuracy(said, true)
    assert value is not None and alone[0] < value < alone[1] <= 1
    assert alone != together
    assert balanced_accuracy_interval(said, true, np.arange(160) // 10) is None  # 16 units
    assert balanced_accuracy_interval(said[:80], true[:80], one_by_one[:80]) is not None
    assert balanced_accuracy_interval(said[:38], true[:38], one_by_one[:38]) is None
    assert balanced_accuracy_interval(said, np.ones(160), one_by_one) is None
    sure = balanced_accuracy_interval(true.astype(float), true, one_by_one)
    assert sure is not None and sure[0] < 1 == sure[1]


NAN = np.nan


def drawn(seed: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n).round(1)
    y = (rng.random(n) < sigmoid(2 * x - 0.5)).astype(float)
    y[:2] = 0, 1
    return x, y
