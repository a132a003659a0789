"""Logistic regression: against scikit-learn and statsmodels, and its first-order condition."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trustassay.statistics.regression import logistic_regression, sigmoid


def population(seed: int, n: int, d: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 5, (n, d)) / 2.0  # many ties
    y = (rng.random(n) < sigmoid(x @ rng.normal(size=d) - 0.5)).astype(float)
    y[:2] = 0, 1
    return x, y, rng.uniform(0.2, 3, n)


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10_000), st.integers(5, 200), st.integers(1, 5), st.floats(0.01, 100))
def test_as_scikit_learn(seed: int, n: int, d: int, penalty: float) -> None:
    from sklearn.linear_model import LogisticRegression

    x, y, w = population(seed, n, d)
    found = logistic_regression(x, y, weights=w, penalty=penalty)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says so when rounding ends its search
        reference = LogisticRegression(C=1 / penalty, tol=1e-12, max_iter=10_000).fit(x, y, w)
    assert found.coefficients == pytest.approx(reference.coef_[0], abs=1e-4)
    assert found.intercept == pytest.approx(float(reference.intercept_[0]), abs=1e-4)
    slope = x.T @ (w * (sigmoid(x @ found.coefficients + found.intercept) - y))
    assert np.abs(slope + penalty * found.coefficients).max() < 1e-6 * w.sum()


def test_almost_without_penalty_as_statsmodels() -> None:
    import statsmodels.api as sm

    x, y, _ = population(3, 400, 3)
    found = logistic_regression(x, y, penalty=1e-9)
    reference = sm.Logit(y, sm.add_constant(x)).fit(disp=0).params
    assert [found.intercept, *found.coefficients] == pytest.approx(reference.tolist(), abs=1e-6)


def test_classes_that_can_be_separated() -> None:
    found = logistic_regression([[-1.0], [-1.0], [1.0], [1.0]], [0, 0, 1, 1])
    # by symmetry a = 0, and b solves 4 (1 - sigmoid(b)) = b
    assert found.intercept == pytest.approx(0, abs=1e-9)
    b = found.coefficients[0]
    assert 4 * (1 - sigmoid(b)) == pytest.approx(b)
    tiny = logistic_regression([[-1.0], [1.0]], [0, 1], penalty=1e-6)
    assert np.isfinite(tiny.coefficients).all()


def test_a_table_without_columns_gives_the_share() -> None:
    found = logistic_regression(np.empty((4, 0)), [1, 1, 1, 0])
    assert sigmoid(found.intercept) == pytest.approx(0.75)


def test_sigmoid_does_not_overflow() -> None:
    assert sigmoid([-1e4, 0, 1e4]).tolist() == [0, 0.5, 1]


@pytest.mark.parametrize(
    ("table", "labels", "options", "message"),
    [
        ([[1.0], [2.0]], [1, 1], {}, "both classes"),
        ([[1.0], [2.0]], [0, 0.5], {}, "0 and 1"),
        ([[1.0], [np.nan]], [0, 1], {}, "finite"),
        ([1.0, 2.0], [0, 1], {}, "a table"),
        ([[1.0], [2.0]], [0, 1], {"penalty": 0}, "penalty"),
        ([[1.0], [2.0]], [0, 1], {"weights": [1, -1]}, "above 0"),
        (np.empty((0, 1)), [], {}, "both classes"),
    ],
)
def test_refused(table: object, labels: list[float], options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        logistic_regression(table, labels, **options)  # type: ignore[arg-type]
