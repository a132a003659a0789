"""``trustassay experiment`` through the command line."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from tests.support import command, jsonl, killed_at_work, run_command
from tests.workflows.experiments.material import choice_questions, question, questions, scripted
from trustassay.cli.main import app

Experiment = Callable[..., Result]


@pytest.fixture
def experiment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Experiment:
    """The command in this process, in a folder whose modules are imported anew."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    for module in ("scripted", "quick"):
        monkeypatch.delitem(sys.modules, module, raising=False)

    def run(*arguments: str | Path) -> Result:
        return CliRunner().invoke(app, ["experiment", *map(str, arguments)])

    return run


def rows_of(stdout: str) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in json.loads(stdout)["rows"]}


TRUE = ["--reference", "true=python:scripted:true"]
HALF = ["--reference", "half=python:scripted:half"]


def test_pairs_of_the_best_answer_and_the_first_wrong_one(
    tmp_path: Path, experiment: Experiment
) -> None:
    source, options = questions(tmp_path), scripted(tmp_path)
    arguments: list[str | Path] = [
        "fewl-pairs",
        source,
        *options,
        *HALF,
        *TRUE,
        "--out",
        "out",
    ]
    arguments += ["--generator", "python:scripted:pairs", "--json"]
    done = experiment(*arguments)
    assert done.exit_code == 0, done.stderr
    rows = rows_of(done.stdout)
    won = {name: row["right > wrong"] for name, row in rows.items()}
    assert won["chance"]["value"] == 50
    assert won["length: the shorter"] | {"interval": 0} == {
        "value": 0.0, "interval": 0, "ties": 100.0, "n": 24,
    }  # fmt: skip
    # `half` alone is right of every second question; with `true` there is a tie where it is wrong.
    single = won["single, no penalty, tv"]
    assert (single["value"], single["ties"]) == (50.0, 0.0)
    assert single["interval"][0] < 50 < single["interval"][1]
    uniform = won["uniform, no penalty, eq1, tv"]
    assert (uniform["value"], uniform["ties"]) == (50.0, 50.0)
    # Expertise is 1 - 1/3 of who is right and 1/3 - 1 of who is wrong: the right one weighs more.
    assert won["ours, no penalty, eq1, tv"]["value"] == 100
    assert won["single-best, no penalty, kl"]["value"] == 100
    assert won["ideal, no penalty, theory, js"]["value"] == 100
    assert rows["single, no penalty, tv"]["tables"] == [1, 8, 10, 11]
    asked = (tmp_path / "half.asked").read_text()
    assert asked.count("x") == 24
    assert (tmp_path / "pairs.asked").read_text().count("x") == 24
    page = (tmp_path / "out" / "experiment.md").read_text()
    assert "| uniform, no penalty, eq1, tv | 50.0" in page
    again = experiment(*arguments)
    assert again.stdout == done.stdout
    assert (tmp_path / "half.asked").read_text() == asked


def test_the_best_answer_must_be_the_highest_of_all(tmp_path: Path, experiment: Experiment) -> None:
    rows = [question(i) for i in range(24)]
    rows[0]["answers"] = [["right 0", "right 0 too"]]
    rows[1] |= {"answers": [["mostly", "right 1"]], "Best Answer": "right 1"}
    rows[2]["incorrect_answers"] = ["Right 2", "odd 2"]  # the same words as the best answer
    source, options = jsonl(tmp_path / "questions.jsonl", rows), scripted(tmp_path)
    arguments: list[str | Path] = [
        "fewl-best",
        source,
        *options,
        *TRUE,
        *HALF,
        "--json",
    ]
    done = experiment(*arguments, "--out", "out")
    assert done.exit_code == 0, done.stderr
    found = {name: row["best answer highest"] for name, row in rows_of(done.stdout).items()}
    assert found["single, no penalty, tv"]["count"] == 24
    # The half is wrong of 12; there one of them says each, but of the third nobody says "odd 2".
    assert found["uniform, no penalty, eq1, tv"]["count"] == 13
    assert found["uniform, no penalty, eq1, tv"]["ties"] == pytest.approx(100 * 11 / 24)
    # 3 answers a question, but 4 to the first two and 2 to the third.
    chance = (21 / 3 + 2 / 4 + 1 / 2) / 24
    assert abs(found["chance"]["value"] - 100 * chance) < 1e-9
    assert not {"ours", "single-best"} & {
        row.get("weights") for row in rows_of(done.stdout).values()
    }
    assert "no weights `ours`" in " ".join(done.stderr.split())


