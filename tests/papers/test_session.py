"""Requests that leave are counted once, failed ones too, whenever the process ends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trustassay.calls.keys import chat_parts
from trustassay.calls.prices import BudgetReachedError
from trustassay.calls.store import CallStore, StoredCall
from trustassay.core.capabilities import ChatRequest, Message, on_sending
from trustassay.errors import CallError, RunFolderError
from trustassay.papers.session import CountedFolderRequest, FolderRequestCounter

ONE, TWO = ChatRequest.of("one"), ChatRequest.of("two")


def opened(folder: Path, most: int | None = None) -> FolderRequestCounter:
    return FolderRequestCounter(CallStore(folder / "calls.sqlite"), folder / "failures.jsonl", most)


def sent(counted: CountedFolderRequest, fault: Exception | None = None, requests: int = 1) -> None:
    """Do as a call does: a try, in which ``requests`` leave; then the failure is told."""
    counted.admit()
    try:
        with counted.sending():
            for _ in range(requests):
                told = on_sending.get()
                assert told
                told()
            if fault:
                raise fault
    except CallError as error:
        counted.record_failure(error)


def answered(folder: Path, counted: CountedFolderRequest, cached: int = 0) -> None:
    store = CallStore(folder / "calls.sqlite")
    store.add([StoredCall(counted.key, "chat", "m", "[]", '"x"', 0.0, None, None, cached)])
    store.close(is_last_user=False)


def test_failed_tries_count_and_are_remembered(tmp_path: Path) -> None:
    counter = opened(tmp_path)
    one, two = counter.of("m", ONE), counter.of("m", TWO)
    sent(one, CallError("busy", "limited"))
    sent(one)
    answered(tmp_path, one)
    sent(two)
    answered(tmp_path, two)
    assert counter.used == 0  # of what this process asked for: nothing yet
    counter.ask(one.key)
    assert (counter.used, counter.failed) == (2, 1)
    counter.ask(two.key)
    assert (counter.used, counter.failed) == (3, 1)
    again = opened(tmp_path)
    again.ask(one.key)
    assert (again.used, again.failed) == (2, 1)


def test_what_came_from_elsewhere_is_no_call(tmp_path: Path) -> None:
    counter = opened(tmp_path, most=1)
    one = counter.of("m", ONE)
    counter.ask(one.key)
    answered(tmp_path, one, cached=1)
    assert counter.used == 0
    sent(opened(tmp_path, most=1).of("m", TWO))  # may still leave


@pytest.mark.parametrize("restarted", [False, True])
def test_no_more_leave_than_may(tmp_path: Path, restarted: bool) -> None:
    counter = opened(tmp_path, most=3)
    sent(counter.of("m", ONE), CallError("busy", "server"))
    sent(counter.of("m", ONE))
    answered(tmp_path, counter.of("m", ONE))
    counter = opened(tmp_path, most=3) if restarted else counter
    sent(counter.of("m", TWO))
    with pytest.raises(BudgetReachedError, match="limit of 3 calls"):
        sent(counter.of("m", TWO))


def test_a_request_sent_again_without_a_parameter_is_two(tmp_path: Path) -> None:
    counter = opened(tmp_path, most=2)
    one = counter.of("m", ONE)
    counter.ask(one.key)
    sent(one, requests=2)
    answered(tmp_path, one)
    assert (counter.used, counter.failed) == (2, 1)
    with pytest.raises(BudgetReachedError):
        sent(counter.of("m", TWO))


def test_a_third_request_of_one_try_may_be_one_too_many(tmp_path: Path) -> None:
    counter = opened(tmp_path, most=2)
    one = counter.of("m", ONE)
    counter.ask(one.key)
    with pytest.raises(BudgetReachedError):
        sent(one, requests=3)
    assert (counter.used, counter.failed) == (2, 2)


def test_an_unknown_fault_counts(tmp_path: Path) -> None:
    counter = opened(tmp_path)
    one = counter.of("m", ONE)
    counter.ask(one.key)
    with pytest.raises(ZeroDivisionError):
        sent(one, ZeroDivisionError("no"))
    assert counter.used == 1


def test_what_was_refused_is_not_asked_again_until_it_is_forgotten(tmp_path: Path) -> None:
    counter = opened(tmp_path)
    sent(counter.of("m", ONE), CallError("no such characters", "refused"))
    for found in (counter, opened(tmp_path)):
        found.of("m", TWO).check()
        with pytest.raises(CallError, match="no such characters") as error:
            found.of("m", ONE).check()
        assert error.value.kind == "refused"
    counter.forget_refusals()
    for found in (counter, opened(tmp_path)):
        found.of("m", ONE).check()
        found.ask(found.of("m", ONE).key)
        assert found.used == 1


def test_a_line_cut_short_is_dropped_and_a_damaged_one_told(tmp_path: Path) -> None:
    sent(opened(tmp_path).of("m", ONE), CallError("busy", "limited"))
    path = tmp_path / "failures.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole + whole[:20])
    counter = opened(tmp_path)
    counter.ask(counter.of("m", ONE).key)
    assert counter.used == 1
    assert path.read_bytes() == whole
    path.write_bytes(b"what\n" + whole)
    with pytest.raises(RunFolderError, match=r"failures\.jsonl:1: damaged"):
        opened(tmp_path)


texts = st.text(st.characters(), max_size=9)  # lone surrogates among them
requests = st.builds(
    ChatRequest,
    messages=st.lists(st.builds(Message, texts, texts), max_size=3).map(tuple),
    temperature=st.sampled_from([None, 0, 0.0, 1, 1.0, True, 0.7]),
    max_tokens=st.sampled_from([None, 1, True]),
    stop=st.sampled_from([(), ("x", "é"), ["a list"]]),
    repeat=st.integers(0, 2),
    prompt=texts,
    schema=st.sampled_from(["", "{}"]),
    stand_in=st.sampled_from(["", "what a plan takes"]),
)


@given(requests)
def test_a_request_is_known_by_its_fields_as_plain_json(request: ChatRequest) -> None:
    """Stored calls are found by it: not a character may change."""
    fields = {name: getattr(request, name) for name in ChatRequest.__slots__}
    del fields["stand_in"]
    for later in ("may_be_empty", "schema", "embedding_radius"):
        if not fields[later]:
            del fields[later]
    assert chat_parts(request) == (json.dumps(fields),)
