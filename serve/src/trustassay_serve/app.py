"""The ASGI application: the routes of all parts, behind the same guards."""

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

from trustassay.errors import BackendError
from trustassay.sample import Problem, Sample, SampleError
from trustassay.workflows.scorer import Assay
from trustassay_serve import requests
from trustassay_serve.service import Service, ServiceSettings

Tell = Callable[[str], None]
Count = Callable[[str, int], None]
OTHER = "other"
"""What a path is counted under that no route has."""


@dataclass(frozen=True)
class Part:
    """Routes; ``running`` opens what they need while the application serves."""

    routes: Sequence[BaseRoute]
    running: Callable[[], AbstractAsyncContextManager[None]] = nullcontext


def create_app(
    service: Service,
    settings: ServiceSettings,
    parts: Sequence[Part] = (),
    tell: Tell = lambda words: None,  # noqa: ARG005
    count: Count = lambda path, status: None,  # noqa: ARG005
) -> Starlette:
    """Return the application: ``/health``, ``/openapi.json`` and the routes of ``parts``.

    A route raises ``RequestError``, ``SampleError`` (422), ``BusyError`` (429) or ``ClosingError``
    (503), see :mod:`trustassay_serve.requests`. ``tell`` hears of requests that failed, and never
    what they said; ``count`` of each reply, by the path of its route and its status.
    """

    async def failed(_request: Request, error: Exception) -> Response:
        tell(f"a request failed: {_place(error)}")
        return requests.fault(500, "the service failed; its log says where")

    async def health(_request: Request) -> Response:
        if service.closing:
            return requests.reply({"status": "closing"}, 503)
        return requests.reply({"status": "ready"})

    async def described(_request: Request) -> Response:
        return requests.reply(document)

    routes: list[BaseRoute] = [Route("/health", health), Route("/openapi.json", described)]
    routes += [route for part in parts for route in part.routes]
    paths = [route.path for route in routes if isinstance(route, Route)]
    document = openapi(paths, asks_token=bool(settings.tokens))
    guards = [Middleware(requests.Guarded, settings), Middleware(requests.Limited, settings)]
    result = Starlette(
        routes=routes,
        middleware=[Middleware(Counted, count, paths), *guards],
        exception_handlers={
            **dict.fromkeys(requests.ANSWERED, requests.answered),
            Exception: failed,
        },
    )
    result.router.redirect_slashes = False
    return result