def test_labelled_answers_are_held_against_each_other_by_kind(
    tmp_path: Path, experiment: Experiment
) -> None:
    """As CHALE is read: three answers a record, of which the last two may be equal."""
    columns = {
        "Question": [f"what is thing {i}" for i in range(20)],
        "Short_ans": [f"right {i}" for i in range(20)],
        "Long_ans": [f"right {i} ." for i in range(20)],
        "non-halu": [f"right {i}" for i in range(20)],
        "mid-halu": [f"half {i}" for i in range(20)],
        "halu": [f"wrong {i}" for i in range(20)],
    }
    (tmp_path / "chale.json").write_text(json.dumps(columns))
    arguments: list[str | Path] = [
        "fewl-pairs",
        "chale.json",
        *scripted(tmp_path),
        *HALF,
        "--json",
    ]
    done = experiment(*arguments, "--limit", "10", "--out", "out")
    assert done.exit_code == 0, done.stderr
    row = rows_of(done.stdout)["single, no penalty, tv"]
    # Of questions 0, 2, .. the reference says what is wrong; the half answer is as far from it.
    assert {key: row[key]["value"] for key in ("right > mid-halu", "right > halu")} == {
        "right > mid-halu": 50.0, "right > halu": 50.0,
    }  # fmt: skip
    assert (row["right > mid-halu"]["ties"], row["right > halu"]["ties"]) == (50.0, 0.0)
    assert row["right > halu"]["n"] == 10  # questions, not answers
    assert row["right > halu"]["interval"] is None  # of fewer than 20


def test_a_reference_that_fails_leaves_answers_out(tmp_path: Path, experiment: Experiment) -> None:
    source, options = questions(tmp_path, 6), scripted(tmp_path)
    arguments: list[str | Path] = [
        "fewl-pairs",
        source,
        *options,
        "--out",
        "out",
        "--json",
    ]
    done = experiment(*arguments, "--reference", "python:scripted:some")
    assert done.exit_code == 1, done.stderr
    found = json.loads(done.stdout)
    assert set(found["left_out"]) == {"q3-1", "q3-2"}
    assert rows_of(done.stdout)["single, no penalty, tv"]["right > wrong"]["n"] == 5
    assert "2 answers are left out" in done.stderr
    done = experiment(
         "fewl-pairs", source, *options, "--out", "none",
        "--reference", "python:scripted:broken",
    )  # fmt: skip
    assert done.exit_code == 2
    assert "no answer could be scored; the first: " in done.stderr


def test_what_cannot_be_done_is_said_before_anything_is_asked(
    tmp_path: Path, experiment: Experiment
) -> None:
    options = scripted(tmp_path)

    def refused(name: str, rows: list[dict[str, Any]] | None, *others: str) -> str:
        if rows is not None:
            jsonl(tmp_path / "input.jsonl", rows)
        source = "absent.jsonl" if rows is None else "input.jsonl"
        done = experiment(name, source, *others, *options)
        assert done.exit_code == 2, done.output
        assert not (tmp_path / "true.asked").exists()
        return " ".join(done.output.split())

    plain = [question(i) for i in range(3)]
    assert "No such command 'fewl-pears'" in refused("fewl-pears", plain)
    assert "references: is missing" in refused("fewl-pairs", plain)
    without = [{k: v for k, v in row.items() if k != "incorrect_answers"} for row in plain]
    assert "incorrect_answers: is missing" in refused("fewl-pairs", without, *TRUE)
    answered = [{"question": "q", "response": "r"}]
    assert "label: is missing" in refused("fewl-best", answered, *TRUE)
    right = [{"question": "q", "response": "r", "label": 1}]
    assert "no question has a right and a wrong answer" in refused("fewl-pairs", right, *TRUE)
    assert "absent.jsonl" in refused("fewl-pairs", None, *TRUE)
    assert "temperature" in refused("fewl-pairs", plain, *TRUE, "--weight-temperature", "0")


def models_answers(folder: Path, **others: Any) -> Path:
    """Three models: always right, right of odd things, never right."""
    right: dict[str, list[bool]] = {
        "good": [True] * 24,
        "fair": [n % 2 == 1 for n in range(24)],
        "poor": [False] * 24,
    }
    return jsonl(
        folder / "answers.jsonl",
        [
            question(
                n,
                id=f"{n}-{model}",
                model=model,
                response=f"right {n}" if is_right[n] else f"odd {n}",
                label=int(is_right[n]),
                **others,
            )
            for n in range(24)
            for model, is_right in right.items()
        ],
    )


