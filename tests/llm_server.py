"""A server, in a process of its own, that speaks as OpenAI, Anthropic and Gemini and can fail.

    with LlmServer(latency_ms=100, share_429=0.05, seed=1) as server:
        trustassay.chat(f"openai:test@{server.base_url}").ask(["Hello"])
        server.stats()["answered"]

By hand: ``python -m tests.llm_server --port 8000 --reply echo``. What it replies follows from the
request alone. It never keeps the value of a header, so that no key gets into its answers.

Anybody may ask ``GET /stats`` and ``GET /requests`` and send ``POST /stats/reset``,
``POST /change`` (new options as JSON), ``POST /die`` and ``POST /revive``; these also answer at a
second port, which stays open when the first is closed.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import dataclasses
import hashlib
import json
import math
import os
import random
import re
import struct
import subprocess
import sys
import time
import urllib.request
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Self

from aiohttp import web

Json = dict[str, Any]

ROOT = Path(__file__).parent.parent
LARGEST_BODY = 64 * 2**20


@dataclass(frozen=True, slots=True)
class Options:
    """How the server answers; all but ``port`` may be changed while it runs.

    port: 0 takes a free one. reply: ``hash``, ``echo`` (the last message) or ``text:...``.
    share_*: the part of the calls, drawn by ``seed`` in the order of their arrival, that meets
    this fate; a 429 comes at once, the others after the latency. refuse: parameters separated by
    commas that are answered by 400. require_key: what a key must be. rpm: calls in a window of
    ``window_s``. die_after: calls answered before no more are; die: ``close`` (nobody listens any
    more, open connections are closed) or ``503``. hold: no call is answered before so many wait at
    once. dimensions: of an embedding. keep: how many
    requests ``/requests`` shows.
    """

    port: int = 0
    latency_ms: float = 0.0
    reply: str = "hash"
    seed: int = 0
    share_429: float = 0.0
    share_500: float = 0.0
    share_dropped: float = 0.0
    share_malformed: float = 0.0
    share_slow: float = 0.0
    retry_after_s: float = 1.0
    slow_s: float = 5.0
    refuse: str = ""
    require_key: str = ""
    rpm: int = 0
    window_s: float = 60.0
    die_after: int = -1
    die: str = "close"
    hold: int = 0
    dimensions: int = 32
    keep: int = 100

    @property
    def refused(self) -> frozenset[str]:
        return frozenset(filter(None, self.refuse.split(",")))


# What is said ------------------------------------------------------------------------------------


class Text(NamedTuple):
    """A reply: its tokens, what ended it, and the stop sequence if it was one."""

    tokens: list[str]
    finish: str  # "stop" or "length"
    stopped_by: str | None

    def __str__(self) -> str:
        return "".join(self.tokens)


def tokenised(text: str) -> list[str]:
    """Return words with the space before them, which make ``text`` when they are joined."""
    return re.findall(r"\s*\S+|\s+$", text)


def replied(rule: str, raw: bytes, last: str, i: int, stop: Any, most: int | None) -> Text:
    """Return reply number ``i`` to the body ``raw`` whose last message is ``last``."""
    if rule == "echo":
        text = last
    elif rule.startswith("text:"):
        text = rule.removeprefix("text:")
    else:
        text = f"Reply {hashlib.sha256(raw + bytes([i])).hexdigest()[:16]}."
    stopped_by = None
    for end in [stop] if isinstance(stop, str) else stop or ():
        if end in text:
            text, stopped_by = text[: text.index(end)], end
    tokens = tokenised(text)
    if most is not None and len(tokens) > most:
        return Text(tokens[:most], "length", None)
    return Text(tokens, "stop", stopped_by)


def vector(text: str, dimensions: int) -> list[float]:
    """Return a unit vector that follows from ``text``."""
    drawn = hashlib.shake_256(text.encode()).digest(4 * dimensions)
    numbers = [n / 2**32 - 0.5 for n in struct.unpack(f"<{dimensions}I", drawn)]
    length = math.sqrt(sum(n * n for n in numbers))
    return [n / length for n in numbers]


def logprob(token: str, rank: int = 0) -> float:
    """Return a log-probability that follows from the token and falls with the rank."""
    return -(1 + hashlib.sha256(token.encode()).digest()[0]) / 1000 - 2.5 * rank


# The three wires ---------------------------------------------------------------------------------


class Refused(Exception):  # noqa: N818
    """What is wrong with a request."""

    def __init__(self, status: int, message: str, param: str | None = None, code: str = "") -> None:
        super().__init__(message)
        self.status, self.message, self.param, self.code = status, message, param, code


class Call(NamedTuple):
    """A request as a wire reads it."""

    path: str
    headers: Mapping[str, str]
    raw: bytes
    body: Json
    options: Options

    def texts(self, last: str, n: int, stop: Any, most: int | None) -> list[Text]:
        return [replied(self.options.reply, self.raw, last, i, stop, most) for i in range(n)]


def openai_error(status: int, message: str, param: str | None = None, code: str = "") -> Json:
    kinds = {401: "invalid_request_error", 429: "requests", 500: "server_error"}
    kind = kinds.get(status, "server_error" if status > 500 else "invalid_request_error")
    return {"error": {"message": message, "type": kind, "param": param, "code": code or None}}


def anthropic_error(status: int, message: str, param: str | None = None, code: str = "") -> Json:
    kinds = {
        400: "invalid_request_error",
        401: "authentication_error",
        404: "not_found_error",
        429: "rate_limit_error",
        503: "overloaded_error",
    }
    error = {"type": kinds.get(status, "api_error"), "message": message}
    return {"type": "error", "error": error, "request_id": "req_test"}


def gemini_error(status: int, message: str, param: str | None = None, code: str = "") -> Json:
    kinds = {
        400: "INVALID_ARGUMENT",
        403: "PERMISSION_DENIED",
        404: "NOT_FOUND",
        429: "RESOURCE_EXHAUSTED",
        503: "UNAVAILABLE",
    }
    error: Json = {"code": status, "message": message, "status": kinds.get(status, "INTERNAL")}
    if code:
        reason = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": code}
        error["details"] = [reason]
    return {"error": error}


def check_bearer(call: Call) -> None:
    """Raise when a key is wanted and neither OpenAI's header nor Azure's holds it."""
    if not (wanted := call.options.require_key):
        return
    given = call.headers.get("Authorization", "").removeprefix("Bearer ")
    given = given or call.headers.get("api-key", "")
    if given != wanted:
        said = "Incorrect API key provided." if given else "You didn't provide an API key."
        raise Refused(401, said, None, "invalid_api_key")


def openai_chat(call: Call) -> Json:
    check_bearer(call)
    body = call.body
    for name in sorted(call.options.refused & body.keys()):
        said, code = (
            f"Unsupported parameter: '{name}' is not supported with this model.",
            "parameter",
        )
        if name == "max_tokens":
            said += " Use 'max_completion_tokens' instead."
        elif name == "temperature":
            said = (
                f"Unsupported value: 'temperature' does not support {body[name]} with this model."
            )
            said, code = said + " Only the default (1) value is supported.", "value"
        raise Refused(400, said, name, f"unsupported_{code}")
    for name in ("model", "messages"):
        if name not in body:
            raise Refused(400, f"you must provide a {name} parameter", name, "missing_parameter")
    if body.get("top_logprobs") is not None and not body.get("logprobs"):
        said = "'top_logprobs' is only allowed when 'logprobs' is enabled."
        raise Refused(400, said, "top_logprobs", "invalid_value")
    prompts = [openai_text(message["content"]) for message in body["messages"]]
    most = body.get("max_completion_tokens", body.get("max_tokens"))
    texts = call.texts(prompts[-1], body.get("n") or 1, body.get("stop"), most)
    choices: list[Json] = [
        {
            "index": i,
            "message": {"role": "assistant", "content": str(text), "refusal": None},
            "logprobs": openai_logprobs(text, body.get("top_logprobs") or 0)
            if body.get("logprobs")
            else None,
            "finish_reason": text.finish,
        }
        for i, text in enumerate(texts)
    ]
    asked, said_back = counts(prompts, texts)
    return {
        "id": "chatcmpl-test",
        "object": "chat.completion",
        "created": 0,
        "model": body["model"],
        "choices": choices,
        "usage": {
            "prompt_tokens": asked,
            "completion_tokens": said_back,
            "total_tokens": asked + said_back,
        },
    }


def openai_text(content: str | Sequence[Json]) -> str:
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def openai_logprobs(text: Text, top: int) -> Json:
    def told(token: str, rank: int) -> Json:
        return {"token": token, "logprob": logprob(token, rank), "bytes": list(token.encode())}

    return {
        "content": [
            told(token, 0)
            | {"top_logprobs": [told(token + "?" * rank, rank) for rank in range(top)]}
            for token in text.tokens
        ],
        "refusal": None,
    }


def counts(prompts: Sequence[str], texts: Sequence[Text]) -> tuple[int, int]:
    """Return the tokens of the prompts and of the replies."""
    return sum(len(p.split()) for p in prompts), sum(len(text.tokens) for text in texts)


def openai_embeddings(call: Call) -> Json:
    check_bearer(call)
    found = call.body["input"]
    texts = [found] if isinstance(found, str) else found
    dimensions = call.body.get("dimensions") or call.options.dimensions
    vectors: list[Any] = [vector(text, dimensions) for text in texts]
    if call.body.get("encoding_format") == "base64":
        packed = [struct.pack(f"<{dimensions}f", *numbers) for numbers in vectors]
        vectors = [base64.b64encode(each).decode() for each in packed]
    tokens, _ = counts(texts, ())
    return {
        "object": "list",
        "data": [
            {"object": "embedding", "index": i, "embedding": each} for i, each in enumerate(vectors)
        ],
        "model": call.body["model"],
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
    }


def openai_models(call: Call) -> Json:
    check_bearer(call)
    model = {"id": "test", "object": "model", "created": 0, "owned_by": "tests"}
    return {"object": "list", "data": [model]}


ANTHROPIC_FIELDS = frozenset(
    """max_tokens messages metadata model service_tier stop_sequences stream system temperature
    thinking tool_choice tools top_k top_p""".split()
)


def anthropic_messages(call: Call) -> Json:
    key, wanted, body = call.headers.get("x-api-key"), call.options.require_key, call.body
    if not key:
        raise Refused(401, "x-api-key header is required")
    if wanted and key != wanted:
        raise Refused(401, "invalid x-api-key")
    if "anthropic-version" not in call.headers:
        raise Refused(400, "anthropic-version: header is required")
    for name in ("model", "max_tokens", "messages"):
        if name not in body:
            raise Refused(400, f"{name}: Field required")
    for name in sorted(body.keys() - (ANTHROPIC_FIELDS - call.options.refused)):
        raise Refused(400, f"{name}: Extra inputs are not permitted")
    if not 0 <= body.get("temperature", 0) <= 1:
        raise Refused(400, "temperature: range: 0..1")
    for i, message in enumerate(body["messages"]):
        if message["role"] not in ("user", "assistant"):
            said = f'messages.{i}: Unexpected role "{message["role"]}". The Messages API accepts a'
            raise Refused(400, said + " top-level `system` parameter, not a role in the messages.")
    prompts = [openai_text(message["content"]) for message in body["messages"]]
    (text,) = call.texts(prompts[-1], 1, body.get("stop_sequences"), body["max_tokens"])
    reasons = {"length": "max_tokens", "stop": "stop_sequence" if text.stopped_by else "end_turn"}
    asked, said_back = counts([openai_text(body.get("system", "")), *prompts], [text])
    return {
        "id": "msg_test",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": [{"type": "text", "text": str(text)}],
        "stop_reason": reasons[text.finish],
        "stop_sequence": text.stopped_by,
        "usage": {"input_tokens": asked, "output_tokens": said_back},
    }


GEMINI_FIELDS = frozenset(
    """contents systemInstruction generationConfig safetySettings tools toolConfig
    cachedContent""".split()
)
GEMINI_SETTINGS = frozenset(
    """temperature topP topK maxOutputTokens seed stopSequences candidateCount responseLogprobs
    responseJsonSchema logprobs responseMimeType responseSchema presencePenalty frequencyPenalty
    thinkingConfig""".split()
)


def gemini_content(call: Call) -> Json:
    key, wanted = call.headers.get("x-goog-api-key"), call.options.require_key
    if not key:
        said = "Method doesn't allow unregistered callers (callers without established identity)."
        raise Refused(403, said)
    if wanted and key != wanted:
        said = "API key not valid. Please pass a valid API key."
        raise Refused(400, said, None, "API_KEY_INVALID")
    settings = call.body.get("generationConfig") or {}
    for given, known in ((call.body, GEMINI_FIELDS), (settings, GEMINI_SETTINGS)):
        for name in sorted(given.keys() - known):
            said = f'Invalid JSON payload received. Unknown name "{name}": Cannot find field.'
            raise Refused(400, said)
    for name in sorted(settings.keys() & call.options.refused):
        raise Refused(400, f"{name} is not supported for this model.")
    if "logprobs" in settings and not settings.get("responseLogprobs"):
        raise Refused(400, "logprobs requires responseLogprobs to be true.")
    prompts = [gemini_text(turn) for turn in call.body["contents"]]
    texts = call.texts(
        prompts[-1],
        settings.get("candidateCount") or 1,
        settings.get("stopSequences"),
        settings.get("maxOutputTokens"),
    )
    candidates: list[Json] = [
        {
            "content": {"parts": [{"text": str(text)}], "role": "model"},
            "finishReason": {"stop": "STOP", "length": "MAX_TOKENS"}[text.finish],
            "index": i,
        }
        for i, text in enumerate(texts)
    ]
    if settings.get("responseLogprobs"):
        for candidate, text in zip(candidates, texts, strict=True):
            candidate["logprobsResult"] = gemini_logprobs(text, settings.get("logprobs") or 0)
    system = call.body.get("systemInstruction")
    asked, said_back = counts([*prompts, gemini_text(system) if system else ""], texts)
    return {
        "candidates": candidates,
        "usageMetadata": {
            "promptTokenCount": asked,
            "candidatesTokenCount": said_back,
            "totalTokenCount": asked + said_back,
        },
        "modelVersion": call.path.rpartition("/")[2].removesuffix(":generateContent"),
        "responseId": "test",
    }


def gemini_text(content: Json) -> str:
    return "".join(part["text"] for part in content["parts"])


def gemini_logprobs(text: Text, top: int) -> Json:
    def told(token: str, rank: int) -> Json:
        return {"token": token, "tokenId": len(token), "logProbability": logprob(token, rank)}

    return {
        "chosenCandidates": [told(token, 0) for token in text.tokens],
        "topCandidates": [
            {"candidates": [told(token + "?" * rank, rank) for rank in range(top)]}
            for token in text.tokens
        ],
    }


Answer = Callable[[Call], Json]
Complaint = Callable[..., Json]

ROUTES: dict[str, tuple[str, Answer, Complaint]] = {
    "/v1/chat/completions": ("POST", openai_chat, openai_error),
    "/v1/embeddings": ("POST", openai_embeddings, openai_error),
    "/v1/models": ("GET", openai_models, openai_error),
    "/v1/messages": ("POST", anthropic_messages, anthropic_error),
}
GEMINI = re.compile(r"/v1beta/(models|tunedModels)/[^/:]+:generateContent")


# The process -------------------------------------------------------------------------------------


class Times(NamedTuple):
    """When a body was received, and when answers to it had been written (``time.time()``)."""

    received: list[float]
    answered: list[float]


@dataclass
class Tally:
    """What ``/stats`` tells."""

    received: int = 0
    answered: int = 0
    at_once: int = 0
    by_status: Counter[str] = field(default_factory=Counter)
    bodies: dict[str, Times] = field(default_factory=dict)
    """By the hash of a request's body."""

    def told(self) -> Json:
        bodies = {
            name: {
                "received": len(times.received),
                "answered": len(times.answered),
                "received_at": times.received,
                "answered_at": times.answered,
            }
            for name, times in self.bodies.items()
        }
        return {**vars(self), "bodies": bodies}


