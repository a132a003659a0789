"""Reads traces as samples: the spans that exporters write become one record for each trace.

1. Spans are found in the records of the input, whatever exporter wrote them, and grouped by trace.
   The spans of a trace may be anywhere in a file, so they are kept in memory until it ends.
2. The question is the last one of the user; the response is the output of the root, or of the last
   call of a model.
3. The passages are all results of tools and all retrieved chunks, in order of time, after those of
   earlier traces of the same session.
4. The steps are the earlier messages and the calls of tools.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any

from trustassay.core.progress import tell_once
from trustassay.core.sample import Problem, clean
from trustassay.input.chats import find_answer, find_question, flatten_record
from trustassay.input.layouts import NAMES, normalise_name
from trustassay.input.messages import (
    AgentSteps,
    Call,
    ChatMessage,
    find_failure,
    find_passages,
    read_messages,
    read_tool_result,
)
from trustassay.input.passages import RawPassage, read_passages, text_of
from trustassay.input.records import RawRecord, decode_json

_PLACES: Mapping[str, Any] = NAMES["spans"]
_KINDS = {word: kind for kind, words in _PLACES["kinds"].items() for word in words.split()}
_TELLING = [frozenset(keys) for keys in _PLACES["telling"]]
_LISTS = (
    *("resourceSpans", "resource_spans", "scopeSpans", "scope_spans", "spans"),
    *("resourceLogs", "resource_logs", "scopeLogs", "scope_logs", "logRecords", "log_records"),
)
_IN_LISTS = {*_LISTS, "spanId", "span_id", "context"}
_INSIDE = ("observations", "child_runs")
"""``_LISTS`` are names of lists of spans in a record, ``_IN_LISTS`` names one of which the elements
of such a list have, and ``_INSIDE`` names of lists of inner spans in a span."""
_MAY_TELL = frozenset({"data", "context", *_LISTS, *_INSIDE}).union(*_TELLING)
_CUT_MESSAGE = (
    "is missing in the root and the last call of a model: the trace is cut, or without texts"
)
_MAX_DEPTH = 32  # levels of attributes
_FAILED_STATUSES = frozenset({"2", "error", "status_code_error", "statuscode.error"})


class TraceSpan:
    """One span, whatever exporter wrote it.

    Its ``kind`` is ``model``, ``tool``, ``retrieval``, ``other``, or empty where it is unknown.
    """

    def __init__(self, raw: Mapping[str, Any], within: "TraceSpan | None") -> None:
        """
        Args:
            raw: the span as it was read.
            within: the span in whose object it was written, if any; this is its parent.
        """
        self.raw, self.inside_of = raw, within
        self._own = {normalise_name(str(key)): value for key, value in raw.items()}
        self._own["within"] = within.id if within else None
        # LangSmith's "session_id" is the project, and no conversation.
        if "run_type" in raw:
            self._own.pop("session_id", None)
        self._attributes = _nest_attributes(_read_attributes(raw))
        self.trace: str = within.trace if within else self.text("trace")
        self.id: str = self.text("id")
        self.parent, self.name = map(self.text, ("parent", "name"))
        self.kind = _KINDS.get(self.text("kind").lower(), "")
        self.input, self.asked_in = self.find("input")
        self.output, self.said_in = self.find("output")
        # The input of a traced Python function: its first positional argument counts.
        if isinstance(self.input, Mapping) and isinstance(self.input.get("args"), list):
            self.input = [*self.input["args"], self.input.get("kwargs")][0]
        # A record of an evaluation tool that looks like a span and may be a sample by itself.
        self.is_row = bool({"inputs", "input"} & raw.keys()) and "attributes" not in raw
        self.start, self.error = map(self.text, ("start", "error"))
        # The exporter writes an end, but this span has none: its process was cut off.
        self.cut = not self.text("end") and any(place[1:] in self._own for place in _PLACES["end"])

    def find(self, what: str) -> tuple[Any, str]:
        """Return the first value of a part of the span, by ``names.toml``, and its field."""
        for place in _PLACES[what]:
            # A path with a dot in front is a field of the span, any other one is an attribute.
            value: Any = self._own if place.startswith(".") else self._attributes
            for name in place.removeprefix(".").split("."):
                value = value.get(name) if isinstance(value, Mapping) else None
            value = decode_json(value.get("", value) if isinstance(value, Mapping) else value)
            if value not in (None, "", [], {}):
                return value, place.removeprefix(".")
        return None, ""

    def text(self, what: str) -> str:
        """Return a part of the span as a text in one line; empty where it is missing."""
        value = self.find(what)[0]
        return clean(" ".join(str(value).split())) if isinstance(value, str | int | float) else ""


def is_trace(record: Any) -> bool:
    """Whether a record is a span or contains spans."""
    # A cheap test first, which ends the call for nearly all records that are no traces.
    if not isinstance(record, Mapping) or _MAY_TELL.isdisjoint(record):
        return False
    data = record["data"] if isinstance(record.get("data"), Mapping) else record
    context = record["context"] if isinstance(record.get("context"), Mapping) else ()
    telling = any(keys <= record.keys() for keys in _TELLING)
    # The first element of each list is enough.
    identifying_keys = [
        element.keys() & _IN_LISTS for k in _LISTS for element in _keep_mappings(data.get(k))[:1]
    ]
    inside = _INSIDE if "id" in record else ()
    identifying_keys += [
        element.keys() & {"id"} for k in inside for element in _keep_mappings(record.get(k))[:1]
    ]
    return telling or "span_id" in context or any(identifying_keys)


def read_traces(raws: Iterable[RawRecord], name: str) -> Iterator[RawRecord]:
    """Yield the records of an input that are no spans, and then one record for each trace.

    Args:
        raws: the records of the input.
        name: the name of the input, for messages.
    """
    traces: dict[str, tuple[dict[str, RawRecord], dict[str, TraceSpan]]] = {}
    logs: dict[tuple[str, str], list[dict[str, Any]]] = {}
    # Step 1: group spans by trace, and log records by trace and span. Records without a trace id
    # form a trace of their own.
    for raw in raws:
        if raw.problems or not is_trace(raw.record):
            yield raw
            continue
        for span in _find_spans(raw.record):
            lines, spans = traces.setdefault(span.trace or raw.where, ({}, {}))
            if event := _read_log_record(span.raw):
                logs.setdefault((span.trace or raw.where, span.id), []).append(event)
            else:
                spans[span.id or str(len(spans))] = span
            lines[raw.where] = raw
    # Step 2: log records become events of their span, which may stand before or after them.
    for (trace, known_as), events in logs.items():
        spans = traces[trace][1]
        ids = {"traceId": trace, "spanId": known_as}
        spans[known_as] = _add_events(spans.get(known_as), ids, events)
    # Step 3: build the records in order of time, so that a trace finds the passages of earlier ones
    # of its session. They are yielded in the order of the input.
    traces = {key: parts for key, parts in traces.items() if parts[1]}
    result: dict[str, Iterable[RawRecord]] = {}
    sources: Counter[str] = Counter()
    passages_by_session: dict[str, Any] = {}
    for key in sorted(
        traces, key=lambda trace: min(span.start for span in traces[trace][1].values())
    ):
        try:
            result[key] = _build_record(*traces[key], passages_by_session, sources)
        except RecursionError:
            problem = Problem(f"trace {key[:80]}", "is nested too deeply")
            result[key] = [RawRecord(next(iter(traces[key][0])), None, (problem,))]
    if sources:
        counts = "; ".join(f"{source} ({n:,})" for source, n in sources.items())
        tell_once(f"{name}: traces", f"{name}: traces: {counts}")
    yield from (raw for key in traces for raw in result[key])


def _find_spans(record: Mapping[str, Any]) -> Iterator[TraceSpan]:
    waiting: list[tuple[Mapping[str, Any], TraceSpan | None]] = [(record, None)]
    while waiting:
        span_object, within = waiting.pop()
        data = span_object["data"] if isinstance(span_object.get("data"), Mapping) else span_object
        inside = [part for name in _LISTS for part in _keep_mappings(data.get(name))]
        if not inside:
            inside = [part for name in _INSIDE for part in _keep_mappings(span_object.get(name))]
            within = TraceSpan(span_object, within)
            yield within
        waiting += [(part, within) for part in reversed(inside)]


def _read_log_record(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return a log record as an event of its span; an empty object for a span.

    The event has no name if the record is not about a call of a model.
    """
    attributes, body = _read_pairs(raw.get("attributes")), raw.get("body")
    name = str(raw.get("eventName") or raw.get("event_name") or attributes.get("event.name", ""))
    if isinstance(body, Mapping) and any(str(key).endswith("Value") for key in body):
        body = _unwrap_typed_value(body, _MAX_DEPTH)
    attributes |= {"gen_ai.event.content": body} if body else {}
    time = str(raw.get("timeUnixNano") or raw.get("timestamp") or 0)
    event = {
        "name": name if name.startswith("gen_ai.") else "",
        "attributes": attributes,
        "time": time,
    }
    return event if {"body", "eventName", "event_name"} & raw.keys() else {}


