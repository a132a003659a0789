"""Reads the messages of a chat in many formats: roles, texts, calls and results of tools.

Chats of OpenAI (chat and responses), Anthropic, Bedrock, OpenTelemetry, OpenInference, LangChain,
LangGraph, pydantic-ai and ShareGPT become one list of :class:`ChatMessage`.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from trustassay.core.sample import Problem, SampleError, describe_value
from trustassay.input.layouts import NAMES
from trustassay.input.passages import RawPassage, read_passages
from trustassay.input.prompts import read_prompt, split_prompt
from trustassay.input.records import decode_json, is_missing

_WORDS: Mapping[str, Any] = NAMES["failures"]
_FAILURE_TEXT = re.compile(
    r"\s*(?:an? )?(?:unexpected )?(?:traceback \(most recent call last\)"
    r"|[\w.]*(?:error|exception)\b *(?:[:(\[]|\d{3}\b|code\b|occurred\b|while\b|\w+ing\b)"
    r"|http[ /]?[\d.]*[ :]*[45]\d\d\b|[45]\d\d (?:client|server) error\b"
    r"|(?:tool|call|request|function|command|execution)\b[^.:\n]{0,40}\bfailed\b|failed to\b)",
    re.IGNORECASE,
)
"""The beginning of a result that is an error."""
MAX_ERROR_CHARACTERS = 500
"""Characters of an error that are kept."""


class Call(NamedTuple):
    """A call of a tool."""

    name: str
    """The name of the tool."""
    arguments: Any = None
    """Its arguments as they are written, text or data."""


class ChatMessage(NamedTuple):
    """A message of a chat, or a part of one that is a message of its own in other formats."""

    role: str
    """``user``, ``assistant``, ``system`` or ``tool``."""
    content: Any
    """Its text, ``None`` without one; for a tool the value that it returned, text or data."""
    call: str = ""
    """The id of the call that it answers; empty for other messages."""
    calls: Mapping[str, Call] = {}
    """The calls that it makes, by their ids."""
    error: str = ""
    """The reason that the call failed; empty where it did not."""
    documents: Sequence[RawPassage] = ()
    """The documents that are attached to it, as Anthropic's blocks of documents and results."""


def find_failure(part: Mapping[str, Any], value: Any) -> str:
    """Return the reason that a call failed; empty where nothing indicates a failure.

    Args:
        part: the part of a message with the result, which may have a flag or a status.
        value: the value that the tool returned.
    """
    content = decode_json(value)
    failed = _reports_failure(part) or part.get("part_kind") == "retry-prompt"
    # The content itself may report it: {"error": ...}, or a text such as "Error: timeout".
    failed |= (
        _reports_failure(content)
        if isinstance(content, Mapping)
        else bool(_FAILURE_TEXT.match(str(value)))
    )
    # Messages may be nested: {"error": {"message": "timeout"}}. ``True`` is a flag and no message.
    while failed and isinstance(content, Mapping):
        inside = filter(None, map(content.get, _WORDS["messages"]))
        content = next(
            (message for message in inside if message is not True), json.dumps(content, default=str)
        )
    return (
        " ".join(str(content or "without a reason").split())[:MAX_ERROR_CHARACTERS]
        if failed
        else ""
    )


def _reports_failure(content: Mapping[str, Any]) -> bool:
    """Whether an object reports a failure, by an error, a flag or a status."""
    status = [content.get(name) for name in _WORDS["status"]]
    flags = [(name, True) for name in _WORDS["failed"]] + [(name, False) for name in _WORDS["good"]]
    return (
        any(map(content.get, _WORDS["errors"]))
        or any(content.get(name) is flag for name, flag in flags)
        or any(isinstance(value, str) and value.lower() in _WORDS["bad"] for value in status)
        or any(isinstance(value, int) and 400 <= value < 600 for value in status)
    )


