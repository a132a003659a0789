"""The search along gamma, on a landscape that is known."""

import asyncio
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from trustassay.core.capabilities import Message, Reply
from trustassay.errors import AssessmentError, CallError
from trustassay.metrics.harmonicity.perturbations import synonym_words
from trustassay.papers.harmonicity.ascent import AscentOptions, AscentPoint, climb, find_best

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


def search(
    how: AscentOptions, model: Landscape | None = None
) -> tuple[list[AscentPoint], Landscape]:
    model = model or Landscape()
    told: list[AscentPoint] = []
    points = asyncio.run(climb(START, model, how, told.append))  # type: ignore[arg-type]
    assert told == points
    return points, model


def test_each_kept_point_lies_higher_than_the_one_before() -> None:
    points, model = search(AscentOptions(steps=4, candidates=3, perturbations=4))
    kept = [point for point in points if point.kept]
    angles = [point.angle_degrees for point in kept]
    assert kept[0].prompt == START
    assert len(kept) > 1
    assert angles == sorted(angles)  # type: ignore[type-var]
    assert all(point.prompt.startswith(START) for point in points)
    assert model.asked == len(points) * 5 == (1 + 4 * 3) * 5


def test_the_best_of_a_round_is_kept_and_the_next_starts_there() -> None:
    points, _ = search(AscentOptions(steps=3, candidates=4, perturbations=3))
    current = points[0]
    for step in (1, 2, 3):
        of_step = [point for point in points if point.step == step]
        assert all(point.prompt.startswith(current.prompt) for point in of_step)
        best = max(of_step, key=lambda point: point.angle_degrees or 0)
        rises = (best.angle_degrees or 0) > (current.angle_degrees or 0)
        assert [point.kept for point in of_step] == [rises and p == best for p in of_step]
        current = best if rises else current


class Falling(Landscape):
    """A model whose answers wobble less and less the longer the prompt is."""

    async def embed(self, text: str) -> np.ndarray[Any, Any]:
        angle = np.deg2rad(60 * float(len(text) % 2) / len(text))
        return np.array([np.cos(angle), np.sin(angle)], dtype=np.float32)


@pytest.mark.parametrize("descend", [False, True])
def test_the_extremum_of_a_round_is_kept_also_where_it_is_worse(descend: bool) -> None:
    how = AscentOptions(
        steps=6, candidates=3, perturbations=3, step_rule="extremum", descend=descend
    )
    model = Landscape() if descend else Falling()
    points, _ = search(how, model)
    sign = -1 if descend else 1
    current, fell = points[0], 0
    for step in range(1, 7):
        of_step = [point for point in points if point.step == step]
        assert all(point.prompt.startswith(current.prompt) for point in of_step)
        best = max(of_step, key=lambda point: sign * (point.angle_degrees or 0))
        assert [point.kept for point in of_step] == [point is best for point in of_step]
        fell += sign * (best.angle_degrees or 0) < sign * (current.angle_degrees or 0)
        current = best
    assert fell > 0
    best = find_best(points, how)
    assert sign * (best.angle_degrees or 0) == max(sign * (p.angle_degrees or 0) for p in points)
    assert best is not current
    uphill, _ = search(
        AscentOptions(steps=6, candidates=3, perturbations=3, descend=descend),
        Landscape() if descend else Falling(),
    )
    assert find_best(uphill, how) == [point for point in uphill if point.kept][-1]


def test_candidates_from_the_ball_are_the_prompts_behind_gamma() -> None:
    class Noting(Landscape):
        def __init__(self) -> None:
            super().__init__()
            self.prompts: list[Any] = []

        async def chat(self, text: str | Sequence[Message], /, **_: Any) -> Reply:
            self.prompts.append(text)
            return await super().chat(text)

    model = Noting()
    how = AscentOptions(
        steps=3,
        candidates=4,
        perturbations=4,
        perturbation="codes",
        candidate="ball",
        step_rule="extremum",
        range=4095,
    )
    points, _ = search(how, model)
    # N candidates with N + 1 answers each, of which their own is known from the step before.
    assert model.asked == 5 + 3 * 4 * 5
    assert len(set(model.prompts)) == 5 + 3 * 4 * 4
    assert [point.prompt for point in points[1:5]] == model.prompts[1:5]


