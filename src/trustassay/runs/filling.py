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
from trustassay.runs.folder import RunFolder, encoded_sample
from trustassay.runs.stages import Failure, Stage, StageModels
from trustassay.sample import Sample

__all__ = ["AHEAD", "Failure", "FilledSample", "Outcome", "fill_samples", "filled"]

AHEAD = 4
"""Samples requested ahead, so that a slow one does not delay others."""


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

    ``at_once`` samples are in progress at most; ``step`` is called when one is finished that lacked
    something.
    """
    under_way: deque[asyncio.Task[FilledSample]] = deque()
    try:
        for sample, stages, repeat in samples:
            found = FilledSample(sample, repeat)
            under_way.append(asyncio.create_task(_through(found, stages, models, step)))
            if len(under_way) >= at_once:
                yield await under_way.popleft()
        while under_way:
            yield await under_way.popleft()
    finally:
        for task in under_way:
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)


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
