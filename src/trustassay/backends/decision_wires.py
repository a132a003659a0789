"""The two wires of decision models as plain values: requests and replies, read and built.

``systemone`` is TypeSafe's ``POST /v1/systemone``, which vLLM, SGLang, llama.cpp and Ollama also
speak; ``decisions`` is OpenAI's ``POST /v1/decisions``, also of vLLM. Requests have what the
October version of the latter knows. SGLang's own ``/v1/decisions`` is a third wire, which is only
recognised.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple

from trustassay.core.decisions import (
    MAX_SCORE_LEVELS,
    DecisionAnswer,
    DecisionQuestion,
    QuestionKind,
    compute_probabilities,
)
from trustassay.errors import BackendError, CallError, UnparsedError

Wire = Literal["systemone", "decisions"]
PATHS: Mapping[str, str] = {"systemone": "/v1/systemone", "decisions": "/v1/decisions"}
MAX_QUESTIONS = 64
"""Questions of a request that every server takes."""
MAX_CHOICES = 255
_TYPES: Mapping[str, Mapping[QuestionKind, str]] = {
    "systemone": {"yes_no": "noul", "choice": "choice", "score": "score"},
    "decisions": {"yes_no": "predicate", "choice": "choice", "score": "score"},
}
"""What each wire calls the kinds of questions."""
_MESSAGE_KEYS = frozenset({"error", "message", "msg", "detail", "param"})
"""Keys of an error's body whose texts may name a question. Others may echo what was sent."""
_NAMED_QUESTION = re.compile(r"\bquestions\W{1,3}q?(\d{1,3})\b|\bq(\d{1,3})\b")
_SGLANG_FIELD = re.compile(r"\bquestions\W{1,3}\d+\W{1,3}(?:id|question)\b|yes_no")


class DecisionRequest(NamedTuple):
    """What a request of either wire asks."""

    model: str
    """Name of the model."""
    ids: tuple[str | None, ...]
    """The id of each question; ``None`` where the request has none."""
    questions: tuple[DecisionQuestion, ...]
    """The questions, all about one state."""
    values: tuple[tuple[Any, ...], ...]
    """The options of each question as the request has them: texts, or true and false."""


def build_request(wire: str, model: str, questions: Sequence[DecisionQuestion]) -> dict[str, Any]:
    """Return the body of a request; the questions have one state, and get the ids q0, q1, ..."""
    state = questions[0].state
    if wire == "systemone":
        by_id = {f"q{place}": _to_systemone(q) for place, q in enumerate(questions)}
        return {"model": model, "state": state, "questions": by_id}
    rows = [{**_to_decisions(q), "name": f"q{place}"} for place, q in enumerate(questions)]
    return {"model": model, "input": state, "questions": rows}


def _to_systemone(question: DecisionQuestion) -> dict[str, Any]:
    descriptions = dict(question.options)
    criteria: Any = {name: description or None for name, description in question.options}
    if question.kind == "score":
        # A level is one text on this wire.
        criteria = [": ".join(filter(None, level)) for level in question.options]
    elif question.kind == "yes_no":
        both = (("true", descriptions["yes"]), ("false", descriptions["no"]))
        criteria = {name: description for name, description in both if description}
    result = {"type": _TYPES["systemone"][question.kind], "instructions": question.instructions}
    return {**result, "criteria": criteria} if criteria else result


def _to_decisions(question: DecisionQuestion) -> dict[str, Any]:
    instructions = question.instructions
    result: dict[str, Any] = {"type": _TYPES["decisions"][question.kind]}
    if question.kind == "yes_no":
        # A predicate has no field for what yes and no mean.
        meanings = (f"{n.capitalize()}: {means}" for n, means in question.options if means)
        return result | {"instructions": "\n".join((instructions, *meanings))}
    plural, name_key = ("levels", "label") if question.kind == "score" else ("choices", "value")
    rows = [{name_key: n, "description": text} for n, text in question.options]
    # An empty description is left out: a server may refuse it.
    result[plural] = [{key: text for key, text in row.items() if text} for row in rows]
    return result | {"instructions": instructions}


