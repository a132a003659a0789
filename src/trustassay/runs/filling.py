"""Takes samples through the stages, many at once and in their order."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import cast

from trustassay.calls.gatherers import Gatherers
from trustassay.calls.models import SampleModels
from trustassay.files import whole
from trustassay.runs.folder import RunFolder
from trustassay.runs.lines import encoded_sample
from trustassay.runs.stages import Failure, Stage, StageModels
from trustassay.sample import Sample

__all__ = ["AHEAD", "Failure", "FilledSample", "Outcome", "fill_samples", "filled"]

AHEAD = 4
"""Samples in progress for each call at once, since a sample may wait before it is tried again."""
KEPT = 16
"""Samples for each of those in progress that are kept while an earlier one is not finished."""


@dataclass(slots=True)
class Outcome:
    """Counts of filled samples: by field the calls, the cut replies and the failures.

    failed: why, by id and field.
    """

    asked: Counter[str] = field(default_factory=Counter)
    failed: dict[tuple[str, str], Failure] = field(default_factory=dict)

    def note(self, found: FilledSample) -> None:
        """Count a sample."""
        self.asked.update(found.asked)
        for name, failure in found.failures.items():
            words = f"no {name}: {failure.error}"
            self.failed[found.sample.id, name] = Failure(words, failure.fault)


@dataclass(slots=True)
class FilledSample:
    """A sample that went through the stages; counts and failures stand by field."""

    sample: Sample
    repeat: int = 0
    asked: Counter[str] = field(default_factory=Counter)
    failures: dict[str, Failure] = field(default_factory=dict)


async def filled(
    samples: Iterable[tuple[Sample, Sequence[Stage], int]],
    models: StageModels,
    at_once: int,
    step: Callable[[], None] = lambda: None,
) -> AsyncIterator[FilledSample]:
    """Yield samples in their order, each filled by its stages, one after the other.

    Each comes with its stages and with the number of its repetition.

    ``at_once`` samples are in progress at most. One that is slow does not hold up the others: up to
    ``KEPT`` times as many are kept until it is finished. ``step`` is called when one is finished
    that lacked something.
    """
    tasks: deque[asyncio.Task[FilledSample]] = deque()
    unfinished, ended = 0, asyncio.Event()

    def note_end(_: object) -> None:
        nonlocal unfinished
        unfinished -= 1
        ended.set()

    try:
        for sample, stages, repeat in samples:
            found = FilledSample(sample, repeat)
            tasks.append(asyncio.create_task(_through(found, stages, models, step)))
            unfinished += 1
            tasks[-1].add_done_callback(note_end)
            while tasks and (unfinished >= at_once or len(tasks) >= KEPT * at_once):
                ended.clear()
                await ended.wait()
                while tasks and tasks[0].done():
                    yield await tasks.popleft()
        while tasks:
            yield await tasks.popleft()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _through(
    found: FilledSample, stages: Sequence[Stage], models: StageModels, step: Callable[[], None]
) -> FilledSample:
    lacking = False
    for stage in stages:
        if not stage.lacks(found.sample):
            continue
        lacking = True
        if problems := stage.problems(found.sample):
            found.failures[stage.field] = Failure("; ".join(map(str, problems)))
            continue
        result = await stage.fill(found.sample, models)
        found.sample = result.sample
        found.asked[stage.field] += result.asked
        if result.failures:
            words = "; ".join(one.error for one in result.failures)
            found.failures[stage.field] = Failure(words, result.failures[0].fault)
    if lacking:
        step()
    return found


async def fill_samples(
    folder: RunFolder,
    stages: Sequence[Stage],
    gatherers: Gatherers,
    at_once: int,
    step: Callable[[], None],
) -> Outcome:
    """Write the results of the stages into the run's samples, all at once.

    A stopped run finds the replies received so far among its calls. A sample that could not be
    filled is not changed, and the next run tries it again.
    """
    outcome = Outcome()
    models = cast(StageModels, SampleModels(gatherers))
    samples = ((sample, stages, 0) for sample in folder.samples())
    with whole(folder.samples_path) as file:
        async for found in filled(samples, models, at_once, step):
            outcome.note(found)
            file.write(encoded_sample(found.sample))
    return outcome