def test_a_search_in_the_ball_ends_where_it_stays() -> None:
    how = AscentOptions(steps=5, candidates=2, perturbations=3, candidate="ball")
    points, _ = search(how, Landscape(flat=True))
    assert [point.step for point in points] == [0, 1, 1]


@pytest.mark.parametrize(("candidate", "long"), [("codes", 2), ("unicode", 2), ("control", 1)])
def test_length_and_range_hold_for_candidates_and_ball(candidate: str, long: int) -> None:
    asked = []

    class Noting(Landscape):
        async def chat(self, text: str | Sequence[Message], /, **_: Any) -> Reply:
            asked.append(str(text).removeprefix(START))
            return Reply(str(text))

    how = AscentOptions(
        steps=1, candidates=5, perturbation="codes", candidate=candidate, length=1, range=300
    )
    points, _ = search(how, Noting())
    assert {len(point.prompt) - len(START) for point in points[1:]} == {long}
    assert {len(text) for text in asked} <= {0, 2, long, long + 2}
    drawn = {c for text in asked for c in text if candidate == "codes"}
    assert not drawn or "\x7f" < max(drawn) <= chr(300)


def test_words_go_by_the_length() -> None:
    points, _ = search(
        AscentOptions(steps=1, candidates=6, perturbations=1, candidate="words", length=1)
    )
    added = [point.prompt.removeprefix(START + " ") for point in points[1:]]
    assert set(added) <= set(synonym_words())


def test_descent_goes_down() -> None:
    points, _ = search(AscentOptions(steps=3, candidates=4, perturbations=3, descend=True))
    kept = [point.angle_degrees for point in points if point.kept]
    assert kept == sorted(kept, reverse=True)  # type: ignore[type-var]


def test_where_nothing_moves_the_start_stays() -> None:
    points, _ = search(AscentOptions(steps=2, candidates=2, perturbations=2), Landscape(flat=True))
    assert [point.kept for point in points] == [True, False, False, False, False]
    assert {point.gamma for point in points} == {0.0}


def test_the_same_seed_gives_the_same_points_and_another_gives_others() -> None:
    how = AscentOptions(steps=2, candidates=3, perturbations=3)
    assert search(how)[0] == search(how)[0]
    assert (
        search(how)[0] != search(AscentOptions(steps=2, candidates=3, perturbations=3, seed=1))[0]
    )


def test_more_steps_begin_with_the_same_points() -> None:
    short = search(AscentOptions(steps=1, candidates=3, perturbations=3))[0]
    long = search(AscentOptions(steps=3, candidates=3, perturbations=3))[0]
    assert long[: len(short)] == short


@pytest.mark.parametrize("most", [4, 7, 8, 11, 20, 39, 40, 41])
def test_a_budget_of_calls_is_never_exceeded(most: int) -> None:
    points, model = search(AscentOptions(steps=5, candidates=3, perturbations=3, max_calls=most))
    assert model.asked <= most
    assert len(points) == min(most // 4, 16)


def test_candidates_that_are_refused_are_told_and_never_kept() -> None:
    model = Landscape(refuse="it. ")
    how = AscentOptions(
        steps=2, candidates=3, perturbations=3, candidate="words", perturbation="control"
    )
    points, _ = search(how, model)
    assert [point.error for point in points] == [None] + ["no such characters"] * 6
    assert [point.kept for point in points] == [True] + [False] * 6


def test_a_start_that_cannot_be_measured_is_an_error() -> None:
    with pytest.raises(CallError, match="no such characters"):
        search(AscentOptions(), Landscape(refuse="Say"))


def test_a_start_without_an_angle_is_an_error() -> None:
    class Zero(Landscape):
        async def embed(self, text: str) -> np.ndarray[Any, Any]:
            return np.zeros(2)

    with pytest.raises(AssessmentError, match="cancel out"):
        search(AscentOptions(), Zero())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"steps": 0}, "steps"),
        ({"max_calls": 10}, "at least 11, the calls for one gamma"),
        ({"perturbation": "unicod"}, "did you mean"),
        ({"candidate": "wrds"}, "unknown perturbation"),
        ({"step_rule": "uphil"}, "did you mean uphill"),
        ({"length": 0}, "length: expected 1 or more"),
        ({"range": 300}, "range: applies to the perturbation codes, not to unicode, unicode"),
        ({"candidate": "ball", "candidates": 11}, "ball has only 10 prompts"),
    ],
)
def test_options_that_cannot_be(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        AscentOptions(**options)
