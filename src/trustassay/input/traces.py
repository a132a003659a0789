"""Reads traces as samples: the spans that exporters write become one record for each trace.

1. Spans are found in the records of the input, whatever exporter wrote them, and grouped by trace.
   The spans of a trace may be anywhere in a file, so they are kept in memory until it ends.
2. The response is the output of the root, or of the last call of a model that is no helper
   (:mod:`trustassay.input.answer_spans`); the question is the user's in the input of the root, or
   of that call.
3. The passages are all results of tools and all retrieved chunks, in order of time, and those that
   prompts show besides, after those of earlier traces of the same session.
4. The steps are the earlier messages and the calls of tools.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any

from trustassay.core.progress import tell_once
from trustassay.core.sample import Problem
from trustassay.input.answer_spans import (
    AnswerChoice,
    NoAnswer,
    SpanTree,
    choose_answer,
    describe_output_names,
)
from trustassay.input.chats import find_question, flatten_record
from trustassay.input.layouts import NAMES, normalise_name
from trustassay.input.messages import (
    AgentSteps,
    Call,
    ChatMessage,
    find_chat,
    find_failure,
    find_passages,
    read_messages,
    read_tool_result,
)
from trustassay.input.passages import DOCUMENTS, RawPassage, read_passages, text_of
from trustassay.input.prompts import is_rewriting_request, split_prompt
from trustassay.input.records import InputError, RawRecord, decode_json
from trustassay.input.spans import (
    HELPER,
    MAX_ATTRIBUTE_DEPTH,
    MODEL,
    RETRIEVAL,
    TOOL,
    TraceSpan,
    keep_mappings,
    read_pairs,
    unwrap_typed_value,
)

_TELLING = [frozenset(keys) for keys in NAMES["spans"]["telling"]]
_LISTS = (
    *("resourceSpans", "resource_spans", "scopeSpans", "scope_spans", "spans"),
    *("resourceLogs", "resource_logs", "scopeLogs", "scope_logs", "logRecords", "log_records"),
)
_IN_LISTS = {*_LISTS, "spanId", "span_id", "context"}
_INSIDE = ("observations", "child_runs")
"""``_LISTS`` are names of lists of spans in a record, ``_IN_LISTS`` names one of which the elements
of such a list have, and ``_INSIDE`` names of lists of inner spans in a span."""
_MAY_TELL = frozenset({"data", "context", *_LISTS, *_INSIDE}).union(*_TELLING)
_MAX_SOURCES = 5
"""Names of spans that a message lists."""
_FAILED_STATUSES = frozenset({"2", "error", "status_code_error", "statuscode.error"})


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
        element.keys() & _IN_LISTS for k in _LISTS for element in keep_mappings(data.get(k))[:1]
    ]
    inside = _INSIDE if "id" in record else ()
    identifying_keys += [
        element.keys() & {"id"} for k in inside for element in keep_mappings(record.get(k))[:1]
    ]
    return telling or "span_id" in context or any(identifying_keys)


def read_traces(raws: Iterable[RawRecord], name: str, answer_span: str = "") -> Iterator[RawRecord]:
    """Yield the records of an input that are no spans, and then one record for each trace.

    Args:
        raws: the records of the input.
        name: the name of the input, for messages.
        answer_span: the name of the spans whose outputs are the answers; empty where they are
            chosen (:mod:`trustassay.input.answer_spans`).

    Raises:
        InputError: no span has the name ``answer_span``.
    """
    traces: dict[str, tuple[dict[str, RawRecord], dict[str, TraceSpan]]] = {}
    logs: dict[tuple[str, str], list[dict[str, Any]]] = {}
    # Step 1: group spans by trace, and log records by trace and span. Records without a trace id
    # form a trace of their own.
    for raw in raws:
        if raw.problems or not is_trace(raw.record):
            yield raw
            continue
        for span in find_spans(raw.record):
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
    if answer_span:
        _check_answer_span(
            [s for _, spans in traces.values() for s in spans.values()], name, answer_span
        )
    result: dict[str, Iterable[RawRecord]] = {}
    sources: Counter[tuple[str, str]] = Counter()
    passages_by_session: dict[str, Any] = {}
    for key in sorted(
        traces, key=lambda trace: min(span.start for span in traces[trace][1].values())
    ):
        try:
            result[key] = _build_record(*traces[key], passages_by_session, sources, answer_span)
        except RecursionError:
            problem = Problem(f"trace {key[:80]}", "is nested too deeply")
            result[key] = [RawRecord(next(iter(traces[key][0])), None, (problem,))]
    if sources:
        tell_once(f"{name}: traces", f"{name}: traces: {_describe_sources(sources)}")
    yield from (raw for key in traces for raw in result[key])


def _check_answer_span(spans: Sequence[TraceSpan], name: str, answer_span: str) -> None:
    if not any(span.has_name(answer_span) for span in spans):
        message = f"no span is named {answer_span[:80]!r} (--answer-span)"
        raise InputError(f"{name}: {message}; {describe_output_names(spans)}")


def _describe_sources(sources: Counter[tuple[str, str]]) -> str:
    """Return what was taken from which spans, how often; of many names the most frequent ones."""
    parts = []
    for what in dict.fromkeys(what for what, _ in sources):
        counts = Counter({detail: n for (kind, detail), n in sources.items() if kind == what})
        listed = [
            f"{detail} ({n:,})" if detail else f"({n:,})"
            for detail, n in counts.most_common(_MAX_SOURCES)
        ]
        others = counts.total() - sum(n for _, n in counts.most_common(_MAX_SOURCES))
        listed += [f"others ({others:,})"] if others else []
        parts.append(f"{what} {', '.join(listed)}")
    return "; ".join(parts)


def find_spans(record: Mapping[str, Any]) -> Iterator[TraceSpan]:
    """Yield the spans of a record, whatever exporter wrote it."""
    waiting: list[tuple[Mapping[str, Any], TraceSpan | None]] = [(record, None)]
    while waiting:
        span_object, within = waiting.pop()
        data = span_object["data"] if isinstance(span_object.get("data"), Mapping) else span_object
        inside = [part for name in _LISTS for part in keep_mappings(data.get(name))]
        if not inside:
            inside = [part for name in _INSIDE for part in keep_mappings(span_object.get(name))]
            within = TraceSpan(span_object, within)
            yield within
        waiting += [(part, within) for part in reversed(inside)]


def _read_log_record(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return a log record as an event of its span; an empty object for a span.

    The event has no name if the record is not about a call of a model.
    """
    attributes, body = read_pairs(raw.get("attributes")), raw.get("body")
    name = str(raw.get("eventName") or raw.get("event_name") or attributes.get("event.name", ""))
    if isinstance(body, Mapping) and any(str(key).endswith("Value") for key in body):
        body = unwrap_typed_value(body, MAX_ATTRIBUTE_DEPTH)
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
        events = [*keep_mappings(span.raw.get("events")), *events]
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
    sources: Counter[tuple[str, str]],
    answer_span: str,
) -> Iterable[RawRecord]:
    """Return the record of a trace.

    Args:
        lines: the lines of the trace, by their places. They are returned as they are if each is a
            sample by itself.
        spans_by_id: its spans by id.
        passages_by_session: by session, the passages of earlier traces by content; those of this
            trace are added.
        sources: counts of where questions and answers came from, for a message; it is updated.
        answer_span: the name of the span with the answer; empty where it is chosen.

    Returns:
        One record, the lines, or nothing where the kind of no span is known.
    """
    # A start is a text, and has the same form in all spans of a trace.
    spans = sorted(spans_by_id.values(), key=lambda span: span.start)
    # Step 1: traces that are not read as one record.
    are_separate = len(spans) == 1 or all(span.kind == MODEL for span in spans)
    are_rows = len(lines) == len(spans) and all(span.is_row for span in spans)
    if are_separate and are_rows and not answer_span:
        return _keep_answers(lines, spans_by_id, sources)
    if not any(span.kind and span.kind != HELPER for span in spans):
        sources["left out because they have no call of a model or a tool", ""] += 1
        return ()
    where = f"{next(iter(lines))}: trace {spans[0].trace:.80}"
    if cycle := _find_cycle(spans):
        return [_build_fault(where, *cycle)]
    # Step 2: the answer, and the question: from the root, or else from the call that answers.
    tree = SpanTree(spans)
    choice = choose_answer(tree, answer_span)
    calls = tree.list_calls()
    call = None if isinstance(choice, NoAnswer) else choice.call
    around = [] if isinstance(choice, NoAnswer) else tree.list_path(call or choice.span)
    question, asking_span = _find_question([*tree.list_answering_roots(), *around, *calls[::-1]])
    # Step 3: passages, added to those of the session; equal ones are added once.
    session = next(filter(None, (span.text("session") for span in spans)), "")
    passages = passages_by_session.setdefault(session, {}) if session else {}
    # An export of roots alone has the passages beside the answer.
    named_passages = list(_find_passages(tree)) or list(_find_passages_of_roots(tree))
    _add_passages(named_passages, passages)
    # Step 4: a broken trace becomes a faulty record that names the span.
    fault = (None if answer_span else _find_break(tree, choice)) or _find_unmatched_result(tree)
    fault = fault or _find_missing(tree, choice, asking_span)
    if fault:
        return [_build_fault(where, *fault)]
    assert asking_span and not isinstance(choice, NoAnswer)  # nothing is missing
    span = choice.span
    sources["question from", f"{asking_span.input_field}{_name_span(asking_span)}"] += 1
    sources["response from", f"{span.output_field}{_name_span(span)}"] += 1
    sources["passages", ""] += len(passages)
    if len(tree.orphans) > 1 and tree.roots is tree.orphans:
        sources["traces without a root", ""] += 1
    if not answer_span:
        _count_helpers(tree, sources)
    # Step 5: the record, with other fields of the root if that is a record of an evaluation tool.
    root = tree.list_path(span)[0]
    root_fields = {k: v for k, v in root.raw.items() if root.is_row and k not in _INSIDE}
    record = dict((flatten_record(root_fields) or (root_fields, {}))[0])
    record |= {"id": spans[0].trace, "question": question, "response": choice.text}
    models = [span.text("model") for span in ([call] if call else []) + calls[::-1] + [root]]
    record["model"] = next(filter(None, models), None)
    record |= {"documents": list(passages.values())} if passages else {}
    # Step 6: the steps, from the longest chat and the calls of tools.
    with_chats = [*([call] if call else []), *tree.roots]
    chats = [part for span in with_chats for part in (span.input, span.output)]
    steps = _build_steps(spans, chats, question, {text: n for n, text in enumerate(passages, 1)})
    record |= {"steps": earlier} if (earlier := steps.as_list()) else {}
    # Scores are sent back to this span.
    record |= {"root_span": root.id, "started": root.start}
    return [RawRecord(where, record | ({"conversation": session} if session else {}))]