def parse_reply(
    wire: str, name: str, body: Any, questions: Sequence[DecisionQuestion]
) -> list[DecisionAnswer | BackendError]:
    """Return the answer to each question of a request, or its error; ``name`` is for messages.

    Raises:
        CallError: the body is of neither wire, or of SGLang's own.
    """
    answers = body.get("answers") if isinstance(body, Mapping) else None
    if wire == "decisions" and isinstance(answers, Mapping):
        raise build_sglang_error(name)
    if not isinstance(answers, Mapping if wire == "systemone" else list):
        raise CallError(f"{name}: the reply has no answers", "malformed")
    if isinstance(answers, list):
        rows = [row if isinstance(row, Mapping) else {} for row in answers]
        by_id = {row["name"]: row for row in rows if isinstance(row.get("name"), str)}
        # Without names the order counts, which says nothing if an answer is missing.
        if not by_id and len(rows) == len(questions):
            by_id = {f"q{place}": row for place, row in enumerate(rows)}
        answers = by_id
    model, diagnostics = body.get("model"), body.get("diagnostics")
    tokens = [_read_count(body.get("usage"), key) for key in ("input_tokens", "output_tokens")]
    result: list[DecisionAnswer | BackendError] = []
    for place, question in enumerate(questions):
        answer = answers.get(f"q{place}")
        if not isinstance(answer, Mapping):
            result.append(CallError(f"{name}: the reply has no answer q{place}", "malformed"))
            continue
        details = diagnostics.get(f"q{place}") if isinstance(diagnostics, Mapping) else None
        read = _read_answer(name, question, answer, details)
        if isinstance(read, DecisionAnswer):
            # The tokens are those of the call: the first of its answers carries them.
            is_first = not any(isinstance(other, DecisionAnswer) for other in result)
            counts = [count if is_first or count is None else 0 for count in tokens]
            answered_by = model[:200] if isinstance(model, str) else ""
            read = replace(read, model=answered_by, prompt_tokens=counts[0], reply_tokens=counts[1])
        result.append(read)
    return result


def _read_answer(
    name: str, question: DecisionQuestion, answer: Mapping[str, Any], details: Any
) -> DecisionAnswer | BackendError:
    """Return an answer with its probabilities by option, or its refusal."""
    if answer.get("refusal") is not None or answer.get("type") == "refusal":
        return DecisionAnswer(question.names, refusal=str(answer.get("refusal") or ""))
    if question.kind == "yes_no":
        chance = _read_probability(answer.get("noul", answer.get("probability")))
        probabilities = [chance, None if chance is None else 1 - chance]
    else:
        by_name = _read_rows(answer.get("probabilities"))
        # A scale's probabilities are by index, as a text or a number.
        keys = [str(i) for i in range(len(question.options))]
        keys = keys if question.kind == "score" else list(question.names)
        probabilities = [_read_probability(by_name.get(key)) for key in keys]
    raw = tuple(value for value in probabilities if value is not None)
    if len(raw) != len(question.options):
        return UnparsedError(f"{name}: the answer has no probability for each option")
    # Three servers, three places.
    masses = [answer.get("x_label_mass"), answer.get("label_mass")]
    masses += [details.get("label_mass")] if isinstance(details, Mapping) else []
    mass = next((m for m in map(_read_probability, masses) if m is not None), None)
    return DecisionAnswer(question.names, raw, label_mass=mass)


def _read_rows(value: Any) -> Mapping[str, Any]:
    """Return probabilities by option: an object, or a list of objects."""
    if isinstance(value, Mapping):
        return value
    rows = [row for row in value if isinstance(row, Mapping)] if isinstance(value, list) else []
    return {str(row.get("value")): row.get("probability") for row in rows}


def _read_probability(value: Any) -> float | None:
    """Return a number from 0 to 1; a little more, of rounding, is 1."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1.001:
        return None
    return min(float(value), 1.0)


def _read_count(usage: Any, key: str) -> int | None:
    count = usage.get(key) if isinstance(usage, Mapping) else None
    return count if isinstance(count, int) and not isinstance(count, bool) and count >= 0 else None


def build_sglang_error(name: str) -> CallError:
    """Return the error of an address whose ``/v1/decisions`` is SGLang's own."""
    return CallError(
        f"{name}: this server speaks SGLang's format of /v1/decisions, not OpenAI's; "
        f"use systemone:{name.removeprefix('decisions:')}",
        "closed",
    )


def is_sglang_error(body: str) -> bool:
    """Whether the body of an error asks for fields that only SGLang's own questions have."""
    return any(_SGLANG_FIELD.search(text) for text in _list_messages(body))


