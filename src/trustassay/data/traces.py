"""Traces as samples: the spans that exporters write, gathered by trace; each trace is one record.

The question is what the user asked last, the response the output of the root or of the last call of
a model. Passages are all results of tools and all retrieved chunks up to there, in order of time,
after those of earlier traces of the same session. The spans of a trace may lie anywhere in a file,
so they are kept in memory until it ends.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any

from trustassay.data.conversations import asked, said, unfolded
from trustassay.data.layouts import NAMES, normal
from trustassay.data.messages import messages_of, passages_in, returned
from trustassay.data.passage_texts import Passage
from trustassay.data.passages import read_passages, text_of
from trustassay.data.records import Raw
from trustassay.data.steps import Call, Message, Steps, failure
from trustassay.data.values import decode_json
from trustassay.progress import tell
from trustassay.sample import Problem, clean

_PLACES: Mapping[str, Any] = NAMES["spans"]
_KINDS = {word: kind for kind, words in _PLACES["kinds"].items() for word in words.split()}
_TELLING = [frozenset(keys) for keys in _PLACES["telling"]]
_LISTS = (
    *("resourceSpans", "resource_spans", "scopeSpans", "scope_spans", "spans"),
    *("resourceLogs", "resource_logs", "scopeLogs", "scope_logs", "logRecords", "log_records"),
)
_IN_LISTS = {*_LISTS, "spanId", "span_id", "context"}
_INSIDE = ("observations", "child_runs")
"""Names of lists of spans, all of their record, and one of what these hold; of those in a span."""
_MAY_TELL = frozenset({"data", "context", *_LISTS, *_INSIDE}).union(*_TELLING)
_CUT = "is missing in the root and the last call of a model: the trace is cut, or without texts"
_DEEPEST = 32  # levels of attributes
_FAILED = frozenset({"2", "error", "status_code_error", "statuscode.error"})
_announced: set[str] = set()


class Span:
    """One span, whatever wrote it; ``within`` is the span in which it is written, if any. The kind
    is ``model``, ``tool``, ``retrieval``, ``other``, or empty where nothing tells it."""

    def __init__(self, raw: Mapping[str, Any], within: "Span | None") -> None:
        self.raw, self.inside_of = raw, within
        self._own = {normal(str(key)): value for key, value in raw.items()}
        self._own["within"] = within.id if within else None
        if "run_type" in raw:
            self._own.pop("session_id", None)  # LangSmith's is the project
        self._attributes = _nested(_attributes(raw))
        self.trace: str = within.trace if within else self.text("trace")
        self.id: str = self.text("id")
        self.parent, self.name = map(self.text, ("parent", "name"))
        self.kind = _KINDS.get(self.text("kind").lower(), "")
        self.input, self.asked_in = self.find("input")
        self.output, self.said_in = self.find("output")
        if isinstance(self.input, Mapping) and isinstance(self.input.get("args"), list):
            self.input = [*self.input["args"], self.input.get("kwargs")][0]  # of a function
        self.is_row = bool({"inputs", "input"} & raw.keys()) and "attributes" not in raw
        self.start, self.error = map(self.text, ("start", "error"))
        self.cut = not self.text("end") and any(one[1:] in self._own for one in _PLACES["end"])

    def find(self, what: str) -> tuple[Any, str]:
        """Return the value of the first of the fields that may hold a part, and its name."""
        for place in _PLACES[what]:
            value: Any = self._own if place.startswith(".") else self._attributes
            for name in place.removeprefix(".").split("."):
                value = value.get(name) if isinstance(value, Mapping) else None
            value = decode_json(value.get("", value) if isinstance(value, Mapping) else value)
            if value not in (None, "", [], {}):
                return value, place.removeprefix(".")
        return None, ""

    def text(self, what: str) -> str:
        """Return a part as text of one line, empty where it is missing."""
        value = self.find(what)[0]
        return clean(" ".join(str(value).split())) if isinstance(value, str | int | float) else ""


def is_trace(record: Any) -> bool:
    """Return whether a record holds spans."""
    if not isinstance(record, Mapping) or _MAY_TELL.isdisjoint(record):
        return False  # most are read here alone
    data = record["data"] if isinstance(record.get("data"), Mapping) else record
    context = record["context"] if isinstance(record.get("context"), Mapping) else ()
    telling = any(keys <= record.keys() for keys in _TELLING)
    held = [one.keys() & _IN_LISTS for k in _LISTS for one in _mappings(data.get(k))[:1]]
    inside = _INSIDE if "id" in record else ()
    held += [one.keys() & {"id"} for k in inside for one in _mappings(record.get(k))[:1]]
    return telling or "span_id" in context or any(held)


def traced(raws: Iterable[Raw], name: str) -> Iterator[Raw]:
    """Yield the records of an input that are no spans, and then each trace as one; ``name`` is the
    input's."""
    traces: dict[str, tuple[dict[str, Raw], dict[str, Span]]] = {}
    logs: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for raw in raws:
        if raw.problems or not is_trace(raw.record):
            yield raw
            continue
        for span in _spans_in(raw.record):
            lines, spans = traces.setdefault(span.trace or raw.where, ({}, {}))
            if event := _logged(span.raw):
                logs.setdefault((span.trace or raw.where, span.id), []).append(event)
            else:
                spans[span.id or str(len(spans))] = span
            lines[raw.where] = raw
    for (trace, known_as), events in logs.items():
        spans = traces[trace][1]
        ids = {"traceId": trace, "spanId": known_as}
        spans[known_as] = _with_events(spans.get(known_as), ids, events)
    traces = {key: one for key, one in traces.items() if one[1]}
    result: dict[str, Iterable[Raw]] = {}
    sources: Counter[str] = Counter()
    shown: dict[str, Any] = {}
    for key in sorted(traces, key=lambda one: min(span.start for span in traces[one][1].values())):
        try:
            result[key] = _records(*traces[key], shown, sources)
        except RecursionError:
            problem = Problem(f"trace {key[:80]}", "is nested too deeply")
            result[key] = [Raw(next(iter(traces[key][0])), None, (problem,))]
    if sources and name not in _announced:
        _announced.add(name)
        tell(f"{name}: traces: " + "; ".join(f"{one} ({n:,})" for one, n in sources.items()))
    yield from (raw for key in traces for raw in result[key])


