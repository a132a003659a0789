"""``gguf:`` in process beside the same file behind llama.cpp's own HTTP server.

    python -m lab.benchmarks.local_models
    python -m lab.benchmarks.gguf [--model 1.5b] [--passages 6] [--questions 16]

Two kinds of work, each by both: claims about passages (six to a passage, two questions of one token
each), and short answers (32 tokens at most). Told are calls a second, prompt tokens that were read
a call, and the peak of memory of the process that holds the model. Writes
``results/gguf-MODEL.json``.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import re
import resource
import socket
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from lab.benchmarks.capacity import sentence
from lab.benchmarks.local_models import path_of
from lab.results import write_result
from trustassay.backends.chat_entailer import ChatEntailer, EntailmentOptions
from trustassay.backends.gguf import GgufChat
from trustassay.backends.resolve import chat
from trustassay.core.capabilities import ChatRequest

CLAIMS, SEQUENCES, CONTEXT = 6, 4, 2048


def claims(passages: int) -> list[tuple[str, str]]:
    """Return pairs of a passage of 100 words and a claim, six for each passage."""
    generator = np.random.default_rng(0)
    pairs = []
    for _ in range(passages):
        told = [sentence(generator) for _ in range(6)]
        passage = " ".join(long for long, _ in told)
        pairs += [(passage, short) for _, short in told]
    return pairs


def work_of(passages: int, questions: int) -> dict[str, list[ChatRequest]]:
    """Return the two kinds of work as requests."""

    class Silent:
        name = "silent"

    entailer = ChatEntailer(Silent(), EntailmentOptions(by="odds"))  # type: ignore[arg-type]
    asked = [entailer.odds_request(pair, end) for pair in claims(passages) for end in (False, True)]
    return {
        "claims about passages": asked,
        "short answers": [
            ChatRequest.of(f"In one sentence: what is the number {n} known for?", max_tokens=32)
            for n in range(questions)
        ],
    }


@contextmanager
def served(path: str) -> Iterator[tuple[str, Callable[[], int]]]:
    """Run llama.cpp's server on a model, in a process of its own.

    Yields its address, and what ends it and returns the peak of its memory in MB.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    context = multiprocessing.get_context("spawn")
    pipe, its = context.Pipe()
    worker = context.Process(target=_serve, args=(path, port, its))
    worker.start()
    pipe.recv()

    def end() -> int:
        pipe.send("end")
        peak: int = pipe.recv()
        return peak

    try:
        yield f"http://127.0.0.1:{port}", end
    finally:
        worker.terminate()
        worker.join()


def _serve(path: str, port: int, pipe: Any) -> None:
    import xllamacpp

    given = xllamacpp.CommonParams()
    given.model.path, given.hostnames, given.port = path, ["127.0.0.1"], port
    given.n_ctx, given.n_parallel = CONTEXT * SEQUENCES, SEQUENCES
    given.cpuparams.n_threads = given.cpuparams_batch.n_threads = os.cpu_count() or 1
    given.endpoint_metrics, given.verbosity = True, -1
    server = xllamacpp.Server(given)
    pipe.send(server.listening_address)
    pipe.recv()
    pipe.send(peak_mb())


def peak_mb() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def read_by(address: str) -> int:
    """Return the prompt tokens that a server has computed."""
    with urllib.request.urlopen(f"{address}/metrics") as reply:
        text = reply.read().decode()
    found = re.search(r"^llamacpp:prompt_tokens_total (\d+)", text, re.MULTILINE)
    assert found
    return int(found[1])


def in_process(path: str, work: dict[str, list[ChatRequest]]) -> dict[str, Any]:
    model = GgufChat(path, parallel=SEQUENCES, context=CONTEXT)
    figures: dict[str, Any] = {}
    for name, asked in work.items():
        before, started = model.tokens_read, time.perf_counter()
        step = model.limits.items
        ordered = sorted(asked, key=lambda request: request.messages[0].content)
        for start in range(0, len(ordered), step):
            model.replies(ordered[start : start + step])
        seconds = time.perf_counter() - started
        figures[name] = row(len(asked), seconds, model.tokens_read - before)
    return figures | {"peak_mb": peak_mb()}


async def over_http(address: str, work: dict[str, list[ChatRequest]]) -> dict[str, Any]:
    model: Any = chat(f"openai:local@{address}/v1?key=")
    figures: dict[str, Any] = {}
    room = asyncio.Semaphore(SEQUENCES)

    async def ask(request: ChatRequest) -> None:
        async with room:
            await model.reply(request)

    for name, asked in work.items():
        before, started = read_by(address), time.perf_counter()
        await asyncio.gather(*map(ask, asked))
        seconds = time.perf_counter() - started
        figures[name] = row(len(asked), seconds, read_by(address) - before)
    await model.close()
    return figures


def row(calls: int, seconds: float, read: int) -> dict[str, float]:
    return {
        "calls": calls,
        "calls_a_second": round(calls / seconds, 2),
        "prompt_tokens_read_a_call": round(read / calls, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", choices=["0.5b", "1.5b"], default="1.5b")
    parser.add_argument("--passages", type=int, default=6)
    parser.add_argument("--questions", type=int, default=16)
    options = parser.parse_args()
    path = str(path_of(options.model))
    work = work_of(options.passages, options.questions)
    with served(path) as (address, end):
        http = asyncio.run(over_http(address, work)) | {"peak_mb": end()}
    figures = {
        "load_before": os.getloadavg()[0],
        "http": http,
        "in_process": in_process(path, work),
    }
    print(json.dumps(figures, indent=1))
    write_result(
        f"gguf-{options.model}",
        f"python -m lab.benchmarks.gguf --model {options.model} --passages {options.passages} "
        f"--questions {options.questions}",
        f"made: {CLAIMS} claims about each passage, and questions; {os.cpu_count()} cores",
        figures,
    )


if __name__ == "__main__":
    main()
