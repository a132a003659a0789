"""Coefficients of agreement: by hand, against other libraries, and by their properties."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import krippendorff
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.lazily import needed
from trustassay.statistics.agreement import (
    Scale,
    Weights,
    cohen_kappa,
    count_categories,
    fleiss_kappa,
    gwet_ac,
    intraclass,
    item_interval,
    krippendorff_alpha,
    mean_absolute_difference,
    percent_agreement,
)
from trustassay.statistics.intervals import jackknife_interval

sklearn, inter_rater = needed("sklearn.metrics"), needed("statsmodels.stats.inter_rater")

WEIGHTS: tuple[Weights, ...] = ("none", "linear", "quadratic")
SCALES: tuple[Scale, ...] = ("nominal", "ordinal", "interval")
NAN = float("nan")


def drawn(seed: int, raters: int, items: int, levels: int, missing: float = 0.0):  # type: ignore[no-untyped-def]
    """Raters who mostly follow the truth, with ties, and some items left out."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(1, levels + 1, items)
    noise = rng.integers(1, levels + 1, (raters, items))
    ratings = np.where(rng.random((raters, items)) < 0.6, truth, noise).astype(float)
    ratings[rng.random((raters, items)) < missing] = NAN
    return ratings


def test_kappa_by_hand() -> None:
    # 20 yes-yes, 5 yes-no, 10 no-yes, 15 no-no: .7 agree, .5 by chance, kappa .4.
    first = [1] * 25 + [0] * 25
    second = [1] * 20 + [0] * 5 + [1] * 10 + [0] * 15
    assert cohen_kappa(first, second) == pytest.approx(0.4)
    assert percent_agreement(first, second) == pytest.approx(70)
    assert mean_absolute_difference(first, second) == pytest.approx(0.3)


def test_fleiss_by_hand() -> None:
    # Two items, three raters: all say a; two say a and one b. Of pairs (1 + 1/3) / 2 agree;
    # by chance (5/6)^2 + (1/6)^2 = 26/36 do: (2/3 - 13/18) / (1 - 13/18) = -1/5.
    assert fleiss_kappa([[3, 0], [2, 1]]) == pytest.approx(-0.2)


def test_alpha_by_hand() -> None:
    # Two raters, items (1, 1), (1, 2), (2, 2): D_o = 1/3 of pairs; of 6 ratings, three 1 and three
    # 2, 18 of 30 ordered pairs differ. 1 - (1/3) / (18/30) = 4/9, whatever the scale.
    ratings = np.array([[1, 1, 2], [1, 2, 2]])
    for scale in SCALES:
        assert krippendorff_alpha(ratings, scale) == pytest.approx(4 / 9)
    assert krippendorff_alpha(np.array([[1, 1, 2, 9], [1, 2, 2, NAN]])) == pytest.approx(4 / 9)


@pytest.mark.parametrize(("seed", "levels"), list(itertools.product(range(6), (2, 3, 5))))
def test_kappas_are_those_of_scikit_learn_and_statsmodels(seed: int, levels: int) -> None:
    first, second = drawn(seed, 2, 40, levels)
    table, _ = inter_rater.to_table(np.stack([first, second], axis=1))
    for weights, theirs, wt in zip(
        WEIGHTS, (None, "linear", "quadratic"), (None, "linear", "quadratic"), strict=True
    ):
        ours = cohen_kappa(first, second, weights)
        assert ours == pytest.approx(sklearn.cohen_kappa_score(first, second, weights=theirs))
        if table.shape[0] == len(np.unique([first, second])):
            found = inter_rater.cohens_kappa(table, wt=wt, return_results=False)
            assert ours == pytest.approx(found)


@pytest.mark.parametrize("weights", WEIGHTS)
def test_a_level_that_nobody_gave_lies_between_those_around_it(weights: Weights) -> None:
    first, second = [1, 1, 5, 5, 1], [1, 5, 5, 4, 1]
    ours = cohen_kappa(first, second, weights, categories=[1, 2, 3, 4, 5])
    theirs = None if weights == "none" else weights
    expected = sklearn.cohen_kappa_score(first, second, labels=[1, 2, 3, 4, 5], weights=theirs)
    assert ours == pytest.approx(expected)


