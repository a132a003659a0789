"""Isotonic regression: by hand, against scikit-learn, and its properties."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trustassay.statistics.regression import isotonic_regression

ROWS = st.lists(
    st.tuples(st.integers(0, 8), st.integers(0, 1), st.floats(0.1, 5)), min_size=1, max_size=60
)


def test_by_hand() -> None:
    # 0.2 -> 0; 0.4 -> 1 and 0.5 -> 0 fall and are pooled to 0.5; 0.9 twice: mean of 1 and 0.5
    found = isotonic_regression([0.4, 0.2, 0.5, 0.9, 0.9], [1, 0, 0, 1, 0.5])
    assert found.knots == (0.2, 0.4, 0.5, 0.9)
    assert found.values == (0, 0.5, 0.5, 0.75)
    assert found.at([0.1, 0.3, 0.45, 0.7, 2]).tolist() == pytest.approx([0, 0.25, 0.5, 0.625, 0.75])
    assert np.isnan(found.at([np.nan])[0])


def test_weights_count_like_repetitions() -> None:
    weighted = isotonic_regression([1, 2, 3], [1, 0, 1], [3, 1, 2])
    repeated = isotonic_regression([1, 1, 1, 2, 3, 3], [1, 1, 1, 0, 1, 1])
    assert weighted.knots == repeated.knots
    assert weighted.values == pytest.approx(repeated.values)


def test_long_flat_pools_keep_only_their_ends() -> None:
    found = isotonic_regression(range(10), [0] * 4 + [1] * 6)
    assert found.knots == (0, 3, 4, 9)


@settings(deadline=None)
@given(ROWS)
def test_as_scikit_learn(rows: list[tuple[int, int, float]]) -> None:
    from sklearn.isotonic import IsotonicRegression

    x, y, w = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    found = isotonic_regression(x, y, w)
    reference = IsotonicRegression(out_of_bounds="clip").fit(x, y, w)
    at = np.linspace(-1, 9, 101)
    assert found.at(at) == pytest.approx(reference.predict(at), abs=1e-9)
    assert np.all(np.diff(found.values) >= 0)
    # the mean stays, as of any projection on a cone that holds the constants
    assert w @ found.at(x) == pytest.approx(w @ y)


@pytest.mark.parametrize(
    ("scores", "labels", "weights", "message"),
    [
        ([], [], None, "1 or more"),
        ([1, 2], [1], None, "of one length"),
        ([1, np.nan], [1, 0], None, "finite"),
        ([1, 2], [1, 0], [1, 0], "above 0"),
    ],
)
def test_refused(
    scores: list[float], labels: list[float], weights: list[float] | None, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        isotonic_regression(scores, labels, weights)
