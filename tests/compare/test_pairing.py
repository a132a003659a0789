"""Which answers belong together, by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.support import jsonl
from trustassay.compare.pairing import (
    RunPairing,
    SampleKeys,
    describe_differences,
    pair_samples,
    read_keys,
)
from trustassay.errors import RunFolderError
from trustassay.runs.folder import RunFolder
from trustassay.runs.lines import hash64

Row = tuple[str, str] | tuple[str, str, str]


def keys(*rows: Row) -> SampleKeys:
    """Return the keys of samples: id, question, and a model or none."""
    columns = [[hash64(row[i]) if len(row) > i and row[i] else 0 for row in rows] for i in range(3)]
    ids, questions, models = (np.array(column, dtype=np.uint64) for column in columns)
    nothing = np.zeros(len(ids), dtype=np.uint64)
    words = np.zeros(len(ids), dtype=np.int64)
    return SampleKeys(ids, questions, models, nothing, words, questions, questions)


def places(pairing: RunPairing) -> list[tuple[int, int]]:
    return list(zip(pairing.first.tolist(), pairing.second.tolist(), strict=True))


def test_id_and_question_pair_before_the_question_alone() -> None:
    first = keys(("1", "a"), ("2", "b"), ("3", "c"))
    second = keys(("9", "c"), ("2", "b"), ("1", "a"))
    pairing = pair_samples(first, second)
    assert places(pairing) == [(0, 2), (1, 1), (2, 0)]
    assert (pairing.by_id, pairing.by_question, pairing.question_count) == (2, 1, 3)


def test_an_id_with_another_question_pairs_nothing() -> None:
    pairing = pair_samples(keys(("1", "a"), ("2", "b")), keys(("1", "b"), ("2", "z")))
    assert places(pairing) == [(1, 0)]
    assert (pairing.by_id, pairing.by_question, pairing.other_question) == (0, 1, 2)
    assert (pairing.only_first, pairing.only_second) == (1, 1)
    assert pairing.in_words() == (
        "1 pair of answers (1 by question); unpaired: 1 in the first run and 1 in the "
        "second; 2 common ids with different questions"
    )


def test_doubled_questions_are_paired_by_model_then_in_order() -> None:
    first = keys(("1", "a", "x"), ("2", "a", "y"), ("3", "a", "z"), ("4", "b"))
    second = keys(("5", "a", "y"), ("6", "a"), ("7", "a", "x"), ("8", "a"), ("9", "b"))
    pairing = pair_samples(first, second)
    assert places(pairing) == [(0, 2), (1, 0), (2, 1), (3, 4)]
    assert pairing.repeated == 3
    assert pairing.questions.tolist()[:3] == [pairing.questions[0]] * 3  # one question
    assert pairing.question_count == 2
    assert (pairing.only_first, pairing.only_second) == (0, 1)


def test_samples_without_a_question_are_paired_by_id_alone() -> None:
    pairing = pair_samples(keys(("1", ""), ("2", "")), keys(("1", ""), ("3", "")))
    assert places(pairing) == [(0, 0)]
    assert pairing.question_count == 1


def test_nothing_in_common() -> None:
    pairing = pair_samples(keys(("1", "a")), keys(("2", "b")))
    assert (places(pairing), pairing.question_count) == ([], 0)
    assert pairing.in_words().startswith("0 pairs of answers; unpaired: 1 in the first")


def test_questions_differ_by_more_than_case_and_space(tmp_path: Path) -> None:
    rows = [{"id": "1", "question": " Who  was\nit? "}, {"id": "2", "question": "who was IT?"}]
    jsonl(tmp_path / "samples.jsonl", rows)
    sample_keys = read_keys(RunFolder(tmp_path), {})
    assert sample_keys.questions[0] == sample_keys.questions[1]
    assert sample_keys.models.tolist() == [0, 0]


def test_damaged_samples_are_named(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match=r"samples.jsonl: missing"):
        read_keys(RunFolder(tmp_path), {})
    jsonl(tmp_path / "samples.jsonl", [{"id": "1", "question": "a"}, {"id": "2"}])
    with pytest.raises(RunFolderError, match=r"samples.jsonl:2: damaged"):
        read_keys(RunFolder(tmp_path), {})


def test_passages_and_lengths_that_differ_are_named() -> None:
    first = keys(("1", "a"), ("2", "b"), ("3", "c"))
    other = np.array([0, 7, 7], dtype=np.uint64)
    second = first._replace(passages=other, words=np.array([3, 3, 3]))
    pairing = pair_samples(first, second)
    assert describe_differences(pairing, first, first) == []
    lines = describe_differences(pairing, first, second)
    assert lines[0].startswith("the passages differ in 2 of 3 questions")
    assert lines[1] == "median length of the answers: 0 → 3 words"
    assert (
        len(describe_differences(pairing, second, second._replace(words=np.array([5, 5, 5])))) == 0
    )


def test_a_conversation_is_one_unit_of_several_questions() -> None:
    first = keys(("1", "a"), ("2", "b"), ("3", "c"))
    first = first._replace(units=np.array([5, 5, 9], dtype=np.uint64))
    pairing = pair_samples(first, first)
    assert pairing.question_count == 3
    of_pairs = pairing.units_of_pairs.tolist()
    assert of_pairs[0] == of_pairs[1] != of_pairs[2]
    assert len(set(pairing.select(np.array([False, True, True])).units.tolist())) == 2
