"""The search along gamma, on a landscape that is known."""

import asyncio
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from trustassay.capabilities import Message, Reply
from trustassay.errors import AssessmentError, CallError
from trustassay.metrics.harmonicity.ascent import Ascent, Point, climb

START = "Say it."


class Landscape:
    """A model whose answers wobble the more, the longer the prompt is; counts what it is asked."""

    def __init__(self, *, flat: bool = False, refuse: str = "") -> None:
        self.flat, self.refuse, self.asked = flat, refuse, 0

    async def chat(self, text: str | Sequence[Message], /, **_: Any) -> Reply:
        assert isinstance(text, str)
        self.asked += 1
        if self.refuse and self.refuse in text:
            raise CallError("no such characters", "refused")
        return Reply("same" if self.flat else text)

    async def embed(self, text: str) -> np.ndarray[Any, Any]:
        """Return a direction that turns with the length of the text, a degree a character."""
        angle = np.deg2rad(float(len(text) ** 2) / 40) if text != "same" else 0.0
        return np.array([np.cos(angle), np.sin(angle)], dtype=np.float32)


def search(how: Ascent, model: Landscape | None = None) -> tuple[list[Point], Landscape]:
    model = model or Landscape()
    told: list[Point] = []
    points = asyncio.run(climb(START, model, how, told.append))  # type: ignore[arg-type]
    assert told == points
    return points, model


def test_each_kept_point_lies_higher_than_the_one_before() -> None:
    points, model = search(Ascent(steps=4, candidates=3, perturbations=4))
    kept = [point for point in points if point.kept]
    angles = [point.angle_degrees for point in kept]
    assert kept[0].prompt == START
    assert len(kept) > 1
    assert angles == sorted(angles)  # type: ignore[type-var]
    assert all(point.prompt.startswith(START) for point in points)
    assert model.asked == len(points) * 5 == (1 + 4 * 3) * 5


def test_the_best_of_a_round_is_kept_and_the_next_starts_there() -> None:
    points, _ = search(Ascent(steps=3, candidates=4, perturbations=3))
    current = points[0]
    for step in (1, 2, 3):
        of_step = [point for point in points if point.step == step]
        assert all(point.prompt.startswith(current.prompt) for point in of_step)
        best = max(of_step, key=lambda point: point.angle_degrees or 0)
        rises = (best.angle_degrees or 0) > (current.angle_degrees or 0)
        assert [point.kept for point in of_step] == [rises and p == best for p in of_step]
        current = best if rises else current


def test_descent_goes_down() -> None:
    points, _ = search(Ascent(steps=3, candidates=4, perturbations=3, descend=True))
    kept = [point.angle_degrees for point in points if point.kept]
    assert kept == sorted(kept, reverse=True)  # type: ignore[type-var]


def test_where_nothing_moves_the_start_stays() -> None:
    points, _ = search(Ascent(steps=2, candidates=2, perturbations=2), Landscape(flat=True))
    assert [point.kept for point in points] == [True, False, False, False, False]
    assert {point.gamma for point in points} == {0.0}


def test_the_same_seed_gives_the_same_points_and_another_gives_others() -> None:
    how = Ascent(steps=2, candidates=3, perturbations=3)
    assert search(how)[0] == search(how)[0]
    assert search(how)[0] != search(Ascent(steps=2, candidates=3, perturbations=3, seed=1))[0]


def test_more_steps_begin_with_the_same_points() -> None:
    short = search(Ascent(steps=1, candidates=3, perturbations=3))[0]
    long = search(Ascent(steps=3, candidates=3, perturbations=3))[0]
    assert long[: len(short)] == short


@pytest.mark.parametrize("most", [4, 7, 8, 11, 20, 39, 40, 41])
def test_a_budget_of_calls_is_never_exceeded(most: int) -> None:
    points, model = search(Ascent(steps=5, candidates=3, perturbations=3, max_calls=most))
    assert model.asked <= most
    assert len(points) == min(most // 4, 16)


def test_candidates_that_are_refused_are_told_and_never_kept() -> None:
    model = Landscape(refuse="it. ")
    how = Ascent(steps=2, candidates=3, perturbations=3, candidate="words", perturbation="control")
    points, _ = search(how, model)
    assert [point.error for point in points] == [None] + ["no such characters"] * 6
    assert [point.kept for point in points] == [True] + [False] * 6


def test_a_start_that_cannot_be_measured_is_an_error() -> None:
    with pytest.raises(CallError, match="no such characters"):
        search(Ascent(), Landscape(refuse="Say"))


def test_a_start_without_an_angle_is_an_error() -> None:
    class Zero(Landscape):
        async def embed(self, text: str) -> np.ndarray[Any, Any]:
            return np.zeros(2)

    with pytest.raises(AssessmentError, match="cancel out"):
        search(Ascent(), Zero())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"steps": 0}, "steps"),
        ({"max_calls": 10}, "one gamma takes 11"),
        ({"perturbation": "unicod"}, "did you mean"),
        ({"candidate": "wrds"}, "unknown perturbation"),
    ],
)
def test_options_that_cannot_be(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Ascent(**options)
