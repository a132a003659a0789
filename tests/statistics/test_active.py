"""Active evaluation: unbiased by enumeration, exact where it must be, intervals by simulation."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.support import repeats
from trustassay.statistics.active import (
    EVEN_SHARE,
    FigureTarget,
    Labels,
    UnitDraw,
    auroc_target,
    draw_probabilities,
    draw_units,
    exploration_share,
    mean_target,
)
from trustassay.statistics.correlation import auroc
from trustassay.statistics.intervals import mean_interval

Floats = NDArray[np.float64]

# Five units with seven answers, a score that misleads about some of them.
UNITS = np.array([0, 0, 1, 2, 2, 3, 4])
SCORES = np.array([1.2, -0.3, 0.4, -1.5, 0.9, -0.2, 0.1])
LABELS = np.array([1.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.0])
EVERY = np.ones(7, dtype=bool)


def orders(number: int, slope: Floats) -> Iterator[tuple[float, list[UnitDraw]]]:
    """Yield every order of ``number`` draws with its probability: what is drawn next depends on the
    labels seen before, as when each batch is one unit.
    """

    def grow(probability: float, draws: list[UnitDraw]) -> Iterator[tuple[float, list[UnitDraw]]]:
        if len(draws) == number:
            yield probability, draws
            return
        labels = Labels(SCORES[:, None], UNITS, draws, LABELS)
        left = labels.left
        for unit, q in zip(left, draw_probabilities(labels.spread(slope)[left]), strict=True):
            yield from grow(probability * q, [*draws, UnitDraw(int(unit), float(q))])

    return grow(1.0, [])


TARGETS = {
    "share": mean_target(LABELS, EVERY),
    "share of a model": mean_target(LABELS, UNITS > 1),
    "difference": mean_target(LABELS, UNITS > 1) - mean_target(LABELS, UNITS <= 1),
}


@pytest.mark.parametrize("number", [2, 3, 4, 5])
@pytest.mark.parametrize("name", TARGETS)
def test_estimates_are_right_on_average_over_all_possible_draws(name: str, number: int) -> None:
    truth = TARGETS[name]
    total, mean = 0.0, 0.0
    for probability, draws in orders(number, truth.slope):
        found = Labels(SCORES[:, None], UNITS, draws, LABELS).estimates
        total += probability
        mean += probability * float(truth.slope @ found)
    assert total == pytest.approx(1)
    assert mean == pytest.approx(truth.value, abs=1e-12)


def test_the_variance_is_right_on_average_over_all_possible_draws() -> None:
    rng = np.random.default_rng(7)
    scores, labels = rng.normal(size=8), (rng.random(8) < 0.5).astype(float)
    units, every = np.arange(8), np.ones(8, dtype=bool)
    likely = {unit: float(q) for unit, q in enumerate(draw_probabilities(rng.random(8)))}
    mean, square, told = 0.0, 0.0, 0.0
    for order in itertools.permutations(range(8), 3):
        left, probability, draws = 1.0, 1.0, []
        for unit in order:
            q = likely[unit] / left
            left -= likely[unit]
            probability *= q
            draws.append(UnitDraw(unit, q))
        found = Labels(scores[:, None], units, draws, labels)
        one = found.estimate(mean_target(found.estimates, every))
        assert one is not None
        mean += probability * one.value
        square += probability * one.value**2
        told += probability * one.variance
    assert mean == pytest.approx(labels.mean())
    assert told == pytest.approx(square - mean**2, rel=1e-9)


def test_with_one_unit_left_there_is_a_variance_too() -> None:
    found = Labels(SCORES[:, None], UNITS, [UnitDraw(u, 1 / (5 - u)) for u in range(4)], LABELS)
    one = found.estimate(mean_target(found.estimates, EVERY))
    assert one is not None
    assert one.units_left == 1
    assert 0 < one.variance < 0.1


def test_what_the_estimate_is_made_of_gives_the_estimate() -> None:
    rng = np.random.default_rng(0)
    units = rng.permutation(np.repeat(np.arange(40), 2))
    scores, labels = rng.normal(size=80), (rng.random(80) < 0.5).astype(float)
    slope = rng.normal(size=80)
    draws = [UnitDraw(unit, q) for unit, q in draw_units(rng.random(40), 25, rng)]
    draws.insert(10, UnitDraw(int(np.setdiff1d(np.arange(40), [d.unit for d in draws])[0]), None))
    found = Labels(scores[:, None], units, draws, labels)
    weights = found._weights[[draw.probability is not None for draw in draws]]
    assert weights @ found._estimate_sums(slope) == pytest.approx(float(slope @ found.estimates))
    assert weights.sum() == pytest.approx(1)


def test_equal_probabilities_without_scores_give_nearly_the_plain_mean() -> None:
    rng = np.random.default_rng(2)
    labels = (rng.random(1000) < 0.3).astype(float)
    draws = [UnitDraw(u, q) for u, q in draw_units(np.ones(1000), 400, rng, 1.0)]
    found = Labels(np.empty((1000, 0)), np.arange(1000), draws, labels)
    one = found.estimate(mean_target(found.estimates, np.ones(1000, dtype=bool)))
    assert one is not None
    plain = labels[[draw.unit for draw in draws]].mean()
    assert one.value == pytest.approx(plain, abs=0.004)
    simple = plain * (1 - plain) * (1 / 400 - 1 / 1000)
    assert one.variance == pytest.approx(simple, rel=0.08)
    assert one.variance_at(400, evenly=True) == pytest.approx(simple, rel=0.02)
    assert one.between == pytest.approx(plain * (1 - plain) / 1000, rel=0.02)


def test_of_all_units_the_estimate_is_the_truth() -> None:
    draws = [UnitDraw(unit, q) for unit, q in draw_units(np.ones(5), 9, np.random.default_rng(1))]
    assert len(draws) == 5
    assert draws[-1].probability == pytest.approx(1)
    labels = Labels(SCORES[:, None], UNITS, draws, LABELS)
    assert labels.estimates == pytest.approx(LABELS)
    found = labels.estimate(mean_target(labels.estimates, EVERY))
    assert found is not None
    assert found.value == pytest.approx(4 / 7)
    assert (found.variance, found.units_left) == (0.0, 0)
    assert found.variance_at(5) == 0.0


def test_labels_from_elsewhere_count_as_themselves() -> None:
    # Units 0 and 1 were labelled by whim: right on average over what is drawn of the others.
    slope = TARGETS["share"].slope
    mean, total = 0.0, 0.0
    known = [UnitDraw(0, None), UnitDraw(1, None)]
    for first in (2, 3, 4):
        for second in {2, 3, 4} - {first}:
            p, q = {2: 0.5, 3: 0.2, 4: 0.3}[first], 0.4 if second < 4 - (first == 4) else 0.6
            draws = [*known, UnitDraw(first, p), UnitDraw(second, q)]
            labels = Labels(SCORES[:, None], UNITS, draws, LABELS)
            total += p * q
            mean += p * q * float(slope @ labels.estimates)
    assert total == pytest.approx(1)
    assert mean == pytest.approx(4 / 7)


def test_a_label_that_nobody_could_give_counts_as_predicted() -> None:
    blank = LABELS.copy()
    blank[5] = np.nan
    draws = [UnitDraw(3, 0.2), UnitDraw(0, 0.25), UnitDraw(1, 0.3)]
    labels = Labels(SCORES[:, None], UNITS, draws, blank)
    before = 1 / (1 + np.exp(-SCORES[5]))  # the prediction without any label: slope 1
    filled = np.where(np.isnan(blank), before, blank)
    assert np.isfinite(labels.estimates).all()
    assert labels._y[5] == pytest.approx(filled[5])


@given(
    st.lists(st.floats(0, 1e6), min_size=1, max_size=30),
    st.floats(0.05, 1),
)
def test_probabilities_sum_to_one_and_weights_are_bounded(
    spread: list[float], explored: float
) -> None:
    found = draw_probabilities(spread, explored)
    assert found.sum() == pytest.approx(1)
    assert (found >= explored / len(spread) * (1 - 1e-12)).all()


def test_too_few_labels_choose_nothing() -> None:
    assert (exploration_share(19), exploration_share(20)) == (1.0, EVEN_SHARE)


def test_draws_say_how_likely_they_were() -> None:
    spread = np.array([4.0, 1.0, 1.0])
    counts: dict[tuple[int, ...], int] = {}
    told: dict[tuple[int, ...], float] = {}
    for seed in range(4000):
        drawn = draw_units(spread, 2, np.random.default_rng(seed), 0.1)
        key = tuple(place for place, _ in drawn)
        counts[key] = counts.get(key, 0) + 1
        told[key] = drawn[0][1] * drawn[1][1]
    assert sum(told.values()) == pytest.approx(1)
    for key, share in told.items():
        assert counts[key] / 4000 == pytest.approx(share, abs=0.03)


def test_auroc_is_that_of_the_labels_and_its_slope_the_derivative() -> None:
    rng = np.random.default_rng(3)
    scores = np.round(rng.normal(size=60), 1)
    scores[::9] = np.nan
    labels = (rng.random(60) < 0.4).astype(float)
    there = ~np.isnan(scores)
    found = auroc_target(labels, scores)
    assert found is not None
    assert found.value == pytest.approx(auroc(scores[there], labels[there]))
    assert found.slope @ labels + found.offset.sum() == pytest.approx(0, abs=1e-12)
    soft = rng.random(60)
    at = auroc_target(soft, scores)
    for place in (0, 1, 7, 30):
        step = np.zeros(60)
        step[place] = 1e-6
        up, down = auroc_target(soft + step, scores), auroc_target(soft - step, scores)
        assert at and up and down
        assert (up.value - down.value) / 2e-6 == pytest.approx(at.slope[place], abs=1e-6)


def test_auroc_of_one_class_or_no_scores_is_none() -> None:
    assert auroc_target(np.ones(5), np.arange(5.0)) is None
    assert auroc_target(np.array([0.0, 1.0]), np.full(2, np.nan)) is None


def test_one_draw_gives_no_variance() -> None:
    labels = Labels(SCORES[:, None], UNITS, [UnitDraw(0, 0.2)], LABELS)
    assert labels.estimate(mean_target(labels.estimates, EVERY)) is None


def made(rng: np.random.Generator, n: int) -> tuple[Floats, Floats]:
    scores = rng.normal(size=n)
    return scores, (rng.random(n) < 1 / (1 + np.exp(-2 * scores))).astype(float)


def drawn_in_batches(
    scores: Floats, labels: Floats, number: int, rng: np.random.Generator
) -> Labels:
    units, draws = np.arange(len(labels)), list[UnitDraw]()
    while len(draws) < number:
        now = Labels(scores[:, None], units, draws, labels)
        spread = now.spread(np.ones(len(labels)))[now.left]
        found = draw_units(spread, 30, rng, exploration_share(len(draws)))
        draws += [UnitDraw(int(now.left[place]), q) for place, q in found]
    return Labels(scores[:, None], units, draws, labels)


@pytest.mark.slow
def test_intervals_hold_and_scores_help() -> None:
    scores, labels = made(np.random.default_rng(0), 500)
    every, truth = np.ones(500, dtype=bool), labels.mean()
    held, widths = [], []
    for seed in range(repeats(300)):
        found = drawn_in_batches(scores, labels, 90, np.random.default_rng(seed))
        one = found.estimate(mean_target(found.estimates, every))
        assert one is not None
        low, high = mean_interval(one.value, one.variance, int(one.effective))
        held.append(low <= truth <= high)
        widths.append(high - low)
    error = 3 * np.sqrt(0.05 * 0.95 / len(held))
    assert 0.95 - error <= np.mean(held) <= 0.95 + error
    plain = mean_interval(truth, truth * (1 - truth) * (1 / 90 - 1 / 500), 90)
    assert np.mean(widths) < 0.85 * (plain[1] - plain[0])


def test_how_many_draws_more() -> None:
    scores, labels = made(np.random.default_rng(4), 500)
    found = drawn_in_batches(scores, labels, 60, np.random.default_rng(5))
    one = found.estimate(mean_target(found.estimates, np.ones(500, dtype=bool)))
    assert one is not None
    assert one.variance_at(60) == pytest.approx(one.variance)
    goal = one.variance / 3
    draws = one.draws_for(lambda variance, _: variance <= goal)
    assert one.variance_at(draws) <= goal < one.variance_at(draws - 1)
    assert one.draws_for(lambda _variance, _draws: False) == 501


def test_targets_can_be_subtracted() -> None:
    one, other = TARGETS["share"], TARGETS["share of a model"]
    assert isinstance(one - other, FigureTarget)
    assert (one - other).value == pytest.approx(one.value - other.value)


def test_what_an_answer_moves_a_difference_by_is_the_difference_of_what_it_moves() -> None:
    labels = np.array([1.0, 0.0, 1.0, 1.0])
    one, other = (
        mean_target(labels, np.array(among, dtype=bool)) for among in ([1, 1, 0, 0], [0, 1, 1, 1])
    )
    moved = [target.slope * labels + target.offset for target in (one, other, one - other)]
    assert (one - other).value == pytest.approx(1 / 2 - 2 / 3)
    assert moved[2] == pytest.approx(moved[0] - moved[1])
