"""Scores and labels of people in traces: the shapes that five exporters write, made-up content."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trustassay.input.answer_tables import read_answer_table, read_trace_scores
from trustassay.input.records import InputError
from trustassay.people.calibrate.command import calibrate

Json = dict[str, Any]
ANSWERS = [(f"Which river is number {n}?", f"River {n}.", (n % 50) / 50) for n in range(200)]
"""Questions, answers and the judge's scores; an answer is right if its score is at least .3."""


def is_right(score: float) -> bool:
    return score >= 0.3


def write_lines(path: Path, records: list[Json]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def langfuse_spans(number: int, scores: list[Json], at: str = "rag") -> list[Json]:
    """A trace as ``pull`` writes it, with scores at one of its observations."""
    question, answer, _ = ANSWERS[number]
    shared = {"traceId": f"t-{number}", "startTime": "2026-11-27T10:00:00Z"}
    spans: list[Json] = [
        {"id": f"{number}-a", "type": "SPAN", "name": "rag", "input": {"question": question}},
        {"id": f"{number}-b", "type": "GENERATION", "name": "llm", "output": answer},
    ]
    spans[0] |= {"output": answer, "parentObservationId": None}
    spans[1] |= {"input": question, "parentObservationId": f"{number}-a"}
    spans = [{**span, **shared, "endTime": "2026-11-27T10:00:01Z"} for span in spans]
    return [span | ({"scores": scores} if span["name"] == at else {}) for span in spans]


def write_langfuse(folder: Path) -> Path:
    records = []
    for number, (_, _, score) in enumerate(ANSWERS):
        judge = {"name": "helpful", "value": score, "source": "EVAL"}
        person = {"name": "correctness", "value": is_right(score), "source": "ANNOTATION"}
        spans = langfuse_spans(number, [judge], "llm")
        spans[0]["scores"] = [person]
        records += spans
    return write_lines(folder / "langfuse.jsonl", records)


def write_phoenix(folder: Path) -> Path:
    records = []
    for number, (question, answer, score) in enumerate(ANSWERS):
        label = "correct" if is_right(score) else "incorrect"
        records.append(
            {
                "name": "rag",
                "context": {"trace_id": f"{number:032x}", "span_id": f"{number:016x}"},
                "parent_id": None,
                "start_time": "2026-11-27T10:00:00+00:00",
                "end_time": "2026-11-27T10:00:01+00:00",
                "attributes": {
                    "openinference.span.kind": "LLM",
                    "input.value": question,
                    "output.value": answer,
                },
                "annotations": [
                    {"name": "helpful", "annotator_kind": "LLM",
                     "result": {"label": "good", "score": score, "explanation": None}},
                    {"name": "correctness", "annotator_kind": "HUMAN",
                     "result": {"label": label, "score": None, "explanation": "seen"}},
                ],
            }
        )  # fmt: skip
    return write_lines(folder / "phoenix.jsonl", records)


def mlflow_trace(number: int) -> Json:
    question, answer, score = ANSWERS[number]
    trace = f"tr-{number:032x}"

    def assessment(name: str, value: Any, source_type: str, **more: Any) -> Json:
        return {
            "assessment_id": f"a-{name}",
            "assessment_name": name,
            "trace_id": trace,
            "source": {"source_type": source_type, "source_id": "someone"},
            "create_time": "2026-11-28T10:00:00Z",
            "feedback": {"value": value},
            **more,
        }

    span = {
        "trace_id": "x+18QnEsc2K096ZjyN3dhg==",
        "span_id": "40oDGhWoLaM=",
        "parent_span_id": None,
        "name": "answer",
        "start_time_unix_nano": 1795944888241129053,
        "end_time_unix_nano": 1795944888255047059,
        "attributes": {
            "mlflow.traceRequestId": json.dumps(trace),
            "mlflow.spanType": '"CHAT_MODEL"',
            "mlflow.spanInputs": json.dumps({"messages": [{"role": "user", "content": question}]}),
            "mlflow.spanOutputs": json.dumps(answer),
        },
    }
    assessments = [
        assessment("helpful", score, "LLM_JUDGE"),
        assessment("correctness", not is_right(score), "HUMAN", valid=False),
        assessment("correctness", is_right(score), "HUMAN", valid=True, overrides="a-1"),
        {"assessment_name": "expected", "expectation": {"value": ["a list"]}},
    ]
    info = {"trace_id": trace, "state": "OK", "assessments": assessments}
    return {"info": info, "data": {"spans": [span]}}


def write_mlflow_json(folder: Path) -> Path:
    path = folder / "mlflow.json"
    path.write_text(json.dumps({"traces": [mlflow_trace(n) for n in range(len(ANSWERS))]}))
    return path


def write_mlflow_csv(folder: Path) -> Path:
    """A table as pandas writes it: the trace is JSON, other cells are printed by Python."""
    path = folder / "mlflow.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["trace_id", "trace", "state", "request", "response", "assessments"])
        for number, (question, answer, _) in enumerate(ANSWERS):
            trace = mlflow_trace(number)
            info = trace["info"]
            cells = [info["trace_id"], json.dumps(trace), "OK", {"q": question}, answer]
            writer.writerow([*cells, info["assessments"]])
    return path


def write_langsmith_runs(folder: Path) -> Path:
    records = []
    for number, (question, answer, score) in enumerate(ANSWERS):
        counts = {"stdev": 0.0, "errors": 0, "comments": [], "contains_thread_feedback": False}
        right = is_right(score)
        numeric = {"n": 1, "avg": score, "min": score, "max": score, "values": {}}
        category = {"correct" if right else "incorrect": 1}
        records.append(
            {
                "id": f"r-{number}",
                "trace_id": f"r-{number}",
                "name": "rag",
                "run_type": "chain",
                "parent_run_id": None,
                "start_time": "2026-11-27T10:00:00+00:00",
                "end_time": "2026-11-27T10:00:01+00:00",
                "inputs": {"question": question},
                "outputs": {"output": answer},
                "feedback_stats": {
                    "helpful": {**counts, **numeric},
                    "correctness": {**counts, "n": 1, "avg": None, "values": category},
                },
            }
        )
    return write_lines(folder / "langsmith.jsonl", records)


def write_langsmith_csv(folder: Path) -> Path:
    path = folder / "langsmith.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        names = ["helpful", "correctness"]
        columns = [f"feedback.{name}" for name in names]
        writer.writerow(["input.question", "outputs.answer", *columns, "error", "id"])
        for number, (question, answer, score) in enumerate(ANSWERS):
            right = float(is_right(score))
            writer.writerow([question, answer, score, right, "", f"r-{number}"])
    return path


WRITERS: list[Callable[[Path], Path]] = [
    *(write_langfuse, write_phoenix, write_mlflow_json, write_mlflow_csv),
    *(write_langsmith_runs, write_langsmith_csv),
]


@pytest.mark.parametrize("write", WRITERS)
def test_each_exporter_gives_one_row_an_answer(
    tmp_path: Path, write: Callable[[Path], Path]
) -> None:
    path = write(tmp_path)
    prefix = "feedback." if path.name == "langsmith.csv" else ""
    names = [f"{prefix}helpful", f"{prefix}correctness"]
    table = read_answer_table(path, names)
    assert len(table.rows) == len(ANSWERS)
    assert [float(value) for value in table.column(names[0])] == [score for *_, score in ANSWERS]
    assert table.rows[7].question == ANSWERS[7][0]
    if path.name != "langsmith.csv":
        # A column of outputs has whatever name the application uses.
        assert table.rows[7].response == ANSWERS[7][1]
    result = calibrate(path, score=names[0], label=names[1], at_most=0.1)
    assert len(result.scores) == len(ANSWERS)
    assert result.wrong.sum() == sum(not is_right(score) for *_, score in ANSWERS)
    assert result.above == pytest.approx(0.28, abs=0.1)


def test_a_judge_and_a_person_may_use_one_name(tmp_path: Path) -> None:
    records = []
    for number, (_, _, score) in enumerate(ANSWERS):
        judge = {"name": "helpful", "value": score, "source": "EVAL"}
        person = {"name": "helpful", "value": int(is_right(score)), "source": "ANNOTATION"}
        # Every other answer is labelled.
        records += langfuse_spans(number, [judge, person] if number % 2 else [judge])
    path = write_lines(tmp_path / "t.jsonl", records)
    table = read_answer_table(path, ["helpful"])
    assert table.column("helpful")[:2] == [0.0, 0.02]
    assert table.column("helpful", by_person=True)[:2] == [None, 0]
    result = calibrate(path, score="helpful", label="helpful")
    assert (result.answers, len(result.scores)) == (200, 100)


def test_one_column_is_not_both_score_and_label(tmp_path: Path) -> None:
    path = write_langfuse(tmp_path)
    with pytest.raises(InputError, match="helpful is named as the score and as the label"):
        calibrate(path, score="helpful", label="helpful")


def test_spans_with_score_and_label_are_rows(tmp_path: Path) -> None:
    judge, person = ({"name": "helpful", "value": 0.4}, {"name": "ok", "value": True})
    labelled, other = langfuse_spans(1, [judge, person]), langfuse_spans(2, [judge])
    labelled[1]["scores"] = [judge | {"value": 0.9}, person | {"value": False}]
    other[1]["scores"] = [judge | {"value": 0.7}]
    path = write_lines(tmp_path / "t.jsonl", labelled + other)
    table = read_answer_table(path, ["helpful", "ok"])
    assert [row.id for row in table.rows] == ["1-a", "1-b", "2-a", "2-b"]
    assert table.column("helpful") == [0.4, 0.9, 0.4, 0.7]
    assert table.column("ok") == [True, False, None, None]
    # Answers of a trace depend on each other.
    assert table.rows[0].question == table.rows[1].question == ANSWERS[1][0]


def test_several_values_of_a_trace_are_refused_by_its_name(tmp_path: Path) -> None:
    judge, person = ({"name": "helpful", "value": 0.4}, {"name": "ok", "value": True})
    spans = langfuse_spans(1, [judge], "llm")
    spans[0]["scores"] = [judge | {"value": 0.9}]
    spans.append({**spans[1], "id": "1-c", "scores": [person]})
    table = read_answer_table(write_lines(tmp_path / "t.jsonl", spans), ["helpful", "ok"])
    with pytest.raises(
        InputError,
        match=r"trace t-1: expected one value of helpful for an answer, got 2: \[0.9, 0.4\]",
    ):
        table.column("helpful")


@pytest.mark.parametrize(
    ("item", "value", "by_person"),
    [
        # Langfuse's older form: the category's number stands under `value`
        ({"name": "k", "value": 0, "stringValue": "good", "source": "ANNOTATION"}, "good", True),
        ({"name": "k", "value": 1.0, "stringValue": None, "source": "API"}, 1.0, False),
        # LangSmith's list of feedback
        ({"key": "k", "score": 1, "value": {}, "feedback_source": {"type": "app"}}, 1, True),
        ({"key": "k", "score": None, "value": "bad", "feedback_source": {"type": "model"}},
         "bad", False),
        ({"name": "k", "annotator_kind": "CODE", "result": {"score": None, "label": "x"}},
         "x", False),
        ({"name": "k", "source": {"source_type": "HUMAN"}, "feedback": {"value": False}},
         False, True),
    ],
)  # fmt: skip
def test_forms_of_a_score(item: Json, value: Any, by_person: bool) -> None:
    [score] = read_trace_scores({"scores": [item]})
    assert score == ("k", value, by_person)
    assert read_trace_scores({"feedback": str([item])}) == [score]


def test_counts_of_different_values_are_several_values() -> None:
    counts = {"n": 2, "avg": 0.5, "min": 0.0, "max": 1.0, "values": {}}
    record = {"feedback_stats": {"k": counts, "c": {"n": 2, "values": {"good": 1, "bad": 1}}}}
    assert [score.value for score in read_trace_scores(record)] == [0.0, 1.0, "good", "bad"]


@pytest.mark.parametrize(
    "content", ["no list", 7, None, [], [None, 3, "x"], [{"name": "k"}], [{"value": 1}], {}]
)
def test_anything_else_is_no_score(content: Any) -> None:
    assert read_trace_scores({"scores": content, "info": content}) == []