@pytest.mark.parametrize(("seed", "raters"), list(itertools.product(range(6), (2, 3, 4))))
def test_fleiss_is_that_of_statsmodels(seed: int, raters: int) -> None:
    counts = count_categories(drawn(seed, raters, 30, 4))
    assert fleiss_kappa(counts) == pytest.approx(inter_rater.fleiss_kappa(counts))


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize(("seed", "missing"), list(itertools.product(range(6), (0.0, 0.3))))
def test_alpha_is_that_of_krippendorff(scale: Scale, seed: int, missing: float) -> None:
    ratings = drawn(seed, 4, 25, 5, missing)
    expected = krippendorff.alpha(reliability_data=ratings, level_of_measurement=scale)
    assert krippendorff_alpha(ratings, scale) == pytest.approx(expected)


def test_one_class_is_no_agreement_beyond_chance() -> None:
    same = [3.0] * 10
    assert cohen_kappa(same, same) is None
    assert fleiss_kappa(count_categories([same, same])) is None
    assert krippendorff_alpha([same, same], "ordinal") is None
    assert percent_agreement(same, same) == 100
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert np.isnan(sklearn.cohen_kappa_score(same, same))
        assert np.isnan(inter_rater.fleiss_kappa(np.array([[2.0]] * 10)))
    # One rater sees one class only: chance expects what there is.
    mixed = [3.0] * 5 + [4.0] * 5
    assert cohen_kappa(same, mixed) == pytest.approx(0)
    assert sklearn.cohen_kappa_score(same, mixed) == pytest.approx(0)


def test_nothing_in_common_is_undefined() -> None:
    assert cohen_kappa([1, NAN], [NAN, 2]) is None
    assert percent_agreement([], []) is None
    assert mean_absolute_difference([NAN], [1]) is None
    assert krippendorff_alpha([[1, NAN], [NAN, 2]]) is None
    assert fleiss_kappa(np.empty((0, 0))) is None


def test_what_cannot_be_compared_is_refused() -> None:
    with pytest.raises(ValueError, match="same items"):
        percent_agreement([1], [1, 2])
    with pytest.raises(ValueError, match="rating 3 is not among"):
        cohen_kappa([1, 3], [1, 2], categories=[1, 2])
    with pytest.raises(ValueError, match="same number of ratings"):
        fleiss_kappa([[2, 0], [2, 1]])
    with pytest.raises(ValueError, match="scale: expected"):
        krippendorff_alpha([[1, 2]], "ratio")  # type: ignore[arg-type]


RATINGS = st.integers(2, 12).flatmap(
    lambda n: st.tuples(*[st.lists(st.integers(0, 4), min_size=n, max_size=n)] * 2)
)


@given(RATINGS)
@settings(max_examples=60, deadline=None)
def test_coefficients_are_symmetric_and_at_most_one(pair: tuple[list[int], list[int]]) -> None:
    first, second = pair
    for weights in WEIGHTS:
        one, other = cohen_kappa(first, second, weights), cohen_kappa(second, first, weights)
        assert (one is None) == (other is None)
        if one is not None:
            assert one == pytest.approx(other)
            assert one <= 1 + 1e-12
            assert (one == pytest.approx(1)) == (first == second)
    for scale in SCALES:
        found = krippendorff_alpha([first, second], scale)
        if found is not None:
            assert found <= 1 + 1e-12
            assert (found == pytest.approx(1)) == (first == second)


@given(RATINGS, st.integers(0, 3))
@settings(max_examples=60, deadline=None)
def test_ac_is_symmetric_and_at_most_one(pair: tuple[list[int], list[int]], unused: int) -> None:
    first, second = pair
    levels = list(range(5 + unused))
    for weights in WEIGHTS:
        one = gwet_ac([first, second], weights, levels)
        other = gwet_ac([second, first], weights, levels)
        assert one is not None and one == pytest.approx(other)
        assert (one == pytest.approx(1)) == (first == second)
        assert one <= 1 + 1e-12


def test_ac1_by_hand() -> None:
    # Gwet 2008, section 1: 118 yes-yes, 5 yes-no, 2 no-yes, 0 no-no: 118/125 agree; the share of
    # yes is (123 + 120) / 250 = .972, so chance gives 2 (.972) (.028) = .0544, AC1 .9408.
    first = [1] * 123 + [0] * 2
    second = [1] * 118 + [0] * 5 + [1] * 2
    assert gwet_ac([first, second]) == pytest.approx((0.944 - 0.054432) / (1 - 0.054432))
    assert gwet_ac([first, second], categories=[0, 1, 2]) == pytest.approx(
        (0.944 - 0.027216) / (1 - 0.027216)
    )
    assert gwet_ac([[1, 1], [1, 1]]) is None
    assert gwet_ac([[1, 1], [1, 1]], categories=[1, 2]) == 1
    assert gwet_ac([[1, NAN], [NAN, 2]]) is None


