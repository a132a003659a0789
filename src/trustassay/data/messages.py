"""The texts of questions and answers as chat models and their frameworks write them.

A value is a text, a list of messages (``{"role": "user", "content": ...}``, also as LangChain
writes them out), an object with a field of a known name, or an object with one text alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from trustassay.data.spelling import normal

__all__ = ["DOCUMENTS", "asked", "last_turn", "said", "spoken_by"]

DOCUMENTS = frozenset(
    {"contexts", "context", "documents", "docs", "retrieved_contexts", "retrieval_context"}
    | {"retrieved_documents", "source_documents", "passages"}
)
"""Names of passages inside of objects, in normal form."""

_QUESTIONS: tuple[str, ...] = (
    *("question", "query", "user_input", "user_query", "input", "prompt", "user_message"),
    *("messages", "message", "chat", "text", "content", "topic"),
)
_ANSWERS: tuple[str, ...] = (
    *("answer", "response", "output", "actual_output", "output_text", "result", "completion"),
    *("generation", "generations", "choices", "messages", "message", "text", "content"),
)
_ROLES: Mapping[str, str] = {
    **dict.fromkeys(("user", "human", "HumanMessage"), "user"),
    **dict.fromkeys(("assistant", "ai", "model", "bot", "gpt", "AIMessage"), "assistant"),
    **dict.fromkeys(("system", "developer", "SystemMessage"), "system"),
    **dict.fromkeys(("tool", "function", "ToolMessage"), "tool"),
}
_DEEPEST = 8
"""Levels of objects and lists in which a text is looked for."""


def asked(value: Any) -> tuple[str, str] | None:
    """Return the question in ``value`` and its path there; ``None`` where it cannot be told."""
    return _found(value, "user", _QUESTIONS)


def said(value: Any) -> tuple[str, str] | None:
    """Return the answer in ``value`` and its path there; ``None`` where it cannot be told."""
    return _found(value, "assistant", _ANSWERS)


def _found(value: Any, role: str, names: Sequence[str]) -> tuple[str, str] | None:
    if isinstance(value, Mapping) and _role(value) is None:
        by_name = {normal(str(name)): name for name in reversed(value)}
        for name in names:
            if name in by_name:
                text = _text(value[by_name[name]], role, names, _DEEPEST)
                if text is not None:
                    return text, str(by_name[name])
        texts = [name for name, one in value.items() if isinstance(one, str)]
        if len(texts) == 1:
            return value[texts[0]], str(texts[0])
        return None
    text = _text(value, role, names, _DEEPEST)
    return None if text is None else (text, "")


def spoken_by(value: Any, *roles: str) -> str | None:
    """Return the last text of one of these roles in a list of messages; a text is its own."""
    if isinstance(value, str):
        return value
    if not isinstance(value, list | tuple):
        return None
    said_last = [one for one in value if isinstance(one, Mapping) and _role(one) in roles]
    return _content(said_last[-1]) if said_last else None


def last_turn(messages: Any) -> dict[str, Any]:
    """Return the last question of a chat, the answer that follows it, and the passages shown, in
    canonical fields; a field is absent where there is nothing for it.

    Passages are the results of tools, those of the last turn if it has any, and what a system
    message names as context. They follow the order of the messages.
    """
    said_by = [(_role(one), one) for one in messages if isinstance(one, Mapping)]
    turns = [place for place, (role, _) in enumerate(said_by) if role == "user"]
    if not turns:
        return {}
    before, turn = said_by[: turns[-1]], said_by[turns[-1] :]
    found: dict[str, Any] = {}
    if question := _content(turn[0][1]):
        found["question"] = question
    answers = [_content(one) for role, one in turn if role == "assistant"]
    if spoken := [text for text in answers if text]:
        found["response"] = spoken[-1]
    tools = [one for role, one in turn if role == "tool"]
    tools = tools or [one for role, one in before if role == "tool"]
    shown = [text for one in tools for text in _results(_content(one) or "")]
    system = [_content(one) or "" for role, one in said_by if role == "system"]
    if passages := [*(text for one in system for text in _named_passages(one)), *shown]:
        found["documents"] = passages
    return found


def _results(text: str) -> list[Any]:
    """Return the passages in what a tool returned: a list written as JSON, else the text itself."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = text
    if isinstance(found, Mapping):
        by_name = {normal(str(name)): value for name, value in found.items()}
        found = next((by_name[name] for name in ("results", *DOCUMENTS) if name in by_name), text)
    passages = found if isinstance(found, list) else [text]
    read = all(isinstance(one, str) or _is_passage(one) for one in passages)
    return [one for one in (passages if read else [text]) if one]


