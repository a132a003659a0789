"""What it costs to ask an endpoint many times, beside the plainest loop and the usual client.

    python -m lab.benchmarks.asking                       # all of it, best of three: a quarter hour
    python -m lab.benchmarks.asking --repeats 1 --only together
    python -m lab.benchmarks.asking --only cpu            # CPU time beside the bare loop: a minute

Starts a local OpenAI-compatible server that replies after 100 ms and asks it 2,000 prompts of
1,000 characters, 50 at a time: through a bare aiohttp loop with a semaphore, through the ``openai``
client with a semaphore, and through ``trustassay.chat``. Each of them runs in a process of its own,
which makes a few calls first, so that what is imported late is not counted. Then trustassay with 10
to 500 calls at a time, and against a server that fails.

The ``openai`` client is left out where it is not installed; trustassay does not need it. Put it
into a folder beside: ``pip install openai --target DIR`` and ``PYTHONPATH=DIR``.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from tests.llm_server import LlmServer

LATENCY_MS = 100
CALLS, AT_ONCE = 2000, 50
CHARACTERS = 1000
FAULTS = {"share_429": 0.05, "share_500": 0.02, "share_dropped": 0.01, "share_malformed": 0.01}
STARTING_CALLS = 5


class Work(NamedTuple):
    """What a child process is to do."""

    base_url: str
    prompts: Sequence[str]
    at_once: int
    folder: Path

    @property
    def questions(self) -> Path:
        """The prompts as a file that ``generate`` reads."""
        return self.folder / "questions.jsonl"


class Measured(NamedTuple):
    """What it took: seconds on the clock, seconds of CPU, megabytes at most."""

    wall_s: float
    cpu_s: float
    peak_mb: float


def prompts(calls: int, name: str) -> list[str]:
    """Return prompts that differ from each other and from those of other names."""
    words = "word " * (CHARACTERS // 5)
    return [f"{name} {i}: {words}"[:CHARACTERS].strip() for i in range(calls)]


# Who asks ----------------------------------------------------------------------------------------


async def bare(work: Work) -> list[str]:
    import aiohttp

    places = asyncio.Semaphore(work.at_once)
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector) as session:

        async def one(prompt: str) -> str:
            body = {"model": "test", "messages": [{"role": "user", "content": prompt}]}
            async with (
                places,
                session.post(f"{work.base_url}/chat/completions", json=body) as response,
            ):
                found = json.loads(await response.read())
                return str(found["choices"][0]["message"]["content"])

        return await asyncio.gather(*map(one, work.prompts))


async def openai_client(work: Work) -> list[str]:
    openai = importlib.import_module("openai")
    places = asyncio.Semaphore(work.at_once)
    async with openai.AsyncOpenAI(base_url=work.base_url, api_key="none", max_retries=0) as client:

        async def one(prompt: str) -> str:
            async with places:
                reply = await client.chat.completions.create(
                    model="test", messages=[{"role": "user", "content": prompt}]
                )
                return str(reply.choices[0].message.content)

        return await asyncio.gather(*map(one, work.prompts))


async def ours(work: Work, *, cache: bool = True) -> list[str]:
    import trustassay

    chat = trustassay.chat(
        f"openai:test@{work.base_url}",
        cache=work.folder / "cache" if cache else False,
        calls_at_once=work.at_once,
    )
    replies = await asyncio.to_thread(chat.ask, work.prompts, strict=True)
    return [reply.text for reply in replies]


async def ours_unstored(work: Work) -> list[str]:
    return await ours(work, cache=False)


async def generated(work: Work) -> list[str]:
    """Answer a file of questions: read, checked, asked, stored and written."""
    from trustassay.calls.client import CallOptions
    from trustassay.runs.generate import GenerateOptions, generate

    out = work.folder / "answers.jsonl"
    options = GenerateOptions(
        calls=CallOptions(cache=work.folder / "cache", calls_at_once=work.at_once)
    )
    model = f"openai:test@{work.base_url}"
    done = await asyncio.to_thread(generate, work.questions, model, out, options)
    assert not done.failed
    return [json.loads(line)["response"] for line in out.read_bytes().splitlines()]


CONTENDERS: dict[str, Callable[[Work], Awaitable[list[str]]]] = {
    "bare aiohttp": bare,
    "openai client": openai_client,
    "trustassay": ours,
    "trustassay, cache=False": ours_unstored,
    "trustassay generate": generated,
}


# One process for each measurement ----------------------------------------------------------------


def child(name: str, base_url: str, calls: int, at_once: int) -> None:
    """Ask, and print what it took as JSON."""
    ask = CONTENDERS[name]
    with tempfile.TemporaryDirectory() as folder:
        start = work_in(Path(folder) / "start", base_url, prompts(STARTING_CALLS, "start"), at_once)
        asyncio.run(ask_some(ask, start))
        asked = prompts(calls, f"process {os.getpid()}")
        work = work_in(Path(folder) / "work", base_url, asked, at_once)
        began, cpu_began = time.perf_counter(), time.process_time()
        replies = asyncio.run(ask_some(ask, work))
        cpu_s, wall_s = time.process_time() - cpu_began, time.perf_counter() - began
    if len(set(replies)) != calls:
        raise SystemExit(f"{name}: {len(set(replies))} replies to {calls} prompts")
    print(json.dumps(Measured(wall_s, cpu_s, peak_mb())))


def work_in(folder: Path, base_url: str, asked: Sequence[str], at_once: int) -> Work:
    """Return the work, with its questions in a file."""
    folder.mkdir()
    work = Work(base_url, asked, at_once, folder)
    lines = (json.dumps({"id": str(i), "question": text}) for i, text in enumerate(asked))
    work.questions.write_text("\n".join(lines))
    return work


def peak_mb() -> float:
    """Return the most memory that this process had; ``ru_maxrss`` would know its parent's, too."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


