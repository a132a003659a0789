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
    said = cli(
        "calibrate", labelled, "--label", "correct", "--at-most", "0.1", "--at-most", "0.2",
        "--resamples", "100", "--out", "made/cal.json", "--page", "c.html", "--json",
    )  # fmt: skip
    assert said.status == 0, said.err
    assert "from 300 labelled answers to 300 questions" in said.err
    assert "calibrated, out of fold" in said.err
    assert "calibrator: made/cal.json" in said.err.splitlines()[-1]
    made = json.loads(Path("made/cal.json").read_text())
    assert json.loads(said.out)["calibrator"] == made
    assert [one["at_most"] for one in made["promises"]] == [0.1, 0.2, 0.1, 0.2]
    assert "trustassay calibrate" in Path("c.html").read_text()

    new = jsonl(tmp_path / "new.jsonl", rows(200, 2))
    said = cli(
        "score", new, "--metric", METRIC, "--calibrator", "made/cal.json", "--out", "runs/new"
    )
    assert said.status == 0, said.err
    assert "Probability of being right (correct)" in said.err
    assert "Accepted with at most 10 % of them wrong (confidence 95 %): " in said.err
    assert "warning" not in said.err
    assert "right <b" in Path("runs/new/report.html").read_text()
    accepted = json.loads(Path("runs/new/summary.json").read_text())["calibrated"]["accepted"]
    assert f"{accepted[0]['accepted']} of 200" in said.err

    said = cli("rescore", "runs/new", "--calibrator", "made/cal.json", "--out", "runs/again")
    assert "Probability of being right (correct)" in said.err


def test_a_finished_run_that_looks_unlike(cli: Cli, labelled: Path, tmp_path: Path) -> None:
    assert cli("calibrate", labelled, "--label", "correct", "--resamples", "100").status == 0
    other = rows(200, 3)
    for row in other[:120]:
        row["response"] = row["answers"][0]
    score(jsonl(tmp_path / "x.jsonl", other), metrics=METRIC, out="runs/x", report=False)
    said = cli("report", "runs/x", "--calibrator", "calibrator.json")
    assert said.status == 0, said.err
    assert "warning: reference: its distribution here is unlike that of the" in said.err
    assert "unlike that of the labelled answers" in Path("runs/x/report.html").read_text()
    quiet = cli("report", "runs/x", "--calibrator", "calibrator.json", "--quiet")
    assert quiet.err.splitlines()[-1].startswith("report: ")


def test_what_is_refused(cli: Cli, labelled: Path, tmp_path: Path) -> None:
    given = ("calibrate", labelled, "--resamples", "100")
    said = cli(*given)
    assert said.status == 2 and "no sample has the label label; expected --label FIELD" in said.err
    said = cli(*given, "--label", "corect")
    assert said.status == 2 and "no sample has the label corect" in said.err
    said = cli(*given, "--label", "correct", "--metric", "referense")
    assert said.status == 2 and "did you mean reference or" in said.err
    said = cli(*given, "--label", "correct", "--at-most", "0.001")
    assert said.status == 2 and "at least 2,995 are needed" in said.err
    assert not Path("calibrator.json").exists()
    assert cli(*given, "--label", "correct").status == 0
    new = jsonl(tmp_path / "new.jsonl", rows(30, 2))
    said = cli("score", new, "--metric", "reference:parts=em", "--calibrator", "calibrator.json")
    assert said.status == 2 and "other options than the calibrator was made with" in said.err
    Path("calibrator.json").write_text('{"format": "trustassay calibrator", "version": NaN}')
    said = cli("score", new, "--metric", METRIC, "--calibrator", "calibrator.json")
    assert said.status == 2
    assert "calibrator.json: is not JSON: NaN is not a number of JSON" in said.err
    assert not Path("trustassay-runs").exists()
    said = cli("score", new, "--metric", METRIC, "--calibrator", "missing.json")
    assert said.status == 2 and "missing.json" in said.err


def test_help_has_examples(cli: Cli) -> None:
    said = cli("calibrate", "--help")
    assert said.status == 0
    assert "trustassay calibrate runs/labelled --label label" in said.out
    assert "--calibrator" in cli("score", "--help").out