def _is_passage(value: Any) -> bool:
    names = ("text", "content", "page_content", "pageContent")
    return isinstance(value, Mapping) and any(isinstance(value.get(name), str) for name in names)


_NAMES = r"(?:contexts?|documents?|passages?|sources?|excerpts?|search results|knowledge(?: base)?)"
_HEADING = re.compile(  # "Context:", "Use the following passages:", "Answer by the sources below:"
    rf"^[^\w\n]{{0,8}}{_NAMES}[^\w\n:]{{0,8}}:"
    rf"|^[^\n:]{{0,99}}\b(?:following|below|provided|given|retrieved)\b[^\n:]{{0,50}}\b{_NAMES}\b"
    r"[^\n:]{0,50}:[ \t]*$"
    rf"|^[^\n:]{{0,99}}\b{_NAMES}\b[^\n:]{{0,50}}\b(?:following|below)\b[^\n:]{{0,50}}:[ \t]*$",
    re.IGNORECASE | re.MULTILINE,
)
_TAGGED = re.compile(
    rf"<({_NAMES})\b[^>\n]{{0,200}}>((?:(?!<\1).)*?)</\1>", re.IGNORECASE | re.DOTALL
)
_AFTER = re.compile(
    r"^[^\w\n]{0,8}(?:question|instructions?|rules?|task|answer)[^\w\n:]{0,8}:.*",
    re.IGNORECASE | re.MULTILINE | re.DOTALL,
)
_FIRST = re.compile(r"^[ \t]*\[1\][ \t]*\S", re.MULTILINE)
_NUMBERED = re.compile(
    rf"^[ \t]*(?:\[\d{{1,3}}\]|{_NAMES}[ \t]*\[?\d{{1,3}}\]?)[ \t]*[:.)]?[ \t]*",
    re.IGNORECASE | re.MULTILINE,
)


def _named_passages(text: str) -> list[str]:
    """Return the passages of an instruction: in tags, below a heading that names them, or from a
    line on that begins with ``[1]``.
    """
    tagged = [found for _, found in _TAGGED.findall(text)]
    if not tagged and (heading := _HEADING.search(text)):
        tagged = [_AFTER.sub("", text[heading.end() :])]
    elif not tagged and (first := _FIRST.search(text)):
        tagged = [_AFTER.sub("", text[first.start() :])]
    parts = (part for one in tagged for part in _NUMBERED.split(one))
    return [part.strip() for part in parts if part.strip()]


def _text(value: Any, role: str, names: Sequence[str], left: int) -> str | None:
    """Return the text of a value: of messages the last one of the role."""
    if isinstance(value, str) or left == 0:
        return value if isinstance(value, str) else None
    if isinstance(value, list | tuple):
        if any(isinstance(one, Mapping) and _role(one) for one in value):
            return spoken_by(value, role)
        return _text(value[0], role, names, left - 1) if len(value) == 1 else _parts(value)
    if not isinstance(value, Mapping):
        return None
    if (spoken := _role(value)) is not None:
        return _content(value) if spoken == role else None
    inside = (value.get(name) for name in names if name in value)
    texts = (_text(one, role, names, left - 1) for one in inside)
    return next((one for one in texts if one is not None), None)


def _role(message: Mapping[str, Any]) -> str | None:
    message = _plain(message)
    if "content" not in message:
        return None
    named = message.get("role", message.get("type"))
    return _ROLES.get(named) if isinstance(named, str) else None


def _content(message: Mapping[str, Any]) -> str | None:
    content = _plain(message)["content"]
    if isinstance(content, str):
        return content
    return _parts(content) if isinstance(content, list | tuple) else None


def _parts(parts: Sequence[Any]) -> str | None:
    """Join the texts of a message in parts; images and calls of tools are none."""
    texts = [one.get("text") for one in parts if isinstance(one, Mapping)]
    found = [text for text in texts if isinstance(text, str)]
    return "\n".join(found) if found else None


def _plain(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the message of what LangChain wrote out with its class beside it, or of ShareGPT."""
    if "from" in message and "value" in message:
        return {"role": message["from"], "content": message["value"]}
    inside = message.get("kwargs")
    return inside if isinstance(inside, Mapping) else message
