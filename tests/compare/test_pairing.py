"""Which answers belong together, by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.support import jsonl
from trustassay.compare.pairing import Pairing, SampleKeys, pair, read_keys
from trustassay.errors import RunFolderError
from trustassay.runs.folder import RunFolder
from trustassay.runs.lines import hash64

Row = tuple[str, str] | tuple[str, str, str]


def keys(*rows: Row) -> SampleKeys:
    """Return the keys of samples: id, question, and a model or none."""
    columns = [[hash64(row[i]) if len(row) > i and row[i] else 0 for row in rows] for i in range(3)]
    return SampleKeys(*(np.array(column, dtype=np.uint64) for column in columns))


def places(found: Pairing) -> list[tuple[int, int]]:
    return list(zip(found.first.tolist(), found.second.tolist(), strict=True))


def test_id_and_question_pair_before_the_question_alone() -> None:
    first = keys(("1", "a"), ("2", "b"), ("3", "c"))
    second = keys(("9", "c"), ("2", "b"), ("1", "a"))
    found = pair(first, second)
    assert places(found) == [(0, 2), (1, 1), (2, 0)]
    assert (found.by_id, found.by_question, found.questions) == (2, 1, 3)


def test_an_id_with_another_question_pairs_nothing() -> None:
    found = pair(keys(("1", "a"), ("2", "b")), keys(("1", "b"), ("2", "z")))
    assert places(found) == [(1, 0)]
    assert (found.by_id, found.by_question, found.other_question) == (0, 1, 2)
    assert (found.only_first, found.only_second) == (1, 1)
    assert found.in_words() == (
        "1 pair of answers (1 by question); without a partner: 1 of the first run and 1 of the "
        "second; 2 ids with different questions"
    )


def test_doubled_questions_are_paired_by_model_then_in_order() -> None:
    first = keys(("1", "a", "x"), ("2", "a", "y"), ("3", "a", "z"), ("4", "b"))
    second = keys(("5", "a", "y"), ("6", "a"), ("7", "a", "x"), ("8", "a"), ("9", "b"))
    found = pair(first, second)
    assert places(found) == [(0, 2), (1, 0), (2, 1), (3, 4)]
    assert found.repeated == 3
    assert found.units.tolist()[:3] == [found.units[0]] * 3  # one question, drawn as a whole
    assert found.questions == 2
    assert (found.only_first, found.only_second) == (0, 1)


def test_samples_without_a_question_are_paired_by_id_alone() -> None:
    found = pair(keys(("1", ""), ("2", "")), keys(("1", ""), ("3", "")))
    assert places(found) == [(0, 0)]
    assert found.questions == 1


def test_nothing_in_common() -> None:
    found = pair(keys(("1", "a")), keys(("2", "b")))
    assert (places(found), found.questions) == ([], 0)
    assert found.in_words().startswith("0 pairs of answers; without a partner")


def test_questions_differ_by_more_than_case_and_space(tmp_path: Path) -> None:
    rows = [{"id": "1", "question": " Who  was\nit? "}, {"id": "2", "question": "who was IT?"}]
    jsonl(tmp_path / "samples.jsonl", rows)
    found = read_keys(RunFolder(tmp_path))
    assert found.questions[0] == found.questions[1]
    assert found.models.tolist() == [0, 0]


def test_damaged_samples_are_named(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match=r"samples.jsonl: is missing"):
        read_keys(RunFolder(tmp_path))
    jsonl(tmp_path / "samples.jsonl", [{"id": "1", "question": "a"}, {"id": "2"}])
    with pytest.raises(RunFolderError, match=r"samples.jsonl:2: damaged"):
        read_keys(RunFolder(tmp_path))
