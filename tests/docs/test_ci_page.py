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
    """Return the named steps of the workflow."""
    text = (DOCS / "errands" / "ci.md").read_text(encoding="utf-8")
    workflow = next(block.body for block in blocks(text) if block.language == "yaml")
    found = yaml.safe_load(workflow)["jobs"]["gate"]["steps"]
    return {step["name"]: step for step in found if "name" in step and "run" in step}


def run(name: str, folder: Path) -> int:
    """Run a step as GitHub does, with ``bash -e``; return its exit status."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "TRUSTASSAY_CACHE": ".trustassay/calls"}
    command = ["bash", "-e", "-o", "pipefail", "-c", steps()[name]["run"]]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=False)
    return done.returncode


def questions(folder: Path, right: int) -> None:
    """Write 60 questions, of which the system answers so many as the passage says."""
    records = [
        {
            "id": str(n),
            "question": f"How high is tower {n}?",
            "documents": [f"Tower {n} is 40 metres high."],
            "right": f"Tower {n} is {40 if n < right else 70} metres high.",
        }
        for n in range(60)
    ]
    text = "\n".join(map(json.dumps, records)) + "\n"
    (folder / "questions.jsonl").write_text(text, encoding="utf-8")


@pytest.mark.slow
def test_the_workflow_passes_equal_answers_and_fails_a_collapse(tmp_path: Path) -> None:
    (tmp_path / "my_system.py").write_text(SYSTEM, encoding="utf-8")
    questions(tmp_path, right=60)
    assert [run(name, tmp_path) for name in ("Score", "Keep")] == [0, 0]
    assert [run(name, tmp_path) for name in ("Score", "Gate")] == [0, 0]
    shutil.rmtree(tmp_path / "runs" / "new")  # each job begins with an empty folder
    questions(tmp_path, right=20)
    assert [run(name, tmp_path) for name in ("Score", "Gate")] == [0, 1]
    assert "fail" in (tmp_path / "gate.md").read_text(encoding="utf-8")


def test_it_installs_from_an_address_that_the_reader_gives() -> None:
    assert steps()["Install"]["run"] == 'pip install "$TRUSTASSAY"'
