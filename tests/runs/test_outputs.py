"""What a run leaves behind: figures that add up, a table for every tool, and a page."""

import json
import re
from pathlib import Path
from typing import Any

import arro3.io
import pytest

from tests.support import YES, Probe, Recorder, lines, record, records, summary_of
from trustassay import Sample, score
from trustassay.core.capabilities import Models
from trustassay.core.metric import Assessment
from trustassay.errors import RunFolderError
from trustassay.runs import counts, results
from trustassay.runs.folder import RunFolder
from trustassay.runs.report import write_report

METRICS = ["grounding"]


def test_the_summary_has_the_shape_of_the_contract(tmp_path: Path) -> None:
    score(records(3), metrics=METRICS, entailer=Recorder(), out=tmp_path / "run")
    content = json.loads((tmp_path / "run" / "summary.json").read_text())
    expected = {
        "metrics",
        "calls",
        "asked",
        "skipped",
        "looked",
        "outcomes",
        "kind",
        "questions",
        "seconds",
    }
    assert set(content) == expected
    assert content["kind"] == "partly reworded"
    assert content["seconds"] > 0
    assert content["looked"] == {"answers": 3, "flagged": 0, "failed": 0, "judged": 3}
    grounding = content["metrics"]["grounding"]
    assert (grounding["n"], grounding["failed"]) == (3, 0)
    for key, value in grounding["values"].items():
        assert (value is None) == (key in grounding["not_applicable"])
    for key, (low, high) in grounding["intervals"].items():
        assert low <= grounding["values"][key] <= high


def test_one_line_of_assessments_has_the_shape_of_the_contract(tmp_path: Path) -> None:
    score(records(1), metrics=METRICS, entailer=Recorder(), out=tmp_path / "run")
    (line,) = lines(tmp_path / "run" / "assessments.jsonl")
    assert list(line) == [
        *(
            "id",
            "metric",
            "score",
            "verdict",
            "reason",
            "parts",
            "evidence",
            "calls",
            "asked",
            "error",
        )
    ]


def test_the_table_holds_what_the_lines_hold(tmp_path: Path) -> None:
    def judge(premise: str, hypothesis: str) -> tuple[float, float, float]:
        if "umber 1" in hypothesis:
            raise RuntimeError("no")
        return YES

    score(records(3), metrics=METRICS, entailer=Recorder(judge), out=tmp_path / "run")
    rows = lines(tmp_path / "run" / "assessments.jsonl")
    found = arro3.io.read_parquet(str(tmp_path / "run" / "assessments.parquet")).read_all()
    columns = {name: found.column(name).to_pylist() for name in found.column_names}
    for name in ("id", "metric", "score", "verdict", "reason", "error"):
        assert columns[name] == [row[name] for row in rows]
    assert [json.loads(e) for e in columns["evidence"]] == [row["evidence"] for row in rows]
    for name in {name for row in rows for name in row["parts"]}:
        assert columns[f"parts.{name}"] == [row["parts"].get(name) for row in rows]


def test_the_table_and_the_frame_name_the_outcome_of_each_answer(tmp_path: Path) -> None:
    refusal = "I am sorry, but I cannot find that in the documents."
    rows = [record(0), record(1, response=refusal), record(2, response=" ")]
    metrics = ["faithfulness", "reference:parts=em"]
    rows = [{**row, "answers": ["x"]} for row in rows]
    run = score(rows, metrics=metrics, entailer=Recorder(), out=tmp_path / "run")
    frame = run.to_pandas().set_index(["id", "metric"]).sort_index()
    kinds = frame["outcome"].unstack().to_dict("list")
    assert kinds == {
        "faithfulness": ["passed", "not_answered", "not_answered"],
        "reference": ["scored", "scored", "not_scored"],
    }
    reasons = frame["outcome_reason"].unstack()["faithfulness"]
    assert reasons.isna().tolist() == [True, False, False]
    assert reasons.tolist()[1:] == ["refused", "blank"]
    table = arro3.io.read_parquet(str(tmp_path / "run" / "assessments.parquet")).read_all()
    assert table.column_names[:4] == ["id", "metric", "outcome", "outcome_reason"]
    outcomes = run.outcomes["faithfulness"]
    assert (outcomes.passed.answers, outcomes.not_answered.answers) == (1, 2)  # type: ignore[union-attr]


