"""``--allow-missing-references``: absent references beside the mean, on the command line."""

from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.support import jsonl, summary_of

ANSWERERS = """
from trustassay.errors import CallError

def a(prompt):
    return "Paris."

def b(prompt):
    raise CallError("b is closed", "refused")
"""
COMMAND = (
    *("score", "asked.jsonl", "--metric", "fewl:weights=uniform"),
    *("--backend", "reference=a=python:references_of_test:a"),
    *("--backend", "reference=b=python:references_of_test:b"),
)


@pytest.fixture(autouse=True)
def place(tmp_path: Path) -> Path:
    (tmp_path / "references_of_test.py").write_text(ANSWERERS)
    rows = [{"id": str(i), "question": f"What is {i}?", "response": "Paris."} for i in range(3)]
    jsonl(tmp_path / "asked.jsonl", rows)
    return tmp_path


def test_a_reference_that_never_answers_fails_all_samples(cli: Cli, place: Path) -> None:
    result = cli(*COMMAND, "--out", "run")
    assert result.status == 1
    assert summary_of(place / "run")["metrics"]["fewl"]["failed"] == 3
    assert "did not answer 3 of 3 requests" in result.err


def test_allowed_absences_are_shown_by_reference_and_kind(cli: Cli, place: Path) -> None:
    result = cli(*COMMAND, "--allow-missing-references", "--out", "run")
    assert result.status == 0
    assert summary_of(place / "run")["metrics"]["fewl"]["failed"] == 0
    assert "b is absent from 3 of 3 scores (refused" in result.err


def test_the_flag_needs_fewl(cli: Cli) -> None:
    result = cli("score", "asked.jsonl", "--metric", "reference", "--allow-missing-references")
    assert result.status == 2
    assert "--allow-missing-references: needs --metric fewl" in result.err
