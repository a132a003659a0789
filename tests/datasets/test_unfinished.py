from __future__ import annotations

import json
from pathlib import Path

import pytest

from trustassay.datasets.unfinished import UnfinishedError, UnfinishedFile

SETTINGS = {"k": 5}


def test_it_becomes_a_file_in_the_end_alone(tmp_path: Path) -> None:
    out = tmp_path / "deep" / "out.jsonl"
    with UnfinishedFile(out, SETTINGS) as file:
        file.add({"id": "é", "yes": True})
        file.fail("b", "broken")
        file.add({"id": "c", "yes": False})
        assert not out.exists()
        assert file.finish("yes") == (2, 1)
    assert [json.loads(line)["id"] for line in out.read_text().splitlines()] == ["é", "c"]
    assert list(out.parent.iterdir()) == [out]


@pytest.mark.parametrize("torn", ["", '{"record": {"id"', "\xff"])
def test_it_goes_on_after_the_last_whole_line(tmp_path: Path, torn: str) -> None:
    out = tmp_path / "out.jsonl"
    with UnfinishedFile(out, SETTINGS) as file:
        file.add({"id": "a"})
        file.fail("b", "broken")
    with file.path.open("a", encoding="latin-1") as part:
        part.write(torn)
    with UnfinishedFile(out, SETTINGS) as file:
        assert (file.done, file.failed) == (2, {"b": "broken"})
        file.add({"id": "c"})
        assert file.finish("yes") == (2, 0)
    assert out.read_text() == '{"id": "a"}\n{"id": "c"}\n'


@pytest.mark.parametrize("torn", ["", '{"settings"'])
def test_a_file_torn_in_its_first_line_starts_anew(tmp_path: Path, torn: str) -> None:
    (tmp_path / ".out.jsonl.part").write_text(torn)
    with UnfinishedFile(tmp_path / "out.jsonl", SETTINGS) as file:
        assert file.done == 0
        file.add({"id": "a"})
        file.finish("yes")
    assert (tmp_path / "out.jsonl").read_text() == '{"id": "a"}\n'


def test_other_settings_are_refused_and_nothing_is_lost(tmp_path: Path) -> None:
    with UnfinishedFile(tmp_path / "out.jsonl", SETTINGS) as file:
        file.add({"id": "a"})
    before = file.path.read_bytes()
    with pytest.raises(UnfinishedError, match="unfinished work with another input"):
        UnfinishedFile(tmp_path / "out.jsonl", {"k": 6})
    assert file.path.read_bytes() == before
