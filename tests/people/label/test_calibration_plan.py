"""Which answers a plan for calibrate draws, and which labels of it count."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trustassay.input.records import InputError
from trustassay.people.label import calibration_plan as plans
from trustassay.people.label.plan import (
    AnswerKey,
    LabelPlan,
    PlanBatch,
    PlannedDraw,
    append_lines,
    read_plan,
)
from trustassay.people.study.answers import StudyAnswer, StudyAnswers
from trustassay.statistics.resampling import generator

Wrong = dict[AnswerKey, bool]


def make_design(*looks: int, **more: Any) -> plans.CalibrationDesign:
    values = {
        "at_most": 0.1, "confidence": 0.95, "hope": 0.5, "is_lower_better": False, "looks": looks,
        "sample_upper": tuple(n // 2 for n in looks), "above": 0.4,
        "upper_answers": 1000, "lower_answers": 1000,
    }  # fmt: skip
    return plans.CalibrationDesign(**{**values, **more})


def make_order(design: plans.CalibrationDesign) -> plans.PlanOrder:
    upper = [(f"u{n}", "") for n in range(design.upper_answers)]
    lower = [(f"l{n}", "") for n in range(design.lower_answers)]
    return plans.PlanOrder(upper, lower, [], design.above)


def make_plan(design: plans.CalibrationDesign, draws: list[PlannedDraw]) -> LabelPlan:
    start = {"purpose": plans.CALIBRATE, **design.to_dict()}
    return LabelPlan(Path("plan.jsonl"), start, [PlanBatch([], draws)])


def follow(
    design: plans.CalibrationDesign,
    is_wrong: Callable[[AnswerKey], bool],
    batches: int = 99,
) -> tuple[list[PlannedDraw], Wrong]:
    """Rate as many batches of a plan."""
    draws: list[PlannedDraw] = []
    wrong: Wrong = {}
    for _ in range(batches):
        batch = plans.draw_next(design, make_order(design), draws, wrong)
        assert not any(draw.answers[0] in wrong for draw in batch)
        draws += batch
        # Nothing more is drawn while an answer waits.
        if batch:
            assert not plans.draw_next(design, make_order(design), draws, wrong)
        wrong |= {draw.answers[0]: is_wrong(draw.answers[0]) for draw in batch}
    return draws, wrong


def count(draws: list[PlannedDraw]) -> tuple[int, int]:
    parts = [draw.part for draw in draws]
    return parts.count("upper"), parts.count("lower")


def test_few_errors_in_the_upper_half_open_the_lower_one() -> None:
    design = make_design(200)
    draws, wrong = follow(design, lambda _: False, 1)
    assert count(draws) == (100, 0)
    assert plans.last_look(make_plan(design, draws), wrong) is None
    draws, wrong = follow(design, lambda _: False)
    assert count(draws) == (100, 100)
    look = plans.last_look(make_plan(design, draws), wrong)
    assert look is not None
    assert (look.number, look.of, len(look.answers), look.above) == (1, 1, 200, -math.inf)
    assert look.delta == pytest.approx(0.025)
    assert plans.find_stage(design, draws, wrong) is None


def test_with_many_errors_nothing_below_the_upper_half_is_accepted() -> None:
    design = make_design(200)
    draws, wrong = follow(design, lambda key: key[0].endswith("3"))
    assert count(draws) == (200, 0)
    look = plans.last_look(make_plan(design, draws), wrong)
    assert look is not None
    assert (len(look.answers), look.above) == (200, 0.4)
    assert look.delta == pytest.approx(0.025)


@pytest.mark.parametrize(("errors", "lower"), [(3, 100), (4, 0)])
def test_the_errors_that_decide(errors: int, lower: int) -> None:
    bad = {f"u{n}" for n in range(errors)}
    draws, _ = follow(make_design(200), lambda key: key[0] in bad)
    assert count(draws)[1] == lower


def test_several_looks_share_delta_and_double_the_labels() -> None:
    design = make_design(50, 100, 200)
    # So few labels cannot pass 2.5 % / 3 at the first look, whatever they say.
    draws, wrong = follow(design, lambda key: key == ("u0", ""), 2)
    first = plans.last_look(make_plan(design, draws), wrong)
    assert first is not None
    assert (first.number, first.above, len(first.answers)) == (1, 0.4, 50)
    assert first.delta == pytest.approx(0.05 / 6)
    stood = [first]
    while batch := plans.draw_next(design, make_order(design), draws, wrong):
        draws += batch
        # While the next look is rated, the last one stands.
        assert plans.last_look(make_plan(design, draws), wrong) == stood[-1]
        wrong |= {draw.answers[0]: False for draw in batch}
        look = plans.last_look(make_plan(design, draws), wrong)
        assert look is not None
        stood.append(look)
    look = stood[-1]
    assert (look.number, look.of, look.above, len(look.answers)) == (3, 3, -math.inf, 200)
    assert count(draws) == (100, 100)


def test_a_changed_rating_reopens_no_decision() -> None:
    design = make_design(200)
    draws, wrong = follow(design, lambda _: False)
    changed = {key: key[0].startswith("u") for key in wrong}
    assert plans.find_stage(design, draws, changed) is None
    look = plans.last_look(make_plan(design, draws), changed)
    assert look is not None and look.above == -math.inf
    # A rating that was taken back makes the look incomplete again.
    del changed[draws[0].answers[0]]
    assert plans.last_look(make_plan(design, draws), changed) is None


def test_a_random_order_has_one_walk_a_look() -> None:
    design = make_design(50, 100, at_most=0.2, sample_upper=(50, 100), lower_answers=0, above=None)
    draws, wrong = follow(design, lambda _: True)
    assert count(draws) == (100, 0)
    look = plans.last_look(make_plan(design, draws), wrong)
    assert look is not None
    assert (look.number, look.above) == (2, -math.inf)
    assert look.delta == pytest.approx(0.025)


@settings(max_examples=60, deadline=None)
@given(
    looks=st.sampled_from([(100,), (200,), (50, 100), (50, 100, 200)]),
    answers=st.integers(200, 900),
    share=st.floats(0.1, 0.9),
    rate=st.sampled_from([0.0, 0.02, 0.05, 0.2]),
    seed=st.integers(0, 99),
)
def test_every_plan_ends_with_a_sample_that_is_even_or_of_the_upper_part(
    looks: tuple[int, ...], answers: int, share: float, rate: float, seed: int
) -> None:
    of_upper = max(1, round(share * answers))
    design = make_design(
        *looks,
        sample_upper=tuple(
            max(n - (answers - of_upper), min(of_upper, int(n * share))) for n in looks
        ),
        upper_answers=of_upper,
        lower_answers=answers - of_upper,
    )
    rng = np.random.default_rng(seed)
    draws, wrong = follow(design, lambda _: bool(rng.random() < rate))
    # Each part is drawn in the fixed order, without gaps.
    keys = [draw.answers[0][0] for draw in draws]
    for letter in "ul":
        drawn = [int(key[1:]) for key in keys if key[0] == letter]
        assert drawn == list(range(len(drawn)))
    assert plans.find_stage(design, draws, wrong) is None
    look = plans.last_look(make_plan(design, draws), wrong)
    assert look is not None
    assert look.number == len(looks)
    in_upper = sum(key[0].startswith("u") for key in look.answers)
    if look.above == -math.inf:
        assert len(look.answers) == looks[-1]
        assert in_upper == design.sample_upper[-1]
    else:
        assert in_upper == len(look.answers) == min(looks[-1], of_upper)


# the order


def make_answers(scores: list[float], questions: list[str] | None = None) -> StudyAnswers:
    rows = [
        StudyAnswer(f"a{n}", "", questions[n] if questions else f"q{n}", 3, "")
        for n in range(len(scores))
    ]
    return StudyAnswers(rows, [], [], {}, {})


def draw(scores: list[float], hope: float = 0.5, questions: list[str] | None = None) -> Any:
    values = np.array(scores)
    return plans.draw_order(make_answers(scores, questions), values, hope, 0)


def test_the_upper_half_has_the_best_scores_in_random_order() -> None:
    order = draw([float(n) for n in range(100)])
    assert {key[0] for key in order.upper} == {f"a{n}" for n in range(50, 100)}
    assert (order.above, order.count_upper(100), len(order.lower)) == (49.0, 50, 50)
    assert list(order.upper) != sorted(order.upper)
    assert order == draw([float(n) for n in range(100)])


def test_equal_scores_stay_together() -> None:
    order = draw([1.0] * 60 + [0.0] * 40)
    assert (len(order.upper), order.count_upper(100), order.above) == (60, 60, 0.0)
    order = draw([1.0] * 10)
    assert (len(order.upper), order.count_upper(5), order.above) == (10, 5, None)


def test_the_first_answers_in_the_order_are_a_random_sample() -> None:
    scores = [float(n) for n in range(100)]
    order = draw(scores)
    # The sample of 40 is the first 40 of one shuffle of all answers, wherever their scores are.
    upper = order.count_upper(40)
    sample = {key[0] for key in (*order.upper[:upper], *order.lower[: 40 - upper])}
    shuffled = generator(0, "label", plans.CALIBRATE).permutation(100).tolist()
    assert sample == {f"a{n}" for n in shuffled[:40]}


def test_one_answer_a_question_and_none_without_a_score() -> None:
    order = draw([0.1, 0.9, 0.2, math.nan, 0.8], questions=["a", "a", "b", "c", "d"])
    keys = [key[0] for key in (*order.upper, *order.lower)]
    assert len(keys) == 3
    assert "a3" not in keys
    assert len({"a0", "a1"} & set(keys)) == 1
    assert order.count_upper(3) == len(order.upper)


# the file


def test_the_file_says_part_and_look(tmp_path: Path) -> None:
    path = tmp_path / "plan.jsonl"
    design = make_design(200)
    start = {
        "purpose": "calibrate", "input": "x", "unit": "answer", "chances": "unequal",
        "scores": ["s"], "models": [], "seed": 0, **design.to_dict(),
    }  # fmt: skip
    batch = plans.draw_next(design, make_order(design), [], {})
    append_lines(path, start, PlanBatch([], batch), 1)
    assert plans.CalibrationDesign.of(read_plan(path)) == design
    assert read_plan(path).draws == batch
    assert (batch[0].part, batch[0].look, batch[0].probability) == ("upper", 1, 1 / 1000)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"purpose": ""}, "the plan is for estimates"),
        ({"looks": []}, "damaged"),
        ({"at_most": "x"}, "damaged"),
        ({"upper_answers": None}, "damaged"),
        ({"sample_upper": [300]}, "damaged"),
        ({"sample_upper": []}, "damaged"),
    ],
)
def test_other_plans_are_refused(more: dict[str, Any], message: str) -> None:
    start = {"purpose": "calibrate", **make_design(200).to_dict(), **more}
    with pytest.raises(InputError, match=message):
        plans.last_look(LabelPlan(Path("p"), start, []), {})


def test_a_plan_of_other_scores_is_refused() -> None:
    answers, scores = make_answers([0.1, 0.9]), np.array([0.1, 0.9])
    start = {"scores": ["s"], "input": plans.digest_of(answers, scores)}
    plan = make_plan(make_design(200), [])
    plan = LabelPlan(plan.path, {**plan.start, **start}, [])
    plans.check_plan(plan, answers, "s", scores)
    with pytest.raises(InputError, match="was made for the score s"):
        plans.check_plan(plan, answers, "t", scores)
    with pytest.raises(InputError, match="other answers or scores"):
        plans.check_plan(plan, answers, "s", scores + 0.1)