def _add_events(
    span: TraceSpan | None, ids: Mapping[str, str], events: list[dict[str, Any]]
) -> TraceSpan:
    """Return a span with its log records as events, in order of time.

    A span that no file has is created; it is a call of a model if a log record is about one.
    """
    # ISO times and nanoseconds both sort as texts, within one exporter.
    events.sort(key=lambda event: str(event["time"]))
    if span:
        events = [*_keep_mappings(span.raw.get("events")), *events]
        return TraceSpan({**span.raw, "events": events}, span.inside_of)
    ends = {"startTimeUnixNano": events[0]["time"], "endTimeUnixNano": events[-1]["time"]}
    kind = {"gen_ai.operation.name": "chat"} if any(event["name"] for event in events) else {}
    return TraceSpan(
        {**ids, **ends, "name": "log records", "attributes": kind, "events": events}, None
    )


def _build_record(
    lines: dict[str, RawRecord],
    spans_by_id: dict[str, TraceSpan],
    passages_by_session: dict[str, Any],
    sources: Counter[str],
) -> Iterable[RawRecord]:
    """Return the record of a trace.

    Args:
        lines: the lines of the trace, by their places. They are returned as they are if each is a
            sample by itself.
        spans_by_id: its spans by id.
        passages_by_session: by session, the passages of earlier traces by content; those of this
            trace are added.
        sources: counts of where questions and answers came from, for a message; it is updated.

    Returns:
        One record, the lines, or nothing where the kind of no span is known.
    """
    # A start is a text, and has the same form in all spans of a trace.
    spans = sorted(spans_by_id.values(), key=lambda span: span.start)
    # Step 1: traces that are not read as one record.
    are_separate = len(spans) == 1 or all(span.kind == "model" for span in spans)
    if are_separate and len(lines) == len(spans) and all(span.is_row for span in spans):
        return lines.values()
    if not any(span.kind for span in spans):
        sources["left out, without a call of a model or a tool"] += 1
        return ()
    # Step 2: passages, added to those of the session; equal ones are added once.
    session = next(filter(None, (span.text("session") for span in spans)), "")
    passages = passages_by_session.setdefault(session, {}) if session else {}
    roots = [span for span in spans if not span.parent]
    for name, passage in _find_passages(spans, roots):
        document = {"text": passage} if isinstance(passage, str) else passage
        known_as = document.get("id") or f"{name or 'messages'}:{len(passages) + 1}"
        passages.setdefault(_content_key(passage), {**document, "id": known_as})
    # Step 3: the question from the root, or else from the last call of a model; the response
    # likewise.
    models = [span for span in spans if span.kind == "model" and (span.input or span.output)]
    asking = [
        (find_question(span.input), span.asked_in) for span in (*roots[:1], *reversed(models))
    ]
    saying = [(find_answer(span.output), span.said_in) for span in (*roots[-1:], *models[-1:])]
    candidates = [
        [(a[0], by) for a, by in places if a and a[0].strip()] for places in (asking, saying)
    ]
    # Step 4: a broken trace becomes a faulty record that names the span.
    where = f"{next(iter(lines))}: trace {spans[0].trace:.80}"
    broken = _find_break(spans, roots) or _find_unmatched_result(spans, roots)
    if broken or not all(candidates):
        span, *problem = broken or (
            roots[-1],
            "response" if candidates[0] else "question",
            _CUT_MESSAGE,
        )
        return [
            RawRecord(
                f"{where}, span {span.name!r:.80} ({span.id:.80})", None, (Problem(*problem),)
            )
        ]
    (question, asked_in), (response, said_in) = candidates[0][0], candidates[1][0]
    sources.update([f"question from {asked_in}", f"response from {said_in}"])
    sources["passages"] += len(passages)
    # Step 5: the record, with other fields of the root if that is a record of an evaluation tool.
    root_fields = {k: v for k, v in roots[0].raw.items() if roots[0].is_row and k not in _INSIDE}
    record = dict((flatten_record(root_fields) or (root_fields, {}))[0])
    record |= {"id": spans[0].trace, "question": question, "response": response}
    record["model"] = next(filter(None, (span.text("model") for span in reversed(models))), None)
    record |= {"documents": list(passages.values())} if passages else {}
    # Step 6: the steps, from the longest chat and the calls of tools.
    chats = [part for span in (*models[-1:], *roots) for part in (span.input, span.output)]
    steps = _build_steps(spans, chats, question, {text: n for n, text in enumerate(passages, 1)})
    record |= {"steps": earlier} if (earlier := steps.as_list()) else {}
    # Scores are sent back to this span.
    record |= {"root_span": roots[-1].id, "started": roots[-1].start}
    return [RawRecord(where, record | ({"conversation": session} if session else {}))]