async def ask_some(ask: Callable[[Work], Awaitable[list[str]]], work: Work) -> list[str]:
    return await ask(work)


def measured(name: str, server: LlmServer, calls: int, at_once: int) -> Measured:
    command = [sys.executable, "-m", "lab.benchmarks.asking", "--child", name, server.base_url]
    server.reset()
    done = subprocess.run(
        [*command, str(calls), str(at_once)], stdout=subprocess.PIPE, text=True, check=True
    )
    stats = server.stats()
    if stats["received"] != calls + STARTING_CALLS or stats["at_once"] > at_once:
        raise SystemExit(f"{name}: {stats['received']} requests, {stats['at_once']} at once")
    return Measured(*json.loads(done.stdout))


@dataclass(frozen=True)
class Case:
    """One line of a table."""

    name: str
    calls: int
    at_once: int

    @property
    def ideal_s(self) -> float:
        return self.calls * LATENCY_MS / 1000 / self.at_once

    def row(self, runs: Iterable[Measured]) -> str:
        wall_s, cpu_s, peak_mb = map(min, zip(*runs, strict=True))
        cells = (
            self.name,
            f"{self.calls:,}",
            str(self.at_once),
            f"{wall_s:.2f}",
            f"{wall_s / self.ideal_s:.2f}",
            f"{1000 * cpu_s / self.calls:.2f}",
            f"{peak_mb:.0f}",
        )
        return f"| {' | '.join(cells)} |"


