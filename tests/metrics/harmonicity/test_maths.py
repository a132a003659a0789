"""Gamma by hand, against exact arithmetic, and its properties."""

from __future__ import annotations

import math
import tracemalloc
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import ArrayLike, NDArray

from trustassay.metrics.harmonicity.maths import (
    angles,
    gamma_interval,
    gamma_length,
    pairwise_distance,
    resample_gammas,
)

Floats = NDArray[np.float64]
CLOSE = 1e-12


def exact(original: ArrayLike, perturbed: ArrayLike) -> float:
    """Return sqrt(1 - cos^2): fractions up to the last step, which has 60 digits."""
    o = [Fraction(float(x)) for x in np.asarray(original)]
    columns = np.asarray(perturbed).T
    s = [sum((Fraction(float(x)) for x in column), Fraction(0)) for column in columns]
    dot = sum(a * b for a, b in zip(o, s, strict=True))
    lengths = sum((a * a for a in o), Fraction(0)) * sum((b * b for b in s), Fraction(0))
    square = 1 - dot * dot / lengths
    with localcontext() as context:
        context.prec = 60
        return float((Decimal(square.numerator) / Decimal(square.denominator)).sqrt())


def gamma(original: ArrayLike, perturbed: ArrayLike) -> float:
    return float(angles(original, perturbed).gamma)


def unit(rng: np.random.Generator, *shape: int) -> Floats:
    vectors = rng.normal(size=shape)
    return np.asarray(vectors / np.linalg.norm(vectors, axis=-1, keepdims=True))


# By hand -----------------------------------------------------------------------------------------


def test_identical_answers_give_zero_exactly() -> None:
    rng = np.random.default_rng(0)
    for n in (1, 2, 3, 7, 10, 30, 1000):
        for scale in (1, 1e-7, 1 / 3, 1e5):
            o = scale * unit(rng, 384)
            found = angles(o, np.tile(o, (n, 1)))
            assert list(map(float, found)) == [0, 0, 1]


@pytest.mark.parametrize(
    ("o", "p", "sine", "degrees"),
    [
        ([1, 0], [[0, 1]], 1.0, 90),
        ([1, 0], [[-1, 0]], 0.0, 180),
        ([1, 0], [[-1, 0], [-1, 0], [-1, 0]], 0.0, 180),
        ([1, 0], [[2, 0]], 0.0, 0),
        ([3, 0], [[0.5, 0], [0.25, 0]], 0.0, 0),
        ([1, 0], [[1, 0], [0, 1]], math.sqrt(0.5), 45),
        ([1, 0], [[-1, 0], [0, 1]], math.sqrt(0.5), 135),
        ([2, 0], [[3, 0], [0, 4]], 0.8, math.degrees(math.atan2(4, 3))),
        ([0, 5, 0], [[1, 1, 1], [-1, 1, -1]], 0.0, 0),
        ([1, 0], [[5, 1e-9], [5, 0]], 1e-10, math.degrees(1e-10)),
    ],
)
def test_worked_by_hand(o: list[float], p: list[list[float]], sine: float, degrees: float) -> None:
    found = angles(o, p)
    assert float(found.gamma) == pytest.approx(sine, rel=CLOSE, abs=0)
    assert math.degrees(float(found.radians)) == pytest.approx(degrees, rel=CLOSE, abs=0)
    assert found.defined


@pytest.mark.parametrize(
    ("o", "p"),
    [
        ([0, 0], [[1, 0]]),
        ([1, 0], [[0, 0]]),
        ([1, 0], [[0, 1], [0, -1]]),
        ([1, 0], [[1, 0], [-1, 0]]),
        ([1, 0], [[0.1, 0], [0.2, 0], [-0.3, 0]]),  # which floats do not sum to zero
        ([0, 0], [[0, 0]]),
    ],
)
def test_without_an_angle_gamma_is_one_and_not_defined(o: Any, p: Any) -> None:
    found = angles(o, p)
    assert list(map(float, found)) == [1, math.pi / 2, 0]


@pytest.mark.parametrize(
    ("o", "p"), [((3,), (2, 4)), ((3,), (3,)), ((2, 3), (1, 2, 3)), ((3,), (0, 3))]
)
def test_shapes_that_do_not_fit_are_refused(o: tuple[int, ...], p: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="expected"):
        angles(np.ones(o), np.ones(p))


