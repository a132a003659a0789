"""``trustassay label``, as a user meets it: from a plan through ratings to figures."""

from __future__ import annotations

import csv
import json
import shlex
from pathlib import Path

import numpy as np
import pytest

from tests.cli.conftest import Cli
from tests.support import jsonl
from trustassay import score


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run of two models; what they answer is often, but not always what counts as right."""
    rng = np.random.default_rng(3)
    rows = [
        {
            "id": f"q{q}-{model}",
            "question": f"Question {q}?",
            "response": "the blue house" if rng.random() < share else "a red car",
            "answers": ["the blue house"],
            "model": model,
        }
        for q in range(80)
        for model, share in (("good", 0.8), ("poor", 0.3))
    ]
    path = tmp_path / "runs" / "one"
    source = jsonl(tmp_path / "in.jsonl", rows)
    score(source, metrics="reference:parts=em", out=path, report=False)
    return path


def commands(text: str) -> list[list[str]]:
    """Return the commands that a message names, without the program."""
    found = [line.partition("trustassay ")[2] for line in text.splitlines()]
    return [shlex.split(words) for words in found if words.startswith(("annotate", "label"))]


def fill(sheet: Path, right: str = "yes", wrong: str = "no") -> None:
    """Rate every answer of a sheet as a person would."""
    with sheet.open(newline="", encoding="utf-8-sig") as file:
        rows = list(csv.DictReader(file))
    with sheet.open("w", newline="") as file:
        out = csv.DictWriter(file, list(rows[0]))
        out.writeheader()
        out.writerows(
            row | {"rating": right if row["answer"] == "the blue house" else wrong} for row in rows
        )


def difference() -> float:
    """Return the true difference of the models' shares of right answers."""
    rows = [json.loads(line) for line in Path("in.jsonl").read_text().splitlines()]
    right = {
        model: [one["response"] == "the blue house" for one in rows if one["model"] == model]
        for model in ("good", "poor")
    }
    return float(np.mean(right["good"]) - np.mean(right["poor"]))


def rate(cli: Cli, words: list[str], number: int) -> None:
    """Do as a message says: rate what the command shows, in a spreadsheet."""
    words = [word.replace("NAME", "anna") for word in words]
    sheet = Path(f"sheet{number}.csv")
    assert cli(*words, "--export", sheet).status == 0
    fill(sheet)
    said = cli(*words, "--import", sheet)
    assert said.status == 0, said.err


def test_from_a_plan_to_figures(cli: Cli, run: Path) -> None:
    first = cli("label", run)
    assert first.status == 0, first.err
    assert "160 answers, 80 questions to draw from" in first.err
    assert "50 answers added to the plan" in first.err
    annotate, then = commands(first.err)
    assert annotate[:4] == ["annotate", str(run), "--plan", f"{run}.label.jsonl"]
    assert annotate[4:] == ["--rater", "NAME", "--rubric", "verdict", "--out", "ratings.jsonl"]
    rate(cli, annotate, 1)

    second = cli(*then)
    assert second.status == 0, second.err
    assert "50 answers drawn, 50 of them rated" in second.err
    assert "right answers: good" in second.err
    assert "interval of width 0.05: needs about" in second.err
    (more,) = commands(second.err)
    assert more[-2:] == ["--number", "50"]

    third = cli(*more)
    assert "added to the plan" in third.err
    rate(cli, commands(third.err)[0], 2)
    last = cli(*then, "--compare", "good", "poor", "--json")
    found = json.loads(last.out)
    assert found["figures"][0]["of"] == ["good", "poor"]
    low, high = found["figures"][0]["interval"]
    assert 0 < low < difference() < high
    assert found["needs"][1]["more"] == 0
    assert "detection of a difference of" in last.err
    assert found["drawn"] == found["rated"] == 100

    refused = cli("study", run, "--ratings", "ratings.jsonl")
    assert refused.status == 2
    assert "unequal probabilities" in refused.err
    warned = cli("agree", "ratings.jsonl")
    assert "`label` drew uncertain answers more often" in warned.err


def test_the_outcomes_of_the_run_come_first(cli: Cli, run: Path) -> None:
    said = cli("label", run, "--json")
    first = said.err.splitlines()[0]
    assert first.startswith("reference: 100 % scored (95 % interval ")
    assert first.endswith(" of 80 questions")
    assert json.loads(said.out)["outcomes"][str(run)]["reference"]["answers"] == 160


def test_nothing_to_do_changes_nothing(cli: Cli, run: Path) -> None:
    cli("label", run, "--plan", "p.jsonl")
    before = Path("p.jsonl").read_bytes()
    said = cli("label", run, "--plan", "p.jsonl")
    assert "50 answers to rate now" in said.err
    assert "--plan p.jsonl --ratings ratings.jsonl" in said.err
    assert Path("p.jsonl").read_bytes() == before