# Gwet 2014, table 2.10 and 2.11: 12 units, four raters, five categories, some ratings missing.
# Read: AC1 0.775, with linear weights 0.800 or more.
UNITS = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, NAN, NAN, NAN],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NAN, 3],
    [NAN, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NAN],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NAN],
]


def test_ac1_is_that_of_the_published_example() -> None:
    assert gwet_ac(UNITS) == pytest.approx(0.77544, abs=5e-6)


# Shrout and Fleiss 1979, table 2: four judges, six targets.
JUDGES = [[9, 6, 8, 7, 10, 6], [2, 1, 4, 1, 5, 2], [5, 3, 6, 2, 6, 4], [8, 2, 8, 6, 9, 7]]


def test_icc_is_that_of_the_published_example() -> None:
    found = intraclass(JUDGES)
    assert found is not None
    # The table gives .29 and .62; the other digits are those of pingouin 0.6.1.
    assert (found.single, found.mean) == pytest.approx((0.28976378, 0.62005055), abs=1e-8)
    assert found.single_interval == pytest.approx((0.0188, 0.7611), abs=5e-5)
    assert found.mean_interval == pytest.approx((0.0711, 0.9272), abs=5e-5)
    with_missing = np.column_stack([JUDGES, [1, 2, NAN, 4]])
    assert intraclass(with_missing) == found
    repeated, counted = intraclass(np.repeat(JUDGES, 2, axis=1)), intraclass(JUDGES, [2] * 6)
    assert repeated is not None and counted is not None
    assert repeated.single == pytest.approx(counted.single)


def test_icc_where_nothing_can_be_compared() -> None:
    assert intraclass([[1, 2, 3]]) is None
    assert intraclass([[1], [2]]) is None
    assert intraclass([[3, 3], [3, 3]]) is None
    same = intraclass([[1, 2, 3], [1, 2, 3]])
    assert same is not None
    assert (same.single, same.mean) == pytest.approx((1, 1))
    assert same.single_interval is None


@given(RATINGS)
@settings(max_examples=60, deadline=None)
def test_icc_knows_no_order_of_raters_and_no_unit(pair: tuple[list[int], list[int]]) -> None:
    first, second = (np.array(one, dtype=float) for one in pair)
    found, turned = intraclass([first, second]), intraclass([5 - 2 * second, 5 - 2 * first])
    assert (found is None) == (turned is None)
    if found is not None and turned is not None:
        assert found.single == pytest.approx(turned.single)
        assert found.single <= 1 + 1e-12
        assert (found.single == pytest.approx(1)) == (first == second).all()
        if found.single_interval:
            low, high = found.single_interval
            assert low <= found.single <= high


def test_the_interval_is_that_of_items_left_out_one_by_one() -> None:
    rng = np.random.default_rng(5)
    table = rng.integers(1, 4, (3, 60)).astype(float)
    table[:, :40] = table[0, :40]
    table[rng.random(table.shape) < 0.15] = np.nan
    units = np.arange(60) // 2

    def alpha(ratings: Any, times: Any = None) -> float | None:
        return krippendorff_alpha(ratings, "ordinal", times)

    for of, own in ((np.arange(60), None), (units, units)):
        left = [alpha(table[:, of != unit]) or 0.0 for unit in range(of.max() + 1)]
        plain = jackknife_interval(alpha(table) or 0.0, left, "fisher")
        found = item_interval(alpha, table, own, "ordinal")
        assert found == pytest.approx(plain, abs=1e-12)


def test_there_is_no_interval_where_it_would_not_hold() -> None:
    def kappa(ratings: Any, times: Any) -> float | None:
        return cohen_kappa(ratings[0], ratings[1], times=times)

    few = item_interval(kappa, drawn(1, 2, 19, 5))
    assert few == "too few items: 19; at least 20 are needed"
    rare = np.ones((2, 60))
    rare[:, :3] = [[2, 2, 1], [2, 1, 2]]
    assert "nearly all ratings are the same" in item_interval(kappa, rare)
    same = np.tile(np.arange(40) % 3, (2, 1)).astype(float)
    assert "raters agree on nearly all items" in item_interval(kappa, same)