def test_any_leading_shape() -> None:
    rng = np.random.default_rng(1)
    o, p = unit(rng, 2, 3, 5), unit(rng, 2, 3, 4, 5)
    found = angles(o, p)
    assert found.gamma.shape == found.radians.shape == found.defined.shape == (2, 3)
    for i in np.ndindex(2, 3):
        assert found.gamma[i] == gamma(o[i], p[i])
    assert angles(np.empty((0, 5)), np.empty((0, 4, 5))).gamma.shape == (0,)


# Against exact arithmetic ------------------------------------------------------------------------


@pytest.mark.parametrize("distance", [10.0**-k for k in range(15)])
@pytest.mark.parametrize("n", [1, 3, 10])
@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_nearly_equal_vectors(distance: float, n: int, kind: type) -> None:
    rng = np.random.default_rng(n)
    o: NDArray[Any] = unit(rng, 64).astype(kind)
    p: NDArray[Any] = (o + distance * unit(rng, n, 64)).astype(kind)
    assert gamma(o, p) == pytest.approx(exact(o, p), rel=CLOSE, abs=0)
    assert gamma(o, -7.3 * p) == pytest.approx(exact(o, -7.3 * p), rel=CLOSE, abs=0)


@pytest.mark.parametrize("distance", [10.0**-k for k in range(15)])
def test_far_vectors_whose_sum_is_nearly_parallel(distance: float) -> None:
    rng = np.random.default_rng(3)
    o, away, aside = unit(rng, 3, 64)
    p = np.stack([o + 40 * away, 0.3 * o - 40 * away, distance * aside])
    assert gamma(o, p) == pytest.approx(exact(o, p), rel=CLOSE, abs=0)


@pytest.mark.parametrize("left", [1.0, 1e-3, 1e-6, 1e-9])
def test_sums_that_nearly_cancel(left: float) -> None:
    rng = np.random.default_rng(4)
    o, away, rest = unit(rng, 3, 64)
    p = np.stack([away, -away, left * rest])
    assert gamma(o, p) == pytest.approx(exact(o, p), rel=CLOSE, abs=0)


@pytest.mark.parametrize("of_o", [1e-300, 1e-8, 1.0, 1e300])
@pytest.mark.parametrize("of_p", [1e-300, 1.0, 1e300])
def test_any_scale(of_o: float, of_p: float) -> None:
    rng = np.random.default_rng(5)
    o = unit(rng, 16)
    p = o + 1e-6 * unit(rng, 3, 16)
    o, p = of_o * o, of_p * p
    assert gamma(o, p) == pytest.approx(exact(o, p), rel=CLOSE, abs=0)


VECTORS = arrays.arrays(
    np.float64,
    st.tuples(st.integers(2, 5), st.integers(1, 6)),
    elements=st.floats(-10, 10, allow_subnormal=False),
)


@given(VECTORS)
def test_random_vectors_equal_exact_arithmetic(vectors: Floats) -> None:
    o, p = vectors[0], vectors[1:]
    found = angles(o, p)
    assume(found.defined)
    assert float(found.gamma) == pytest.approx(exact(o, p), rel=CLOSE, abs=1e-25)


# Properties --------------------------------------------------------------------------------------

SEEDS = st.integers(0, 2**32 - 1)


@given(SEEDS, st.integers(1, 12), st.integers(2, 40), st.floats(1e-3, 1))
def test_properties(seed: int, n: int, d: int, distance: float) -> None:
    rng = np.random.default_rng(seed)
    o = unit(rng, d)
    p = o + distance * unit(rng, n, d)
    found = angles(o, p)
    g = float(found.gamma)
    assert 0 <= g <= 1
    assert 0 <= found.radians <= math.pi
    assert g == pytest.approx(math.sin(found.radians), rel=1e-12, abs=1e-15)
    same = pytest.approx(g, rel=1e-9, abs=1e-12)
    assert gamma(0.37 * o, p) == same
    assert gamma(-o, p) == same
    assert gamma(o, 123 * p) == same
    assert gamma(o, rng.permutation(p)) == same
    assert gamma(o, np.tile(p, (3, 1))) == same
    rotation, _ = np.linalg.qr(rng.normal(size=(d, d)))
    assert gamma(o @ rotation, p @ rotation) == same
    total = p.sum(axis=0)
    cosine = o @ total / np.linalg.norm(o) / np.linalg.norm(total)
    assert math.sqrt(max(0, 1 - cosine**2)) == pytest.approx(g, abs=1e-7)


