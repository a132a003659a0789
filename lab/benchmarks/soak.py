"""Whether the service needs more memory, files or threads the longer it runs.

    python -m lab.benchmarks.soak                        # ten minutes with each entailer
    python -m lab.benchmarks.soak --minutes 0.5 --entailer lexical --dry
    python -m lab.benchmarks.soak --source PATH          # another checkout

`trustassay serve` runs in a process of its own. Four callers, each with a token, send requests of
five kinds in turns, the next one when the last is answered: a sample, a list of 20, a chat through
the proxy, a pair of the guardrail, and a trace over OTLP (protobuf where the package is installed).
All samples are different, so that no cache hides a leak.

Every 5 seconds the service's resident memory, open files and threads are read from /proc. The
figures are the medians of the first and the last minute, the slopes of the lines of least squares
through all readings and through those of the second half, and the replies other than 200. Some
memory is kept on purpose: 65,536 replies of the entailer, 10,000 conversations of the guardrail for
an hour, and the ids of 10,000 traces. So memory may rise until these are full: compare the slope of
the second half. Writes `results/soak.json`.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import tempfile
import time
from base64 import b64encode
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import numpy as np

from lab.benchmarks.serving import (
    COME_AGAIN,
    THIS,
    URL,
    bearer,
    commit_of,
    serving,
    session_of,
    tokens_of,
)
from lab.benchmarks.sharing import chat_of, make_samples, running_model
from lab.benchmarks.tables import soak_tables, table_lines
from lab.results import write_result

CALLERS = 4
LIST_SAMPLES = 20
EVERY_S = 5.0
"""Seconds between two readings."""
RESOURCES = ("rss_mb", "open_files", "threads")
PROTOBUF = bool(find_spec("opentelemetry") and find_spec("opentelemetry.proto"))
"""Whether the package is installed that reads protobuf."""


class Reading(NamedTuple):
    """What a process holds at a time."""

    at_s: float
    """Seconds since the first request."""
    rss_mb: float
    """Resident memory."""
    open_files: int
    threads: int


class HttpRequest(NamedTuple):
    """A request of a caller."""

    path: str
    body: bytes
    content_type: str = "application/json"


def read_resources(pid: int, at_s: float) -> Reading:
    """Read what a process holds from /proc."""
    fields = dict(
        line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines()
    )
    megabytes = int(fields["VmRSS"].split()[0]) / 1024
    open_files = len(list(Path(f"/proc/{pid}/fd").iterdir()))
    return Reading(at_s, megabytes, open_files, int(fields["Threads"]))


def summarise(readings: Sequence[Reading], minutes: float) -> dict[str, Any]:
    """Return the medians of the first and the last minute, and the slopes a minute.

    Args:
        readings: at least one of each minute. minutes: that the service ran; of a run of less than
            two minutes, the first and the last half take the place of the minutes.
    """
    span_s = min(60.0, minutes * 30)
    times = np.array([reading.at_s for reading in readings])
    result: dict[str, Any] = {}
    for key, chosen in (
        ("first_minute", times <= span_s),
        ("last_minute", times >= minutes * 60 - span_s),
    ):
        result[key] = {
            name: round(float(np.median(values_of(readings, name)[chosen])), 1)
            for name in RESOURCES
        }
    for key, chosen in (
        ("slope_a_minute", times >= 0),
        ("slope_a_minute_second_half", times >= minutes * 30),
    ):
        result[key] = {
            name: round(
                float(np.polyfit(times[chosen] / 60, values_of(readings, name)[chosen], 1)[0]), 3
            )
            for name in RESOURCES
        }
    result["rss_mb_by_minute"] = [
        round(float(np.median(values_of(readings, "rss_mb")[times // 60 == minute])), 1)
        for minute in sorted(set(times // 60))
    ]
    return result


def values_of(readings: Sequence[Reading], name: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.array([getattr(reading, name) for reading in readings], dtype=np.float64)


def requests_of(caller: int) -> Iterator[tuple[str, Sequence[HttpRequest]]]:
    """Yield the kinds of requests in turns, without end: the kind, and its requests in order.

    Each caller begins with another kind, so that different kinds are in progress together.
    """
    samples = make_samples((9, caller), 2)
    makers = [score_one, score_list, ask_for_chat, check_pair, send_trace]
    for number in itertools.count(caller):
        make = makers[number % len(makers)]
        yield make.__name__, make(samples, f"{caller:08x}{number:08x}")


def score_one(samples: Iterator[dict[str, Any]], _id: str) -> Sequence[HttpRequest]:
    return [HttpRequest("/v1/score", json.dumps(next(samples)).encode())]


def score_list(samples: Iterator[dict[str, Any]], _id: str) -> Sequence[HttpRequest]:
    some = list(itertools.islice(samples, LIST_SAMPLES))
    return [HttpRequest("/v1/score", json.dumps(some).encode())]


def ask_for_chat(samples: Iterator[dict[str, Any]], _id: str) -> Sequence[HttpRequest]:
    sample = next(samples)
    chat = {**chat_of(sample), "documents": sample["documents"]}
    return [HttpRequest("/v1/chat/completions", json.dumps(chat).encode())]


def check_pair(samples: Iterator[dict[str, Any]], call_id: str) -> Sequence[HttpRequest]:
    """Return what LiteLLM sends before and after a call of its model."""
    sample = next(samples)
    pair = [
        {
            "input_type": "request",
            "structured_messages": chat_of(sample)["messages"],
            "texts": [sample["question"]],
            "additional_provider_specific_params": {"documents": sample["documents"]},
        },
        {"input_type": "response", "texts": [sample["response"]]},
    ]
    return [
        HttpRequest(
            "/beta/litellm_basic_guardrail_api",
            json.dumps({"litellm_call_id": call_id, **one}).encode(),
        )
        for one in pair
    ]


def send_trace(samples: Iterator[dict[str, Any]], trace_id: str) -> Sequence[HttpRequest]:
    """Return a trace of a search and an answer, as an exporter of OpenInference sends it."""
    sample = next(samples)
    passages = {
        f"retrieval.documents.{place}.document.content": text
        for place, text in enumerate(sample["documents"])
    }
    chain = {"input.value": sample["question"], "output.value": sample["response"]}
    spans = [
        make_span(trace_id, 2, {"openinference.span.kind": "RETRIEVER", **passages}),
        make_span(trace_id, 1, {"openinference.span.kind": "CHAIN", **chain}),
    ]
    message = {"resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {}, "spans": spans}]}]}
    if not PROTOBUF:
        return [HttpRequest("/v1/traces", json.dumps(message).encode())]
    from google.protobuf.json_format import ParseDict
    from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

    # ParseDict reads bytes as base64, and OTLP writes ids in JSON as hexadecimal numbers.
    for span in spans:
        for key in ("traceId", "spanId", "parentSpanId"):
            span[key] = b64encode(bytes.fromhex(span[key])).decode()
    body = ParseDict(message, TracesData()).SerializeToString()
    return [HttpRequest("/v1/traces", bytes(body), "application/x-protobuf")]


def make_span(trace_id: str, number: int, attributes: Mapping[str, str]) -> dict[str, Any]:
    """Return a span; number 1 is the root, and the parent of the others."""
    return {
        "traceId": trace_id.rjust(32, "0"),
        "spanId": f"{number:016x}",
        "parentSpanId": "" if number == 1 else f"{1:016x}",
        "name": f"step {number}",
        "startTimeUnixNano": str(time.time_ns()),
        "endTimeUnixNano": str(time.time_ns() + 1_000_000),
        "attributes": [
            {"key": key, "value": {"stringValue": text}} for key, text in attributes.items()
        ],
    }


async def send_until(
    deadline: float,
    session: aiohttp.ClientSession,
    caller: int,
    requests: Counter[str],
    replies: Counter[str],
) -> None:
    """Send one caller's requests until the deadline; count kinds, and paths with their statuses."""
    token = tokens_of(CALLERS)[caller]
    for kind, some in requests_of(caller):
        if time.perf_counter() >= deadline:
            return
        requests[kind] += 1
        for one in some:
            # The proxy sends `Authorization` on to the upstream, and takes the token from the key.
            headers = {"Content-Type": one.content_type, "x-api-key": token}
            async with session.post(f"{URL}{one.path}", data=one.body, headers=headers) as reply:
                await reply.read()
                replies[f"{one.path} {reply.status}"] += 1
                if reply.status in COME_AGAIN:
                    await asyncio.sleep(float(reply.headers.get("Retry-After", 1)))


