"""What waits is read back after a kill, and its file does not grow without end."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from trustassay.errors import RunFolderError
from trustassay.live.waiting import MIN_STALE_BYTES, WaitingJournal, encode_line


def add(journal: WaitingJournal, key: str, *items: object) -> None:
    journal.add([(key, encode_line(key, item)) for item in items])


def test_a_killed_process_leaves_what_waits_and_no_half_line(tmp_path: Path) -> None:
    path = tmp_path / "waiting.jsonl"
    journal = WaitingJournal(path)
    add(journal, "a", 1, {"text": "zwei\n\ud800"})
    add(journal, "b", 3)
    add(journal, "a", 4)
    journal.drop("b")
    journal.drop("never added")
    with path.open("ab") as file:  # the process is killed within a write
        file.write(b'["c",')
    again = WaitingJournal(path)
    assert again.read() == {"a": [1, {"text": "zwei\n\ud800"}, 4]}
    add(again, "b", 5)
    assert WaitingJournal(path).read() == {"a": [1, {"text": "zwei\n\ud800"}, 4], "b": [5]}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_its_file_is_written_anew_when_it_has_grown(tmp_path: Path) -> None:
    path = tmp_path / "waiting.jsonl"
    journal = WaitingJournal(path)
    add(journal, "waits", "text")
    for number in range(100):
        add(journal, str(number), "x" * (MIN_STALE_BYTES // 20))
        journal.drop(str(number))
        assert path.stat().st_size < 1.1 * MIN_STALE_BYTES
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    add(journal, "last", 1)
    assert WaitingJournal(path).read() == {"waits": ["text"], "last": [1]}


def test_a_file_in_which_nothing_waits_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "waiting.jsonl"
    journal = WaitingJournal(path)
    add(journal, "a", 1)
    journal.drop("a")
    journal.close()
    assert not path.exists()


@pytest.mark.parametrize("line", ["no json", "7", "[]", "[7]", '["key",1,2]', '{"key":1}'])
def test_a_damaged_line_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "waiting.jsonl"
    path.write_text(f'["a",1]\n{line}\n')
    with pytest.raises(RunFolderError, match=r"waiting\.jsonl:2: is damaged .*; remove this line"):
        WaitingJournal(path)
