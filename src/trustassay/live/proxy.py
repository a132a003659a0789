"""An OpenAI-compatible proxy that passes chats on, judges the answers, and adds the verdicts.

1. The field ``documents`` of the request is removed: it holds the passages. Everything else is
   passed on unchanged.
2. A reply in one piece is judged and gets the verdict as a field and as headers.
3. A stream is passed on as it comes, and its last chunk gets the verdict. Where answers may be
   withheld, the stream is read to its end first.
4. Requests of a fixed list of other paths are passed on as they are, and not judged. Where answers
   may be withheld, those that make texts are refused, since they would get around the check.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Match, Route
from starlette.types import Receive, Scope, Send

from trustassay.backends.http import LARGE_BODIES_AT_ONCE, BodyError, OversizedError, read_body
from trustassay.live.app import Part
from trustassay.live.requests import (
    RequestError,
    build_error,
    encode_json,
    read_json,
    reply,
    unless_gone,
)
from trustassay.live.service import Service, choose_work_for
from trustassay.live.upstream import (
    END_MARKER,
    MAX_CHOICES,
    VERDICT_FIELD,
    StreamedAnswers,
    StreamEvent,
    Upstream,
    UpstreamError,
    empty_chunk,
    format_event,
    has_text,
    parse_upstream_json,
    read_events,
    returnable_headers,
    without_choices,
)
from trustassay.live.verdicts import (
    BLOCKED,
    NOT_JUDGED,
    SCORED,
    AnswerJudging,
    AnswerVerdict,
    answer_of,
)

if TYPE_CHECKING:
    import aiohttp

STATUS, SCORES = "x-trustassay-status", "x-trustassay-scores"
IN_STREAM = "in-stream"
"""The status header of a stream, whose verdict is in the last chunk."""
EVENT_STREAM = "text/event-stream"
REPLY_BYTES = 16_000_000
"""The largest judged reply, or stream, of the upstream that is passed on."""
PASSED_REPLY_BYTES = 100_000_000
"""The largest other reply; 2,048 embeddings, the most of a request to OpenAI, have 80,000,000."""
CHAT_PATH = "/v1/chat/completions"
PASSED_PATHS = ("/v1/embeddings", "/v1/moderations")
"""Paths that are passed on as they are. The list is fixed: a path of the upstream that nobody
thought of could have another effect, or make texts."""
TEXT_PATHS = ("/v1/completions", "/v1/responses", "/v1/messages")
"""Paths that make texts; they are passed on as they are unless answers may be withheld."""
_MODEL_ID = re.compile(r"(?:[\w.:@~+/-]|%2F|%3A|%40)+", re.ASCII | re.IGNORECASE)
"""The id of a model within a path, as it came; ``%2E`` could hide a step upwards."""


def proxy_part(service: Service, upstream: Upstream, judging: AnswerJudging) -> Part:
    """Return the routes for chats, and for the requests that are passed on as they are."""
    proxy = _Proxy(service, upstream, judging)
    return Part(
        [
            Route(CHAT_PATH, proxy.chat, methods=["POST"]),
            *(Route(path, proxy.pass_on, methods=["POST"]) for path in PASSED_PATHS),
            *(Route(path, proxy.pass_texts_on, methods=["POST"]) for path in TEXT_PATHS),
            Route("/v1/models", proxy.pass_on, methods=["GET"]),
            Route("/v1/models/{model}", proxy.describe_model, methods=["GET"]),
            # Ids with a slash. The route above has the form that /openapi.json describes.
            Route("/v1/models/{model:path}", proxy.describe_model, methods=["GET"]),
            _LastRoute("/v1/{rest:path}", proxy.refuse_path, methods=()),
        ],
        running=upstream.running,
    )


class _LastRoute(Route):
    """A route for paths that no other one serves, not even by another method (405)."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        match, child_scope = super().matches(scope)
        return (Match.PARTIAL if match is Match.FULL else match), child_scope