async def soak(source: Path, entailer: str, minutes: float) -> dict[str, Any]:
    """Return the figures of a checkout's service with an entailer."""
    requests, replies = Counter[str](), Counter[str]()
    readings: list[Reading] = []
    with tempfile.TemporaryDirectory() as folder:
        events = str(Path(folder) / "events.jsonl")
        options = ["--entailer", entailer, "--guardrail", "--otlp", "--events", events]
        async with (
            running_model() as upstream,
            serving(
                *options, "--upstream", upstream, source=source, tokens=tokens_of(CALLERS)
            ) as process,
            session_of(CALLERS) as session,
        ):
            # A first sample loads the model, which is no growth.
            headers = bearer(tokens_of(CALLERS)[0])
            sample = next(make_samples((9, CALLERS), 2))
            async with session.post(f"{URL}/v1/score", json=sample, headers=headers) as reply:
                assert reply.status == 200
            began = time.perf_counter()
            sending = asyncio.gather(
                *(
                    send_until(began + minutes * 60, session, caller, requests, replies)
                    for caller in range(CALLERS)
                )
            )
            while not sending.done():
                readings.append(read_resources(process.pid, time.perf_counter() - began))
                await asyncio.wait([sending], timeout=EVERY_S)
            await sending
    return {
        "minutes": minutes,
        "requests": sum(requests.values()),
        "requests_by_kind": dict(sorted(requests.items())),
        "other_replies": {
            name: count for name, count in sorted(replies.items()) if not name.endswith(" 200")
        },
        **summarise(readings, minutes),
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", type=Path, default=THIS, metavar="PATH", help="a checkout")
    parser.add_argument("--entailer", nargs="+", default=["lexical", "embedded"])
    parser.add_argument("--minutes", type=float, default=10, help="with each entailer")
    parser.add_argument("--dry", action="store_true", help="print, write nothing")
    options = parser.parse_args()
    figures = {}
    for entailer in options.entailer:
        figures[entailer] = asyncio.run(soak(options.source, entailer, options.minutes))
    for columns, rows in soak_tables(figures):
        print("\n".join(table_lines(columns, rows)), "\n")
    if not options.dry:
        command = f"python -m lab.benchmarks.soak --minutes {options.minutes:g}"
        command += f" --entailer {' '.join(options.entailer)}"
        data = f"made: samples of two sentences, {CALLERS} callers, {os.cpu_count()} cores; "
        print(write_result("soak", command, f"{data}commit {commit_of(options.source)}", figures))


if __name__ == "__main__":
    main()
