"""The messages of a chat, whoever writes them: their roles, texts, calls and results of tools.

Chats of OpenAI (chat and responses), Anthropic, Bedrock, OpenTelemetry, OpenInference, LangChain,
LangGraph, pydantic-ai and ShareGPT become one list of :class:`Message`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from trustassay.data.layouts import NAMES
from trustassay.data.passage_texts import Passage
from trustassay.data.passages import read_passages, read_prompt
from trustassay.data.steps import Call, Message, Steps, failure
from trustassay.sample import Problem, SampleError

_ROLES = {name: role for role, all_ in NAMES["chats"]["roles"].items() for name in all_.split()}
_CALLS = re.compile(NAMES["chats"]["parts"]["call"], re.IGNORECASE)
_RESULTS = re.compile(NAMES["chats"]["parts"]["result"], re.IGNORECASE)
_IDS = ("tool_call_id", "tool_use_id", "toolUseId", "call_id", "id")
_ARGUMENTS = ("arguments", "args", "input", "parameters")


def messages_of(messages: Iterable[Any]) -> list[Message]:
    """Return the messages of a chat; what is no message is left out."""
    return [message for one in messages for message in _messages_in(one)]


def _messages_in(given: Any) -> list[Message]:
    """Return a message, before it the results of tools that it holds."""
    if isinstance(given, list | tuple) and list(map(type, given)) == [str, str]:
        given = {"role": given[0], "content": given[1]}  # as LangGraph takes them
    if not isinstance(given, Mapping):
        return []
    message = _plain(given)
    named = next((message[one] for one in ("role", "type", "kind") if message.get(one)), None)
    role = _ROLES.get(named) if isinstance(named, str) else None
    if role is None:
        return _of_parts(None, [message])
    held = [message[k] for k in ("content", "contents", "parts", "tool_calls") if k in message]
    content = next((one for one in held if one is not None), None)
    called = message["tool_calls"] if isinstance(message.get("tool_calls"), list) else []
    if isinstance(content, str) and role != "tool" and not called:
        return [Message(role, content)]  # most are; the rest takes longer
    parts = [*content] if isinstance(content, list | tuple) else [content]
    if role == "tool" and not any(one.role == "tool" for one in _of_parts(None, parts)):
        return [_result(message, str(message.get("tool_call_id") or ""))]
    calls = [{**_unwrapped(one), "type": "tool_call"} for one in called]
    retries = [one for one in parts if isinstance(one, Mapping) and not one.get("tool_name")]
    if any(one.get("part_kind") == "retry-prompt" for one in retries):
        return []  # what pydantic-ai tells a model whose answer is not valid
    return (_of_parts(role, [*parts, *calls]) or [Message(role, None)]) if held else []


def _of_parts(role: str | None, parts: Iterable[Any]) -> list[Message]:
    """Return the results among the parts of a message, and then its texts, the last with calls."""
    results, texts, calls = [], dict[str, list[str]](), dict[str, Call]()
    for part in map(_unwrapped, parts):
        kind, function = str(part.get("type") or part.get("part_kind")), part.get("function")
        known_as = str(next((part[one] for one in _IDS if part.get(one)), ""))
        speaker = _ROLES.get(kind, role)
        text = part.get("text", part.get("content") if kind in {"text", *_ROLES} else None)
        if _RESULTS.fullmatch(kind):
            results.append(_result(part, known_as))
        elif _CALLS.fullmatch(kind):
            own = function if isinstance(function, Mapping) else part
            given = next((own[one] for one in _ARGUMENTS if own.get(one) is not None), None)
            calls[known_as] = Call(str(own.get("name") or own.get("tool_name") or ""), given)
        elif speaker and isinstance(text, str):
            texts.setdefault(speaker, []).append(text)
    told = [Message(one, "\n".join(lines)) for one, lines in texts.items()]
    if calls:
        told = told or [Message("assistant", None)]
        told[-1] = told[-1]._replace(calls=calls)
    return [*results, *told]


def _unwrapped(part: Any) -> Mapping[str, Any]:
    """Return a part as an object: a text by itself, what OpenInference and Bedrock write inside."""
    if not isinstance(part, Mapping):
        return {"text": part} if isinstance(part, str) else {}
    wrapping = ("tool_call", "message_content", "toolUse", "toolResult")
    name = next((one for one in wrapping if isinstance(part.get(one), Mapping)), None)
    return {"type": name, **part[name]} if name else part


def _result(part: Mapping[str, Any], call: str) -> Message:
    value = returned(part)
    text = joined(value) if isinstance(value, list | tuple) else None
    return Message("tool", value, call, error=failure(part, text or value))


def returned(part: Mapping[str, Any]) -> Any:
    """Return what a tool returned: of a single part its text, anything else as it is."""
    names = ("content", "output", "response", "result")
    value = next((part[one] for one in names if part.get(one) is not None), None)
    alone = value[0] if isinstance(value, list | tuple) and len(value) == 1 else None
    if isinstance(alone, Mapping) and (alone.get("type") == "text" or [*alone] == ["text"]):
        return alone.get("text", value)
    return value


def joined(parts: Sequence[Any]) -> str | None:
    """Join the texts of a message in parts; images and calls of tools are none."""
    texts = [one.get("text") for one in parts if isinstance(one, Mapping)]
    result = [text for text in texts if isinstance(text, str)]
    return "\n".join(result) if result else None


def _plain(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the message of what LangChain wrote out with its class beside it, or of ShareGPT."""
    if "from" in message and "value" in message:
        return {"role": message["from"], "content": message["value"]}
    wrapped = ["kwargs"] + ["data"] * ("type" in message) + ["message"] * (len(message) == 1)
    inside = (message.get(name) for name in wrapped)
    return next((one for one in inside if isinstance(one, Mapping)), message)