def _keep_answers(
    lines: Mapping[str, RawRecord],
    spans_by_id: Mapping[str, TraceSpan],
    sources: Counter[tuple[str, str]],
) -> Iterable[RawRecord]:
    """Return the lines of calls of models that are samples by themselves, without helpers."""
    spans = list(spans_by_id.values())
    tree = SpanTree(spans)
    answers = [
        line for line, span in zip(lines.values(), spans, strict=True) if not tree.is_helper(span)
    ]
    if not answers:
        return lines.values()
    _count_helpers(tree, sources)
    return answers


def _count_helpers(tree: SpanTree, sources: Counter[tuple[str, str]]) -> None:
    sources.update(("ignored helper calls", repr(span.name[:40])) for span in tree.list_helpers())


def _build_fault(where: str, span: TraceSpan, field: str, message: str) -> RawRecord:
    place = f"{where}, span {span.name!r:.80} ({span.id:.80})"
    return RawRecord(place, None, (Problem(field, message),))


def _name_span(span: TraceSpan) -> str:
    return f" of {span.name[:40]!r}" if span.name else ""


def _find_question(spans: Iterable[TraceSpan]) -> tuple[str, TraceSpan | None]:
    """Return the user's question from the first span that has one, without passages around it."""
    for span in spans:
        asked = find_question(span.input)
        if asked and not is_rewriting_request(asked[0]):
            question = split_prompt(asked[0]).question
            if question.strip():
                return question, span
    return "", None


