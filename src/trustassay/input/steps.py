"""The messages and tool calls before an answer, as the field ``steps`` of a sample."""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from trustassay.input.layouts import NAMES
from trustassay.input.values import decode_json

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
