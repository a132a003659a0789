"""``demo --all``: recorded replies of a real model, which have to answer today's prompts."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.support import lines
from trustassay.cli import demo

AGAIN = "a prompt has changed since: python -m lab.benchmarks.recording"
"""What to do where a reply is missing."""


@pytest.mark.slow
def test_the_recorded_replies_answer_all_that_is_asked(tmp_path: Path) -> None:
    asked, cited = demo.score_recorded(tmp_path, "lexical")
    for run in (asked, cited):
        failures = {one.metric: one.error for one in run.assessments if one.error}
        assert not failures, f"{AGAIN} ({failures})"
    assert {one.metric for one in asked.assessments} == {
        "consistency",
        "factcheck",
        "trustscore",
        "harmonicity",
        "semantic_harmonicity",
        "uncertainty",
        "fewl",
        "judge",
    }
    assert len(asked.assessments) == 8 * 60
    assert len(cited.assessments) == 60


def test_it_is_small_and_tells_its_model() -> None:
    size = sum(path.stat().st_size for path in demo.FOLDER.iterdir())
    assert size < 3_000_000
    with gzip.open(demo.REPLIES) as file:
        assert {json.loads(line)["model"] for line in file} == {demo.MODEL}
    for name in ("answers.jsonl", "cited.jsonl"):
        records = [json.loads(line) for line in (demo.FOLDER / name).read_text().splitlines()]
        assert len(records) == 60
        assert {one["model"] for one in records} == {demo.MODEL}


def test_a_changed_prompt_has_no_reply(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    changed = tmp_path / "question.jinja"
    changed.write_text("Tell me: {{ question }}", "utf-8")
    part = demo.PARTS["closed-book"]
    metrics = [f"semantic_harmonicity:perturbations=1,prompt={changed},original=response"]
    monkeypatch.setattr(
        demo, "PARTS", {"closed-book": part._replace(metrics=metrics, roles=["model"])}
    )
    (run,) = demo.score_recorded(tmp_path / "out", "lexical")
    assert all("no reply to" in (one.error or "") for one in run.assessments)


@pytest.mark.slow
def test_json_is_one_object_of_both_runs(cli: Cli) -> None:
    said = cli("demo", "--all", "--entailer", "lexical", "--out", "x", "--json")
    found = json.loads(said.out)
    assert list(found) == ["closed-book", "cited"]
    assert len(found["closed-book"]["metrics"]) == 8
    none = found["closed-book"]["metrics"]["consistency"]["values"]["none_chosen"]
    assert f"none of the options in {none:.0f} %" in " ".join(said.err.split())


def test_the_command_shows_every_method(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = tmp_path / "few"
    few.mkdir()
    for part in demo.PARTS.values():
        rows = (demo.FOLDER / part.file).read_bytes().splitlines(keepends=True)
        (few / part.file).write_bytes(b"".join(rows[:6]))
    monkeypatch.setattr(demo, "FOLDER", few)
    said = cli("demo", "--all", "--entailer", "lexical", "--out", "x")
    assert said.status == 0
    for title in ("TrustScore", "FEWL", "Harmonic robustness", "Uncertainty", "Trust-Eval"):
        assert title in said.out + said.err
    assert "Apache-2.0" in said.err
    assert "trustassay study x/closed-book --label label" in said.err
    assert len(lines(tmp_path / "x" / "closed-book" / "assessments.jsonl")) == 8 * 6
    assert (tmp_path / "x" / "cited" / "report.html").exists()
