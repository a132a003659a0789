"""``trustassay papers experiment`` through the command line: FEWL's variants."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.papers.material import (
    HALF,
    TRUE,
    Experiment,
    question,
    questions,
    rows_of,
    scripted,
)
from tests.support import command, jsonl, killed_at_work, run_command


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
    arguments += ["--backend", "generator=python:scripted:pairs", "--json"]
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
    assert "weights `ours` and `single-best` are not computed" in " ".join(done.stderr.split())


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


def test_faulty_records_are_skipped_and_counted(tmp_path: Path, experiment: Experiment) -> None:
    rows = [question(0), {"question": ""}, {"question": "q", "response": "r"}, question(1)]
    source, options = jsonl(tmp_path / "input.jsonl", rows), scripted(tmp_path)
    done = experiment("fewl-pairs", source, *options, *TRUE, "--skip-bad", "--json", "--out", "out")
    assert done.exit_code == 0, done.stderr
    assert rows_of(done.stdout)["single, no penalty, tv"]["right > wrong"]["n"] == 2
    assert "2 faulty records skipped." in json.loads(done.stdout)["notes"]


def test_faults_are_told_by_line_and_field(tmp_path: Path, experiment: Experiment) -> None:
    lacking = jsonl(tmp_path / "lacking.jsonl", [question(0), {"question": "q"}])
    one, other = ({"response": "r", "model": name} for name in "mn")
    alone = jsonl(tmp_path / "alone.jsonl", [question(0) | one, {"question": "q"} | other])
    silent = jsonl(tmp_path / "silent.jsonl", [question(0), question(1, references={})])
    options = scripted(tmp_path)
    for name, source, words in (
        ("fewl-pairs", lacking, "lacking.jsonl:2: answers: is missing"),
        ("fewl-pairs", silent, "silent.jsonl:1 and 3 more: references: is missing"),
        ("fewl-rank", lacking, "lacking.jsonl:1: model: is missing"),
        ("fewl-samples", alone, "alone.jsonl:2: answers: is missing"),
        ("fewl-experts", silent, "silent.jsonl:1: wrong_answers: is missing"),
        ("fewl-neighbours", lacking, "lacking.jsonl:2: answers: is missing"),
    ):
        own = options[2:] if name == "fewl-neighbours" else options
        done = experiment(name, source, *own, "--out", name)
        assert done.exit_code == 2
        assert words in done.stderr, (name, done.stderr)


def test_another_experiment_keeps_out_of_the_folder(tmp_path: Path, experiment: Experiment) -> None:
    source, options = questions(tmp_path, 3), scripted(tmp_path)
    done = experiment("fewl-pairs", source, *options, *TRUE, "--out", "out")
    assert done.exit_code == 0, done.stderr
    table = (tmp_path / "out" / "experiment.json").read_bytes()
    done = experiment("fewl-best", source, *options, *TRUE, "--out", "out")
    assert done.exit_code == 2
    assert "out: holds the experiment fewl-pairs, not fewl-best" in done.stderr
    assert (tmp_path / "out" / "experiment.json").read_bytes() == table


def test_answers_without_references_are_refused_or_left_out(
    tmp_path: Path, experiment: Experiment
) -> None:
    rows = [question(n, references={"one": f"right {n}"} if n else {}) for n in range(4)]
    source, options = jsonl(tmp_path / "input.jsonl", rows), scripted(tmp_path)
    done = experiment("fewl-pairs", source, *options, "--out", "refused")
    assert done.exit_code == 2
    assert "references: is missing" in done.stderr
    done = experiment("fewl-pairs", source, *options, "--skip-bad", "--json", "--out", "out")
    assert done.exit_code == 0, done.stderr
    assert set(json.loads(done.stdout)["left_out"]) == {"q0-1", "q0-2"}
    assert rows_of(done.stdout)["single, no penalty, tv"]["right > wrong"]["n"] == 3
    near = ["--neighbours", "2", "--of", "references", "--skip-bad", "--json", "--out", "near"]
    done = experiment("fewl-neighbours", source, *options[2:], *near)
    assert set(json.loads(done.stdout)["left_out"]) == {"q0"}


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
    assert done.exit_code == 0, done.stderr
    found = json.loads(done.stdout)
    assert set(found["left_out"]) == {"q3-1", "q3-2"}
    assert rows_of(done.stdout)["single, no penalty, tv"]["right > wrong"]["n"] == 5
    assert "2 answers are left out" in done.stderr
    done = experiment(
         "fewl-pairs", source, *options, "--out", "none",
        "--reference", "python:scripted:broken",
    )  # fmt: skip
    assert done.exit_code == 2
    assert "no answer could be scored; reason for the first: " in done.stderr


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
    assert "unknown experiment 'fewl-pears'" in refused("fewl-pears", plain)
    assert "references: is missing" in refused("fewl-pairs", plain)
    without = [{k: v for k, v in row.items() if k != "incorrect_answers"} for row in plain]
    assert "incorrect_answers: is missing" in refused("fewl-pairs", without, *TRUE)
    answered = [{"question": "q", "response": "r"}]
    assert "label: is missing" in refused("fewl-best", answered, *TRUE)
    unclear = [{**answered[0], "label": "unclear"}]
    assert "label: is 'unclear' (expected a number" in refused("fewl-best", unclear, *TRUE)
    mixed = [*plain, {"question": "q", "response": "r"}]
    assert "label: is missing" in refused("fewl-pairs", mixed, *TRUE)
    right = [{"question": "q", "response": "r", "label": 1}]
    message = " ".join(refused("fewl-pairs", right, *TRUE).split())
    assert "right and a wrong answer: 1 with only right answers, 0 with only wrong ones" in message
    assert "one record each with `response` and `label`" in message
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


@pytest.mark.slow
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
    assert "interval" not in single["Kendall's tau"]  # one order of three models
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


def test_a_model_without_any_score_is_named(tmp_path: Path, experiment: Experiment) -> None:
    source, options = models_answers(tmp_path), scripted(tmp_path)
    reference = ["--reference", "poor=python:scripted:true"]  # no model is its own reference
    done = experiment("fewl-rank", source, *options, *reference, "--json", "--out", "out")
    assert done.exit_code == 0, done.stderr
    assert rows_of(done.stdout)["single, no penalty, tv"]["order"]["order"] == ["good", "fair"]
    assert "Models without a scored answer: poor." in done.stderr


def test_rankings_say_what_they_lack(tmp_path: Path, experiment: Experiment) -> None:
    options = scripted(tmp_path)
    alone = jsonl(tmp_path / "one.jsonl", [question(1, response="r", model="m")])
    done = experiment("fewl-rank", alone, *options, *TRUE)
    assert done.exit_code == 2
    words = " ".join(done.stderr.split())
    assert "answers by two or more models (field `model`); found m" in words
    nobody = jsonl(tmp_path / "none.jsonl", [question(1, response="r")])
    assert "model: is missing" in experiment("fewl-rank", nobody, *options, *TRUE).stderr
    both = [{"question": "q", "response": "r", "model": model} for model in "ab"]
    done = experiment("fewl-samples", jsonl(tmp_path / "x.jsonl", both), *options, *TRUE)
    assert done.exit_code == 2
    assert "incorrect_answers: is missing" in done.stderr


@pytest.mark.slow
def test_a_killed_experiment_goes_on_where_it_was(tmp_path: Path) -> None:
    source, options = questions(tmp_path, 40), scripted(tmp_path)
    arguments = ["papers", "experiment", "fewl-pairs", str(source), *options, "--json"]
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


def test_one_model_asked_for_several_answers_is_several_references(
    tmp_path: Path, experiment: Experiment
) -> None:
    source, options = questions(tmp_path, 4), scripted(tmp_path)
    arguments = ["fewl-pairs", source, *options, "--reference", "one=python:scripted:several"]
    done = experiment(*arguments, "--answers", "3", "--json", "--out", "out")
    assert done.exit_code == 0, done.stderr
    rows = rows_of(done.stdout)
    assert rows["single, no penalty, tv"]["right > wrong"]["value"] == 100  # the first is right
    assert rows["uniform, no penalty, eq1, tv"]["right > wrong"]["value"] == 0  # the others not
    assert "References: one, one 2, one 3." in done.stderr