def test_models_are_ranked_by_every_variant(tmp_path: Path, experiment: Experiment) -> None:
    source, options = models_answers(tmp_path), scripted(tmp_path)
    done = experiment("fewl-rank", source, *options, *TRUE, *HALF, "--json", "--out", "out")
    assert done.exit_code == 0, done.stderr
    rows = rows_of(done.stdout)
    assert rows["true accuracy"]["fair"]["value"] == 50
    single = rows["single, no penalty, kl"]
    # KL without a penalty is the likeness itself: 1 to the same words, else 1 of 3 words.
    assert single["fair"]["mean"] == pytest.approx((1 + 1 / 3) / 2, abs=1e-6)
    assert single["order"]["order"] == ["good", "fair", "poor"]
    assert single["order"]["pairs_not_told_apart"] == 0
    assert single["Kendall's tau"]["value"] == 1
    assert single["Kendall's tau"]["interval"] == [1, 1]
    assert rows["single, nearest, tv"]["tables"] == []
    # The shorter is "odd": this rule turns the order around.
    assert rows["length: the shorter"]["Kendall's tau"]["value"] == -1
    assert "once in 6 times" in " ".join(done.stderr.split())


def test_two_models_answers_are_ordered_as_by_truthfulqa(
    tmp_path: Path, experiment: Experiment
) -> None:
    source, options = models_answers(tmp_path), scripted(tmp_path)
    done = experiment("fewl-samples", source, *options, *HALF, "--json", "--out", "out")
    assert done.exit_code == 0, done.stderr
    rows = rows_of(done.stdout)
    row = rows["single, no penalty, tv"]
    # Where `fair` is right `half` says so; else it says "wrong", which is as far from both answers.
    assert (row["good v. fair"]["n"], row["good v. fair"]["value"]) == (12, 0.0)
    assert row["good v. fair"]["ties"] == 100
    assert (row["fair v. poor"]["n"], row["fair v. poor"]["value"]) == (12, 100.0)
    assert (row["good v. poor"]["n"], row["good v. poor"]["value"]) == (24, 50.0)
    assert row["good v. poor"]["interval"] is not None
    assert row["tables"] == [5]
    assert rows["length: the shorter"]["good v. poor"]["value"] == 0


def test_rankings_say_what_they_lack(tmp_path: Path, experiment: Experiment) -> None:
    options = scripted(tmp_path)
    alone = jsonl(tmp_path / "one.jsonl", [question(1, response="r", model="m")])
    done = experiment("fewl-rank", alone, *options, *TRUE)
    assert done.exit_code == 2
    assert "answers of 1 models; expected two models or more" in done.stderr
    nobody = jsonl(tmp_path / "none.jsonl", [question(1, response="r")])
    assert "model: is missing" in experiment("fewl-rank", nobody, *options, *TRUE).stderr
    both = [{"question": "q", "response": "r", "model": model} for model in "ab"]
    done = experiment("fewl-samples", jsonl(tmp_path / "x.jsonl", both), *options, *TRUE)
    assert done.exit_code == 2
    assert "incorrect_answers: is missing" in done.stderr


ASKED = ["--model", "knows=python:scripted:half", "--model", "first=python:scripted:first"]


def test_questions_with_choices_are_asked_and_graded(
    tmp_path: Path, experiment: Experiment
) -> None:
    source = choice_questions(tmp_path)
    scripted(tmp_path)
    mumbling = ["--model", "python:scripted:mumbling"]
    done = experiment("five-choice", source, *ASKED, *mumbling, "--out", "out", "--json")
    assert done.exit_code == 0, done.stderr
    rows = rows_of(done.stdout)
    assert rows["chance"]["right"]["value"] == pytest.approx(20)
    assert rows["knows"]["right"]["count"] == 12
    assert rows["knows"]["letters"] == {"A": 12, "B": 12}
    assert rows["first"]["right"]["count"] == 24  # the first choice is right throughout
    assert rows["first"]["right (published)"]["count"] == 0  # no space before the letter
    assert rows["scripted:mumbling"]["unreadable"]["count"] == 24
    assert (tmp_path / "first.asked").read_text().count("x") == 24
    again = experiment("five-choice", source, *ASKED, *mumbling, "--out", "out", "--json")
    assert again.stdout == done.stdout
    assert (tmp_path / "first.asked").read_text().count("x") == 24


