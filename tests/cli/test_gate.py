"""``trustassay gate`` and ``compare`` as a user meets them: status, table, files."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.workflows.towns import town_run, towns

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
    assert said.out == ""
    assert "gate: pass" in said.err
    assert "0 answers got worse" in said.err
    assert "grounding: scored 30 → 30, failed 0 → 0, missing 0 → 0" in said.err


def test_fail_lists_the_answers_and_writes_the_files(cli: Cli, runs: Path, tmp_path: Path) -> None:
    said = cli(
        *("gate", runs / "junk", "--no-worse-than", runs / "base", "--json"),
        *("--markdown", "out/gate.md", "--junit", "out/gate.xml"),
    )
    assert said.status == 1
    assert "10 answers got worse, 0 better, 20 stayed the same" in said.err
    assert "Where is town 0? (t0)" in said.err
    assert "answered 1.00 → answered 0.00: 0 of 1 statements supported" in said.err
    content = json.loads(said.out)
    assert content["result"] == "fail"
    assert len(content["answers"]["grounding"]["worse"]) == 10
    assert (tmp_path / "out" / "gate.md").read_text().startswith("### ❌ trustassay gate: fail")
    assert ET.parse(tmp_path / "out" / "gate.xml").getroot().get("failures") == "1"


@pytest.mark.parametrize(("counts_as", "status"), [("undecided", 4), ("fail", 1), ("pass", 0)])
def test_undecided(cli: Cli, runs: Path, counts_as: str, status: int) -> None:
    said = cli(
        *("gate", runs / "junk", "--min", f"{CITED}=60"),
        *("--undecided", counts_as, "--junit", "gate.xml"),
    )
    assert said.status == status
    assert "gate: undecided" in said.err
    assert "more samples would make it pass" in " ".join(said.err.split())
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
    assert "gate: untestable" in said.err
    root = ET.parse("gate.xml").getroot()
    assert (root.get("failures"), root.get("errors")) == (
        ("1", "0") if counts_as == "fail" else ("0", "1")
    )


def test_a_gate_that_is_looked_at_while_a_run_grows(cli: Cli, tmp_path: Path) -> None:
    run = town_run(tmp_path / "run", towns(30, junk=True), "faithfulness")
    bound = ("--max", "faithfulness.not_found=70")
    once = cli("gate", run, *bound, "--json")
    often = cli("gate", run, *bound, "--sequential", "--json")
    ends = [json.loads(one.out)["checks"][0]["interval"] for one in (once, often)]
    assert ends[1][0] < ends[0][0] < 100 / 3 < ends[0][1] < ends[1][1]
    assert cli("gate", run, "--max", "faithfulness.failed=0", "--sequential").status == 0
    assert cli("gate", run, "--no-worse-than", run, "--sequential").status == 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "no rule: give --min"),
        (("--min", "trust_score=60"), "did you mean"),
        (("--min", "grounding.trust_score"), "--min: expected FIGURE=NUMBER"),
        (("--max", "grounding.n=many"), "--max: expected FIGURE=NUMBER"),
        (("--margin", "5", "--min", f"{CITED}=5"), "--margin: has an effect with --no-worse-than"),
        (("--allow-missing", "2", "--min", f"{CITED}=5"), "--allow-missing: has an effect with"),
        (("--allow-missing", "x", "--no-worse-than", "nowhere"), "--allow-missing: expected a"),
        (("--min", f"{CITED}=0.6"), "this is 0.6 % and not 60 %"),
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
    assert said.err.index("10 answers got worse") < said.err.index("all scores")
    assert "30 pairs of answers (30 by id and question)" in said.err
    content = json.loads(said.out)
    assert content["figures"]["answered_citation_f1"]["verdict"] == "worse"
    assert content["answers"]["counts"]["worse"] == 10
    assert content["not_compared"]["trust_score"]
    page = (tmp_path / "page.html").read_text()
    assert page.index("Where is town 27?") < page.index("all scores")
    assert "<del>" in page


def test_compare_takes_out_for_page(cli: Cli, runs: Path, tmp_path: Path) -> None:
    assert cli("compare", runs / "base", runs / "base", "--out", "page.html").status == 0
    assert "0 answers got worse" in (tmp_path / "page.html").read_text()
