"""``trustassay report``: the page again, from what is stored."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.support import jsonl, records


@pytest.fixture
def run(cli: Cli, tmp_path: Path) -> Path:
    jsonl(tmp_path / "in.jsonl", records(2))
    assert cli("score", "in.jsonl", "--entailer", "lexical", "--out", "run").status == 0
    return tmp_path / "run"


def test_the_same_page_again(cli: Cli, run: Path) -> None:
    page = (run / "report.html").read_bytes()
    (run / "report.html").unlink()
    said = cli("report", "run")
    assert said == (0, "", "report: run/report.html\n")
    assert (run / "report.html").read_bytes() == page


@pytest.mark.parametrize("what", ["nothing", "in.jsonl", "."])
def test_where_there_is_no_run(cli: Cli, run: Path, what: str) -> None:
    said = cli("report", what)
    assert said.status == 2
    assert said.err.startswith("trustassay: ")
    assert said.err.count("\n") == 1


@pytest.mark.parametrize("name", ["run.json", "summary.json"])
@pytest.mark.parametrize("content", ["{}", "{", "[]", '"x"', '{"metrics": {"grounding": {}}}'])
def test_a_damaged_run(cli: Cli, run: Path, name: str, content: str) -> None:
    (run / name).write_text(content)
    said = cli("report", "run")
    assert said.status == 2
    assert f"run/{name}: damaged" in said.err


def test_a_metric_that_is_not_installed_any_more(cli: Cli, run: Path) -> None:
    settings = json.loads((run / "run.json").read_text())
    settings["metrics"] = {"groundling": {}}
    (run / "run.json").write_text(json.dumps(settings))
    said = cli("report", "run")
    assert said.status == 2
    assert "unknown metric 'groundling'; did you mean grounding?" in said.err


def test_a_report_does_not_need_the_input_any_more(cli: Cli, run: Path) -> None:
    (run.parent / "in.jsonl").unlink()
    assert cli("report", "run").status == 0
