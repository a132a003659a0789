"""Events of OpenTelemetry: one for each assessment, where they belong, with nothing unasked."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.lazily import Lazily, needed
from tests.support import ROOT, Probe, Recorder, jsonl, record, records
from trustassay import Assay, scorer
from trustassay.cli.main import app
from trustassay.core.capabilities import Models
from trustassay.core.metric import Assessment
from trustassay.core.sample import Sample
from trustassay.errors import BackendError, CallError
from trustassay.live.scorer import EvaluationEvents
from trustassay.runs.growing import GrowingRun

needed("opentelemetry.sdk")
export, once = Lazily("opentelemetry.sdk._logs.export"), Lazily("opentelemetry.util._once")
sdk, tracing = Lazily("opentelemetry.sdk._logs"), Lazily("opentelemetry.sdk.trace")
PROVIDER = "opentelemetry._logs._internal._LOGGER_PROVIDER"

TRACE = "0af7651916cd43dd8448eb211c80319c"
SPAN = "b7ad6b7169203331"


def take_up_provider(monkeypatch: pytest.MonkeyPatch, processor: Any) -> None:
    provider = sdk.LoggerProvider(shutdown_on_exit=False)
    provider.add_log_record_processor(processor)
    monkeypatch.setattr(PROVIDER, provider)


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The exporter that keeps what was sent: ``sent.get_finished_logs()``."""
    kept = export.InMemoryLogRecordExporter()
    take_up_provider(monkeypatch, export.SimpleLogRecordProcessor(kept))
    return kept


@pytest.fixture
def tracer() -> Iterator[Any]:
    provider = tracing.TracerProvider(shutdown_on_exit=False)
    yield provider.get_tracer("test")
    provider.shutdown()


def events(sent: Any) -> list[dict[str, Any]]:
    """Return attributes by name, with what else a record holds in keys that start with an at."""
    found = []
    for one in sent.get_finished_logs():
        log = one.log_record
        assert log.body is None and log.timestamp
        found.append(
            dict(log.attributes)
            | {"@name": log.event_name, "@trace": log.trace_id, "@span": log.span_id}
        )
    return found


def score(
    *rows: dict[str, Any], metrics: Any = "grounding", opentelemetry: Any = True, **options: Any
) -> list[Assay]:
    async def all_scored() -> list[Assay]:
        usual: dict[str, Any] = {"entailer": Recorder()}
        async with scorer(
            metrics=metrics, opentelemetry=opentelemetry, **(usual | options)
        ) as found:
            return [await found.score(row) for row in rows]

    return asyncio.run(all_scored())


# ---- what is sent ----


def test_an_assessment_is_one_event_of_the_conventions_and_quotes_nothing(sent: Any) -> None:
    score(record(1))
    assert events(sent) == [
        {
            "gen_ai.evaluation.name": "grounding",
            "gen_ai.evaluation.score.value": 1.0,
            "gen_ai.evaluation.score.label": "answered",
            "trustassay.sample.id": "q1",
            "@name": "gen_ai.evaluation.result",
            "@trace": 0,
            "@span": 0,
        }
    ]
    (one,) = sent.get_finished_logs()
    assert one.instrumentation_scope.name == "trustassay"
    assert one.instrumentation_scope.version


def test_every_metric_of_every_sample_is_an_event(sent: Any) -> None:
    score(*records(3), metrics=["grounding", "faithfulness"])
    found = [(e["trustassay.sample.id"], e["gen_ai.evaluation.name"]) for e in events(sent)]
    assert sorted(found) == [
        (f"q{i}", name) for i in range(3) for name in ("faithfulness", "grounding")
    ]


def test_explanations_are_sent_when_asked_for(sent: Any, probe_installed: Path) -> None:
    async def assess(sample: Sample, models: Models) -> Assessment:
        if sample.id == "q0":
            return Assessment("q0", "probe", 0.5, reason="its words are 'Number 0 is odd'")
        raise RuntimeError("unlucky")

    for choice in (True, "explanations"):
        score(*records(2), metrics=Probe(assess), opentelemetry=choice)
    *others, failed = [e.get("gen_ai.evaluation.explanation") for e in events(sent)]
    assert others == [None, None, "its words are 'Number 0 is odd'"]
    assert "probe failed: RuntimeError: unlucky (tests/live/" in str(failed)


