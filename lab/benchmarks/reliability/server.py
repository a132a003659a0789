"""An endpoint, in a process of its own, that fails when it is told to and counts what it is asked.

It shares no code with the tests' server, so that a mistake in one does not hide in the other. It
speaks OpenAI's chat wire. A call is known by its messages; what is counted: when it was received,
and when a whole answer to it had been written.

A second port is for control: ``GET /counts`` and ``GET /received``.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import math
import random
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from aiohttp import web

Json = dict[str, Any]
PORTS = range(20_000, 32_000)
"""Below those that the system gives to outgoing connections: a closed one stays free."""


@dataclass(frozen=True)
class Behaviour:
    """How the endpoint answers.

    share_*: of the calls in the order of their arrival, drawn by ``seed``. per_second: requests,
    or tokens of prompt and reply; what comes beyond gets a 429 with Retry-After in whole seconds.
    halve_after: answers after which both limits are half of it. outage: ``refused`` (nobody
    listens, open connections are cut), ``errors`` (status 500) or ``hang`` (accepts, answers
    nothing, also later), for ``outage_s`` once ``outage_after`` calls were answered.
    """

    latency_s: float = 0.1
    reply_words: int = 12
    seed: int = 0
    share_429: float = 0.0
    share_500: float = 0.0
    share_malformed: float = 0.0
    share_dropped: float = 0.0
    requests_per_second: float = 0.0
    tokens_per_second: float = 0.0
    halve_after: int = 0
    outage: str = ""
    outage_s: float = 0.0
    outage_after: int = 0


class Answer(NamedTuple):
    """When an answer was written (``time.time()``), and to which port of the client."""

    at: float
    port: int


@dataclass
class Call:
    """When a call was received (``time.time()``), and the answers to it."""

    received: list[float] = field(default_factory=list)
    answered: list[Answer] = field(default_factory=list)


class Quota:
    """So much a second; a second's worth is there at the beginning and can be saved up."""

    def __init__(self, per_second: float) -> None:
        self._rate = self._level = per_second
        self._at = time.monotonic()

    def halve(self) -> None:
        self._rate /= 2

    def take(self, amount: float) -> float:
        """Take ``amount`` and return 0, or return the seconds until there is enough."""
        now = time.monotonic()
        self._level = min(self._rate, self._level + (now - self._at) * self._rate)
        self._at = now
        if self._level >= amount:
            self._level -= amount
            return 0.0
        return (amount - self._level) / self._rate


