"""The workflow of the page on continuous integration: its steps are read from the page and run."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.docs.pages import DOCS, blocks

SYSTEM = """import json, sys

for line in open(sys.argv[1], encoding="utf-8"):
    record = json.loads(line)
    record["response"] = record["right"]
    print(json.dumps(record))
"""


def steps() -> Mapping[str, Mapping[str, Any]]:
    """Return the named steps of the workflow's jobs."""
    text = (DOCS / "errands" / "ci.md").read_text(encoding="utf-8")
    workflow = next(block.body for block in blocks(text) if block.language == "yaml")
    jobs = yaml.safe_load(workflow)["jobs"].values()
    every_step = [step for job in jobs for step in job["steps"]]
    return {step["name"]: step for step in every_step if "name" in step and "run" in step}


def run(name: str, folder: Path) -> int:
    """Run a step as GitHub does, with ``bash -e``; return its exit status."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "TRUSTASSAY_CACHE": ".trustassay/calls"}
    command = ["bash", "-e", "-o", "pipefail", "-c", steps()[name]["run"]]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=False)
    return done.returncode


def questions(folder: Path, wrong: int, blank: int = 0, name: str = "questions") -> None:
    """Write 60 questions; the system answers the first wrongly, and the last not at all."""
    records = []
    for n in range(60):
        answer = f"Tower {n} is {70 if n < wrong else 40} metres high."
        records.append(
            {
                "id": str(n),
                "question": f"How high is tower {n}?",
                "documents": [f"Tower {n} is 40 metres high."],
                "right": answer if n < 60 - blank else "",
            }
        )
    text = "\n".join(map(json.dumps, records)) + "\n"
    (folder / f"{name}.jsonl").write_text(text, encoding="utf-8")


def gated(folder: Path) -> list[int]:
    """Score and gate as a job does, which begins with an empty folder; return the statuses."""
    shutil.rmtree(folder / "runs" / "new", ignore_errors=True)
    return [run(name, folder) for name in ("Score", "Gate")]


def failing_lines(folder: Path, name: str = "gate.md") -> list[str]:
    lines = (folder / name).read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line.startswith("| ❌")]


@pytest.mark.slow
def test_the_workflow_passes_equal_answers_and_fails_a_collapse(tmp_path: Path) -> None:
    (tmp_path / "my_system.py").write_text(SYSTEM, encoding="utf-8")
    questions(tmp_path, wrong=0)
    assert [run(name, tmp_path) for name in ("Score", "Keep")] == [0, 0]
    shutil.copytree(tmp_path / "runs/main", tmp_path / "runs/anchor")
    assert gated(tmp_path) == [0, 0]
    questions(tmp_path, wrong=40)
    assert gated(tmp_path) == [0, 1]
    assert failing_lines(tmp_path)


@pytest.mark.slow
def test_small_falls_add_up_to_a_failure_at_the_anchor(tmp_path: Path) -> None:
    """Four more wrong answers at a time may be chance; those since the anchor together are not."""
    (tmp_path / "my_system.py").write_text(SYSTEM, encoding="utf-8")
    questions(tmp_path, wrong=0)
    assert [run(name, tmp_path) for name in ("Score", "Keep")] == [0, 0]
    shutil.copytree(tmp_path / "runs/main", tmp_path / "runs/anchor")
    statuses = []
    for wrong in (4, 8, 12, 16):
        questions(tmp_path, wrong=wrong)
        statuses.append(gated(tmp_path)[1])
        if statuses[-1] == 1:
            break
        assert run("Keep", tmp_path) == 0
    assert statuses[0] == 0
    assert statuses[-1] == 1
    assert failing_lines(tmp_path) == []
    assert "runs/anchor" in "".join(failing_lines(tmp_path, "gate-anchor.md"))


@pytest.mark.slow
def test_blank_answers_do_not_stop_the_job_before_the_gate(tmp_path: Path) -> None:
    (tmp_path / "my_system.py").write_text(SYSTEM, encoding="utf-8")
    questions(tmp_path, wrong=0)
    assert [run(name, tmp_path) for name in ("Score", "Keep")] == [0, 0]
    shutil.copytree(tmp_path / "runs/main", tmp_path / "runs/anchor")
    questions(tmp_path, wrong=0, blank=30)
    assert gated(tmp_path) == [0, 1]
    assert all("not_answered" in line for line in failing_lines(tmp_path))


@pytest.mark.slow
def test_the_nightly_job_compares_with_an_anchor_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "my_system.py").write_text(SYSTEM, encoding="utf-8")
    questions(tmp_path, wrong=0, name="nightly")
    assert run("Nightly", tmp_path) == 2  # there is no anchor yet
    shutil.move(tmp_path / "runs/night", tmp_path / "runs/night-anchor")
    assert run("Nightly", tmp_path) == 0
    shutil.rmtree(tmp_path / "runs/night")
    questions(tmp_path, wrong=30, name="nightly")
    assert run("Nightly", tmp_path) == 1


def test_it_installs_from_an_address_that_the_reader_gives() -> None:
    assert steps()["Install"]["run"] == 'pip install "$TRUSTASSAY"'