class AgentSteps:
    """Collects the steps of a conversation, each an object as in the field ``steps``.

    A step is a text (``user``, ``system`` or ``assistant``), or a call of a tool: ``tool``,
    ``arguments``, ``passages`` (the numbers, from 1, of the passages that it returned) and
    ``error`` (the reason that it failed).
    """

    def __init__(self) -> None:
        self._steps: list[dict[str, Any]] = []
        self._calls: dict[str, dict[str, Any]] = {}

    def add(self, message: ChatMessage, passages: Iterable[int] = ()) -> None:
        """Add a message.

        Args:
            message: the message. A result without the id of a call belongs to the last call that
                has no result yet.
            passages: the numbers of the passages in a result.
        """
        for known_as, call in message.calls.items():
            self._calls[known_as] = {"tool": call.name, "arguments": decode_json(call.arguments)}
            self._steps.append(self._calls[known_as])
        if message.role == "tool":
            waiting = [
                call_step for call_step in self._calls.values() if "passages" not in call_step
            ]
            step = self._calls.get(message.call) or (waiting or [{"tool": ""}])[-1]
            # A result without any call gets a step of its own, without a name.
            if "arguments" not in step:
                self._steps.append(step)
            # A call may return its result in several messages.
            step["passages"] = [*step.get("passages", ()), *passages]
            step |= {"error": message.error} if message.error else {}
        elif not message.calls and message.content and message.content.strip():
            self._steps.append({message.role: message.content})

    def knows(self, call: str) -> bool:
        """Whether there is a call with this id, or the id is empty."""
        return not call or call in self._calls

    def as_list(self, first: int = 0) -> list[dict[str, Any]]:
        """Return a copy of the steps; empty where there were only questions.

        Args:
            first: the number of passages that stand before those of tools.
        """
        if not any("tool" in step or "assistant" in step for step in self._steps):
            return []
        passage_numbers = [[first + n for n in step.get("passages", ())] for step in self._steps]
        return [
            step | ({"passages": passage_numbers[n]} if passage_numbers[n] else {})
            for n, step in enumerate(self._steps)
        ]


_ROLES = {name: role for role, all_ in NAMES["chats"]["roles"].items() for name in all_.split()}
# Kinds of the parts of a message that call a tool, and that hold what it returned.
_CALLS = re.compile(r"(\w+_)?tool[-_]?(use|call)|(function|custom_tool|mcp)_call", re.IGNORECASE)
_RESULTS = re.compile(
    r"(\w+_)?tool[-_]?(result|return|call_response)|(function|custom_tool)_call_output|retry-prompt",
    re.IGNORECASE,
)
_DOCUMENTS = frozenset({"document", "search_result", "searchResult"})
"""Kinds of the parts of a message that are passages."""
_IDS = ("tool_call_id", "tool_use_id", "toolUseId", "call_id", "id")
_ARGUMENTS = ("arguments", "args", "input", "parameters")


def read_messages(messages: Iterable[Any]) -> list[ChatMessage]:
    """Return the messages of a chat; values that are not messages are left out."""
    return [message for value in messages for message in _read_value(value)]


def _read_value(value: Any) -> list[ChatMessage]:
    """Return the messages in a value: a message, and before it the results of tools inside it."""
    if isinstance(value, list | tuple) and list(map(type, value)) == [str, str]:
        # LangGraph accepts a pair of role and text.
        value = {"role": value[0], "content": value[1]}
    if not isinstance(value, Mapping):
        return []
    message = _unwrap_message(value)
    role_name = next((message[key] for key in ("role", "type", "kind") if message.get(key)), None)
    role = _ROLES.get(role_name) if isinstance(role_name, str) else None
    if role is None:
        return _read_parts(None, [message])
    contents = [message[k] for k in ("content", "contents", "parts", "tool_calls") if k in message]
    content = next((item for item in contents if item is not None), None)
    tool_calls = message["tool_calls"] if isinstance(message.get("tool_calls"), list) else []
    if isinstance(content, str) and role != "tool" and not tool_calls:
        return [ChatMessage(role, content)]  # most messages are a text; the rest takes longer
    parts = [*content] if isinstance(content, list | tuple) else [content]
    # A message of a tool is the result itself, unless its parts are results (Anthropic).
    if role == "tool" and not any(item.role == "tool" for item in _read_parts(None, parts)):
        return [_build_result(message, str(message.get("tool_call_id") or ""))]
    calls = [{**_unwrap_part(item), "type": "tool_call"} for item in tool_calls]
    retries = [item for item in parts if isinstance(item, Mapping) and not item.get("tool_name")]
    if any(item.get("part_kind") == "retry-prompt" for item in retries):
        return []  # pydantic-ai's request to correct an invalid answer, no question of the user
    return (_read_parts(role, [*parts, *calls]) or [ChatMessage(role, None)]) if contents else []


