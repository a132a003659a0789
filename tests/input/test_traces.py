"""Traces as exporters write them: each is one sample. The files in ``traces/`` were written by the
exporters themselves, of agents that asked a scripted model; what no reader looks at is left out."""

import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from arro3.io import write_parquet

from tests.input.test_formats import table
from trustassay.input import InputError, InputFault, LocatedSample, read_samples

HERE = Path(__file__).parent / "traces"
Q = "Which river runs through Lisbon?"
A = "The Tagus runs through Lisbon."
SHOWN = ["The Tagus reaches the sea at Lisbon.", "Lisbon has seven hills."]
Json = dict[str, Any]


def samples(source: Any) -> list[Any]:
    found = list(read_samples(source))
    assert all(isinstance(one, LocatedSample) for one in found), list(map(str, found))
    return [one.sample for one in found if isinstance(one, LocatedSample)]


def faults(source: Any) -> list[str]:
    found = list(read_samples(source))
    assert all(isinstance(one, InputFault) for one in found)
    return list(map(str, found))


def texts(sample: Any) -> list[str]:
    return [one.text for one in sample.documents or ()]


@pytest.mark.parametrize(
    ("name", "ids", "model", "session"),
    [
        ("openinference-openai.json", ["search:1", "search:2"], "m", "s-1"),
        ("openinference-anthropic.json", ["search:1", "search:2"], "claude-x", None),
        ("openinference-llama-index.json", ["3e100ac7", "ed6e9366"], "m", None),
        ("pydantic-ai.json", ["search:1", "search:2"], "m", "01a21d59"),
        ("strands.json", ["search:1", "search:2"], None, None),
        ("strands-events.jsonl", ["search:1", "search:2"], None, None),
        ("langgraph-langsmith.json", ["search:1", "search:2"], "m", "th-1"),
        ("langsmith-runs.jsonl", ["find:1", "find:2", "lookup:3"], "m", None),
        ("langfuse-otel.json", ["find:1", "find:2", "lookup:3"], None, None),
        ("mlflow.json", ["find:1", "find:2", "lookup:3"], None, None),
    ],
)
def test_a_trace_of_each_exporter_is_one_sample(
    name: str, ids: list[str], model: str | None, session: str | None
) -> None:
    [sample] = samples(HERE / name)
    assert (sample.question, (sample.response or "").strip()) == (Q, A)
    assert texts(sample) == [*SHOWN, '{"degrees": 20}'][: len(ids)]
    assert [one.id.partition("-")[0] for one in sample.documents] == ids
    assert sample.model == model
    known = sample.metadata.get("conversation")
    assert known == session or str(known).startswith(str(session))
    assert sample.id.removeprefix("0x")[:4] in (HERE / name).read_text()


def test_two_exporters_may_write_to_one_file(tmp_path: Path) -> None:
    names = ("strands-events.jsonl", "langsmith-runs.jsonl", "pydantic-ai.json")
    written = [line for name in names for line in (HERE / name).read_text().splitlines()]
    random.Random(1).shuffle(written)
    (tmp_path / "x.jsonl").write_text("\n".join(written))
    found = samples(tmp_path / "x.jsonl")
    assert [one.question for one in found] == [Q] * 3
    assert sorted(map(texts, found), key=len) == [SHOWN, SHOWN, [*SHOWN, '{"degrees": 20}']]


# ---- spans written by hand, in OTLP ----


def any_value(value: Any) -> Json:
    if isinstance(value, list):
        return {"arrayValue": {"values": list(map(any_value, value))}}
    return {"stringValue": value} if isinstance(value, str) else {"intValue": str(value)}


