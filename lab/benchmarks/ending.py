"""Seconds until `trustassay serve` ends after SIGTERM, by who is connected, and what is lost.

    python -m lab.benchmarks.ending [--node FOLDER]

Each row starts a service with a folder, connects a client that stays connected, sends SIGTERM, and
waits. The clients: an idle connection; `GET /mcp` as an SDK opens it; the Python SDK of MCP; the
TypeScript SDK (`ending.mjs`, where FOLDER has `@modelcontextprotocol/sdk` installed by npm);
OpenTelemetry's exporter (`opentelemetry-exporter-otlp-proto-http`); a chat whose upstream needs two
seconds more, and one whose upstream streams for ever (`--grace 2`). A client whose package is
missing is reported as skipped.

The last rows kill the service (SIGKILL): after it has accepted spans whose roots come after the
next start, and while a collector is down. Lost is what was accepted with 200 and has no score, no
answer or no event in the end. Writes `results/ending.json`.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import json
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path
from typing import Any

from tests.live.running import JSON, LEXICAL, Running, serving
from tests.live.stores import Collector
from tests.live.test_otlp import message, spans
from tests.live.upstream import Asked, Upstream, Write, chunk, says, streams_from

from lab.benchmarks.serving import rows
from lab.results import write_result

TEXT = "The bridge was opened in 1911."
SAMPLE = {"question": "When was it opened?", "response": TEXT, "documents": [TEXT]}
CHAT = {"messages": [{"role": "user", "content": "When was it opened?"}], "documents": [TEXT]}
TRACES = 50
Figures = dict[str, Any]


@contextmanager
def started(*options: str) -> Iterator[tuple[Running, Path]]:
    """Run a service with a folder; yield it and the folder."""
    with (
        tempfile.TemporaryDirectory() as folder,
        serving(Path(folder), *LEXICAL, "--out", "run", *options) as service,
    ):
        yield service, Path(folder) / "run"


def end(service: Running) -> Figures:
    """Send SIGTERM; return the seconds until the process ends, and its status."""
    began = time.monotonic()
    status = service.end(signal.SIGTERM)
    return {"seconds": round(time.monotonic() - began, 2), "status": status, "lost": 0}


def idle() -> Figures:
    with started() as (service, _), service.connected() as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        connection.recv(1000)
        return end(service)


def raw_stream() -> Figures:
    with started("--mcp") as (service, _), service.connected() as connection:
        head = b"GET /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n\r\n"
        connection.sendall(head)
        status = int(connection.recv(1000).split()[1])
        return {**end(service), "status_of_GET": status}


def python_sdk() -> Figures:
    from mcp import Client
    from mcp.client.streamable_http import streamable_http_client

    async def connect(service: Running) -> Figures:
        url = f"http://{service.host}:{service.port}/mcp"
        async with Client(streamable_http_client(url)) as client:
            result = await client.call_tool("check_answer", SAMPLE)
            figures = await asyncio.to_thread(end, service)
            return {**figures, "lost": int(result.is_error)}

    with started("--mcp") as (service, _):
        return asyncio.run(connect(service))


def typescript_sdk(folder: Path | None) -> Figures:
    package = "node_modules/@modelcontextprotocol/sdk/package.json"
    node = shutil.which("node")
    if node is None or folder is None or not (folder / package).exists():
        return {"skipped": "node or @modelcontextprotocol/sdk is missing"}
    script = Path(__file__).with_suffix(".mjs")
    with started("--mcp") as (service, _):
        url = f"http://{service.host}:{service.port}/mcp"
        with subprocess.Popen([node, script, folder, url], stdout=subprocess.PIPE) as client:
            assert client.stdout
            answer = client.stdout.readline().decode().strip()
            time.sleep(1)  # it opens its stream after the handshake
            figures = end(service)
            client.kill()
    version = json.loads((folder / package).read_text())["version"]
    return {**figures, "lost": int(answer != "answered"), "version": version}


def exporter() -> Figures:
    if not importlib.util.find_spec("opentelemetry.exporter"):
        return {"skipped": "opentelemetry-exporter-otlp-proto-http is missing"}
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    with started("--otlp", "--settle", "60") as (service, run):
        provider = TracerProvider()
        url = f"http://{service.host}:{service.port}/v1/traces"
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(url)))
        tracer = provider.get_tracer("ending")
        for _ in range(TRACES):
            names = {"openinference.span.kind": "CHAIN", "input.value": "When was it opened?"}
            with tracer.start_as_current_span("root", attributes={**names, "output.value": TEXT}):
                document = {"retrieval.documents.0.document.content": TEXT}
                kind = {"openinference.span.kind": "RETRIEVER"}
                with tracer.start_as_current_span("passages", attributes=kind | document):
                    pass
        provider.force_flush()
        # Its connection stays open.
        figures = end(service)
        provider.shutdown()
        return {**figures, "accepted": TRACES, "lost": TRACES - len(rows(run / "assessments"))}


def chat(upstream: Upstream, stream: bool, *options: str) -> Figures:
    status: list[int] = []

    def ask(service: Running) -> None:
        content = json.dumps({**CHAT, "stream": stream})
        try:
            status.append(service.ask("POST", "/v1/chat/completions", content, JSON).status)
        except (OSError, HTTPException):
            status.append(0)

    with started("--upstream", upstream.url, *options) as (service, _):
        asking = threading.Thread(target=ask, args=(service,))
        asking.start()
        while not upstream.asked:
            time.sleep(0.01)
        figures = end(service)
        asking.join()
    return {**figures, "accepted": 1, "lost": int(status != [200])}


def slow_chat() -> Figures:
    async def answer(asked: Asked, write: Write) -> None:
        await asyncio.sleep(2)
        await says(TEXT)(asked, write)

    with Upstream(answer) as upstream:
        return chat(upstream, False)


def endless_chat() -> Figures:
    async def so_on() -> AsyncIterator[bytes]:
        while True:
            yield chunk({"content": "so "})

    with Upstream(streams_from(so_on, 0.02)) as upstream:
        return chat(upstream, True, "--grace", "2")


def send(service: Running, content: list[Any]) -> bool:
    reply = service.ask("POST", "/v1/traces", json.dumps(message(content)), JSON)
    return reply.status == 200


def killed_with_spans() -> Figures:
    options = ("--out", "run", "--otlp", "--settle", "0")
    with tempfile.TemporaryDirectory() as folder:
        with serving(Path(folder), *LEXICAL, *options) as service:
            accepted = sum(send(service, spans(number)[:1]) for number in range(1, TRACES + 1))
            service.process.kill()
        with serving(Path(folder), *LEXICAL, *options) as service:
            for number in range(1, TRACES + 1):
                send(service, spans(number)[1:])
            figures = end(service)
        # Only with the passages of the first spans is the answer supported.
        scores = [row["score"] for row in rows(Path(folder) / "run" / "assessments")]
    return {**figures, "accepted": accepted, "lost": accepted - scores.count(1.0)}


def killed_with_events() -> Figures:
    with socket.create_server(("127.0.0.1", 0)) as free:
        dead = f"http://127.0.0.1:{free.getsockname()[1]}/v1/logs"
    options = ("--out", "run", "--otlp", "--settle", "0", "--events")
    with tempfile.TemporaryDirectory() as folder:
        with serving(Path(folder), *LEXICAL, *options, dead) as service:
            accepted = sum(send(service, spans(number)) for number in range(1, TRACES + 1))
            service.until('trustassay_samples_total{outcome="scored"}', TRACES)
            service.process.kill()
        with Collector([]) as collector:
            with serving(Path(folder), *LEXICAL, *options, collector.url) as service:
                figures = end(service)
            logs = [entry["resourceLogs"][0]["scopeLogs"][0] for entry in collector.taken]
        arrived = {record["traceId"] for log in logs for record in log["logRecords"]}
    return {**figures, "accepted": accepted, "lost": accepted - len(arrived)}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--node", type=Path, metavar="FOLDER")
    options = parser.parse_args()
    clients: dict[str, Callable[[], Figures]] = {
        "idle connection": idle,
        "GET /mcp": raw_stream,
        "MCP, Python SDK": python_sdk,
        "MCP, TypeScript SDK": lambda: typescript_sdk(options.node),
        "OTLP exporter": exporter,
        "chat, 2 s more": slow_chat,
        "chat without end, --grace 2": endless_chat,
        "killed: spans without roots": killed_with_spans,
        "killed: collector is down": killed_with_events,
    }
    figures = []
    for name, measure in clients.items():
        figures.append({"client": name, **measure()})
        print(json.dumps(figures[-1]), flush=True)
    command = "python -m lab.benchmarks.ending --node FOLDER"
    data = "made-up answers; entailer lexical; two cores, with other work"
    write_result("ending", command, data, figures)


if __name__ == "__main__":
    main()