def test_shuffled_choices_show_who_takes_the_first(tmp_path: Path, experiment: Experiment) -> None:
    source, options = choice_questions(tmp_path), scripted(tmp_path)
    shuffled = [source, *ASKED, "--shuffle", "--json", "--out"]
    done = experiment("five-choice", *shuffled, "out")
    assert done.exit_code == 0, done.stderr
    rows = rows_of(done.stdout)
    assert rows["knows"]["right"]["count"] == 12
    assert 0 < rows["first"]["right"]["count"] < 12
    assert len(rows["knows"]["letters"]) == 5
    other = rows_of(experiment("five-choice", *shuffled, "other", "--seed", "1").stdout)
    assert other["knows"]["letters"] != rows["knows"]["letters"]
    same = rows_of(experiment("five-choice", *shuffled, "same").stdout)
    assert same["knows"]["letters"] == rows["knows"]["letters"]
    # What they chose can be ranked: each has the other as its reference.
    ranked = experiment("fewl-rank", "out/answers.jsonl", *options, "--json", "--out", "ranked")
    assert ranked.exit_code == 1, ranked.stderr  # "I don't know" is no reference
    assert "refused to answer" in ranked.stderr
    assert "knows" in rows_of(ranked.stdout)["true accuracy"]


def test_nobody_asked_and_questions_without_choices(tmp_path: Path, experiment: Experiment) -> None:
    done = experiment("five-choice", choice_questions(tmp_path))
    assert done.exit_code == 2
    assert "nobody answers; expected --model" in done.stderr
    plain = questions(tmp_path, 2)
    done = experiment("five-choice", plain, "--model", "python:scripted:half")
    assert done.exit_code == 2
    assert "choices: expected 2 to 26 texts" in done.stderr


def test_experts_are_told_apart_by_wrong_and_corrected_answers(
    tmp_path: Path, experiment: Experiment
) -> None:
    source, options = questions(tmp_path), scripted(tmp_path)
    arguments = ["fewl-experts", source, *options, *HALF, *TRUE, "--json", "--out", "out"]
    done = experiment(*arguments, "--generator", "python:scripted:pairs")
    assert done.exit_code == 0, done.stderr
    rows = rows_of(done.stdout)
    assert rows["true"]["told apart"] == {"mean": 1.0, "quartiles": [1.0, 1.0, 1.0]}
    assert rows["half"]["told apart"]["mean"] == 0.5
    assert rows["half"]["agrees with wrong"]["mean"] == 0.5
    assert rows["true"]["agrees with corrected"]["mean"] == 1.0
    # Expertise is 2/3 of who is right, else -2/3: of two weights the larger is 1 / (1 + e^(-4/3)).
    other = 1 / (1 + math.exp(4 / 3))
    assert rows["half"]["weight"]["mean"] == pytest.approx((0.5 + other) / 2, abs=1e-5)
    assert rows["true"]["heaviest"]["count"] == 24
    assert rows["half"]["heaviest"]["count"] == 12
    assert rows["half"]["rating"]["by"] == "nearer_to_right"
    assert rows["half"]["rating"]["mean"] == 0.5
    said = " ".join(done.stderr.split())
    assert "By expertise: true > half." in said
    assert "none can weigh more than 0.881" in said
    page = (tmp_path / "out" / "experiment.html").read_text()
    assert page.count("<svg") == 2 * 5
    lacking = experiment(*arguments[:2], *options, *TRUE, "--out", "lacking")
    assert lacking.exit_code == 2
    assert "wrong_answers: is missing (expected answers, or --generator)" in lacking.stderr


def test_ratings_of_the_input_stand_beside_expertise(
    tmp_path: Path, experiment: Experiment
) -> None:
    rows = [
        question(
            n,
            references={"<b>one": f"right {n}", "two": f"wrong {n}"},
            wrong_answers=[f"wrong {n}"],
            corrected_answers=[f"right {n}"],
            reference_ratings={"<b>one": 2 - n % 2, "two": 0},
        )
        for n in range(20)
    ]
    source = jsonl(tmp_path / "rated.jsonl", rows)
    done = experiment("fewl-experts", source, *scripted(tmp_path), "--json", "--out", "out")
    assert done.exit_code == 0, done.stderr
    found = rows_of(done.stdout)
    assert found["<b>one"]["rating"]["mean"] == 1.5
    assert found["two"]["rating"]["by"] == "rating"
    page = (tmp_path / "out" / "experiment.html").read_text()
    assert "&lt;b&gt;one" in page
    assert "<b>one" not in page
    assert "\\<b\\>one" in (tmp_path / "out" / "experiment.md").read_text()


