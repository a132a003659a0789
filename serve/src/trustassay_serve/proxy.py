"""An OpenAI-compatible proxy: passes a chat on, judges the answer, and adds the verdict.

``documents`` of a request's body are the passages; they are not passed on. All else is, unchanged.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, closing
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from trustassay.backends.http import AT_ONCE, BodyError, OversizedError, read_body
from trustassay.text.limits import SHORT_PASSAGES, TextWork
from trustassay_serve.app import Part
from trustassay_serve.requests import RequestError, encoded, parse_json, read_json, unless_gone
from trustassay_serve.service import Service
from trustassay_serve.upstream import (
    DONE,
    FIELD,
    Event,
    StreamedAnswers,
    Upstream,
    UpstreamError,
    empty_chunk,
    event_of,
    events,
    has_text,
    passed_back,
    without_choices,
)
from trustassay_serve.verdicts import (
    BLOCKED,
    NOT_SCORED,
    SCORED,
    Judging,
    Verdict,
    answer_of,
    no_verdict,
)

if TYPE_CHECKING:
    import aiohttp

STATUS, SCORES = "x-trustassay-status", "x-trustassay-scores"
IN_STREAM = "in-stream"
"""The status of an answer whose verdict is in the last chunk."""
EVENT_STREAM = "text/event-stream"
REPLY_BYTES = 16_000_000
"""A larger answer of the upstream is not passed on."""


def proxy_part(service: Service, upstream: Upstream, judging: Judging) -> Part:
    """Return the routes ``/v1/chat/completions`` and ``/v1/models``."""
    proxy = _Proxy(service, upstream, judging)
    return Part(
        [
            Route("/v1/chat/completions", proxy.chat, methods=["POST"]),
            Route("/v1/models", proxy.models, methods=["GET"]),
        ],
        running=upstream.running,
    )


class _Proxy:
    def __init__(self, service: Service, upstream: Upstream, judging: Judging) -> None:
        self._service, self._upstream, self._judging = service, upstream, judging
        self._room = asyncio.Semaphore(AT_ONCE)

    async def models(self, request: Request) -> Response:
        response = await self._upstream.send(request, "/models", None)
        with closing(response):
            return await self._unchanged(response)

    async def chat(self, request: Request) -> Response:
        self._service.refuse_if_closing()
        asked = await read_json(request)
        if not isinstance(asked, dict):
            raise RequestError(400, "the body: expected an object")
        documents = asked.pop("documents", None)
        if not (documents is None or isinstance(documents, str | list)):
            raise RequestError(400, "documents: expected a list of passages, or one text")
        work = TextWork(long=len(await request.body()) > SHORT_PASSAGES)
        messages, model = asked.get("messages"), asked.get("model")
        record = await work(self._judging.record, messages, documents, model)
        passed = await work(_ascii, asked)
        return await unless_gone(request, self._answered(request, passed, record))

    async def _answered(self, request: Request, body: bytes, record: Mapping[str, Any]) -> Response:
        response = await self._upstream.send(request, "/chat/completions", body)
        async with AsyncExitStack() as stack:
            stack.callback(response.close)
            if not 200 <= response.status < 300:
                return await self._unchanged(response)
            if response.content_type != EVENT_STREAM:
                return await self._whole(response, record)
            if self._judging.blocking:
                return await self._held_back(response, record)
            headers = passed_back(response.headers) | {STATUS: IN_STREAM}
            parts = self._as_it_comes(response, record)
            streamed = _Streamed(parts, response.status, headers)
            streamed.open = stack.pop_all()
            return streamed

    async def _unchanged(self, response: aiohttp.ClientResponse) -> Response:
        body = self._upstream.redacted(await self._read(response))
        return Response(body, response.status, passed_back(response.headers))

    async def _read(self, response: aiohttp.ClientResponse) -> bytes:
        import aiohttp

        try:
            return await read_body(response, REPLY_BYTES, self._room)
        except OversizedError:
            message = f"the upstream's reply has more than {REPLY_BYTES:,} bytes"
            raise RequestError(502, message) from None
        except BodyError as error:
            raise RequestError(502, f"the upstream's reply is {error}") from None
        except TimeoutError:
            raise RequestError(504, "the upstream did not reply in time") from None
        except (aiohttp.ClientError, OSError):
            raise RequestError(502, "the upstream's reply broke off") from None

    async def _whole(self, response: aiohttp.ClientResponse, record: Mapping[str, Any]) -> Response:
        """Return a completion that came as one JSON object, with its verdict."""
        body = await self._read(response)
        headers = passed_back(response.headers)
        result = await TextWork(long=len(body) > SHORT_PASSAGES)(_completion, body)
        choices = result["choices"]
        answers = [answer_of(one.get("message")) for one in choices]
        verdicts = await self._judging.verdicts(self._service, record, answers)
        said = {"role": "assistant", "content": self._judging.blocking.message}
        withheld = {"message": said, "finish_reason": "content_filter", "logprobs": None}
        result["choices"] = [
            {"index": choice.get("index", place), **withheld} if verdict.blocked else choice
            for place, (choice, verdict) in enumerate(zip(choices, verdicts, strict=True))
        ]
        result[FIELD] = _told(verdicts)
        content = await TextWork(long=len(body) > SHORT_PASSAGES)(encoded, result)
        return Response(content, response.status, headers | _headers(verdicts))

    async def _as_it_comes(
        self, response: aiohttp.ClientResponse, record: Mapping[str, Any]
    ) -> AsyncIterator[bytes]:
        """Yield the events of a stream at once, but for the last, which gets the verdict.

        A chunk without text is kept until the next one is here: it may be the last.
        """
        answers, kept, done = StreamedAnswers(), None, b""
        try:
            async for event in self._events(response):
                answers.add(event)
                if event.data == DONE:
                    done = event.raw
                    continue
                if kept and event.data is not None:
                    yield kept.raw
                    kept = None
                if _may_be_last(event):
                    kept = event
                else:
                    yield event.raw
        except UpstreamError as error:
            if kept:
                yield kept.raw
            told = {"message": error.detail, "type": "upstream_error", "code": error.status_code}
            yield event_of({"error": told})
            return
        response.close()
        answers.finish()
        yield self._last(kept, answers, list((await self._judged(answers, record)).values()))
        yield done

    async def _held_back(
        self, response: aiohttp.ClientResponse, record: Mapping[str, Any]
    ) -> Response:
        """Return a stream that was read to its end and judged before its first part is sent."""
        answers, came, done = StreamedAnswers(), [], b""
        async for event in self._events(response):
            answers.add(event)
            if event.data == DONE:
                done = event.raw
            else:
                came.append(event)
        answers.finish()
        verdicts = await self._judged(answers, record)
        blocked = [index for index, verdict in verdicts.items() if verdict.blocked]
        if blocked and answers.error:  # nobody knows what else is in it
            came = []
        left = [event for event in (without_choices(one, blocked) for one in came) if event]
        kept = left.pop() if left and _may_be_last(left[-1]) else None
        parts = [event.raw for event in left]
        parts += [self._refusal(answers, index) for index in blocked]
        told = list(verdicts.values())
        parts += [self._last(kept, answers, told), done]
        headers = passed_back(response.headers) | _headers(told)
        return Response(b"".join(parts), response.status, headers)

    async def _events(self, response: aiohttp.ClientResponse) -> AsyncIterator[Event]:
        """Yield the events of a response.

        Raises:
            UpstreamError: it broke off, took too long, or is too large.
        """
        import aiohttp

        if response.headers.get("content-encoding", "identity").lower() != "identity":
            raise UpstreamError("the upstream's stream is packed, which was not requested")
        try:
            async for event in events(response.content.iter_any(), REPLY_BYTES):
                yield event
        except TimeoutError:
            raise UpstreamError("the upstream did not finish its answer in time", 504) from None
        except (aiohttp.ClientError, OSError):
            raise UpstreamError("the upstream's answer broke off") from None

    def _refusal(self, answers: StreamedAnswers, index: int) -> bytes:
        """Return the events of what is said in place of an answer."""
        said, ended = empty_chunk(answers.last, index), empty_chunk(answers.last, index)
        message = self._judging.blocking.message
        said["choices"][0]["delta"] = {"role": "assistant", "content": message}
        ended["choices"][0]["finish_reason"] = "content_filter"
        return event_of(said) + event_of(ended)

    def _last(
        self, kept: Event | None, answers: StreamedAnswers, verdicts: Sequence[Verdict]
    ) -> bytes:
        chunk = kept.chunk if kept and kept.chunk else empty_chunk(answers.last)
        return event_of({**chunk, FIELD: _told(verdicts)})

    async def _judged(
        self, answers: StreamedAnswers, record: Mapping[str, Any]
    ) -> dict[int, Verdict]:
        texts = answers.texts() or {0: None}
        if answers.error:
            told = no_verdict(answers.error, "unreadable")
            return dict.fromkeys(texts, Verdict(told, self._judging.blocking.reasons(told)))
        verdicts = await self._judging.verdicts(self._service, record, texts.values())
        return dict(zip(texts, verdicts, strict=True))


class _Streamed(StreamingResponse):
    """Passes a stream on; the upstream's connection is closed whatever becomes of the client."""

    open: AsyncExitStack

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self.open:
            await super().__call__(scope, receive, send)