def test_ratings_that_have_just_begun(cli: Cli, run: Path) -> None:
    annotate, then = commands(cli("label", run).err)
    sheet = ("--export", "s.csv")
    assert cli(*[w.replace("NAME", "anna") for w in annotate], *sheet).status == 0
    Path("ratings.jsonl").write_text('{"action": "start", "choices": ["yes", "no"]}\n')
    said = cli(*then)
    assert said.status == 0, said.err
    assert "50 answers drawn, 0 of them rated" in said.err


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A table of answers without ids, with a score."""
    path = tmp_path / "answers.csv"
    rows = [f"Question {n}?,answer {n},{n / 200}" for n in range(200)]
    path.write_text("\n".join(["question,response,sure", *rows]))
    return path


def test_a_plan_for_calibrate_of_a_table(cli: Cli, table: Path) -> None:
    words = ("label", table, "--for", "calibrate", "--score", "sure", "--number", "100")
    first = cli(*words, "--at-most", "10%", "--json")
    assert first.status == 0, first.err
    assert "50 answers drawn, 0 of them rated\n100 labels missing until the" in first.err
    assert json.loads(first.out)["missing"] == 100
    plan = f"{table}.label.jsonl"
    then = first.err.partition("then: trustassay ")[2].split()
    assert then == [
        "calibrate", str(table), "--score", "sure", "--plan", plan,
        "--ratings", "ratings.jsonl", "--at-least", "4",
    ]  # fmt: skip
    (annotate,) = commands(first.err)
    # Its ids are those of the plan, though the table has none.
    words_of_anna = [word.replace("NAME", "anna") for word in annotate]
    assert cli(*words_of_anna, "--export", "s.csv").status == 0
    fill(Path("s.csv"), wrong="5")
    stored = cli(*words_of_anna, "--import", "s.csv")
    assert stored.status == 0, stored.err
    rest = ("--ratings", "ratings.jsonl", "--at-least", "4")
    second = cli(*words, *rest, "--at-most", "0.1")
    assert "100 answers drawn, 50 of them rated\n50 labels missing" in second.err
    refused = cli("study", table, "--ratings", "ratings.jsonl")
    assert refused.status == 2
    # A table that people made stays theirs: `annotate` writes a file beside it.
    item = json.loads(Path(plan).read_text().splitlines()[2])["answers"][0]["id"]
    Path("hand.csv").write_text(f"item,rater,rating\n{item},anna,5\n")
    by_hand = cli(*words, "--ratings", "hand.csv", "--at-least", "4")
    assert commands(by_hand.err)[0][-2:] == ["--out", "ratings.jsonl"]


def test_plans_for_one_purpose_are_refused_by_the_other(cli: Cli, run: Path) -> None:
    first = cli("label", run, "--for", "calibrate", "--score", "reference", "--number", "60")
    assert first.status == 0, first.err
    assert f"or trustassay view {run} --rate NAME --rubric verdict" in first.err
    assert "was made with --for calibrate" in cli("label", run).err
    cli("label", run, "--plan", "p.jsonl")
    words = ("--for", "calibrate", "--score", "reference")
    assert "the plan is for estimates" in cli("label", run, "--plan", "p.jsonl", *words).err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--for", "study"], "--for: expected calibrate, got 'study'"),
        (["--looks", "2"], "--looks: only possible with --for calibrate"),
        (["--for", "calibrate", "--random"], "--random: only possible without"),
        (["--for", "calibrate"], "name the score to calibrate with --score"),
        (
            ["--for", "calibrate", "--score", "sure", "--at-most", "ten"],
            "expected a share between 0 and 1, such as 10% or 0.1, got 'ten'",
        ),
    ],
)
def test_options_of_plans_for_calibrate(
    cli: Cli, table: Path, words: list[str], message: str
) -> None:
    refused = cli("label", table, *words)
    assert refused.status == 2
    assert message in refused.err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--unit", "page"], "--unit: expected question or answer, got 'page'"),
        (["--compare", "good", "bad"], "models and scores here: good, poor, reference"),
        (["--score", "referense"], "did you mean"),
        (["--label", "gone"], "no answer has the label gone"),
        (["--ratings", "gone.jsonl"], "gone.jsonl"),
        (["--plan", "in.jsonl"], "in.jsonl:1: not a plan"),
    ],
)
def test_mistakes_are_told(cli: Cli, run: Path, words: list[str], told: str) -> None:
    said = cli("label", run, *words)
    assert said.status == 2
    assert told in said.err
    assert "Traceback" not in said.err
    assert not Path(f"{run}.label.jsonl").exists()


def test_help_has_examples(cli: Cli) -> None:
    said = cli("label", "--help")
    assert "trustassay annotate runs/one --plan runs/one.label.jsonl" in said.out