class Server:
    """Answers requests as its options say, and counts them."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.tally = Tally()
        self.last: deque[tuple[str, str, list[str], bytes]] = deque(maxlen=options.keep)
        self.dead = False
        self._open = 0
        self._answered = 0
        """Calls answered in this life: ``die_after`` counts these."""
        self._random = random.Random(options.seed)
        self._window = (-math.inf, 0)
        self._released = asyncio.Event()
        self._web = web.Server(self._handle, request_factory=self._request, access_log=None)
        self._runner = web.ServerRunner(self._web)
        self._site: web.TCPSite | None = None

    async def start(self, control: int = 0) -> tuple[int, int]:
        """Listen; returns the port for calls and the one for control."""
        await self._runner.setup()
        await self._listen()
        runner = web.ServerRunner(web.Server(self._handle_control, access_log=None))
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", control)
        await site.start()
        return self.options.port, _port(site)

    async def _listen(self) -> None:
        self._site = web.TCPSite(self._runner, "127.0.0.1", self.options.port, backlog=1024)
        await self._site.start()
        self.options = dataclasses.replace(self.options, port=_port(self._site))

    async def die(self) -> None:
        """Answer no call any more."""
        self.dead = True
        if self.options.die == "close" and self._site is not None:
            site, self._site = self._site, None
            await site.stop()
            for connection in self._web.connections:
                if connection.transport is not None:
                    connection.transport.close()

    async def revive(self) -> None:
        """Answer again, on the same port; ``die_after`` is forgotten."""
        self.options = dataclasses.replace(self.options, die_after=-1)
        self.dead = False
        if self._site is None:
            await self._listen()

    def _request(self, *arguments: Any) -> web.BaseRequest:
        message, payload, protocol, writer, task = arguments
        return web.BaseRequest(
            message,
            payload,
            protocol,
            writer,
            task,
            asyncio.get_running_loop(),
            client_max_size=LARGEST_BODY,
        )

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        route = ROUTES.get(request.path)
        if route is None and GEMINI.fullmatch(request.path):
            route = ("POST", gemini_content, gemini_error)
        if route is None:
            return await self._handle_control(request)
        method, answer, complaint = route
        if request.method != method:
            return _json(complaint(405, f"Only {method} requests are accepted."), 405)
        self._open += 1
        self.tally.at_once = max(self.tally.at_once, self._open)
        if self._open >= self.options.hold:
            self._released.set()
        try:
            return await self._answer(request, answer, complaint)
        finally:
            self._open -= 1

    async def _answer(
        self, request: web.BaseRequest, answer: Answer, complaint: Complaint
    ) -> web.StreamResponse:
        options, tally = self.options, self.tally
        raw = await request.read()
        tally.received += 1
        times = tally.bodies.setdefault(hashlib.sha256(raw).hexdigest()[:16], Times([], []))
        times.received.append(time.time())
        self.last.append((request.method, request.path_qs, list(request.headers), raw))
        wait_s, fate = self._window_wait(), self._fate()
        if wait_s is not None or fate == "429":
            return self._limited(complaint, options.retry_after_s if wait_s is None else wait_s)
        delay_s = options.latency_ms / 1000 + (options.slow_s if fate == "slow" else 0)
        if delay_s:
            await asyncio.sleep(delay_s)
        if options.hold:
            await self._released.wait()
        if (failed := self._failure(request, fate, complaint)) is not None:
            return failed
        response = _outcome(request, raw, answer, complaint, options)
        if response.status != 200:
            return self._counted(response)
        if fate == "malformed":
            tally.by_status["malformed"] += 1
            whole = response.body
            assert isinstance(whole, bytes)
            return web.Response(body=whole[: len(whole) // 2], content_type="application/json")
        return await self._written(request, response, times)

    def _failure(
        self, request: web.BaseRequest, fate: str, complaint: Complaint
    ) -> web.Response | None:
        """Return what is sent in place of an answer when the call or the server is to fail."""
        options = self.options
        dead = self.dead or 0 <= options.die_after <= self._answered
        if fate == "dropped" or (dead and options.die == "close"):
            self.tally.by_status["dropped"] += 1
            if request.transport is not None:
                request.transport.close()
            return web.Response()
        if dead or fate == "500":
            status = 503 if dead else 500
            return self._counted(_json(complaint(status, "The server is not well."), status))
        return None

    async def _written(
        self, request: web.BaseRequest, response: web.Response, times: Times
    ) -> web.Response:
        """Write an answer, and count it once it is."""
        self._answered += 1
        try:
            await response.prepare(request)
            await response.write_eof()
        except ConnectionError:
            self._answered -= 1
            self.tally.by_status["client gone"] += 1
            return response
        self.tally.answered += 1
        times.answered.append(time.time())
        if self._answered == self.options.die_after:
            await self.die()
        return self._counted(response)

    def _fate(self) -> str:
        """Draw what happens to the call that has just arrived."""
        drawn, options = self._random.random(), self.options
        for fate, share in (
            ("429", options.share_429),
            ("500", options.share_500),
            ("dropped", options.share_dropped),
            ("malformed", options.share_malformed),
            ("slow", options.share_slow),
        ):
            drawn -= share
            if drawn < 0:
                return fate
        return ""

    def _window_wait(self) -> float | None:
        """Count a call in the window; returns the seconds until the next one if this is full."""
        if not self.options.rpm:
            return None
        now = time.monotonic()
        began, count = self._window
        if now - began >= self.options.window_s:
            began, count = now, 0
        if count >= self.options.rpm:
            return began + self.options.window_s - now
        self._window = (began, count + 1)
        return None

    def _limited(self, complaint: Complaint, wait_s: float) -> web.Response:
        told = complaint(429, "Rate limit reached for requests.", None, "rate_limit_exceeded")
        response = _json(told, 429)
        response.headers["Retry-After"] = str(math.ceil(wait_s))
        return self._counted(response)

    def _counted(self, response: web.Response) -> web.Response:
        self.tally.by_status[str(response.status)] += 1
        return response

    async def _handle_control(self, request: web.BaseRequest) -> web.StreamResponse:
        match f"{request.method} {request.path}":
            case "GET /stats":
                return _json({**self.tally.told(), "dead": self.dead}, 200)
            case "POST /stats/reset":
                self.tally = Tally()
                self.last.clear()
            case "GET /requests":
                return _json([_shown(*request) for request in self.last], 200)
            case "POST /change":
                self._change(json.loads(await request.read()))
            case "POST /die":
                await self.die()
            case "POST /revive":
                await self.revive()
            case _:
                return _json(openai_error(404, f"Unknown request URL: {request.path}"), 404)
        return _json({}, 200)

    def _change(self, changes: Json) -> None:
        """Take new options; a new seed begins its draws anew."""
        self.options = dataclasses.replace(self.options, **changes)
        if "seed" in changes:
            self._random = random.Random(self.options.seed)


def _outcome(
    request: web.BaseRequest, raw: bytes, answer: Answer, complaint: Complaint, options: Options
) -> web.Response:
    """Return the answer to a request, or what is wrong with it."""
    try:
        body = json.loads(raw) if raw else {}
        return _json(answer(Call(request.path, request.headers, raw, body, options)), 200)
    except Refused as error:
        told = complaint(error.status, error.message, error.param, error.code)
        return _json(told, error.status)
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        return _json(complaint(400, f"The request cannot be read: {error!r}"), 400)


def _shown(method: str, path: str, headers: list[str], raw: bytes) -> Json:
    try:
        body = json.loads(raw) if raw else None
    except ValueError:
        body = None
    text = raw.decode("utf-8", "replace")
    return {"method": method, "path": path, "headers": headers, "raw": text, "body": body}


def _json(found: Any, status: int) -> web.Response:
    data = json.dumps(found).encode()
    return web.Response(body=data, status=status, content_type="application/json")


def _port(site: web.TCPSite) -> int:
    assert isinstance(site._server, asyncio.Server)
    port: int = site._server.sockets[0].getsockname()[1]
    return port


async def _serve(options: Options, control: int, while_open: bool) -> None:
    ports = await Server(options).start(control)
    print(json.dumps(ports), flush=True)
    over = asyncio.Event()
    if while_open:
        asyncio.get_running_loop().add_reader(sys.stdin.fileno(), over.set)
    await over.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    for each in dataclasses.fields(Options):
        name = "--" + each.name.replace("_", "-")
        parser.add_argument(name, type=type(each.default), default=each.default)
    parser.add_argument("--control-port", type=int, default=0)
    parser.add_argument("--while-stdin", action="store_true", help="end when stdin is closed")
    found = vars(parser.parse_args())
    control, while_open = found.pop("control_port"), found.pop("while_stdin")
    asyncio.run(_serve(Options(**found), control, while_open))


# Its keeper --------------------------------------------------------------------------------------


class LlmServer:
    """Starts the server as a process and ends it; ``options`` are the fields of :class:`Options`.

    ``stop`` and ``start`` end the process and begin it again at the same ports, with its counters
    at zero; ``die`` and ``revive`` close and open it and keep them.
    """

    def __init__(self, **options: Any) -> None:
        self._options = Options(**options)
        self._control = 0
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def port(self) -> int:
        return self._options.port

    @property
    def root(self) -> str:
        """The address for Anthropic's and Gemini's wires."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def base_url(self) -> str:
        """The address for OpenAI's wire."""
        return f"{self.root}/v1"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self, **changes: Any) -> None:
        """Start the process, at the ports that it had before if it had any."""
        self._options = dataclasses.replace(self._options, **changes)
        words = (
            (f"--{name.replace('_', '-')}={value}")
            for name, value in dataclasses.asdict(self._options).items()
        )
        command = [sys.executable, "-m", "tests.llm_server", "--while-stdin", *words]
        self._process = subprocess.Popen(
            [*command, f"--control-port={self._control}"],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the server did not start")
        port, self._control = json.loads(line)
        self._options = dataclasses.replace(self._options, port=port)

    def stop(self) -> None:
        """End the process at once."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None
            pipe.close()

    def change(self, **changes: Any) -> None:
        """Change options while the server runs."""
        self._options = dataclasses.replace(self._options, **changes)
        self._ask("/change", changes)

    def die(self) -> None:
        """Answer no call any more, as ``die_after`` does; the counters can still be read."""
        self._ask("/die", {})

    def revive(self) -> None:
        """Answer again after ``die`` or ``die_after``."""
        self._options = dataclasses.replace(self._options, die_after=-1)
        self._ask("/revive", {})

    def stats(self) -> Json:
        """Return ``received``, ``answered``, ``at_once`` (the most), ``by_status``, ``dead``, and
        ``bodies``: for each body's hash ``received`` and ``answered``, how often, and
        ``received_at`` and ``answered_at``, when (``time.time()``)."""
        found: Json = self._ask("/stats")
        return found

    def reset(self) -> None:
        """Begin counting anew."""
        self._ask("/stats/reset", {})

    def requests(self) -> list[Json]:
        """Return the last: ``method``, ``path``, ``headers`` (their names), ``raw``, ``body``."""
        found: list[Json] = self._ask("/requests")
        return found

    def asked_again(self, killed_at: Sequence[float] = (), grace_s: float = 0.1) -> list[str]:
        """Return the hashes of the bodies that arrived once more after they had been answered.

        An answer lies in the client's buffer for a moment before it is read, and the server learns
        a moment late that a client is gone: one written less than ``grace_s`` before or after the
        client was killed (``time.time()``) does not count.
        """

        def lost(answered: float) -> bool:
            return any(abs(answered - killed) <= grace_s for killed in killed_at)

        return [
            name
            for name, times in self.stats()["bodies"].items()
            if any(a < times["received_at"][-1] and not lost(a) for a in times["answered_at"])
        ]

    def _ask(self, path: str, body: Json | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self._control}{path}", data=data)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=30) as response:
            return json.load(response)


if __name__ == "__main__":
    main()
