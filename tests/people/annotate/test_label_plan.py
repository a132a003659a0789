"""Rating the answers of a plan of ``label``, in its order, while the plan grows."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.people.annotate.helpers import MODELS, answers, session
from tests.support import jsonl
from trustassay.input.records import InputError
from trustassay.metrics.judge import read_rubric
from trustassay.people.annotate.project import (
    AnnotateOptions,
    AnnotationProject,
    divide_growing_pages,
    open_project,
)
from trustassay.people.label.plan import PlanBatch, PlannedDraw, append_lines, read_plan

QUESTIONS = 12


def drawn(*questions: int) -> PlanBatch:
    draws = [
        PlannedDraw([(f"hidden-{q}-{model}", model) for model in MODELS], 0.1) for q in questions
    ]
    return PlanBatch([], draws)


START = {
    "runs": ["one"],
    "input": "x",
    "unit": "question",
    "chances": "unequal",
    "scores": [],
    "models": [],
    "seed": 0,
}


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    path = tmp_path / "plan.jsonl"
    append_lines(path, START, drawn(7, 2, 9), 1)
    return path


def project(
    folder: Path, plan: Path, raters: Sequence[str] = ("anna",), **options: Any
) -> AnnotationProject:
    source = jsonl(folder / "answers.jsonl", answers(QUESTIONS))
    made = AnnotateOptions(list(raters), [read_rubric("answer")], plan=read_plan(plan), **options)
    return open_project(source, made)


def asked(project: AnnotationProject, rater: str = "anna") -> list[str]:
    return [project.items[step.item].id for step in project.steps[rater]]


def test_the_answers_of_the_plan_come_in_its_order(tmp_path: Path, plan: Path) -> None:
    found = asked(project(tmp_path, plan))
    assert found == [f"hidden-{q}-{model}" for q in (7, 2, 9) for model in MODELS]


def test_answers_to_a_question_can_be_shown_together(tmp_path: Path, plan: Path) -> None:
    made = project(tmp_path, plan, together=True)
    assert [step.page for step in made.steps["anna"]] == [0, 0, 1, 1, 2, 2]
    assert sorted(asked(made)[:2]) == [f"hidden-7-{model}" for model in MODELS]


def test_a_plan_that_grew_goes_on_with_the_ratings(tmp_path: Path, plan: Path) -> None:
    out = tmp_path / "ratings.jsonl"
    before = project(tmp_path, plan, ("anna", "bela"), double=0.5)
    with session(before, out) as open_:
        for step in range(len(before.steps["anna"])):
            asyncio.run(open_.rate("anna", step, "4"))
    append_lines(plan, None, drawn(0, 1, 3, 4), 2)
    after = project(tmp_path, plan, ("anna", "bela"), double=0.5)
    for rater in ("anna", "bela"):
        assert asked(after, rater)[: len(asked(before, rater))] == asked(before, rater)
    with session(after, out) as open_:
        anna = open_.raters["anna"]
        assert anna.rated == len(before.steps["anna"])
        assert anna.current == len(before.steps["anna"])
    start = json.loads(out.read_text().splitlines()[0])
    assert start["chances"] == "unequal"
    assert start["plan"] == read_plan(plan).name


def test_ratings_of_another_plan_are_refused(tmp_path: Path, plan: Path) -> None:
    out = tmp_path / "ratings.jsonl"
    with session(project(tmp_path, plan), out):
        pass
    other = tmp_path / "other.jsonl"
    append_lines(other, {**START, "seed": 1}, drawn(1), 1)
    with (
        pytest.raises(InputError, match="was made with other options: plan"),
        session(project(tmp_path, other), out),
    ):
        pass


def test_a_plan_of_other_answers(tmp_path: Path) -> None:
    path = tmp_path / "plan.jsonl"
    append_lines(path, START, PlanBatch([], [PlannedDraw([("gone", "")], 1.0)]), 1)
    with pytest.raises(InputError, match="names no answer of"):
        project(tmp_path, path)


@pytest.mark.parametrize("option", [{"again": 0.1}, {"per_group": 2}])
def test_a_plan_says_what_is_rated(tmp_path: Path, plan: Path, option: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="the plan fixes what is rated, and in which order"):
        project(tmp_path, plan, **option)


def test_who_rates_a_page_does_not_depend_on_later_ones() -> None:
    few = divide_growing_pages(10, ["a", "b", "c"], 0.3, 5)
    many = divide_growing_pages(40, ["a", "b", "c"], 0.3, 5)
    for rater, pages in few.items():
        assert many[rater][: len(pages)] == pages
    assert set().union(*many.values()) == set(range(40))
    assert sum(map(len, many.values())) > 40
    alone = divide_growing_pages(40, ["a", "b"], 0.0, 5)
    assert sum(map(len, alone.values())) == 40
