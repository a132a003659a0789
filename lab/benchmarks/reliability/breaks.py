"""Rows in which the process or the disk fails, and the command is given again until it is done."""

from __future__ import annotations

import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from lab.benchmarks.reliability.contenders import (
    GENERATE,
    PLAIN,
    SCORE,
    Contender,
    Work,
    ended,
    start,
)
from lab.benchmarks.reliability.counting import End, Server
from lab.benchmarks.reliability.rows import AT_ONCE, Outcome
from lab.benchmarks.reliability.server import Behaviour

LATENCY_S = 0.2
STARTS = 3
"""How often a command that stopped is given again."""
DISK_MB = 64
SHORT_FILES = ["sh", "-c", 'ulimit -f 800; exec "$@"', "sh"]
"""No file of a command may grow beyond 400 kB: where no disk can be mounted."""

Process = subprocess.Popen[bytes]


@dataclass(frozen=True)
class BrokenRow:
    """One line of the table: ``act`` runs a contender through what breaks it."""

    name: str
    title: str
    calls: int
    act: Callable[[Contender, Work, Server], Outcome]
    ours: Contender = SCORE

    @property
    def least_s(self) -> float:
        return self.calls * LATENCY_S / AT_ONCE

    def measure(self, folder: Path) -> list[Outcome]:
        """Run both contenders, one after the other, against an endpoint of their own."""
        return [
            self._measure_one(each, folder / str(i)) for i, each in enumerate((self.ours, PLAIN))
        ]

    def _measure_one(self, contender: Contender, folder: Path) -> Outcome:
        with Server(Behaviour(LATENCY_S)) as server:
            work = Work(folder, server.base_url, self.calls, AT_ONCE)
            work.prepare()
            return self.act(contender, work, server)


def rows(quick: bool) -> list[BrokenRow]:
    """Return all rows; ``quick`` ones are small and say little."""
    kills, share = (3, 0.1) if quick else (20, 1.0)
    return [
        BrokenRow(
            "kills",
            f"{kills} times SIGKILL at random moments",
            int(3000 * share),
            partial(_killed_often, kills=kills),
        ),
        BrokenRow("ctrl-c", "Ctrl-C in the middle", int(1000 * share), _interrupted),
        BrokenRow(
            "two-processes",
            "two processes on one cache, started together",
            int(550 * share),
            _both,
            ours=GENERATE,
        ),
        BrokenRow("full-disk", "a full disk, then space is made", int(1000 * share), _disk_full),
    ]


def _outcome(
    contender: Contender,
    work: Work,
    server: Server,
    statuses: list[int],
    ends: Sequence[End] = (),
) -> Outcome:
    lost = work.calls - contender.answered(work)
    return Outcome(contender.name, lost, server.counts(ends), statuses)


def _finish(contender: Contender, work: Work, folder: Path) -> list[int]:
    """Give the command until it ends well, a few times at most; returns the statuses."""
    statuses: list[int] = []
    while len(statuses) < STARTS and 0 not in statuses:
        statuses.append(ended(start(contender.command(work), folder)))
    return statuses


def _await_requests(server: Server, number: int, process: Process) -> bool:
    """Wait until the endpoint has got so many requests; ``False`` where the process ended first."""
    while process.poll() is None:
        if server.received() >= number:
            return True
        time.sleep(0.01)
    return False


def _await_half(work: Work, server: Server, process: Process) -> None:
    if not _await_requests(server, work.calls // 2, process):
        raise RuntimeError(f"ended too early, see {work.folder / 'said.txt'}")


# Kills -------------------------------------------------------------------------------------------


def _killed_often(contender: Contender, work: Work, server: Server, kills: int) -> Outcome:
    """Kill while the command starts (a quarter of the times) or up to a second after it asks."""
    rng = random.Random(1)
    ends: list[End] = []
    while len(ends) < kills:
        starting, wait_s = rng.random() < 0.25, rng.uniform(0, 1)
        process = start(contender.command(work), work.folder)
        if not starting:
            _await_requests(server, server.received() + 1, process)
        try:
            process.wait(wait_s)
            break  # it is done
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGSTOP)  # so that it reads no more while we look
            told, unread = time.time(), server.unread()
            process.kill()
            process.wait()
            ends.append(End(told, time.time(), unread))
    statuses = _finish(contender, work, work.folder)
    return _outcome(contender, work, server, [-signal.SIGKILL] * len(ends) + statuses, ends)


def _interrupted(contender: Contender, work: Work, server: Server) -> Outcome:
    process = start(contender.command(work), work.folder)
    _await_half(work, server, process)
    told = time.time()
    process.send_signal(signal.SIGINT)
    statuses = [ended(process)]
    end = End(told, time.time())
    statuses += _finish(contender, work, work.folder)
    return _outcome(contender, work, server, statuses, [end])


# Two processes -----------------------------------------------------------------------------------


def _both(contender: Contender, work: Work, server: Server) -> Outcome:
    """Run two at once; an answer is lost where either lacks it."""
    other = _Beside(**vars(work))
    processes = [start(contender.command(each), each.folder) for each in (work, other)]
    statuses = [ended(process) for process in processes]
    lost = 2 * work.calls - contender.answered(work) - contender.answered(other)
    return replace(_outcome(contender, work, server, statuses), lost=lost)


class _Beside(Work):
    """The same work with files of its own for what is written; the cache is shared."""

    @property
    def out(self) -> Path:
        return self.folder / "other.jsonl"


# A full disk -------------------------------------------------------------------------------------


def _disk_full(contender: Contender, work: Work, server: Server) -> Outcome:
    """Let the disk be full when half of the requests were made, and make space when it stopped."""
    with _small_disk(work.folder / "disk") as disk:
        if disk is None:
            process = start([*SHORT_FILES, *contender.command(work)], work.folder)
            statuses = [ended(process), *_finish(contender, work, work.folder)]
            return _outcome(contender, work, server, statuses)
        there = replace(work, folder=disk)
        there.prepare()
        process = start(contender.command(there), work.folder)
        _await_half(work, server, process)
        _fill(disk / "ballast")
        statuses = [ended(process)]
        (disk / "ballast").unlink()
        statuses += _finish(contender, there, work.folder)
        return _outcome(contender, there, server, statuses)


@contextmanager
def _small_disk(folder: Path) -> Iterator[Path | None]:
    """Mount a small disk in memory; ``None`` where this user may not."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        yield None
        return
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def _fill(path: Path) -> None:
    """Write until there is no space."""
    with path.open("wb", buffering=0) as file:
        block = bytes(1 << 20)
        while block:
            try:
                if file.write(block) < len(block):
                    block = block[: len(block) // 2]
            except OSError:
                block = block[: len(block) // 2]