def _find_break(
    spans: Sequence[TraceSpan], roots: Sequence[TraceSpan]
) -> tuple[TraceSpan, str, str] | None:
    """Return the span at which a trace is broken, its field and the problem; ``None`` if whole."""
    spans_by_id = {span.id: span for span in spans}
    try:
        # ``prepare`` raises an error for a cycle; the order itself is not needed.
        TopologicalSorter({span.id: [span.parent] for span in spans if span.parent}).prepare()
    except CycleError as error:
        return spans_by_id[error.args[1][0]], "parent", "leads back to itself (a cycle)"
    if not roots:
        span = next(span for span in spans if span.parent not in spans_by_id)
        message = f"expected one in the file (the trace is cut), got {span.parent[:80]!r}"
        return span, "parent", message
    root = roots[-1]
    if root.cut:
        return root, "end", "is missing: the trace is cut before its end"
    failed = root.error and not root.output
    return (root, "output", f"is missing: it failed, {root.error[:200]!r}") if failed else None


def _content_key(passage: RawPassage) -> str:
    """Return a key that is the same for equal passages, however their JSON is written."""
    return json.dumps(decode_json(text_of(passage)), sort_keys=True)


def _find_unmatched_result(
    spans: Sequence[TraceSpan], roots: Sequence[TraceSpan]
) -> tuple[TraceSpan, str, str] | None:
    """Return the span with the result of a call that the trace does not have, its field and the
    problem; ``None`` if every result has its call."""
    chats = [
        (span, read_messages(_find_chat(value)))
        for span in spans
        for value in (span.input, span.output)
    ]
    calls = {span.text("call") for span in spans if span.kind == "tool"}
    # If a call of a tool has no id, results cannot be matched, and nothing is reported.
    chats_to_check = chats if "" not in calls else ()
    calls |= {known_as for _, chat in chats for message in chat for known_as in message.calls}
    for span, call in ((span, message.call) for span, chat in chats_to_check for message in chat):
        if call and call not in calls and (span.kind == "model" or span in roots):
            problem = f"expected a call of a tool for each result, none for {call[:80]!r}"
            return span, span.asked_in or "input", problem
    return None