def _ascii(content: Mapping[str, Any]) -> bytes:
    """Return JSON of what was read; half of a surrogate pair stays one."""
    return json.dumps(content, allow_nan=False, separators=(",", ":")).encode("ascii")


def _completion(body: bytes) -> dict[str, Any]:
    """Return the completion in a reply, whose choices are objects.

    Raises:
        RequestError: it is none (502).
    """
    try:
        result = parse_json(body, "the reply")
    except RequestError:
        result = None
    choices = result.get("choices") if isinstance(result, dict) else None
    if not (isinstance(choices, list) and all(isinstance(one, dict) for one in choices)):
        raise RequestError(502, "the upstream's reply is not a chat completion")
    return dict(result)


def _may_be_last(event: Event) -> bool:
    return event.chunk is not None and not event.chunk.get("error") and not has_text(event.chunk)


def _told(verdicts: Sequence[Verdict]) -> dict[str, Any]:
    return {"status": _status(verdicts), "verdicts": [one.to_dict() for one in verdicts]}


def _status(verdicts: Sequence[Verdict]) -> str:
    statuses = {one.status for one in verdicts} or {NOT_SCORED}
    return next(one for one in (BLOCKED, NOT_SCORED, SCORED) if one in statuses)


def _headers(verdicts: Sequence[Verdict]) -> dict[str, str]:
    """Return the verdict as headers: the status of all choices, the scores of the first."""
    metrics = verdicts[0].told.get("metrics", {}) if verdicts else {}
    scores = [
        f"{name}={one['score']:.4g}" for name, one in metrics.items() if one["score"] is not None
    ]
    result = {STATUS: _status(verdicts)}
    return result | ({SCORES: ", ".join(scores)} if scores else {})
