"""The texts of questions and answers as chat models and their frameworks write them.

A value is a text, a list of messages (``{"role": "user", "content": ...}``, also as LangChain
writes them out), an object with a field of a known name, or an object with one text alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trustassay.data.spelling import normal

__all__ = ["asked", "said", "spoken_by"]

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
    **dict.fromkeys(("assistant", "ai", "model", "bot", "AIMessage"), "assistant"),
    **dict.fromkeys(("system", "developer", "tool", "function"), "other"),
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
    """Return the message that LangChain wrote out with its class beside it."""
    inside = message.get("kwargs")
    return inside if isinstance(inside, Mapping) else message