def test_a_run_of_an_earlier_version_has_its_outcomes_counted(tmp_path: Path) -> None:
    run = score(records(3), metrics=METRICS, entailer=Recorder(), out=tmp_path / "run")
    expected, frame = run.outcomes, run.to_pandas()
    path = tmp_path / "run" / "summary.json"
    summary = json.loads(path.read_text())
    del summary["outcomes"], summary["looked"]["judged"]
    path.write_text(json.dumps(summary))
    table = arro3.io.read_parquet(str(tmp_path / "run" / "assessments.parquet")).read_all()
    older = table.select([name for name in table.column_names if not name.startswith("outcome")])
    arro3.io.write_parquet(older, str(tmp_path / "run" / "assessments.parquet"))
    again = score(records(3), metrics=METRICS, entailer=Recorder(), out=tmp_path / "run")
    assert again.outcomes == expected
    assert again.to_pandas()[list(frame)].equals(frame)


def test_a_table_of_many_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "ROWS_PER_BATCH", 7)
    run = score(records(20), metrics=METRICS, entailer="lexical")
    assert run.to_pandas()["id"].tolist() == [f"q{i}" for i in range(20)]


def test_a_run_in_which_everything_failed_still_has_its_outputs(tmp_path: Path) -> None:
    def judge(premise: str, hypothesis: str) -> tuple[float, float, float]:
        raise RuntimeError("no")

    run = score(records(2), metrics=METRICS, entailer=Recorder(judge), out=tmp_path / "run")
    assert run.summaries["grounding"].failed == 2
    assert "NaN" not in (tmp_path / "run" / "summary.json").read_text()
    assert (tmp_path / "run" / "report.html").exists()
    assert run.to_pandas()["score"].isna().all()


def test_the_lowest_scores_and_all_failures_come_on_the_page_of_a_long_run(
    tmp_path: Path, probe_installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counts, "MAX_ANSWERS_SHOWN", 3)

    async def by_number(sample: Sample, models: Models) -> Any:
        number = int(sample.id[1:])
        if number == 7:
            raise RuntimeError("failed")
        if number == 8:
            return Assessment(sample.id, "probe", None, reason="nothing to say")
        return number / 10

    score(
        [record(i, response=f"uniquetext{i}x") for i in range(10)],
        metrics=[Probe(by_number)],
        entailer="lexical",
        out=tmp_path / "run",
    )
    page = (tmp_path / "run" / "report.html").read_text()
    assert [i for i in range(10) if f"uniquetext{i}x" in page] == [0, 1, 7]
    assert "This page lists 3 of 10 answers: in turn the worst" in re.sub(r"<[^>]+>", "", page)


def test_a_report_can_be_written_again(tmp_path: Path) -> None:
    score(records(2), metrics=METRICS, entailer=Recorder(), out=tmp_path / "run")
    page = (tmp_path / "run" / "report.html").read_text()
    (tmp_path / "run" / "report.html").unlink()
    write_report(RunFolder(tmp_path / "run"))
    assert (tmp_path / "run" / "report.html").read_text() == page


@pytest.mark.parametrize("name", ["run", "summary"])
@pytest.mark.parametrize(
    "content", ["", "{}", "[]", '{"metrics": {"grounding": 3}}', '{"metrics": {}, "calls": {}}']
)
def test_damage_is_named(tmp_path: Path, name: str, content: str) -> None:
    score(records(2), metrics=METRICS, entailer=Recorder(), out=tmp_path / "run")
    (tmp_path / "run" / f"{name}.json").write_text(content)
    with pytest.raises(RunFolderError, match=rf"{name}\.json: damaged"):
        write_report(RunFolder(tmp_path / "run"))


def test_a_report_needs_a_finished_run(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match="holds no finished run"):
        write_report(RunFolder(tmp_path))
    score(records(2), metrics=METRICS, entailer=Recorder(), out=tmp_path / "run")
    (tmp_path / "run" / "summary.json").unlink()
    with pytest.raises(RunFolderError, match="holds no finished run"):
        write_report(RunFolder(tmp_path / "run"))


def test_summaries_of_two_metrics_stand_side_by_side(tmp_path: Path, probe_installed: Path) -> None:
    score(records(2), metrics=["probe", "grounding"], entailer=Recorder(), out=tmp_path / "run")
    found = summary_of(tmp_path / "run")
    assert found["metrics"]["probe"]["values"] == {"mean": 1.0}
    assert found["metrics"]["grounding"]["n"] == 2
