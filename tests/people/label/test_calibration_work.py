"""Plans for calibrate in their files: making, continuing, ratings, and what is promised."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support import jsonl
from trustassay import calibrate
from trustassay.errors import UsageError
from trustassay.input.records import InputError
from trustassay.metrics.judge import read_rubric
from trustassay.people.label.calibration_plan import last_look
from trustassay.people.label.calibration_work import (
    CalibrationPlanOptions,
    CalibrationPromise,
    CalibrationWork,
    labels_of_rubric,
    open_promise,
)
from trustassay.people.label.plan import read_plan
from trustassay.people.study.labels import LabelSource

ANSWERS = 300


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A table of answers without ids; a higher score is better."""
    path = tmp_path / "answers.csv"
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["question", "response", "sure"])
        rows.writerows([f"What is {n}?", f"It is {n}.", n / ANSWERS] for n in range(ANSWERS))
    return path


def open_work(source: Path, **options: Any) -> CalibrationWork:
    ratings = [source.with_name("ratings.jsonl")]
    labels = LabelSource([path for path in ratings if path.exists()], at_least=4, weighted=True)
    made = CalibrationPlanOptions(**{"score": "sure", **options})
    return CalibrationWork(source, source.with_name("plan.jsonl"), labels, made)


def rate(source: Path, rating_of: Callable[[str], int | None], rater: str = "anna") -> Path:
    """Rate all of the plan, as ``annotate`` stores it."""
    plan = read_plan(source.with_name("plan.jsonl"))
    lines: list[dict[str, Any]] = [
        {"action": "start", "input": "x", "choices": list("012345"), "chances": "unequal"}
    ]
    path = source.with_name("ratings.jsonl")
    if path.exists():
        lines = [json.loads(line) for line in path.read_text().splitlines()]
    for draw in plan.draws:
        item = draw.answers[0][0]
        rating = rating_of(item)
        skip = {"action": "skip"} if rating is None else {}
        lines.append({"item": item, "rater": rater, "rating": rating, "repeat": 0, **skip})
    return jsonl(path, lines)


def test_a_plan_is_made_once_and_continued_by_every_process(source: Path) -> None:
    work = open_work(source)
    plan = source.with_name("plan.jsonl")
    first = plan.read_bytes()
    upper = work.design.sample_upper[0]
    assert len(work.plan.draws) == upper
    other = open_work(source)
    assert plan.read_bytes() == first
    wrong = {draw.answers[0]: False for draw in work.plan.draws}
    work.advance(wrong)
    # The other process has the old plan in memory, and appends nothing twice.
    other.advance(wrong)
    assert len(other.plan.draws) == len(read_plan(plan).draws) == 200
    assert {draw.part for draw in other.plan.draws[upper:]} == {"lower"}


def test_a_plan_whose_batch_was_lost_is_continued(source: Path) -> None:
    open_work(source)
    plan = source.with_name("plan.jsonl")
    whole = plan.read_bytes()
    lines = whole.splitlines(keepends=True)
    # A killed process left ten draws and half a line.
    plan.write_bytes(b"".join(lines[:12]) + lines[12][:20])
    work = open_work(source)
    assert len(work.plan.draws) == 10
    work.advance({})
    assert len(work.plan.draws) == 10
    work.advance({draw.answers[0]: False for draw in work.plan.draws})
    assert [d.answers for d in work.plan.draws] == [
        [(json.loads(line)["answers"][0]["id"], "")] for line in lines[2:]
    ]


def test_skipped_ratings_and_any_rater_make_an_answer_wrong(source: Path) -> None:
    ids = [draw.answers[0][0] for draw in open_work(source).plan.draws]
    rate(source, lambda item: {ids[0]: 1, ids[1]: None}.get(item, 5))
    rate(source, lambda item: 2 if item == ids[2] else 4, "bela")
    wrong = open_work(source).read_wrong()
    assert len(wrong) == len(ids)
    assert {key[0] for key, is_wrong in wrong.items() if is_wrong} == set(ids[:3])


def test_lower_scores_may_be_better(source: Path) -> None:
    work = open_work(source, is_lower_better=True)
    assert work.design.above == -0.5
    best = {
        row.id for row, score in zip(work.answers.rows, work.scores, strict=True) if score < 0.5
    }
    assert {draw.answers[0][0] for draw in work.plan.draws} <= best


