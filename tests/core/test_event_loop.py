"""Work is interrupted at once, whichever thread the signal reaches."""

from __future__ import annotations

import asyncio
import signal
import threading
import time

import pytest

from trustassay.core.event_loop import gather_all, run_anywhere

WORK_S = 60


async def _work() -> None:
    """Work in a thread, where the interruption arrives."""
    stop = threading.Event()

    def work() -> None:
        time.sleep(0.2)  # until the main thread waits
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)
        stop.wait(WORK_S)

    try:
        await asyncio.to_thread(work)
    finally:
        stop.set()


async def _cell() -> None:
    """Work as in a notebook, whose event loop is running already."""
    run_anywhere(_work)


def test_an_interruption_that_reaches_another_thread() -> None:
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        run_anywhere(_work)
    assert time.monotonic() - begun < WORK_S / 2
    assert signal.set_wakeup_fd(-1) == -1


def test_an_interruption_that_reaches_another_thread_of_a_notebook() -> None:
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        asyncio.new_event_loop().run_until_complete(_cell())
    assert time.monotonic() - begun < WORK_S / 2


def test_what_work_returns_is_not_written_out() -> None:
    class Run:
        shown = 0

        def __repr__(self) -> str:
            self.shown += 1
            return "a run, whose assessments were read for this"

    async def work() -> Run:
        return Run()

    assert run_anywhere(work).shown == 0


def test_all_are_waited_for_and_the_first_failure_by_place_is_raised() -> None:
    done: list[str] = []

    async def work(name: str, rounds: int, fails: bool) -> str:
        for _ in range(rounds):
            await asyncio.sleep(0)
        done.append(name)
        if fails:
            raise ValueError(name)
        return name

    with pytest.raises(ValueError, match="late"):
        asyncio.run(
            gather_all([work("late", 5, True), work("early", 1, True), work("c", 9, False)])
        )
    assert done == ["early", "late", "c"]
    assert asyncio.run(gather_all(work(name, 3 - i, False) for i, name in enumerate("abc"))) == [
        *"abc"
    ]
