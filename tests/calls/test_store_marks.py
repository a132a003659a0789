"""Two that ask the same at the same time pay once; who was killed holds nobody up for long."""

from __future__ import annotations

import asyncio
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import trustassay
from tests.llm_server import LlmServer
from trustassay.calls import batching, store
from trustassay.calls.keys import Keys
from trustassay.calls.ramp import FIRST_CALLS
from trustassay.calls.store import CallMarks, StoredCall, open_cache
from trustassay.core.capabilities import ChatRequest, Reply
from trustassay.errors import CallError

KEYS = [Keys("chat", "m").of([str(i)]) for i in range(4)]


def under_way(folder: Path) -> int:
    with closing(sqlite3.connect(folder / "calls.sqlite")) as connection:
        count: int = connection.execute("SELECT count(*) FROM under_way").fetchone()[0]
    return count


def expires(folder: Path) -> float:
    """Return when the first mark expires."""
    with closing(sqlite3.connect(folder / "calls.sqlite")) as connection:
        first: float = connection.execute("SELECT min(expires) FROM under_way").fetchone()[0]
    return first


@contextmanager
def two(folder: Path) -> Iterator[tuple[CallMarks, CallMarks]]:
    shared = open_cache(folder)
    shared.add([StoredCall(KEYS[0], "chat", "m", "[]", "0", 0.1)])
    one, other = CallMarks(shared.path), CallMarks(shared.path)
    try:
        yield one, other
    finally:
        one.close()
        other.close()
        shared.close()


def in_loop(work: Callable[[CallMarks, CallMarks], None], folder: Path) -> None:
    async def inside() -> None:
        with two(folder) as both:
            work(*both)

    asyncio.run(inside())


# ---- marks by themselves ----


def test_what_is_marked_belongs_to_one_until_it_has_ended(tmp_path: Path) -> None:
    def work(one: CallMarks, other: CallMarks) -> None:
        calls, elsewhere = one.claim(KEYS[:2])
        assert ([call.reply for call in calls], elsewhere) == (["0"], set())
        assert one.claim(KEYS[:2])[1] == set()
        assert other.claim(KEYS[:3])[1] == {KEYS[1]}
        one.end([KEYS[1]])
        assert one.claim(KEYS[2:])[1] == {KEYS[2]}  # what has ended goes with it
        assert other.claim([KEYS[1]])[1] == set()

    in_loop(work, tmp_path)
    assert under_way(tmp_path) == 0


def test_a_mark_expires_and_one_from_before_the_clock_was_set_back_does_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now)

    def work(one: CallMarks, other: CallMarks) -> None:
        nonlocal now
        one.claim(KEYS)
        now += store.MARK_S - 1
        assert len(other.look(KEYS)[1]) == 3
        now += 2
        assert not other.look(KEYS)[1]
        now -= 3600
        assert not other.look(KEYS)[1]

    in_loop(work, tmp_path)


def test_where_the_file_is_locked_calls_go_out_unmarked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "LOCKED_S", 0.05)

    def work(one: CallMarks, other: CallMarks) -> None:
        one.claim([KEYS[1]])
        with closing(sqlite3.connect(tmp_path / "calls.sqlite")) as locking:
            locking.execute("BEGIN IMMEDIATE")
            calls, elsewhere = other.claim(KEYS)
            assert ([call.reply for call in calls], elsewhere) == (["0"], {KEYS[1]})
            locking.rollback()
        assert under_way(tmp_path) == 1

    in_loop(work, tmp_path)


# ---- two that ask ----


@dataclass
class Model:
    """Replies once ``go`` is set; ``refuses`` prompts that begin so."""

    name: str = "openai:m@http://h/v1"
    refuses: str = "-"
    asked: list[str] = field(default_factory=list)
    go: asyncio.Event = field(default_factory=asyncio.Event)

    async def reply(self, request: ChatRequest) -> Reply:
        text = request.messages[-1].content
        self.asked.append(text)
        await self.go.wait()
        if text.startswith(self.refuses):
            raise CallError(f"no answer to {text}", "refused")
        return Reply(text.upper())


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.005)


@pytest.fixture
def quick_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batching, "POLL_INTERVAL_S", 0.02)
    for name in ("TICK_S", "RENEW_EVERY_S"):
        monkeypatch.setattr(store, name, 0.02)


async def both(
    first: Model, second: Model, prompts: list[str], folder: Path, meanwhile: Callable[[], Any]
) -> tuple[list[Any], list[Any]]:
    """Ask the first, then the second too and for ``own``; let the first reply after a while."""
    second.go.set()
    one = asyncio.create_task(trustassay.chat(first, cache=folder).aask(prompts))
    await until(lambda: len(first.asked) == len(prompts))
    other = asyncio.create_task(trustassay.chat(second, cache=folder).aask([*prompts, "own"]))
    await until(lambda: second.asked)
    await meanwhile()
    assert second.asked == ["own"]
    first.go.set()
    return await one, await other


