"""``trustassay study``, as a user meets it."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.support import jsonl
from trustassay import score


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run whose score is 1 for every right answer, and for one wrong one in five."""
    rows = [
        {
            "id": f"a{i}\nforged: line",
            "question": f"Question {i}?",
            "response": "the blue house" if i % 2 or i % 5 == 0 else "a red car",
            "answers": ["the blue house"],
            "source": ("books", "web")[i % 3 == 0],
            "labels": {"correct": ("no", "yes")[i % 2], "mood": ("calm", "cross", "sad")[i % 3]},
        }
        for i in range(60)
    ]
    path = tmp_path / "runs" / "one"
    score(jsonl(tmp_path / "in.jsonl", rows), metrics="reference:parts=em", out=path, report=False)
    return path


ARGUMENTS = ("--label", "labels.correct", "--resamples", "200")


def test_tables_page_file_and_json(cli: Cli, run: Path) -> None:
    said = cli(
        "study", run, *ARGUMENTS, "--by", "source", "--page", "s.html", "--table", "s.csv", "--json"
    )
    assert said.status == 0, said.err
    found = json.loads(said.out)
    (label,) = found["labels"]
    scores = {one["name"]: one["figures"] for one in label["scores"]}
    # 30 right, all scored 1, and 6 of 30 wrong ones: a tie counts half
    assert scores["reference"]["auroc"]["value"] == pytest.approx((24 + 6 / 2) / 30)
    assert (label["label"], label["kind"], label["n"]) == ("labels.correct", "binary", 60)
    assert "60 answers to 60 questions" in said.err
    assert "label labels.correct: 60 answers with a binary label, mean 0.500" in said.err
    assert "Highest AUROC: reference 0.900" in said.err
    assert "web: reference" in said.err
    page = Path("s.html").read_text()
    assert page.startswith("<!doctype html>")
    with Path("s.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["by"] for row in rows} == {"", "source"}
    # Correlations and errors of probabilities are for those who ask for them.
    assert {"auroc", "auprc", "prr"} < scores["reference"].keys()
    for name in ("tau-b", "Spearman", "Pearson", "Brier", "ECE"):
        assert name not in said.err
        assert name not in page
        assert name in {row["figure"] for row in rows}
    assert {"kendall", "spearman", "pearson", "brier", "ece"} < scores["reference"].keys()


def test_it_fits_a_narrow_terminal(cli: Cli, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    said = cli("study", run, *ARGUMENTS)
    tables = [line for line in said.err.splitlines() if line.startswith(("reference ", "score "))]
    assert len(tables) >= 3
    assert max(map(len, tables)) <= 80
    assert "\nforged" not in said.err


def test_faults_end_with_status_2(cli: Cli, run: Path) -> None:
    said = cli("study", run, "--label", "correct")
    assert said.status == 2
    assert "no answer has the label correct; did you mean labels.correct? " in said.err
    assert "Fields that say right or wrong: --label labels.correct. " in said.err
    assert "labels.correct, labels.mood" in said.err
    said = cli("study", run, "--label", "labels.mood")
    assert said.status == 2
    assert "label labels.mood: it is not clear which labels mean right: 'calm' (20)" in said.err
    said = cli("study", run, "--label", "labels.mood", "--levels", "sad,calm,cross")
    assert said.status == 0, said.err
    assert "Highest tau-b" in said.err
    said = cli("study", run, "--label", "labels.mood", "--positive", "calm", "--table", "a.xls")
    assert said.status == 2
    assert "--table a.xls: expected a name that ends with .csv, .tsv or .md" in said.err
    assert cli("study", "missing", "--label", "x").status == 2
    said = cli("study", run, *ARGUMENTS, "--machine", "x")
    assert "--machine and --field apply to a file of ratings; name it with --ratings" in said.err


def test_a_file_is_studied_like_a_run(cli: Cli, run: Path) -> None:
    rows = [f"a{n},{n % 7 / 7 + n % 2:.2f},{('falsch', 'richtig')[n % 2]}\n" for n in range(40)]
    Path("scores.csv").write_text("id;jev;human\n" + "".join(rows).replace(",", ";"))
    output = cli(
        "study", "scores.csv", "--label", "human", "--page", "s.html", "--resamples", "200"
    )
    assert output.status == 0, output.err
    assert "Highest AUROC: jev 1.000" in output.err
    # A table has neither costs nor reports to link to.
    assert "cost per sample" not in output.err
    assert "report.html" not in Path("s.html").read_text()
    output = cli("study", "scores.csv")
    assert output.status == 2
    assert "scores.csv: no answer has the label label; use --label FIELD" in output.err
    assert "Fields that say right or wrong: --label human. " in output.err
    output = cli("study", "scores.csv", "--label", "human", "--score", "jav")
    assert "scores.csv: unknown column 'jav'; did you mean jev?" in output.err
    output = cli("study", run, *ARGUMENTS, "--score", "referenc")
    assert (
        "--score: unknown score 'referenc'; did you mean reference or reference.em?" in output.err
    )
    assert "only a workbook has sheets" in cli("study", run, *ARGUMENTS, "--sheet", "2").err
    assert "is not a workbook" in cli("study", "scores.csv", "--label", "human", "--sheet", "2").err
    output = cli("study", "scores.csv", run, "--label", "human")
    assert "expected folders of runs, or one file" in output.err


def test_help_has_examples(cli: Cli) -> None:
    said = cli("study", "--help")
    assert said.status == 0
    assert "trustassay study runs/one --label label" in said.out
