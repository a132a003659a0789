"""Spans of OpenTelemetry's own exporter, scored by ``trustassay serve --otlp``."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

PASSAGE = "The Tagus runs through Lisbon."


def test_what_the_exporter_sends_is_scored(tmp_path: Path) -> None:
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http")
    from opentelemetry.exporter.otlp.proto.http import Compression
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    options = ("--port", "0", "--entailer", "lexical", "--otlp", "--settle", "0.5")
    service = subprocess.Popen(
        [sys.executable, "-m", "trustassay", "serve", *options, "--events", "events.jsonl"],
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert service.stderr
        # It first says that without --out traces wait in memory.
        messages = iter(service.stderr.readline, "")
        listening = next(line for line in messages if line.startswith("listening at "))
        address = listening.split()[2].rstrip(";")
        exporter = OTLPSpanExporter(f"{address}/v1/traces", compression=Compression.Gzip)
        provider = TracerProvider()
        provider.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=50))
        tracer = provider.get_tracer("my-app")
        ids = []
        for answer in (PASSAGE, "Nothing of it is known to anybody."):
            with tracer.start_as_current_span("rag") as root:
                root.set_attribute("openinference.span.kind", "CHAIN")
                root.set_attribute("input.value", "Which river?")
                with tracer.start_as_current_span("search") as search:
                    search.set_attribute("openinference.span.kind", "RETRIEVER")
                    search.set_attribute("retrieval.documents.0.document.content", PASSAGE)
                time.sleep(0.2)  # the search is sent before its root
                root.set_attribute("output.value", answer)
                ids.append(f"{root.get_span_context().span_id:016x}")
        provider.shutdown()
        service.send_signal(signal.SIGTERM)
        said = service.communicate(timeout=60)[1]
    finally:
        service.kill()
        service.wait(30)
    assert "traces: 2 scored" in said
    lines = [json.loads(line) for line in Path("events.jsonl").read_text().splitlines()]
    logs = [line["resourceLogs"][0]["scopeLogs"][0]["logRecords"][0] for line in lines]
    told = {
        one["spanId"]: next(
            attribute["value"]["doubleValue"]
            for attribute in one["attributes"]
            if attribute["key"] == "gen_ai.evaluation.score.value"
        )
        for one in logs
    }
    assert told == dict(zip(ids, [1.0, 0.0], strict=True))
