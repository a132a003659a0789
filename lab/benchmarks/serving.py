"""What a request costs over HTTP, beside the model's own time, and what a kill under load loses.

    python -m lab.benchmarks.serving [--requests 1000] [--entailer lexical]
    python -m lab.benchmarks.serving --kill 3
    python -m lab.benchmarks.serving --slow 1000

`trustassay serve` runs in a process of its own; the clients are tasks of this one, each with a
connection of its own, at 127.0.0.1. First: all requests at once (samples of two sentences and two
passages, all different, `faithfulness`); 1, 8 and 64 clients that each send the next when they have
the answer to the last; one request with all samples, streamed. The model's own time is that of a
resident scorer in this process that is given all samples at once, without HTTP. A reply of 429 is
obeyed and counted, and its waiting is part of the latency.

With `--kill N`: the service, with a folder, is killed N times (SIGKILL) while 64 clients send; each
start takes up the folder. A client without a reply sends again. Told are the replies, what was
sent again, and whether every sample is in the folder once with the score that its client has.

With `--long 10`: ten requests at once whose answer is 600,000 times "[1]", and then ten whose
answer is as long as is assessed (99,000 characters, 900 sentences that cite), to the service and
through its proxy, while `/health` is asked again and again. Writes `results/long-answers.json`.

With `--slow N`: N connections send a byte of a request's head each second, while 8 clients send.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import asynccontextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing import Manager
from pathlib import Path
from typing import Any

import aiohttp
import numpy as np

from lab.benchmarks.scorer import METRIC, Stopwatch, samples
from lab.results import write_result
from trustassay import scorer

PORT = 18799
URL = f"http://127.0.0.1:{PORT}"
COME_AGAIN = (429, 503)


@asynccontextmanager
async def serving(*arguments: str, metric: str = METRIC) -> AsyncIterator[subprocess.Popen[bytes]]:
    words = ["serve", "--metric", metric, "--port", str(PORT), "--per-minute", "1000000"]
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


SENTENCE = (
    "The tower on the left bank of the river was built from iron in the spring of the year 1889, "
    "they say [1]. "
)
LONG = {"600,000 times [1]": "[1]" * 600_000, "99,000 characters": (SENTENCE * 1000)[:99_000]}
PASSAGE = "The tower was built from iron. It stands on the left bank of the river. " * 20


class Upstream(BaseHTTPRequestHandler):
    """A model whose answer is what the user said."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        message = {"role": "assistant", "content": LONG[asked["messages"][0]["content"]]}
        body = json.dumps({"choices": [{"index": 0, "message": message}]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


def healths(ended: Any) -> list[float]:
    """Ask for `/health` until it is enough; return the seconds that each reply took."""
    found = []
    connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=600)
    while not ended.is_set():
        began = time.perf_counter()
        connection.request("GET", "/health")
        connection.getresponse().read()
        found.append(time.perf_counter() - began)
        time.sleep(0.005)
    return found


def post(path: str, content: str) -> Any:
    connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=600)
    connection.request("POST", path, content, {"Content-Type": "application/json"})
    return json.loads(connection.getresponse().read())


async def of_long_answers(n: int, entailer: str) -> None:
    upstream = ThreadingHTTPServer(("127.0.0.1", 0), Upstream)
    threading.Thread(target=upstream.serve_forever, daemon=True).start()
    at = f"http://127.0.0.1:{upstream.server_port}/v1"
    figures: dict[str, Any] = {}
    print(
        "| requests | seconds | replies of /health | ms: median | 99 % | longest | idle | outcome |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for metric in ("faithfulness", "grounding"):
        async with serving("--entailer", entailer, "--upstream", at, metric=metric):
            await asyncio.to_thread(
                post, "/v1/score", json.dumps(samples(1, 10**6)[0])
            )  # loads the model
            for name, answer in LONG.items():
                sample = {"question": "When?", "response": answer, "documents": [PASSAGE]}
                chat = {"messages": [{"role": "user", "content": name}], "documents": [PASSAGE]}
                for way, path, body in (
                    ("serve", "/v1/score", sample),
                    ("proxy", "/v1/chat/completions", chat),
                ):
                    what = f"{metric}, {way}, {n} x {name}"
                    figures[what] = found = await asyncio.to_thread(beside, n, path, body)
                    print(f"| {what} | " + " | ".join(map(str, found.values())) + " |", flush=True)
    upstream.shutdown()
    command = f"python -m lab.benchmarks.serving --long {n} --entailer {entailer}"
    data = f"made-up answers; two cores, load average of other work {os.getloadavg()[1]:.0f}"
    write_result("long-answers", command, data, figures)


def beside(n: int, path: str, body: Any) -> dict[str, Any]:
    """Send n requests at once; return how long `/health` took meanwhile."""
    sent = json.dumps(body)
    with Manager() as manager, ProcessPoolExecutor(1) as other, ThreadPoolExecutor(n) as threads:
        idle = manager.Event()
        asking = other.submit(healths, idle)
        time.sleep(2)
        idle.set()
        alone = max(asking.result()) * 1000
        ended = manager.Event()
        asking = other.submit(healths, ended)
        began = time.perf_counter()
        replies = list(threads.map(lambda _: post(path, sent), range(n)))
        taken = time.perf_counter() - began
        ended.set()
        waits = np.array(asking.result()) * 1000
    told = [one.get("trustassay", {}).get("verdicts", [one])[0] for one in replies]
    outcomes = Counter(
        "too long" if one["error"] else "scored" for row in told for one in row["metrics"].values()
    )
    middle, late = np.percentile(waits, [50, 99])
    return {
        "seconds": round(taken, 2),
        "healths": len(waits),
        "median_ms": round(float(middle), 1),
        "late_ms": round(float(late), 1),
        "longest_ms": round(float(waits.max()), 1),
        "longest_idle_ms": round(alone, 1),
        "outcomes": ", ".join(f"{count} {name}" for name, count in outcomes.items()),
    }


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
    parser.add_argument("--long", type=int, default=0, metavar="N")
    options = parser.parse_args()
    if options.long:
        asyncio.run(of_long_answers(options.long, options.entailer))
    elif options.slow:
        asyncio.run(slowed(options.requests, options.entailer, options.slow))
    elif options.kill:
        asyncio.run(killed(options.requests, options.entailer, options.kill))
    else:
        asyncio.run(latency(options.requests, options.entailer))


if __name__ == "__main__":
    main()
