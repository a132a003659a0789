"""The gate, through its Python function: by bounds, and against an earlier run."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.workflows.towns import JUNK, town_run, towns
from trustassay.errors import RunFolderError
from trustassay.workflows.gate import Bound, Earlier, Gate, decide, gate, parse_bound

CITED = "grounding.answered_citation_f1"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("runs")
    both = ["grounding", "faithfulness"]
    town_run(home / "base", towns(45), both)
    town_run(home / "junk", towns(45, junk=True, ids="other"), both)
    town_run(home / "one", towns(1))
    return home


def against(runs: Path, name: str, **options: object) -> Gate:
    return gate(runs / name, earlier=Earlier(runs / "base", **options))  # type: ignore[arg-type]


def test_junk_in_every_third_answer_fails_and_is_listed(runs: Path) -> None:
    found = against(runs, "junk")
    assert found.result == "fail"
    assert [(one.name, one.result) for one in found.checks] == [
        (CITED, "fail"),
        ("faithfulness.mean", "fail"),
    ]
    assert found.checks[0].value == pytest.approx(-100 / 3)
    for answers in found.answers.values():
        assert answers.counts["worse"] == 15
        questions = {one.question for one in answers.worse}
        assert questions == {f"Where is town {i}?" for i in range(0, 45, 3)}
        assert {one.responses[1] for one in answers.worse} == {JUNK}
        assert {one.scores for one in answers.worse} == {(1.0, 0.0)}
    assert found.notes[0].endswith("45 pairs of answers (45 by question)")


def test_an_unchanged_run_passes(runs: Path) -> None:
    found = against(runs, "base")
    assert found.result == "pass"
    assert {one.interval for one in found.checks} == {(0.0, 0.0)}
    assert all(one.counts["worse"] == 0 for one in found.answers.values())


def test_a_run_of_one_sample_is_undecided(runs: Path) -> None:
    found = against(runs, "one")
    assert found.result == "undecided"
    assert found.checks[0].why == "it has no interval: too few questions: 1; at least 20 are needed"
    bounded = gate(runs / "one", [Bound(CITED, 60, at_least=True)])
    assert bounded.result == "undecided"
    assert "too few" in bounded.checks[0].why


def test_a_margin_moves_the_line(runs: Path) -> None:
    name = "faithfulness.mean"
    lines = {
        margin: against(runs, "junk", figures=[name], margin=margin).checks[0]
        for margin in (0.0, 5.0, 35.0, 60.0)
    }
    assert [one.line for one in lines.values()] == pytest.approx([0, -0.05, -0.35, -0.6])
    assert [one.result for one in lines.values()] == ["fail", "fail", "undecided", "pass"]


def test_a_figure_of_which_less_is_better(runs: Path) -> None:
    found = against(runs, "junk", figures=["faithfulness.not_found"], margin=10).checks[0]
    assert (found.result, found.line) == ("fail", 10.0)
    assert found.value == pytest.approx(100 / 3)


def test_the_same_seed_gives_the_same_interval(runs: Path) -> None:
    earlier = Earlier(runs / "base")
    first, again, other = (
        gate(runs / "junk", earlier=earlier, seed=seed).to_dict() for seed in (0, 0, 1)
    )
    assert first == again
    assert first["checks"] != other["checks"]
    json.dumps(first, allow_nan=False)


@pytest.mark.parametrize(
    ("bound", "result"),
    [
        (Bound(CITED, 40, at_least=True), "pass"),
        (Bound(CITED, 60, at_least=True), "undecided"),
        (Bound(CITED, 90, at_least=True), "fail"),
        (Bound(CITED, 90, at_least=False), "pass"),
        (Bound(CITED, 40, at_least=False), "fail"),
        (Bound("grounding.num_samples", 45, at_least=True), "pass"),
        (Bound("grounding.num_samples", 46, at_least=True), "fail"),
        (Bound("grounding.failed", 0, at_least=False), "pass"),
        (Bound("calls.entailment.stored", 0, at_least=False), "pass"),
        (Bound("grounding.trust_score", 1, at_least=True), "fail"),
    ],
)
def test_bounds(runs: Path, bound: Bound, result: str) -> None:
    summary = json.loads((runs / "junk" / "summary.json").read_bytes())
    if bound.name.startswith("calls"):
        (kind,) = summary["calls"]
        bound = Bound(f"calls.{kind}.stored", bound.value, at_least=False)
    (check,) = gate(runs / "junk", [bound]).checks
    assert check.result == result, check.why


def test_one_failure_outweighs_what_is_undecided(runs: Path) -> None:
    bounds = [Bound(CITED, value, at_least=True) for value in (40, 60, 90)]
    assert gate(runs / "junk", bounds).result == "fail"
    assert gate(runs / "junk", bounds[:2]).result == "undecided"


@pytest.mark.parametrize(
    ("interval", "at_least", "result"),
    [
        ((1.0, 2.0), True, "pass"),
        ((0.9, 2.0), True, "undecided"),
        ((0.5, 0.9), True, "fail"),
        ((0.5, 1.0), True, "undecided"),
        ((0.5, 1.0), False, "pass"),
        ((1.1, 2.0), False, "fail"),
    ],
)
def test_the_line_itself_is_on_the_right_side(
    interval: tuple[float, float], at_least: bool, result: str
) -> None:
    assert decide(interval, 1.0, at_least=at_least) == result


def test_other_settings_and_failures_are_said(runs: Path, tmp_path: Path) -> None:
    town_run(tmp_path / "run", towns(45), "grounding:threshold=0.4")
    summary = tmp_path / "run" / "summary.json"
    content = json.loads(summary.read_bytes())
    content["metrics"]["grounding"]["failed"] = 2
    summary.write_text(json.dumps(content))
    found = gate(tmp_path / "run", earlier=Earlier(runs / "base"))
    assert "grounding: threshold was 0.5, then 0.4" in found.notes
    assert "grounding: 2 of 45 samples failed; they count in no other figure" in found.notes


@pytest.mark.parametrize("text", ["grounding.trust_score", "=60", "a=sixty", "a=nan", "a=inf"])
def test_bounds_that_cannot_be_read(text: str) -> None:
    with pytest.raises(ValueError, match="--min: expected FIGURE=NUMBER, as in"):
        parse_bound(text, at_least=True)


def test_runs_of_other_questions_are_refused(runs: Path, tmp_path: Path) -> None:
    rows = (row | {"question": f"Else: {row['question']}"} for row in towns(3))
    town_run(tmp_path / "run", rows)
    with pytest.raises(RunFolderError, match="have no question in common"):
        gate(tmp_path / "run", earlier=Earlier(runs / "base"))


def test_what_has_no_value_fails(runs: Path, tmp_path: Path) -> None:
    """Else a run in which everything failed would pass with ``--undecided pass``."""
    blank = (row | {"response": " "} for row in towns(30))
    town_run(tmp_path / "run", blank, "faithfulness")
    found = gate(
        tmp_path / "run",
        [Bound("faithfulness.mean", 0.1, at_least=True)],
        Earlier(runs / "base"),
    )
    assert [one.result for one in found.checks] == ["fail", "fail"]
    assert "it has no value" in found.checks[0].why
    assert found.answers["faithfulness"].counts["failed_now"] == 30
    assert "faithfulness: 30 of 30 samples failed; they count in no other figure" in found.notes


def test_what_cannot_be_decided(runs: Path, tmp_path: Path) -> None:
    base = runs / "base"
    with pytest.raises(ValueError, match="no rule: give --min"):
        gate(base)
    with pytest.raises(ValueError, match=r"--max: unknown figure 'grounding.trust_scor'; did you"):
        gate(base, [Bound("grounding.trust_scor", 1, at_least=False)])
    with pytest.raises(ValueError, match=r"did you mean faithfulness\.mean"):
        against(runs, "junk", figures=["faithfulness.man"])
    with pytest.raises(ValueError, match="unknown metric of both runs 'faithfullness'; did you"):
        against(runs, "junk", figures=["faithfullness.mean"])
    with pytest.raises(ValueError, match="not known whether more of it is better"):
        against(runs, "junk", figures=["grounding.answered_ratio"])
    with pytest.raises(ValueError, match=r"expected METRIC\.FIGURE, as in grounding\.mean"):
        against(runs, "junk", figures=["grounding"])
    with pytest.raises(RunFolderError, match="holds no run"):
        gate(base, earlier=Earlier(tmp_path))
    other = tmp_path / "other"
    shutil.copytree(runs / "one", other)
    for file in ("run.json", "summary.json", "assessments.jsonl"):
        text = (other / file).read_text().replace('"grounding"', '"gone"')
        (other / file).write_text(text)
    with pytest.raises(RunFolderError, match="no metric in common"):
        gate(base, earlier=Earlier(other))
