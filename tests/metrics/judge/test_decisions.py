"""Judges that are decision models: what they are asked, and what becomes of the probabilities."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.decision_server import DecisionServer
from tests.metrics.judge.helpers import Scripted, answers, steady
from trustassay.api import Run, plan, rescore, score
from trustassay.errors import UnknownNameError, UsageError
from trustassay.metrics.judge.metric import Judge
from trustassay.runs.needs import can_be_served
from trustassay.runs.remarks import write_remarks

DIALECTS = [("decisions", "openai"), ("decisions", "vllm"), ("systemone", "vllm")]
DIALECTS += [("systemone", dialect) for dialect in ("sglang", "llamacpp", "typesafe")]


def rubric(path: Path, *levels: tuple[object, float, str], scale: str = "ordinal") -> Path:
    """Write a rubric whose levels have a label, a value and a meaning."""
    rows = [
        f"- {{score: {label}, means: {means}}}"
        if isinstance(label, int)
        else f'- {{word: "{label}", value: {value}, means: {means}}}'
        for label, value, means in levels
    ]
    lines = ["name: mine", "task: Is the answer kind?", f"scale: {scale}", "shows: answer"]
    path.write_text("\n".join([*lines, "levels:", *rows]))
    return path


@pytest.fixture
def yes_no(tmp_path: Path) -> Path:
    return rubric(tmp_path / "yes.yaml", ("No", 0, "it is not"), ("Yes", 1, "it is"))


def judge(rows: Any, uri: str | dict[str, Any], metric: Judge, **options: Any) -> Run:
    return score(rows, metrics=[metric], judge=uri, **options)


def rated(mark: str, **others: Any) -> list[dict[str, Any]]:
    return [{"id": "a", "question": "q", "response": f"It is kind. {mark}", **others}]


@pytest.mark.parametrize(("scheme", "dialect"), DIALECTS)
def test_a_criterion_is_a_yes_no_question(scheme: str, dialect: str, yes_no: Path) -> None:
    with DecisionServer(dialect) as server:
        run = judge(rated("{.8}"), f"{scheme}:m@{server.url}", Judge(rubric=str(yes_no)))
        (body,) = server.bodies
    (found,) = run.assessments
    assert found.score == pytest.approx(0.8) and found.verdict == "passes"
    assert found.reason == "P(Yes) 0.80; a decision model gives no reason"
    (question,) = body["questions"].values() if scheme == "systemone" else body["questions"]
    assert question["type"] == ("noul" if scheme == "systemone" else "predicate")
    assert "Is the answer kind?" in question["instructions"]
    said = json.dumps(question)
    assert (
        "it is not" in said and "It is kind." in body[{"systemone": "state"}.get(scheme, "input")]
    )


@pytest.mark.parametrize(("scheme", "dialect"), DIALECTS)
def test_a_scale_is_a_score_from_the_lowest_level(scheme: str, dialect: str) -> None:
    rows = [{**row, "response": f"{row['response']} {{0 0 .2 .3 .5}}"} for row in answers([5])]
    with DecisionServer(dialect) as server:
        run = judge(rows, f"{scheme}:m@{server.url}", Judge())
        (body,) = server.bodies
    (found,) = run.assessments
    assert found.score == pytest.approx(1 + 4 * ((2 * 0.2 + 3 * 0.3 + 4 * 0.5) / 4))
    assert found.parts["expected_score"] == pytest.approx(found.score)
    (vote,) = found.evidence
    assert vote["level"] == "5"
    (question,) = body["questions"].values() if scheme == "systemone" else body["questions"]
    levels = question["criteria" if scheme == "systemone" else "levels"]
    assert question["type"] == "score" and len(levels) == 5
    first = levels[0] if scheme == "systemone" else levels[0]["label"]
    assert first.startswith("1")


def test_categories_are_a_choice(tmp_path: Path) -> None:
    file = rubric(tmp_path / "r.yaml", ("a", 1, "x"), ("b", 0, "y"), ("c", 0, "z"), scale="nominal")
    with DecisionServer("typesafe") as server:
        # The options are sent from the least value up: b, c, a.
        run = judge(rated("{.1 .3 .6}"), f"systemone:m@{server.url}", Judge(rubric=str(file)))
        (body,) = server.bodies
    (found,) = run.assessments
    assert (found.verdict, found.score) == ("a", 1)
    assert list(body["questions"]["q0"]["criteria"]) == ["b", "c", "a"]


def test_values_need_not_be_evenly_spaced(tmp_path: Path) -> None:
    file = rubric(tmp_path / "r.yaml", (1, 1, "bad"), (2, 2, "fair"), (10, 10, "good"))
    with DecisionServer("typesafe") as server:
        run = judge(rated("{.5 .25 .25}"), f"systemone:m@{server.url}", Judge(rubric=str(file)))
    assert next(iter(run.assessments)).score == pytest.approx(0.5 * 1 + 0.25 * 2 + 0.25 * 10)


@pytest.mark.parametrize(
    ("threshold", "verdict"), [(None, "passes"), (0.8, "passes"), (0.9, "fails")]
)
def test_a_threshold_is_about_the_probability(
    threshold: float | None, verdict: str, yes_no: Path
) -> None:
    with DecisionServer("typesafe") as server:
        metric = Judge(rubric=str(yes_no), threshold=threshold)
        run = judge(rated("{.85}"), f"systemone:m@{server.url}", metric)
    assert next(iter(run.assessments)).verdict == verdict


def test_both_orders_are_two_questions() -> None:
    rows = [{**row, "response": f"{row['response']} {{0 0 0 0 1}}"} for row in answers([5])]
    with DecisionServer("typesafe") as server:
        run = judge(rows, f"systemone:m@{server.url}", Judge(order="both"))
        states = [body["state"] for body in server.bodies]
    first = [state.index("Gold answer") < state.index("Answer to rate") for state in states]
    assert sorted(first) == [False, True]
    assert next(iter(run.assessments)).parts["order_difference"] == 0


def test_a_chat_judge_beside_it_keeps_its_reasons() -> None:
    rows = [{**row, "response": f"{row['response']} {{0 0 0 .5 .5}}"} for row in answers([4])]
    with DecisionServer("typesafe") as server:
        judges = {"chat": Scripted(steady), "decider": f"systemone:m@{server.url}"}
        run = judge(rows, judges, Judge())
    (found,) = run.assessments
    assert found.parts["mean:decider"] == 4.5 and found.parts["mean:chat"] == 4
    reasons = {vote["judge"]: vote["reason"] for vote in found.evidence}
    assert "no reason" in reasons["decider"] and "3 facts" in reasons["chat"]


def test_what_decides_nothing_is_an_unreadable_vote_and_a_refusal_a_failure() -> None:
    marks = {"a": "{0 0 0 .5 .1}", "b": "{refuse}", "c": "{0 0 0 0 1}"}
    rows = [{**rated(mark, answers=[["x"]])[0], "id": key} for key, mark in marks.items()]
    with DecisionServer("openai") as server:
        run = judge(rows, f"decisions:m@{server.url}", Judge())
    by_id = {found.id: found for found in run.assessments}
    assert "could not be read" in str(by_id["a"].error) and "sum to 0.6" in str(by_id["a"].error)
    assert "refuses to answer" in str(by_id["b"].error)
    assert by_id["c"].score == 5
    (row,) = run.summary_file["asked"]["judge"].values()
    assert row["answered"] == 1 and row["unanswered"] == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"repeats": 5}, "ignores repeats"),
        ({"repeats": 5, "early": True}, "ignores repeats, early"),
        ({"logprobs": True}, "ignores logprobs"),
    ],
)
def test_options_that_it_would_ignore_are_refused(options: dict[str, Any], message: str) -> None:
    with DecisionServer("typesafe") as server:
        with pytest.raises(UsageError, match=f"which {message}"):
            judge(answers([5]), f"systemone:m@{server.url}", Judge(**options))
        assert not server.requests


def test_an_audit_leaves_out_what_a_decision_model_cannot_notice() -> None:
    for uri, served in (("systemone:m", False), ("openai:m", True)):
        assert can_be_served(Judge(), {"judge": uri, "model": None})
        assert can_be_served(Judge(temperature=1), {"judge": [uri, "openai:other"]}) == served


def test_more_than_ten_levels_are_refused(tmp_path: Path) -> None:
    file = rubric(tmp_path / "r.yaml", *((i, i, "x") for i in range(11)))
    with (
        DecisionServer("typesafe") as server,
        pytest.raises(UsageError, match="takes at most 10 levels; the rubric mine has more"),
    ):
        judge(answers([5]), f"systemone:m@{server.url}", Judge(rubric=str(file)))


def test_where_text_is_needed_it_is_refused_before_the_run(tmp_path: Path) -> None:
    with DecisionServer("typesafe") as server:
        uri = f"systemone:m@{server.url}"
        options: dict[str, Any]
        for options in ({"judge": uri, "metrics": ["faithfulness:claims=model"]}, {"model": uri}):
            with pytest.raises(
                UnknownNameError, match="returns probabilities, not text; use it as --entailer"
            ):
                score(answers([5], documents=[{"text": "x"}]), **options)
        assert not server.requests


def test_it_is_planned_resumed_and_rescored_without_new_calls(tmp_path: Path) -> None:
    rows = [{**row, "response": f"{row['response']} {{0 0 0 .4 .6}}"} for row in answers([5, 4, 3])]
    with DecisionServer("typesafe") as server:
        uri = f"systemone:m@{server.url}"
        (part,) = plan(rows, metrics=[Judge()], judge=uri).parts
        assert (part.capability, part.calls, len(server.requests)) == ("decision", 3, 0)
        run = judge(rows, uri, Judge(), out=tmp_path / "run")
        assert len(server.requests) == 3
        again = judge(rows, uri, Judge(), out=tmp_path / "run")
        assert again.summary_file == run.summary_file
        other = rescore(tmp_path / "run", metrics=[Judge(threshold=4.5)], out=tmp_path / "other")
        assert len(server.requests) == 3
    assert [found.verdict for found in other.assessments] == ["passes"] * 3
    usage = run.summary_file["usage"]["models"][uri]
    assert (usage["calls"], usage["prompt_tokens"]) == (3, 300)


def test_an_alias_that_moves_is_a_remark(tmp_path: Path, yes_no: Path) -> None:
    rows = [{**rated("{.8}")[0], "id": str(i), "response": f"{i} {{.8}}"} for i in range(4)]
    with DecisionServer("typesafe") as server:
        uri = f"systemone:jev-latest@{server.url}"
        options: dict[str, Any] = {"cache": tmp_path / "cache"}
        first = judge(rows[:2], uri, Judge(rubric=str(yes_no)), out=tmp_path / "1", **options)
        assert not [r for r in write_remarks(first.summary_file, 2) if "several models" in r]
        server.model = "jev-1.14.0"
        run = judge(rows, uri, Judge(rubric=str(yes_no)), out=tmp_path / "2", **options)
    assert run.summary_file["answered_by"] == {uri: {"jev-1.13.0": 2, "jev-1.14.0": 2}}
    (remark,) = [r for r in write_remarks(run.summary_file, 4) if "several models" in r]
    assert "jev-1.13.0 (2), jev-1.14.0 (2)" in remark
