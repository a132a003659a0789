"""FEWL's formulas against worked cases, to 1e-12, and what must hold of any numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trustassay.metrics.fewl import maths

EXACT: dict[str, Any] = {"abs": 1e-12, "rel": 1e-12}
DIVERGENCES = maths.DIVERGENCES
similarities = st.lists(st.floats(-1, 1), min_size=1, max_size=5)


@pytest.mark.parametrize(
    ("divergence", "at", "gain", "loss"),
    [
        # tanh(1/2) = (e - 1) / (e + 1), halved; the penalty is aggregated alike.
        ("tv", 0.5, (math.e - 1) / (math.e + 1) / 2, (math.e - 1) / (math.e + 1) / 2),
        ("tv", 0.0, 0.0, 0.0),
        ("tv", -1.0, -math.tanh(1) / 2, -math.tanh(1) / 2),
        # log(2 / (1 + 1/2)) = log(4/3) at log 2; log((1 + 2) / 2) = log(3/2).
        ("js", math.log(2), math.log(4 / 3), math.log(3 / 2)),
        ("js", 0.0, 0.0, 0.0),
        # At -log 3: log(2 / (1 + 3)) = -log 2; log((1 + 1/3) / 2) = log(2/3).
        ("js", -math.log(3), -math.log(2), math.log(2 / 3)),
        ("kl", 1.0, 1.0, 1.0),
        ("kl", 0.0, 0.0, math.exp(-1)),
        ("kl", 3.0, 3.0, math.exp(2)),
    ],
)
def test_aggregation_by_hand(
    divergence: maths.Divergence, at: float, gain: float, loss: float
) -> None:
    assert float(maths.aggregate_agreement(at, divergence)) == pytest.approx(gain, **EXACT)
    assert float(maths.aggregate_penalty(at, divergence)) == pytest.approx(loss, **EXACT)


@pytest.mark.parametrize("divergence", ["js", "kl"])
@given(value=st.floats(-50, 0.6))
def test_the_penalty_is_f_of_g(divergence: maths.Divergence, value: float) -> None:
    """JS: f(u) = -log(2 - e^u); KL: f(u) = e^(u - 1); written out as in the paper."""
    u = float(maths.aggregate_agreement(value, divergence))
    f = -math.log(2 - math.exp(u)) if divergence == "js" else math.exp(u - 1)
    assert float(maths.aggregate_penalty(value, divergence)) == pytest.approx(
        f, rel=1e-9, abs=1e-12
    )


@pytest.mark.parametrize("divergence", DIVERGENCES)
def test_aggregation_holds_far_out(divergence: maths.Divergence) -> None:
    with np.errstate(all="raise"):
        values = np.array([-700.0, -1.0, 0.0, 1.0, 700.0])
        found = (
            maths.aggregate_agreement(values, divergence),
            maths.aggregate_penalty(values, divergence),
        )
    assert all(np.isfinite(one).all() and (np.diff(one) >= 0).all() for one in found)


def test_expertise_takes_the_nearest_of_each_side() -> None:
    assert maths.expertise([0.2, 0.9, 0.4], [0.1, 0.3]) == pytest.approx(0.6, **EXACT)
    assert maths.expertise([0.5], [0.5]) == 0
    assert maths.expertise([-0.4, -0.2], [-0.9]) == pytest.approx(0.7, **EXACT)  # not clipped
    assert maths.expertise([], []) == 0
    assert maths.expertise([0.7], []) == 0.7
    assert maths.expertise([], [0.7]) == -0.7


def test_weights_by_hand() -> None:
    """exp(log 3) and exp(log 1): 3/4 and 1/4; at half the temperature 9/10 and 1/10."""
    r = [math.log(3), 0.0]
    assert maths.softmax_weights(r) == pytest.approx([0.75, 0.25], **EXACT)
    assert maths.softmax_weights(r, 0.5) == pytest.approx([0.9, 0.1], **EXACT)
    assert maths.softmax_weights([7.0]) == pytest.approx([1.0], **EXACT)
    assert maths.softmax_weights([1e4, 0.0]) == pytest.approx([1, 0], **EXACT)
    assert maths.softmax_weights([2.0, 5.0, 2.0], present=[True, False, True]) == pytest.approx(
        [0.5, 0, 0.5], **EXACT
    )
    assert maths.softmax_weights([1.0, 2.0], present=[False, False]).tolist() == [0, 0]
    assert maths.uniform_weights([True, True, False, True]) == pytest.approx(
        [1 / 3, 1 / 3, 0, 1 / 3], **EXACT
    )
    with pytest.raises(ValueError, match="temperature"):
        maths.softmax_weights(r, 0)


def test_the_largest_weight_of_three_models_at_temperature_one() -> None:
    """Similarities from 0 to 1 give r from -1 to 1: e^2 / (e^2 + 2) = 0.787 at most."""
    largest = float(maths.softmax_weights([1.0, -1.0, -1.0])[0])
    assert largest == pytest.approx(math.e**2 / (math.e**2 + 2), **EXACT)


def test_the_best_alone_is_the_first_of_equals() -> None:
    assert maths.find_best_reference([0.1, 0.4, 0.4]).tolist() == [False, True, False]
    assert maths.find_best_reference([0.1, 0.4], present=[True, False]).tolist() == [True, False]
    assert maths.find_best_reference([[0.0, 1.0], [1.0, 0.0]]).tolist() == [
        [False, True],
        [True, False],
    ]


S, W, P = [0.8, 0.2], [0.75, 0.25], [0.1, 0.3]


def tv(value: float) -> float:
    return math.tanh(value) / 2


def js(value: float) -> float:
    return math.log(2 / (1 + math.exp(-value)))


@pytest.mark.parametrize(
    ("form", "divergence", "plain", "whole"),
    [
        # eq1: the mean over two of g(.75 x .8) and g(.25 x .2), less the mean of f(g(p)).
        ("eq1", "tv", (tv(0.6) + tv(0.05)) / 2, (tv(0.6) + tv(0.05) - tv(0.1) - tv(0.3)) / 2),
        (
            "eq1",
            "js",
            (js(0.6) + js(0.05)) / 2,
            (
                js(0.6)
                + js(0.05)
                - math.log((1 + math.exp(0.1)) / 2)
                - math.log((1 + math.exp(0.3)) / 2)
            )
            / 2,
        ),
        ("eq1", "kl", 0.325, (0.65 - math.exp(-0.9) - math.exp(-0.7)) / 2),
        # theory: .75 of the first reference's bracket and .25 of the second's.
        (
            "theory",
            "tv",
            0.75 * tv(0.8) + 0.25 * tv(0.2),
            0.75 * (tv(0.8) - tv(0.1)) + 0.25 * (tv(0.2) - tv(0.3)),
        ),
        (
            "theory",
            "js",
            0.75 * js(0.8) + 0.25 * js(0.2),
            0.75 * (js(0.8) - math.log((1 + math.exp(0.1)) / 2))
            + 0.25 * (js(0.2) - math.log((1 + math.exp(0.3)) / 2)),
        ),
        (
            "theory",
            "kl",
            0.65,
            0.75 * (0.8 - math.exp(-0.9)) + 0.25 * (0.2 - math.exp(-0.7)),
        ),
        ("agreement", "tv", 0.65, 0.75 * 0.7 + 0.25 * -0.1),
    ],
)
def test_scores_by_hand(
    form: maths.Form, divergence: maths.Divergence, plain: float, whole: float
) -> None:
    kinds: dict[str, Any] = {"form": form, "divergence": divergence}
    assert maths.score(S, W, None, **kinds)[0] == pytest.approx(plain, **EXACT)
    assert maths.score(S, W, P, **kinds)[0] == pytest.approx(whole, **EXACT)


@pytest.mark.parametrize("divergence", DIVERGENCES)
@pytest.mark.parametrize("form", maths.FORMS)
def test_one_reference_scores_as_its_own_bracket(
    form: maths.Form, divergence: maths.Divergence
) -> None:
    """With N = 1 and a weight of 1 equation 1 and the theory are the same."""
    found = float(maths.score([0.4], [1.0], [0.1], form=form, divergence=divergence)[0])
    bracket = float(
        maths.aggregate_agreement(0.4, divergence) - maths.aggregate_penalty(0.1, divergence)
    )
    assert found == pytest.approx(0.3 if form == "agreement" else bracket, **EXACT)


def test_a_term_left_out_is_not_a_term_at_zero() -> None:
    """KL subtracts 1/e of an answer that is like nothing."""
    kinds: dict[str, Any] = {"divergence": "kl", "form": "eq1"}
    none = maths.score([0.5], [1.0], None, **kinds)
    zero = maths.score([0.5], [1.0], [0.0], **kinds)
    lacks = maths.score([0.5], [1.0], [0.0], has_penalty=[False], **kinds)
    assert none[0] == lacks[0] == 0.5
    assert zero[0] == pytest.approx(0.5 - math.exp(-1), **EXACT)


def test_rows_are_scored_together_and_absent_references_do_not_count() -> None:
    s: list[Any] = [[0.8, 0.2, 9.0], [0.5, 0.1, 0.3]]
    present = [[True, True, False], [True, True, True]]
    r: list[Any] = [[math.log(3), 0, 5], [0, 0, 0]]
    w = maths.softmax_weights(r, present=present)
    p: list[Any] = [[0.1, 0.3, 9.0], [0, 0, 0]]
    for form in maths.FORMS:
        both = maths.score(s, w, p, form=form, present=present)
        first = maths.score(S, W, P, form=form)
        second = maths.score(s[1], [1 / 3] * 3, p[1], form=form)
        assert both == pytest.approx([first[0], second[0]], **EXACT)


def test_unknown_names_are_refused() -> None:
    with pytest.raises(ValueError, match="divergence: expected tv, js, kl, got 'l2'"):
        maths.aggregate_agreement(0.0, "l2")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="form: expected eq1, theory, agreement"):
        maths.score(S, W, P, form="eq2")  # type: ignore[arg-type]


@given(values=similarities, temperature=st.floats(0.1, 10))
def test_weights_sum_to_one_and_keep_the_order(values: list[float], temperature: float) -> None:
    weights = maths.softmax_weights(values, temperature)
    assert weights.sum() == pytest.approx(1)
    assert (np.diff(weights[np.argsort(values)]) >= 0).all()


@given(values=similarities, more=st.floats(0, 1), divergence=st.sampled_from(DIVERGENCES))
def test_more_agreement_never_lowers_a_score(
    values: list[float], more: float, divergence: maths.Divergence
) -> None:
    weights = maths.uniform_weights([True] * len(values))
    risen = [values[0] + more, *values[1:]]
    for form in maths.FORMS:
        kinds: dict[str, Any] = {"form": form, "divergence": divergence}
        low, high = (float(maths.score(one, weights, None, **kinds)[0]) for one in (values, risen))
        assert high >= low - 1e-15
        lighter, heavier = (
            float(maths.score(values, weights, one, **kinds)[0]) for one in (values, risen)
        )
        assert heavier <= lighter + 1e-15


def test_abilities_of_raters_who_follow_one_factor() -> None:
    """q = .9, .6, .3: the pairs agree .54, .27 and .18, from which they are found again."""
    q = np.array([0.9, 0.6, 0.3])
    found = maths.abilities(np.outer(q, q), np.ones((3, 3)))
    assert found == pytest.approx(q, abs=1e-9)
    # Bartlett's weights: q / (1 - q^2) = 4.737, 0.9375, 0.3297.
    raw = np.array([0.9 / 0.19, 0.6 / 0.64, 0.3 / 0.91])
    assert maths.ability_weights(found) == pytest.approx(raw / raw.sum(), abs=1e-8)


def test_abilities_at_their_ends() -> None:
    pair = np.array([[0.0, 0.49], [0.49, 0.0]])
    assert maths.abilities(pair, np.ones((2, 2))) == pytest.approx([0.7, 0.7])
    assert maths.abilities(np.ones((3, 3)), np.ones((3, 3))) == pytest.approx([1, 1, 1])
    assert maths.abilities(np.zeros((3, 3)), np.ones((3, 3))) == pytest.approx([0, 0, 0])
    assert maths.abilities(np.full((2, 2), -0.3), np.ones((2, 2))) == pytest.approx([0, 0])
    assert maths.abilities(pair, np.zeros((2, 2))).tolist() == [0, 0]
    alone = np.ones((3, 3))
    alone[2] = alone[:, 2] = 0  # the third answered nothing that another one did
    known = np.pad(pair, (0, 1))
    assert maths.abilities(known, alone) == pytest.approx([0.7, 0.7, 0.7])


def test_ability_weights_at_their_ends() -> None:
    assert maths.ability_weights([0.0, 0.0]) == pytest.approx([0.5, 0.5])
    assert maths.ability_weights([1.0, 1.0, 0.0]) == pytest.approx([0.5, 0.5, 0])
    assert maths.ability_weights([0.4, 0.9], present=[True, False]) == pytest.approx([1, 0])
    assert maths.ability_weights([[0.4, 0.9]], present=[[False, False]]).tolist() == [[0, 0]]