def spoken_by(value: Any, *roles: str) -> str | None:
    """Return the last text of one of these roles in a list of messages; a text is its own. A text
    beside a call of a tool is none."""
    if isinstance(value, str):
        return value
    if not isinstance(value, list | tuple):
        return None
    said_last = [one for one in messages_of(value) if one.role in roles][-1:]
    return next((one.content for one in said_last if not one.calls), None)


def ending(messages: Any) -> str:
    """Return with what a chat ends that has no answer: a question, a blank answer or a call."""
    last = messages_of(messages)[-1:] if isinstance(messages, list | tuple) else []
    if not last or last[0].role != "assistant":
        return "question" if not last or last[0].role == "user" else "result of a tool"
    return "call of a tool" if last[0].calls else "blank answer"


def turns_in(messages: Sequence[Any], field: str) -> Iterator[dict[str, Any]]:
    """Yield each answered question of a chat, and the last one even without an answer:
    ``question``, ``response``, ``documents``, the passages shown up to the answer, and ``steps``,
    what came before it (:class:`~trustassay.data.steps.Steps`); one is absent where there is
    nothing for it. A blank answer is one. ``field`` is the chat's name.

    Passages are what system messages name as context, and then the results of all tools, in the
    order of the messages. A text beside a call is no answer.

    Raises:
        SampleError: a result names a call that no earlier message makes.
    """
    named, returns, steps = list[Any](), list[Any](), Steps()
    turn: dict[str, Any] = {}
    last = Message("", None)

    def shown() -> dict[str, Any]:
        return {"documents": [*named, *returns], "steps": steps.so_far(len(named))}

    for place, given in enumerate(messages):
        for last in _messages_in(given):
            own = read_passages(last.content) if last.role == "tool" and last.content else []
            if not steps.knows(last.call):
                problem = f"expected an earlier message with the call of a tool, {last.call!r}"
                raise SampleError([Problem(f"{field}[{place}]", problem)])
            if last.role == "user":
                if "response" in turn:
                    yield {"response": "", **_filled(turn)}
                turn = {"question": last.content}
            elif last.role == "assistant" and turn and not last.calls:
                turn |= {"response": last.content or turn.get("response"), **shown()}
            elif last.role == "system":
                named += read_prompt(last.content or "")
            steps.add(last, range(len(returns) + 1, len(returns) + len(own) + 1))
            returns += own
    if turn and (last.role == "tool" or last.calls or "response" not in turn):  # cut
        turn |= {"response": None, **shown()}
    if turn:
        yield _filled(turn)


def _filled(turn: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in turn.items() if value}


def passages_in(told: Sequence[Message]) -> list[tuple[str, Passage]]:
    """Return the passages that a chat shows, each with the name of its tool, if that is known:
    first those that system messages name, then the results of tools."""
    names = {known_as: call.name for one in told for known_as, call in one.calls.items()}
    system = [one.content or "" for one in told if one.role == "system"]
    shown: list[tuple[str, Passage]] = [("", part) for one in system for part in read_prompt(one)]
    tools = [one for one in told if one.role == "tool" and one.content is not None]
    return shown + [
        (names.get(one.call, ""), part) for one in tools for part in read_passages(one.content)
    ]
