"""Work on a file of samples, whose results are one file."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from trustassay.calls.backends import Backends
from trustassay.calls.client import CallOptions
from trustassay.calls.prices import BudgetReachedError
from trustassay.core.capabilities import Models
from trustassay.core.sample import Sample
from trustassay.errors import BackendError, CallError
from trustassay.papers.resumable import FileOptions, FileResult, FileWork, write_each

ROWS = [{"id": str(number), "question": f"What is {number}?"} for number in range(9)]
OPTIONS = FileOptions(samples_at_once=1, calls=CallOptions(cache=None))


def written(out: Path, failing: dict[str, Exception], asked: list[str] | None = None) -> FileResult:
    """Write a record of each row, of which some fail."""

    async def record_of(sample: Sample, _: Models) -> tuple[dict[str, Any], dict[str, int]]:
        await asyncio.sleep(0)
        if asked is not None:
            asked.append(sample.id)
        if sample.id in failing:
            raise failing[sample.id]
        return {"id": sample.id}, {"characters": len(sample.question)}

    work = FileWork("trying", lambda _: [], {}, lambda _: record_of)
    return asyncio.run(write_each(ROWS, out, Backends({}), OPTIONS, work))


@pytest.mark.parametrize(
    "error", [BudgetReachedError("3 USD are spent"), CallError("the key is not valid", "closed")]
)
def test_what_would_befall_all_that_follow_stops_the_work(tmp_path: Path, error: Exception) -> None:
    out = tmp_path / "out.jsonl"
    done = written(out, {"4": error})
    assert (done.written, done.stopped) == (4, str(error))
    assert not out.exists()
    asked: list[str] = []
    again = written(out, {}, asked)
    assert asked == ["4", "5", "6", "7", "8"]
    assert (again.written, again.resumed, again.stopped) == (9, 4, None)
    assert [json.loads(line)["id"] for line in out.read_text().splitlines()] == list("012345678")
    assert again.counts == {"characters": 9 * len("What is 0?")}


def test_a_sample_that_fails_has_no_record_and_is_tried_again(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    failing = {"2": BackendError("no reply"), "5": KeyError("x")}
    done = written(out, failing)
    assert done.failed == {"2": "no reply", "5": "KeyError: 'x' (tests/papers/test_each.py:32)"}
    assert done.written == 7
    assert out.exists()
    asked: list[str] = []
    assert written(out, {}, asked).failed == {}
    assert asked == ["2", "5"]
