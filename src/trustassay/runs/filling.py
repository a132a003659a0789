"""Takes samples through the stages, many at once and in their order."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass, field

from trustassay.calls.gatherers import Gatherers
from trustassay.calls.models import SampleModels
from trustassay.runs.folder import RunFolder, encoded_sample
from trustassay.runs.stages import Stage, StageModels
from trustassay.sample import Sample

__all__ = ["FilledSample", "Outcome", "fill_samples", "filled"]


@dataclass(slots=True)
class Outcome:
    """What became of the samples: by field what was asked, cut and not answered.

    failed: why, by id and field.
    """

    asked: Counter[str] = field(default_factory=Counter)
    cut: Counter[str] = field(default_factory=Counter)
    failed: dict[tuple[str, str], str] = field(default_factory=dict)

    def note(self, found: FilledSample) -> None:
        """Count a sample."""
        self.asked.update(found.asked)
        self.cut.update(found.cut)
        for name, words in found.failures.items():
            self.failed[found.sample.id, name] = words

    def why_not(self, sample_id: str, fields: Iterable[str]) -> str | None:
        """Return why the first of some fields could not be filled, if one could not."""
        for name in fields:
            if words := self.failed.get((sample_id, name)):
                return f"no {name}: {words}"
        return None


@dataclass(slots=True)
class FilledSample:
    """A sample that went through the stages; counts and failures stand by field."""

    sample: Sample
    asked: Counter[str] = field(default_factory=Counter)
    cut: Counter[str] = field(default_factory=Counter)
    failures: dict[str, str] = field(default_factory=dict)


async def filled(
    samples: Iterable[Sample],
    stages: Sequence[Stage],
    models: StageModels,
    at_once: int,
    step: Callable[[], None] = lambda: None,
) -> AsyncIterator[FilledSample]:
    """Yield the samples in their order, each filled by all stages, one after the other.

    ``at_once`` samples are under way at most; ``step`` is called when one is finished that lacked
    something.
    """
    under_way: deque[asyncio.Task[FilledSample]] = deque()
    try:
        for sample in samples:
            under_way.append(asyncio.create_task(_through(sample, stages, models, step)))
            if len(under_way) >= at_once:
                yield await under_way.popleft()
        while under_way:
            yield await under_way.popleft()
    finally:
        for task in under_way:
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)


async def _through(
    sample: Sample, stages: Sequence[Stage], models: StageModels, step: Callable[[], None]
) -> FilledSample:
    found = FilledSample(sample)
    lacking = False
    for stage in stages:
        if not stage.lacks(found.sample):
            continue
        lacking = True
        if problems := stage.problems(found.sample):
            found.failures[stage.field] = "; ".join(map(str, problems))
            continue
        result = await stage.fill(found.sample, models)
        found.sample = result.sample
        found.asked[stage.field] += result.asked
        found.cut[stage.field] += result.cut
        if result.failures:
            found.failures[stage.field] = "; ".join(result.failures)
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
    """Write what the stages get into the run's samples, all of them in one go.

    A stopped run finds what it was told by then among its calls. A sample that could not be filled
    stays as it is, and is asked about again by the next run.
    """
    outcome = Outcome()
    part = folder.path / ".samples.jsonl.part"
    models = SampleModels(gatherers)
    try:
        with part.open("wb") as file:
            async for found in filled(folder.samples(), stages, models, at_once, step):
                outcome.note(found)
                file.write(encoded_sample(found.sample))
        part.replace(folder.samples_path)
    finally:
        part.unlink(missing_ok=True)
    return outcome
