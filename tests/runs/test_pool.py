"""Samples at random access, found by place and by id."""

import json
from pathlib import Path

from tests.support import jsonl
from trustassay.core.sample import Sample
from trustassay.runs.prepare import StoredPool


def test_samples_are_found_by_place_and_by_id(tmp_path: Path) -> None:
    rows = [{"id": f"sample-{i}", "question": f"Question {i}, ümlaut?"} for i in range(300)]
    pool = StoredPool(jsonl(tmp_path / "samples.jsonl", rows))
    assert len(pool) == 300
    assert pool[0] == Sample("sample-0", "Question 0, ümlaut?")
    assert pool[299].id == "sample-299"
    assert [sample.id for sample in pool] == [row["id"] for row in rows]
    assert [pool.index(f"sample-{i}") for i in range(300)] == list(range(300))
    assert pool.index("no such sample") is None


def test_an_empty_pool(tmp_path: Path) -> None:
    path = tmp_path / "samples.jsonl"
    path.write_text("")
    pool = StoredPool(path)
    assert (len(pool), list(pool), pool.index("a")) == (0, [], None)


def test_ids_need_not_stand_first(tmp_path: Path) -> None:
    path = tmp_path / "samples.jsonl"
    path.write_text(json.dumps({"question": "Which?", "id": "last"}) + "\n")
    pool = StoredPool(path)
    assert pool.index("last") == 0
