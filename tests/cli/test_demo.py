"""``trustassay demo``: the bundled answers, end to end, with nothing installed."""

import json
from pathlib import Path

from tests.cli.conftest import Cli
from tests.support import run_command
from trustassay.cli.demo import NEXT_STEPS


def test_the_demo_scores_all_and_names_the_report(cli: Cli, tmp_path: Path) -> None:
    said = cli("demo", "--entailer", "lexical", "--json")
    assert said.status == 0
    content = json.loads(said.out)["metrics"]["faithfulness"]
    assert content["n"] == 60
    assert content["failed"] == 0
    (report,) = (tmp_path / "trustassay-runs").glob("demo-*/report.html")
    assert f"report: {report.relative_to(tmp_path)}" in said.err


def test_the_demo_again_shows_the_same(cli: Cli) -> None:
    first = cli("demo", "--entailer", "lexical", "--out", "x", "--json")
    again = cli("demo", "--entailer", "lexical", "--out", "x", "--json")
    assert again.out == first.out
    lines = first.err.splitlines()
    passing = ("first result of", "scoring: ", "writing the report")  # progress, where it is slow
    assert [line for line in lines if not line.startswith(passing)] == again.err.splitlines()


def test_the_demo_shows_the_sentence_and_the_passage_that_decide(cli: Cli) -> None:
    lines = cli("demo", "--out", "x").err.splitlines()
    at = lines.index("  How many hearts does an octopus have? (octopus)")
    assert lines[at + 1 : at + 3] == [
        "    contradicted: “An octopus has eight hearts.”",
        "    passage [1] says: “An octopus has three hearts, of which two serve the gills.”",
    ]


def test_the_demo_ends_with_commands_for_a_file_of_the_user(cli: Cli) -> None:
    lines = cli("demo", "--entailer", "lexical", "--out", "x").err.splitlines()
    assert lines[-4:] == list(NEXT_STEPS)
    for line in NEXT_STEPS[1:]:
        command = line.split("   ")[0].split()
        assert command[0] == "trustassay"
        assert cli(command[1], "--help").status == 0


def test_with_quiet_the_last_line_names_the_run(cli: Cli) -> None:
    result = cli("--quiet", "demo", "--entailer", "lexical", "--out", "x")
    assert result.err.splitlines() == ["run:    x"]


def test_the_demo_from_any_folder_as_a_user_starts_it(tmp_path: Path) -> None:
    done = run_command("demo", "--entailer", "lexical", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert " of 60 questions." in done.stderr