def openapi(paths: Sequence[str], *, asks_token: bool) -> dict[str, Any]:
    """Return the document in OpenAPI 3.1 of a service with these paths; others are left out."""
    text = files("trustassay_serve").joinpath("openapi.yaml").read_text("utf-8")
    document: dict[str, Any] = yaml.safe_load(text)
    kinds = document.pop("x-errors")
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    seconds = {"type": "integer", "minimum": 1}
    message = "Seconds after which to send it again."
    headers = {"Retry-After": {"description": message, "required": True, "schema": seconds}}
    document["info"]["version"] = version("trustassay")
    document["paths"] = {one: document["paths"][one] for one in paths if one in document["paths"]}
    for operations in document["paths"].values():
        for operation in operations.values():
            statuses = sorted({401, 421, 429, 500, *operation.pop("x-errors", ())})
            errors = {str(one): {"description": kinds[one], "content": content} for one in statuses}
            for one in {"429", "503"} & errors.keys():
                errors[one]["headers"] = headers
            operation["responses"] = errors | operation["responses"]
    schemas = document["components"]["schemas"]
    used, unseen = set(), _references(document["paths"])
    while unseen:
        used |= unseen
        unseen = _references([schemas[name] for name in unseen]) - used
    document["components"]["schemas"] = {k: v for k, v in schemas.items() if k in used}
    if asks_token:
        document["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        document["security"] = [{"token": []}]
    return document


def _references(described: Any) -> set[str]:
    """Return the names of the schemas to which a part of the document refers."""
    return set(re.findall(r"#/components/schemas/(\w+)", json.dumps(described)))


class Counted:
    """Counts the replies."""

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
                self._count(path if path in self._paths else OTHER, status)


def _place(error: Exception) -> str:
    """Return the class of an error and where it was raised, without its words."""
    last = traceback.extract_tb(error.__traceback__)[-1:]
    return " ".join([type(error).__name__, *(f"at {one.name}:{one.lineno}" for one in last)])


CHECKED_AT_ONCE = 50
"""Samples that are checked before other requests have their turn."""
PROBLEMS_TOLD = 1000
Begun = asyncio.Task[Assay] | SampleError


def scoring(service: Service) -> Part:
    """Return the route that scores samples."""

    async def score(request: Request) -> Response:
        records, many = await requests.read_records(request, service.settings.capacity)
        samples: list[Sample] = []
        problems: dict[int, Sequence[Problem]] = {}
        for index, record in enumerate(records):
            if index % CHECKED_AT_ONCE == CHECKED_AT_ONCE - 1:
                await asyncio.sleep(0)
            try:
                samples.append(await service.checked(record))
            except SampleError as error:
                problems[index] = error.problems
        if problems and not many:
            raise SampleError(problems[0])
        if problems:
            told = [
                {"index": i, **one} for i in problems for one in requests.problems_json(problems[i])
            ]
            listed = ", the first are listed" if len(told) > PROBLEMS_TOLD else ""
            message = f"nothing was accepted: {len(problems):,} faulty{listed}"
            return requests.fault(422, message, problems=told[:PROBLEMS_TOLD])
        begun = service.begin(samples)
        if many:
            return _Streamed(service, samples, begun)
        if isinstance(begun[0], SampleError):
            raise begun[0]
        return await requests.unless_gone(request, finished(begun[0]))

    async def finished(task: asyncio.Task[Assay]) -> Response:
        return requests.reply(service.verdict_of(await service.scorer.finished(task)))

    route = Route("/v1/score", score, methods=["POST"])
    return Part([route])


class _Streamed(StreamingResponse):
    """One line of JSON for each sample, as it is finished, with the index that it had."""

    media_type = "application/x-ndjson"

    def __init__(self, service: Service, samples: Sequence[Sample], begun: Sequence[Begun]) -> None:
        self._service, self._samples, self._begun = service, samples, begun
        super().__init__(self._lines())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the lines; if the client goes away, what is not finished is given up."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            for one in self._begun:
                if isinstance(one, asyncio.Task):
                    self._service.scorer.give_up(one)

    async def _lines(self) -> AsyncIterator[bytes]:
        finished: asyncio.Queue[int] = asyncio.Queue()

        def note(index: int, _task: asyncio.Task[Assay]) -> None:
            finished.put_nowait(index)

        for index, one in enumerate(self._begun):
            if isinstance(one, SampleError):
                finished.put_nowait(index)
            else:
                one.add_done_callback(partial(note, index))
        left = len(self._begun)
        while left:
            ready = [await finished.get()]
            while not finished.empty():
                ready.append(finished.get_nowait())
            left -= len(ready)
            yield b"".join(requests.encoded(self._line(index)) + b"\n" for index in ready)

    def _line(self, index: int) -> dict[str, Any]:
        one = self._begun[index]
        if isinstance(one, asyncio.Task) and not one.cancelled():
            return {"index": index, **self._service.verdict_of(one.result())}
        if isinstance(one, SampleError):
            told = {"type": "invalid_sample", "message": "the sample cannot be scored"}
            error: dict[str, Any] = {**told, "problems": requests.problems_json(one.problems)}
        else:
            message = "the service was interrupted before it was scored; send it again"
            error = {"type": "closing", "message": message}
        return {"index": index, "id": self._samples[index].id, "error": error}


SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)


class Meter:
    """What the service counts, in a registry of its own."""

    def __init__(self) -> None:
        """Raise BackendError if the package is not installed."""
        try:
            import prometheus_client as prometheus
        except ImportError:
            message = "the service needs prometheus_client, which is not installed"
            install = "pip install ./serve in a clone of trustassay"
            raise BackendError(f"{message}: {install}") from None
        self._prometheus = prometheus
        self._registry = prometheus.CollectorRegistry()

        def made(kind: Any, name: str, words: str, labels: Sequence[str] = (), **more: Any) -> Any:
            return kind(f"trustassay_{name}", words, labels, registry=self._registry, **more)

        counter, gauge = prometheus.Counter, prometheus.Gauge
        message = "Replies, by the path of the route and the status."
        self._replies = made(counter, "replies", message, ("path", "status"))
        message = (
            "Samples accepted and ended: scored, failed (a metric gave no score), or given up."
        )
        self._samples = made(counter, "samples", message, ("outcome",))
        message = "What each metric found."
        self._verdicts = made(counter, "verdicts", message, ("metric", "verdict"))
        message = "Seconds from accepting a sample to its result."
        self._seconds = made(prometheus.Histogram, "sample_seconds", message, buckets=SECONDS)
        message = "Samples accepted and not finished."
        self._in_progress = made(gauge, "samples_in_progress", message)
        self._capacity = made(gauge, "capacity", "Samples that are accepted at once.")
        for outcome in ("scored", "failed", "given_up"):
            self._samples.labels(outcome)

    def count(self, path: str, status: int) -> None:
        """Count a reply."""
        self._replies.labels(path, str(status)).inc()

    def note(self, assay: Assay | None, seconds: float) -> None:
        """Count a finished sample, ``None`` if it was given up."""
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
