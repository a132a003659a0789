"""The gate, through its Python function: by bounds, and against an earlier run."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.workflows.towns import JUNK, town_run, towns
from trustassay import score
from trustassay.compare.gate import gate
from trustassay.compare.gate_rules import (
    Allowance,
    Bound,
    Earlier,
    Gate,
    decide,
    parse_allowance,
    parse_bound,
)
from trustassay.compare.two_runs import compare
from trustassay.errors import RunFolderError

Row = dict[str, Any]
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
        ("missing", "pass"),
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
    assert {one.interval for one in found.checks[:-1]} == {(0.0, 0.0)}
    assert all(one.counts["worse"] == 0 for one in found.answers.values())


def test_a_run_of_one_sample_is_untestable(runs: Path) -> None:
    found = against(runs, "one", missing=Allowance(100, percent=True))
    assert found.result == "untestable"
    assert found.checks[0].why == (
        "it has no interval (too few questions: 1; at least 20 are needed), and 1 question cannot "
        "show a change"
    )
    bounded = gate(runs / "one", [Bound(CITED, 60, at_least=True)])
    assert bounded.result == "untestable"
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
        (Bound("grounding.trust_score", 1, at_least=True, percent=True), "fail"),
        (Bound("grounding.failed", 2, at_least=False, percent=True), "pass"),
        (Bound("faithfulness.mean", 0.4, at_least=True), "pass"),
        (Bound("faithfulness.mean", 40, at_least=True, percent=True), "pass"),
        (Bound("faithfulness.mean", 90, at_least=True, percent=True), "fail"),
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
    earlier = Earlier(runs / "base", other_judge=True)
    found = gate(tmp_path / "run", earlier=earlier)
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
    assert [(one.name, one.result) for one in found.checks] == [
        ("faithfulness.mean", "fail"),
        ("faithfulness.figures", "fail"),
        ("faithfulness: failed", "fail"),
        ("missing", "fail"),
    ]
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


# What is left out may not look like progress


REFUSAL = "I do not know."


def answered(n: int, *, wrong: Collection[int] = (), refused: Collection[int] = ()) -> list[Row]:
    """Return answers about n towns, some of them wrong, some refused."""
    rows = list(towns(n))
    for place in wrong:
        rows[place]["response"] = JUNK
    for place in refused:
        rows[place]["response"] = REFUSAL
    return rows


def faithful(path: Path, rows: Sequence[Row], metric: str = "faithfulness", **options: Any) -> Path:
    score(rows, metrics=metric, entailer="lexical", out=path, report=False, **options)
    return path


def test_a_model_that_refuses_most_questions_is_no_improvement(tmp_path: Path) -> None:
    """It refuses all that it had wrong, and more: the mean of what is left is perfect."""
    before = faithful(tmp_path / "old", answered(120, wrong=range(20)))
    after = faithful(tmp_path / "new", answered(120, refused=range(100)))
    found = gate(after, [Bound("faithfulness.failed", 0, at_least=False)], Earlier(before))
    results = {one.name: one for one in found.checks}
    assert results["faithfulness.mean"].value == 0  # of the answers that both runs gave
    assert results["faithfulness: refused"].result == "fail"
    assert "0 of 120 answers, then 100 of 120" in results["faithfulness: refused"].why
    assert found.result == "fail"
    counts = {one.name: (one.first, one.second) for one in found.outcomes["faithfulness"]}
    assert counts == {"scored": (120, 20), "refused": (0, 100), "failed": (0, 0), "missing": (0, 0)}
    compared = compare(before, after)
    assert compared.paired is not None
    assert compared.paired.value == compared.figures["mean"].difference.value == 0
    assert compared.figures["mean"].verdict == "unknown"  # of 20 answers
    assert [one.name for one in compared.outcomes] == list(counts)


def test_refusals_that_come_and_go_are_no_rise(tmp_path: Path) -> None:
    before = faithful(tmp_path / "old", answered(60, refused=range(0, 10)))
    after = faithful(tmp_path / "new", answered(60, refused=range(5, 16)))
    found = gate(after, earlier=Earlier(before))
    assert "faithfulness: refused" not in {one.name for one in found.checks}
    (refused,) = (one for one in found.outcomes["faithfulness"] if one.name == "refused")
    assert (refused.risen, refused.fallen, refused.questions) == (6, 5, 60)


def test_a_margin_lets_a_share_rise_as_much(tmp_path: Path) -> None:
    before = faithful(tmp_path / "old", answered(100))
    after = faithful(tmp_path / "new", answered(100, refused=range(12)))
    names = [
        {one.name for one in gate(after, earlier=Earlier(before, margin=margin)).checks}
        for margin in (0, 4, 10)
    ]
    assert ["faithfulness: refused" in found for found in names] == [True, True, False]


def test_rows_that_are_gone_are_a_finding(tmp_path: Path) -> None:
    before = faithful(tmp_path / "old", answered(60))
    after = faithful(tmp_path / "new", answered(60)[:57])
    found = gate(after, earlier=Earlier(before)).checks[-1]
    assert (found.name, found.result, found.value) == ("missing", "fail", 3)
    for allowed, result in (("3", "pass"), ("5%", "pass"), ("2", "fail"), ("4%", "fail")):
        earlier = Earlier(before, missing=parse_allowance(allowed))
        assert gate(after, earlier=earlier).checks[-1].result == result
    more = gate(before, earlier=Earlier(after))  # questions that were added are no finding
    assert more.checks[-1].result == "pass"
    assert "3 of the second" in more.notes[0]


@pytest.mark.parametrize("text", ["-1", "many", "101%", "", "nan"])
def test_allowances_that_cannot_be_read(text: str) -> None:
    with pytest.raises(ValueError, match="--allow-missing: expected a number of answers"):
        parse_allowance(text)


def test_a_fall_of_35_questions_is_never_undecided(tmp_path: Path) -> None:
    """A mean of fewer than 40 has no interval; the verdicts still say it."""
    before = faithful(tmp_path / "old", answered(35))
    after = faithful(tmp_path / "new", answered(35, wrong=range(35)))
    check = gate(after, earlier=Earlier(before)).checks[0]
    assert (check.name, check.result, check.value) == ("faithfulness.mean", "fail", -1)
    assert "35 of 35 questions got worse and 0 better" in check.why
    assert gate(after, earlier=Earlier(before, margin=50)).checks[0].result == "fail"
    back = gate(before, earlier=Earlier(after)).checks[0]
    assert back.result == "pass"


def test_five_questions_cannot_show_a_change_and_six_can(tmp_path: Path) -> None:
    results = []
    for n in (5, 6):
        before = faithful(tmp_path / f"old{n}", answered(n))
        after = faithful(tmp_path / f"new{n}", answered(n, wrong=range(n)))
        results.append(gate(after, earlier=Earlier(before)).checks[0].result)
    assert results == ["untestable", "fail"]


def test_undecided_says_what_would_decide_it(tmp_path: Path) -> None:
    before = faithful(tmp_path / "old", answered(60, wrong=range(8)))
    after = faithful(tmp_path / "new", answered(60, wrong=range(4, 14)))
    check = gate(after, earlier=Earlier(before)).checks[0]
    assert check.result == "undecided"
    assert check.change is not None
    assert (check.change.first, check.change.second) == pytest.approx((52 / 60, 50 / 60))
    words = re.search(r"about ([\d,]+) more questions would make it fail", check.advice)
    assert words
    assert 500 < int(words[1].replace(",", "")) < 5_000
    margin = re.search(r"--margin ([\d.]+)", check.advice)
    assert margin
    assert gate(after, earlier=Earlier(before, margin=float(margin[1]))).result == "pass"
    less = Earlier(before, margin=float(margin[1]) - 0.2)
    assert gate(after, earlier=less).result == "undecided"


def test_another_judge_is_refused(runs: Path, tmp_path: Path) -> None:
    after = faithful(tmp_path / "new", list(towns(45)), "faithfulness:threshold=0.4")
    with pytest.raises(ValueError, match="judged in different ways: faithfulness: threshold was"):
        gate(after, earlier=Earlier(runs / "base"))
    assert gate(after, earlier=Earlier(runs / "base", other_judge=True)).result == "pass"
    path = after / "run.json"
    path.write_text(path.read_text().replace('"lexical"', '"other"').replace("0.4", "0.5"))
    with pytest.raises(ValueError, match="the entailer was lexical, then other"):
        gate(after, earlier=Earlier(runs / "base"))


@pytest.mark.parametrize(
    ("bound", "words"),
    [
        ("faithfulness.supported=0.8", "this is 0.8 % and not 80 %; write .*=0.8% or .*=80%"),
        ("faithfulness.supported=1", "this is 1 % and not 100 %"),
        ("faithfulness.mean=90", "lies between 0 and 1, .* or faithfulness.mean=90%"),
        ("faithfulness.mean=-1", "lies between 0 and 1"),
        ("grounding.num_samples=5%", "the figure is not a share"),
    ],
)
def test_a_bound_in_another_unit_is_refused(runs: Path, bound: str, words: str) -> None:
    for at_least in (True, False):
        with pytest.raises(ValueError, match=words):
            gate(runs / "junk", [parse_bound(bound, at_least=at_least)])


def test_a_per_cent_sign_is_read_in_both_units() -> None:
    assert parse_bound("a.b=80%", at_least=True) == Bound("a.b", 80, at_least=True, percent=True)
    assert parse_bound("a.b= 0.8 % ", at_least=False).percent