def neighbouring(folder: Path) -> Path:
    """Questions 0 to 3 share an answer, and a wrong one is the right one of all others."""
    return jsonl(
        folder / "near.jsonl",
        [
            question(
                n,
                answers=[["Right 3!" if n < 4 else f"right {n}"]],
                incorrect_answers=[f"right {10 if n < 4 else 3}"],
            )
            for n in range(20)
        ],
    )


NEAR = ["--neighbours", "19", "--embedder", "python:quick:embedder", "--max-similarity", "1"]


def test_neighbours_answers_count_as_the_input_lists_them(
    tmp_path: Path, experiment: Experiment
) -> None:
    source = neighbouring(tmp_path)
    scripted(tmp_path)
    done = experiment("fewl-neighbours", source, *NEAR, "--json", "--out", "out")
    assert done.exit_code == 0, done.stderr
    rows = rows_of(done.stdout)
    # All 19 others are neighbours. Each of four has three others of its answer.
    assert rows["all"]["right, %"]["value"] == pytest.approx(100 * 12 / 380)
    # "right 10" is wrong of four questions, "right 3" of sixteen, which see it four times.
    assert rows["all"]["wrong, %"]["value"] == pytest.approx(100 * (4 + 64) / 380)
    assert rows["neighbour 19"]["n"] == 20
    cosines = [
        rows[f"neighbour {rank}"]["cosine of the questions"]["mean"] for rank in range(1, 20)
    ]
    assert cosines == sorted(cosines, reverse=True)
    assert "0: 16, 3: 4" in " ".join(done.stderr.split())
    page = (tmp_path / "out" / "experiment.html").read_text()
    assert "80% have none" in page
    assert page.count("<svg") == 2


def test_a_judge_says_which_neighbours_answers_are_right(
    tmp_path: Path, experiment: Experiment
) -> None:
    source = neighbouring(tmp_path)
    scripted(tmp_path)
    judged = ["--judge", "python:scripted:yes_to_three", "--json", "--out"]
    done = experiment("fewl-neighbours", source, *NEAR, *judged, "out")
    assert done.exit_code == 0, done.stderr
    asked = (tmp_path / "judge.asked").read_text()
    # The gold answer stands in the prompt, too: the judge says yes to all of four questions.
    found = rows_of(done.stdout)["all"]
    assert found["right, %"]["value"] == 0  # "Right 3!" has a capital letter
    assert found["wrong, %"]["value"] == 100
    again = experiment("fewl-neighbours", source, *NEAR, *judged, "out")
    assert again.stdout == done.stdout
    assert (tmp_path / "judge.asked").read_text() == asked
    said = experiment(
        "fewl-neighbours", source, *NEAR, *judged, "other", "--of", "references", *TRUE
    )
    assert said.exit_code == 0, said.stderr
    # The reference says "right 3" of question 3, which all others see.
    assert rows_of(said.stdout)["all"]["right, %"]["value"] == pytest.approx(100 * 19 / 380)
    wrong = experiment("fewl-neighbours", source, *NEAR, "--of", "everybody")
    assert wrong.exit_code == 2
    assert "of: expected best or references, got 'everybody'" in wrong.stderr


@pytest.mark.slow
def test_a_killed_experiment_goes_on_where_it_was(tmp_path: Path) -> None:
    source, options = questions(tmp_path, 40), scripted(tmp_path)
    arguments = ["experiment", "fewl-pairs", str(source), *options, "--json"]
    arguments += ["--reference", "slow=python:scripted:slow"]
    whole = run_command(*arguments, "--out", "whole", cwd=tmp_path)
    assert whole.returncode == 0, whole.stderr
    asked = tmp_path / "slow.asked"
    asked.unlink()
    killed_at_work(command(*arguments, "--out", "out"), asked, cwd=tmp_path)
    before = asked.read_text().count("x")
    assert before < 40
    again = run_command(*arguments, "--out", "out", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    assert again.stdout == whole.stdout
    assert asked.read_text().count("x") < before + 40  # what was stored is not asked again
