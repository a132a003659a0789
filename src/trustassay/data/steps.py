"""What came before an answer, as the field ``steps`` of a sample: texts, and calls of tools."""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from trustassay.data.layouts import NAMES
from trustassay.data.values import decode_json

_WORDS: Mapping[str, Any] = NAMES["failures"]
_FAILED = re.compile(_WORDS["text"], re.IGNORECASE)
LONGEST = 500
"""Characters of an error that are kept."""


class Call(NamedTuple):
    """A call of a tool: its name, and its arguments as they are written, text or data."""

    name: str
    arguments: Any = None


class Message(NamedTuple):
    """A message of a chat, or a part of one that is a message elsewhere.

    role: ``user``, ``assistant``, ``system`` or ``tool``. content: its text, ``None`` without one;
    of a tool what it returned, text or data. call: the id of the call that it answers. calls: the
    tools that it calls, by the id of the call. error: why the call failed, empty where it did not.
    """

    role: str
    content: Any
    call: str = ""
    calls: Mapping[str, Call] = {}
    error: str = ""


def failure(part: Mapping[str, Any], value: Any) -> str:
    """Return why a call failed, by the part of a message with its result, and by ``value``, what it
    returned; empty where nothing says so."""
    content = decode_json(value)
    failed = _says_so(part) or part.get("part_kind") == "retry-prompt"
    failed |= _says_so(content) if isinstance(content, Mapping) else bool(_FAILED.match(str(value)))
    while failed and isinstance(content, Mapping):
        inside = filter(None, map(content.get, _WORDS["messages"]))
        content = next((one for one in inside if one is not True), json.dumps(content, default=str))
    return " ".join(str(content or "without a reason").split())[:LONGEST] if failed else ""


def _says_so(content: Mapping[str, Any]) -> bool:
    """Return whether an object says of itself that something failed."""
    status = [content.get(one) for one in _WORDS["status"]]
    flags = [(one, True) for one in _WORDS["failed"]] + [(one, False) for one in _WORDS["good"]]
    return (
        any(map(content.get, _WORDS["errors"]))
        or any(content.get(name) is flag for name, flag in flags)
        or any(isinstance(one, str) and one.lower() in _WORDS["bad"] for one in status)
        or any(isinstance(one, int) and 400 <= one < 600 for one in status)
    )


class Steps:
    """The steps of a conversation, each an object: ``user``, ``system`` or ``assistant`` with a
    text, or a call: ``tool``, ``arguments``, ``passages``, the numbers of what it returned from 1,
    and ``error``, why it failed.
    """

    def __init__(self) -> None:
        self._steps: list[dict[str, Any]] = []
        self._calls: dict[str, dict[str, Any]] = {}

    def add(self, message: Message, passages: Iterable[int] = ()) -> None:
        """Add a message; ``passages`` are those of a result. A result without the id of a call is
        that of the last call that has none."""
        for known_as, call in message.calls.items():
            self._calls[known_as] = {"tool": call.name, "arguments": decode_json(call.arguments)}
            self._steps.append(self._calls[known_as])
        if message.role == "tool":
            waiting = [one for one in self._calls.values() if "passages" not in one]
            step = self._calls.get(message.call) or (waiting or [{"tool": ""}])[-1]
            if "arguments" not in step:
                self._steps.append(step)
            step["passages"] = [*step.get("passages", ()), *passages]
            step |= {"error": message.error} if message.error else {}
        elif not message.calls and message.content and message.content.strip():
            self._steps.append({message.role: message.content})

    def knows(self, call: str) -> bool:
        """Return whether there is a call of this id, or it is empty."""
        return not call or call in self._calls

    def so_far(self, first: int = 0) -> list[dict[str, Any]]:
        """Return a copy, empty where nothing but questions came before. ``first``: how many
        passages stand before those of tools."""
        if not any("tool" in one or "assistant" in one for one in self._steps):
            return []
        own = [[first + n for n in one.get("passages", ())] for one in self._steps]
        return [one | ({"passages": own[n]} if own[n] else {}) for n, one in enumerate(self._steps)]