def test_a_failure_has_its_kind_and_no_score(sent: Any, probe_installed: Path) -> None:
    async def assess(sample: Sample, models: Models) -> Assessment:
        if sample.id == "q0":
            raise CallError("no reply after 30 s", "timeout")
        if sample.id == "q1":
            raise RuntimeError("unlucky")
        return Assessment("q2", "probe", None, verdict="refused", reason="nobody can judge it")

    score(*records(3), metrics=Probe(assess))
    names = ("error.type", "gen_ai.evaluation.score.label", "gen_ai.evaluation.score.value")
    assert [[e.get(name) for name in names] for e in events(sent)] == [
        ["timeout", None, None],
        ["_OTHER", None, None],
        [None, "refused", None],
    ]


def test_nothing_is_sent_unless_asked_for(sent: Any) -> None:
    score(record(1), opentelemetry=False)
    assert events(sent) == []


# ---- where it belongs ----


def test_events_are_children_of_their_own_callers_spans(sent: Any, tracer: Any) -> None:
    spans = {}

    async def call(found: Any, row: dict[str, Any]) -> None:
        with tracer.start_as_current_span("chat") as span:
            spans[row["id"]] = span.get_span_context()
            await found.score(row)

    async def many() -> None:
        async with scorer(metrics="grounding", entailer=Recorder(), opentelemetry=True) as found:
            await asyncio.gather(*(call(found, row) for row in records(20)))

    asyncio.run(many())
    seen = {e["trustassay.sample.id"]: (e["@trace"], e["@span"]) for e in events(sent)}
    assert seen == {name: (span.trace_id, span.span_id) for name, span in spans.items()}
    assert len(set(seen.values())) == 20


def test_threads_have_spans_of_their_own(sent: Any, tracer: Any) -> None:
    with scorer(metrics="grounding", entailer=Recorder(), opentelemetry=True) as found:

        def call(row: dict[str, Any]) -> tuple[str, int]:
            with tracer.start_as_current_span("chat") as span:
                found.score(row)
                return row["id"], span.get_span_context().span_id

        with ThreadPoolExecutor(8) as pool:
            spans = dict(pool.map(call, records(20)))
    assert {e["trustassay.sample.id"]: e["@span"] for e in events(sent)} == spans


def test_what_an_earlier_process_left_does_not_belong_to_the_span_of_the_opener(
    sent: Any, tracer: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(GrowingRun, "note", lambda *_: None)  # as if killed before it was scored
        score(record(1), out=tmp_path / "run", opentelemetry=False)
    (tmp_path / "run" / "assessments.jsonl").write_bytes(b"")
    with tracer.start_as_current_span("opening"):
        score(out=tmp_path / "run")
    assert [(e["trustassay.sample.id"], e["@span"]) for e in events(sent)] == [("q1", 0)]


def test_a_record_names_the_span_that_wrote_the_response(sent: Any, tracer: Any) -> None:
    named = f"00-{TRACE}-{SPAN}-01"
    with tracer.start_as_current_span("evaluation") as span:
        score(record(1, traceparent=named), record(2, traceparent="00-x"), record(3, traceparent=3))
        own = span.get_span_context().span_id
    found = events(sent)
    assert [e["@span"] for e in found] == [int(SPAN, 16), own, own]
    assert found[0]["@trace"] == int(TRACE, 16)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"response_id": "chatcmpl-1"}, "chatcmpl-1"),
        ({"gen_ai.response.id": "chatcmpl-2", "response_id": "chatcmpl-1"}, "chatcmpl-2"),
        ({"gen_ai.response.id": 7, "response_id": "chatcmpl-1"}, "chatcmpl-1"),
        ({"response_id": ""}, None),
        ({"response_id": "x" * 257}, None),
        ({"response_id": ["a"]}, None),
    ],
)
def test_a_record_names_the_response(sent: Any, fields: dict[str, Any], expected: Any) -> None:
    score(record(1, **fields))
    assert [e.get("gen_ai.response.id") for e in events(sent)] == [expected]


