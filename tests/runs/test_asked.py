"""Who was asked and did not answer: one table, in every kind of run."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.metrics.fewl.helpers import Angles, Speaker, broken
from tests.metrics.judge.helpers import Scripted, answers, steady
from tests.support import Recorder
from trustassay import Run, score
from trustassay.api import rescore
from trustassay.compare.gate import gate
from trustassay.compare.gate_rules import EarlierRun, parse_bound
from trustassay.core.asked import count_failures_once
from trustassay.core.capabilities import ChatRequest, Reply
from trustassay.errors import BackendError, CallError
from trustassay.input.reading import LocatedSample
from trustassay.live.scorer import read_record
from trustassay.metrics import Judge
from trustassay.metrics.fewl import Fewl
from trustassay.ray import merge, shard
from trustassay.runs.remarks import write_remarks

ALLOWED = Fewl(weights="uniform", allow_missing_references=True)
STRICT = Fewl(weights="uniform")
QUESTIONS = [
    {"id": f"q{i}", "question": f"What is at {10 * i}", "response": f"h at {10 * i}"}
    for i in range(6)
]
Rule = Callable[[str], str]


def answer(question: str) -> str:
    return f"h {question}"


def broken_at(*degrees: int) -> Rule:
    """A reference whose calls for these questions fail."""

    def rule(question: str) -> str:
        return (
            broken(question) if int(question.rsplit(maxsplit=1)[-1]) in degrees else f"k {question}"
        )

    return rule


def failing(kind: Any) -> Rule:
    def rule(question: str) -> str:
        raise CallError("b is out of order", kind)

    return rule


def referred(rule: Rule, metric: Fewl = STRICT, path: Path | None = None, **how: Any) -> Run:
    """Score with the references a, which answers, and b, which answers by a rule."""
    references = {"a": Speaker("m1", answer), "b": Speaker("m2", rule)}
    models: dict[str, Any] = {"similarity": "novel", "embedder": Angles(), "references": references}
    return score(QUESTIONS, metrics=metric, out=path, cache=None, **models, **how)


def asked(run: Run, role: str) -> dict[str, Any]:
    result: dict[str, Any] = run.summary_file["asked"][role]
    return result


# references ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["refused", "closed", "oversized", "empty"])
def test_a_reference_that_never_answers_fails_every_sample_under_its_name(kind: Any) -> None:
    run = referred(failing(kind))
    assert [a.score for a in run.assessments] == [None] * 6
    assert {a.error for a in run.assessments} == {"reference b did not answer: b is out of order"}
    assert run.summary["fewl"]["mean"] is None
    assert run.summaries["fewl"].failed == 6
    row = asked(run, "references")["b"]
    assert row["missing"] == {kind: 6}
    assert (row["asked"], row["answered"], row["unanswered"], row["samples"]) == (6, 0, 6, 6)
    assert asked(run, "references")["a"]["answered"] == 6


def test_a_reference_that_answers_every_second_call_fails_every_second_sample() -> None:
    run = referred(broken_at(0, 20, 40))
    assert [a.error is not None for a in run.assessments] == [True, False] * 3
    # Neighbours are at least 37 degrees away: that of 10 is 50, those of 50 are 0 and 10.
    assert run.summaries["fewl"].details["remarks"] == [
        "1 of 3 penalties are means over fewer questions (1 reference answer missing); "
        "trustassay rescore RUN computes them again"
    ]


def test_allowed_absences_stand_beside_the_mean_by_reference_and_kind(tmp_path: Path) -> None:
    run = referred(broken_at(0, 20), ALLOWED, tmp_path / "run")
    assert [a.error for a in run.assessments] == [None] * 6
    details = run.summaries["fewl"].details
    assert details["absent"] == {"b": {"refused": 2}}
    assert details["incomplete"] == 2
    sentence = "reference b is absent from 2 of 6 scores (refused by endpoint or filter: 2)"
    assert details["remarks"][0].startswith(sentence)
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert sentence in page
    assert "Requests to models" in page


def test_a_reference_without_an_answer_to_any_neighbour_fails_the_sample() -> None:
    others = [10, 20, 30, 40, 50]
    run = referred(broken_at(*others))
    assert run.assessments[0].error is not None
    assert "reference b gave no answer to any neighbouring question" in run.assessments[0].error
    allowed = referred(broken_at(*others), ALLOWED).assessments[0]
    assert allowed.parts["unanswered_neighbours"] == 2
    assert "no penalty from b" in allowed.reason


def test_a_blank_answer_of_the_input_is_absent_and_counted_and_no_failed_call() -> None:
    file = [dict(row, references={"a": f"h at {i}", "b": ""}) for i, row in enumerate(QUESTIONS)]
    run = score(file, metrics=STRICT, similarity="novel", embedder=Angles(), cache=None)
    assert [a.error for a in run.assessments] == [None] * 6
    assert run.summaries["fewl"].details["absent"] == {"b": {"empty answer": 6}}
    assert "references" not in run.summary_file["asked"]


def test_references_that_decline_stand_beside_the_mean_and_one_that_always_does_is_missing() -> (
    None
):
    def declined(*degrees: int) -> Run:
        rows = [
            dict(row, references={"a": "h", "b": "I don't know." if 10 * i in degrees else "k"})
            for i, row in enumerate(QUESTIONS)
        ]
        metric = Fewl(weights="uniform", form="agreement")
        return score(rows, metrics=metric, similarity="novel", embedder=Angles(), cache=None)

    always = declined(*range(0, 60, 10)).summaries["fewl"]
    assert always.details == {
        "remarks": [
            "reference b is absent from 6 of 6 scores (declined: 6): its weight goes to the others"
        ],
        "absent": {"b": {"declined": 6}},
        "incomplete": 6,
    }
    twice = declined(0, 20)
    assert twice.summaries["fewl"].details["absent"] == {"b": {"declined": 2}}
    assert twice.summaries["fewl"].details["incomplete"] == 0
    assert [a.error for a in twice.assessments] == [None] * 6


def test_the_model_under_assessment_may_fail_as_its_own_reference() -> None:
    references = {"a": Speaker("m1", answer), "b": Speaker("m2", failing("closed"))}
    rows = [dict(row, model="b") for row in QUESTIONS]
    run = score(rows, metrics=STRICT, similarity="novel", embedder=Angles(), references=references)
    assert [a.error for a in run.assessments] == [None] * 6


# what comes after a run ---------------------------------------------------------------------------


def test_a_resumed_run_asks_again_and_forgets_the_failures(tmp_path: Path) -> None:
    before = referred(broken_at(20, 40), path=tmp_path / "run")
    assert asked(before, "references")["b"]["missing"] == {"refused": 2}
    after = referred(broken_at(40), path=tmp_path / "run")
    assert [a.id for a in after.assessments if a.error] == ["q4"]
    row = asked(after, "references")["b"]
    assert (row["asked"], row["answered"], row["missing"]) == (6, 5, {"refused": 1})


def test_a_run_scored_again_without_models_knows_who_did_not_answer(tmp_path: Path) -> None:
    first = referred(failing("oversized"), ALLOWED, tmp_path / "run")
    how: dict[str, Any] = {"similarity": "novel", "embedder": Angles()}
    strict = rescore(first.path, metrics=STRICT, out=tmp_path / "strict", **how)
    assert strict.summaries["fewl"].failed == 6
    # Its object cannot be had back by its name, so that it fails for another reason.
    assert str(strict.assessments[0].error).startswith(
        "reference b did not answer: the run's model m2"
    )
    again = rescore(first.path, metrics=ALLOWED, out=tmp_path / "again", **how)
    assert again.summaries["fewl"].details["absent"] == {"b": {"closed": 6}}
    assert asked(again, "references")["b"]["missing"] == {"closed": 6}


def test_stored_replies_count_as_answered(tmp_path: Path) -> None:
    first = referred(answer, path=tmp_path / "run")
    again = rescore(
        first.path, metrics=STRICT, similarity="novel", embedder=Angles(), out=tmp_path / "again"
    )
    assert asked(again, "references") == asked(first, "references")
    assert asked(again, "references")["b"]["answered"] == 6


def test_a_gate_fails_where_references_are_absent(tmp_path: Path) -> None:
    whole = referred(answer, ALLOWED, tmp_path / "whole")
    part = referred(broken_at(0, 20), ALLOWED, tmp_path / "part")
    bound = parse_bound("fewl.mean=-0.9", at_least=True)
    (check,) = gate(part.path, [bound]).checks
    assert check.result == "fail"
    assert check.why.startswith("33.3 % of the scores lack the replies of a model")
    assert gate(whole.path, [bound]).checks[0].result != "fail"
    checks = {c.name: c for c in gate(part.path, earlier=EarlierRun(whole.path)).checks}
    assert checks["fewl.incomplete"].result == "fail"
    back = {c.name: c for c in gate(whole.path, earlier=EarlierRun(part.path)).checks}
    assert back["fewl.incomplete"].result == "pass"
    same = gate(whole.path, earlier=EarlierRun(whole.path)).checks
    assert "fewl.incomplete" not in {c.name for c in same}


# others who are asked -----------------------------------------------------------------------------


def test_a_vote_that_fails_counts_for_its_judge() -> None:
    def down(prompt: str, request: ChatRequest) -> str:
        raise CallError("down", "closed")

    judges: dict[str, Any] = {"good": Scripted(steady, "g"), "bad": Scripted(down, "b")}
    run = score(answers([5, 3]), metrics=Judge(), judge=judges, cache=None)
    assert [a.fault for a in run.assessments] == ["closed"] * 2
    row = asked(run, "judge")["bad"]
    assert (row["backend"], row["missing"], row["samples"]) == ("b", {"closed": 2}, 2)


def test_a_vote_that_cannot_be_read_counts_for_its_judge() -> None:
    judges: dict[str, Any] = {
        "good": Scripted(steady, "g"),
        "vague": Scripted(lambda *_: "Well.", "v"),
    }
    run = score(answers([5, 3]), metrics=Judge(), judge=judges, cache=None)
    # Each reply that cannot be read is followed by a second request.
    row = asked(run, "judge")["vague"]
    assert (row["asked"], row["answered"], row["missing"]) == (4, 0, {"unparsed": 4})
    assert asked(run, "judge")["good"]["missing"] == {}


@pytest.mark.parametrize(
    ("reply", "kind", "phrase"),
    [("", "empty", "empty reply: 20"), ("Well.", "unparsed", "unreadable reply: 20")],
)
def test_a_silent_judge_of_a_panel_stands_beside_the_mean_and_fails_the_gate(
    tmp_path: Path, reply: str, kind: str, phrase: str
) -> None:
    judges: dict[str, Any] = {"x": Scripted(steady, "g"), "y": Scripted(lambda *_: reply, "v")}
    out = tmp_path / "run"
    run = score(answers([5, 4] * 10), metrics=Judge(), judge=judges, cache=None, out=out)
    details = run.summaries["judge"].details
    sentence = f"judge y is absent from 20 of 20 scores ({phrase}): its weight goes to the others"
    assert details["remarks"] == [sentence]
    assert (details["absent"], details["incomplete"]) == ({"y": {kind: 20}}, 20)
    result = gate(out, [parse_bound("judge.mean=1", at_least=True)])
    assert [check.result for check in result.checks] == ["fail"]
    assert f"judge: {sentence}" in result.notes
    assert sentence in (out / "report.html").read_text(encoding="utf-8")


def test_a_judge_with_one_readable_vote_is_not_absent() -> None:
    def first_alone(prompt: str, request: ChatRequest) -> str:
        return "Well." if request.repeat else steady(prompt, request)

    judges: dict[str, Any] = {"x": Scripted(steady, "g"), "y": Scripted(first_alone, "v")}
    run = score(answers([5, 4]), metrics=Judge(repeats=2), judge=judges, cache=None)
    assert "absent" not in run.summaries["judge"].details
    assert run.summary["judge"]["unreadable"] == 2


def test_one_of_the_two_orders_of_a_pair_counts_for_the_judge() -> None:
    def second_order_fails(prompt: str, request: ChatRequest) -> str:
        if prompt.index("red lamp") > prompt.index("blue lamp"):
            raise CallError("down", "closed")
        return "A"

    row = {"question": "Which?", "response": "A red lamp.", "other_response": "A blue lamp."}
    run = score([row], metrics="pairwise", judge=Scripted(second_order_fails), cache=None)
    assert run.assessments[0].error is not None
    assert asked(run, "judge")["judge"]["missing"] == {"closed": 1}


def test_a_second_reader_that_fails_is_counted_although_the_first_verdict_stays(
    tmp_path: Path,
) -> None:
    rows = [
        {
            "id": f"q{i}",
            "question": f"What is lamp {i}?",
            "response": f"Lamp {i} is blue.",
            "documents": [f"Lamp {i} is red."],
        }
        for i in range(3)
    ]

    def fail(premise: str, hypothesis: str) -> Any:
        raise BackendError("careful is down")

    second = Recorder(fail)
    second.name = "careful"

    def score_rows() -> Run:
        entailer = Recorder(lambda *_: (0.1, 0.1, 0.8))
        models: dict[str, Any] = {"entailer": entailer, "second": second}
        metrics = ["faithfulness", "factcheck"]
        return score(rows, metrics=metrics, out=tmp_path / "run", cache=None, **models)

    run = score_rows()
    assert [a.error for a in run.assessments] == [None] * 6
    row = asked(run, "second")["careful"]
    assert (row["missing"], row["samples"]) == ({"error": 6}, 3)
    # A second start asks again, and the failures are not added up.
    assert asked(score_rows(), "second")["careful"] == row


def test_a_preparation_that_fails_is_counted_for_all_samples() -> None:
    class Down(Angles):
        name = "down"

        def vectors(self, texts: Sequence[str]) -> Any:
            raise CallError("down: unreachable", "connection")

    models: dict[str, Any] = {"similarity": "novel", "embedder": Down()}
    models["references"] = {"a": Speaker("m1", answer)}
    run = score(QUESTIONS, metrics=STRICT, cache=None, **models)
    assert run.summaries["fewl"].failed == 6
    sentence = "embedder down did not answer in 6 samples (unreachable)"
    assert write_remarks(run.summary_file, 6)[0] == sentence


def test_a_retriever_that_fails_is_counted_and_named() -> None:
    class Shelf:
        name = "shelf"

        def search(self, queries: Sequence[str], k: int) -> Any:
            raise CallError("shelf: unreachable", "connection")

    rows = [{"question": f"What is lamp {i}?", "response": "It is red."} for i in range(3)]
    run = score(rows, metrics="faithfulness", retriever=Shelf(), entailer=Recorder(), cache=None)
    assert asked(run, "retriever")["shelf"]["missing"] == {"connection": 3}
    assert "shelf: unreachable" in str(run.assessments[0].error)


def test_a_source_of_distractors_that_is_unreachable_is_counted_and_named() -> None:
    class Unreachable:
        name = "birds"

        def substitutes(self, requests: Any) -> Any:
            raise CallError("birds: no connection", "connection")

    class Chooser:
        name, shared = "chooser", False

        async def reply(self, request: ChatRequest) -> Reply:
            return Reply("A")

    row = {"question": "Who built the lamp?", "response": "Ada Lovelace built the lamp."}
    run = score(
        [row], metrics="consistency", model=Chooser(), distractors=Unreachable(), cache=None
    )
    assert run.assessments[0].error is not None
    assert "birds: no connection" in run.assessments[0].error
    assert asked(run, "distractors")["birds"]["missing"] == {"connection": 1}


@pytest.mark.parametrize("metric", ["uncertainty", "harmonicity"])
def test_a_model_that_stops_answering_fails_the_sample_and_is_counted(metric: str) -> None:
    class Tired:
        name, shared = "tired", False
        calls = 0

        async def reply(self, request: ChatRequest) -> Reply:
            Tired.calls += 1
            if Tired.calls > 2:
                raise CallError("tired: no reply in time", "closed")
            return Reply("The lamp is red.")

    row = {"question": "What colour is the lamp over there?", "response": "The lamp is red."}
    models: dict[str, Any] = {"model": Tired()}
    models |= {"entailer": Recorder()} if metric == "uncertainty" else {}
    run = score([row], metrics=metric, cache=None, **models)
    assert run.assessments[0].fault == "closed"
    assert asked(run, "model")["tired"]["missing"] == {"closed": 1}


def test_merged_shards_add_up(tmp_path: Path) -> None:
    def down_for_five(prompt: str, request: ChatRequest) -> str:
        if "(level 5)" in prompt:
            raise CallError("down", "refused")
        return steady(prompt, request)

    rows = answers([5, 4, 5, 2])
    shards = shard(rows, into=2, out=tmp_path / "shards")
    folders = []
    for number, one in enumerate(shards.shards):
        folders.append(tmp_path / f"run{number}")
        judge = Scripted(down_for_five)
        score(str(one.path), metrics=Judge(), judge=judge, out=folders[-1], cache=None)
    whole = merge(folders, out=tmp_path / "whole")
    row = asked(whole, "judge")["judge"]
    assert (row["asked"], row["answered"], row["missing"]) == (4, 2, {"refused": 2})


# what is shown ------------------------------------------------------------------------------------


def test_the_closing_lines_name_the_three_that_missed_most(capsys: Any) -> None:
    from trustassay.cli.results import print_run

    lost = {"w": (0,), "x": (0, 10), "y": (0, 10, 20), "z": (0, 10, 20, 30)}
    references = {name: Speaker(f"m-{name}", broken_at(*at)) for name, at in lost.items()}
    models: dict[str, Any] = {"similarity": "novel", "embedder": Angles(), "references": references}
    run = score(QUESTIONS, metrics=ALLOWED, cache=None, **models)
    print_run(run, as_json=False)
    lines = [line for line in capsys.readouterr().err.splitlines() if ") did not answer" in line]
    assert [line.split(" did")[0] for line in lines] == [
        f"reference {name} (m-{name})" for name in "zyx"
    ]
    kinds = "refused by endpoint or filter: 4"
    assert lines[0].endswith(f"4 of 6 requests ({kinds}), in 4 samples")
    assert lines[2].endswith("; 1 other did not answer 1 more")


def test_of_a_failed_sample_each_kind_of_failure_counts_once_and_no_answer() -> None:
    asked = {"judge": {"a": {"answered": 3, "timeout": 2, "server": 1}, "b": {"answered": 4}}}
    assert count_failures_once(asked) == {"judge": {"a": {"server": 1, "timeout": 1}}}


def test_requests_of_failed_samples_are_lower_bounds_and_no_total_is_claimed(
    tmp_path: Path,
) -> None:
    def down(prompt: str, request: ChatRequest) -> str:
        raise CallError("down", "refused")

    judges: dict[str, Any] = {"good": Scripted(steady, "g"), "bad": Scripted(down, "b")}
    run = score(
        answers([5, 3]), metrics=Judge(repeats=5), judge=judges, cache=None, out=tmp_path / "run"
    )
    row = asked(run, "judge")["bad"]
    assert (row["unanswered"], row["samples"], row["at_least"]) == (2, 2, True)
    sentence = "judge bad (b) did not answer in 2 samples (refused by endpoint or filter)"
    assert write_remarks(run.summary_file, 2)[0] == sentence
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert "≥ 2" in page
    assert "at least 2 requests without an answer" in page
    # One that fails without a failed sample is counted whole.
    allowed = referred(broken_at(0), ALLOWED)
    assert "at_least" not in asked(allowed, "references")["b"]


def test_the_empty_reply_of_a_reference_is_no_empty_answer() -> None:
    run = referred(failing("empty"))
    assert run.summary_file["faults"] == {"fewl": {"empty": 6}}
    remarks = write_remarks(run.summary_file, 6)
    assert "fewl: 6 of 6 samples failed: empty reply or empty answer" in remarks
    assert remarks[0].startswith("reference b (m2) did not answer 6 of 6 requests (empty reply: 6)")


def test_the_empty_reply_of_the_model_about_an_answer_is_no_empty_answer() -> None:
    class Silent:
        name, shared = "silent", False

        async def reply(self, request: ChatRequest) -> Reply:
            raise CallError("the reply is empty", "empty")

    row = {"question": "What colour is the lamp?", "response": "The lamp is red."}
    run = score([row], metrics="harmonicity", model=Silent(), cache=None)
    remarks = write_remarks(run.summary_file, 1)
    assert "harmonicity: 1 of 1 samples failed: empty reply or empty answer" in remarks


def test_a_run_in_which_all_answered_says_nothing(capsys: Any) -> None:
    from trustassay.cli.results import print_run

    run = score(answers([5, 4]), metrics=Judge(), judge=Scripted(steady), cache=None)
    print_run(run, as_json=False)
    assert "did not answer" not in capsys.readouterr().err
    assert asked(run, "judge")["judge"]["answered"] == 2


@pytest.mark.parametrize(
    "field",
    [
        "yes",
        ["b"],
        {"references": "b"},
        {"references": {"b": {"server": "many"}}},
        {"references": {"b": {"server": 1}}},
    ],
)
def test_a_field_of_the_user_with_the_same_name_is_no_table(tmp_path: Path, field: Any) -> None:
    rows = [dict(row, references={"a": "h"}, asked_models=field) for row in QUESTIONS]
    how: dict[str, Any] = {"similarity": "novel", "embedder": Angles(), "cache": None}
    run = score(rows, metrics=STRICT, **how)
    assert [a.error for a in run.assessments] == [None] * 6
    assert "references" not in run.summary_file["asked"]
    # Nor beside a run, in a file that this did not write.
    referred(answer, path=tmp_path / "run")
    path = tmp_path / "run" / "mine.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert "references" not in score(path, metrics=STRICT, **how).summary_file["asked"]


def test_outcomes_that_come_with_a_single_record_are_no_outcomes() -> None:
    forged = {"references": {"b": {"server": 1}}}
    record = read_record({**QUESTIONS[0], "asked_models": forged}, {})
    assert isinstance(record, LocatedSample)
    assert "asked_models" not in record.sample.metadata


def test_the_samples_of_a_run_keep_who_did_not_answer(tmp_path: Path) -> None:
    run = referred(broken_at(0, 20), path=tmp_path / "run")
    how: dict[str, Any] = {"similarity": "novel", "embedder": Angles(), "cache": None}
    again = score(run.path / "samples.jsonl", metrics=STRICT, **how)
    assert [a.fault for a in again.assessments] == [a.fault for a in run.assessments]
    assert asked(again, "references")["b"]["missing"] == {"refused": 2}


def test_names_of_models_are_escaped_on_the_page(tmp_path: Path) -> None:
    name = "<script>alert(1)</script>"
    references = {"a": Speaker("m1", answer), name: Speaker(name, failing("closed"))}
    models: dict[str, Any] = {"similarity": "novel", "embedder": Angles(), "references": references}
    run = score(QUESTIONS, metrics=ALLOWED, out=tmp_path / "run", cache=None, **models)
    assert name not in (run.path / "report.html").read_text(encoding="utf-8")
    assert json.loads((run.path / "summary.json").read_text())["asked"]["references"][name]
