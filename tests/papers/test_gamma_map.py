"""The plane of the Gamma map, and its drawing."""

from __future__ import annotations

import numpy as np
import pytest

from trustassay.papers.harmonicity.gamma_map import draw_gamma_map, project_prompts


def test_prompts_lie_on_the_axes_of_largest_variance() -> None:
    # By hand: variance 8 across, 2 upwards, none along the third axis.
    vectors = [[2, 0, 5], [-2, 0, 5], [0, 1, 5], [0, -1, 5]]
    plane = project_prompts(vectors)
    assert plane.places == pytest.approx(np.array([[2, 0], [-2, 0], [0, 1], [0, -1]]))
    assert plane.shares == pytest.approx((0.8, 0.2))


def test_the_plane_is_that_of_the_covariance_matrix() -> None:
    vectors = np.random.default_rng(1).normal(size=(20, 6)) * [5, 4, 3, 2, 1, 1]
    plane = project_prompts(vectors)
    values, axes = np.linalg.eigh(np.cov(vectors.T, bias=True))
    expected = (vectors - vectors.mean(axis=0)) @ axes[:, [-1, -2]]
    assert np.abs(plane.places) == pytest.approx(np.abs(expected))
    assert plane.shares == pytest.approx(tuple(values[[-1, -2]] / values.sum()))


def test_the_order_of_prompts_does_not_turn_the_map() -> None:
    vectors = np.random.default_rng(2).normal(size=(9, 4))
    forth, back = project_prompts(vectors), project_prompts(vectors[::-1])
    assert back.places[::-1] == pytest.approx(forth.places)


def test_equal_prompts_are_one_place() -> None:
    plane = project_prompts(np.ones((4, 3)))
    assert plane.places == pytest.approx(np.zeros((4, 2)))
    assert plane.shares == (0.0, 0.0)


def test_two_prompts_have_no_plane() -> None:
    with pytest.raises(ValueError, match="3 or more"):
        project_prompts(np.eye(2))


def test_a_dot_is_as_full_as_its_gamma_and_names_its_prompt() -> None:
    places = np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 0.0]])
    prompts = ["calm", "<b>wild</b>", "between\u202e"]
    drawing = draw_gamma_map(places, [0.0, 0.5, 0.25], prompts, places, 0.5).drawing
    assert [part.split('"')[0] for part in drawing.split('fill-opacity="')[1:]] == [
        "0.00",
        "0.50",
        "1.00",
    ]
    assert "gamma 0.50: &lt;b&gt;wild&lt;/b&gt;" in drawing
    assert "<b>" not in drawing
    assert "\u202e" not in drawing


def test_prompts_of_one_place_are_drawn_inside_of_the_frame() -> None:
    places = np.zeros((3, 2))
    drawing = draw_gamma_map(places, [0.0, 0.0, 0.0], ["a", "b", "c"], places, 1.0).drawing
    assert drawing.count("<circle") == 3
    assert "nan" not in drawing
