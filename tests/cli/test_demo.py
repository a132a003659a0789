"""``trustassay demo``: the bundled answers, end to end, with nothing installed."""

import json
from pathlib import Path

from tests.cli.conftest import Cli
from tests.support import lines, run_command


def test_the_demo_scores_all_and_names_the_report(cli: Cli, tmp_path: Path) -> None:
    said = cli("demo", "--entailer", "lexical", "--json")
    assert said.status == 0
    content = json.loads(said.out)["metrics"]["grounding"]
    assert content["n"] >= 25
    assert content["failed"] == 0
    assert content["values"]["trust_score"] is not None
    (report,) = (tmp_path / "trustassay-runs").glob("demo-*/report.html")
    assert f"report: {report.relative_to(tmp_path)}" in said.err


def test_the_demo_again_shows_the_same(cli: Cli) -> None:
    first = cli("demo", "--entailer", "lexical", "--out", "x", "--json")
    again = cli("demo", "--entailer", "lexical", "--out", "x", "--json")
    assert again.out == first.out
    lines = first.err.splitlines()
    passing = ("first result of", "scoring: ", "writing the report")  # progress, where it is slow
    assert [line for line in lines if not line.startswith(passing)] == again.err.splitlines()


def test_the_demo_has_refusals_and_bad_answers_among_the_good(cli: Cli, tmp_path: Path) -> None:
    cli("demo", "--entailer", "lexical", "--out", "x")
    found = lines(tmp_path / "x" / "assessments.jsonl")
    assert {line["verdict"] for line in found} == {"answered", "refused"}
    scores = [line["score"] for line in found if line["score"] is not None]
    assert min(scores) < 0.3
    assert max(scores) > 0.9


def test_the_demo_from_any_folder_as_a_user_starts_it(tmp_path: Path) -> None:
    done = run_command("demo", "--entailer", "lexical", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert " of 32 questions." in done.stderr