def _build_steps(
    spans: Sequence[TraceSpan], chats: Iterable[Any], question: str, numbers: Mapping[str, int]
) -> AgentSteps:
    """Return the steps of a trace: the messages of the longest chat, then the calls of tools.

    Args:
        spans: the spans in order of time.
        chats: inputs and outputs that may be lists of messages.
        question: the question, for a trace without a chat.
        numbers: the numbers of the passages by content.
    """
    steps, kinds = AgentSteps(), {span.id: span.kind for span in spans}
    chat = max((read_messages(_find_chat(value)) for value in chats), key=len, default=[])
    # A tool inside a tool is part of the outer call.
    tools = [span for span in spans if span.kind == "tool" and kinds.get(span.parent) != "tool"]
    asks = [place for place, message in enumerate(chat, 1) if message.role == "user"]
    # With spans of tools the messages behind the last question would repeat their calls.
    earlier_messages = (
        chat[: asks[-1] if tools else None] if asks else [ChatMessage("user", question)]
    )
    for message in earlier_messages:
        steps.add(
            message,
            _find_passage_numbers(message.content, numbers) if message.role == "tool" else (),
        )
    for span in tools:
        input_messages = read_messages(span.input) if isinstance(span.input, list) else []
        written = span.find("arguments")[0] or (
            input_messages[-1].content if input_messages else span.input
        )
        value, failed = _read_result(span), span.text("failed").lower() in _FAILED_STATUSES
        error = find_failure({"failed": failed, "error": span.raw.get("error")}, value)
        error = (error and span.error) or error
        steps.add(ChatMessage("assistant", None, calls={span.id: Call(span.name, written)}))
        steps.add(
            ChatMessage("tool", None, span.id, error=error), _find_passage_numbers(value, numbers)
        )
    return steps


def _find_passage_numbers(value: Any, numbers: Mapping[str, int]) -> list[int]:
    """Return the numbers of the passages in the result of a tool."""
    return [
        n for passage in read_passages(value or "") if (n := numbers.get(_content_key(passage)))
    ]


def _read_result(span: TraceSpan) -> Any:
    """Return the result of a tool or a retriever."""
    value = span.output
    chat = read_messages(value if isinstance(value, list) else [value])
    return chat[-1].content if chat else read_tool_result({"content": value})


