"""The ASGI application: the routes of all parts, behind common guards; scoring; Prometheus metrics.

The layers of a request, from the outside in: counting of replies, access (tokens, hosts, rates),
limits of the body, and the route.
"""

import asyncio
import json
import re
import traceback
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from importlib.resources import files
from typing import Any

import yaml
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from trustassay.core.sample import Problem, Sample, SampleError
from trustassay.live import requests
from trustassay.live.scorer import Assay
from trustassay.live.service import Service, ServiceSettings
from trustassay.report.serving import MessageWriter
from trustassay.text.limits import MAX_SHORT_PASSAGES_CHARACTERS, TextWork
from trustassay.text.numbers import amount

Count = Callable[[str, int], None]
OTHER_PATH = "other"
"""The path under which replies to unknown paths are counted."""


@dataclass(frozen=True)
class Part:
    """Routes of the service that belong together."""

    routes: Sequence[BaseRoute]
    """The routes."""
    running: Callable[[], AbstractAsyncContextManager[None]] = nullcontext
    """Returns a context that holds open whatever the routes need while the application serves."""


def create_app(
    service: Service,
    settings: ServiceSettings,
    parts: Sequence[Part] = (),
    tell: MessageWriter = lambda words: None,  # noqa: ARG005
    count: Count = lambda path, status: None,  # noqa: ARG005
) -> Starlette:
    """Return the application: ``/health``, ``/openapi.json`` and the routes of ``parts``.

    A route raises ``RequestError``, ``SampleError`` (422), ``BusyError`` (429) or ``ClosingError``
    (503), see :mod:`trustassay.live.requests`.

    Args:
        service: scores the samples.
        settings: tokens and limits.
        parts: the routes of the service.
        tell: receives a message about each request that failed, which never quotes the request.
        count: is called for each reply, with the path of its route and its status.
    """

    async def failed(_request: Request, error: Exception) -> Response:
        tell(f"a request failed: {_describe_origin(error)}")
        return requests.fault(500, "the service failed; see its log")

    async def health(_request: Request) -> Response:
        if service.closing:
            return requests.reply({"status": "closing"}, 503)
        return requests.reply({"status": "ready"})

    async def describe_service(_request: Request) -> Response:
        return requests.reply(document)

    routes: list[BaseRoute] = [Route("/health", health), Route("/openapi.json", describe_service)]
    routes += [route for part in parts for route in part.routes]
    paths = [route.path for route in routes if isinstance(route, Route)]
    document = build_openapi(paths, asks_token=bool(settings.tokens))
    guards = [
        Middleware(requests.AccessGuard, settings),
        Middleware(requests.BodyLimiter, settings),
    ]
    result = Starlette(
        routes=routes,
        middleware=[Middleware(ReplyCounter, count, paths), *guards],
        exception_handlers={
            **dict.fromkeys(requests.HANDLED_ERRORS, requests.error_response),
            Exception: failed,
        },
    )
    # A path is exact: a redirect would answer at a path that no route has.
    result.router.redirect_slashes = False
    return result


