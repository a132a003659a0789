"""The store of model calls: what went in comes out, whatever it is, and damage is named."""

import sqlite3
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trustassay.engine.cache import CallStore, StoredCall, copy_calls, request_key


def call(i: int, reply: str = "[1.0, 0.0, 0.0]") -> StoredCall:
    key = request_key("entailment", "b", [str(i)])
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
    same = request_key("c", "b", one) == request_key("c", "b", other)
    assert same == (one == other)
    assert request_key("c", "b", one) != request_key("cb", "", one)


def test_a_file_that_is_no_store_is_named(tmp_path: Path) -> None:
    path = tmp_path / "calls.sqlite"
    path.write_bytes(b"not a database, but long enough to be one " * 9)
    with pytest.raises(OSError, match="not a store of model calls") as error:
        CallStore(path)
    assert str(path) in str(error.value)


def test_a_store_of_a_later_version_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "calls.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(OSError, match="later version"):
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