def _find_passages(
    spans: Sequence[TraceSpan], roots: Sequence[TraceSpan]
) -> Iterator[tuple[str, RawPassage]]:
    """Yield the passages of a trace in order of time, each with the name of its tool.

    They are results of tools, retrieved chunks, and passages in messages.
    """
    kinds = {span.id: span.kind for span in spans}
    for span in spans:
        if span.kind in {"tool", "retrieval"}:
            if not span.output or kinds.get(span.parent) == span.kind:
                continue  # the result of the outer span of the same kind counts
            yield from ((span.name, passage) for passage in read_passages(_read_result(span)))
        elif span.kind == "model" or span in roots:
            system = {"role": "system", "content": span.find("system")[0]}
            yield from find_passages(read_messages([system, *_find_chat(span.input)]))
    yield from (
        passage
        for root in roots
        for passage in find_passages(read_messages(_find_chat(root.output)))
    )


def _find_chat(value: Any) -> Sequence[Any]:
    """Return the messages in the input or output of a model."""
    if isinstance(value, Mapping):
        value = value.get("messages", value.get("input"))
    chats = value if isinstance(value, list) else []
    # LangChain writes a list of chats, one for each prompt.
    return chats[0] if len(chats) == 1 and isinstance(chats[0], list) else chats


def _read_attributes(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes of a span by their full names, including those in its events."""
    result = _read_pairs(raw.get("attributes"))
    result |= {k[11:]: v for k, v in raw.items() if k.startswith("attributes.")}
    for event in _keep_mappings(raw.get("events")):
        name, event_attributes = str(event.get("name")), _read_pairs(event.get("attributes"))
        # "gen_ai.user.message" is a message of the user; older OpenTelemetry wrote each message as
        # an event.
        role = "assistant" if name == "gen_ai.choice" else name[7:].removesuffix(".message")
        if name == "gen_ai.choice" or (name.startswith("gen_ai.") and name.endswith(".message")):
            content = decode_json(
                event_attributes.get(
                    "gen_ai.event.content", event_attributes.get("message", event_attributes)
                )
            )
            message = content if isinstance(content, Mapping) else {"content": content}
            place = f"gen_ai.{'output' if name == 'gen_ai.choice' else 'input'}.messages"
            message = {"role": role, **message.get("message", message)}
            message["content"] = decode_json(message.get("content"))
            result.setdefault(place, []).append(message)
        else:
            result |= {k: v for k, v in event_attributes.items() if k.startswith("gen_ai.")}
    return result


def _read_pairs(attributes: Any, levels_left: int = _MAX_DEPTH) -> dict[str, Any]:
    """Return attributes by name; OTLP writes a list of keys with typed values."""
    if isinstance(attributes, list):
        return {
            str(pair.get("key")): _unwrap_typed_value(pair.get("value"), levels_left)
            for pair in _keep_mappings(attributes)
        }
    return dict(attributes) if isinstance(attributes, Mapping) else {}


def _unwrap_typed_value(value: Any, levels_left: int) -> Any:
    inside = next(iter(value.values()), None) if isinstance(value, Mapping) else value
    parts = (
        _keep_mappings(inside.get("values"))
        if isinstance(inside, Mapping) and levels_left
        else None
    )
    if parts and "key" in parts[0]:
        return _read_pairs(parts, levels_left - 1)
    return (
        inside
        if parts is None
        else [_unwrap_typed_value(element, levels_left - 1) for element in parts]
    )


def _nest_attributes(value: Any, levels_left: int = _MAX_DEPTH) -> Any:
    """Return attributes as objects and lists: ``a.0.b`` is ``b`` of the first item of ``a``."""
    if isinstance(value, list) and levels_left:
        return [_nest_attributes(attribute, levels_left - 1) for attribute in value]
    if not isinstance(value, Mapping) or not levels_left:
        return value
    parts: dict[str, dict[str, Any]] = {}
    for name, attribute in value.items():
        first, _, name_behind = str(name).partition(".")
        parts.setdefault(first, {})[name_behind] = attribute
    for name, part in parts.items():
        parts[name] = _nest_attributes(part[""] if part.keys() == {""} else part, levels_left - 1)
    numbered = parts and all(name.isdecimal() for name in parts)
    return [parts[name] for name in sorted(parts, key=int)] if numbered else parts


def _keep_mappings(value: Any) -> list[Any]:
    return (
        [element for element in value if isinstance(element, Mapping)]
        if isinstance(value, list)
        else []
    )