def span(
    number: int, parent: int = 0, trace: str = "t1", name: str = "", **attributes: Any
) -> Json:
    """Return a span of OTLP; ``__`` in the names of attributes is a point."""
    named = {key.replace("__", "."): value for key, value in attributes.items()}
    return {
        "traceId": trace,
        "spanId": f"s{number}",
        "parentSpanId": f"s{parent}" if parent else "",
        "name": name or f"step {number}",
        "startTimeUnixNano": str(10**18 + number),
        "endTimeUnixNano": str(10**18 + number + 1),
        "attributes": [{"key": k, "value": any_value(v)} for k, v in named.items()],
    }


def otlp(*spans: Json) -> Json:
    return {"resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {}, "spans": spans}]}]}


def asking(question: str, *more: Json) -> str:
    return json.dumps([{"role": "user", "parts": [{"type": "text", "content": question}]}, *more])


def replying(text: str, *more: Json) -> str:
    parts = [{"type": "text", "content": text}, *more]
    return json.dumps([{"role": "assistant", "parts": parts}])


def chat(number: int, parent: int, question: str = Q, answer: str = A, **more: Any) -> Json:
    told = {"gen_ai.operation.name": "chat", "gen_ai.input.messages": asking(question)}
    return span(number, parent, **{**told, "gen_ai.output.messages": replying(answer), **more})


def tool(number: int, parent: int, result: str, **more: Any) -> Json:
    return span(
        number,
        parent,
        gen_ai__operation__name="execute_tool",
        gen_ai__tool__name="search",
        gen_ai__tool__call__result=result,
        **more,
    )


def whole(trace: str = "t1", question: str = Q, result: str = SHOWN[0], **more: Any) -> list[Json]:
    """Return the spans of an agent: root, tool and model."""
    return [
        span(1, trace=trace, **more),
        tool(2, 1, result, trace=trace),
        chat(3, 1, question, trace=trace),
    ]


def lines(folder: Path, records: Sequence[Mapping[str, Any]], name: str = "x.jsonl") -> Path:
    path = folder / name
    path.write_text("".join(json.dumps(one) + "\n" for one in records), encoding="utf-8")
    return path


def test_spans_of_a_trace_may_be_anywhere_and_a_line_hold_several_traces(tmp_path: Path) -> None:
    spans = [*whole("t1"), *whole("t2", "Which sea?", "The Atlantic.")]
    in_order = samples(lines(tmp_path, [otlp(*spans)]))
    random.Random(0).shuffle(spans)
    parted = [
        otlp(*spans[:3]),
        otlp(spans[3]),
        {"question": "Own?", "response": "Own."},
        *spans[4:],
    ]
    own, *found = samples(lines(tmp_path, parted))
    assert own.question == "Own?"
    assert sorted(found, key=lambda one: one.id) == in_order
    assert [(one.question, texts(one)) for one in in_order] == [
        (Q, [SHOWN[0]]),
        ("Which sea?", ["The Atlantic."]),
    ]


def test_traces_of_a_session_are_one_conversation_and_keep_earlier_results(tmp_path: Path) -> None:
    first = whole("t1", session__id="s")
    later = whole("t2", "Which sea?", "The Atlantic.", session__id="s")
    for one in later:
        one["startTimeUnixNano"] = "2" + one["startTimeUnixNano"][1:]
    other = whole("t3", "How many hills?", "Seven.", session__id="other")
    found = {one.id: one for one in samples([otlp(*later), otlp(*other), otlp(*first)])}
    assert list(found) == ["t2", "t3", "t1"]  # as in the file
    assert [one.metadata["conversation"] for one in found.values()] == ["s", "other", "s"]
    assert texts(found["t1"]) == [SHOWN[0]]
    assert texts(found["t2"]) == [SHOWN[0], "The Atlantic."]
    assert texts(found["t3"]) == ["Seven."]


def test_what_messages_show_of_earlier_turns_comes_first_and_nothing_comes_twice() -> None:
    history = [
        {"role": "assistant", "parts": [{"type": "tool_call", "id": "c", "name": "weather"}]},
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c", "response": "Rain."}]},
        {"role": "user", "parts": [{"type": "text", "content": "And " + Q}]},
    ]
    again = {"type": "tool_call_response", "id": "d", "response": '{"degrees":    20}'}
    spans = [
        span(1),
        span(2, 1, openinference__span__kind="LLM", input__value=asking("Hello", *history[:2])),
        tool(3, 1, '{"degrees":20}'),
        tool(9, 1, ""),
        span(
            4,
            1,
            gen_ai__operation__name="chat",
            gen_ai__input__messages=asking("Hello", *history, {"role": "tool", "parts": [again]}),
            gen_ai__output__messages=replying(A),
        ),
    ]
    [sample] = samples([otlp(*spans)])
    assert sample.question == "And " + Q
    assert [(one.id, one.text) for one in sample.documents] == [
        ("weather:1", "Rain."),
        ("search:2", '{"degrees": 20}'),
    ]


def test_the_context_of_system_instructions_is_shown_too() -> None:
    told = json.dumps([{"type": "text", "content": f"Context:\n[1] {SHOWN[0]}\n[2] {SHOWN[1]}"}])
    [sample] = samples([otlp(chat(1, 0, gen_ai__system_instructions=told))])
    assert texts(sample) == SHOWN


def test_passages_beside_the_answer_of_a_root_are_shown_if_no_other_span_has_them() -> None:
    output = json.dumps({"answer": A, "source_documents": [{"page_content": t} for t in SHOWN]})
    root = span(1, name="chain", input__value=Q, output__value=output)
    assert texts(samples([otlp(root, chat(2, 1))])[0]) == SHOWN
    result = tool(3, 1, "A result of a tool.")
    assert texts(samples([otlp(root, result, chat(4, 1))])[0]) == ["A result of a tool."]


def test_a_trace_without_tools_was_answered_without_passages() -> None:
    [sample] = samples([otlp(chat(1, 0))])
    assert (sample.question, sample.response, sample.documents) == (Q, A, None)


def test_the_root_says_what_was_asked_and_answered_before_its_models_do() -> None:
    root = span(1, input__value=json.dumps({"question": "Root?"}), output__value="Root.")
    [sample] = samples([otlp(root, *whole()[1:])])
    assert (sample.question, sample.response) == ("Root?", "Root.")


def test_rows_and_columns_of_phoenix(tmp_path: Path) -> None:
    ids = ["a", "b", "c"]
    columns = {
        "name": ["query", "find", "llm"],
        "span_kind": ["CHAIN", "RETRIEVER", "LLM"],
        "parent_id": [None, "a", "a"],
        "start_time": [
            "2025-01-01T00:00:01+00:00",
            "2025-01-01T00:00:02+00:00",
            "2025-01-01T00:00:03+00:00",
        ],
        "end_time": ["2025-01-01T00:00:09+00:00"] * 3,
        "context.span_id": ids,
        "context.trace_id": ["t"] * 3,
        "attributes.input.value": [Q, Q, None],
        "attributes.output.value": [A, None, A],
        "attributes.retrieval.documents": [
            None,
            [{"document.content": one, "document.id": f"d{n}"} for n, one in enumerate(SHOWN)],
            None,
        ],
        "attributes.llm.input_messages": [
            None,
            None,
            [{"message.role": "user", "message.content": f"Context: x. {Q}"}],
        ],
        "attributes.llm.model_name": [None, None, "m"],
    }
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    write_parquet(table(rows), tmp_path / "x.parquet")
    for source in (rows, tmp_path / "x.parquet"):
        [sample] = samples(source)
        assert (sample.question, sample.response, sample.model) == (Q, A, "m")
        assert [(one.id, one.text) for one in sample.documents] == [
            ("d0", SHOWN[0]),
            ("d1", SHOWN[1]),
        ]


def langfuse(*more: Json, **trace: Any) -> Json:
    tools: list[Json] = [
        {"id": "o1", "type": "TOOL", "name": "weather", "startTime": "2025-01-01T00:00:02Z"},
        {"id": "o2", "type": "RETRIEVER", "name": "find", "startTime": "2025-01-01T00:00:03Z"},
    ]
    tools[0] |= {"traceId": "t", "parentObservationId": None, "output": {"degrees": 20}}
    tools[1] |= {"traceId": "t", "parentObservationId": "o1", "output": SHOWN}
    begun = {
        "id": "t",
        "timestamp": "2025-01-01T00:00:01Z",
        "sessionId": "s",
        "input": {"question": Q},
    }
    return {**begun, "output": {"answer": A}, **trace, "observations": [*tools, *more]}


@pytest.mark.parametrize("form", ["a trace", "traces", "rows"])
def test_a_langfuse_trace_with_its_observations(tmp_path: Path, form: str) -> None:
    trace = langfuse(expectedOutput={"answer": "The Tagus."}, metadata={"docs": ["x"]}, tags=["v1"])
    (tmp_path / "x.json").write_text(json.dumps({"data": [trace]} if form == "traces" else trace))
    [sample] = samples([trace] if form == "rows" else tmp_path / "x.json")
    assert (sample.question, sample.response, sample.id) == (Q, A, "t")
    assert texts(sample) == ['{"degrees": 20}', *SHOWN]
    assert sample.metadata["conversation"] == "s"
    assert (sample.claims, sample.metadata["tags"]) == (("The Tagus.",), ["v1"])


def test_the_project_of_runs_is_no_session() -> None:
    runs: list[Json] = [
        {"id": "a", "run_type": "chain", "inputs": {"question": Q}, "outputs": {"answer": A}},
        {"id": "b", "run_type": "tool", "outputs": {"output": SHOWN}, "parent_run_id": "a"},
    ]
    both = [{**run, "trace_id": trace, "session_id": "p"} for trace in ("t", "u") for run in runs]
    for sample in samples(both):
        assert "conversation" not in sample.metadata
        assert texts(sample) == SHOWN


def test_calls_of_models_alone_and_a_run_alone_stay_samples_each() -> None:
    calls = [
        {"id": f"g{n}", "traceId": "t", "type": "GENERATION", "parentObservationId": "gone"}
        | {"startTime": f"2025-01-01T00:00:0{n}Z", "input": Q, "output": f"{A} {n}"}
        for n in range(2)
    ]
    assert [one.response for one in samples(calls)] == [f"{A} 0", f"{A} 1"]
    run: Json = {"id": "r", "trace_id": "r", "run_type": "chain", "parent_run_id": None}
    run |= {"inputs": {"question": Q}, "outputs": {"answer": A, "context": SHOWN}}
    assert texts(samples([run])[0]) == SHOWN
    run["outputs"] = {"output": run["outputs"]}
    assert texts(samples([run])[0]) == SHOWN


# ---- what is said of it ----


def test_the_note_says_what_was_taken_from_where(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    http = span(1, trace="t9", http__request__method="GET")
    path = lines(tmp_path, [otlp(*whole(), http)], "noted.jsonl")
    samples(path)
    samples(path)  # said once
    assert capsys.readouterr().err == (
        f"{path}: traces: question from gen_ai.input.messages of 'step 3' (1); "
        "response from gen_ai.output.messages of 'step 3' (1); passages (1); "
        "left out because they have no call of a model or a tool (1)\n"
    )
    with pytest.raises(InputError, match="contains no records"):
        list(read_samples(lines(tmp_path, [otlp(http)], "y.jsonl")))


# ---- faults ----

CUT = "the trace is truncated"


def changed(place: int, **fields: Any) -> list[Json]:
    spans = whole()
    spans[place] = spans[place] | fields
    return spans


@pytest.mark.parametrize(
    ("spans", "span_named", "message"),
    [
        (changed(0, parentSpanId="s3"), "'step 1' (s1)", "parent: leads back to itself (a cycle)"),
        (changed(0, parentSpanId="s1"), "'step 1' (s1)", "parent: leads back to itself (a cycle)"),
        (whole()[1:2], "'search' (s2)", f"parent: expected a span of the file, got 's1' ({CUT})"),
        (changed(0, endTimeUnixNano=""), "'step 1' (s1)", f"end: is missing: {CUT}"),
        (
            whole()[:2],
            "'step 1' (s1)",
            "question: is missing in the root and in the last model call",
        ),
        (
            [span(1), chat(2, 1, answer=" ")],
            "'step 2' (s2)",
            "response: is missing in the last model call, 'step 2'",
        ),
        (
            changed(0, status={"code": 2, "message": "timeout"}),
            "'step 1' (s1)",
            "output: is missing: it failed ('timeout')",
        ),
    ],
)
def test_a_broken_trace_is_named_with_its_span(
    spans: list[Json], span_named: str, message: str, tmp_path: Path
) -> None:
    path = lines(tmp_path, [{"question": Q, "response": A}, otlp(*spans), otlp(*whole("t2"))])
    own, fault, second = read_samples(path)
    assert isinstance(own, LocatedSample)
    assert str(fault).startswith(f"{path}:2: trace t1, span {span_named}: {message}")
    assert isinstance(second, LocatedSample)


def test_a_text_beside_a_call_is_no_answer() -> None:
    call = {"type": "tool_call", "id": "c", "name": "search", "arguments": {}}
    last = chat(2, 1, **{"gen_ai.output.messages": replying("I will look it up.", call)})
    [message] = faults([otlp(span(1), last)])
    assert "response: is missing" in message


@pytest.mark.parametrize("deep", [300, 900, 100_000])
def test_nesting_of_any_depth_is_read_or_a_fault(deep: int) -> None:
    result = "[" * deep + "]" * deep
    for spans in (whole(result=result), [*whole(), span(4, 1, **{"a__" * deep: "x"})]):
        [found] = read_samples([otlp(*spans)])
        assert isinstance(found, LocatedSample) or "nested too deeply" in str(found)


@pytest.mark.parametrize(
    "record",
    [
        {"resourceSpans": [{}]},
        {"resourceSpans": [{"scopeSpans": [{"spans": [7, {}]}]}]},
        {"traceId": None, "spanId": None},
        {"traceId": "t", "spanId": "s", "attributes": "x", "events": [3, {"name": None}]},
        {"traceId": "t", "spanId": "s", "attributes": [{"key": 3}, {"value": {}}, {}]},
        {"context": {"span_id": {"a": 1}}, "attributes": {"gen_ai.operation.name": "chat"}},
        {"run_type": "llm", "trace_id": 7, "inputs": {"messages": [[3]]}, "child_runs": [{}]},
        {"id": "t", "observations": [{"type": "TOOL", "output": [[1]]}, {}], "input": {"a": 3}},
        {"info": {}, "data": {"spans": [{"attributes": {"mlflow.spanType": "LLM"}}]}},
        {"context.trace_id": 1, "context.span_id": 2, "attributes.input.value": {"args": []}},
    ],
)
def test_spans_of_any_content_are_a_fault_or_left_out(record: Json) -> None:
    try:
        assert all(isinstance(one, InputFault) for one in read_samples([record]))
    except InputError as error:
        assert "contains no records" in str(error)


@pytest.mark.slow
def test_a_span_of_fifty_megabytes_is_read(tmp_path: Path) -> None:
    large = "The Tagus is long. " * (50 * 2**20 // 19)
    path = lines(tmp_path, [otlp(*whole(result=large))], "x.json")
    [sample] = samples(path)
    assert texts(sample) == [large]


def test_lists_named_spans_or_observations_make_no_trace() -> None:
    marked = {"question": Q, "response": A, "spans": [{"start": 4, "end": 9, "probability": 0.7}]}
    noted = {**marked, "id": "q", "observations": [{"note": "short", "type": "x"}]}
    assert [one.question for one in samples([marked, noted])] == [Q, Q]