# The length of the vector gamma -----------------------------------------------------------------


def exact_length(original: ArrayLike, perturbed: ArrayLike) -> float:
    """Return |o - S/n|: fractions up to the square root, which has 60 digits."""
    o = [Fraction(float(x)) for x in np.asarray(original)]
    rows = np.asarray(perturbed)
    means = [
        sum((Fraction(float(x)) for x in column), Fraction(0)) / len(rows) for column in rows.T
    ]
    square = sum(((a - b) ** 2 for a, b in zip(o, means, strict=True)), Fraction(0))
    with localcontext() as context:
        context.prec = 60
        return float((Decimal(square.numerator) / Decimal(square.denominator)).sqrt())


def length(original: ArrayLike, perturbed: ArrayLike) -> float:
    return float(gamma_length(original, perturbed))


@pytest.mark.parametrize(
    ("o", "p", "expected"),
    [
        ([1, 0], [[1, 0], [1, 0]], 0.0),
        ([1, 0], [[0, 1]], math.sqrt(2)),
        ([1, 0], [[1, 0], [0, 1]], math.sqrt(0.5)),  # the mean is (1/2, 1/2)
        ([1, 0], [[0, 1], [0, -1]], 1.0),  # a sum of zero, where there is no angle
        ([1, 0], [[-1, 0]], 2.0),
        ([0, 0], [[3, 4], [3, 4]], 5.0),
    ],
)
def test_lengths_by_hand(o: list[float], p: list[list[float]], expected: float) -> None:
    assert length(o, p) == pytest.approx(expected, rel=1e-15, abs=0)


def test_the_length_of_equal_answers_is_zero_exactly() -> None:
    o = unit(np.random.default_rng(0), 384)
    for n in (1, 3, 7, 10, 1000):
        for scale in (1, 1e-7, 1 / 3, 1e5):
            assert length(scale * o, np.tile(scale * o, (n, 1))) == 0


@pytest.mark.parametrize("distance", [10.0**-k for k in range(16)])
@pytest.mark.parametrize("n", [1, 3, 10])
@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_lengths_equal_exact_arithmetic(distance: float, n: int, kind: type) -> None:
    rng = np.random.default_rng(n)
    o: NDArray[Any] = unit(rng, 64).astype(kind)
    p: NDArray[Any] = (o + distance * unit(rng, n, 64)).astype(kind)
    back: NDArray[Any] = 2 * o - p + 1e-3 * distance * unit(rng, n, 64)
    mirrored: NDArray[Any] = np.concatenate([p, back]).astype(kind)
    for others in (p, mirrored, -p):  # what moved to both sides nearly cancels out
        assert length(o, others) == pytest.approx(exact_length(o, others), rel=5e-15, abs=0)


@pytest.mark.parametrize("scale", [1e-300, 1e-8, 1e8, 1e300])
def test_lengths_of_any_scale(scale: float) -> None:
    rng = np.random.default_rng(5)
    o = unit(rng, 16)
    p = o + 1e-6 * unit(rng, 3, 16)
    assert length(scale * o, scale * p) == pytest.approx(
        exact_length(scale * o, scale * p), rel=5e-15, abs=0
    )


@given(SEEDS, st.integers(1, 12), st.integers(2, 40))
def test_of_unit_vectors_the_length_is_gamma_at_least_and_two_at_most(
    seed: int, n: int, d: int
) -> None:
    rng = np.random.default_rng(seed)
    o, p = unit(rng, d), unit(rng, n, d)
    assert gamma(o, p) - 1e-12 <= length(o, p) <= 2 + 1e-12
    stacked = gamma_length(np.stack([o, o]), np.stack([p, -p]))
    assert stacked.tolist() == [length(o, p), length(o, -p)]


def test_lengths_of_shapes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="one perturbed answer"):
        gamma_length(np.ones(3), np.ones((0, 3)))


