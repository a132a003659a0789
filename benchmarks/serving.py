"""What a request costs over HTTP, beside the model's own time, and what a kill under load loses.

    python -m benchmarks.serving [--requests 1000] [--entailer lexical]
    python -m benchmarks.serving --kill 3
    python -m benchmarks.serving --slow 1000

`trustassay serve` runs in a process of its own; the clients are tasks of this one, each with a
connection of its own, at 127.0.0.1. First: all requests at once (samples of two sentences and two
passages, all different, `faithfulness`); 1, 8 and 64 clients that each send the next when they have
the answer to the last; one request with all samples, streamed. The model's own time is that of a
resident scorer in this process that is given all samples at once, without HTTP. A reply of 429 is
obeyed and counted, and its waiting is part of the latency.

With `--kill N`: the service, with a folder, is killed N times (SIGKILL) while 64 clients send; each
start takes up the folder. A client without a reply sends again. Told are the replies, what was
sent again, and whether every sample is in the folder once with the score that its client has.

With `--slow N`: N connections send a byte of a request's head each second, while 8 clients send.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import numpy as np

from benchmarks.scorer import METRIC, Stopwatch, samples
from trustassay import scorer

PORT = 18799
URL = f"http://127.0.0.1:{PORT}"
COME_AGAIN = (429, 503)


@asynccontextmanager
async def serving(*arguments: str) -> AsyncIterator[subprocess.Popen[bytes]]:
    words = ["serve", "--metric", METRIC, "--port", str(PORT), "--per-minute", "1000000"]
    process = subprocess.Popen(
        [sys.executable, "-m", "trustassay", *words, *arguments], stderr=subprocess.DEVNULL
    )
    try:
        async with aiohttp.ClientSession() as session:
            while True:
                try:
                    async with session.get(f"{URL}/health"):
                        break
                except aiohttp.ClientError:
                    if process.poll() is not None:
                        raise SystemExit("the service did not start") from None
                    await asyncio.sleep(0.05)
        yield process
    finally:
        process.kill()
        process.wait()


def cpu_s(process: subprocess.Popen[bytes]) -> float:
    """Return the seconds of the processor that a process has taken."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Clients:
    """Sends samples, and sends again as it is told to."""

    def __init__(self) -> None:
        self.replies: Counter[str] = Counter()
        self.waits: list[float] = []
        self.scores: dict[str, float] = {}

    async def score(self, session: aiohttp.ClientSession, one: dict[str, Any]) -> None:
        began = time.perf_counter()
        while True:
            try:
                async with session.post(f"{URL}/v1/score", json=one) as reply:
                    content = await reply.json()
                    self.replies[str(reply.status)] += 1
                    if reply.status not in COME_AGAIN:
                        assert reply.status == 200, content
                        break
                    await asyncio.sleep(float(reply.headers["Retry-After"]))
            except (aiohttp.ClientError, ConnectionError):
                self.replies["no connection or reply"] += 1
                await asyncio.sleep(0.1)
        self.waits.append(time.perf_counter() - began)
        self.scores[content["id"]] = content["metrics"][METRIC]["score"]

    async def send(self, every: list[dict[str, Any]], clients: int) -> None:
        waiting = iter(every)

        async def client(session: aiohttp.ClientSession) -> None:
            for one in waiting:
                await self.score(session, one)

        async with session_of(clients) as session:
            await asyncio.gather(*(client(session) for _ in range(clients)))


def session_of(connections: int) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=connections),
        timeout=aiohttp.ClientTimeout(total=600),
    )


async def models_own(n: int, start: int, entailer: str) -> tuple[float, float]:
    """Return the seconds by the clock and of the processor of all samples without HTTP."""
    async with scorer(metrics=METRIC, entailer=entailer) as found:
        await found.score(samples(1, 10**6)[0])  # loads the model
        watch = Stopwatch()
        await asyncio.gather(*(found.score(one) for one in samples(n, start)))
        return watch.read()


async def streamed(every: list[dict[str, Any]]) -> list[float]:
    """Return when each line came, of one request with all samples."""
    came = []
    async with session_of(1) as session:
        began = time.perf_counter()
        async with session.post(f"{URL}/v1/score", json=every) as reply:
            assert reply.status == 200
            async for line in reply.content:
                assert "error" not in json.loads(line)
                came.append(time.perf_counter() - began)
    return came


def row(
    what: str, n: int, taken: tuple[float, float], waits: list[float], replies: Counter[str]
) -> None:
    wall, cpu = (seconds / n * 1000 for seconds in taken)
    middle, late = np.percentile(waits, [50, 99]) * 1000
    told = ", ".join(f"{count} x {name}" for name, count in sorted(replies.items()))
    print(f"| {what} | {wall:.2f} | {cpu:.2f} | {middle:.0f} | {late:.0f} | {told} |", flush=True)


