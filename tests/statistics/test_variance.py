"""Components of variance: by hand, against other computations, and by simulation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.lazily import needed
from trustassay.statistics.variance import (
    ANSWER,
    BOTH,
    COMPONENTS,
    RATER,
    REPEAT,
    UNSEPARATED,
    NotEstimableError,
    RatingCells,
    build_cells,
    leave_one_out_weights,
    percent_shares,
)

formula, anova = needed("statsmodels.formula.api"), needed("statsmodels.stats.anova")

Floats = NDArray[np.float64]


def of_table(table: Floats) -> RatingCells:
    """Gather ratings of shape (answers, raters, repeats); NaN is missing."""
    i, j, k = np.nonzero(~np.isnan(table))
    return build_cells(i.tolist(), j.tolist(), table[i, j, k], table.shape[:2])


def made(
    n: int, raters: int, repeats: int, variances: tuple[float, ...], rng: np.random.Generator
) -> Floats:
    a, b, ab, e = (
        rng.normal(0, v**0.5, shape)
        for v, shape in zip(
            variances,
            ((n, 1, 1), (1, raters, 1), (n, raters, 1), (n, raters, repeats)),
            strict=True,
        )
    )
    return np.asarray(3 + a + b + ab + e)


def test_the_example_of_shrout_and_fleiss() -> None:
    # Shrout & Fleiss 1979, Table 2; mean squares of 11.24, 32.49 and 1.02, ICC(2, 1) of .29.
    table = np.array(
        [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]]
    )
    found = of_table(table[:, :, None].astype(float))
    assert found.names == (ANSWER, RATER, UNSEPARATED)
    answer, rater, rest = found.components()[0]
    assert answer == pytest.approx((11.24 - 1.02) / 4, abs=0.005)
    assert rater == pytest.approx((32.49 - 1.02) / 6, abs=0.005)
    assert rest == pytest.approx(1.02, abs=0.005)
    assert percent_shares([answer, rater, rest])[0] == pytest.approx(29, abs=0.5)


def test_one_rater_by_hand() -> None:
    # Means 2, 4, 6: between 2 (4 + 0 + 4) / 2 = 8, within (2 + 2 + 2) / 3 = 2, (8 - 2) / 2 = 3.
    found = of_table(np.array([[[1.0, 3]], [[3, 5]], [[5, 7]]]))
    assert found.names == (ANSWER, REPEAT)
    assert found.components()[0] == pytest.approx([3, 2])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_balanced_data_as_the_analysis_of_variance_has_it(seed: int) -> None:
    import pandas

    n, raters, repeats = 7, 4, 3
    rng = np.random.default_rng(seed)
    table = np.round(made(n, raters, repeats, (1, 0.3, 0.2, 0.6), rng))
    i, j, _ = np.indices(table.shape)
    frame = pandas.DataFrame({"y": table.ravel(), "a": i.ravel(), "b": j.ravel()})
    of = anova.anova_lm(formula.ols("y ~ C(a) * C(b)", frame).fit())["sum_sq"]
    freedom = [n - 1, raters - 1, (n - 1) * (raters - 1), n * raters * (repeats - 1)]
    a, b, ab, e = (float(of.iloc[at]) / freedom[at] for at in range(4))
    wanted = [(a - ab) / (raters * repeats), (b - ab) / (n * repeats), (ab - e) / repeats, e]
    assert of_table(table).components()[0] == pytest.approx(wanted)


def _sums_of_squares(present: NDArray[np.int64]) -> tuple[list[Floats], list[Floats]]:
    """Return the matrices of the four sums of squares, and Z Z' of the four effects, of the
    ratings whose (answer, rater) are the rows of ``present``.
    """
    i, j = present.T
    groups = [np.zeros(len(i)), i, j, i * 1000 + j, np.arange(len(i))]
    same = [np.equal.outer(g, g).astype(float) for g in groups]
    mean, answer, rater, cell, each = (one / one.sum(axis=1) for one in same)
    quadratic = [answer - mean, rater - mean, cell - answer - rater + mean, each - cell]
    return quadratic, same[1:]


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_the_equations_are_the_expected_sums_of_squares(seed: int) -> None:
    """E y'Qy = sum of variance x trace(Q Z Z'), whatever is missing."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 4, (6, 3))
    counts[0] = (2, 1, 1)
    present = np.argwhere(np.ones_like(counts)).repeat(counts.ravel(), axis=0)
    y = rng.normal(size=len(present))
    found = build_cells(present[:, 0].tolist(), present[:, 1].tolist(), y, (6, 3))
    matrix, squares = found._equations(np.ones((1, len(found.counts))))
    quadratic, effects = _sums_of_squares(present)
    y = y - y.mean()
    assert squares[0] == pytest.approx([float(y @ q @ y) for q in quadratic], abs=1e-9)
    wanted = [[float(np.sum(q * z)) for z in effects] for q in quadratic]
    assert matrix[0] == pytest.approx(np.array(wanted), abs=1e-9)


