"""``trustassay gate`` and ``compare`` as a user meets them: status, table, files."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.people.towns import town_run, towns
from trustassay import score

CITED = "grounding.answered_citation_f1"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("runs")
    town_run(home / "base", towns(30))
    town_run(home / "junk", towns(30, junk=True))
    town_run(home / "one", towns(1))
    return home


def test_pass(cli: Cli, runs: Path) -> None:
    said = cli("gate", runs / "base", "--no-worse-than", runs / "base", "--min", f"{CITED}=60")
    assert said.status == 0
    assert said.out.startswith("grounding: 100 % supported (95 % interval 9")
    assert said.out.endswith("gate: pass\n")
    assert "0 answers got worse" in said.out
    assert "supported 100.0 → 100.0 %, not supported 0.0 → 0.0 %, not answered" in said.out


def test_fail_lists_the_answers_and_writes_the_files(cli: Cli, runs: Path, tmp_path: Path) -> None:
    said = cli(
        *("gate", runs / "junk", "--no-worse-than", runs / "base", "--json"),
        *("--markdown", "out/gate.md", "--junit", "out/gate.xml"),
    )
    assert said.status == 1
    assert "10 answers got worse, 0 got better, 20 stayed the same" in said.err
    assert "Where is town 0? (t0)" in said.err
    assert "answered 1.00 → answered 0.00: supported statements: 0 of 1" in said.err
    content = json.loads(said.out)
    assert content["result"] == "fail"
    assert len(content["against"][0]["answers"]["grounding"]["worse"]) == 10
    assert (tmp_path / "out" / "gate.md").read_text().startswith("### ❌ trustassay gate: fail")
    assert ET.parse(tmp_path / "out" / "gate.xml").getroot().get("failures") == "1"


@pytest.mark.parametrize(("name", "status"), [("junk", 1), ("base", 2)])
def test_a_decision_is_not_hidden_by_a_file_that_cannot_be_written(
    cli: Cli, runs: Path, tmp_path: Path, name: str, status: int
) -> None:
    (tmp_path / "gate.md").mkdir()
    output = cli(
        *("gate", runs / name, "--no-worse-than", runs / "base", "--undecided", "pass", "--json"),
        *("--markdown", "gate.md", "--junit", "gate.xml"),
    )
    assert output.status == status
    assert json.loads(output.out)["result"]
    assert "gate.md: Is a directory" in output.err
    assert (tmp_path / "gate.xml").exists()


def test_a_comparison_is_not_hidden_by_a_page_that_cannot_be_written(
    cli: Cli, runs: Path, tmp_path: Path
) -> None:
    (tmp_path / "page.html").mkdir()
    output = cli("compare", runs / "base", runs / "junk", "--page", "page.html", "--json")
    assert (output.status, "page.html: Is a directory" in output.err) == (2, True)
    assert json.loads(output.out)["metric"]


@pytest.mark.parametrize(("counts_as", "status"), [("undecided", 4), ("fail", 1), ("pass", 0)])
def test_undecided(cli: Cli, runs: Path, counts_as: str, status: int) -> None:
    said = cli(
        *("gate", runs / "junk", "--min", f"{CITED}=60"),
        *("--undecided", counts_as, "--junit", "gate.xml"),
    )
    assert said.status == status
    assert "gate: undecided" in said.out
    assert "more questions would decide it (pass, if the value stays the same)" in " ".join(
        said.out.split()
    )
    root = ET.parse("gate.xml").getroot()
    expected = {"undecided": ("0", "1"), "fail": ("1", "0"), "pass": ("0", "0")}[counts_as]
    assert (root.get("failures"), root.get("skipped")) == expected


@pytest.mark.parametrize(("counts_as", "status"), [("undecided", 4), ("fail", 1), ("pass", 4)])
def test_what_nothing_can_decide_never_passes(
    cli: Cli, runs: Path, counts_as: str, status: int
) -> None:
    said = cli(
        *("gate", runs / "one", "--no-worse-than", runs / "base", "--allow-missing", "29"),
        *("--undecided", counts_as, "--junit", "gate.xml"),
    )
    assert said.status == status
    assert "gate: untestable" in said.out
    root = ET.parse("gate.xml").getroot()
    assert (root.get("failures"), root.get("errors")) == (
        ("2", "0") if counts_as == "fail" else ("0", "2")
    )


def test_a_gate_that_is_looked_at_while_a_run_grows(cli: Cli, tmp_path: Path) -> None:
    rows = list(towns(60, junk=True))
    run = tmp_path / "run"
    score(rows, metrics="faithfulness", entailer="lexical", out=run, sample=45, report=False)
    bound = ("--max", "failed=70")
    once = cli("gate", run, *bound, "--json")
    often = cli("gate", run, *bound, "--sequential", "--json")
    ends = [json.loads(one.out)["checks"][0]["interval"] for one in (once, often)]
    assert ends[1][0] < ends[0][0] < ends[0][1] < ends[1][1]
    assert cli("gate", run, "--max", "faithfulness.errors=0", "--sequential").status == 0
    assert cli("gate", run, "--no-worse-than", run, "--sequential").status == 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "no rule: give --min"),
        (("--min", "trust_score=60"), "did you mean"),
        (("--min", "grounding.trust_score"), "--min: expected FIGURE=NUMBER"),
        (("--max", "grounding.n=many"), "--max: expected FIGURE=NUMBER"),
        (("--margin", "5", "--min", f"{CITED}=5"), "--margin: works only with --no-worse-than"),
        (("--allow-missing", "2", "--min", f"{CITED}=5"), "--allow-missing: works only with"),
        (("--allow-missing", "x", "--no-worse-than", "nowhere"), "--allow-missing: expected a"),
        (("--min", f"{CITED}=0.6"), "could mean 0.6 % or 60 %"),
        (("--no-worse-than", "nowhere"), "nowhere: holds no run; expected the folder of a run"),
    ],
)
def test_bad_arguments(cli: Cli, runs: Path, arguments: tuple[str, ...], words: str) -> None:
    said = cli("gate", runs / "base", *arguments)
    assert said.status == 2
    assert words in said.err


def test_compare_lists_what_got_worse_first_and_draws_it(
    cli: Cli, runs: Path, tmp_path: Path
) -> None:
    said = cli("compare", runs / "base", runs / "junk", "--page", "page.html", "--json")
    assert said.status == 0
    assert said.err.startswith("Worse: not supported went from 0.0 to 33.3 % of all questions")
    assert said.err.index("10 answers got worse") < said.err.index("Where is town 0?")
    assert "30 pairs of answers (30 by id and question)" in said.err
    content = json.loads(said.out)
    assert content["figures"]["answered_citation_f1"]["verdict"] == "worse"
    assert content["answers"]["counts"]["worse"] == 10
    assert content["not_compared"]["trust_score"]
    page = (tmp_path / "page.html").read_text()
    assert page.index("not supported") < page.index("Where is town 27?")
    assert "<del>" in page


def test_compare_takes_out_for_page(cli: Cli, runs: Path, tmp_path: Path) -> None:
    assert cli("compare", runs / "base", runs / "base", "--out", "page.html").status == 0
    assert "0 answers got worse" in (tmp_path / "page.html").read_text()
