"""What a request costs over HTTP, beside the model's own time, and what a kill under load loses.

    python -m lab.benchmarks.serving [--requests 1000] [--entailer lexical]
    python -m lab.benchmarks.serving --entailer embedded lexical --tokens --before PATH --write
    python -m lab.benchmarks.serving --kill 3
    python -m lab.benchmarks.serving --slow 1000

`trustassay serve` runs in a process of its own; the clients are tasks of this one, each with a
connection of its own, at 127.0.0.1. First: all requests at once (samples of two sentences and two
passages, all different, `faithfulness`); 1, 8 and 64 clients that each send the next when they have
the answer to the last; one request with all samples, streamed. The model's own time is that of a
resident scorer in this process that is given all samples at once, without HTTP. A reply of 429 is
obeyed and counted, and its waiting is part of the latency. With `--tokens` each of the clients has
a token of its own. With `--before` the service of another checkout is measured beside this one, in
turns, and the figures are medians of three rounds; `--write` writes `results/serving.json`.

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
import itertools
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing import Manager
from pathlib import Path
from statistics import median
from typing import Any

import aiohttp
import numpy as np

from lab.benchmarks.scorer import METRIC, Stopwatch, samples
from lab.benchmarks.tables import SERVING_COLUMNS, table_lines
from lab.results import write_result
from trustassay import scorer
from trustassay.live.service import TOKEN_VARIABLE

PORT = 18799
URL = f"http://127.0.0.1:{PORT}"
COME_AGAIN = (429, 503)
THIS = Path(__file__).parents[2]
"""The checkout that this file is part of."""
ROUNDS_BESIDE = 3
"""Rounds of each of two checkouts that are compared."""


def environment_of(source: Path, tokens: Sequence[str] = ()) -> dict[str, str]:
    """Return the environment in which the service of a checkout runs, and asks for the tokens."""
    result = {**os.environ, "PYTHONPATH": str((source / "src").resolve())}
    result.pop(TOKEN_VARIABLE, None)
    return result | ({TOKEN_VARIABLE: ",".join(tokens)} if tokens else {})


def commit_of(source: Path) -> str:
    """Return the commit of a checkout, and whether files differ from it."""
    command = ["git", "-C", str(source), "describe", "--always", "--dirty", "--exclude", "*"]
    result = subprocess.run(command, check=False, capture_output=True, text=True)
    return result.stdout.strip() or "no commit"


def tokens_of(callers: int) -> list[str]:
    return [f"token-of-caller-{number:04d}" for number in range(callers)]


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


@asynccontextmanager
async def serving(
    *arguments: str, metric: str = METRIC, source: Path = THIS, tokens: Sequence[str] = ()
) -> AsyncIterator[subprocess.Popen[bytes]]:
    words = ["serve", "--metric", metric, "--port", str(PORT), "--per-minute", "1000000"]
    check_port()
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "trustassay", *words, *arguments],
            env=environment_of(source, tokens),
            stderr=errors,
        )
        try:
            if not await is_ready(process):
                errors.seek(0)
                raise SystemExit(f"the service did not start: {errors.read().decode()}")
            yield process
        finally:
            process.kill()
            process.wait()


def check_port() -> None:
    """Raise SystemExit if something listens at the port: its replies would be measured."""
    with socket.socket() as client:
        if client.connect_ex(("127.0.0.1", PORT)) == 0:
            raise SystemExit(f"port {PORT} is in use: wait until the other benchmark has ended")


async def is_ready(process: subprocess.Popen[bytes]) -> bool:
    """Wait until the service is ready; return whether it is, or has ended."""
    async with aiohttp.ClientSession() as session:
        while process.poll() is None:
            with suppress(aiohttp.ClientError):
                async with session.get(f"{URL}/health") as reply:
                    # It listens while it loads its models, and says 503.
                    if reply.status == 200:
                        return True
            await asyncio.sleep(0.05)
    return False


def cpu_s(process: subprocess.Popen[bytes]) -> float:
    """Return the seconds of the processor that a process has taken."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Clients:
    """Sends samples, and sends again as it is told to; each client has the next of the tokens."""

    def __init__(self, tokens: Sequence[str] = ()) -> None:
        self._headers = [bearer(token) for token in tokens] or [{}]
        self.replies: Counter[str] = Counter()
        self.waits: list[float] = []
        self.scores: dict[str, float] = {}

    async def score(
        self, session: aiohttp.ClientSession, one: dict[str, Any], headers: dict[str, str]
    ) -> None:
        began = time.perf_counter()
        while True:
            try:
                async with session.post(f"{URL}/v1/score", json=one, headers=headers) as reply:
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

        async def client(session: aiohttp.ClientSession, headers: dict[str, str]) -> None:
            for one in waiting:
                await self.score(session, one, headers)

        async with session_of(clients) as session:
            headers = itertools.islice(itertools.cycle(self._headers), clients)
            await asyncio.gather(*(client(session, each) for each in headers))


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


async def streamed(every: list[dict[str, Any]], headers: dict[str, str]) -> list[float]:
    """Return when each line came, of one request with all samples."""
    came = []
    async with session_of(1) as session:
        began = time.perf_counter()
        async with session.post(f"{URL}/v1/score", json=every, headers=headers) as reply:
            assert reply.status == 200
            async for line in reply.content:
                assert "error" not in json.loads(line)
                came.append(time.perf_counter() - began)
    return came


