"""The distractors of every answer of a file: ``trustassay.papers.distractors``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.papers.test_distractor_sets import NAMES, RECORDS, Listed
from tests.support import jsonl
from trustassay.calls.backends import Backends
from trustassay.metrics.consistency.distractors import find_distractors
from trustassay.papers.distractors import DistractorOptions, find_in_file, load_backends
from trustassay.runs.intake import BadInputError


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def write(tmp_path: Path, source: Listed, **options: Any) -> Any:
    return find_in_file(
        jsonl(tmp_path / "in.jsonl", RECORDS),
        tmp_path / "out.jsonl",
        Backends.of(substitutes={"mine": source}),
        DistractorOptions(sources=("mine",), **options),
    )


def test_the_file_holds_every_answer_in_order(tmp_path: Path) -> None:
    done = write(tmp_path, Listed(), most=5)
    rows = read(tmp_path / "out.jsonl")
    assert [row["id"] for row in rows] == ["a", "b", "c", "d"]
    assert [one["text"] for one in rows[0]["distractors"]] == [
        f"{name} wrote it." for name in NAMES if name != "Carla"
    ]
    assert rows[0]["distractors"][0] == {
        "text": "Anna wrote it.",
        "source": "mine",
        "level": 1,
        "replaced": "Jane",
        "replacement": "Anna",
    }
    assert rows[1]["model"] == "m" and {d["source"] for d in rows[1]["distractors"]} == {"date"}
    assert rows[3]["distractors"] == []
    assert (done.written, done.counts) == (4, {"assessable": 3, "distractors": 3 + 5 + 4})


def test_answers_to_other_questions_of_the_file(tmp_path: Path) -> None:
    write(tmp_path, Listed(), most=5, pool=True)
    first = read(tmp_path / "out.jsonl")[0]["distractors"]
    assert (first[0]["source"], first[0]["replacement"]) == ("mine", "Anna")
    assert ("pool", "Zoe") in {(one["source"], one["replacement"]) for one in first}


def test_what_failed_is_left_out_and_tried_again(tmp_path: Path) -> None:
    done = write(tmp_path, Listed("Zoe"))
    assert done.failed == {"c": "listed is out of order"}
    assert [row["id"] for row in read(tmp_path / "out.jsonl")] == ["a", "b", "d"]
    mended = Listed()
    again = write(tmp_path, mended)
    assert (again.resumed, again.written, again.failed) == (3, 4, {})
    assert mended.asked == ["Zoe"]
    assert [row["id"] for row in read(tmp_path / "out.jsonl")] == ["a", "b", "c", "d"]


def test_any_exception_is_the_failure_of_one_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def faulty(question: str, *others: Any, **options: Any) -> Any:
        if question == "who sang it":
            raise ValueError("out of bounds")
        return await find_distractors(question, *others, **options)

    monkeypatch.setattr("trustassay.papers.distractors.find_distractors", faulty)
    done = write(tmp_path, Listed())
    assert list(done.failed) == ["c"]
    assert done.failed["c"].startswith("ValueError: out of bounds (")
    assert [row["id"] for row in read(tmp_path / "out.jsonl")] == ["a", "b", "d"]


def test_an_answer_is_needed(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "in.jsonl", [{"id": "a", "question": "who"}])
    with pytest.raises(BadInputError):
        find_in_file(path, tmp_path / "out.jsonl", Backends.of(substitutes={"m": Listed()}))
    assert not (tmp_path / "out.jsonl").exists()


def test_equal_requests_are_asked_once_for_all_answers(tmp_path: Path) -> None:
    source = Listed()
    same = [RECORDS[0] | {"id": str(i)} for i in range(20)]
    path = jsonl(tmp_path / "in.jsonl", same)
    backends = Backends.of(substitutes={"mine": source})
    find_in_file(path, tmp_path / "o.jsonl", backends, DistractorOptions(sources=("mine",)))
    assert len(source.asked) == len(set(source.asked))


def test_what_is_named_is_loaded() -> None:
    backends, names = load_backends(["mine=python:tests.papers.test_distractor_sets:LISTED", "llm"])
    assert names == ("mine", "llm")
    assert backends.names_of_role("distractors") == ("mine",)
    assert backends.names() == {"distractors": {"mine": "listed/1"}}


def test_a_generator_is_a_source_and_is_counted(tmp_path: Path) -> None:
    def write(prompt: str) -> str:
        return "1. Emily\n2. 1990" if "Jane" in prompt else "no"

    mine = "mine=python:tests.papers.test_distractor_sets:LISTED"
    backends, names = load_backends(mine, generator=write)
    assert names == ("llm", "mine")
    assert backends.names_of_role("entailer") == ("",)
    options = DistractorOptions(sources=names)
    source = jsonl(tmp_path / "in.jsonl", RECORDS[:1])
    done = find_in_file(source, tmp_path / "out.jsonl", backends, options)
    assert done.counts == {"assessable": 1, "distractors": 4, "llm": 1, "mine": 3}
    (row,) = read(tmp_path / "out.jsonl")
    assert [one["source"] for one in row["distractors"]] == ["llm", "mine", "mine", "mine"]