def test_ratings_of_uneven_plans_alone_are_unequal(source: Path, tmp_path: Path) -> None:
    assert open_work(source).plan.start["chances"] == "unequal"
    (tmp_path / "plan.jsonl").unlink()
    assert open_work(source, at_most=0.2).plan.start["chances"] == "equal"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"at_most": 0.05}, "was made with --at-most 10%"),
        ({"number": 50}, "was made with --number 200"),
        ({"is_lower_better": True}, "was made with no --lower"),
        ({"score": "response"}, "expected a number"),
    ],
)
def test_what_was_fixed_cannot_be_changed(
    source: Path, options: dict[str, Any], message: str
) -> None:
    open_work(source)
    with pytest.raises(UsageError, match=message):
        open_work(source, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"number": 30}, "30 labels cannot give a promise: at most 10 % wrong needs 36"),
        ({"number": 301}, "--number: needs 301 questions"),
        ({"looks": 4}, "--looks: needs 400 questions"),
        ({"looks": 2, "number": 100}, "leave --number out"),
        ({"at_most": 1.0}, "--at-most: expected a share"),
        ({"hope": 0.95}, "--hope: expected from 10% to 90%"),
        ({"score": ""}, "name the score to calibrate with --score"),
        ({"score": "shure"}, "did you mean sure"),
    ],
)
def test_a_plan_that_cannot_be_made_leaves_no_file(
    source: Path, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        open_work(source, **options)
    assert not source.with_name("plan.jsonl").exists()


def test_a_plan_of_an_earlier_state_of_the_scores_is_refused(source: Path) -> None:
    open_work(source)
    source.write_text(source.read_text().replace(",0.5\n", ",0.51\n"))
    with pytest.raises(InputError, match="other answers or scores"):
        open_work(source)


class Result:
    """What calibrate returns, as far as a page needs it."""

    def __init__(self, text: str) -> None:
        self.text = text


def test_the_promise_is_computed_at_looks_alone(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[Any] = []

    def calibrate(of: Path, **options: Any) -> Result:
        look = last_look(read_plan(options["plan"]), promise.work.read_wrong())
        assert look
        calls.append((of, options["score"], options["at_most"], options["at_least"]))
        if look.number == 2:
            raise InputError("too few: about 460")
        return Result(f"promise {look.number}")

    monkeypatch.setattr("trustassay.people.calibrate.command.calibrate", calibrate)
    open_work(source, looks=2)
    plan = read_plan(source.with_name("plan.jsonl"))
    rubric = read_rubric("answer")
    promise: CalibrationPromise = open_promise(
        source, plan, [source.with_name("ratings.jsonl")], rubric
    )
    promise.update(may_grow=True)
    assert (promise.text, promise.missing) == ("", "50 labels missing until look 1 of 2")
    rate(source, lambda _: 5)
    promise.update(may_grow=False)
    rest = 50 - promise.work.design.sample_upper[0]
    assert promise.missing == f"{rest} labels missing until look 1 of 2"
    promise.update(may_grow=True)
    rate(source, lambda _: 5)
    promise.update(may_grow=True)
    assert (promise.text, promise.missing) == ("promise 1", "52 labels missing until look 2 of 2")
    promise.update(may_grow=True)
    assert calls == [(source, "sure", 0.1, 4)]
    while promise.missing != "All answers of the plan are labelled":
        rate(source, lambda _: 5)
        promise.update(may_grow=True)
    assert promise.text == "too few: about 460"
    assert len(calls) == 2
    # A damaged file of ratings is shown, and hides no promise.
    source.with_name("ratings.jsonl").write_text('{"action": "start"}\n{\n')
    promise.update(may_grow=True)
    assert "damaged" in promise.missing
    assert promise.text == "too few: about 460"


def test_the_levels_that_pass_are_right() -> None:
    assert labels_of_rubric([], read_rubric("answer")).at_least == 4
    assert labels_of_rubric([], read_rubric("verdict")).positive == ["yes"]


@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("share", [0.0, 0.3])
def test_calibrate_reads_the_labels_of_a_plan(source: Path, share: float, lower: bool) -> None:
    """With few errors the look is a random sample, with many the better scores alone."""
    rng = np.random.default_rng(0)
    work = open_work(source, is_lower_better=lower)
    while work.measure_progress(work.read_wrong()).waiting:
        rate(source, lambda _: 1 if rng.random() < share else 5)
        work = open_work(source, is_lower_better=lower)
        work.advance(work.read_wrong())
    options: dict[str, Any] = {
        "score": "sure",
        "plan": source.with_name("plan.jsonl"),
        "ratings": source.with_name("ratings.jsonl"),
        "at_least": 4,
        "lower": lower,
    }
    result = calibrate(source, **options)
    (promise,) = result.calibrator.promises
    assert (promise.at_most, promise.look) == (0.1, 1)
    assert promise.delta == pytest.approx(0.025)
    # The upper half has 150 answers.
    assert result.counted == (150 if share else 200)
    if share:
        assert promise.without
        assert result.calibrator.labels.chosen == "the better scores, chosen by the plan"
    else:
        assert result.share == 1
        assert result.calibrator.labels.chosen == "a random sample, chosen by the plan"
    with pytest.raises(UsageError, match="was made for --at-most 10%"):
        calibrate(source, at_most=0.2, **options)
    # What the plan fixed cannot be changed afterwards, and need not be repeated.
    for other in ({"confidence": 0.99}, {"group": "none"}, {"exact": True}, {"looks": 3}):
        with pytest.raises(UsageError, match="leave them out"):
            calibrate(source, **options | other)
    assert calibrate(source, **options | {"lower": False}).calibrator == result.calibrator
    if not lower:
        with pytest.raises(UsageError, match="fixes --lower"):
            calibrate(source, **options | {"lower": True})
    ratings = source.with_name("ratings.jsonl")
    ratings.write_text("".join(ratings.read_text().splitlines(keepends=True)[:60]))
    with pytest.raises(InputError, match="missing until the first look of the plan"):
        calibrate(source, **options)
