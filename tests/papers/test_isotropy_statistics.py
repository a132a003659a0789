"""Isotropy: clouds whose shape is known."""

from __future__ import annotations

import numpy as np
import pytest

from trustassay.papers.harmonicity.isotropy import angles_degrees, isotropy, spectrum


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def unit(vectors: np.ndarray) -> np.ndarray:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=-1, keepdims=True))


def test_angles_by_hand() -> None:
    east, north = [1.0, 0.0], [0.0, 2.0]
    assert angles_degrees(east, east) == 0.0
    assert angles_degrees(east, north) == pytest.approx(90)
    assert angles_degrees(east, [-3.0, 0.0]) == pytest.approx(180)
    assert angles_degrees(east, [1.0, 1e-9]) == pytest.approx(np.degrees(1e-9), rel=1e-12)


def test_a_spectrum_by_hand() -> None:
    found = spectrum([[2.0, 0.0], [0.0, 1.0]])  # eigenvalues 4 and 1
    assert found.shares == pytest.approx([0.8, 0.2])
    assert found.largest == pytest.approx(0.8)
    assert found.dimensions == pytest.approx(25 / 17)
    with pytest.raises(ValueError, match="not zero"):
        spectrum([[0.0, 0.0]])


def test_a_cross_about_a_text_is_isotropic() -> None:
    # Four versions at the ends of a cross around the pole: their mean is the pole itself.
    angle = np.radians(10)
    ring = [[np.sin(angle), 0], [-np.sin(angle), 0], [0, np.sin(angle)], [0, -np.sin(angle)]]
    versions = [[*point, np.cos(angle)] for point in ring]
    found = isotropy([[0, 0, 1]] * 3, [versions] * 3, rng())
    assert found.angle.value == pytest.approx(10)
    assert found.cone.value == pytest.approx(0, abs=1e-6)
    assert found.largest_cone == pytest.approx(0, abs=1e-6)
    assert found.unchanged == (0.0, None)
    shape = found.shape
    assert shape
    assert shape.displacement.value == pytest.approx(np.sin(angle / 2))  # all lean down a little
    assert shape.dimensions.value == pytest.approx(2, abs=0.05)


def test_the_cosines_of_the_authors_by_hand() -> None:
    # From (1, 0) two versions lie at 0 and 60 degrees: cosines 1 and 1/2; their mean lies at 30.
    # From the other text both lie at 90.
    sixty = [0.5, np.sqrt(0.75)]
    found = isotropy([[1, 0], [1, 0]], [[[1, 0], sixty], [[0, 1], [0, 1]]], rng()).cosines
    assert found.mean.value == pytest.approx((0.75 + 0) / 2)
    assert found.deviation.value == pytest.approx((0.25 + 0) / 2)
    assert found.of_mean.value == pytest.approx((np.sqrt(0.75) + 0) / 2)
    assert found.below.value == pytest.approx((np.sqrt(0.75) - 0.75) / 2)
    assert found.error == pytest.approx(0.375)  # 0.75 and 0: deviation 0.75/sqrt(2), over sqrt(2)
    assert isotropy([[1, 0]], [[sixty]], rng()).cosines.error is None


def test_cosines_equal_those_of_the_vectors() -> None:
    o = rng().normal(size=(7, 12))
    p = o[:, None] + 0.4 * rng(1).normal(size=(7, 5, 12))
    o, p = unit(o), unit(p)
    cosines = np.einsum("td,tnd->tn", o, p)
    of_mean = np.einsum("td,td->t", o, unit(p.mean(axis=1)))
    found = isotropy(o, p, rng()).cosines
    assert found.mean.value == pytest.approx(cosines.mean())
    assert found.deviation.value == pytest.approx(cosines.std(axis=1).mean())
    assert found.of_mean.value == pytest.approx(of_mean.mean())
    assert found.below.value == pytest.approx((of_mean - cosines.mean(axis=1)).mean())
    assert found.error == pytest.approx(cosines.mean(axis=1).std(ddof=1) / np.sqrt(7))


def test_all_in_one_direction() -> None:
    originals = unit(rng().normal(size=(6, 8)))
    moved = unit(originals + 0.5 * np.eye(8)[0])
    found = isotropy(originals, np.repeat(moved[:, None], 4, axis=1), rng())
    assert found.shape
    assert found.cloud_shape
    assert found.shape.cosine
    assert found.shape.displacement.value == pytest.approx(1)
    assert found.shape.cosine.value == pytest.approx(1)
    assert found.cone.value == pytest.approx(found.angle.value)
    assert found.cloud_shape.displacement.value == pytest.approx(0.5, abs=0.12)  # 1 / sqrt(4)


def test_a_random_cloud_looks_as_one_of_its_size_should() -> None:
    originals = unit(rng(1).normal(size=(60, 32)))
    versions = unit(originals[:, None] + 0.05 * rng(2).normal(size=(60, 10, 32)))
    found = isotropy(originals, versions, rng(3))
    shape, expected = found.shape, found.cloud_shape
    assert shape
    assert expected
    assert shape.cosine
    assert expected.cosine
    assert shape.cosine.value == pytest.approx(expected.cosine.value, abs=0.01)
    assert shape.displacement.value == pytest.approx(expected.displacement.value, abs=0.01)
    assert shape.dimensions.value == pytest.approx(expected.dimensions.value, rel=0.1)
    assert shape.largest.value == pytest.approx(expected.largest.value, rel=0.3)
    assert shape.cosine.interval
    assert shape.cosine.interval[0] < shape.cosine.value < shape.cosine.interval[1]
    assert found.angle.interval
    assert found.angle.interval[0] < found.angle.value < found.angle.interval[1]
    assert shape.largest.interval is None
    assert shape.spectrum.shares.sum() == pytest.approx(1)


def test_what_does_not_move_has_no_direction() -> None:
    originals = unit(rng().normal(size=(5, 16)))
    found = isotropy(originals, np.repeat(originals[:, None], 3, axis=1), rng())
    assert found.unchanged == (1.0, None)
    assert found.angle.value == found.cone.value == found.largest_cone == 0.0
    assert (found.shape, found.cloud_shape) == (None, None)
    half = np.repeat(originals[:, None], 2, axis=1)
    half[:, 1] = unit(half[:, 1] + 0.1)
    assert isotropy(originals, half, rng()).unchanged.value == 0.5


def test_angles_have_an_interval_from_40_texts_that_moved_on() -> None:
    originals = unit(rng().normal(size=(60, 16)))
    versions = np.repeat(originals[:, None], 3, axis=1)
    for moved, there in ((39, False), (40, True)):
        versions[:moved] = unit(versions[:moved] + 0.05 * rng(2).normal(size=(moved, 3, 16)))
        found = isotropy(originals, versions, rng())
        assert [one.interval is not None for one in (found.angle, found.cone)] == [there] * 2
        assert found.unchanged.interval is not None


def test_one_text_and_one_perturbation() -> None:
    found = isotropy([[1.0, 0.0]], [[[0.0, 1.0]]], rng())
    assert found.angle.value == pytest.approx(90)
    assert found.angle.interval is None
    assert found.shape
    assert found.shape.cosine is None
    assert found.shape.displacement.value == pytest.approx(1)
    assert found.shape.dimensions == (1.0, None)


@pytest.mark.parametrize("shapes", [((2, 3), (2, 4)), ((2, 3), (1, 5, 3)), ((0, 3), (0, 1, 3))])
def test_shapes_that_do_not_fit(shapes) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match=r"expected \(t, d\)"):
        isotropy(np.zeros(shapes[0]), np.zeros(shapes[1]), rng())