# ---- what goes wrong ----


class _Failing:
    """A processor that fails, as one with a wrong address might, with a key in its words."""

    def on_emit(self, _: Any) -> None:
        raise ConnectionError("no such collector, token sk-12345")

    def shutdown(self) -> None: ...

    def force_flush(self, timeout_millis: int = 0) -> bool:
        return True


def test_a_provider_that_fails_costs_events_and_no_score(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Any, caplog: Any
) -> None:
    take_up_provider(monkeypatch, _Failing())
    with caplog.at_level(logging.DEBUG):
        found = score(*records(5), out=tmp_path / "run")
    assert [assay["grounding"].score for assay in found] == [1.0] * 5
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["metrics"]["grounding"]
    told = capsys.readouterr().err
    assert told.count("OpenTelemetry does not accept events: ConnectionError") == 1
    assert "sk-12345" not in told + caplog.text


def test_without_a_provider_the_scorer_says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(PROVIDER, None)
    with pytest.raises(
        BackendError, match=r"no OpenTelemetry logger provider .*set_logger_provider"
    ):
        score(record(1))


def test_without_the_package_the_scorer_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in [one for one in sys.modules if one.startswith("opentelemetry")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with pytest.raises(BackendError, match=r"pip install '\.\[opentelemetry\]'"):
        score(record(1))


def test_another_word_is_refused() -> None:
    with pytest.raises(ValueError, match="True, False or 'explanations', got 'content'"):
        EvaluationEvents.of("content")  # type: ignore[arg-type]


# ---- watch ----


def test_watch_sends_an_event_for_each_answer_once(sent: Any, tmp_path: Path) -> None:
    texts = ["It is so."] * 3
    rows = [
        {"id": f"q{i}", "question": "What?", "response": "It is so.", "resamples": texts}
        for i in range(3)
    ]
    source = jsonl(tmp_path / "log.jsonl", rows)
    words = [
        "score",
        str(source),
        "--follow",
        "--out",
        str(tmp_path / "run"),
        "--threshold",
        "0.3",
        "--once",
    ]
    for more in (["--opentelemetry"], ["--opentelemetry-explanations"]):
        assert CliRunner().invoke(app, [*words, *more]).exit_code == 0
    found = events(sent)
    assert [e["trustassay.sample.id"] for e in found] == ["q0", "q1", "q2"]
    assert {e["gen_ai.evaluation.name"] for e in found} == {"harmonicity"}
    assert not any("gen_ai.evaluation.explanation" in e for e in found)
    words[4] = str(tmp_path / "other")
    assert CliRunner().invoke(app, [*words, "--opentelemetry-explanations"]).exit_code == 0
    assert all(e["gen_ai.evaluation.explanation"] for e in events(sent)[3:])
    words[4] = str(tmp_path / "third")
    assert CliRunner().invoke(app, words).exit_code == 0
    assert len(events(sent)) == 6


def test_watch_without_a_provider_begins_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PROVIDER, None)
    source = jsonl(tmp_path / "log.jsonl", [record(1)])
    words = ["score", str(source), "--follow", "--out", str(tmp_path / "run"), "--threshold", "0.3"]
    result = CliRunner().invoke(app, [*words, "--metric", "grounding", "--once", "--opentelemetry"])
    assert result.exit_code == 2
    assert "opentelemetry-instrument" in result.output
    assert not (tmp_path / "run").exists()


def test_the_example_of_the_documentation_prints_what_it_says(
    monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setattr(PROVIDER, None)
    monkeypatch.setattr(f"{PROVIDER}_SET_ONCE", once.Once())
    page = (ROOT / "docs" / "live/tools.md").read_text(encoding="utf-8")
    found = re.search(
        r"```python\n((?:(?!```).)*opentelemetry.*?)```\n\n```\n(.*?)```", page, re.DOTALL
    )
    assert found
    exec(compile(found[1], "docs/live/tools.md", "exec"), {})
    assert capsys.readouterr().out == found[2]
