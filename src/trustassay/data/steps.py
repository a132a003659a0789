"""What came before an answer, as the field ``steps`` of a sample: texts, and calls of tools."""

import json
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

_FAILED = re.compile(
    r"\s*(?:an? )?(?:unexpected )?(?:traceback \(most recent call last\)"
    r"|[\w.]*(?:error|exception)\b[ ]*(?:[:(\[]|\d{3}\b|code\b|occurred\b|while\b|\w+ing\b)"
    r"|(?:http[ /]?[\d.]*[ :]*)[45]\d\d\b|[45]\d\d (?:client|server) error\b"
    r"|(?:tool|call|request|function|command|execution)\b[^.:\n]{0,40}\bfailed\b|failed to\b)",
    re.IGNORECASE,
)
"""How what is written of a failure begins; a text about errors begins otherwise."""
_ERRORS = ("error", "errors", "exception", "error_message", "errorMessage")
_MESSAGES = (*_ERRORS, "message", "detail", "details", "reason", "title", "content", "text")
_MARKED = ("is_error", "isError", "failed")
_SUCCESS = ("success", "ok", "succeeded")
_STATUS = ("status", "status_code", "statusCode", "http_status", "httpStatus", "code")
_BAD = frozenset({"error", "failed", "failure", "fail", "exception"})
LONGEST = 500
"""Characters of an error that are kept."""


def failure(part: Mapping[str, Any], value: Any) -> str:
    """Return why a call failed, by the part of a message with its result, and by ``value``, what it
    returned; empty where nothing says so."""
    marked = any(part.get(one) is True for one in _MARKED)
    marked |= str(part.get("status")).lower() in _BAD or part.get("part_kind") == "retry-prompt"
    content = _read(value)
    if isinstance(content, Mapping):
        marked |= _says_so(content)
    elif isinstance(content, str):
        marked |= bool(_FAILED.match(content))
    return (_message(content) or "it failed, and does not say why")[:LONGEST] if marked else ""


def _says_so(content: Mapping[str, Any]) -> bool:
    """Return whether an object says of itself that it is no result."""
    if any(content.get(one) for one in _ERRORS) or any(content.get(k) is True for k in _MARKED):
        return True
    told = [content[one] for one in _STATUS if one in content]
    if any(isinstance(one, str) and one.lower() in _BAD for one in told):
        return True
    codes = [one for one in told if isinstance(one, int) and 400 <= one < 600]
    alone = "code" not in content or not content.keys() - {*_STATUS, *_MESSAGES, "type"}
    return bool(codes and alone) or any(content.get(one) is False for one in _SUCCESS)


def _message(content: Any) -> str:
    """Return the words of an error, the whole of it where no field holds them."""
    while isinstance(content, Mapping):
        inside = (content[one] for one in _MESSAGES if content.get(one) not in (None, "", True))
        content = next(inside, None) or json.dumps(content, ensure_ascii=False, default=str)
    return " ".join(str(content or "").split())


def _read(value: Any) -> Any:
    """Return what is written as JSON in a text."""
    if isinstance(value, str) and value.lstrip().startswith(("{", "[")):
        with suppress(ValueError, RecursionError):
            return json.loads(value)
    return value


def without_passages(turn: dict[str, Any]) -> dict[str, Any]:
    """Return a turn whose passages are others than those of its steps."""
    steps = [{k: v for k, v in one.items() if k != "passages"} for one in turn.get("steps", ())]
    rest = {k: v for k, v in turn.items() if k not in ("documents", "steps")}
    return {**rest, "steps": steps} if steps else rest


class Steps:
    """The steps of a conversation, in their order, each an object: ``user``, ``system`` or
    ``assistant`` with a text, or a call: ``tool``, ``arguments``, ``passages``, the numbers of what
    it returned from 1, and ``error``, why it failed.
    """

    def __init__(self) -> None:
        self._steps: list[dict[str, Any]] = []
        self._calls: dict[str, dict[str, Any]] = {}

    def say(self, role: str, text: str | None) -> None:
        """Add what somebody said; nothing where it is blank."""
        if text and text.strip():
            self._steps.append({role: text})

    def call(self, known_as: str, name: str, arguments: Any) -> None:
        """Add a call of a tool."""
        self._calls[known_as] = {"tool": name, "arguments": _read(arguments)}
        self._steps.append(self._calls[known_as])

    def knows(self, known_as: str) -> bool:
        """Return whether there is such a call; a result may name none."""
        return not known_as or known_as in self._calls

    def result(self, known_as: str, passages: Iterable[int], error: str = "") -> None:
        """Add what a call returned; without a name it is that of the last call."""
        if known_as not in self._calls:  # it names none, as a function's in old chats
            waiting = [k for k, one in self._calls.items() if "passages" not in one]
            known_as = waiting[-1] if waiting else f" {len(self._calls)}"
            if not waiting:
                self.call(known_as, "", None)
        step = self._calls[known_as]
        step["passages"] = [*step.get("passages", ()), *passages]
        if error:
            step["error"] = error

    def told(self, first: int = 0) -> list[dict[str, Any]]:
        """Return them, none where nothing but questions came before. ``first``: how many passages
        stand before those of tools."""
        if not any("tool" in one or "assistant" in one for one in self._steps):
            return []
        return [
            {**one, "passages": [first + n for n in one["passages"]]} if "passages" in one else one
            for one in map(dict, self._steps)
        ]
