"""Coefficients of agreement: by hand, against other libraries, and by their properties."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from typing import Any

import krippendorff
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.lazily import needed
from trustassay.statistics import agreement
from trustassay.statistics.agreement import (
    Scale,
    Weights,
    bootstrap_interval,
    cohen_kappa,
    counts_of,
    fleiss_kappa,
    krippendorff_alpha,
    mean_absolute_difference,
    percent_agreement,
)

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
    counts = counts_of(drawn(seed, raters, 30, 4))
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
    assert fleiss_kappa(counts_of([same, same])) is None
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


def test_an_interval_holds_the_coefficient_and_depends_on_the_seed_alone() -> None:
    first, second = drawn(1, 2, 60, 5)

    def kappa(places: np.ndarray) -> float | None:
        return cohen_kappa(first[places], second[places], "quadratic")

    found = [bootstrap_interval(kappa, 60, np.random.default_rng(3), 200) for _ in range(2)]
    assert found[0] == found[1]
    assert not isinstance(found[0], str)
    low, high = found[0]
    assert low < (kappa(np.arange(60)) or 0) < high
    assert agreement.bootstrap_interval(kappa, 19, np.random.default_rng(3)) == (
        "too few items: 19; at least 20 are needed"
    )
    nothing = bootstrap_interval(lambda _: None, 30, np.random.default_rng(0), 20)
    assert "not defined" in nothing


def test_items_are_counted_instead_of_listed_with_the_same_result() -> None:
    """The same draws, and the same figures to the last digits: those listed one by one."""
    rng = np.random.default_rng(5)
    table = rng.integers(1, 4, (3, 60)).astype(float)
    table[rng.random(table.shape) < 0.15] = np.nan
    coefficients: dict[str, Callable[..., float | None]] = {
        "percent": lambda t, n=None: percent_agreement(t[0], t[1], n),
        "difference": lambda t, n=None: mean_absolute_difference(t[0], t[1], n),
        "kappa": lambda t, n=None: cohen_kappa(t[0], t[1], "quadratic", [1, 2, 3], n),
        "alpha": lambda t, n=None: krippendorff_alpha(t, "ordinal", n),
        "fleiss": lambda t, n=None: whole_fleiss(t, n),
    }
    for name, coefficient in coefficients.items():

        def listed(places: Any, of: Callable[..., float | None] = coefficient) -> float | None:
            return of(table[:, places])

        plain = bootstrap_interval(listed, 60, np.random.default_rng(1), 100)
        counted = agreement.item_interval(coefficient, table, np.random.default_rng(1), 100)
        assert counted == pytest.approx(plain, abs=1e-12), name


def whole_fleiss(table: Any, times: Any = None) -> float | None:
    whole = ~np.isnan(table).any(axis=0)
    return fleiss_kappa(counts_of(table[:, whole]), None if times is None else times[whole])
