"""The gate, through its Python function: by bounds, and against earlier runs."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.compare.made_runs import made_run, rows, shuffled
from tests.many import HashedWords, many
from tests.people.towns import JUNK, town_run, towns
from trustassay import score
from trustassay.compare.gate import gate
from trustassay.compare.gate_files import render_markdown
from trustassay.compare.gate_rules import (
    Allowance,
    Bound,
    EarlierRun,
    Gate,
    GateCheck,
    decide_checks,
    is_right_side,
    p_of_side,
    parse_allowance,
    parse_bound,
)
from trustassay.compare.two_runs import compare
from trustassay.core.testing import ScriptedChat
from trustassay.errors import RunFolderError
from trustassay.metrics.harmonicity.metric import Harmonicity

CITED = "grounding.answered_citation_f1"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("runs")
    both = ["grounding", "faithfulness"]
    town_run(home / "base", towns(45), both)
    town_run(home / "junk", towns(45, junk=True, ids="other"), both)
    town_run(home / "one", towns(1))
    return home


def against(runs: Path, name: str, **options: Any) -> Gate:
    return gate(runs / name, earlier=EarlierRun(runs / "base", **options))


def by_name(result: Gate) -> dict[str, GateCheck]:
    return {check.name: check for check in result.checks}


# Against an earlier run --------------------------------------------------------------------------


def test_junk_in_every_third_answer_fails_and_is_listed(runs: Path) -> None:
    result = against(runs, "junk")
    assert result.result == "fail"
    assert [(one.name, one.result) for one in result.checks] == [
        ("grounding.failed", "fail"),
        ("grounding.not_answered", "pass"),
        ("faithfulness.failed", "fail"),
        ("faithfulness.not_answered", "pass"),
        ("missing", "pass"),
    ]
    failed = by_name(result)["faithfulness.failed"]
    assert failed.value == pytest.approx(100 / 3)
    assert failed.before_after == pytest.approx((0, 100 / 3))
    for answers in result.against[0].answers.values():
        assert answers.counts["worse"] == 15
        questions = {one.question for one in answers.worse}
        assert questions == {f"Where is town {i}?" for i in range(0, 45, 3)}
        assert {one.responses[1] for one in answers.worse} == {JUNK}
        assert {one.scores for one in answers.worse} == {(1.0, 0.0)}
    assert result.notes[0].endswith("45 pairs of answers (45 by question)")


def test_refusals_that_became_inventions_fail(tmp_path: Path) -> None:
    """Row 1: the mean over scored answers is as before."""
    letters = "n" * 30 + "p" * 57 + "f" * 3
    before = made_run(tmp_path / "before", rows(letters))
    after = made_run(tmp_path / "after", rows("f" * 30 + letters[30:]))
    result = gate(after, earlier=EarlierRun(before))
    assert result.result == "fail"
    assert by_name(result)["faithfulness.failed"].before_after == pytest.approx((10 / 3, 110 / 3))
    figure = result.against[0].figures["faithfulness"]["mean"]
    assert figure.difference.value == 0


def test_a_model_that_refuses_most_questions_is_no_improvement(tmp_path: Path) -> None:
    """It refuses all that it had wrong, and more: the mean of what is left is perfect."""
    before = made_run(tmp_path / "old", rows("f" * 20 + "p" * 100))
    after = made_run(tmp_path / "new", rows("n" * 100 + "p" * 20))
    result = gate(after, earlier=EarlierRun(before))
    assert result.result == "fail"
    check = by_name(result)["faithfulness.not_answered"]
    assert check.result == "fail"
    assert check.before_after == pytest.approx((0, 500 / 6))
    assert check.why.startswith("rose in 100 of 120 questions, fell in 0, p < 0.0001")


def test_refusals_that_come_and_go_are_no_rise(tmp_path: Path) -> None:
    before = made_run(tmp_path / "old", rows("n" * 10 + "p" * 50))
    after = made_run(tmp_path / "new", rows("p" * 5 + "n" * 11 + "p" * 44))
    check = by_name(gate(after, earlier=EarlierRun(before)))["faithfulness.not_answered"]
    assert (check.result, check.why) == ("undecided", "rose in 6 of 60 questions, fell in 5")


def test_an_unchanged_run_passes(runs: Path) -> None:
    result = against(runs, "base")
    assert result.result == "pass"
    assert {one.value for one in result.checks} == {0}
    assert all(one.counts["worse"] == 0 for one in result.against[0].answers.values())


def test_a_run_of_one_sample_is_untestable(runs: Path) -> None:
    result = against(runs, "one", missing=Allowance(100, percent=True))
    assert result.result == "untestable"
    assert result.checks[0].why == "too few to show a change: 1 question"
    bounded = gate(runs / "one", [Bound("failed", 60, at_least=False)])
    assert bounded.result == "untestable"
    assert "too few" in bounded.checks[0].why


def test_five_questions_cannot_show_a_change_and_seven_can(tmp_path: Path) -> None:
    results = []
    for n in (5, 7):
        before = made_run(tmp_path / f"old{n}", rows("p" * n))
        after = made_run(tmp_path / f"new{n}", rows("f" * n))
        results.append(gate(after, earlier=EarlierRun(before)).result)
    assert results == ["untestable", "fail"]


def test_a_margin_moves_the_line(tmp_path: Path) -> None:
    before = made_run(tmp_path / "old", rows("p" * 100))
    after = made_run(tmp_path / "new", rows("n" * 12 + "p" * 88))
    name = "faithfulness.not_answered"
    checks = {
        margin: by_name(gate(after, earlier=EarlierRun(before, margin=margin)))[name]
        for margin in (0.0, 4.0, 10.0, 25.0)
    }
    assert [one.line for one in checks.values()] == [0, 4, 10, 25]
    assert [one.result for one in checks.values()] == ["fail", "fail", "undecided", "pass"]


@pytest.mark.parametrize("margin", [-1, 100, 250])
def test_a_margin_that_lets_all_pass_is_refused(runs: Path, margin: float) -> None:
    with pytest.raises(ValueError, match="--margin: expected a number from 0 to below 100"):
        against(runs, "junk", margin=margin)


def test_a_figure_that_is_named_is_tested_too(runs: Path) -> None:
    result = by_name(against(runs, "junk", figures=["faithfulness.not_found"], margin=10))
    check = result["faithfulness.not_found"]
    assert (check.result, check.line) == ("fail", 10.0)
    assert check.value == pytest.approx(100 / 3)


def test_a_metric_without_a_line_is_tested_by_its_first_figure(tmp_path: Path) -> None:
    for name, shift in (("before", 1.0), ("after", 1.5)):
        samples = list(many(each=10, shift=shift))
        score(samples, metrics="harmonicity", embedder=HashedWords(), out=tmp_path / name)
    checks = by_name(gate(tmp_path / "after", earlier=EarlierRun(tmp_path / "before")))
    assert list(checks) == ["harmonicity.not_scored", "harmonicity.mean", "missing"]
    assert checks["harmonicity.mean"].result == "fail"


def test_the_same_seed_gives_the_same_interval(runs: Path) -> None:
    earlier = EarlierRun(runs / "base", figures=["grounding.answered_citation_f1"])
    first, again, other = (
        gate(runs / "junk", earlier=earlier, seed=seed).to_dict() for seed in (0, 0, 1)
    )
    assert first == again
    assert first["checks"] != other["checks"]
    json.dumps(first, allow_nan=False)


def test_two_earlier_runs_are_checked_in_one_call(tmp_path: Path) -> None:
    """Each step is small; since the pinned run they add up."""
    anchor = made_run(tmp_path / "anchor", rows("p" * 120))
    last = made_run(tmp_path / "last", rows("f" * 10 + "p" * 110))
    new = made_run(tmp_path / "new", rows("f" * 13 + "p" * 107))
    assert gate(new, earlier=EarlierRun(last)).result == "undecided"
    result = gate(new, earlier=[EarlierRun(last), EarlierRun(anchor)])
    assert result.result == "fail"
    failing = [one for one in result.checks if one.result == "fail"]
    assert [one.rule for one in failing] == [f"not higher than in {anchor}"]
    names = [one.name for one in result.checks if one.name.startswith("missing")]
    assert names == [f"missing since {last}", f"missing since {anchor}"]


def test_more_rules_need_more_evidence(tmp_path: Path) -> None:
    """One rise with p = .016 fails alone, and may be chance among several rules."""
    before = made_run(tmp_path / "old", rows("p" * 60 + "n" * 20))
    after = made_run(tmp_path / "new", rows("f" * 6 + "p" * 54 + "n" * 20))
    alone = by_name(gate(after, earlier=EarlierRun(before)))["faithfulness.failed"]
    assert alone.result == "fail"
    assert alone.corrected_p == pytest.approx(2**-6)
    bounds = [Bound("not_answered", 26, at_least=False), Bound("failed", 9, at_least=False)]
    among = gate(after, bounds, EarlierRun(before))
    (check,) = (
        one
        for one in among.checks
        if "not higher than in" in one.rule and one.fail_p and one.fail_p < 0.1
    )
    assert check.result == "undecided"
    assert check.why == (
        "not proven, p = 0.047, corrected for 3 rules; to fail, p must be below 0.025"
    )


def test_rows_that_are_gone_are_a_finding(tmp_path: Path) -> None:
    samples = rows("p" * 60)
    before = made_run(tmp_path / "old", samples)
    after = made_run(tmp_path / "new", samples[:57])
    check = gate(after, earlier=EarlierRun(before)).checks[-1]
    assert (check.name, check.result, check.value) == ("missing", "fail", 3)
    for allowed, result in (("3", "pass"), ("5%", "pass"), ("2", "fail"), ("4%", "fail")):
        earlier = EarlierRun(before, missing=parse_allowance(allowed))
        assert gate(after, earlier=earlier).checks[-1].result == result
    more = gate(before, earlier=EarlierRun(after))  # questions that were added are no finding
    assert more.checks[-1].result == "pass"
    assert "3 in the second" in more.notes[0]


def test_undecided_says_how_many_questions_would_decide_it_and_no_margin(tmp_path: Path) -> None:
    before = made_run(tmp_path / "old", rows("f" * 8 + "p" * 52))
    after = made_run(tmp_path / "new", rows("p" * 4 + "f" * 10 + "p" * 46))
    check = by_name(gate(after, earlier=EarlierRun(before)))["faithfulness.failed"]
    assert check.result == "undecided"
    assert check.before_after == pytest.approx((800 / 60, 1000 / 60))
    words = re.search(r"about ([\d,]+) more questions would decide it \(fail", check.advice)
    assert words
    assert 500 < int(words[1].replace(",", "")) < 5_000
    assert "margin" not in check.advice


def test_another_judge_is_refused(runs: Path, tmp_path: Path) -> None:
    after = town_run(tmp_path / "new", towns(45), "faithfulness:threshold=0.4")
    with pytest.raises(ValueError, match="judged differently: faithfulness: threshold changed"):
        gate(after, earlier=EarlierRun(runs / "base"))
    result = gate(after, earlier=EarlierRun(runs / "base", other_judge=True))
    assert result.result == "pass"
    assert "faithfulness: threshold changed: 0.5 → 0.4" in result.notes
    path = after / "run.json"
    path.write_text(path.read_text().replace('"lexical"', '"other"').replace("0.4", "0.5"))
    with pytest.raises(ValueError, match="entailer changed: lexical → other"):
        gate(after, earlier=EarlierRun(runs / "base"))


def test_runs_of_other_questions_are_refused(runs: Path, tmp_path: Path) -> None:
    samples = (row | {"question": f"Else: {row['question']}"} for row in towns(3))
    town_run(tmp_path / "run", samples)
    with pytest.raises(RunFolderError, match="have no question in common"):
        gate(tmp_path / "run", earlier=EarlierRun(runs / "base"))


def test_pasted_passages_and_one_word_answers_are_reported(tmp_path: Path) -> None:
    """Row 8: none of it changes the result by itself."""
    samples = [
        row | {"response": f"{row['response']} The hill is steep."} for row in rows("p" * 30)
    ]
    before = made_run(tmp_path / "before", samples)
    pasted = [row | {"documents": [row["response"]]} for row in samples]
    notes = gate(made_run(tmp_path / "pasted", pasted), earlier=EarlierRun(before)).notes
    assert any("the passages differ in 30 of 30 questions" in note for note in notes)
    assert any("30 answers are copied word for word from a passage" in note for note in notes)
    short = [row | {"response": "Yes."} for row in samples]
    notes = gate(made_run(tmp_path / "short", short), earlier=EarlierRun(before)).notes
    assert any("median length of the answers: 13 → 1 words" in note for note in notes)


# Bounds ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bound", "result"),
    [
        (Bound("failed", 50, at_least=False), "pass"),
        (Bound("failed", 30, at_least=False), "undecided"),
        (Bound("failed", 15, at_least=False), "fail"),
        (Bound("faithfulness.failed", 15, at_least=False, percent=True), "fail"),
        (Bound("not_answered", 10, at_least=False), "pass"),
        (Bound("faithfulness.passed", 50, at_least=True), "pass"),
        (Bound(CITED, 40, at_least=True), "pass"),
        (Bound(CITED, 60, at_least=True), "undecided"),
        (Bound(CITED, 90, at_least=True), "fail"),
        (Bound(CITED, 90, at_least=False), "pass"),
        (Bound(CITED, 40, at_least=False), "fail"),
        (Bound("grounding.num_samples", 45, at_least=True), "pass"),
        (Bound("grounding.num_samples", 46, at_least=True), "fail"),
        (Bound("grounding.errors", 0, at_least=False), "pass"),
        (Bound("calls.entailment.stored", 0, at_least=False), "pass"),
        (Bound("grounding.trust_score", 1, at_least=True, percent=True), "fail"),
        (Bound("grounding.errors", 2, at_least=False, percent=True), "pass"),
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
    checks = gate(runs / "junk", [bound]).checks
    assert {check.result for check in checks} == {result}, checks
    assert len(checks) == (1 if "." in bound.name else 2)  # an outcome alone is of each metric


def test_a_mean_over_few_answers_passes_no_bound(tmp_path: Path) -> None:
    """Row 4: refusing what would be wrong makes the mean of the rest perfect."""
    run = made_run(tmp_path / "run", rows("n" * 40 + "p" * 60))
    bound = Bound("faithfulness.mean", 0.9, at_least=True)
    (check,) = gate(run, [bound]).checks
    assert (check.result, check.value) == ("fail", 1.0)
    assert check.why.startswith("40.0 % of the questions have no score and are excluded")
    allowed = gate(run, [bound, Bound("not_answered", 60, at_least=False)])
    assert allowed.result == "pass"
    assert gate(run, [bound, Bound("not_answered", 20, at_least=False)]).result == "fail"


def test_no_error_proves_nothing_of_a_run_in_which_nothing_was_judged(tmp_path: Path) -> None:
    no_error = Bound("faithfulness.errors", 0, at_least=False)
    (check,) = gate(made_run(tmp_path / "refused", rows("n" * 40)), [no_error]).checks
    assert (check.result, check.why) == ("fail", "no answer could be judged")
    assert gate(made_run(tmp_path / "some", rows("n" * 39 + "p")), [no_error]).result == "pass"


def test_copies_of_right_answers_raise_no_figure(tmp_path: Path) -> None:
    """Row 5: six copies of each right answer, under new ids, would make .60 into .91."""
    samples = rows("p" * 60 + "f" * 40)
    copies = [row | {"id": f"{row['id']}-{n}"} for row in samples[:60] for n in range(6)]
    plain, padded = (
        made_run(tmp_path / name, more)
        for name, more in (("plain", samples), ("padded", samples + copies))
    )
    bounds = [Bound("faithfulness.mean", 0.8, at_least=True), Bound("passed", 80, at_least=True)]
    for run in (plain, padded):
        result = gate(run, bounds)
        assert [check.value for check in result.checks] == pytest.approx([0.6, 60])
        assert [check.result for check in result.checks] == ["fail", "fail"]
    assert any("360 answers are the same as another answer" in note for note in result.notes)
    assert "faithfulness: 460 answers to 100 questions; each question counts once" in result.notes


def test_equal_answers_have_the_same_interval_with_copies_and_without(tmp_path: Path) -> None:
    """All resamples of equal answers agree, which says nothing of other questions."""
    samples = rows("p" * 60)
    copies = [row | {"id": f"{row['id']}-copy"} for row in samples[3:8:4]]
    bounds = [
        Bound("faithfulness.mean", 0.98, at_least=True),
        Bound("faithfulness.supported", 98, at_least=True),
    ]
    plain, padded = (
        gate(made_run(tmp_path / name, more), bounds).checks
        for name, more in (("plain", samples), ("padded", samples + copies))
    )
    for before, after in zip(plain, padded, strict=True):
        assert (after.result, after.value, after.n) == ("undecided", before.value, 60)
        assert after.interval == pytest.approx(before.interval)
        assert after.interval
        assert after.interval[0] < 0.96 * after.interval[1]


def test_answers_without_a_score_take_no_weight_from_their_question(tmp_path: Path) -> None:
    samples = rows("p" * 60 + "f" * 20)
    refused = rows("n" * 80)[60:]
    more = [row | {"id": f"{row['id']}-{n}"} for row in refused for n in range(3)]
    bounds = [
        Bound("faithfulness.mean", 0.5, at_least=True),
        Bound("not_answered", 90, at_least=False),
    ]
    plain, padded = (
        gate(made_run(tmp_path / name, answers), bounds).checks[0]
        for name, answers in (("plain", samples), ("padded", samples + more))
    )
    assert (padded.value, padded.n) == pytest.approx((plain.value, plain.n))
    assert padded.interval == pytest.approx(plain.interval)


def test_a_figure_that_no_resample_moves_has_no_interval(tmp_path: Path) -> None:
    samples = [row | {"response": f"{row['response']} [1]"} for row in rows("p" * 60)]
    samples += [row | {"id": f"{row['id']}-copy"} for row in samples[:2]]
    run = made_run(tmp_path / "run", samples, "grounding:correctness=none")
    (check,) = gate(run, [Bound(CITED, 90, at_least=True)]).checks
    assert (check.result, check.value) == ("untestable", 100)
    assert "the same in every resample" in check.why


def test_a_model_that_was_left_out_is_named_and_no_bound_passes_without_it(
    tmp_path: Path,
) -> None:
    samples = [
        {"id": f"{who}-{i}", "question": f"What is {i}?", "response": "x", "model": who}
        for who, count in (("big", 60), ("small", 2))
        for i in range(count)
    ]
    out = tmp_path / "run"
    options: dict[str, Any] = {
        "metrics": Harmonicity(perturbations=1),
        "model": {"big": ScriptedChat(lambda _: "It is Paris.", "big")},
        "embedder": HashedWords(),
        "report": False,
    }
    score(samples, out=out, **options)
    bound = Bound("harmonicity.stable_share", 90, at_least=True)
    result = gate(out, [bound])
    (check,) = result.checks
    assert (result.result, check.result, check.value) == ("undecided", "undecided", 100)
    assert "2 answers excluded, since the model was not given" in check.why
    assert "--max harmonicity.not_scored=…" in check.why
    note = "harmonicity: 2 answers of small left out: no --model small=URI was given"
    assert note in result.notes
    assert note in result.to_dict()["notes"]
    assert note in render_markdown(result)
    both = [bound, Bound("not_scored", 10, at_least=False)]
    assert [check.result for check in gate(out, both).checks] == ["pass", "pass"]
    # More than a twentieth of the questions without a score fails, by the name that exists.
    more = [samples[-1] | {"id": f"more-{i}", "question": f"Why {i}?"} for i in range(5)]
    score(samples + more, out=tmp_path / "more", **options)
    (check,) = gate(tmp_path / "more", [bound]).checks
    assert check.result == "fail"
    assert check.why.endswith("with --max harmonicity.not_scored=…")


def test_one_failure_outweighs_what_is_undecided(runs: Path) -> None:
    bounds = [Bound(CITED, value, at_least=True) for value in (40, 60, 90)]
    assert gate(runs / "junk", bounds).result == "fail"
    assert gate(runs / "junk", bounds[:2]).result == "undecided"


@pytest.mark.parametrize(
    ("interval", "at_least", "is_right", "is_wrong"),
    [
        ((1.0, 2.0), True, True, False),
        ((0.9, 2.0), True, False, False),
        ((0.5, 0.9), True, False, True),
        ((0.5, 1.0), True, False, False),
        ((0.5, 1.0), False, True, False),
        ((1.1, 2.0), False, False, True),
    ],
)
def test_the_line_itself_is_on_the_right_side(
    interval: tuple[float, float], at_least: bool, is_right: bool, is_wrong: bool
) -> None:
    assert is_right_side(interval, 1.0, at_least=at_least) == is_right
    middle = sum(interval) / 2
    p = p_of_side(middle, interval, 1.0, at_least=at_least)
    assert (p < 0.025) == is_wrong


def test_the_p_value_of_a_side_by_hand() -> None:
    """At the end of a 95 % interval it is .025; at the value .5; a value without scatter 0 or 1."""
    assert p_of_side(0.5, (0.4, 0.6), 0.6, at_least=True) == pytest.approx(0.025)
    assert p_of_side(0.5, (0.4, 0.6), 0.4, at_least=False) == pytest.approx(0.025)
    assert p_of_side(0.5, (0.4, 0.6), 0.5, at_least=True) == pytest.approx(0.5)
    assert p_of_side(0.5, (0.5, 0.5), 0.6, at_least=True) == 0
    assert p_of_side(0.5, (0.5, 0.5), 0.4, at_least=True) == 1


def test_rules_are_corrected_together_by_hand() -> None:
    """Of p-values .01, .02, .5 the corrected ones are .03, .04, .5 (Holm 1979)."""
    checks = [
        GateCheck(f"c{p}", "rule", 0.0, None, 0.0, "undecided", "", fail_p=p)
        for p in (0.5, 0.01, 0.02)
    ]
    results = decide_checks(checks)
    assert [one.corrected_p for one in results] == pytest.approx([0.5, 0.03, 0.04])
    assert [one.result for one in results] == ["undecided", "undecided", "undecided"]
    assert [one.result for one in decide_checks(checks[:2])] == ["undecided", "fail"]


@pytest.mark.parametrize("text", ["grounding.trust_score", "=60", "a=sixty", "a=nan", "a=inf"])
def test_bounds_that_cannot_be_read(text: str) -> None:
    with pytest.raises(ValueError, match="--min: expected FIGURE=NUMBER, such as"):
        parse_bound(text, at_least=True)


@pytest.mark.parametrize("text", ["-1", "many", "101%", "", "nan"])
def test_allowances_that_cannot_be_read(text: str) -> None:
    with pytest.raises(ValueError, match="--allow-missing: expected a number of answers"):
        parse_allowance(text)


def test_a_run_without_a_judged_answer_fails_although_the_earlier_one_had_none_either(
    tmp_path: Path,
) -> None:
    for name in ("before", "after"):
        refused = (row | {"response": "I cannot find that in the documents."} for row in towns(45))
        town_run(tmp_path / name, refused, "faithfulness")
    result = gate(tmp_path / "after", earlier=EarlierRun(tmp_path / "before"))
    checks = {check.name: (check.result, check.why) for check in result.checks}
    assert checks["faithfulness.failed"] == ("fail", "no answer could be judged")
    assert result.result == "fail"
    assert compare(tmp_path / "before", tmp_path / "after").headline == (
        "No question was answered in either run, so there is nothing to compare."
    )
    town_run(tmp_path / "answered", towns(45), "faithfulness")
    headline = compare(tmp_path / "answered", tmp_path / "after").headline
    assert headline.startswith("Worse: ") and "not answered" in headline


def test_what_has_no_value_fails(runs: Path, tmp_path: Path) -> None:
    """Else a run in which nothing was answered would pass with ``--undecided pass``."""
    blank = (row | {"response": " "} for row in towns(30))
    town_run(tmp_path / "run", blank, "faithfulness")
    bound = Bound("faithfulness.mean", 0.1, at_least=True)
    result = gate(tmp_path / "run", [bound], EarlierRun(runs / "base"))
    assert [(one.name, one.result) for one in result.checks] == [
        ("faithfulness.mean", "fail"),
        ("faithfulness.failed", "fail"),
        ("faithfulness.not_answered", "fail"),
        ("missing", "fail"),
    ]
    assert "no value: " in result.checks[0].why
    assert result.checks[1].why == "no answer could be judged"
    assert result.against[0].answers["faithfulness"].counts["errors_now"] == 30
    assert "faithfulness: not answered: blank (30)" in result.notes


def test_what_cannot_be_decided(runs: Path, tmp_path: Path) -> None:
    base = runs / "base"
    with pytest.raises(ValueError, match="no rule: give --min"):
        gate(base)
    with pytest.raises(ValueError, match=r"--max: unknown figure 'grounding.trust_scor'; did you"):
        gate(base, [Bound("grounding.trust_scor", 1, at_least=False)])
    with pytest.raises(ValueError, match=r"unknown figure 'fialed'; did you mean failed"):
        gate(base, [Bound("fialed", 1, at_least=False)])
    with pytest.raises(ValueError, match=r"did you mean faithfulness\.mean"):
        against(runs, "junk", figures=["faithfulness.man"])
    with pytest.raises(ValueError, match="unknown metric of both runs 'faithfullness'; did you"):
        against(runs, "junk", figures=["faithfullness.mean"])
    with pytest.raises(ValueError, match="whether higher is better is unknown"):
        against(runs, "junk", figures=["grounding.answered_ratio"])
    with pytest.raises(ValueError, match=r"expected METRIC\.FIGURE, as in grounding\.mean"):
        against(runs, "junk", figures=["grounding"])
    with pytest.raises(RunFolderError, match="holds no run"):
        gate(base, earlier=EarlierRun(tmp_path))
    other = tmp_path / "other"
    shutil.copytree(runs / "one", other)
    for file in ("run.json", "summary.json", "assessments.jsonl"):
        text = (other / file).read_text().replace('"grounding"', '"gone"')
        (other / file).write_text(text)
    with pytest.raises(RunFolderError, match="no metric in common"):
        gate(base, earlier=EarlierRun(other))


@pytest.mark.parametrize(
    ("bound", "words"),
    [
        ("failed=0.1", "could mean 0.1 % or 10 %"),
        ("faithfulness.supported=0.8", "could mean 0.8 % or 80 %; write .*=0.8% or .*=80%"),
        ("faithfulness.supported=1", "could mean 1 % or 100 %"),
        ("faithfulness.mean=90", "always between 0 and 1, .* or faithfulness.mean=90%"),
        ("faithfulness.mean=-1", "always between 0 and 1"),
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


# Growing runs ------------------------------------------------------------------------------------


def test_sequential_refuses_an_order_that_it_did_not_draw(tmp_path: Path) -> None:
    letters = shuffled(3, p=55, f=5)
    bound = Bound("failed", 30, at_least=False)
    plain = made_run(tmp_path / "plain", rows(letters))
    with pytest.raises(ValueError, match="not in random order"):
        gate(plain, [bound], sequential=True)
    with pytest.raises(ValueError, match="without labels or another run"):
        gate(plain, [bound], EarlierRun(plain), sequential=True)
    drawn = tmp_path / "drawn"
    score(rows(letters), metrics="faithfulness", entailer="lexical", out=drawn, sample=50)
    (check,) = gate(drawn, [bound], sequential=True).checks
    (usual,) = gate(drawn, [bound]).checks
    assert check.interval
    assert usual.interval
    assert check.interval[0] < usual.interval[0] < usual.interval[1] < check.interval[1]


def test_a_share_of_nothing_cannot_be_asked_for(runs: Path) -> None:
    with pytest.raises(ValueError, match=r"no sample can prove .* --max failed=2%. To allow"):
        gate(runs / "base", [Bound("failed", 0, at_least=False)])
    with pytest.raises(ValueError, match=r"such as --min passed=98%.* --max grounding.errors=0"):
        gate(runs / "base", [Bound("passed", 100, at_least=True, percent=True)])
