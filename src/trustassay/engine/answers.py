"""The stage before scoring: samples without a response get the model's."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass, field, replace

from trustassay.answering import Answering
from trustassay.capabilities import BackendError, Reply
from trustassay.engine.folder import RunFolder
from trustassay.engine.models import Gatherers, SampleModels
from trustassay.files import whole
from trustassay.sample import Sample

__all__ = ["Answered", "Answers", "answer_samples", "answered"]

AHEAD = 4
"""Samples that are asked about beyond the window, so that a slow one does not hold up others."""


@dataclass(slots=True)
class Answers:
    """What became of the questions; ``failed`` says by id why there is no answer."""

    asked: int = 0
    cut: int = 0
    failed: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Answered:
    """A sample, with a response unless ``error`` says why there is none."""

    sample: Sample
    repeat: int = 0
    reply: Reply | None = None
    error: str | None = None


async def answered(
    samples: Iterable[Sample],
    answering: Answering,
    gatherers: Gatherers,
    concurrency: int,
    step: Callable[[], None] = lambda: None,
    repeats: int = 1,
) -> AsyncIterator[Answered]:
    """Yield the samples in their order, those without a response with the model's.

    With ``repeats`` each is asked so many times and yielded as often. A question that lacks what
    its style needs is not asked.
    """
    name = gatherers.chat["model"].backend
    models = SampleModels(gatherers)
    under_way: deque[tuple[Answered, asyncio.Future[Reply] | None]] = deque()
    for sample in samples:
        if sample.response is None and (problems := answering.problems(sample)):
            under_way.append((Answered(sample, error="; ".join(map(str, problems))), None))
            continue
        for repeat in range(repeats if sample.response is None else 1):
            future = None
            if sample.response is None:
                request = answering.request(sample, repeat)
                future = models.request(request)
                future.add_done_callback(lambda _: step())
            under_way.append((Answered(sample, repeat), future))
        while len(under_way) > concurrency * AHEAD:
            yield await _finished(*under_way.popleft(), name)
    while under_way:
        yield await _finished(*under_way.popleft(), name)


async def _finished(asked: Answered, future: asyncio.Future[Reply] | None, name: str) -> Answered:
    if future is None:
        return asked
    try:
        reply = await future
    except BackendError as error:
        return replace(asked, error=str(error))
    model = asked.sample.model or name
    sample = replace(asked.sample, response=reply.text.strip(), model=model)
    return replace(asked, sample=sample, reply=reply)


async def answer_samples(
    folder: RunFolder,
    answering: Answering,
    gatherers: Gatherers,
    concurrency: int,
    step: Callable[[], None],
) -> Answers:
    """Write the model's responses into the run's samples, all of them in one go.

    A stopped run finds what it was told by then among its calls. A sample whose question was not
    answered stays without a response, and is asked about again by the next run.
    """
    answers = Answers()
    with whole(folder.samples_path) as file:
        async for found in answered(folder.samples(), answering, gatherers, concurrency, step):
            answers.asked += found.reply is not None
            answers.cut += found.reply is not None and found.reply.finish == "length"
            if found.error is not None:
                answers.failed[found.sample.id] = found.error
            file.write((json.dumps(found.sample.to_dict(), default=str) + "\n").encode())
    return answers
