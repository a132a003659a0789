"""Logistic regression on several scores and folds of questions, against scikit-learn."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.benchmarks.which_metric.logistic import (
    fit_combination,
    fold_numbers,
    logistic_regression,
)
from trustassay.statistics.regression import sigmoid

NAN = float("nan")


def drawn(seed: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n).round(1)
    y = (rng.random(n) < sigmoid(2 * x - 0.5)).astype(float)
    y[:2] = 0, 1
    return x, y


def population(seed: int, n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 5, (n, d)) / 2.0  # many ties
    y = (rng.random(n) < sigmoid(x @ rng.normal(size=d) - 0.5)).astype(float)
    y[:2] = 0, 1
    return x, y


@settings(deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 10))
def test_whole_clusters_and_balanced_classes(seed: int, folds: int) -> None:
    rng = np.random.default_rng(seed)
    clusters = rng.integers(0, 150, 400)
    labels = (rng.random(400) < 0.3).astype(float)
    result = fold_numbers(clusters, labels, folds, rng)
    assert all(len(set(result[clusters == one])) == 1 for one in set(clusters.tolist()))
    assert set(result.tolist()) == set(range(folds))
    shares = [labels[result == fold].sum() / labels.sum() for fold in range(folds)]
    assert max(shares) - min(shares) < 8 / labels.sum()  # no more than about a cluster's
    sizes = np.bincount(result)
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


@pytest.mark.slow
@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10_000), st.integers(5, 200))
def test_combination_as_scikit_learn(seed: int, n: int) -> None:
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    x, y = drawn(seed, n)
    rng = np.random.default_rng(seed)
    table = np.stack([x, 100 * rng.random(n), rng.integers(0, 2, n)], axis=1)
    given = table.copy()
    given[3:, 1] = np.where(rng.random(n - 3) < 0.3, NAN, given[3:, 1])
    missing = np.isnan(given[:, 1])
    scaled = np.where(np.isnan(given), 0, StandardScaler().fit_transform(given))
    design = np.column_stack([scaled, missing]) if missing.any() else scaled
    reference = LogisticRegression(C=1, tol=1e-12, max_iter=10_000).fit(design, y)
    result = fit_combination(given, y)
    assert result.probabilities(given) == pytest.approx(
        reference.predict_proba(design)[:, 1], abs=1e-4
    )


def test_missing_scores_have_their_own_share_and_are_not_imputed() -> None:
    rng = np.random.default_rng(1)
    n = 4000
    x, y = rng.normal(size=n), (rng.random(n) < 0.5).astype(float)
    x += y  # answers with a score: it tells
    lacking = rng.random(n) < 0.4
    y[lacking] = rng.random(lacking.sum()) < 0.9  # those without are right nine times in ten
    second = rng.normal(size=n)  # says nothing
    result = fit_combination(np.stack([np.where(lacking, NAN, x), second], axis=1), y)
    assert result.probabilities([[NAN, 0.0]])[0] == pytest.approx(0.9, abs=0.02)
    assert result.probabilities([[0.5, 0.0]])[0] == pytest.approx(0.5, abs=0.04)


def test_what_the_fit_never_saw_has_no_probability() -> None:
    table = np.array([[0, 1.0], [1, NAN], [0, 0], [1, 1], [0.5, NAN]])
    result = fit_combination(table, [0, 1, 0, 1, 0])
    p = result.probabilities(np.array([[1, NAN], [NAN, 1], [NAN, NAN], [1, 1]]))
    assert np.isnan(p).tolist() == [False, True, True, False]


def test_answers_without_any_score_are_left_out_of_the_fit() -> None:
    table = np.array([[0, 1.0], [1, NAN], [0, 0], [1, 1], [0.5, NAN]])
    more = np.concatenate([table, np.full((3, 2), NAN)])
    labels = [0, 1, 0, 1, 0]
    assert fit_combination(table, labels) == fit_combination(more, [*labels, 1, 1, 1])


def test_infinite_and_absent_scores_are_refused() -> None:
    with pytest.raises(ValueError, match="finite"):
        fit_combination([[0.0], [np.inf]], [0, 1])
    with pytest.raises(ValueError, match="a value of each score"):
        fit_combination([[0.0, NAN], [1.0, NAN]], [0, 1])


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10_000), st.integers(5, 200), st.integers(1, 5), st.floats(0.01, 100))
def test_logistic_as_scikit_learn(seed: int, n: int, d: int, penalty: float) -> None:
    from sklearn.linear_model import LogisticRegression

    x, y = population(seed, n, d)
    result = logistic_regression(x, y, penalty=penalty)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says so when rounding ends its search
        reference = LogisticRegression(C=1 / penalty, tol=1e-12, max_iter=10_000).fit(x, y)
    assert result.coefficients == pytest.approx(reference.coef_[0], abs=1e-4)
    assert result.intercept == pytest.approx(float(reference.intercept_[0]), abs=1e-4)
    slope = x.T @ (sigmoid(x @ result.coefficients + result.intercept) - y)
    assert np.abs(slope + penalty * result.coefficients).max() < 1e-6 * n


def test_almost_without_penalty_as_statsmodels() -> None:
    import statsmodels.api as sm

    x, y = population(3, 400, 3)
    result = logistic_regression(x, y, penalty=1e-9)
    reference = sm.Logit(y, sm.add_constant(x)).fit(disp=0).params
    assert [result.intercept, *result.coefficients] == pytest.approx(reference.tolist(), abs=1e-6)


def test_classes_that_can_be_separated() -> None:
    result = logistic_regression([[-1.0], [-1.0], [1.0], [1.0]], [0, 0, 1, 1])
    # by symmetry a = 0, and b solves 4 (1 - sigmoid(b)) = b
    assert result.intercept == pytest.approx(0, abs=1e-9)
    b = result.coefficients[0]
    assert 4 * (1 - sigmoid(b)) == pytest.approx(b)
    tiny = logistic_regression([[-1.0], [1.0]], [0, 1], penalty=1e-6)
    assert np.isfinite(tiny.coefficients).all()


def test_a_table_without_columns_gives_the_share() -> None:
    result = logistic_regression(np.empty((4, 0)), [1, 1, 1, 0])
    assert sigmoid(result.intercept) == pytest.approx(0.75)


@pytest.mark.parametrize(
    ("table", "labels", "options", "message"),
    [
        ([[1.0], [2.0]], [1, 1], {}, "both classes"),
        ([[1.0], [2.0]], [0, 0.5], {}, "0 and 1"),
        ([[1.0], [np.nan]], [0, 1], {}, "finite"),
        ([1.0, 2.0], [0, 1], {}, "a table"),
        ([[1.0], [2.0]], [0, 1], {"penalty": 0}, "penalty"),
        (np.empty((0, 1)), [], {}, "both classes"),
    ],
)
def test_logistic_refused(
    table: object, labels: list[float], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        logistic_regression(table, labels, **options)  # type: ignore[arg-type]
