"""The store of model calls: what went in comes out, whatever it is, and damage is named."""

import os
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import command
from trustassay.calls.keys import Keys
from trustassay.calls.store import (
    Calls,
    CallStore,
    CallStoreError,
    StoredCall,
    Usage,
    build_read_only_uri,
    copy_calls,
    default_cache,
    open_cache,
)


def call(i: int, reply: str = "[1.0, 0.0, 0.0]") -> StoredCall:
    key = Keys("entailment", "b").of([str(i)])
    return StoredCall(key, "entailment", "b", f'["{i}"]', reply, 0.5)


def test_calls_are_found_by_key_after_reopening(tmp_path: Path) -> None:
    path = tmp_path / "calls.sqlite"
    store = CallStore(path)
    store.add(call(i, f"[{i}]") for i in range(1200))
    store.close()
    assert [p.name for p in tmp_path.iterdir()] == ["calls.sqlite"]
    store = CallStore(path)
    found = store.find([call(i).key for i in range(1500)])
    assert found == {call(i).key: f"[{i}]" for i in range(1200)}
    assert store.find([]) == {}
    assert store.counts() == {("entailment", "b"): 1200}
    store.close()


def test_the_first_reply_stays(tmp_path: Path) -> None:
    store = CallStore(tmp_path / "calls.sqlite")
    store.add([call(1, "[1]")])
    store.add([call(1, "[2]"), call(2, "[2]")])
    assert sorted(store.find([call(1).key, call(2).key]).values()) == ["[1]", "[2]"]
    store.close()


def test_any_tool_can_read_the_table(tmp_path: Path) -> None:
    store = CallStore(tmp_path / "calls.sqlite")
    store.add([call(1)])
    store.close()
    with sqlite3.connect(tmp_path / "calls.sqlite") as connection:
        rows = connection.execute("SELECT capability, backend, request, reply, seconds FROM calls")
        assert rows.fetchall() == [("entailment", "b", '["1"]', "[1.0, 0.0, 0.0]", 0.5)]
    connection.close()


texts = st.lists(st.text(alphabet=st.characters(), max_size=5), max_size=3)


@given(texts, texts)
def test_equal_keys_mean_equal_parts(one: list[str], other: list[str]) -> None:
    same = Keys("c", "b").of(one) == Keys("c", "b").of(other)
    assert same == (one == other)
    assert Keys("c", "b").of(one) != Keys("cb", "").of(one)


def test_a_file_that_is_no_store_is_named(tmp_path: Path) -> None:
    path = tmp_path / "calls.sqlite"
    path.write_bytes(b"not a database, but long enough to be one " * 9)
    with pytest.raises(OSError, match="not a store of model calls") as error:
        CallStore(path)
    assert str(path) in str(error.value)


@pytest.mark.parametrize("version", [1, 2, 99])
def test_a_store_of_another_version_is_left_alone(tmp_path: Path, version: int) -> None:
    path = tmp_path / "calls.sqlite"
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {version}")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(OSError, match="another version"):
        CallStore(path)
    assert path.read_bytes() == before


def test_a_copy_has_the_calls_of_a_store_that_was_never_closed(tmp_path: Path) -> None:
    """A killed run leaves its last calls in SQLite's journal beside the file."""
    store = CallStore(tmp_path / "calls.sqlite")
    store.add(call(i) for i in range(3))
    copy_calls(tmp_path / "calls.sqlite", tmp_path / "copy.sqlite")
    store.close()
    copy = CallStore(tmp_path / "copy.sqlite")
    assert copy.counts() == {("entailment", "b"): 3}
    copy.close()
    assert {p.name for p in tmp_path.iterdir()} == {"calls.sqlite", "copy.sqlite"}


def test_copying_what_is_no_store_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "calls.sqlite").write_bytes(b"no database at all" * 99)
    with pytest.raises(OSError, match="not a store of model calls"):
        copy_calls(tmp_path / "calls.sqlite", tmp_path / "copy.sqlite")
    assert {p.name for p in tmp_path.iterdir()} == {"calls.sqlite"}


# ---- shared, old, damaged ----

WRITER = """
import sys
from pathlib import Path
from trustassay.calls.keys import Keys
from trustassay.calls.store import StoredCall, open_cache

folder = Path(sys.argv[1])
print("ready", flush=True)
input()
store = open_cache(folder)
for i in range(60):
    key = Keys("chat", "b").of([str(i)])
    assert set(store.find([key]).values()) <= {f"[{i}]"}
    store.add([StoredCall(key, "chat", "b", "[]", f"[{i}]", 0.1)])
store.close(is_last_user=False)
"""