def find_named_questions(body: str, count: int) -> set[int]:
    """Return the places of the questions that the body of an error names; empty if it names all.

    Args:
        count: number of questions that were sent.
    """
    places = {
        int(number)
        for text in _list_messages(body)
        for numbers in _NAMED_QUESTION.findall(text)
        for number in filter(None, numbers)
    }
    places = {place for place in places if place < count}
    return places if len(places) < count else set()


def _list_messages(body: str) -> Iterator[str]:
    """Yield the messages in the body of an error, and the places (``loc``) that it gives."""
    try:
        waiting: list[Any] = [json.loads(body)]
    except (ValueError, RecursionError):
        yield body[:1000]
        return
    # A list in place of recursion, since the depth is the server's choice.
    while waiting:
        value = waiting.pop()
        if isinstance(value, list):
            waiting += value
        elif isinstance(value, Mapping):
            if isinstance(location := value.get("loc"), list):
                yield ".".join(map(str, location))
            for key in _MESSAGE_KEYS & value.keys():
                if isinstance(value[key], str):
                    yield value[key][:1000]
                else:
                    waiting.append(value[key])


# The other direction: a server reads requests and builds replies ---------------------------------


def parse_request(wire: str, body: Any) -> DecisionRequest:
    """Return what the body of a request asks.

    Raises:
        ValueError: a field is missing or has another form; the message names it.
    """
    if not isinstance(body, Mapping) or not isinstance(body.get("model"), str):
        raise ValueError("model: expected the name of a model")
    state_key = "state" if wire == "systemone" else "input"
    state = _read_state(body.get(state_key), state_key)
    raw = body.get("questions")
    if not isinstance(raw, Mapping if wire == "systemone" else list):
        kind = "an object whose keys are ids" if wire == "systemone" else "a list"
        raise ValueError(f"questions: expected {kind}")
    if not 1 <= len(raw) <= MAX_QUESTIONS:
        raise ValueError(f"questions: expected 1 to {MAX_QUESTIONS}, got {len(raw)}")
    pairs = [(str(key), item) for key, item in raw.items()] if isinstance(raw, Mapping) else []
    pairs = pairs or [(str(place), item) for place, item in enumerate(raw)]
    read = [_parse_question(wire, state, f"questions.{key}", item) for key, item in pairs]
    questions, values = zip(*read, strict=True)
    ids: list[str | None] = [key for key, _ in pairs]
    if wire == "decisions":
        ids = [item["name"] if isinstance(item.get("name"), str) else None for item in raw]
    return DecisionRequest(body["model"], tuple(ids), questions, values)


def _read_state(value: Any, where: str) -> str:
    """Return a state as text: as it is, the texts of messages, or JSON."""
    if isinstance(value, str):
        return value
    if where == "state" and isinstance(value, Mapping | list):
        return json.dumps(value, ensure_ascii=False)
    texts = []
    for message in value if isinstance(value, list) else [None]:
        content = message.get("content") if isinstance(message, Mapping) else None
        parts = content if isinstance(content, list) and content else [{"text": content}]
        for part in parts:
            text = part.get("text") if isinstance(part, Mapping) else None
            if not isinstance(text, str):
                raise ValueError(f"{where}: expected a text, or messages with texts")
            texts.append(text)
    return "\n\n".join(texts)


def _parse_question(
    wire: str, state: str, where: str, item: Any
) -> tuple[DecisionQuestion, tuple[Any, ...]]:
    """Return a question, and its options as the request has them."""
    kinds = {word: kind for kind, word in _TYPES[wire].items()}
    kind = kinds.get(str(item.get("type"))) if isinstance(item, Mapping) else None
    if kind is None:
        raise ValueError(f"{where}.type: expected one of {', '.join(kinds)}")
    instructions = item.get("instructions")
    if wire == "systemone" and isinstance(instructions, Mapping | list):
        instructions = json.dumps(instructions, ensure_ascii=False)
    if not isinstance(instructions, str) or not instructions.strip():
        raise ValueError(f"{where}.instructions: expected text")
    key = "criteria" if wire == "systemone" else {"choice": "choices"}.get(kind, "levels")
    raw = item.get(key)
    rows: list[tuple[Any, Any]] = []
    if kind == "yes_no":
        criteria = raw if isinstance(raw, Mapping) else {}
        rows = [("yes", criteria.get("true")), ("no", criteria.get("false"))]
    elif isinstance(raw, Mapping) and kind == "choice" and wire == "systemone":
        rows = list(raw.items())
    elif isinstance(raw, list) and wire == "systemone":
        rows = [(level, "") for level in raw]
    elif isinstance(raw, list) and all(isinstance(row, Mapping) for row in raw):
        name_key = "value" if kind == "choice" else "label"
        rows = [(row.get(name_key), row.get("description")) for row in raw]
    most = MAX_SCORE_LEVELS if kind == "score" else MAX_CHOICES
    names = [json.dumps(name) if isinstance(name, bool) else name for name, _ in rows]
    texts = [*names, *(text or "" for _, text in rows)]
    sound = all(isinstance(text, str) for text in texts) and all(names)
    if not sound or not 2 <= len(set(names)) == len(rows) <= most:
        raise ValueError(f"{where}.{key}: expected 2 to {most} different options")
    options = tuple((name, text or "") for name, (_, text) in zip(names, rows, strict=True))
    values = tuple(name for name, _ in rows)
    return DecisionQuestion(state, kind, instructions, options), values