class _Proxy:
    """The handlers of the proxy's routes."""

    def __init__(self, service: Service, upstream: Upstream, judging: AnswerJudging) -> None:
        self._service, self._upstream, self._judging = service, upstream, judging
        self._room = asyncio.Semaphore(LARGE_BODIES_AT_ONCE)

    async def pass_on(self, request: Request) -> Response:
        """Pass a request on as it is, and return its reply as it is."""
        body = None
        if request.method == "POST":
            # Refuses what is no JSON: a page of another site can send other types.
            await read_json(request)
            body = await request.body()
        # The path of the route, not that of the request, which may end in a line break.
        return await self._pass_to(request, request.scope["route"].path, body)

    async def pass_texts_on(self, request: Request) -> Response:
        """Pass a request for a text on as it is, or refuse it where answers may be withheld."""
        if not self._judging.blocking:
            return await self.pass_on(request)
        path = request.scope["route"].path
        message = f"{path} is not allowed while answers are blocked by their verdict, because its"
        error = build_error(f"{message} answers cannot be judged; use {CHAT_PATH}", "not_allowed")
        return reply(error, 403)

    async def describe_model(self, request: Request) -> Response:
        """Pass a request about one model on."""
        # As it came: a decoded slash could be read as another path.
        path = request.scope["raw_path"].decode("ascii", "replace")
        model_id = path.removeprefix("/v1/models/")
        parts = unquote(model_id).split("/")
        if not (_MODEL_ID.fullmatch(model_id) and all(part.strip(".") for part in parts)):
            raise RequestError(404, "/v1/models/ID: expected a model id")
        return await self._pass_to(request, path, None)

    async def refuse_path(self, _request: Request) -> Response:
        """Refuse any other path below /v1."""
        texts = () if self._judging.blocking else TEXT_PATHS
        unjudged = ", ".join([*PASSED_PATHS, *texts, "/v1/models or /v1/models/ID"])
        message = "this path is not forwarded; expected"
        raise RequestError(404, f"{message} {CHAT_PATH} (judged), or {unjudged} (not judged)")

    async def _pass_to(self, request: Request, path: str, body: bytes | None) -> Response:
        """Send a request to a path of the upstream; return its reply, which nobody judges."""
        self._service.refuse_if_closing()

        async def answer() -> Response:
            response = await self._upstream.send(request, path.removeprefix("/v1"), body)
            async with AsyncExitStack() as stack:
                stack.callback(response.close)
                # A stream is passed on as it comes; errors, and all else, in one piece.
                if response.content_type != EVENT_STREAM or not 200 <= response.status < 300:
                    result = await self._pass_unchanged(response, PASSED_REPLY_BYTES)
                    result.headers[STATUS] = NOT_JUDGED
                    return result
                headers = returnable_headers(response.headers) | {STATUS: NOT_JUDGED}
                parts = self._pass_events(response)
                streamed = _ProxyStream(parts, response.status, headers)
                streamed.open = stack.pop_all()
                return streamed

        return await unless_gone(request, answer())

    async def _pass_events(self, response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
        """Yield the events of a stream as they come."""
        try:
            async for event in self._read_events(response):
                yield event.raw
        except UpstreamError as error:
            yield _error_event(error)

    async def chat(self, request: Request) -> Response:
        """Pass a chat on and return its judged answer."""
        self._service.refuse_if_closing()
        content = await read_json(request)
        if not isinstance(content, dict):
            raise RequestError(400, "the body: expected an object")
        documents = content.pop("documents", None)
        if not (documents is None or isinstance(documents, str | list)):
            raise RequestError(400, "documents: expected a list of passages, or a text")
        work = choose_work_for(len(await request.body()))
        messages, model = content.get("messages"), content.get("model")
        record = await work(self._judging.record, messages, documents, model)
        # The body is written anew, since `documents` was removed.
        body = await work(_to_ascii_json, content)
        # A client that disconnects cancels the upstream's request: nobody pays for the rest.
        return await unless_gone(request, self._answer_chat(request, body, record))

    async def _answer_chat(
        self, request: Request, body: bytes, record: Mapping[str, Any]
    ) -> Response:
        response = await self._upstream.send(request, "/chat/completions", body)
        async with AsyncExitStack() as stack:
            stack.callback(response.close)
            # Errors of the upstream, such as a full quota, reach the client as they are.
            if not 200 <= response.status < 300:
                return await self._pass_unchanged(response)
            if response.content_type != EVENT_STREAM:
                return await self._answer_json(response, record)
            if self._judging.blocking:
                # A withheld answer must not have been sent in part, so the stream is read to its
                # end.
                return await self._judge_before_sending(response, record)
            headers = returnable_headers(response.headers) | {STATUS: IN_STREAM}
            parts = self._stream_at_once(response, record)
            streamed = _ProxyStream(parts, response.status, headers)
            # The response outlives this block: the stream closes the connection when it is sent.
            streamed.open = stack.pop_all()
            return streamed

    async def _pass_unchanged(
        self, response: aiohttp.ClientResponse, most: int = REPLY_BYTES
    ) -> Response:
        """Return a response of the upstream as it is, without our key should it quote that."""
        body = self._upstream.redact(await self._read_reply(response, most))
        return Response(body, response.status, returnable_headers(response.headers))

    async def _read_reply(self, response: aiohttp.ClientResponse, most: int = REPLY_BYTES) -> bytes:
        """Return the body of a response; RequestError (502, 504) if it cannot be read."""
        import aiohttp

        try:
            # The semaphore bounds the replies that are in memory together.
            return await read_body(response, most, self._room)
        except OversizedError:
            message = f"the upstream's reply has more than {most:,} bytes"
            raise RequestError(502, message) from None
        except BodyError as error:
            raise RequestError(502, f"the upstream's reply cannot be read: {error}") from None
        except TimeoutError:
            raise RequestError(504, "the upstream did not reply in time") from None
        except (aiohttp.ClientError, OSError):
            raise RequestError(502, "the upstream's reply is incomplete") from None

    async def _answer_json(
        self, response: aiohttp.ClientResponse, record: Mapping[str, Any]
    ) -> Response:
        """Judge a completion that came as one JSON object; return it with its verdict."""
        body = await self._read_reply(response)
        headers = returnable_headers(response.headers)
        result = await choose_work_for(len(body))(_parse_completion, body)
        choices = result["choices"]
        answers = [answer_of(candidate.get("message")) for candidate in choices]
        verdicts = await self._judging.verdicts(self._service, record, answers)
        result["choices"] = [
            _withhold(choice, place, verdict) if verdict.blocked else choice
            for place, (choice, verdict) in enumerate(zip(choices, verdicts, strict=True))
        ]
        result[VERDICT_FIELD] = _verdicts_json(verdicts)
        content = await choose_work_for(len(body))(encode_json, result)
        return Response(content, response.status, headers | _verdict_headers(verdicts))

    async def _stream_at_once(
        self, response: aiohttp.ClientResponse, record: Mapping[str, Any]
    ) -> AsyncIterator[bytes]:
        """Yield the events of a stream as they come; the last one gets the verdict.

        A chunk without text is held back until the next one arrives, because it may be the last.
        """
        answers, pending = StreamedAnswers(), None
        try:
            async for event in self._read_events(response):
                answers.add(event)
                if event.data == END_MARKER:
                    continue
                if pending and event.data is not None:
                    yield pending.raw
                    pending = None
                if _may_be_last(event):
                    pending = event
                else:
                    yield event.raw
        except UpstreamError as error:
            if pending:
                yield pending.raw
            yield _error_event(error)
            return
        # The answer is complete: free the upstream's connection before the judging, which may take
        # long.
        response.close()
        answers.finish()
        yield self._last_event(
            pending, answers, list((await self._judge_answers(answers, record)).values())
        )
        yield answers.end_marker

    async def _judge_before_sending(
        self, response: aiohttp.ClientResponse, record: Mapping[str, Any]
    ) -> Response:
        """Read a stream to its end and judge it; return it without the withheld choices."""
        answers, received = StreamedAnswers(), list[StreamEvent]()
        async for event in self._read_events(response):
            answers.add(event)
            if event.data != END_MARKER:
                received.append(event)
        answers.finish()
        verdicts = await self._judge_answers(answers, record)
        blocked = {index: verdict for index, verdict in verdicts.items() if verdict.blocked}
        if blocked and answers.error:  # nobody knows what else is in it
            received = []
        remaining = [
            event
            for event in (without_choices(received_event, blocked) for received_event in received)
            if event
        ]
        # The last chunk carries the usage; it is completed with the verdict like that of a live
        # stream.
        last_event = remaining.pop() if remaining and _may_be_last(remaining[-1]) else None
        parts = [event.raw for event in remaining]
        parts += [
            _refusal_events(answers, index, verdict.message) for index, verdict in blocked.items()
        ]
        all_verdicts = list(verdicts.values())
        parts += [self._last_event(last_event, answers, all_verdicts), answers.end_marker]
        headers = returnable_headers(response.headers) | _verdict_headers(all_verdicts)
        return Response(b"".join(parts), response.status, headers)

    async def _read_events(self, response: aiohttp.ClientResponse) -> AsyncIterator[StreamEvent]:
        """Yield the events of a response.

        Raises:
            UpstreamError: it broke off, took too long, or is too large.
        """
        import aiohttp

        # Events could not be found in packed bytes; the proxy asked for none (`accept-encoding`).
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            raise UpstreamError("the upstream's stream is compressed, which was not requested")
        try:
            async for event in read_events(response.content.iter_any(), REPLY_BYTES):
                # An event may be an error that quotes our key.
                yield event._replace(raw=self._upstream.redact(event.raw))
        except TimeoutError:
            raise UpstreamError("the upstream did not finish its answer in time", 504) from None
        except (aiohttp.ClientError, OSError):
            raise UpstreamError("the upstream's answer is incomplete") from None

    def _last_event(
        self,
        last_event: StreamEvent | None,
        answers: StreamedAnswers,
        verdicts: Sequence[AnswerVerdict],
    ) -> bytes:
        """Return the last event with the verdicts; a chunk is made up if the stream has none."""
        chunk = last_event.chunk if last_event and last_event.chunk else empty_chunk(answers.last)
        return format_event({**chunk, VERDICT_FIELD: _verdicts_json(verdicts)})

    async def _judge_answers(
        self, answers: StreamedAnswers, record: Mapping[str, Any]
    ) -> dict[int, AnswerVerdict]:
        """Return the verdict on each answer of a stream, by the index of its choice."""
        texts = answers.texts() or {0: None}
        if answers.error:
            content = build_error(answers.error, "unreadable")
            return dict.fromkeys(texts, self._judging.blocking.decide(content))
        verdicts = await self._judging.verdicts(self._service, record, texts.values())
        return dict(zip(texts, verdicts, strict=True))


def _withhold(choice: Mapping[str, Any], place: int, verdict: AnswerVerdict) -> dict[str, Any]:
    """Return what takes the place of a withheld choice: its index, and the message."""
    return {
        "index": choice.get("index", place),
        "message": {"role": "assistant", "content": verdict.message},
        # the reason that OpenAI gives for filtered content
        "finish_reason": "content_filter",
        "logprobs": None,
    }


def _refusal_events(answers: StreamedAnswers, index: int, message: str) -> bytes:
    """Return the events that take the place of a withheld answer."""
    text_chunk, end_chunk = empty_chunk(answers.last, index), empty_chunk(answers.last, index)
    text_chunk["choices"][0]["delta"] = {"role": "assistant", "content": message}
    end_chunk["choices"][0]["finish_reason"] = "content_filter"
    return format_event(text_chunk) + format_event(end_chunk)


class _ProxyStream(StreamingResponse):
    """A response that passes a stream on and closes the upstream's connection in any case."""

    open: AsyncExitStack
    """Holds the connection open until the stream has been sent, or the client has gone."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self.open:
            await super().__call__(scope, receive, send)


def _error_event(error: UpstreamError) -> bytes:
    """Return a failure as an event: the status 200 of a stream has been sent."""
    fields = {"message": error.detail, "type": "upstream_error", "code": error.status_code}
    return format_event({"error": fields})


def _to_ascii_json(content: Mapping[str, Any]) -> bytes:
    """Return JSON in ASCII, so that half of a surrogate pair is passed on as it was sent."""
    return json.dumps(content, allow_nan=False, separators=(",", ":")).encode("ascii")


def _parse_completion(body: bytes) -> dict[str, Any]:
    """Parse a completion, whose choices are objects.

    Raises:
        RequestError: the reply is no completion, or has too many choices (502).
    """
    try:
        result = parse_upstream_json(body, "the reply")
    except RequestError:
        result = None
    choices = result.get("choices") if isinstance(result, dict) else None
    if not (isinstance(choices, list) and all(isinstance(choice, dict) for choice in choices)):
        raise RequestError(502, "the upstream's reply is not a chat completion")
    # Each choice is a sample of its own.
    if len(choices) > MAX_CHOICES:
        raise RequestError(502, f"the upstream's reply has more than {MAX_CHOICES} choices")
    return dict(result)


def _may_be_last(event: StreamEvent) -> bool:
    """Whether a chunk may be the last one of a stream: it has no text and no error."""
    return event.chunk is not None and not event.chunk.get("error") and not has_text(event.chunk)


def _verdicts_json(verdicts: Sequence[AnswerVerdict]) -> dict[str, Any]:
    return {
        "status": _worst_status(verdicts),
        "verdicts": [verdict.to_dict() for verdict in verdicts],
    }


def _worst_status(verdicts: Sequence[AnswerVerdict]) -> str:
    statuses = {verdict.status for verdict in verdicts} or {NOT_JUDGED}
    # the worst status of any choice
    return next(status for status in (BLOCKED, NOT_JUDGED, SCORED) if status in statuses)


def _verdict_headers(verdicts: Sequence[AnswerVerdict]) -> dict[str, str]:
    """Return the verdict as headers: the overall status, and the scores of the first choice."""
    metrics = verdicts[0].content.get("metrics", {}) if verdicts else {}
    scores = [
        f"{name}={result_of_metric['score']:.4g}"
        for name, result_of_metric in metrics.items()
        if result_of_metric["score"] is not None
    ]
    result = {STATUS: _worst_status(verdicts)}
    return result | ({SCORES: ", ".join(scores)} if scores else {})
