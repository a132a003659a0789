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
    choose_method,
    fit_combination,
    fit_isotonic,
    fit_logistic,
    fold_numbers,
    mean_log_loss,
    out_of_fold,
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


NAN = np.nan


def drawn(seed: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n).round(1)
    y = (rng.random(n) < sigmoid(2 * x - 0.5)).astype(float)
    y[:2] = 0, 1
    return x, y


def test_isotonic_by_hand_never_gives_0_or_1() -> None:
    # lowest: three wrong and the added right one; highest: two right and the added wrong one
    found = fit_isotonic([0, 0, 0, 1, 1], [0, 0, 0, 1, 1])
    assert found.at([0, 1]).tolist() == pytest.approx([1 / 4, 2 / 3])


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10_000), st.integers(5, 200))
def test_isotonic_as_scikit_learn_with_the_two_added(seed: int, n: int) -> None:
    from sklearn.isotonic import IsotonicRegression

    x, y = drawn(seed, n)
    found = fit_isotonic(x, y)
    added = [*x, x.min(), x.max()], [*y, 1, 0]
    reference = IsotonicRegression(out_of_bounds="clip").fit(*added)
    assert found.at(x) == pytest.approx(reference.predict(x), abs=1e-9)
    assert 0 < found.at(x).min() <= found.at(x).max() < 1


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
    found = fit_combination(given, y)
    assert found.probabilities(given) == pytest.approx(
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
    found = fit_combination(np.stack([np.where(lacking, NAN, x), second], axis=1), y)
    assert found.probabilities([[NAN, 0.0]])[0] == pytest.approx(0.9, abs=0.02)
    assert found.probabilities([[0.5, 0.0]])[0] == pytest.approx(0.5, abs=0.04)


def test_what_the_fit_never_saw_has_no_probability() -> None:
    table = np.array([[0, 1.0], [1, NAN], [0, 0], [1, 1], [0.5, NAN]])
    found = fit_combination(table, [0, 1, 0, 1, 0])
    p = found.probabilities(np.array([[1, NAN], [NAN, 1], [NAN, NAN], [1, 1]]))
    assert np.isnan(p).tolist() == [False, True, True, False]


def test_answers_without_any_score_are_left_out_of_the_fit() -> None:
    table = np.array([[0, 1.0], [1, NAN], [0, 0], [1, 1], [0.5, NAN]])
    more = np.concatenate([table, np.full((3, 2), NAN)])
    labels = [0, 1, 0, 1, 0]
    assert fit_combination(table, labels) == fit_combination(more, [*labels, 1, 1, 1])


def test_logistic_does_not_fall() -> None:
    x, y = drawn(0, 100)
    assert fit_logistic(x, y).terms[0].coefficient > 0
    fallen = fit_logistic(-x, y)
    assert fallen.probabilities([-5, 5]).tolist() == pytest.approx([y.mean(), y.mean()])


def test_a_constant_score_gives_the_share_of_right_answers() -> None:
    labels = [1, 1, 1, 0]
    assert fit_logistic([2.0] * 4, labels).probabilities([2, 7])[0] == pytest.approx(0.75)
    assert fit_isotonic([2.0] * 4, labels).at([2])[0] == pytest.approx(4 / 6)


def test_the_method_is_chosen_by_what_fits() -> None:
    rng = np.random.default_rng(5)
    x = rng.random(3000)
    steps = np.where(x < 0.3, 0.1, np.where(x < 0.32, 0.5, 0.55))
    curve = sigmoid(3 * x - 1)
    for truth, method in ((steps, "isotonic"), (curve, "logistic")):
        y = (rng.random(3000) < truth).astype(float)
        found = choose_method(x, y, np.arange(3000), rng)
        assert found.method == method
        assert found.losses[method] == min(found.losses.values())


def test_with_one_cluster_of_a_class_it_is_logistic() -> None:
    found = choose_method([0, 1, 1, 2], [0, 0, 1, 1], [0, 1, 2, 2], np.random.default_rng(0))
    assert found == ("logistic", {})


def test_log_loss() -> None:
    assert mean_log_loss([0.5, 0.25], [1, 0]) == pytest.approx(-np.log([0.5, 0.75]).mean())
    assert mean_log_loss([1.0, 0.0], [1, 0]) == 0
    assert mean_log_loss([1.0], [0]) == np.inf


@pytest.mark.parametrize("labels", [[1, 1, 1], [0, 0, 0], [0, 1, 2]])
def test_labels_of_one_class_are_refused(labels: list[float]) -> None:
    for fit in (fit_isotonic, fit_logistic, fit_combination):
        with pytest.raises(ValueError, match="labels of"):
            fit([0.0, 1.0, 2.0], labels)


def test_infinite_and_absent_scores_are_refused() -> None:
    with pytest.raises(ValueError, match="finite"):
        fit_combination([[0.0], [np.inf]], [0, 1])
    with pytest.raises(ValueError, match="a value of each score"):
        fit_combination([[0.0, NAN], [1.0, NAN]], [0, 1])
