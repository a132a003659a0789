"""``trustassay papers experiment`` through the command line: choices, experts, neighbours."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from tests.papers.material import (
    HALF,
    TRUE,
    Experiment,
    choice_questions,
    question,
    questions,
    rows_of,
    scripted,
)
from tests.support import jsonl

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
    assert ranked.exit_code == 0, ranked.stderr  # "I don't know" counts, as in the paper
    assert "refused to answer" not in ranked.stderr
    assert "knows" in rows_of(ranked.stdout)["true accuracy"]


def test_nobody_asked_and_questions_without_choices(tmp_path: Path, experiment: Experiment) -> None:
    done = experiment("five-choice", choice_questions(tmp_path))
    assert done.exit_code == 2
    assert "no model answers; give --model" in done.stderr
    plain = questions(tmp_path, 2)
    done = experiment("five-choice", plain, "--model", "python:scripted:half")
    assert done.exit_code == 2
    assert f"{plain.name}:1: choices: expected a list of 2 to 26 texts" in done.stderr


def test_files_of_outputs_have_names_of_their_own(tmp_path: Path, experiment: Experiment) -> None:
    source = choice_questions(tmp_path)
    for outputs, words in (
        (["one=first.txt", "one=second.txt"], "two files are called 'one'"),
        (["first.txt"], "--outputs first.txt: expected NAME=FILE"),
        (["one=first.txt"], "first.txt"),
    ):
        done = experiment("five-choice", source, *(f"--outputs={one}" for one in outputs))
        assert done.exit_code == 2
        assert words in done.stderr


def test_experts_are_told_apart_by_wrong_and_corrected_answers(
    tmp_path: Path, experiment: Experiment
) -> None:
    source, options = questions(tmp_path), scripted(tmp_path)
    arguments = ["fewl-experts", source, *options, *HALF, *TRUE, "--json", "--out", "out"]
    done = experiment(*arguments, "--backend", "generator=python:scripted:pairs")
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
    assert "Order by expertise: true > half." in said
    assert "no weight can exceed 0.881" in said
    page = (tmp_path / "out" / "experiment.html").read_text()
    assert page.count("<svg") == 2 * 5
    lacking = experiment(*arguments[:2], *options, *TRUE, "--out", "lacking")
    assert lacking.exit_code == 2
    assert (
        "wrong_answers: is missing (expected answers, or --backend generator=URI)" in lacking.stderr
    )


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


def test_equal_ratings_have_no_chart(tmp_path: Path, experiment: Experiment) -> None:
    titles = []
    for highest in (1, 2):
        rows = [
            question(
                n,
                references={"one": f"right {n}"},
                wrong_answers=[f"wrong {n}"],
                corrected_answers=[f"right {n}"],
                reference_ratings={"one": highest if n else 1},
            )
            for n in range(20)
        ]
        source = jsonl(tmp_path / f"{highest}.jsonl", rows)
        done = experiment("fewl-experts", source, *scripted(tmp_path), "--out", f"out{highest}")
        assert done.exit_code == 0, done.stderr
        page = (tmp_path / f"out{highest}" / "experiment.html").read_text()
        titles.append("Number of questions by rating." in page)
    assert titles == [False, True]


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
    assert "16 with 0, 4 with 3." in " ".join(done.stderr.split())
    page = (tmp_path / "out" / "experiment.html").read_text()
    assert "80 % have no right answer" in page
    assert page.count("<svg") == 2


def test_neighbours_may_be_the_same_question_to_the_embedder(
    tmp_path: Path, experiment: Experiment
) -> None:
    source = neighbouring(tmp_path)
    (tmp_path / "same.py").write_text(
        "import numpy as np\n\ndef embedder(texts):\n    return [np.arange(1.0, 27)] * len(texts)\n"
    )
    options = [*NEAR[:3], "python:same:embedder", *NEAR[4:]]
    done = experiment("fewl-neighbours", source, *options, "--json", "--out", "out")
    assert done.exit_code == 0, done.stderr
    assert rows_of(done.stdout)["all"]["cosine of the questions"]["mean"] == 1
    far = experiment("fewl-neighbours", source, *options[:4], "--max-similarity", "0.5")
    assert far.exit_code == 2
    assert "with an answer; reason for the first: no other question is similar enough" in " ".join(
        far.stderr.split()
    )


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
