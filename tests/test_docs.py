"""docs/methods/grounding.md says what the code does. Commands and links: tests/docs."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from trustassay.cli.gate import STATUS
from trustassay.cli.main import app
from trustassay.metrics.grounding.maths import VERDICT_REASONS
from trustassay.metrics.grounding.options import PROFILES, Rules

ROOT = Path(__file__).parent.parent
GROUNDING = (ROOT / "docs" / "methods/grounding.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("rule", [f.name for f in dataclasses.fields(Rules)])
def test_every_rule_stands_with_its_value_in_both_profiles(rule: str) -> None:
    row = re.search(rf"^\| `{rule}` \| (.*?) \| (.*?) \|", GROUNDING, re.MULTILINE)
    assert row, rule
    for shown, profile in zip(row.groups(), ("default", "paper"), strict=True):
        value = getattr(PROFILES[profile], rule)
        expected = {True: "yes", False: "no"}.get(value, f"`{value}`")
        assert shown == expected


@pytest.mark.parametrize("verdict", VERDICT_REASONS)
def test_every_verdict_is_explained(verdict: str) -> None:
    assert f"| {verdict} |" in GROUNDING


def test_the_workflow_of_the_documentation_runs_commands_that_exist() -> None:
    text = (ROOT / "docs" / "errands/ci.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    steps = yaml.safe_load(block)["jobs"]["gate"]["steps"]
    lines = [line for step in steps for line in step.get("run", "").splitlines()]
    commands = [line.split()[1:] for line in lines if line.startswith("trustassay ")]
    assert [command for command, *_ in commands] == ["score", "gate", "gate"]
    for command, *rest in commands:
        help_text = CliRunner().invoke(app, [command, "--help-all"], env={"COLUMNS": "200"}).output
        assert all(word in help_text for word in rest if word.startswith("--"))
    written = {word for command in commands for word in command if word.startswith("gate")}
    assert written == {"gate", "gate.md", "gate.xml", "gate-anchor.md"}
    (kept,) = (step["with"]["path"] for step in steps if "upload-artifact" in step.get("uses", ""))
    assert kept.splitlines() == ["runs/new/report.html", "gate*"]


def test_the_exit_statuses_of_the_gate_are_those_of_the_documentation() -> None:
    text = (ROOT / "docs" / "errands/ci.md").read_text(encoding="utf-8")
    told = {int(one) for one in re.findall(r"^\| (\d) \|", text, re.MULTILINE)}
    assert told == {*STATUS.values(), 2}