def _add_passages(
    named_passages: Iterable[tuple[str, RawPassage]], passages: dict[str, Any]
) -> None:
    """Add the passages of a trace, each once, with its tool's name, to others by content."""
    texts: list[str] = []
    for name, passage in named_passages:
        document = {"text": passage} if isinstance(passage, str) else passage
        text = " ".join(str(document["text"]).split())
        # A prompt mostly shows what a retriever returned, maybe with other spaces around it.
        if not name and any(text in other for other in texts):
            continue
        known_as = document.get("id") or f"{name or 'messages'}:{len(passages) + 1}"
        passages.setdefault(_content_key(passage), {**document, "id": known_as})
        texts.append(text)


def _find_cycle(spans: Sequence[TraceSpan]) -> tuple[TraceSpan, str, str] | None:
    """Return a span whose parents lead back to it, its field and the problem."""
    spans_by_id = {span.id: span for span in spans}
    try:
        # ``prepare`` raises an error for a cycle; the order itself is not needed.
        TopologicalSorter({span.id: [span.parent] for span in spans if span.parent}).prepare()
    except CycleError as error:
        return spans_by_id[error.args[1][0]], "parent", "leads back to itself (a cycle)"
    return None


def _find_break(
    tree: SpanTree, choice: AnswerChoice | NoAnswer
) -> tuple[TraceSpan, str, str] | None:
    """Return the span at which a trace is broken, its field and the problem; ``None`` if whole."""
    root = tree.roots[-1] if isinstance(choice, NoAnswer) else tree.list_path(choice.span)[0]
    # A parent that is not in the file is mostly in another service, or was not exported. It is the
    # end of the trace that is missing where nothing answers, or its last step is no answer.
    lacks_end = isinstance(choice, NoAnswer) and choice.is_missing
    last = tree.roots[-1]
    if last in tree.orphans and (lacks_end or last.kind in (TOOL, RETRIEVAL)):
        message = f"expected a span of the file, got {last.parent[:80]!r} (the trace is truncated)"
        return last, "parent", message
    if root.cut:
        return root, "end", "is missing: the trace is truncated"
    failed = root.error and not root.output
    return (root, "output", f"is missing: it failed ({root.error[:200]!r})") if failed else None