def figures_of(
    what: str, n: int, taken: tuple[float, float], waits: Sequence[float], replies: Counter[str]
) -> dict[str, Any]:
    """Return a row of the table: n samples, the seconds that they took, those of each wait."""
    result: dict[str, Any] = {"how": what}
    result["ms_a_sample"], result["cpu_ms_a_sample"] = (
        round(seconds / n * 1000, 2) for seconds in taken
    )
    if waits:
        middle, late = np.percentile(waits, [50, 99]) * 1000
        result |= {"waits_ms_median": round(float(middle), 1), "waits_ms_99": round(float(late), 1)}
        result["requests_per_s"] = round(replies["200"] / taken[0], 2)
        counts = sorted(replies.items())
        result["replies"] = ", ".join(f"{count} x {name}" for name, count in counts)
    return result


def medians_of(rounds: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return one row for those of several rounds: the median of each number, the last text."""
    return {
        key: value if isinstance(value, str) else round(median(one[key] for one in rounds), 2)
        for key, value in rounds[-1].items()
    }


def show_head() -> None:
    print("\n".join(table_lines([key.replace("_", " ") for key in SERVING_COLUMNS], [])))


def show(figures: dict[str, Any]) -> None:
    cells = (str(figures.get(key, "")) for key in SERVING_COLUMNS)
    print(f"| {' | '.join(cells)} |", flush=True)


async def latency(
    n: int, entailer: str, source: Path, *, with_tokens: bool
) -> list[dict[str, Any]]:
    """Measure the service of a checkout once; print the rows, and return them."""
    print(f"\n{n} samples, {METRIC}, entailer {entailer}, {commit_of(source)}; ", end="")
    print(f"load average {os.getloadavg()[0]:.1f}\n")
    show_head()
    result = []
    tokens = tokens_of(64) if with_tokens else []
    if source == THIS:  # the scorer is in this process
        own = await models_own(n, 0, entailer)
        result.append(figures_of("scorer without HTTP, all at once", n, own, (), Counter()))
        show(result[-1])
    async with serving("--entailer", entailer, source=source, tokens=tokens) as process:
        await Clients(tokens).send(samples(1, 10**6), 1)  # loads the model
        for round_, clients in enumerate((n, 1, 8, 64), 1):
            sending, began, used = Clients(tokens), time.perf_counter(), cpu_s(process)
            count = min(n, 100 * clients)
            await sending.send(samples(count, round_ * n), clients)
            taken = (time.perf_counter() - began, cpu_s(process) - used)
            assert len(sending.scores) == count
            noun = "client" if clients == 1 else "clients"
            what = f"{n} requests at once" if clients == n else f"{clients} {noun}"
            result.append(figures_of(what, count, taken, sending.waits, sending.replies))
            show(result[-1])
        used = cpu_s(process)
        came = await streamed(samples(n, 9 * n), bearer(tokens[0]) if tokens else {})
        assert len(came) == n
        taken = (came[-1], cpu_s(process) - used)
        result.append(figures_of("one request, streamed", n, taken, came, Counter({"200": 1})))
        show(result[-1])
    return result


def compare(options: argparse.Namespace) -> None:
    """Measure each entailer, with `--before` in turns with that of another checkout."""
    sources = {"": THIS} | ({"_before": options.before.resolve()} if options.before else {})
    figures: dict[str, list[dict[str, Any]]] = {}
    for entailer in options.entailer:
        rounds: dict[str, list[list[dict[str, Any]]]] = {suffix: [] for suffix in sources}
        for _ in range(ROUNDS_BESIDE if options.before else 1):
            for suffix, source in sources.items():
                measuring = latency(options.requests, entailer, source, with_tokens=options.tokens)
                rounds[suffix].append(asyncio.run(measuring))
        for suffix, measured in rounds.items():
            figures[entailer + suffix] = [medians_of(same) for same in zip(*measured, strict=True)]
    if options.before:
        for name, medians in figures.items():
            print(f"\n{name}, medians of {ROUNDS_BESIDE} rounds\n")
            show_head()
            for one in medians:
                show(one)
    if options.write:
        command = f"python -m lab.benchmarks.serving --entailer {' '.join(options.entailer)}"
        command += f" --requests {options.requests}"
        command += " --tokens" * options.tokens + " --before PATH" * bool(options.before)
        data = f"made: short samples of two sentences; commit {commit_of(THIS)}"
        if options.before:
            data += f", before: {commit_of(options.before)}; medians of {ROUNDS_BESIDE} rounds"
        print(write_result("serving", f"{command} --write", data, figures))


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
    show_head()
    async with serving("--entailer", entailer) as process:
        await Clients().send(samples(1, 10**6), 1)  # loads the model
        for round_, count in enumerate((0, slow)):
            dripping = [asyncio.create_task(drip()) for _ in range(count)]
            await asyncio.sleep(2)
            found, began, used = Clients(), time.perf_counter(), cpu_s(process)
            await found.send(samples(n, round_ * n), 8)
            taken = (time.perf_counter() - began, cpu_s(process) - used)
            what = f"{count} slow connections"
            show(figures_of(what, n, taken, found.waits, found.replies))
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
    parser.add_argument("--entailer", nargs="+", default=["lexical"])
    parser.add_argument("--tokens", action="store_true", help="each client has its own")
    parser.add_argument("--before", type=Path, metavar="PATH", help="another checkout")
    parser.add_argument("--write", action="store_true", help="write results/serving.json")
    parser.add_argument("--kill", type=int, default=0, metavar="N")
    parser.add_argument("--slow", type=int, default=0, metavar="N")
    parser.add_argument("--long", type=int, default=0, metavar="N")
    options = parser.parse_args()
    entailer = options.entailer[0]
    if options.long:
        asyncio.run(of_long_answers(options.long, entailer))
    elif options.slow:
        asyncio.run(slowed(options.requests, entailer, options.slow))
    elif options.kill:
        asyncio.run(killed(options.requests, entailer, options.kill))
    else:
        compare(options)


if __name__ == "__main__":
    main()
