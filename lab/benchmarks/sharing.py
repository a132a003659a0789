"""What other callers of the service wait while one caller sends a batch.

    python -m lab.benchmarks.sharing                      # this checkout: nine minutes, two cores
    python -m lab.benchmarks.sharing --before PATH        # another checkout first, then this one
    python -m lab.benchmarks.sharing --one-token          # all callers have the same token
    python -m lab.benchmarks.sharing --batches 3          # three callers send a batch each
    python -m lab.benchmarks.sharing --many-small         # 1,000 requests at once, and no list
    python -m lab.benchmarks.sharing --samples 60 --limit 900     # a batch that ends

`trustassay serve` runs in a process of its own, with the embedded entailer, the proxy and the
guardrail; it withholds answers that have no verdict or a bad one. Its clients have a token each:

* batch: curl sends a list of 1,000 samples of 95 sentences to `/v1/score`;
* chat: the client of OpenAI asks for chats with passages, one after the other. The model behind
  the proxy answers at once with a sentence of the passage, which no check should withhold;
* single: aiohttp sends samples of two sentences to `/v1/score`, one after the other.

Three times a new service starts: for chat and single without a batch, for the batch alone, and for
all together. There chat and single begin once samples of the batch are accepted. A part ends after
`--limit` seconds if the batch does not, as 1,000 such samples do not within the default of 240;
requests in progress are then still waited for. A reply of 429 or 503 is obeyed and counted, and its
waiting is part of the time of the request.

Writes `results/sharing.json`, for the variants `results/sharing-VARIANT.json`. Run it on a machine
without other work.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import multiprocessing
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import numpy as np
import openai
from aiohttp import web

from lab.benchmarks.capacity import sentence
from lab.benchmarks.serving import (
    COME_AGAIN,
    THIS,
    URL,
    bearer,
    commit_of,
    environment_of,
    serving,
    session_of,
    tokens_of,
)
from lab.benchmarks.tables import sharing_tables, table_lines
from lab.results import write_result

SAMPLES = 1000
"""Samples of a batch."""
SENTENCES = 95
"""Sentences of an answer of the batch: about 5 kB."""
SENTENCES_OF_PASSAGE = 10
STRICT = ("--block-below", "faithfulness=0.5", "--block-unscored")
GRACE_S = 120.0
"""Seconds that the last requests of chat and single have after the batch has ended."""
SPARE_CAPACITY = 24
"""Room of the service beside the samples of the batches, as 1,000 of its default leave."""


def make_samples(seed: Sequence[int], sentences: int) -> Iterator[dict[str, Any]]:
    """Yield different samples without end, most of whose sentences are supported.

    Args:
        seed: of the random numbers. sentences: of each answer; every tenth is in no passage.
    """
    generator = np.random.default_rng(seed)
    while True:
        facts = [sentence(generator) for _ in range(sentences)]
        claims = [claim for _, claim in facts]
        claims[9::10] = [sentence(generator)[1] for _ in claims[9::10]]
        texts = [text for text, _ in facts]
        yield {
            "question": "What is known of the places in the report?",
            "response": " ".join(claims),
            "documents": [
                " ".join(texts[start : start + SENTENCES_OF_PASSAGE])
                for start in range(0, sentences, SENTENCES_OF_PASSAGE)
            ],
        }


def chat_of(sample: dict[str, Any]) -> dict[str, Any]:
    """Return the body of a chat that asks about the passages of a sample."""
    passages = "\n".join(sample["documents"])
    return {
        "model": "made",
        "messages": [
            {"role": "system", "content": passages},
            {"role": "user", "content": sample["question"]},
        ],
    }


@asynccontextmanager
async def running_model() -> AsyncIterator[str]:
    """Serve a model that answers with the first sentence of the passages; yield its address."""

    async def answer(request: web.Request) -> web.Response:
        passages = (await request.json())["messages"][0]["content"]
        message = {"role": "assistant", "content": passages.partition(". ")[0].rstrip(".") + "."}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        content = {"object": "chat.completion", "model": "made", "created": 0, "choices": [choice]}
        return web.json_response({"id": "chat", **content})

    app = web.Application()
    app.router.add_post("/v1/chat/completions", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    finally:
        await runner.cleanup()


class ServiceReply(NamedTuple):
    """What a client is told."""

    status: int
    retry_after_s: float = 0.0
    is_judged: bool = False
    is_blocked: bool = False


@dataclass
class CallerLog:
    """What a client has waited for, and what it was told."""

    waits_s: list[float] = field(default_factory=list)
    """Seconds of each request, also of one that was given up at the end."""
    outcomes: Counter[str] = field(default_factory=Counter)
    statuses: Counter[str] = field(default_factory=Counter)
    retry_after_s: Counter[str] = field(default_factory=Counter)
    """How often a client was sent away for so many seconds."""

    def note(self, reply: ServiceReply) -> None:
        """Count a reply."""
        self.statuses[str(reply.status)] += 1
        if reply.status in COME_AGAIN:
            self.retry_after_s[f"{reply.retry_after_s:g}"] += 1
            return
        self.outcomes["answers"] += 1
        self.outcomes["not_judged"] += not reply.is_judged
        self.outcomes["blocked"] += reply.is_blocked

    def replies(self) -> dict[str, Any]:
        """Return how often each status came, and each number of seconds to wait."""
        return {
            "statuses": dict(sorted(self.statuses.items())),
            "retry_after_s": dict(sorted(self.retry_after_s.items())),
        }

    def figures(self) -> dict[str, Any]:
        """Return what the client waited, and how many answers were blocked or not judged."""
        waits = np.array(self.waits_s or [np.nan])
        middle, late = np.percentile(waits, [50, 99])
        return {
            "count": len(self.waits_s),
            "p50_s": round(float(middle), 3),
            "p99_s": round(float(late), 3),
            "max_s": round(float(waits.max()), 3),
            "blocked": self.outcomes["blocked"],
            "not_judged": self.outcomes["not_judged"],
            "unanswered": len(self.waits_s) - self.outcomes["answers"],
            **self.replies(),
        }


Ask = Callable[[], Awaitable[ServiceReply]]


async def ask_once(ask: Ask, log: CallerLog) -> None:
    """Ask until the service takes the request, and note what came of it."""
    began = time.perf_counter()
    try:
        while True:
            reply = await ask()
            log.note(reply)
            if reply.status not in COME_AGAIN:
                break
            await asyncio.sleep(reply.retry_after_s)
    finally:
        # A request that is given up has waited, too: without it the slowest would not count.
        log.waits_s.append(time.perf_counter() - began)


async def ask_until(stop: asyncio.Event, ask: Ask, log: CallerLog, pause_s: float) -> None:
    """Ask again and again, the next time after the answer and a pause, until ``stop`` is set."""
    while not stop.is_set():
        await ask_once(ask, log)
        await asyncio.sleep(pause_s)


def ask_for_chats(
    client: openai.AsyncOpenAI, samples: Iterator[dict[str, Any]], headers: Mapping[str, str]
) -> Ask:
    """Return a function that asks for a chat through the proxy and reads its verdict."""

    async def ask() -> ServiceReply:
        sample = next(samples)
        try:
            answer = await client.chat.completions.create(
                **chat_of(sample),
                extra_body={"documents": sample["documents"]},
                extra_headers=headers,
            )
        except openai.APIStatusError as error:
            wait = float(error.response.headers.get("retry-after", 1))
            return ServiceReply(error.status_code, wait)
        verdict = (answer.model_extra or {})["trustassay"]["verdicts"][0]
        scores = [result["score"] for result in verdict.get("metrics", {}).values()]
        is_judged = any(score is not None for score in scores)
        return ServiceReply(200, 0, is_judged, verdict["status"] == "blocked")

    return ask


def ask_for_scores(
    session: aiohttp.ClientSession, samples: Iterator[dict[str, Any]], headers: Mapping[str, str]
) -> Ask:
    """Return a function that has one sample scored."""

    async def ask() -> ServiceReply:
        url, sample = f"{URL}/v1/score", next(samples)
        async with session.post(url, json=sample, headers=headers) as reply:
            content = await reply.json()
            if reply.status != 200:
                return ServiceReply(reply.status, float(reply.headers.get("Retry-After", 1)))
            return ServiceReply(200, 0, content.get("judged", False))

    return ask


def count_results(lines: Sequence[bytes]) -> dict[str, int]:
    """Count the results in lines of JSON; a last line that broke off does not count."""
    rows = [json.loads(line) for line in lines if line.endswith(b"\n")]
    judged = sum(bool(row.get("judged")) for row in rows)
    return {"results": len(rows), "not_judged": len(rows) - judged}


async def send_list(path: Path, headers: Mapping[str, str], limit_s: float) -> dict[str, Any]:
    """Send the list in a file by curl, again until it is accepted.

    Args:
        path: the file. headers: of the request. limit_s: seconds after which it is given up.

    Returns:
        The seconds, ``None`` if it was given up, and counts of results and replies.
    """
    log = CallerLog()
    results = path.with_suffix(".results")
    command = ["curl", "-sS", "--no-buffer", "--noproxy", "*", "--output", str(results)]
    command += ["--write-out", "%{http_code} %header{retry-after}", "--data-binary", f"@{path}"]
    for name, value in {"Content-Type": "application/json", **headers}.items():
        command += ["--header", f"{name}: {value}"]

    async def ask() -> ServiceReply:
        process = await asyncio.create_subprocess_exec(
            *command, f"{URL}/v1/score", stdout=subprocess.PIPE
        )
        try:
            output, _ = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        status, _, wait = output.decode().partition(" ")
        return ServiceReply(int(status), float(wait or 1))

    seconds = await timed(ask_once(ask, log), limit_s)
    lines = results.read_bytes().splitlines(keepends=True) if results.exists() else []
    return {"seconds": seconds, **count_results(lines), **log.replies()}


async def send_each(path: Path, headers: Mapping[str, str], limit_s: float) -> dict[str, Any]:
    """Send each sample of the list in a file as a request of its own, all at once.

    The clients run in another process, so that chat and single do not wait for them.
    """
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(pool, _send_each, path, headers, limit_s)


def _send_each(path: Path, headers: Mapping[str, str], limit_s: float) -> dict[str, Any]:
    samples, log = json.loads(path.read_bytes()), CallerLog()

    async def send() -> float | None:
        async with session_of(len(samples)) as session:
            asks = [ask_for_scores(session, iter([sample]), headers) for sample in samples]
            return await timed(asyncio.gather(*(ask_once(ask, log) for ask in asks)), limit_s)

    seconds = asyncio.run(send())
    counts = {"results": log.outcomes["answers"], "not_judged": log.outcomes["not_judged"]}
    return {"seconds": seconds, **counts, **log.replies()}


async def timed(work: Awaitable[Any], limit_s: float) -> float | None:
    """Return the seconds that work takes, ``None`` if it is given up after the limit."""
    began = time.perf_counter()
    try:
        async with asyncio.timeout(limit_s):
            await work
    except TimeoutError:
        return None
    return round(time.perf_counter() - began, 2)


def options_of(source: Path) -> set[str]:
    """Return the options of ``serve`` that a checkout has."""
    command = [sys.executable, "-m", "trustassay", "serve", "--help-all"]
    text = subprocess.run(
        command, check=True, capture_output=True, text=True, env=environment_of(source)
    ).stdout
    return set(re.findall(r"(?m)^ +(--[\w-]+)", text))


class Benchmark:
    """The parts of the measurement of one checkout.

    Args:
        source: the checkout. options: of the command. folder: for the bodies of the batches.
    """

    def __init__(self, source: Path, options: argparse.Namespace, folder: Path) -> None:
        self._source, self._options, self._folder = source, options, folder
        names = ["chat", "single", *(f"batch {n + 1}" for n in range(options.batches))]
        tokens = tokens_of(1) * len(names) if options.one_token else tokens_of(len(names))
        self._headers = {name: bearer(token) for name, token in zip(names, tokens, strict=True)}
        self._tokens = list(dict.fromkeys(tokens))
        self._arguments = ["--entailer", options.entailer, "--guardrail", *STRICT]
        # Where callers have shares, the default has room for the batches of four.
        if "--per-caller" not in options_of(source):
            room = options.batches * options.samples + SPARE_CAPACITY
            self._arguments += ["--capacity", str(max(1024, room))]
        # An older version does not know the option, and takes no notice of the header.
        if options.caller_header:
            for name, headers in self._headers.items():
                headers[options.caller_header] = name.replace(" ", "-")
            if "--caller-header" in options_of(source):
                self._arguments += ["--caller-header", options.caller_header]

    async def measure(self) -> dict[str, Any]:
        """Return the figures of all parts, each with a service of its own."""
        result = await self._measure_part(1, others="alone")
        result |= await self._measure_part(2, batch="alone")
        return result | await self._measure_part(3, batch="during", others="during")

    async def _measure_part(self, part: int, batch: str = "", others: str = "") -> dict[str, Any]:
        """Measure a part; ``batch`` and ``others`` end the names of their figures, if they run."""
        bodies = self._write_bodies(part) if batch else {}
        largest = max((path.stat().st_size for path in bodies.values()), default=0)
        arguments = [*self._arguments, "--largest-body", str(max(4 * 1024**2, largest))]
        logs = {name: CallerLog() for name in ("chat", "single")}
        stop, result = asyncio.Event(), dict[str, Any]()
        async with (
            running_model() as upstream,
            serving(*arguments, "--upstream", upstream, source=self._source, tokens=self._tokens),
            session_of(8) as session,
            openai.AsyncOpenAI(
                base_url=f"{URL}/v1",
                api_key="none",
                max_retries=0,
                timeout=600,
                http_client=openai.DefaultAsyncHttpxClient(trust_env=False),
            ) as client,
        ):
            single, chat = self._headers["single"], dict(self._headers["chat"])
            # `Authorization` is for the key of the upstream, so the token has another header.
            chat["x-api-key"] = chat.pop("Authorization").removeprefix("Bearer ")
            asks = {
                "chat": ask_for_chats(client, make_samples((part, 0), 2), chat),
                "single": ask_for_scores(session, make_samples((part, 1), 2), single),
            }
            await asks["single"]()  # loads the model
            send = send_each if self._options.many_small else send_list
            sending = asyncio.gather(
                *(
                    send(path, self._headers[name], self._options.limit)
                    for name, path in bodies.items()
                )
            )
            if others:
                if batch:
                    await self._wait_until_accepted(session, single)
                asking = asyncio.gather(
                    *(
                        ask_until(stop, ask, logs[name], self._options.pause)
                        for name, ask in asks.items()
                    )
                )
                if not batch:
                    await asyncio.sleep(self._options.alone)
            sent = await sending
            stop.set()
            if others:
                await timed(asking, GRACE_S)
        if batch:
            result[f"batch_{batch}"] = summarise_batches(sent, self._options.limit)
        for name, log in logs.items() if others else ():
            result[f"{name}_{others}"] = log.figures()
        return result

    def _write_bodies(self, part: int) -> dict[str, Path]:
        """Write the list of each batch, all of them different; return the files."""
        result = {}
        for number, name in enumerate(name for name in self._headers if "batch" in name):
            every = make_samples((part, 2, number), SENTENCES)
            result[name] = self._folder / f"{part}-{number}.json"
            result[name].write_text(
                json.dumps(list(itertools.islice(every, self._options.samples)))
            )
        return result

    async def _wait_until_accepted(
        self, session: aiohttp.ClientSession, headers: Mapping[str, str]
    ) -> None:
        """Wait until samples are in progress, or for as long as a body may take."""
        deadline = time.perf_counter() + 30
        while time.perf_counter() < deadline:
            async with session.get(f"{URL}/metrics", headers=headers) as reply:
                text = await reply.text()
            number = re.search(r"^trustassay_samples_in_progress (\S+)$", text, re.MULTILINE)
            if number and float(number[1]) > 0:
                return
            await asyncio.sleep(0.05)


def summarise_batches(sent: Sequence[dict[str, Any]], limit_s: float) -> dict[str, Any]:
    """Return the figures of batches that were sent together.

    ``seconds`` are those of the slowest, ``None`` if one did not end within the limit; the
    results that came until then count all the same.
    """
    each = [one["seconds"] for one in sent]
    seconds = None if None in each else max(each)
    results = sum(one["results"] for one in sent)
    totals = {
        key: dict(sum((Counter(one[key]) for one in sent), Counter[str]()))
        for key in ("statuses", "retry_after_s")
    }
    return {
        "seconds": seconds,
        "seconds_of_each": each,
        "results": results,
        "results_per_s": round(results / (seconds or limit_s), 2),
        "not_judged": sum(one["not_judged"] for one in sent),
        **totals,
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", type=Path, default=THIS, metavar="PATH", help="the new version")
    parser.add_argument("--before", type=Path, metavar="PATH", help="the old version")
    parser.add_argument("--entailer", default="embedded")
    parser.add_argument("--samples", type=int, default=SAMPLES, help="of each batch")
    parser.add_argument("--batches", type=int, default=1, help="callers that send a batch")
    parser.add_argument("--one-token", action="store_true", help="one token for all callers")
    parser.add_argument("--caller-header", metavar="NAME", help="a header that names the caller")
    parser.add_argument("--many-small", action="store_true", help="requests instead of a list")
    parser.add_argument("--alone", type=float, default=20, help="seconds without a batch")
    parser.add_argument("--pause", type=float, default=0, help="seconds between two requests")
    parser.add_argument("--limit", type=float, default=240, help="seconds of a batch")
    parser.add_argument("--dry", action="store_true", help="print, write nothing")
    options = parser.parse_args()
    sources = {"old": options.before} if options.before else {}
    sources["new"] = options.source
    figures = {}
    for version, source in sources.items():
        with tempfile.TemporaryDirectory() as folder:
            measuring = Benchmark(source, options, Path(folder)).measure()
            figures[version] = asyncio.run(measuring)
        for columns, rows in sharing_tables({version: figures[version]}):
            print("\n".join(table_lines(columns, rows)), "\n", flush=True)
    if not options.dry:
        print(write_result(*description_of(options, sources), figures))


def description_of(
    options: argparse.Namespace, sources: Mapping[str, Path]
) -> tuple[str, str, str]:
    """Return the name of a result, the command, and the data with the commits."""
    variant, command = "", "python -m lab.benchmarks.sharing"
    command += " --before PATH" * ("old" in sources) + " --source PATH" * (options.source != THIS)
    if options.one_token:
        variant, command = f"{variant}-one-token", f"{command} --one-token"
    if options.caller_header:
        variant += "-caller-header"
        command += f" --caller-header {options.caller_header}"
    if options.batches > 1:
        variant = f"{variant}-{options.batches}-batches"
        command += f" --batches {options.batches}"
    if options.samples != SAMPLES:
        variant = f"{variant}-{options.samples}-samples"
        command += f" --samples {options.samples}"
    if options.many_small:
        variant, command = f"{variant}-many-small", f"{command} --many-small"
    if options.pause:
        variant, command = f"{variant}-pause", f"{command} --pause {options.pause:g}"
    command += f" --entailer {options.entailer} --limit {options.limit:g}"
    commits = ", ".join(f"{name}: {commit_of(source)}" for name, source in sources.items())
    data = f"made: {options.samples} samples of {SENTENCES} sentences, {options.entailer}; "
    return f"sharing{variant}", command, f"{data}{options.limit:g} s at most; commits {commits}"


if __name__ == "__main__":
    main()