def build_openapi(paths: Sequence[str], *, asks_token: bool) -> dict[str, Any]:
    """Return the OpenAPI 3.1 document of a service with these paths."""
    text = files("trustassay.live").joinpath("openapi.yaml").read_text("utf-8")
    document: dict[str, Any] = yaml.safe_load(text)
    # Descriptions of errors stand once in the file, and are copied into each operation below.
    kinds = document.pop("x-errors")
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    seconds = {"type": "integer", "minimum": 1}
    message = "Seconds to wait before sending the request again."
    headers = {"Retry-After": {"description": message, "required": True, "schema": seconds}}
    document["info"]["version"] = version("trustassay")
    document["paths"] = {key: document["paths"][key] for key in paths if key in document["paths"]}
    for operations in document["paths"].values():
        for operation in operations.values():
            # errors that every route can give, besides its own
            statuses = sorted({401, 421, 429, 500, *operation.pop("x-errors", ())})
            errors = {str(key): {"description": kinds[key], "content": content} for key in statuses}
            for key in {"429", "503"} & errors.keys():
                errors[key]["headers"] = headers
            operation["responses"] = errors | operation["responses"]
    schemas = document["components"]["schemas"]
    # Schemas refer to each other: follow the references until no new one turns up.
    used, unseen = set(), _find_references(document["paths"])
    while unseen:
        used |= unseen
        unseen = _find_references([schemas[name] for name in unseen]) - used
    document["components"]["schemas"] = {k: v for k, v in schemas.items() if k in used}
    if asks_token:
        document["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        document["security"] = [{"token": []}]
    return document


def _find_references(described: Any) -> set[str]:
    """Return the names of the schemas to which a part of the document refers."""
    return set(re.findall(r"#/components/schemas/(\w+)", json.dumps(described)))


class ReplyCounter:
    """Middleware that counts the replies."""

    def __init__(self, app: ASGIApp, count: Count, paths: Collection[str]) -> None:
        self._app, self._count, self._paths = app, count, paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and count the status of its reply; 500 if there was none."""
        status = 500

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, sending)
        finally:
            if scope["type"] == "http":
                path = scope["path"]
                # Unknown paths share a label: a caller could otherwise create any number of time
                # series.
                self._count(path if path in self._paths else OTHER_PATH, status)


def _describe_origin(error: Exception) -> str:
    """Return the class of an error and where it was raised, but not its message.

    A message may quote a request, and nothing of a request goes into the log.
    """
    last = traceback.extract_tb(error.__traceback__)[-1:]
    return " ".join([type(error).__name__, *(f"at {frame.name}:{frame.lineno}" for frame in last)])


MAX_SHORT_LIST = 10
"""Samples of a list that are checked in the event loop, if they are short together."""
MAX_PROBLEMS_LISTED = 1000
"""The most faults of samples that one reply lists."""
TaskOrError = asyncio.Task[Assay] | SampleError


def scoring_part(service: Service) -> Part:
    """Return the route that scores samples."""

    async def score(request: Request) -> Response:
        records, many = await requests.read_records(request, service.settings.share)
        samples: list[Sample] = []
        problems: dict[int, Sequence[Problem]] = {}
        size = len(await request.body())
        # By the whole list: each sample may be short, and all would still block the event loop.
        is_long = len(records) > MAX_SHORT_LIST or size > MAX_SHORT_PASSAGES_CHARACTERS
        work = TextWork(size // len(records), long=is_long)
        for index, record in enumerate(records):
            try:
                samples.append(await work(service.scorer.check, record))
            except SampleError as error:
                problems[index] = error.problems
        # A single sample gets the plain form of an error, without an index.
        if problems and not many:
            raise SampleError(problems[0])
        if problems:
            faults = [
                {"index": i, **problem}
                for i in problems
                for problem in requests.problems_json(problems[i])
            ]
            only = f"; the first {MAX_PROBLEMS_LISTED:,} problems are listed"
            listed = only if len(faults) > MAX_PROBLEMS_LISTED else ""
            message = f"nothing was accepted: {amount(len(problems), 'faulty sample')}{listed}"
            return requests.fault(422, message, problems=faults[:MAX_PROBLEMS_LISTED])
        begun = service.begin(samples)
        if many:
            # A list is answered line by line: its status is 200 before the first sample is scored.
            return _JsonLinesResponse(service, samples, begun)
        if isinstance(begun[0], SampleError):
            raise begun[0]
        return await requests.unless_gone(request, reply_when_done(begun[0]))

    async def reply_when_done(task: asyncio.Task[Assay]) -> Response:
        return requests.reply(service.verdict_of(await service.scorer.wait_for(task)))

    route = Route("/v1/score", score, methods=["POST"])
    return Part([route])


class _JsonLinesResponse(StreamingResponse):
    """A response with one line of JSON for each sample, in the order in which they are finished.

    Each line has the index of its sample in the request.
    """

    media_type = "application/x-ndjson"

    def __init__(
        self, service: Service, samples: Sequence[Sample], begun: Sequence[TaskOrError]
    ) -> None:
        self._service, self._samples, self._begun = service, samples, begun
        super().__init__(self._iter_lines())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the lines; if the client disconnects, give up the unfinished samples."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            for begun in self._begun:
                if isinstance(begun, asyncio.Task):
                    self._service.scorer.give_up(begun)

    async def _iter_lines(self) -> AsyncIterator[bytes]:
        finished: asyncio.Queue[int] = asyncio.Queue()

        def note(index: int, _task: asyncio.Task[Assay]) -> None:
            finished.put_nowait(index)

        for index, begun in enumerate(self._begun):
            if isinstance(begun, SampleError):
                finished.put_nowait(index)
            else:
                begun.add_done_callback(partial(note, index))
        remaining = len(self._begun)
        while remaining:
            ready = [await finished.get()]
            # Lines that are ready together are sent together: fewer small packets under load.
            while not finished.empty():
                ready.append(finished.get_nowait())
            remaining -= len(ready)
            yield b"".join(requests.encode_json(self._build_line(index)) + b"\n" for index in ready)

    def _build_line(self, index: int) -> dict[str, Any]:
        begun = self._begun[index]
        # A task is cancelled only by a second signal, while the service ends.
        if isinstance(begun, asyncio.Task) and not begun.cancelled():
            return {"index": index, **self._service.verdict_of(begun.result())}
        if isinstance(begun, SampleError):
            message, problems = (
                "the sample cannot be scored",
                requests.problems_json(begun.problems),
            )
            error = requests.build_error(message, "invalid_sample", problems=problems)
        else:
            message = "the service stopped before this sample was scored; send the sample again"
            error = requests.build_error(message, "closing")
        return {"index": index, "id": self._samples[index].id, **error}


LATENCY_BUCKETS_S = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
"""Upper bounds of the histogram's buckets, in seconds."""


class ServiceMetrics:
    """The Prometheus metrics of the service, in a registry of their own."""

    def __init__(self) -> None:
        """Create the metrics."""
        # Only a service needs it; a door of another tool imports this module, too.
        import prometheus_client as prometheus

        self._prometheus = prometheus
        # The global registry would keep the metrics of an earlier service of the same process
        # (tests).
        self._registry = prometheus.CollectorRegistry()

        def made(kind: Any, name: str, words: str, labels: Sequence[str] = (), **more: Any) -> Any:
            return kind(f"trustassay_{name}", words, labels, registry=self._registry, **more)

        counter, gauge = prometheus.Counter, prometheus.Gauge
        message = "Replies, by path and status."
        self._replies = made(counter, "replies", message, ("path", "status"))
        message = (
            "Accepted samples that ended: scored, failed (a metric gave no score), or given up."
        )
        self._samples = made(counter, "samples", message, ("outcome",))
        message = "Verdicts, by metric."
        self._verdicts = made(counter, "verdicts", message, ("metric", "verdict"))
        message = "Seconds from the acceptance of a sample to its result."
        self._seconds = made(
            prometheus.Histogram, "sample_seconds", message, buckets=LATENCY_BUCKETS_S
        )
        message = "Samples in progress."
        self._in_progress = made(gauge, "samples_in_progress", message)
        self._capacity = made(gauge, "capacity", "The most samples in progress at once.")
        # A counter exists from its first label on: without this, a rate would miss the first event.
        for outcome in ("scored", "failed", "given_up"):
            self._samples.labels(outcome)

    def count(self, path: str, status: int) -> None:
        """Count a reply."""
        self._replies.labels(path, str(status)).inc()

    def note(self, assay: Assay | None, seconds: float) -> None:
        """Count a finished sample and its verdicts; ``None`` stands for one that was given up."""
        if assay is None:
            self._samples.labels("given_up").inc()
            return
        self._samples.labels("failed" if assay.errors else "scored").inc()
        self._seconds.observe(seconds)
        for name, result in assay.assessments.items():
            if result.error is None:
                self._verdicts.labels(name, result.verdict or "none").inc()

    def part(self, service: Service) -> Part:
        """Return the route that shows the metrics of a service."""
        self._in_progress.set_function(lambda: service.scorer.in_progress)
        self._capacity.set(service.settings.capacity)

        async def metrics(_request: Request) -> Response:
            text = self._prometheus.generate_latest(self._registry)
            return Response(text, media_type=self._prometheus.CONTENT_TYPE_LATEST)

        return Part([Route("/metrics", metrics)])