def table(cases: Sequence[Case], repeats: int) -> None:
    """Measure the cases in turn, ``repeats`` times over, and print the best of each column."""
    from tests.llm_server import LlmServer

    with LlmServer(latency_ms=LATENCY_MS) as server:
        runs = [
            [measured(c.name, server, c.calls, c.at_once) for c in cases] for _ in range(repeats)
        ]
    print(
        "| client | calls | at a time | seconds | relative to ideal | CPU ms per call | peak MB |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for case, found in zip(cases, zip(*runs, strict=True), strict=True):
        print(case.row(found))


def cpu(repeats: int) -> None:
    """Print the CPU time of a call beside the bare loop's, measured in turn with it."""
    from tests.llm_server import LlmServer

    names = ("bare aiohttp", "trustassay", "trustassay generate")
    print(f"\nCPU time of a call, {CALLS:,} calls of {LATENCY_MS} ms, {AT_ONCE} at a time\n")
    with LlmServer(latency_ms=LATENCY_MS) as server:
        runs = [
            [measured(name, server, CALLS, AT_ONCE).cpu_s for name in names] for _ in range(repeats)
        ]
    print("| client | CPU ms per call | relative to the bare loop | in each round |")
    print("| --- | --- | --- | --- |")
    for name, found, bare_found in zip(names, zip(*runs, strict=True), repeat(runs), strict=False):
        ratios = [cpu_s / of_round[0] for cpu_s, of_round in zip(found, bare_found, strict=True)]
        rounds = ", ".join(f"{ratio:.2f}" for ratio in ratios)
        print(f"| {name} | {1000 * min(found) / CALLS:.3f} | {median(ratios):.2f} | {rounds} |")


def compare(repeats: int) -> None:
    names = list(CONTENDERS)
    if importlib.util.find_spec("openai") is None:
        names.remove("openai client")
        print("\n(the openai client is not installed: left out)")
    print(f"\n{CALLS:,} calls of {LATENCY_MS} ms, {AT_ONCE} at a time\n")
    table([Case(name, CALLS, AT_ONCE) for name in names], repeats)


def scale(repeats: int) -> None:
    print("\nthe same, more and more at a time\n")
    table(
        [
            Case(name, max(1000, 20 * at_once), at_once)
            for at_once in (10, 50, 100, 200, 500)
            for name in ("bare aiohttp", "trustassay")
        ],
        repeats,
    )


# Faults ------------------------------------------------------------------------------------------


def fail(repeats: int) -> None:
    """Ask a server that fails, and count what it was asked for."""
    shares = ", ".join(f"{100 * v:g} % {k.removeprefix('share_')}" for k, v in FAULTS.items())
    print(f"\n{CALLS:,} calls, {AT_ONCE} at a time, to a server with {shares}, Retry-After 1 s\n")
    print("| seed | answered | requests over needed | answered twice | stored | seconds | again |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for seed in range(repeats):
        with tempfile.TemporaryDirectory() as folder:
            print(fault_row(seed, Path(folder)))


def fault_row(seed: int, folder: Path) -> str:
    from tests.llm_server import LlmServer

    import trustassay
    from trustassay.errors import BackendError

    with LlmServer(latency_ms=LATENCY_MS, reply="echo", seed=seed, **FAULTS) as server:
        chat = trustassay.chat(
            f"openai:test@{server.base_url}", cache=folder, calls_at_once=AT_ONCE
        )
        asked = prompts(CALLS, "fault")
        began = time.perf_counter()
        replies: list[Any] = []
        try:
            replies = [reply.text for reply in chat.ask(asked, strict=True)]
        except BackendError as error:
            print(error, file=sys.stderr)
        seconds = time.perf_counter() - began
        stats, twice = server.stats(), server.asked_again()
        if replies and replies != asked:
            raise SystemExit("a prompt has another's reply")
        server.reset()
        if replies:
            chat.ask(asked)
        again = server.stats()["received"]
    cells = (
        seed,
        f"{len(replies):,} of {CALLS:,}",
        f"{stats['received'] / CALLS:.3f}",
        len(twice),
        f"{stored(folder):,}",
        f"{seconds:.1f}",
        f"{again} requests",
    )
    return f"| {' | '.join(map(str, cells))} |"


def stored(folder: Path) -> int:
    """Return the number of calls in the store."""
    (path,) = folder.glob("*.sqlite")
    connection = sqlite3.connect(path)
    try:
        count: int = connection.execute("SELECT count(*) FROM calls").fetchone()[0]
    finally:
        connection.close()
    return count


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parts = {"cpu": cpu, "together": compare, "scale": scale, "faults": fail}
    parser.add_argument("--only", choices=parts, action="append")
    parser.add_argument("--repeats", type=int, default=3, help="the best of so many is printed")
    parser.add_argument("--child", nargs=4, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        name, base_url, calls, at_once = args.child
        child(name, base_url, int(calls), int(at_once))
        return
    print(f"{os.cpu_count()} cores, best of {args.repeats} for each figure")
    for name, part in parts.items():
        if not args.only or name in args.only:
            part(args.repeats)


if __name__ == "__main__":
    main()
