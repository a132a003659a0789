"""An upstream in a thread that sends what it is told to, byte by byte where that matters."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Self

Json = dict[str, Any]
Write = Callable[[bytes], Awaitable[None]]


@dataclass
class Asked:
    """A request as it came: its first line, its headers with the names in small letters."""

    line: str
    headers: list[tuple[str, str]]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    def header(self, name: str) -> str | None:
        found = [value for key, value in self.headers if key == name]
        assert len(found) < 2, found
        return found[0] if found else None


Answer = Callable[[Asked, Write], Awaitable[None]]


@dataclass
class Upstream:
    """``with Upstream() as upstream``: ``upstream.answer`` says how requests are answered."""

    answer: Answer
    asked: list[Asked] = field(default_factory=list)
    open: int = 0
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def __enter__(self) -> Self:
        ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve(ready)))
        self._thread.start()
        assert ready.wait(60)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join(20)

    async def _serve(self, ready: threading.Event) -> None:
        self._loop, self._end = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0, limit=2**24)
        self.port = server.sockets[0].getsockname()[1]
        ready.set()
        await self._end.wait()
        server.close()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async def write(data: bytes) -> None:
            writer.write(data)
            await writer.drain()

        self.open += 1
        try:
            while asked := await _read(reader):
                self.asked.append(asked)
                answering = asyncio.ensure_future(self.answer(asked, write))
                gone = asyncio.ensure_future(reader.read(1))
                await asyncio.wait((answering, gone), return_when=asyncio.FIRST_COMPLETED)
                for one in (answering, gone):
                    one.cancel()
                break
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self.open -= 1
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()


async def _read(reader: asyncio.StreamReader) -> Asked | None:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    line, *lines = head.strip().split("\r\n")
    headers = [
        (name.lower(), value.strip()) for name, _, value in (h.partition(":") for h in lines)
    ]
    named = dict(headers)
    body = await reader.readexactly(int(named.get("content-length", 0)))
    assert "transfer-encoding" not in named
    return Asked(line, headers, body)


def head(status: int = 200, **headers: str) -> bytes:
    """Return the head of a response; an underscore in a name stands for a hyphen."""
    named = {"content-type": "application/json", "connection": "close"}
    named |= {name.replace("_", "-"): value for name, value in headers.items()}
    lines = [f"HTTP/1.1 {status} Status", *(f"{name}: {value}" for name, value in named.items())]
    return "\r\n".join(lines).encode() + b"\r\n\r\n"


def completion(*texts: str | None, **others: Any) -> Json:
    """Return a chat completion with these answers; ``None`` is a call of a tool."""
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [
            {
                "index": index,
                "message": {"role": "assistant", "content": text}
                | ({} if text is not None else {"tool_calls": [CALL]}),
                "finish_reason": "stop" if text is not None else "tool_calls",
            }
            for index, text in enumerate(texts)
        ],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5},
        **others,
    }


CALL = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}


def says(*texts: str | None, status: int = 200, **others: Any) -> Answer:
    """Answer with a completion."""
    return sends(json.dumps(completion(*texts, **others)).encode(), status)


def sends(body: bytes, status: int = 200, **headers: str) -> Answer:
    """Answer with these bytes."""

    async def answer(_asked: Asked, write: Write) -> None:
        await write(head(status, content_length=str(len(body)), **headers) + body)

    return answer


def chunk(delta: Mapping[str, Any] | None, index: int = 0, **others: Any) -> bytes:
    """Return a chunk as an event; ``None`` for one without choices."""
    choice = {"index": index, "delta": delta, "finish_reason": others.pop("finish", None)}
    found = {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "choices": [] if delta is None else [choice],
        **others,
    }
    return b"data: " + json.dumps(found).encode() + b"\n\n"


DONE = b"data: [DONE]\n\n"
USAGE = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}


def chunks(*words: str, finish: str = "stop", usage: bool = False) -> list[bytes]:
    """Return the events of one streamed answer."""
    return [
        chunk({"role": "assistant", "content": ""}),
        *(chunk({"content": word}) for word in words),
        chunk({}, finish=finish),
        *([chunk(None, usage=USAGE)] if usage else []),
        DONE,
    ]


def streams(parts: Sequence[bytes], wait_s: float = 0.0, **headers: str) -> Answer:
    """Answer with a stream of events, and close the connection at its end."""

    async def given() -> AsyncIterator[bytes]:
        for part in parts:
            yield part

    return streams_from(given, wait_s, **headers)


def streams_from(
    given: Callable[[], AsyncIterator[bytes]], wait_s: float = 0.0, **headers: str
) -> Answer:
    async def answer(_asked: Asked, write: Write) -> None:
        await write(head(200, **{"content_type": "text/event-stream; charset=utf-8", **headers}))
        async for part in given():
            await write(part)
            await asyncio.sleep(wait_s)

    return answer
