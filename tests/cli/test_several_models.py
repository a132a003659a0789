"""``--model NAME=URI``, more than once, on the command line."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.support import jsonl, lines, summary_of

MODELS = """
def big(prompt):
    return "Paris."

def small(prompt):
    return f"word{sum(map(ord, prompt))}."
"""
TWO = ("--model", "big=python:answerers:big", "--model", "small=python:answerers:small")
METRIC = ("--metric", "harmonicity:perturbations=2")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "answerers.py").write_text(MODELS)
    for model in ("big", "small", "tiny"):
        rows = [
            {
                "id": f"{model}{i}",
                "question": f"Question {i}?",
                "response": "Paris.",
                "model": model,
            }
            for i in range(2)
        ]
        jsonl(tmp_path / f"{model}.jsonl", rows)
    return tmp_path


def test_files_of_several_models_are_scored_each_by_its_model(cli: Cli, place: Path) -> None:
    command = ("score", "big.jsonl", "small.jsonl", "tiny.jsonl", *METRIC, *TWO, "--out", "run")
    result = cli(*command)
    assert result.status == 0
    assert "2 answers of tiny left out: no --model tiny=URI was given" in result.err
    assert "\ncould not be scored" not in result.err
    groups = summary_of(place / "run")["groups"]["harmonicity"]["groups"]
    assert [group["model"] for group in groups] == ["big", "small"]
    assert groups[0]["score"]["mean"] == 0 < groups[1]["score"]["mean"]
    # The same command again asks nobody, and says the same.
    again = cli(*command)
    assert again.status == 0
    assert "2 answers of tiny left out" in again.err
    # By --backend, too.
    by_role = [option.replace("--model", "--backend") for option in TWO]
    by_role = [f"model={option}" if "=" in option else option for option in by_role]
    other = cli("score", "big.jsonl", "small.jsonl", *METRIC, *by_role, "--out", "other")
    assert other.status == 0


def test_a_plan_lists_the_calls_of_each_model_and_who_is_left_out(cli: Cli, place: Path) -> None:
    result = cli("plan", "big.jsonl", "small.jsonl", "tiny.jsonl", *METRIC, *TWO)
    assert result.status == 0
    assert "python:answerers:big" in result.err
    assert "python:answerers:small" in result.err
    assert "2 answers of tiny left out" in result.err
    assert not list(place.glob("trustassay-runs"))


def test_a_single_uri_for_answers_of_several_models_is_refused_with_what_to_give(
    cli: Cli, place: Path
) -> None:
    model = "python:answerers:small"
    result = cli("score", "big.jsonl", "tiny.jsonl", *METRIC, "--model", model, "--out", "run")
    assert result.status == 2
    assert "big (2), tiny (2)" in result.err
    assert "--model big=" in result.err
    assert not (place / "run" / "run.json").exists()


def test_generate_needs_a_model_and_says_by_name_what_is_left_out(cli: Cli, place: Path) -> None:
    rows = [{"id": m, "question": f"What is {m}?", "model": m} for m in ("big", "small", "tiny")]
    jsonl(place / "questions.jsonl", rows)
    missing = cli("generate", "questions.jsonl", "--out", "answers.jsonl")
    assert missing.status == 2
    assert "--model" in missing.err
    result = cli("generate", "questions.jsonl", *TWO, "--out", "answers.jsonl")
    assert result.status == 0
    assert "1 answer of tiny left out: no --model tiny=URI was given" in result.err
    assert "failed:" not in result.err
    written = {row["id"]: (row["model"], row["response"]) for row in lines(place / "answers.jsonl")}
    assert written["big"] == ("big", "Paris.")
    assert written["small"][0] == "small"
    assert written["small"][1].startswith("word")
    assert json.loads((place / "questions.jsonl").read_text().splitlines()[0])["id"] == "big"
