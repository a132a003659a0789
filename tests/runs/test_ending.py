"""The end of a run: every step can be interrupted and is taken up; damage is named."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support import Probe, command, jsonl, lines, records, results, run_command
from trustassay import score
from trustassay.core.metric import Assessment, Summary
from trustassay.errors import RunFolderError
from trustassay.runs.folder import RunFolder
from trustassay.runs.report import write_report

STEPS = [
    "sorting assessments",
    "summarising grounding",
    "counting groups",
    "writing the table",
    "writing the report",
]


# Interrupted

PROGRAM = """
import sys, time
from trustassay.runs import {module}, results

owner, name = {module}{owner}, "{name}"
quick = getattr(owner, name)
calls = 0

def slow(*arguments, **options):
    global calls
    calls += 1
    if calls == {after}:
        print("under way", flush=True)
    if calls >= {after}:
        time.sleep(0.5)
    return quick(*arguments, **options)

setattr(owner, name, slow)
results.ROWS_PER_BATCH = 16
sys.argv = ["trustassay", "score", "in.jsonl", "--entailer", "lexical", "--out", "run"]
from trustassay.cli.main import main
main()
"""
SAMPLES = 200


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("unbroken")
    jsonl(home / "in.jsonl", records(SAMPLES))
    said = run_command("score", "in.jsonl", "--entailer", "lexical", "--out", "run", cwd=home)
    assert said.returncode == 0
    return home / "run"


@pytest.mark.parametrize(
    ("module", "owner", "name", "after"),
    [
        ("lines", "", "parse_sample_id", 20),
        ("lines", ".StoredAssessments", "_read", 20),
        ("counts", "", "finding_of", 20),
        ("lines", ".AssessmentLine", "evidence_text", 40),
        ("folder", ".RunFolder", "sample_at", 20),
    ],
    ids=STEPS,
)
@pytest.mark.slow
def test_interrupted_in_a_step_it_ends_at_once_and_goes_on_later(
    tmp_path: Path, unbroken: Path, module: str, owner: str, name: str, after: int
) -> None:
    """Every slow step would take 80 s or more."""
    jsonl(tmp_path / "in.jsonl", records(SAMPLES))
    program = PROGRAM.format(module=module, owner=owner, name=name, after=after)
    with subprocess.Popen(
        command("-c", program),
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == "under way\n"
        process.send_signal(signal.SIGINT)
        sent = time.monotonic()
        _, said = process.communicate(timeout=120)
        took = time.monotonic() - sent
    assert process.returncode == 130
    assert "interrupted; run the same command again" in said
    assert "Traceback" not in said
    assert took < 60
    left = {path.name for path in (tmp_path / "run").iterdir()}
    assert not [name for name in left if name.startswith(".")]
    assert "report.html" not in left
    said_again = run_command(
        "score", "in.jsonl", "--entailer", "lexical", "--out", "run", cwd=tmp_path
    )
    assert said_again.returncode == 0
    assert results(tmp_path / "run") == results(unbroken)
    for file in ("assessments.parquet", "report.html"):
        assert (tmp_path / "run" / file).read_bytes() == (unbroken / file).read_bytes()


# Read without evidence


@dataclass(frozen=True)
class Looking(Probe):
    """Its figures are made of evidence."""

    def summarise(self, assessments: Collection[Assessment], *, seed: int = 0) -> Summary:
        texts = sum(len(item["text"]) for one in assessments for item in one.evidence)
        return Summary({"mean": texts}, n=len(assessments), failed=0)


def test_a_metric_may_look_at_evidence_when_it_sums_up(probe_installed: Path) -> None:
    async def shown(sample: Any, models: Any) -> Assessment:
        evidence = [{"text": "é" * n} for n in range(int(sample.id[1:]))]
        return Assessment(sample.id, "probe", 1.0, evidence=evidence)

    run = score(records(5), metrics=[Looking(shown)], entailer="lexical")
    assert run.summary["probe"]["mean"] == 0 + 0 + 1 + 3 + 6
    assert [len(one.evidence) for one in run.assessments] == [0, 1, 2, 3, 4]
    assert run.assessments[2].evidence == [{"text": ""}, {"text": "é"}]


# Damaged


@pytest.fixture
def finished(tmp_path: Path) -> Path:
    score(records(4), metrics="grounding", entailer="lexical", out=tmp_path / "run")
    return tmp_path / "run"


@pytest.mark.parametrize("change", ["swapped", "doubled", "missing"])
def test_lines_that_are_not_in_their_place_are_named(finished: Path, change: str) -> None:
    path = finished / "assessments.jsonl"
    first, second, *rest = path.read_bytes().splitlines(keepends=True)
    changed = {
        "swapped": [second, first, *rest],
        "doubled": [first, first, second, *rest],
        "missing": [first, *rest],
    }[change]
    path.write_bytes(b"".join(changed))
    with pytest.raises(RunFolderError, match="does not occur once per metric in input order"):
        write_report(RunFolder(finished))
    (finished / "summary.json").unlink()
    score(records(4), metrics="grounding", entailer="lexical", out=finished)
    assert [line["id"] for line in lines(path)] == ["q0", "q1", "q2", "q3"]
    assert (finished / "report.html").exists()


def test_damaged_evidence_is_named(finished: Path) -> None:
    path = finished / "assessments.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"kind": "sent', b'"kind" "sent', 1))
    with pytest.raises(RunFolderError, match=r"assessments\.jsonl:1: damaged"):
        write_report(RunFolder(finished))