# Resampling --------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 10, 40])
@pytest.mark.parametrize("distance", [1e-7, 0.1, 2.0])
def test_resampled_gammas_are_those_of_resamples(n: int, distance: float) -> None:
    rng = np.random.default_rng(n)
    o = unit(rng, 24)
    p = o + distance * unit(rng, n, 24)
    found = resample_gammas(o, p, np.random.default_rng(7), 50)
    counts = np.random.default_rng(7).multinomial(n, np.full(n, 1 / n), size=50)
    direct = [gamma(o, np.repeat(p, times, axis=0)) for times in counts]
    assert found == pytest.approx(direct, rel=1e-6, abs=1e-15)


def test_resampled_gammas_where_there_is_no_angle() -> None:
    rng = np.random.default_rng(0)
    assert (resample_gammas([0, 0], [[1, 0]], rng, 5) == 1).all()
    opposed = resample_gammas([1, 0, 0], [[0, 1, 0], [0, -1, 0]], rng, 100)
    assert (opposed == 1).all()
    equal = resample_gammas([3, 4], [[3, 4]] * 5, rng, 100)
    assert (equal == 0).all()


def other_draws(differ: float, n: int) -> tuple[int, float]:
    """Return how many of 200 intervals hold their gamma, and the share that hold the mean one.

    A share of the answers differ, each from all others; the rest are the original answer.
    """
    rng = np.random.default_rng(n)
    o = unit(rng, 96)

    def draw() -> Floats:
        far = rng.random((n, 1)) < differ
        return np.where(far, unit(rng, n, 96), o)

    mean = np.mean([gamma(o, draw()) for _ in range(1000)])
    own = others = 0
    for _ in range(200):
        p = draw()
        low, high = gamma_interval(gamma(o, p), resample_gammas(o, p, rng, 300))
        assert 0 <= low <= high <= 1
        own += bool(low - 1e-12 <= gamma(o, p) <= high + 1e-12)
        others += bool(low <= mean <= high)
    return own, others / 200


@pytest.mark.parametrize(("differ", "n"), [(0.5, 10), (0.5, 30), (0.2, 30), (1.0, 10)])
def test_the_interval_holds_gamma_and_mostly_that_of_other_draws(differ: float, n: int) -> None:
    own, others = other_draws(differ, n)
    assert own == 200
    assert others > 0.85


def test_the_interval_of_equal_answers_and_of_one_has_no_width() -> None:
    assert gamma_interval(0.0, np.zeros(50)) == (0.0, 0.0)
    assert gamma_interval(0.3, np.full(50, 0.3)) == pytest.approx((0.3, 0.3))


# Pairwise distance -------------------------------------------------------------------------------


@given(SEEDS, st.integers(2, 12), st.integers(1, 20))
def test_pairwise_distance_is_the_mean_over_pairs(seed: int, n: int, d: int) -> None:
    v = unit(np.random.default_rng(seed), n, d)
    pairs = [1 - v[i] @ v[j] for i in range(n) for j in range(i)]
    assert pairwise_distance(v) == pytest.approx(np.mean(pairs), abs=1e-12)
    assert 0 <= pairwise_distance(v) <= 2
    assert pairwise_distance(v * np.arange(1, n + 1)[:, None]) == pytest.approx(
        pairwise_distance(v), abs=1e-12
    )


def test_pairwise_distance_at_its_ends() -> None:
    v = unit(np.random.default_rng(0), 384)
    assert pairwise_distance(np.tile(v, (11, 1))) == 0.0
    assert pairwise_distance(v[None]) == 0.0
    assert pairwise_distance(np.stack([v, -v])) == pytest.approx(2)
    assert pairwise_distance([[0, 0], [1, 0], [0, 2]]) == pytest.approx(1)
    near = np.array([[1, 0], [1, 1e-9]])
    assert pairwise_distance(near) == pytest.approx(0.5e-18, rel=1e-9)


# Memory ------------------------------------------------------------------------------------------


def test_memory_does_not_grow_with_the_samples() -> None:
    def peak(samples: int) -> int:
        rng = np.random.default_rng(0)
        o = rng.normal(size=(samples, 96)).astype(np.float32)
        p = rng.normal(size=(samples, 10, 96)).astype(np.float32)
        tracemalloc.start()
        angles(o, p)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    assert peak(4000) < 16e6
    assert peak(4000) < peak(1000) + 1e6
