"""What a bad model, a broken log or a hurried person could do to look good, and what the gate says.

Other ways are tested beside what they are about: test_gate.py, test_two_runs.py, test_corrected.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.compare.made_runs import made_run, rows
from tests.support import jsonl, run_command
from trustassay import score
from trustassay.compare.gate import gate
from trustassay.compare.gate_rules import Bound, EarlierRun, Gate, GateCheck
from trustassay.core.outcome import FAILED

Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_run(tmp_path_factory.mktemp("runs") / "before", rows("p" * 40 + "f" * 20))


def check_of(result: Gate, name: str) -> GateCheck:
    (check,) = (one for one in result.checks if one.name == name)
    return check


def test_easy_questions_that_are_added_hide_no_loss(before: Path, tmp_path: Path) -> None:
    easy = [
        row | {"id": f"e{i}", "question": f"Easy {i}?"} for i, row in enumerate(rows("p" * 200))
    ]
    after = made_run(tmp_path / "after", rows("p" * 30 + "f" * 30) + easy)
    result = gate(after, earlier=EarlierRun(before))
    check = check_of(result, "faithfulness.failed")
    assert result.outcomes["faithfulness"].shares[FAILED].percent < 20  # less than before
    assert check.before_after == pytest.approx((100 / 3, 50))
    assert check.result == "fail"
    assert any("200 in the second" in note for note in result.notes)


def test_hard_questions_that_are_dropped_are_missing(before: Path, tmp_path: Path) -> None:
    after = made_run(tmp_path / "after", rows("p" * 40))
    assert check_of(gate(after, earlier=EarlierRun(before)), "missing").result == "fail"


def test_hard_questions_in_other_words_are_missing(before: Path, tmp_path: Path) -> None:
    samples = rows("p" * 60)
    for row in samples[40:]:
        row["question"] = f"Is it true that a tower stands in {row['id']}?"
    result = gate(made_run(tmp_path / "after", samples), earlier=EarlierRun(before))
    assert check_of(result, "missing").result == "fail"


def test_answers_in_a_language_that_is_not_read_are_not_answered(tmp_path: Path) -> None:
    samples = rows("p" * 30)
    german = [
        row | {"response": "Der Turm der Stadt wurde im Jahr 1900 aus Holz und Stein gebaut."}
        for row in samples
    ]
    for name, one in (("before", samples), ("after", german)):
        score(one, metrics="faithfulness", out=tmp_path / name, report=False)
    result = gate(tmp_path / "after", earlier=EarlierRun(tmp_path / "before"))
    assert check_of(result, "faithfulness.not_answered").result == "fail"
    assert "faithfulness: not answered: language not read (30)" in result.notes


def test_passages_that_are_left_out_are_no_pass(before: Path, tmp_path: Path) -> None:
    samples = [row | {"documents": []} for row in rows("f" * 60)]
    result = gate(made_run(tmp_path / "after", samples), earlier=EarlierRun(before))
    assert check_of(result, "faithfulness.not_answered").result == "fail"
    assert "faithfulness: not answered: no passages (60)" in result.notes


@pytest.mark.parametrize("change", ["punctuation", "model"])
def test_copies_that_differ_a_little_raise_no_share(tmp_path: Path, change: str) -> None:
    samples = rows("p" * 30 + "f" * 30)
    copies: Rows = []
    for number in range(6):
        for row in samples[:30]:
            copy = row | {"id": f"{row['id']}-{number}"}
            if change == "punctuation":
                copy["response"] += " " * number + "!" * number
            else:
                copy["model"] = f"model {number}"
            copies.append(copy)
    run = made_run(tmp_path / "run", samples + copies)
    bounds = [Bound("passed", 80, at_least=True), Bound("faithfulness.mean", 0.8, at_least=True)]
    result = gate(run, bounds)
    assert [round(check.value or 0, 2) for check in result.checks] == [50, 0.5]


def test_who_counts_each_answer_by_itself_is_named(tmp_path: Path) -> None:
    samples = rows("p" * 30 + "f" * 30)
    copies = [row | {"id": f"{row['id']}-{n}"} for row in samples[:30] for n in range(6)]
    folder = tmp_path / "run"
    score(
        samples + copies,
        metrics="faithfulness",
        entailer="lexical",
        unit="answer",
        out=folder,
        report=False,
    )
    result = gate(folder, [Bound("passed", 50, at_least=True)])
    assert any("each answer counts separately (--unit answer)" in note for note in result.notes)


def test_a_tiny_run_never_passes_as_undecided(tmp_path: Path) -> None:
    for name in ("old", "new"):
        made_run(tmp_path / name, rows("pp"))
    done = run_command("gate", "new", "--no-worse-than", "old", "--undecided", "pass", cwd=tmp_path)
    assert done.returncode == 4
    assert "too few to show a change" in done.stdout


def test_an_empty_answer_is_as_bad_as_a_refusal(before: Path, tmp_path: Path) -> None:
    after = made_run(tmp_path / "after", rows("p" * 30 + "b" * 30))
    result = gate(after, earlier=EarlierRun(before))
    assert check_of(result, "faithfulness.not_answered").result == "fail"


def test_answers_that_claim_nothing_are_no_pass(before: Path, tmp_path: Path) -> None:
    samples = [row | {"response": "Here are the details you asked for."} for row in rows("p" * 60)]
    result = gate(made_run(tmp_path / "after", samples), earlier=EarlierRun(before))
    assert check_of(result, "faithfulness.not_answered").result == "fail"
    assert "faithfulness: not answered: no claim (60)" in result.notes


def test_a_metric_of_likeness_falls_with_its_first_figure(tmp_path: Path) -> None:
    """It draws no line, so that its figures alone can tell a collapse; blanks have no score."""
    samples = [row | {"answers": [row["response"]]} for row in rows("p" * 60)]
    paths = []
    for name, answer in (("old", None), ("moon", "the moon"), ("blank", " ")):
        more = samples if answer is None else [row | {"response": answer} for row in samples]
        score(more, metrics="reference", out=tmp_path / name, report=False)
        paths.append(tmp_path / name)
    old, moon, blank = paths
    assert gate(moon, earlier=EarlierRun(old)).result == "fail"
    result = gate(blank, earlier=EarlierRun(old))
    assert check_of(result, "reference.not_scored").result == "fail"


def test_a_bound_on_what_failed_passes_no_run_in_which_nothing_was_answered(tmp_path: Path) -> None:
    run = made_run(tmp_path / "run", rows("n" * 60))
    (check,) = gate(run, [Bound("failed", 10, at_least=False)]).checks
    assert (check.result, check.why) == ("fail", "no answer could be judged")


def test_copies_under_nearly_the_same_question_are_reported(tmp_path: Path) -> None:
    samples = rows("p" * 30 + "f" * 30)
    copies = [
        row | {"id": f"{row['id']}-{n}", "question": row["question"] + "!" * (n + 1)}
        for row in samples[:30]
        for n in range(3)
    ]
    run = made_run(tmp_path / "run", samples + copies)
    notes = gate(run, [Bound("passed", 80, at_least=True)]).notes
    assert any("90 answers are the same as another answer" in note for note in notes)


def test_records_that_were_skipped_are_named(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "in.jsonl", rows("p" * 30))
    path.write_text(path.read_text() + "no JSON\n" * 10)
    folder = tmp_path / "run"
    options = {"skip_bad": True, "report": False}
    score(path, metrics="faithfulness", entailer="lexical", out=folder, **options)  # type: ignore[arg-type]
    notes = gate(folder, [Bound("passed", 50, at_least=True)]).notes
    assert any(
        "10 unreadable records of the input are excluded from all shares" in n for n in notes
    )
