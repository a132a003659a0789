"""Results that become a file: killed, resumed, tried again, and never mixed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from trustassay.papers.resumable import UnfinishedFile
from trustassay.runs.generate import UnfinishedError

SETTINGS = {"k": 5}


def ids(path: Path) -> list[str]:
    return [json.loads(line)["id"] for line in path.read_text("utf-8").splitlines()]


def test_it_becomes_a_file_in_the_end_alone(tmp_path: Path) -> None:
    out = tmp_path / "deep" / "out.jsonl"
    with UnfinishedFile(out, SETTINGS) as file:
        file.add(0, {"id": "é"}, yes=1)
        file.add(1, {"id": "b"}, yes=0)
        file.add(2, {"id": "c"}, yes=2)
        assert not out.exists()
        file.finish()
        assert (file.written, file.counts["yes"]) == (3, 3)
    assert ids(out) == ["é", "b", "c"]
    assert list(out.parent.iterdir()) == [out]


@pytest.mark.parametrize("torn", ["", '{"place": 2, "record": {"id"', "\xff"])
def test_it_goes_on_after_the_last_whole_line(tmp_path: Path, torn: str) -> None:
    out = tmp_path / "out.jsonl"
    with UnfinishedFile(out, SETTINGS) as file:
        file.add(0, {"id": "a"}, yes=1)
        file.add(1, {"id": "b"}, yes=1)
    with file.path.open("a", encoding="latin-1") as part:
        part.write(torn)
    with UnfinishedFile(out, SETTINGS) as file:
        assert (file.done, file.counts["yes"]) == (2, 2)
        assert list(file.unfinished_items("abc")) == [(2, "c")]
        file.add(2, {"id": "c"})
        file.finish()
    assert ids(out) == ["a", "b", "c"]


def test_what_failed_is_tried_again_and_takes_its_place(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    with UnfinishedFile(out, SETTINGS) as file:
        file.fail(0, "a", "broken")
        file.add(1, {"id": "b"})
        file.fail(2, "c", "broken")
        file.finish()
        assert list(file.failed.values()) == [("a", "broken"), ("c", "broken")]
    assert ids(out) == ["b"]
    with UnfinishedFile(out, SETTINGS) as file:
        assert list(file.unfinished_items("abcd")) == [(0, "a"), (2, "c"), (3, "d")]
        file.fail(0, "a", "still broken")
        file.add(2, {"id": "c"})
        file.add(3, {"id": "d"})
        file.finish()
        assert dict(file.failed) == {0: ("a", "still broken")}
    assert ids(out) == ["b", "c", "d"]
    with UnfinishedFile(out, SETTINGS) as file:
        assert list(file.unfinished_items("abcd")) == [(0, "a")]
        file.add(0, {"id": "a"})
        file.finish()
    assert ids(out) == ["a", "b", "c", "d"]
    assert list(tmp_path.iterdir()) == [out]


def test_items_are_noted_in_order_and_once(tmp_path: Path) -> None:
    with UnfinishedFile(tmp_path / "out.jsonl", SETTINGS) as file:
        file.add(0, {})
        for place in (0, 2):
            with pytest.raises(ValueError, match="neither the next one nor one that failed"):
                file.add(place, {})


@pytest.mark.parametrize("torn", ["", '{"settings"'])
def test_a_file_torn_in_its_first_line_starts_anew(tmp_path: Path, torn: str) -> None:
    (tmp_path / ".out.jsonl.part").write_text(torn)
    with UnfinishedFile(tmp_path / "out.jsonl", SETTINGS) as file:
        assert file.done == 0
        file.add(0, {"id": "a"})
        file.finish()
    assert ids(tmp_path / "out.jsonl") == ["a"]


def test_other_settings_are_refused_while_work_is_unfinished(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    with UnfinishedFile(out, SETTINGS) as file:
        file.add(0, {"id": "a"})
        file.fail(1, "b", "broken")
    before = file.path.read_bytes()
    with pytest.raises(UnfinishedError, match="unfinished work with another input"):
        UnfinishedFile(out, {"k": 6})
    assert file.path.read_bytes() == before
    with UnfinishedFile(out, SETTINGS) as file:
        file.finish()
    with UnfinishedFile(out, {"k": 6}) as file:  # that work is finished, but for what failed
        assert file.done == 0
        file.add(0, {"id": "new"})
        file.finish()
    assert ids(out) == ["new"]


def test_two_processes_do_not_mix(tmp_path: Path) -> None:
    with (
        UnfinishedFile(tmp_path / "out.jsonl", SETTINGS),
        pytest.raises(UnfinishedError, match="another process is writing"),
    ):
        UnfinishedFile(tmp_path / "out.jsonl", SETTINGS)
    with UnfinishedFile(tmp_path / "out.jsonl", SETTINGS) as file:
        file.add(0, {"id": "a"})
