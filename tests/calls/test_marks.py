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

import pytest

import trustassay
from tests.llm_server import LlmServer
from trustassay.calls import marks
from trustassay.calls.cache_key import request_key
from trustassay.calls.marks import Marks
from trustassay.calls.store import StoredCall, open_cache
from trustassay.capabilities import ChatRequest, Reply
from trustassay.errors import CallError

KEYS = [request_key("chat", "m", [str(i)]) for i in range(4)]


def under_way(folder: Path) -> int:
    with closing(sqlite3.connect(folder / "calls.sqlite")) as connection:
        found: int = connection.execute("SELECT count(*) FROM under_way").fetchone()[0]
    return found


@contextmanager
def two(folder: Path) -> Iterator[tuple[Marks, Marks]]:
    store = open_cache(folder)
    store.add([StoredCall(KEYS[0], "chat", "m", "[]", "0", 0.1)])
    one, other = Marks(store.path), Marks(store.path)
    try:
        yield one, other
    finally:
        one.close()
        other.close()
        store.close()


def in_loop(work: Callable[[Marks, Marks], None], folder: Path) -> None:
    async def inside() -> None:
        with two(folder) as both:
            work(*both)

    asyncio.run(inside())


# ---- marks by themselves ----


def test_what_is_marked_belongs_to_one_until_it_has_ended(tmp_path: Path) -> None:
    def work(one: Marks, other: Marks) -> None:
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

    def work(one: Marks, other: Marks) -> None:
        nonlocal now
        one.claim(KEYS)
        now += marks.MARK_S - 1
        assert len(other.look(KEYS)[1]) == 3
        now += 2
        assert not other.look(KEYS)[1]
        now -= 3600
        assert not other.look(KEYS)[1]

    in_loop(work, tmp_path)


def test_where_the_file_is_locked_calls_go_out_unmarked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(marks, "LOCKED_S", 0.05)

    def work(one: Marks, other: Marks) -> None:
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
    """Replies after a while, the first time; ``refuses`` prompts that begin so."""

    name: str = "openai:m@http://h/v1"
    delay_s: float = 0.3
    refuses: str = "-"
    asked: list[str] = field(default_factory=list)

    async def reply(self, request: ChatRequest) -> Reply:
        text = request.messages[-1].content
        self.asked.append(text)
        await asyncio.sleep(self.delay_s)
        if text.startswith(self.refuses):
            raise CallError(f"no answer to {text}", "refused")
        return Reply(text.upper())


def test_who_finds_a_mark_waits_and_takes_the_reply(tmp_path: Path) -> None:
    first, second = Model(), Model(delay_s=0.0)
    prompts = [f"prompt {i}" for i in range(40)]

    async def work() -> None:
        one = asyncio.create_task(trustassay.chat(first, cache=tmp_path).aask(prompts))
        await asyncio.sleep(0.1)
        found = await trustassay.chat(second, cache=tmp_path).aask([*prompts, "own"], strict=True)
        assert [reply.text for reply in found] == [p.upper() for p in [*prompts, "own"]]
        assert await one == found[:-1]

    asyncio.run(work())
    assert len(first.asked) == 40
    assert second.asked == ["own"]
    assert under_way(tmp_path) == 0


def test_who_waits_in_vain_asks_itself(tmp_path: Path) -> None:
    first, second = Model(refuses="bad"), Model(delay_s=0.0)

    async def work() -> None:
        one = asyncio.create_task(trustassay.chat(first, cache=tmp_path).aask(["good", "bad"]))
        await asyncio.sleep(0.1)
        found = await trustassay.chat(second, cache=tmp_path).aask(["bad", "good"], strict=True)
        assert [reply.text for reply in found] == ["BAD", "GOOD"]
        assert [reply.error is None for reply in await one] == [True, False]

    asyncio.run(asyncio.wait_for(work(), 10))
    assert second.asked == ["bad"]


def test_a_mark_is_renewed_while_its_call_is_under_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(marks, "MARK_S", 1.0)
    monkeypatch.setattr(marks, "RENEW_EVERY_S", 0.25)
    monkeypatch.setattr(marks, "TICK_S", 0.1)
    first, second = Model(delay_s=2.5), Model(delay_s=0.0)

    async def work() -> None:
        one = asyncio.create_task(trustassay.chat(first, cache=tmp_path).aask(["slow"]))
        await asyncio.sleep(0.1)
        await trustassay.chat(second, cache=tmp_path).aask(["slow"], strict=True)
        await one

    asyncio.run(work())
    assert (first.asked, second.asked) == (["slow"], [])


# ---- two processes ----

ASKS = """
import sys, time
import trustassay

uri, folder, start, calls = sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4])
chat = trustassay.chat(uri, cache=folder)
time.sleep(max(0.0, start - time.time()))
replies = chat.ask([f"prompt {i}" for i in range(calls)], strict=True)
print(len({reply.text for reply in replies}))
"""


def started(server: LlmServer, folder: Path, at: float, calls: int) -> subprocess.Popen[str]:
    uri = f"openai:test@{server.base_url}?concurrency=40"
    words = [sys.executable, "-c", ASKS, uri, str(folder), str(at), str(calls)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)


@pytest.mark.slow
def test_two_processes_that_start_together_pay_once(tmp_path: Path) -> None:
    calls = 550
    with LlmServer(latency_ms=100) as server:
        at = time.time() + 2.0
        both = [started(server, tmp_path, at, calls) for _ in range(2)]
        assert [process.communicate(timeout=60)[0] for process in both] == [f"{calls}\n"] * 2
        assert server.stats()["received"] <= 1.02 * calls
    assert under_way(tmp_path) == 0


@pytest.mark.parametrize("other_machine", [False, True])
@pytest.mark.slow
def test_what_a_killed_process_was_asking_the_other_soon_asks(
    tmp_path: Path, other_machine: bool
) -> None:
    """Of the same machine it is known to be gone; of another one its marks expire."""
    calls, at_once = 300, 40
    with LlmServer(latency_ms=400) as server:
        first = started(server, tmp_path, 0.0, calls)
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
        began = time.monotonic()
        second = started(server, tmp_path, 0.0, calls)
        assert second.communicate(timeout=60)[0] == f"{calls}\n"
        seconds = time.monotonic() - began
        assert server.stats()["received"] <= calls + at_once
    asking_s = calls / at_once * 0.4
    assert seconds < asking_s + 5 + (marks.MARK_S if other_machine else 0)
    assert (seconds > marks.MARK_S / 2) or not other_machine