def _spans_in(record: Mapping[str, Any]) -> Iterator[Span]:
    waiting: list[tuple[Mapping[str, Any], Span | None]] = [(record, None)]
    while waiting:
        one, within = waiting.pop()
        data = one["data"] if isinstance(one.get("data"), Mapping) else one
        inside = [part for name in _LISTS for part in _mappings(data.get(name))]
        if not inside:
            inside = [part for name in _INSIDE for part in _mappings(one.get(name))]
            within = Span(one, within)
            yield within
        waiting += [(part, within) for part in reversed(inside)]


def _logged(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return a log record as an event of its span, without a name if it tells of other things;
    empty for a span."""
    told, body = _pairs(raw.get("attributes")), raw.get("body")
    name = str(raw.get("eventName") or raw.get("event_name") or told.get("event.name", ""))
    if isinstance(body, Mapping) and any(str(key).endswith("Value") for key in body):
        body = _typed(body, _DEEPEST)
    told |= {"gen_ai.event.content": body} if body else {}
    time = str(raw.get("timeUnixNano") or raw.get("timestamp") or 0)
    event = {"name": name if name.startswith("gen_ai.") else "", "attributes": told, "time": time}
    return event if {"body", "eventName", "event_name"} & raw.keys() else {}


def _with_events(span: Span | None, ids: Mapping[str, str], events: list[dict[str, Any]]) -> Span:
    """Return a span with what log records tell of it, in order of time; one that is in no file is a
    call of a model."""
    events.sort(key=lambda one: str(one["time"]))
    if span:
        events = [*_mappings(span.raw.get("events")), *events]
        return Span({**span.raw, "events": events}, span.inside_of)
    ends = {"startTimeUnixNano": events[0]["time"], "endTimeUnixNano": events[-1]["time"]}
    kind = {"gen_ai.operation.name": "chat"} if any(one["name"] for one in events) else {}
    return Span({**ids, **ends, "name": "log records", "attributes": kind, "events": events}, None)


def _records(
    lines: dict[str, Raw], given: dict[str, Span], shown: dict[str, Any], sources: Counter[str]
) -> Iterable[Raw]:
    """Return the record of a trace; its lines where each is a sample, nothing where no span tells
    its kind. ``shown`` are the passages of each session up to now, by their texts."""
    spans = sorted(given.values(), key=lambda one: one.start)  # a text, in one form in a trace
    alone = len(spans) == 1 or all(one.kind == "model" for one in spans)
    if alone and len(lines) == len(spans) and all(one.is_row for one in spans):
        return lines.values()
    if not any(one.kind for one in spans):
        sources["left out, without a call of a model or a tool"] += 1
        return ()
    session = next(filter(None, (one.text("session") for one in spans)), "")
    passages = shown.setdefault(session, {}) if session else {}
    roots = [one for one in spans if not one.parent]
    for name, passage in _passages(spans, roots):
        one = {"text": passage} if isinstance(passage, str) else passage
        known_as = one.get("id") or f"{name or 'messages'}:{len(passages) + 1}"
        passages.setdefault(_content(passage), {**one, "id": known_as})
    models = [one for one in spans if one.kind == "model" and (one.input or one.output)]
    asking = [(asked(one.input), one.asked_in) for one in (*roots[:1], *reversed(models))]
    saying = [(said(one.output), one.said_in) for one in (*roots[-1:], *models[-1:])]
    found = [[(a[0], by) for a, by in told if a and a[0].strip()] for told in (asking, saying)]
    where = f"{next(iter(lines))}: trace {spans[0].trace:.80}"
    broken = _broken(spans, roots) or _unmatched(spans, roots)
    if broken or not all(found):
        span, *problem = broken or (roots[-1], "response" if found[0] else "question", _CUT)
        return [Raw(f"{where}, span {span.name!r:.80} ({span.id:.80})", None, (Problem(*problem),))]
    (question, asked_in), (response, said_in) = found[0][0], found[1][0]
    sources.update([f"question from {asked_in}", f"response from {said_in}"])
    sources["passages"] += len(passages)
    own = {k: v for k, v in roots[0].raw.items() if roots[0].is_row and k not in _INSIDE}
    record = dict((unfolded(own) or (own, {}))[0])
    record |= {"id": spans[0].trace, "question": question, "response": response}
    record["model"] = next(filter(None, (one.text("model") for one in reversed(models))), None)
    record |= {"documents": list(passages.values())} if passages else {}
    chats = [part for one in (*models[-1:], *roots) for part in (one.input, one.output)]
    steps = _steps(spans, chats, question, {text: n for n, text in enumerate(passages, 1)})
    record |= {"steps": told} if (told := steps.so_far()) else {}
    record |= {"root_span": roots[-1].id, "started": roots[-1].start}  # where scores are sent back
    return [Raw(where, record | ({"conversation": session} if session else {}))]


def _broken(spans: Sequence[Span], roots: Sequence[Span]) -> tuple[Span, str, str] | None:
    """Return at which span a trace is broken, at which field of it, and how."""
    known = {one.id: one for one in spans}
    try:
        TopologicalSorter({one.id: [one.parent] for one in spans if one.parent}).prepare()
    except CycleError as error:
        return known[error.args[1][0]], "parent", "leads back to itself (a cycle)"
    if not roots:
        span = next(one for one in spans if one.parent not in known)
        got = f"expected one in the file (the trace is cut), got {span.parent[:80]!r}"
        return span, "parent", got
    root = roots[-1]
    if root.cut:
        return root, "end", "is missing: the trace is cut before its end"
    failed = root.error and not root.output
    return (root, "output", f"is missing: it failed, {root.error[:200]!r}") if failed else None


def _content(passage: Passage) -> str:
    """Return what is the same for equal passages."""
    return json.dumps(decode_json(text_of(passage)), sort_keys=True)


def _unmatched(spans: Sequence[Span], roots: Sequence[Span]) -> tuple[Span, str, str] | None:
    """Return at which span a message has the result of a call that the trace does not have."""
    chats = [(one, messages_of(_chat(v))) for one in spans for v in (one.input, one.output)]
    calls = {one.text("call") for one in spans if one.kind == "tool"}
    told = chats if "" not in calls else ()
    calls |= {known_as for _, chat in chats for one in chat for known_as in one.calls}
    for span, call in ((span, one.call) for span, chat in told for one in chat):
        if call and call not in calls and (span.kind == "model" or span in roots):
            message = f"expected a call of a tool for each result, none for {call[:80]!r}"
            return span, span.asked_in or "input", message
    return None


def _steps(
    spans: Sequence[Span], chats: Iterable[Any], question: str, numbers: Mapping[str, int]
) -> Steps:
    """Return the steps of a trace: earlier turns by the longest chat, and then its calls of tools;
    ``numbers`` are those of passages by their content."""
    steps, kinds = Steps(), {one.id: one.kind for one in spans}
    chat = max((messages_of(_chat(one)) for one in chats), key=len, default=[])
    tools = [one for one in spans if one.kind == "tool" and kinds.get(one.parent) != "tool"]
    asks = [place for place, one in enumerate(chat, 1) if one.role == "user"]
    told = chat[: asks[-1] if tools else None] if asks else [Message("user", question)]
    for one in told:
        steps.add(one, _numbers(one.content, numbers) if one.role == "tool" else ())
    for span in tools:
        given = messages_of(span.input) if isinstance(span.input, list) else []
        written = span.find("arguments")[0] or (given[-1].content if given else span.input)
        value, failed = _returned(span), span.text("failed").lower() in _FAILED
        error = failure({"failed": failed, "error": span.raw.get("error")}, value)
        error = (error and span.error) or error
        steps.add(Message("assistant", None, calls={span.id: Call(span.name, written)}))
        steps.add(Message("tool", None, span.id, error=error), _numbers(value, numbers))
    return steps


def _numbers(value: Any, numbers: Mapping[str, int]) -> list[int]:
    """Return the numbers of the passages in what a tool returned."""
    return [n for one in read_passages(value or "") if (n := numbers.get(_content(one)))]


def _returned(span: Span) -> Any:
    """Return what a tool returned, or a retriever found."""
    value = span.output
    chat = messages_of(value if isinstance(value, list) else [value])
    return chat[-1].content if chat else returned({"content": value})


def _passages(spans: Sequence[Span], roots: Sequence[Span]) -> Iterator[tuple[str, Passage]]:
    """Yield what tools returned, what was retrieved and what messages show, in order of time, each
    with the name of its tool."""
    kinds = {one.id: one.kind for one in spans}
    for span in spans:
        if span.kind in {"tool", "retrieval"}:
            if not span.output or kinds.get(span.parent) == span.kind:
                continue  # what the outer one returned counts
            yield from ((span.name, one) for one in read_passages(_returned(span)))
        elif span.kind == "model" or span in roots:
            system = {"role": "system", "content": span.find("system")[0]}
            yield from passages_in(messages_of([system, *_chat(span.input)]))
    yield from (one for root in roots for one in passages_in(messages_of(_chat(root.output))))


def _chat(value: Any) -> Sequence[Any]:
    """Return the messages of what a model was asked, or replied."""
    if isinstance(value, Mapping):
        value = value.get("messages", value.get("input"))
    chats = value if isinstance(value, list) else []
    return chats[0] if len(chats) == 1 and isinstance(chats[0], list) else chats  # LangChain


def _attributes(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes of a span by their full names, events read as the later ones."""
    result = _pairs(raw.get("attributes"))
    result |= {k[11:]: v for k, v in raw.items() if k.startswith("attributes.")}
    for event in _mappings(raw.get("events")):
        name, told = str(event.get("name")), _pairs(event.get("attributes"))
        role = "assistant" if name == "gen_ai.choice" else name[7:].removesuffix(".message")
        if name == "gen_ai.choice" or (name.startswith("gen_ai.") and name.endswith(".message")):
            content = decode_json(told.get("gen_ai.event.content", told.get("message", told)))
            message = content if isinstance(content, Mapping) else {"content": content}
            place = f"gen_ai.{'output' if name == 'gen_ai.choice' else 'input'}.messages"
            message = {"role": role, **message.get("message", message)}
            message["content"] = decode_json(message.get("content"))
            result.setdefault(place, []).append(message)
        else:
            result |= {k: v for k, v in told.items() if k.startswith("gen_ai.")}
    return result


def _pairs(given: Any, left: int = _DEEPEST) -> dict[str, Any]:
    """Return attributes by their names; OTLP has a list of them, each value by its type."""
    if isinstance(given, list):
        return {str(one.get("key")): _typed(one.get("value"), left) for one in _mappings(given)}
    return dict(given) if isinstance(given, Mapping) else {}


def _typed(value: Any, left: int) -> Any:
    inside = next(iter(value.values()), None) if isinstance(value, Mapping) else value
    parts = _mappings(inside.get("values")) if isinstance(inside, Mapping) and left else None
    if parts and "key" in parts[0]:
        return _pairs(parts, left - 1)
    return inside if parts is None else [_typed(one, left - 1) for one in parts]


def _nested(value: Any, left: int = _DEEPEST) -> Any:
    """Return attributes as objects and lists: ``a.0.b`` is field ``b`` of the first item of a."""
    if isinstance(value, list) and left:
        return [_nested(one, left - 1) for one in value]
    if not isinstance(value, Mapping) or not left:
        return value
    parts: dict[str, dict[str, Any]] = {}
    for name, one in value.items():
        first, _, rest = str(name).partition(".")
        parts.setdefault(first, {})[rest] = one
    for name, part in parts.items():
        parts[name] = _nested(part[""] if part.keys() == {""} else part, left - 1)
    numbered = parts and all(name.isdecimal() for name in parts)
    return [parts[name] for name in sorted(parts, key=int)] if numbered else parts


def _mappings(value: Any) -> list[Any]:
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []
