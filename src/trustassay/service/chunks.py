"""A streamed completion: its events, the texts in them, and the verdict in its last chunk.

Events are those of server-sent events (HTML standard, section 9.2), each with one
``chat.completion.chunk`` of OpenAI's API as JSON, and ``[DONE]`` at the end.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterable, AsyncIterator, Collection, Mapping
from typing import Any, NamedTuple

from trustassay.service.bodies import parse_json
from trustassay.service.replies import RequestError, encoded

__all__ = [
    "DONE",
    "FIELD",
    "Event",
    "OversizedStreamError",
    "StreamedAnswers",
    "empty_chunk",
    "event_of",
    "events",
    "has_text",
    "without_choices",
]

FIELD = "trustassay"
"""The field of a completion, or of a stream's last chunk, that holds the verdicts."""
DONE = b"[DONE]"
LARGEST_EVENT = 2 * 1024**2
MOST_CHOICES = 128
_END = re.compile(rb"\r?\n\r?\n")
_LINES = re.compile(rb"\r?\n")
_KNOWN = (b"data:", b":", b"event:", b"id:", b"retry:")
"""What a line begins with; some clients would read others as data, after a byte order mark or a
carriage return alone.
"""


class OversizedStreamError(ValueError):
    """A stream is larger than allowed."""


class Event(NamedTuple):
    """An event as it came, with the blank line after it; ``chunk`` if it holds one.

    ``data`` is ``None`` if it has none, as a comment; all of it if it cannot be read.
    """

    raw: bytes
    data: bytes | None
    chunk: dict[str, Any] | None


async def events(pieces: AsyncIterable[bytes], most: int) -> AsyncIterator[Event]:
    """Yield the events of a stream up to ``[DONE]``; a last one may lack its blank line.

    Raises:
        OversizedStreamError: the stream has more than ``most`` bytes, or an event is too large.
    """
    left, total = bytearray(), 0
    async for piece in pieces:
        total += len(piece)
        looked = max(len(left) - 3, 0)
        left += piece
        if total > most:
            raise OversizedStreamError(f"it has more than {most:,} bytes")
        while found := _END.search(left, looked):
            raw = bytes(left[: found.end()])
            del left[: found.end()]
            looked = 0
            yield (event := _event(raw))
            if event.data == DONE:
                return
        if len(left) > LARGEST_EVENT:
            raise OversizedStreamError(f"an event has more than {LARGEST_EVENT:,} bytes")
    if left.strip():
        yield _event(bytes(left) + b"\n\n")


def _event(raw: bytes) -> Event:
    lines = [line for line in _LINES.split(raw) if line]
    if any(b"\r" in line or not line.startswith(_KNOWN) for line in lines):
        return Event(raw, raw, None)
    found = [line[5:].removeprefix(b" ") for line in lines if line.startswith(b"data:")]
    if not found:
        return Event(raw, None, None)
    data = b"\n".join(found)
    try:
        chunk = parse_json(data, "an event")
    except RequestError:
        chunk = None
    if not isinstance(chunk, dict):
        return Event(raw, data, None)
    if FIELD in chunk:  # ours alone
        del chunk[FIELD]
        raw = event_of(chunk)
    return Event(raw, data, chunk)


def event_of(chunk: Mapping[str, Any]) -> bytes:
    """Return a chunk as an event."""
    return b"data: " + encoded(chunk) + b"\n\n"


class StreamedAnswers:
    """The answers of a stream, by the index of their choice, put together as its chunks come."""

    def __init__(self) -> None:
        self.last: dict[str, Any] = {}
        """The last chunk without what is its own: what a further one begins with."""
        self.error: str | None = None
        """Why the answers cannot be judged."""
        self._texts: dict[int, list[str]] = {}
        self._refusals: dict[int, list[str]] = {}
        self._ended = False

    def add(self, event: Event) -> None:
        """Take what an event holds."""
        chunk = event.chunk
        if event.data == DONE:
            self._ended = True
        elif chunk is None:
            if event.data is not None:
                self.error = self.error or "the stream holds data that is not a JSON object"
        elif chunk.get("error"):
            self.error = "the upstream ended the answer with an error"
        else:
            own = {"choices", "usage"}
            self.last = {name: value for name, value in chunk.items() if name not in own}
            for choice in _choices(chunk):
                self._add(choice)

    def texts(self) -> dict[int, str | None]:
        """Return the answers; ``None`` for one without text, as for a call of tools."""
        found = {}
        for index in sorted(self._texts):
            words = "".join(self._texts[index]) or "".join(self._refusals[index])
            found[index] = words or None
        return found

    def finish(self) -> None:
        """Take note that the stream is over."""
        if not self._ended:
            self.error = self.error or "the stream ended before the answer was complete"

    def _add(self, choice: Mapping[str, Any]) -> None:
        index = choice.get("index", 0)
        if not isinstance(index, int) or not 0 <= index < MOST_CHOICES:
            self.error = self.error or "a choice has an index that cannot be used"
            return
        texts = self._texts.setdefault(index, [])
        refusals = self._refusals.setdefault(index, [])
        delta = choice.get("delta")
        if isinstance(delta, dict):
            for name, words in (("content", texts), ("refusal", refusals)):
                if isinstance(delta.get(name), str):
                    words.append(delta[name])
        self._ended = self._ended or bool(choice.get("finish_reason"))


def has_text(chunk: Mapping[str, Any]) -> bool:
    """Whether a chunk holds a part of an answer, or anything else a client waits for."""
    deltas = [choice.get("delta") for choice in _choices(chunk)]
    found = [delta for delta in deltas if isinstance(delta, dict)]
    return any(value for delta in found for name, value in delta.items() if name != "role")


def without_choices(event: Event, indices: Collection[int]) -> Event | None:
    """Return an event without some choices; ``None`` if nothing else is in it."""
    choices = [] if event.chunk is None else _choices(event.chunk)
    left = [one for one in choices if one.get("index", 0) not in indices]
    if event.chunk is None or len(left) == len(choices):
        return event
    chunk = {**event.chunk, "choices": left}
    return Event(event_of(chunk), event.data, chunk) if left or chunk.get("usage") else None


def empty_chunk(last: Mapping[str, Any], index: int = 0) -> dict[str, Any]:
    """Return a chunk that adds nothing to the answer, with one choice, as most clients expect."""
    choice = {"index": index, "delta": {}, "finish_reason": None}
    return {"object": "chat.completion.chunk", **last, "choices": [choice]}


def _choices(chunk: Mapping[str, Any]) -> list[dict[str, Any]]:
    found = chunk.get("choices")
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