def _read_parts(role: str | None, parts: Iterable[Any]) -> list[ChatMessage]:
    """Return the results among the parts of a message, then its texts; the last one has the calls.

    Args:
        role: the role of the message; ``None`` where each part names its own.
        parts: the parts.
    """
    results, texts, calls = [], dict[str, list[str]](), dict[str, Call]()
    documents: list[RawPassage] = []
    for part in map(_unwrap_part, parts):
        kind, function = str(part.get("type") or part.get("part_kind")), part.get("function")
        known_as = str(next((part[key] for key in _IDS if part.get(key)), ""))
        # The type of a part may name a role: "user-prompt" in pydantic-ai.
        speaker = _ROLES.get(kind, role)
        text = part.get("text", part.get("content") if kind in {"text", *_ROLES} else None)
        if _RESULTS.fullmatch(kind):
            results.append(_build_result(part, known_as))
        elif _CALLS.fullmatch(kind):
            # OpenAI nests name and arguments in "function"; others have them beside the type.
            call_object = function if isinstance(function, Mapping) else part
            arguments = next(
                (call_object[key] for key in _ARGUMENTS if call_object.get(key) is not None), None
            )
            calls[known_as] = Call(
                str(call_object.get("name") or call_object.get("tool_name") or ""), arguments
            )
        elif speaker and kind in _DOCUMENTS:
            documents += _read_document(part)
        elif speaker and isinstance(text, str):
            texts.setdefault(speaker, []).append(text)
    text_messages = [
        ChatMessage(speaking_role, "\n".join(lines)) for speaking_role, lines in texts.items()
    ]
    if calls:
        # A message with calls alone has no text.
        text_messages = text_messages or [ChatMessage("assistant", None)]
        text_messages[-1] = text_messages[-1]._replace(calls=calls)
    if documents and role:
        text_messages = text_messages or [ChatMessage(role, "")]
        text_messages[-1] = text_messages[-1]._replace(documents=documents)
    return [*results, *text_messages]


def _read_document(part: Mapping[str, Any]) -> list[RawPassage]:
    """Return the passage of a document in a message; none where it is no text, as a PDF."""
    source = part.get("source")
    inner = source if isinstance(source, Mapping) else part
    is_text = inner.get("type", "text") in ("text", "content", *_DOCUMENTS)
    names = ("data", "text", "content") if is_text else ()
    content = next((inner[name] for name in names if inner.get(name)), None)
    text = join_part_texts(content) if isinstance(content, list) else content
    title = part.get("title") or part.get("name")
    if not isinstance(text, str) or not text.strip():
        return []
    return [{"title": title, "text": text} if isinstance(title, str) else text]


def _unwrap_part(part: Any) -> Mapping[str, Any]:
    """Return a part as an object: of a text, or from inside the wrapper of OpenInference or
    Bedrock."""
    if not isinstance(part, Mapping):
        return {"text": part} if isinstance(part, str) else {}
    # Bedrock's documents are alone in their part; elsewhere these names may mean something else.
    documents = ("document", "searchResult") if len(part) == 1 else ()
    wrapping = ("tool_call", "message_content", "toolUse", "toolResult", *documents)
    name = next((key for key in wrapping if isinstance(part.get(key), Mapping)), None)
    return {"type": name, **part[name]} if name else part


def _build_result(part: Mapping[str, Any], call: str) -> ChatMessage:
    value = read_tool_result(part)
    text = join_part_texts(value) if isinstance(value, list | tuple) else None
    return ChatMessage("tool", value, call, error=find_failure(part, text or value))


def read_tool_result(part: Mapping[str, Any]) -> Any:
    """Return the value that a tool returned; of a list with a single text part, the text."""
    names = ("content", "output", "response", "result")
    value = next((part[key] for key in names if part.get(key) is not None), None)
    single_part = value[0] if isinstance(value, list | tuple) and len(value) == 1 else None
    if isinstance(single_part, Mapping) and (
        single_part.get("type") == "text" or [*single_part] == ["text"]
    ):
        return single_part.get("text", value)
    return value


def join_part_texts(parts: Sequence[Any]) -> str | None:
    """Return the texts of a message's parts as one; ``None`` if no part has a text."""
    texts = [part.get("text") for part in parts if isinstance(part, Mapping)]
    result = [text for text in texts if isinstance(text, str)]
    return "\n".join(result) if result else None