async def latency(n: int, entailer: str) -> None:
    print(f"{n} samples, {METRIC}, entailer {entailer}; load average {os.getloadavg()[0]:.1f}\n")
    print("| how | ms a sample | CPU ms a sample | waits, ms: median | 99 % | replies |")
    print("| --- | --- | --- | --- | --- | --- |")
    wall, cpu = (seconds / n * 1000 for seconds in await models_own(n, 0, entailer))
    print(f"| scorer without HTTP, all at once | {wall:.2f} | {cpu:.2f} |  |  |  |", flush=True)
    async with serving("--entailer", entailer) as process:
        await Clients().send(samples(1, 10**6), 1)  # loads the model
        for round_, clients in enumerate((n, 1, 8, 64), 1):
            found, began, used = Clients(), time.perf_counter(), cpu_s(process)
            count = min(n, 100 * clients)
            await found.send(samples(count, round_ * n), clients)
            taken = (time.perf_counter() - began, cpu_s(process) - used)
            assert len(found.scores) == count
            noun = "client" if clients == 1 else "clients"
            what = f"{n} requests at once" if clients == n else f"{clients} {noun}"
            row(what, count, taken, found.waits, found.replies)
        used = cpu_s(process)
        came = await streamed(samples(n, 9 * n))
        assert len(came) == n
        taken = (came[-1], cpu_s(process) - used)
        row("one request, streamed", n, taken, came, Counter({"200": 1}))


async def killed(n: int, entailer: str, kills: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        every = [{"id": f"s{i}", **one} for i, one in enumerate(samples(n, 0))]
        clients = Clients()
        sending = asyncio.create_task(clients.send(every, 64))
        left_unscored = []
        for kill in range(1, kills + 1):
            async with serving("--entailer", entailer, "--out", str(run)):
                while len(clients.scores) < n * kill // (kills + 1):
                    await asyncio.sleep(0.002)
            left_unscored.append(len(rows(run / "samples")) - len(rows(run / "assessments")))
        async with serving("--entailer", entailer, "--out", str(run)) as process:
            await sending
            process.terminate()
            await asyncio.to_thread(process.wait)
        stored = {one["id"]: one["score"] for one in rows(run / "assessments")}
        print(f"{n} samples, {kills} kills under load, entailer {entailer}")
        print(f"replies: {dict(sorted(clients.replies.items()))}")
        print(f"accepted and not scored at each kill: {left_unscored}")
        print(f"answered: {len(clients.scores)}; in the folder: {len(rows(run / 'samples'))}")
        print(f"every score in the folder is the one that was answered: {stored == clients.scores}")


async def slowed(n: int, entailer: str, slow: int) -> None:
    lasted: list[float] = []

    async def drip() -> None:
        began = time.perf_counter()
        reader, writer = await asyncio.open_connection("127.0.0.1", PORT)
        try:
            while not reader.at_eof():
                writer.write(b"G")
                await writer.drain()
                await asyncio.sleep(1)
        except ConnectionError:
            pass
        lasted.append(time.perf_counter() - began)
        writer.close()

    print(f"{n} samples, 8 clients, entailer {entailer}; load average {os.getloadavg()[0]:.1f}\n")
    print("| how | ms a sample | CPU ms a sample | waits, ms: median | 99 % | replies |")
    print("| --- | --- | --- | --- | --- | --- |")
    async with serving("--entailer", entailer) as process:
        await Clients().send(samples(1, 10**6), 1)  # loads the model
        for round_, count in enumerate((0, slow)):
            dripping = [asyncio.create_task(drip()) for _ in range(count)]
            await asyncio.sleep(2)
            found, began, used = Clients(), time.perf_counter(), cpu_s(process)
            await found.send(samples(n, round_ * n), 8)
            taken = (time.perf_counter() - began, cpu_s(process) - used)
            row(f"{count} slow connections", n, taken, found.waits, found.replies)
            await asyncio.gather(*dripping)
    print(f"\nthe slow ones were open for {min(lasted):.1f} to {max(lasted):.1f} s")


def rows(path: Path) -> list[dict[str, Any]]:
    """Return the whole lines of a file."""
    text = path.with_suffix(".jsonl").read_text()
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--entailer", default="lexical")
    parser.add_argument("--kill", type=int, default=0, metavar="N")
    parser.add_argument("--slow", type=int, default=0, metavar="N")
    options = parser.parse_args()
    if options.slow:
        asyncio.run(slowed(options.requests, options.entailer, options.slow))
    elif options.kill:
        asyncio.run(killed(options.requests, options.entailer, options.kill))
    else:
        asyncio.run(latency(options.requests, options.entailer))


if __name__ == "__main__":
    main()