def test_weights_count_an_answer_as_often_as_it_stands_there() -> None:
    rng = np.random.default_rng(2)
    table = made(8, 3, 2, (1, 0.3, 0.2, 0.6), rng)
    table[rng.random(table.shape) < 0.2] = np.nan
    times = [2, 0, 1, 3, 1, 1, 0, 2]
    again = of_table(table.repeat(times, axis=0)).components()
    assert of_table(table).components([times]) == pytest.approx(again)


@pytest.mark.parametrize("shift", [0.0, 1e6])
def test_neither_order_nor_place_of_the_ratings_matters(shift: float) -> None:
    table = made(9, 3, 2, (1, 0.3, 0.2, 0.6), np.random.default_rng(4))
    table[0, 1] = table[3, :, 1] = np.nan
    wanted = of_table(table).components()
    assert of_table(table[::-1, ::-1, ::-1] + shift).components() == pytest.approx(wanted, rel=1e-6)
    assert of_table(10 * table).components() == pytest.approx(100 * wanted)


def test_known_components_come_out_with_half_of_the_ratings_missing() -> None:
    wanted = np.array([1, 0.2, 0.3, 0.5])
    found = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        table = made(40, 5, 2, tuple(wanted), rng)
        table[rng.random(table.shape) < 0.5] = np.nan
        found.append(of_table(table).components()[0])
    mean, error = np.mean(found, axis=0), np.std(found, axis=0) / len(found) ** 0.5
    assert (np.abs(mean - wanted) < 3 * error).all()
    assert (error < 0.03).all()


def test_what_cannot_be_told_apart_is_said() -> None:
    def said(table: list[Any]) -> str:
        with pytest.raises(NotEstimableError) as caught:
            of_table(np.array(table, dtype=float)).components()
        return str(caught.value)

    nan = float("nan")
    assert said([[[1], [2]]]) == "fewer than two answers were rated"
    assert said([[[1]], [[2]]]) == "one rater rated each answer once"
    each_their_own = [[[1, 2], [nan, nan]], [[3, 4], [nan, nan]], [[nan, nan], [5, 5]]]
    assert "too few answers were rated by two raters" in said(each_their_own)
    assert "too large to be squared" in said([[[1e200], [2]], [[1], [-1e200]]])


def test_shares_leave_out_what_lies_below_zero() -> None:
    assert percent_shares([3, -1, 0, 1]) == pytest.approx([75, 0, 0, 25])
    assert np.isnan(percent_shares(np.eye(2) * [0, 0] + [[0], [1]])).tolist() == [
        [True, True],
        [False, False],
    ]


def test_each_unit_is_left_out_in_turn() -> None:
    units = np.array([0, 1, 1, 2, 0])
    weights = np.concatenate(list(leave_one_out_weights(units)))
    assert weights.tolist() == [[0, 1, 1, 1, 0], [1, 0, 0, 1, 1], [1, 1, 1, 0, 1]]
    grouped = np.concatenate(list(leave_one_out_weights(np.arange(5), groups=2)))
    assert grouped.tolist() == [[0, 1, 0, 1, 0], [1, 0, 1, 0, 1]]


def test_a_draw_that_tells_nothing_apart_is_no_number() -> None:
    table = np.full((3, 2, 1), np.nan)
    table[0, 0], table[1, 1], table[2] = 1, 4, [[2], [3]]
    found = of_table(table).components([[1, 1, 1], [2, 1, 0], [0, 0, 0]])
    assert np.isnan(found).any(axis=1).tolist() == [False, True, True]


def test_the_components_have_these_names() -> None:
    rng = np.random.default_rng(1)
    assert of_table(made(5, 2, 2, (1, 1, 1, 1), rng)).names == COMPONENTS
    assert COMPONENTS == (ANSWER, RATER, BOTH, REPEAT)
