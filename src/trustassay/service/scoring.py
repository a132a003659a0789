"""``POST /v1/score``: one sample, or many whose answers are streamed as they are finished."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from trustassay.sample import Problem, Sample, SampleError
from trustassay.service.app import Part
from trustassay.service.bodies import read_records
from trustassay.service.described import SCORE_PATHS, SCORE_SCHEMAS
from trustassay.service.replies import encoded, fault, problems_json, reply
from trustassay.service.service import Service
from trustassay.workflows.scorer import Assay

__all__ = ["scoring"]

CHECKED_AT_ONCE = 50
"""Samples that are checked before other requests have their turn."""
PROBLEMS_TOLD = 1000
Begun = asyncio.Task[Assay] | SampleError


def scoring(service: Service) -> Part:
    """Return the route that scores samples."""

    async def score(request: Request) -> Response:
        given = await read_records(request, service.settings.capacity)
        samples, problems = await _checked(service, given.records)
        if problems:
            return fault(422, *_told(problems, given.many))
        begun = service.begin(samples)
        if given.many:
            return _Streamed(service, samples, begun)
        if isinstance(begun[0], SampleError):
            raise begun[0]
        return await _one(service, request, begun[0])

    route = Route("/v1/score", score, methods=["POST"])
    return Part([route], SCORE_PATHS, SCORE_SCHEMAS)


async def _checked(
    service: Service, records: Sequence[Any]
) -> tuple[list[Sample], dict[int, Sequence[Problem]]]:
    """Return the samples, and what is wrong with each record that is none, by its index."""
    samples: list[Sample] = []
    problems: dict[int, Sequence[Problem]] = {}
    for index, record in enumerate(records):
        if index % CHECKED_AT_ONCE == CHECKED_AT_ONCE - 1:
            await asyncio.sleep(0)
        try:
            samples.append(await service.checked(record))
        except SampleError as error:
            problems[index] = error.problems
    return samples, problems


def _told(
    found: dict[int, Sequence[Problem]], many: bool
) -> tuple[str, None, list[dict[str, Any]]]:
    """Return the message and the problems of a 422, each with the index of its record."""
    if not many:
        return "the sample cannot be scored", None, problems_json(found[0])
    told = [{"index": i, **one} for i, problems in found.items() for one in problems_json(problems)]
    count = f"{len(found):,} faulty" + (", the first are told" if len(told) > PROBLEMS_TOLD else "")
    return f"nothing was accepted: {count}", None, told[:PROBLEMS_TOLD]


async def _one(service: Service, request: Request, task: asyncio.Task[Assay]) -> Response:
    """Wait for one result; if the client goes away, its sample is given up."""

    async def gone() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    leaving = asyncio.create_task(gone())
    try:
        await asyncio.wait((task, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            service.give_up(task)
            return Response(status_code=400)  # nobody reads it
        return reply(service.verdict_of(await service.finished(task)))
    finally:
        leaving.cancel()
        if not task.done():  # this request itself was cancelled
            service.give_up(task)


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
                    self._service.give_up(one)

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
            yield b"".join(encoded(self._line(index)) + b"\n" for index in ready)

    def _line(self, index: int) -> dict[str, Any]:
        one = self._begun[index]
        if isinstance(one, asyncio.Task) and not one.cancelled():
            return {"index": index, **self._service.verdict_of(one.result())}
        if isinstance(one, SampleError):
            told = {"type": "invalid_sample", "message": "the sample cannot be scored"}
            error: dict[str, Any] = {**told, "problems": problems_json(one.problems)}
        else:
            words = "the service was interrupted before it was scored; send it again"
            error = {"type": "closing", "message": words}
        return {"index": index, "id": self._samples[index].id, "error": error}
