"""When the first answer comes, and the last of 200, from servers that answer few calls at once.

    python -m lab.benchmarks.ramp_up                 # six servers and one with room: three minutes
    python -m lab.benchmarks.ramp_up --call-s 1      # calls of a second: ten minutes
    python -m lab.benchmarks.ramp_up --scatter 0.5   # calls of different length

A server of OpenAI's API on 127.0.0.1, in a process of its own, takes a quarter of a second for a
call as long as no more are in progress than it has slots. A ``queue`` answers further calls when a
slot is free, as llama.cpp does. A ``shared`` server answers all at once, each the slower the more
there are, as one that batches on a small processor. The command ``trustassay generate`` asks it,
with 64 calls at once at most: once with the ramp, and once with 64 from the beginning, as before.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from aiohttp import web
from tests.calls.simulated import Length, Queue, Shared

CALLS, AT_ONCE = 200, 64
KINDS: dict[str, type[Queue] | type[Shared]] = {"queue": Queue, "shared": Shared}
SERVERS = [("queue", 2), ("queue", 8), ("queue", 64), ("shared", 2), ("shared", 8), ("shared", 64)]
FAST_SLOTS = 10_000
"""Slots of an endpoint that always has room."""
ASKS = """
import sys
from functools import partial
from trustassay.__main__ import main
from trustassay.calls import ramp, retry

if sys.argv.pop(1) == "at once":
    retry.Ramp = partial(ramp.Ramp, first=10**6)
main()
"""


class Measured(NamedTuple):
    """Seconds from the first call that a server received to answers."""

    first_s: float
    all_s: float
    most: int
    """Calls in progress at once."""


def serve(kind: str, slots: int, length_s: Length) -> None:
    """Serve until the process is ended; print the port, and then a line for each answer."""
    active, most, began = 0, 0, 0.0
    model = KINDS[kind](slots, length_s)

    async def answer(_: web.BaseRequest) -> web.StreamResponse:
        nonlocal active, most, began
        began = began or time.perf_counter()
        active += 1
        most = max(most, active)
        await model()
        active -= 1
        print(json.dumps([time.perf_counter() - began, most]), flush=True)
        message = {"role": "assistant", "content": "It is 7."}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return web.json_response({"object": "chat.completion", "choices": [choice]})

    async def run() -> None:
        runner = web.ServerRunner(web.Server(answer, access_log=None))
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0, backlog=1024)
        await site.start()
        assert isinstance(site._server, asyncio.Server)
        print(site._server.sockets[0].getsockname()[1], flush=True)
        await asyncio.Event().wait()

    asyncio.run(run())


def measure(kind: str, slots: int, call_s: float, scatter: float, way: str) -> Measured:
    """Ask a new server in a way: with the ramp, or all ``at once``."""
    server = subprocess.Popen(
        [sys.executable, "-m", __spec__.name, "--serve", f"{kind} {slots} {call_s} {scatter}"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdout
    port = int(server.stdout.readline())
    with tempfile.TemporaryDirectory() as folder:
        questions = Path(folder) / "questions.jsonl"
        rows = [{"id": str(n), "question": f"What is {n} and 7?"} for n in range(CALLS)]
        questions.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        model = f"openai:test@http://127.0.0.1:{port}/v1?key=&concurrency={AT_ONCE}"
        asking = [sys.executable, "-c", ASKS, way, "generate", str(questions), "--model", model]
        asking += ["--out", str(Path(folder) / "answers.jsonl"), "--cache", "off", "--quiet"]
        subprocess.run(asking, check=True, capture_output=True)
    server.terminate()
    answers = [json.loads(line) for line in server.stdout]
    assert len(answers) == CALLS
    return Measured(answers[0][0], answers[-1][0], answers[-1][1])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--call-s", type=float, default=0.25, help="seconds of one call")
    parser.add_argument("--scatter", type=float, default=0.0, help="sigma of their logarithm")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        kind, slots, call_s, scatter = options.serve.split()
        drawn, spread = random.Random(1), float(scatter)
        serve(
            kind,
            int(slots),
            lambda: float(call_s) * drawn.lognormvariate(-(spread**2) / 2, spread),
        )
        return
    print(f"| {CALLS} calls of {options.call_s:g} s | first answer | | all answers | | at once |")
    print("| --- | --- | --- | --- | --- | --- |")
    print("| | 64 at once | ramp | 64 at once | ramp | ramp |")
    for kind, slots in [*SERVERS, ("queue", FAST_SLOTS)]:
        before, after = (
            measure(kind, slots, options.call_s, options.scatter, way)
            for way in ("at once", "ramp")
        )
        what = "always room" if slots == FAST_SLOTS else f"{kind}, {slots} slots"
        print(
            f"| {what} | {before.first_s:.1f} s | {after.first_s:.1f} s | {before.all_s:.1f} s "
            f"| {after.all_s:.1f} s | {after.most} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
