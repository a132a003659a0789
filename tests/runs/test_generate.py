"""Answers to a file of questions, through the Python door."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support import jsonl
from tests.support import lines as read_lines
from trustassay.calls.client import CallOptions
from trustassay.runs.generate import GenerateOptions, GenerateResult, UnfinishedError, generate

NO_CACHE = CallOptions(cache=None)


def shouted(prompt: str) -> str:
    question = prompt.rstrip().rsplit("Question: ", 1)[-1].split("\n")[0]
    if "bad" in question:
        raise ValueError("no such thing")
    return question.upper()


def questions(path: Path, *texts: str) -> Path:
    return jsonl(path, [{"id": text, "question": f"{text}?"} for text in texts])


def test_what_was_answered_is_written_and_what_was_not_is_told(tmp_path: Path) -> None:
    source, out = questions(tmp_path / "q.jsonl", "a", "bad", "c"), tmp_path / "new" / "a.jsonl"
    done = generate(source, shouted, out, GenerateOptions(calls=NO_CACHE))
    assert (done.written, list(done.failed)) == (2, ["bad"])
    assert "no such thing" in done.failed["bad"]
    assert [(one["id"], one["response"]) for one in read_lines(out)] == [("a", "A?"), ("c", "C?")]
    assert [path.name for path in out.parent.iterdir()] == ["a.jsonl"]


def test_half_a_character_in_another_field_loses_no_answer(tmp_path: Path) -> None:
    row = {"id": "a", "question": "a?", "mark": ["good\ud800"]}
    (tmp_path / "q.jsonl").write_text(json.dumps(row))
    generate(tmp_path / "q.jsonl", shouted, tmp_path / "a.jsonl", GenerateOptions(calls=NO_CACHE))
    assert [one["mark"] for one in read_lines(tmp_path / "a.jsonl")] == [["good\ufffd"]]


def test_where_nothing_was_answered_an_older_file_stays(tmp_path: Path) -> None:
    source, out = questions(tmp_path / "q.jsonl", "bad"), tmp_path / "a.jsonl"
    out.write_text("mine\n")
    assert generate(source, shouted, out, GenerateOptions(calls=NO_CACHE)).written == 0
    assert out.read_text() == "mine\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.jsonl", "q.jsonl"]


def test_repeats_have_ids_of_their_own_and_answers_are_kept_unless_again(tmp_path: Path) -> None:
    source = jsonl(
        tmp_path / "q.jsonl",
        [{"id": "a", "question": "a?"}, {"id": "b", "question": "b?", "response": "mine"}],
    )
    out = tmp_path / "a.jsonl"
    generate(source, shouted, out, GenerateOptions(calls=NO_CACHE, repeats=2))
    answers = [(one["id"], one["response"]) for one in read_lines(out)]
    assert answers == [("a#1", "A?"), ("a#2", "A?"), ("b#1", "mine")]
    generate(source, shouted, out, GenerateOptions(calls=NO_CACHE, again=True))
    assert [one["response"] for one in read_lines(out)] == ["A?", "B?"]


def test_a_folder_in_the_files_place_is_refused_before_anything_is_asked(tmp_path: Path) -> None:
    asked: list[str] = []
    with pytest.raises(IsADirectoryError, match="expected a file to write"):
        generate(questions(tmp_path / "q.jsonl", "a"), asked.append, tmp_path)
    assert asked == []


def test_a_functions_answers_make_no_cache(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    source = questions(tmp_path / "q.jsonl", "a")
    generate(source, shouted, tmp_path / "a.jsonl", GenerateOptions(calls=CallOptions(cache=cache)))
    assert not cache.exists()


def test_two_that_write_one_file_do_not_mix(tmp_path: Path) -> None:
    """The second is refused while the first is at work, and the first is not disturbed."""
    source, out = questions(tmp_path / "q.jsonl", "a", "b"), tmp_path / "a.jsonl"
    refused: list[str] = []

    def meanwhile(prompt: str) -> str:
        if not refused:
            refused.append("")
            try:
                generate(source, lambda _: "other", out, GenerateOptions(calls=NO_CACHE))
            except UnfinishedError as error:
                refused.append(str(error))
        return shouted(prompt)

    done: GenerateResult = generate(source, meanwhile, out, GenerateOptions(calls=NO_CACHE))
    assert "another process is writing" in refused[1]
    assert done.written == 2
    assert [one["response"] for one in read_lines(out)] == ["A?", "B?"]
    assert not list(tmp_path.glob(".*"))