def build_reply(
    wire: str,
    request: DecisionRequest,
    answers: Sequence[DecisionAnswer | None],
    more_fields: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    """Return the body of a reply to a request, with the answers in its order.

    A question without an answer is left out of ``systemone``; in ``decisions``, where the order
    counts, it is refused.

    Args:
        more_fields: further fields of each answer.

    Raises:
        BackendError: an answer that is no refusal has no usable probabilities.
    """
    rows: list[tuple[str | None, dict[str, Any]]] = []
    asked = zip(request.ids, request.questions, request.values, strict=True)
    for (key, question, values), answer, fields in zip(asked, answers, more_fields, strict=True):
        row: dict[str, Any] = {"type": _TYPES[wire][question.kind]}
        if answer is not None and answer.refusal is None:
            row |= _build_answer(wire, question, values, answer)
        elif wire == "decisions":
            row = {"type": "refusal", "refusal": answer.refusal if answer else "no usable answer"}
        elif answer is not None:
            row["refusal"] = answer.refusal
        else:
            continue
        rows.append((key, row | dict(fields)))
    received = [answer for answer in answers if answer]
    usage: dict[str, Any] = {
        "input_tokens": sum(answer.prompt_tokens or 0 for answer in received),
        "output_tokens": sum(answer.reply_tokens or 0 for answer in received),
    }
    model = next((answer.model for answer in received if answer.model), request.model)
    if wire == "systemone":
        return {"model": model, "answers": dict(rows), "usage": usage}
    # OpenAI's client requires all of these.
    usage["total_tokens"] = sum(usage.values())
    usage["input_tokens_details"] = {"cached_tokens": 0, "cache_write_tokens": 0}
    usage["output_tokens_details"] = {"reasoning_tokens": 0}
    return {"model": model, "answers": [{**row, "name": k} for k, row in rows], "usage": usage}


def _build_answer(
    wire: str, question: DecisionQuestion, values: Sequence[Any], answer: DecisionAnswer
) -> dict[str, Any]:
    """Return the fields of an answer; confidence as TypeSafe defines it."""
    chances = compute_probabilities("reply", question, answer)
    if question.kind == "yes_no":
        return {"noul" if wire == "systemone" else "probability": chances[0]}
    n, best = len(chances), max(range(len(chances)), key=chances.__getitem__)
    places: Sequence[Any] = range(n) if question.kind == "score" else values
    if question.kind == "choice":
        confidence = (chances[best] - 1 / n) / (1 - 1 / n)
        result: dict[str, Any] = {"choice": values[best]}
    else:
        # Distance from the likeliest level, against that of a uniform distribution.
        distance = math.fsum(p * abs(i - best) for i, p in enumerate(chances))
        uniform = sum(abs(i - best) for i in range(n)) / n
        confidence = max(0.0, 1 - distance / uniform)
        result = {"score": math.fsum(i * p for i, p in enumerate(chances))}
    pairs = list(zip(places, chances, strict=True))
    if wire == "systemone":
        rows: Any = {str(place): p for place, p in pairs}
        if question.kind == "score":
            result["legend"] = {str(i): name for i, name in enumerate(question.names)}
    else:
        rows = [{"value": place, "probability": p} for place, p in pairs]
        if question.kind == "score":
            rows = [{**r, "label": n} for r, n in zip(rows, question.names, strict=True)]
    return result | {"probabilities": rows, "confidence": confidence}