class Endpoint:
    """Answers calls as its behaviour says, and counts them."""

    def __init__(self, behaviour: Behaviour) -> None:
        self.behaviour = behaviour
        self._calls: dict[str, Call] = {}
        self._outcomes: Counter[str] = Counter()
        self._open = self._most_open = self._answered = 0
        self._random = random.Random(behaviour.seed)
        limits = behaviour.requests_per_second, behaviour.tokens_per_second
        self._requests, self._tokens = (Quota(n) if n else None for n in limits)
        self._mode = ""
        self._tasks: set[asyncio.Task[None]] = set()
        self._web = web.Server(self._handle, handler_cancellation=True, access_log=None)
        self._runner = web.ServerRunner(self._web)
        self._site: web.TCPSite | None = None
        self.port = 0

    async def start(self) -> int:
        """Listen; returns the port for control."""
        await self._runner.setup()
        for port in random.sample(PORTS, 50):
            self.port = port
            try:
                await self._listen()
                break
            except OSError:
                continue
        control = web.ServerRunner(web.Server(self._control, access_log=None))
        await control.setup()
        site = web.TCPSite(control, "127.0.0.1", 0)
        await site.start()
        return _port(site)

    async def _listen(self) -> None:
        site = web.TCPSite(self._runner, "127.0.0.1", self.port, backlog=1024)
        await site.start()
        self._site = site

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        self._open += 1
        self._most_open = max(self._most_open, self._open)
        try:
            return await self._answer(request)
        finally:
            self._open -= 1

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        body = json.loads(await request.read())
        messages = json.dumps(body["messages"])
        name = hashlib.sha256(messages.encode()).hexdigest()[:16]
        call = self._calls.setdefault(name, Call())
        call.received.append(time.time())
        prompt_tokens = len(messages) // 4
        fate = self._fate()
        if complaint := self._refused(fate, prompt_tokens):
            return complaint
        await asyncio.sleep(self.behaviour.latency_s)
        if self._mode == "hang":
            self._outcomes["left without an answer"] += 1
            await asyncio.Event().wait()
        if self._mode == "errors" or fate == "500":
            return self._complaint(500)
        if self._mode == "refused" or fate == "dropped":
            return self._dropped(request)
        content = json.dumps(reply(name, prompt_tokens, self.behaviour.reply_words)).encode()
        if fate == "malformed":
            self._outcomes["malformed"] += 1
            return web.Response(body=content[: len(content) // 2], content_type="application/json")
        return await self._written(request, call, content)

    def _refused(self, fate: str, prompt_tokens: int) -> web.Response | None:
        """Return what is sent at once to a call that is not worked on."""
        if wait_s := self._limited(prompt_tokens + self.behaviour.reply_words):
            return self._complaint(429, math.ceil(wait_s))
        if fate == "429":
            return self._complaint(429, 1)
        return self._complaint(500) if self._mode == "errors" else None

    async def _written(self, request: web.BaseRequest, call: Call, content: bytes) -> web.Response:
        """Write an answer, and count it once it is written."""
        response = web.Response(body=content, content_type="application/json")
        try:
            await response.prepare(request)
            await response.write_eof()
        except ConnectionError:
            self._outcomes["client gone"] += 1
            return response
        peer = request.transport.get_extra_info("peername") if request.transport else None
        call.answered.append(Answer(time.time(), peer[1] if peer else 0))
        self._outcomes["answered"] += 1
        self._answered += 1
        self._after_answer()
        return response

    def _after_answer(self) -> None:
        behaviour = self.behaviour
        if behaviour.outage and self._answered == behaviour.outage_after:
            task = asyncio.create_task(self._outage(behaviour.outage, behaviour.outage_s))
            self._tasks.add(task)
        if behaviour.halve_after and self._answered == behaviour.halve_after:
            for quota in filter(None, (self._requests, self._tokens)):
                quota.halve()

    async def _outage(self, kind: str, seconds: float) -> None:
        self._mode = kind
        if kind == "refused" and self._site is not None:
            await self._site.stop()
            for connection in self._web.connections:
                if connection.transport is not None:
                    connection.transport.abort()
        await asyncio.sleep(seconds)
        self._mode = ""
        if kind == "refused":
            await self._listen()

    def _fate(self) -> str:
        drawn, behaviour = self._random.random(), self.behaviour
        for fate, share in (
            ("429", behaviour.share_429),
            ("500", behaviour.share_500),
            ("malformed", behaviour.share_malformed),
            ("dropped", behaviour.share_dropped),
        ):
            drawn -= share
            if drawn < 0:
                return fate
        return ""

    def _limited(self, tokens: int) -> float:
        """Return the seconds until the call would be let in; 0 if it is."""
        wait_s = self._requests.take(1) if self._requests else 0.0
        return wait_s or (self._tokens.take(tokens) if self._tokens else 0.0)

    def _complaint(self, status: int, retry_after_s: int | None = None) -> web.Response:
        self._outcomes[str(status)] += 1
        content = {"error": {"message": "Too much." if status == 429 else "Broken.", "type": "x"}}
        response = web.json_response(content, status=status)
        if retry_after_s is not None:
            response.headers["Retry-After"] = str(retry_after_s)
        return response

    def _dropped(self, request: web.BaseRequest) -> web.Response:
        self._outcomes["dropped"] += 1
        if request.transport is not None:
            request.transport.abort()
        return web.Response()

    async def _control(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.path == "/received":
            return web.json_response(sum(len(call.received) for call in self._calls.values()))
        return web.json_response(
            {
                "calls": {name: vars(call) for name, call in self._calls.items()},
                "outcomes": self._outcomes,
                "at_once": self._most_open,
            }
        )


def reply(name: str, prompt_tokens: int, words: int) -> Json:
    """Return an answer that follows from the call alone."""
    text = f"Reply {name} " + "and " * (words - 4) + "more [1]."
    return {
        "id": name,
        "object": "chat.completion",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": text},
                "finish_reason": "stop",
            }
        ],
        "usage": {"prompt_tokens": prompt_tokens, "completion_tokens": words},
    }


def _port(site: web.TCPSite) -> int:
    assert isinstance(site._server, asyncio.Server)
    port: int = site._server.sockets[0].getsockname()[1]
    return port


async def _serve(behaviour: Behaviour) -> None:
    endpoint = Endpoint(behaviour)
    control = await endpoint.start()
    print(json.dumps([endpoint.port, control]), flush=True)
    over = asyncio.Event()
    asyncio.get_running_loop().add_reader(sys.stdin.fileno(), over.set)
    await over.wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("behaviour", type=json.loads, help="its fields, as JSON")
    asyncio.run(_serve(Behaviour(**parser.parse_args().behaviour)))
