"""``trustassay calibrate``, and ``--calibrator`` of other commands, as a user meets them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cli.conftest import Cli
from tests.support import jsonl
from trustassay import score

METRIC = "reference:parts=token_f1"


def rows(n: int, seed: int, words: int = 10) -> list[dict[str, Any]]:
    """Answers that share some words with the gold answer; the more, the likelier they are right."""
    rng = np.random.default_rng(seed)
    gold = [f"word{i}" for i in range(words)]
    found = []
    for i in range(n):
        shared = int(rng.integers(0, words + 1))
        said = [*gold[:shared], *(f"other{j}" for j in range(words - shared))]
        found.append(
            {
                "id": f"a{i}\nforged: line",
                "question": f"Question {i}?",
                "response": " ".join(said),
                "answers": [" ".join(gold)],
                "correct": ("no", "yes")[int(rng.random() < min(1.0, 1.4 * shared / words))],
            }
        )
    return found


@pytest.fixture
def labelled(tmp_path: Path) -> Path:
    path = tmp_path / "runs" / "labelled"
    score(jsonl(tmp_path / "in.jsonl", rows(300, 1)), metrics=METRIC, out=path, report=False)
    return path


def test_from_labels_to_a_report_of_probabilities(cli: Cli, labelled: Path, tmp_path: Path) -> None:
    result = cli(
        "calibrate", labelled, "--label", "correct", "--at-most", "10%", "--at-most", "0.2",
        "--out", "made/cal.json", "--page", "c.html", "--json",
    )  # fmt: skip
    assert result.status == 0, result.err
    assert "Accept answers with reference > 0." in result.err
    assert "at most 10 % of the accepted answers are wrong according to" in result.err
    assert "calibrator: made/cal.json" in result.err
    made = json.loads(Path("made/cal.json").read_text())
    assert json.loads(result.out)["calibrator"] == made
    assert [promise["at_most"] for promise in made["promises"]] == [0.1, 0.2]
    assert "trustassay calibrate" in Path("c.html").read_text()

    new = jsonl(tmp_path / "new.jsonl", rows(200, 2))
    result = cli(
        "score", new, "--metric", METRIC, "--calibrator", "made/cal.json", "--out", "runs/new"
    )
    assert result.status == 0, result.err
    assert "Probability of being right (correct)" in result.err
    assert "warning" not in result.err
    assert "right <b" in Path("runs/new/report.html").read_text()
    accepted = json.loads(Path("runs/new/summary.json").read_text())["calibrated"]["accepted"]
    assert f"Accepted by reference: {accepted} of 200; at most 10 %" in result.err

    result = cli("rescore", "runs/new", "--calibrator", "made/cal.json", "--out", "runs/again")
    assert "Probability of being right (correct)" in result.err


def test_a_table_and_other_rows(cli: Cli, tmp_path: Path) -> None:
    lines = [f"{at / 200},{'bad' if at < 5 else 'good'}" for at in range(200)]
    (tmp_path / "s.csv").write_text("\n".join(["confidence,human", *lines]))
    result = cli("calibrate", tmp_path / "s.csv", "--score", "confidence", "--label", "human")
    assert result.status == 0, result.err
    assert "calibrator: calibrator.json" in result.err
    (tmp_path / "new.csv").write_text("id,confidence\na,0.9\nb,0.001\nc,\n")
    result = cli("calibrate", tmp_path / "new.csv", "--apply", "calibrator.json", "--json")
    assert result.status == 0, result.err
    assert "3 answers: 2 accepted, 1 to be checked by a person" in result.err
    assert json.loads(result.out)["accepted"] == 2
    assert Path("decided.csv").read_text().splitlines()[0] == "id,confidence,decision,probability"
    Path("runs").mkdir()
    result = cli("calibrate", "runs", "--apply", "calibrator.json")
    assert result.status == 2 and "trustassay report runs --calibrator" in result.err


def test_without_a_threshold_it_ends_with_status_2(cli: Cli, tmp_path: Path) -> None:
    lines = [f"{at / 60},{at % 3 > 0:d}" for at in range(60)]
    (tmp_path / "s.csv").write_text("\n".join(["jev,human", *lines]))
    given = ("calibrate", tmp_path / "s.csv", "--score", "jev", "--label", "human")
    result = cli(*given, "--page", "p.html")
    assert result.status == 2
    assert "No threshold for at most 10 % wrong: 31 % of the 29" in result.err
    # The calibrator still gives probabilities; it accepts nothing.
    assert json.loads(Path("calibrator.json").read_text())["promises"][0]["without"]
    assert Path("p.html").exists()
    result = cli(*given, "--at-most", "x")
    assert result.status == 2 and "expected a share such as 0.1 or 10%, got 'x'" in result.err


def test_a_finished_run_that_looks_unlike(cli: Cli, labelled: Path, tmp_path: Path) -> None:
    assert cli("calibrate", labelled, "--label", "correct").status == 0
    other = rows(200, 3)
    for row in other[:120]:
        row["response"] = row["answers"][0]
    score(jsonl(tmp_path / "x.jsonl", other), metrics=METRIC, out="runs/x", report=False)
    result = cli("report", "runs/x", "--calibrator", "calibrator.json")
    assert result.status == 0, result.err
    assert "warning: reference: the scores are distributed differently from" in result.err
    assert (
        "distributed differently from those of the calibration"
        in Path("runs/x/report.html").read_text()
    )
    quiet = cli("report", "runs/x", "--calibrator", "calibrator.json", "--quiet")
    assert quiet.err.splitlines()[-1].startswith("report: ")


def test_what_is_refused(cli: Cli, labelled: Path, tmp_path: Path) -> None:
    given = ("calibrate", labelled)
    result = cli(*given)
    assert result.status == 2
    assert "no answer has the label label; use --label FIELD" in result.err
    result = cli(*given, "--label", "corect")
    assert result.status == 2 and "no answer has the label corect" in result.err
    result = cli(*given, "--label", "correct", "--score", "referense")
    assert result.status == 2 and "did you mean reference" in result.err
    assert not Path("calibrator.json").exists()
    assert cli(*given, "--label", "correct").status == 0
    new = jsonl(tmp_path / "new.jsonl", rows(30, 2))
    result = cli("score", new, "--metric", "reference:parts=em", "--calibrator", "calibrator.json")
    assert result.status == 2 and "reference has other options than the calibrator: " in result.err
    Path("calibrator.json").write_text('{"format": "trustassay calibrator", "version": NaN}')
    result = cli("score", new, "--metric", METRIC, "--calibrator", "calibrator.json")
    assert result.status == 2
    assert "calibrator.json: is not JSON: NaN is not a number of JSON" in result.err
    assert not Path("trustassay-runs").exists()
    result = cli("score", new, "--metric", METRIC, "--calibrator", "missing.json")
    assert result.status == 2 and "missing.json" in result.err


def test_help_has_examples(cli: Cli) -> None:
    result = cli("calibrate", "--help")
    assert result.status == 0
    assert "trustassay calibrate scores.csv --score confidence --label human" in result.out
    assert "--calibrator" in cli("score", "--help").out


def test_what_is_read_is_not_overwritten_and_an_unplanned_look_is_noticed(
    cli: Cli, tmp_path: Path
) -> None:
    lines = [f"{1 - at / 200},{int(at < 190)}" for at in range(200)]
    labels = tmp_path / "labels.csv"
    labels.write_text("\n".join(["sure,label", *lines[::2]]) + "\n")
    before = labels.read_bytes()
    for options in (["--out", labels], ["--page", labels]):
        result = cli("calibrate", labels, "--score", "sure", *options)
        assert result.status == 2 and "would overwrite the input" in result.err
    first = cli("calibrate", labels, "--score", "sure")
    assert first.status == 0 and "further look" not in first.err
    result = cli("calibrate", labels, "--apply", "calibrator.json", "--out", labels)
    assert result.status == 2 and labels.read_bytes() == before
    assert "further look" not in cli("calibrate", labels, "--score", "sure").err
    labels.write_text("\n".join(["sure,label", *lines]) + "\n")
    again = cli("calibrate", labels, "--score", "sure")
    assert (
        "an earlier calibrator from 100 labels of label is replaced; each further look can break"
        in again.err
    )
