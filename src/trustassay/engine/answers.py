"""The stage before scoring: samples without a response get the model's."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from trustassay.answering import Answering
from trustassay.capabilities import BackendError, Reply
from trustassay.engine.folder import RunFolder
from trustassay.engine.models import Gatherers
from trustassay.files import whole
from trustassay.sample import Sample

__all__ = ["CUT", "Answered", "Answers", "answer_samples", "answered", "unanswered"]

CUT = "response_cut"
"""Field of a sample whose response was cut at ``max_tokens``."""
AHEAD = 4
"""Samples that are asked about beyond the window, so that a slow one does not hold up others."""


@dataclass(slots=True)
class Answers:
    """What became of the questions; ``failed`` says by id why there is no answer."""

    asked: int = 0
    failed: dict[str, Failure] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Answered:
    """A sample, with a response unless ``error`` says why there is none.

    ``fault`` is the kind of a failed call, as ``empty``.
    """

    sample: Sample
    repeat: int = 0
    reply: Reply | None = None
    error: str | None = None
    fault: str | None = None

    @property
    def cut(self) -> bool:
        """Whether the answer was cut at ``max_tokens``."""
        return self.reply is not None and self.reply.finish == "length"


class Failure(NamedTuple):
    """Why a question has no answer, and the kind of the failed call if it was one."""

    error: str
    fault: str | None = None


def unanswered(sample: Sample) -> Sample:
    """Return a sample without its response, and without what was said of it."""
    metadata = {name: value for name, value in sample.metadata.items() if name != CUT}
    return replace(sample, response=None, model=None, metadata=metadata)


async def answered(
    samples: Iterable[Sample],
    answering: Answering,
    gatherers: Gatherers,
    concurrency: int,
    step: Callable[[], None] = lambda: None,
    repeats: int = 1,
) -> AsyncIterator[Answered]:
    """Yield the samples in their order, those without a response with the model's.

    A blank response is none. With ``repeats`` each is asked so many times and yielded as often. A
    question that lacks what its style needs is not asked.
    """
    model = gatherers.chat["model"]
    under_way: deque[tuple[Answered, asyncio.Future[Reply] | None]] = deque()
    for sample in samples:
        if not sample.answered and (problems := answering.problems(sample)):
            under_way.append((Answered(sample, error="; ".join(map(str, problems))), None))
            continue
        for repeat in range(1 if sample.answered else repeats):
            future = None
            if not sample.answered:
                future = model.ask(answering.request(sample, repeat))
                future.add_done_callback(lambda _: step())
            under_way.append((Answered(sample, repeat), future))
        while len(under_way) > concurrency * AHEAD:
            yield await _finished(*under_way.popleft(), model.backend)
    while under_way:
        yield await _finished(*under_way.popleft(), model.backend)


async def _finished(asked: Answered, future: asyncio.Future[Reply] | None, name: str) -> Answered:
    if future is None:
        return asked
    try:
        reply = await future
    except BackendError as error:
        fault = getattr(error, "kind", None)
        return Answered(asked.sample, asked.repeat, error=str(error), fault=fault)
    sample = asked.sample
    model = (sample.model if sample.response is None else None) or name
    metadata = unanswered(sample).metadata
    if reply.finish == "length":
        metadata = {**metadata, CUT: True}
    sample = replace(sample, response=reply.text.strip(), model=model, metadata=metadata)
    return Answered(sample, asked.repeat, reply)


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
            if found.error is not None:
                answers.failed[found.sample.id] = Failure(found.error, found.fault)
            file.write((json.dumps(found.sample.to_dict(), default=str) + "\n").encode())
    return answers