def _find_missing(
    tree: SpanTree, choice: AnswerChoice | NoAnswer, asking_span: TraceSpan | None
) -> tuple[TraceSpan, str, str] | None:
    """Return the span at which a question or an answer is missing, its field and the problem."""
    lacks_question = tree.roots[-1], "question", NoAnswer(tree.roots[-1]).message
    if isinstance(choice, NoAnswer):
        is_first = asking_span is None and choice.is_missing
        return lacks_question if is_first else (choice.span, "response", choice.message)
    return lacks_question if asking_span is None else None


def _content_key(passage: RawPassage) -> str:
    """Return a key that is the same for equal passages, however their JSON is written."""
    return json.dumps(decode_json(text_of(passage)), sort_keys=True)


def _find_unmatched_result(tree: SpanTree) -> tuple[TraceSpan, str, str] | None:
    """Return the span with the result of a call that the trace does not have, its field and the
    problem; ``None`` if every result has its call."""
    spans, roots = tree.spans, tree.roots
    chats = [
        (span, read_messages(find_chat(value)))
        for span in spans
        for value in (span.input, span.output)
    ]
    calls = {span.text("call") for span in spans if span.kind == TOOL}
    # If a call of a tool has no id, results cannot be matched, and nothing is reported.
    chats_to_check = chats if "" not in calls else ()
    calls |= {known_as for _, chat in chats for message in chat for known_as in message.calls}
    for span, call in ((span, message.call) for span, chat in chats_to_check for message in chat):
        if call and call not in calls and (span.kind == MODEL or span in roots):
            problem = f"expected a tool call for each tool result, got none for {call[:80]!r}"
            return span, span.input_field or "input", problem
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
    chat = max((read_messages(find_chat(value)) for value in chats), key=len, default=[])
    # A tool inside a tool is part of the outer call.
    tools = [span for span in spans if span.kind == TOOL and kinds.get(span.parent) != TOOL]
    asks = [place for place, message in enumerate(chat, 1) if message.role == "user"]
    # With spans of tools the messages behind the last question would repeat their calls.
    earlier_messages = (
        chat[: asks[-1] if tools else None] if asks else [ChatMessage("user", question)]
    )
    for message in earlier_messages:
        content = message.content
        # Passages in a message of the user are passages of the record.
        asked = split_prompt(content or "").question if message.role == "user" else content
        steps.add(
            message._replace(content=asked),
            _find_passage_numbers(content, numbers) if message.role == "tool" else (),
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


def _find_passages(tree: SpanTree) -> Iterator[tuple[str, RawPassage]]:
    """Yield the passages of a trace in order of time, each with the name of its tool.

    They are results of tools, retrieved chunks, and passages in messages; these have no name.
    """
    kinds = {span.id: span.kind for span in tree.spans}
    roots = tree.list_answering_roots()
    reading = {*tree.list_calls(), *roots}
    for span in tree.spans:
        if span.kind in (TOOL, RETRIEVAL):
            if not span.output or kinds.get(span.parent) == span.kind:
                continue  # the result of the outer span of the same kind counts
            yield from ((span.name, passage) for passage in read_passages(_read_result(span)))
        elif span in reading:
            chat = find_chat(span.input)
            if not read_messages(chat) and (asked := find_question(span.input)):
                chat = [{"role": "user", "content": asked[0]}]
            system = {"role": "system", "content": span.find("system")[0]}
            yield from find_passages(read_messages([system, *chat]))
    yield from (
        passage
        for root in roots
        for passage in find_passages(read_messages(find_chat(root.output)))
    )


def _find_passages_of_roots(tree: SpanTree) -> Iterator[tuple[str, RawPassage]]:
    """Yield the passages beside the answers in the outputs of the roots."""
    for root in tree.list_answering_roots():
        for name, value in root.output.items() if isinstance(root.output, Mapping) else ():
            if normalise_name(str(name)) in DOCUMENTS and value:
                yield from ((root.name, passage) for passage in read_passages(value))