def _unwrap_message(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a message without the wrapper of LangChain's serialisation, or of ShareGPT."""
    if "from" in message and "value" in message:
        return {"role": message["from"], "content": message["value"]}
    wrapped = ["kwargs"] + ["data"] * ("type" in message) + ["message"] * (len(message) == 1)
    inside = (message.get(name) for name in wrapped)
    return next(
        (inner_message for inner_message in inside if isinstance(inner_message, Mapping)), message
    )


def find_last_text(value: Any, *roles: str) -> str | None:
    """Return the last text of some roles in a list of messages; a plain text is returned as it is.

    ``None`` where the last message of these roles also calls a tool, because its text is no answer.
    """
    if isinstance(value, str):
        return value
    if not isinstance(value, list | tuple):
        return None
    last_messages = [message for message in read_messages(value) if message.role in roles][-1:]
    return next((message.content for message in last_messages if not message.calls), None)


def describe_ending(messages: Any) -> str:
    """Return the name of the last entry of a chat without an answer: a question, a blank answer, a
    call or a result."""
    # From the end: only the last entry that is a message is read.
    entries = map(_read_value, reversed(messages) if isinstance(messages, list | tuple) else ())
    last = next(filter(None, entries), [])[-1:]
    if not last or last[0].role != "assistant":
        return "question" if not last or last[0].role == "user" else "tool result"
    return "tool call" if last[0].calls else "blank answer"


def read_turns(messages: Sequence[Any], field: str) -> Iterator[dict[str, Any]]:
    """Yield each answered question of a chat, and the last question even without an answer.

    A turn has ``question``, ``response`` (which may be blank), ``documents`` (the passages that
    were shown before the answer) and ``steps`` (what came before it,
    :class:`~trustassay.input.messages.AgentSteps`); empty fields are absent. Passages are first
    those in messages of the system and the user and then the results of all tools, in the order of
    the messages. A text beside a call is no answer.

    Args:
        messages: the messages.
        field: the name of the field with the chat, for messages to the user.

    Raises:
        SampleError: a result refers to a call that no earlier message makes, or the calls of a
            message are no list.
    """
    context_passages, returns, steps = list[Any](), list[Any](), AgentSteps()
    turn: dict[str, Any] = {}
    last = ChatMessage("", None)

    def build_evidence() -> dict[str, Any]:
        return {
            "documents": [*context_passages, *returns],
            "steps": steps.as_list(len(context_passages)),
        }

    for place, value in enumerate(messages):
        _check_calls(value, f"{field}[{place}].tool_calls")
        for last in _read_value(value):
            message = last
            result_passages = (
                read_passages(last.content) if last.role == "tool" and last.content else []
            )
            # A missing call would leave the steps without the tool's name and arguments.
            if not steps.knows(last.call):
                problem = f"expected an earlier message with the tool call {last.call!r}"
                raise SampleError([Problem(f"{field}[{place}]", problem)])
            if last.role == "user":
                question, passages = split_prompt(last.content or "")
                passages = [*last.documents, *passages]
                context_passages += passages
                message = last._replace(content=question)
                # A message with passages alone asks nothing.
                if passages and not question.strip():
                    continue
                # A new question ends the turn before it; without an answer that turn is dropped.
                if "response" in turn:
                    yield {"response": "", **_drop_empty_fields(turn)}
                turn = {"question": question}
            elif last.role == "assistant" and turn and not last.calls:
                # Several messages of the assistant in a row: the last one with a text is the
                # answer.
                turn |= {"response": last.content or turn.get("response"), **build_evidence()}
            elif last.role == "system":
                context_passages += read_prompt(last.content or "")
            steps.add(message, range(len(returns) + 1, len(returns) + len(result_passages) + 1))
            returns += result_passages
    # The chat was cut off in the middle of a turn.
    if turn and (last.role == "tool" or last.calls or "response" not in turn):
        turn |= {"response": None, **build_evidence()}
    if turn:
        yield _drop_empty_fields(turn)


def _check_calls(message: Any, where: str) -> None:
    """Raise a ``SampleError`` where the calls of a message are no list, and could not be read."""
    calls = _unwrap_message(message).get("tool_calls") if isinstance(message, Mapping) else None
    if calls and not isinstance(calls, list | tuple) and not is_missing(calls):
        raise SampleError(
            [Problem(where, f"expected a list of tool calls, got {describe_value(calls)}")]
        )


def _drop_empty_fields(turn: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in turn.items() if value}


def find_chat(value: Any) -> Sequence[Any]:
    """Return the messages in the input or output of a model; an empty list without any."""
    if isinstance(value, Mapping):
        value = value.get("messages", value.get("input"))
    chats = value if isinstance(value, list) else []
    # LangChain writes a list of chats, one for each prompt.
    return chats[0] if len(chats) == 1 and isinstance(chats[0], list) else chats


def find_passages(chat_messages: Sequence[ChatMessage]) -> list[tuple[str, RawPassage]]:
    """Return the passages of a chat, each with the name of its tool (empty where unknown).

    First come those in messages of the system and the user, then the results of tools.
    """
    names = {
        known_as: call.name for message in chat_messages for known_as, call in message.calls.items()
    }
    passages: list[tuple[str, RawPassage]] = []
    for message in chat_messages:
        if message.role == "system":
            passages += [("", part) for part in read_prompt(message.content or "")]
        elif message.role == "user":
            parts = [*message.documents, *split_prompt(message.content or "").passages]
            passages += [("", part) for part in parts]
    tools = [
        message
        for message in chat_messages
        if message.role == "tool" and message.content is not None
    ]
    return passages + [
        (names.get(message.call, ""), part)
        for message in tools
        for part in read_passages(message.content)
    ]