def test_processes_share_a_file_from_its_very_first_moment(tmp_path: Path) -> None:
    words = command("-c", WRITER, tmp_path / "new")
    pipe = subprocess.PIPE
    writers = [
        subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe, text=True) for _ in range(4)
    ]
    for writer in writers:
        assert writer.stdout
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        assert writer.stdin
        writer.stdin.write("\n")
        writer.stdin.flush()
    for writer in writers:
        assert writer.communicate(timeout=120)[1] == ""
        assert writer.returncode == 0
    store = open_cache(tmp_path / "new")
    found = store.find([Keys("chat", "b").of([str(i)]) for i in range(60)])
    assert sorted(found.values()) == sorted(f"[{i}]" for i in range(60))
    store.close()
    assert [p.name for p in (tmp_path / "new").iterdir()] == ["calls.sqlite"]


def test_a_folder_in_the_place_of_the_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "calls.sqlite").mkdir()
    with pytest.raises(OSError, match=r"calls\.sqlite: cannot be opened"):
        open_cache(tmp_path)


def test_damage_found_later_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "calls.sqlite"
    store = CallStore(path)
    store.add(call(i, "x" * 500) for i in range(500))
    store.close()
    content = bytearray(path.read_bytes())
    content[4096:] = b"\xa5" * (len(content) - 4096)
    path.write_bytes(content)
    store = CallStore(path)
    for use in (
        lambda: store.find([call(1).key]),
        lambda: store.add([call(1)]),
        lambda: store.usage("entailment"),
        store.counts,
    ):
        with pytest.raises(CallStoreError, match=r"calls\.sqlite: the stored calls cannot be used"):
            use()
    store.close()


def test_what_one_call_holds_is_no_fault_of_the_file(tmp_path: Path) -> None:
    store = CallStore(tmp_path / "calls.sqlite")
    with pytest.raises(OverflowError):
        store.add([call(1), call(2)._replace(prompt_tokens=10**30)])
    assert store.counts() == {}
    store.close()


def test_what_the_shared_file_gave_is_marked_as_taken_and_costs_nothing(tmp_path: Path) -> None:
    own, shared = CallStore(tmp_path / "own.sqlite"), CallStore(tmp_path / "shared.sqlite")
    shared.add([call(1, "[1]")._replace(prompt_tokens=5, reply_tokens=6)])
    calls = Calls(own, shared)
    keys = [call(1).key, call(2).key]
    assert calls.look(keys)[:2] == ({call(1).key: "[1]"}, 1)
    assert calls.look(keys)[:2] == ({call(1).key: "[1]"}, 0)
    calls.add([call(2, "[2]")])
    assert own.usage("entailment")["b"] == Usage(1, 0, 0, 1, cached=1, seconds=0.5)
    assert shared.usage("entailment")["b"].calls == 2
    own.close()
    shared.close()


def test_the_default_cache_is_where_the_environment_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRUSTASSAY_CACHE", str(tmp_path / "one"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "two"))
    assert default_cache() == tmp_path / "one"
    monkeypatch.delenv("TRUSTASSAY_CACHE")
    assert default_cache() == tmp_path / "two" / "trustassay"


def test_only_the_owner_reads_stored_calls_and_their_journals(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        store = open_cache(tmp_path / "cache" / "deep")
        store.add([call(1)])
        copy_calls(store.path, tmp_path / "copy.sqlite")
        journals = {path.name: path.stat().st_mode & 0o777 for path in store.path.parent.iterdir()}
        store.close()
    finally:
        os.umask(before)
    assert journals == dict.fromkeys(
        ["calls.sqlite", "calls.sqlite-wal", "calls.sqlite-shm"], 0o600
    )
    assert (tmp_path / "copy.sqlite").stat().st_mode & 0o777 == 0o600
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "cache").glob("**")} == {0o700}


def test_a_store_of_an_earlier_version_is_tightened(tmp_path: Path) -> None:
    path = tmp_path / "calls.sqlite"
    CallStore(path).close(is_last_user=False)
    for each in (path, tmp_path / "calls.sqlite-wal", tmp_path / "calls.sqlite-shm"):
        each.touch()
        each.chmod(0o644)
    store = CallStore(path)
    assert {each.stat().st_mode & 0o777 for each in tmp_path.iterdir()} == {0o600}
    store.close()


@pytest.mark.parametrize(
    "name", ["q?mode=rwc#x", "100%25", "a b", "o'clock", "new\nline", "é", "\udcff", "a;b&c=d"]
)
def test_a_store_is_opened_for_reading_whatever_its_folder_is_called(
    tmp_path: Path, name: str
) -> None:
    folder = tmp_path / name
    folder.mkdir()
    store = CallStore(folder / "calls.sqlite")
    store.add([call(1)])
    store.close()
    with closing(
        sqlite3.connect(build_read_only_uri(folder / "calls.sqlite"), uri=True)
    ) as connection:
        assert connection.execute("SELECT COUNT(*) FROM calls").fetchone() == (1,)
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            connection.execute("DELETE FROM calls")
    assert [path.name for path in tmp_path.iterdir()] == [name]