async def some_looks() -> None:
    await asyncio.sleep(0.1)


@pytest.mark.usefixtures("quick_looks")
def test_who_finds_a_mark_waits_and_takes_the_reply(tmp_path: Path) -> None:
    first, second = Model(), Model()
    # As many as are under way before the first reply.
    prompts = [f"prompt {i}" for i in range(FIRST_CALLS)]
    one, other = asyncio.run(both(first, second, prompts, tmp_path, some_looks))
    assert [reply.text for reply in other] == [p.upper() for p in [*prompts, "own"]]
    assert one == other[:-1]
    assert len(first.asked) == FIRST_CALLS
    assert second.asked == ["own"]
    assert under_way(tmp_path) == 0


@pytest.mark.usefixtures("quick_looks")
def test_who_waits_in_vain_asks_itself(tmp_path: Path) -> None:
    first, second = Model(refuses="bad"), Model()
    one, other = asyncio.run(both(first, second, ["bad", "good"], tmp_path, some_looks))
    assert [reply.text for reply in other] == ["BAD", "GOOD", "OWN"]
    assert [reply.error is None for reply in one] == [False, True]
    assert second.asked == ["own", "bad"]


@pytest.mark.usefixtures("quick_looks")
def test_a_mark_is_renewed_while_its_call_is_under_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now)

    def renewed() -> bool:
        return expires(tmp_path) == now + store.MARK_S

    async def long() -> None:
        nonlocal now
        for _ in range(4):
            now += 0.75 * store.MARK_S
            await until(renewed)
            await some_looks()

    first, second = Model(), Model()
    asyncio.run(both(first, second, ["slow"], tmp_path, long))
    assert (first.asked, second.asked) == (["slow"], ["own"])


# ---- two processes ----

ASKS = """
import sys
import trustassay
from trustassay.calls import store

uri, folder, calls = sys.argv[1], sys.argv[2], int(sys.argv[3])
store.MARK_S, store.LOCKED_S = float(sys.argv[4]), 60
chat = trustassay.chat(uri, cache=folder)
print("ready", flush=True)
input()
replies = chat.ask([f"prompt {i}" for i in range(calls)], strict=True)
print(len({reply.text for reply in replies}))
"""


def started(server: LlmServer, folder: Path, calls: int, mark_s: float) -> subprocess.Popen[str]:
    """Start a process that asks as soon as its standard input is closed."""
    uri = f"openai:test@{server.base_url}?concurrency=40"
    words = [sys.executable, "-c", ASKS, uri, str(folder), str(calls), str(mark_s)]
    pipe = subprocess.PIPE
    return subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True)


def go(*processes: subprocess.Popen[str]) -> None:
    for process in processes:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin
        process.stdin.write("\n")
        process.stdin.flush()


@pytest.mark.slow
def test_two_processes_that_start_together_pay_once(tmp_path: Path) -> None:
    calls = 550
    with LlmServer(latency_ms=100) as server:
        both = [started(server, tmp_path, calls, 600) for _ in range(2)]
        go(*both)
        assert [process.communicate(timeout=120)[0] for process in both] == [f"{calls}\n"] * 2
        assert server.stats()["received"] <= 1.02 * calls
    assert under_way(tmp_path) == 0


@pytest.mark.parametrize("other_machine", [False, True])
@pytest.mark.slow
def test_what_a_killed_process_was_asking_the_other_soon_asks(
    tmp_path: Path, other_machine: bool
) -> None:
    """Of the same machine it is known to be gone; of another one its marks expire."""
    calls, at_once = 150, 40
    mark_s = 4.0 if other_machine else 600.0
    with LlmServer(latency_ms=300) as server:
        first, second = (started(server, tmp_path, calls, mark_s) for _ in range(2))
        go(first)
        while server.stats()["answered"] < 60:
            assert first.poll() is None
            time.sleep(0.01)
        first.send_signal(signal.SIGKILL)
        first.communicate()
        assert under_way(tmp_path) > 0
        if other_machine:
            with closing(sqlite3.connect(tmp_path / "calls.sqlite")) as connection:
                connection.execute("UPDATE under_way SET owner = 'elsewhere:' || owner")
                connection.commit()
        expired = expires(tmp_path)
        go(second)
        assert second.communicate(timeout=120)[0] == f"{calls}\n"
        stats = server.stats()
    assert stats["received"] <= calls + at_once
    twice = [one["received_at"][1] for one in stats["bodies"].values() if one["received"] > 1]
    assert twice
    assert all((at >= expired) == other_machine for at in twice)
