"""The first pass over the input: check every sample before anything is started."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

from trustassay.answering import Answering
from trustassay.data.reading import Fault, InputError, Located, read_samples
from trustassay.engine.hashing import HashSet, hash64
from trustassay.files import named
from trustassay.metric import Inventory, Metric
from trustassay.sample import Problem, Sample

__all__ = ["BadInputError", "Intake", "Source", "take_in"]

Source = str | os.PathLike[str] | Iterable[Mapping[str, Any] | Sample]
FAULTS_KEPT = 1000
BREATH = 256


class BadInputError(ValueError):
    """The input has faults: the first thousand in ``faults``, ``count`` of them in all."""

    def __init__(self, faults: Sequence[Fault], count: int) -> None:
        super().__init__("\n".join(map(str, faults)))
        self.faults, self.count = tuple(faults), count


@dataclass(slots=True)
class Intake:
    """What the first pass found: the samples' digest, what they bring, and what was left out."""

    sha256: str = ""
    inventory: Inventory = field(default_factory=Inventory)
    faults: list[Fault] = field(default_factory=list)
    faulty: int = 0

    def note(self, fault: Fault) -> None:
        """Count a fault; the first thousand are kept."""
        self.faulty += 1
        if len(self.faults) < FAULTS_KEPT:
            self.faults.append(fault)


async def take_in(  # noqa: PLR0913 - one caller names them all
    source: Source,
    metrics: Sequence[Metric],
    target: Path,
    *,
    fields: Mapping[str, str],
    limit: int | None,
    skip_bad: bool,
    step: Callable[[], None],
    answering: Answering | None = None,
) -> tuple[Intake, list[Metric]]:
    """Read and check all samples and write them, in canonical form, to ``target``.

    Every ``auto`` option of the metrics is settled by what the samples bring; the metrics so
    resolved are returned. ``step`` is called for each sample. With ``answering`` a sample need not
    have a response, but what it takes to get one.

    Raises:
        BadInputError: samples have faults, and ``skip_bad`` is off; ``target`` is not there then.
        InputError: the input cannot be read at all, or holds no usable sample.
    """
    intake = Intake()
    digest = hashlib.sha256()
    records = islice(read_samples(source, fields=fields), limit)
    try:
        with named(target), target.open("wb") as file:
            async for sample in _sound(records, metrics, intake, step, answering):
                line = (json.dumps(sample.to_dict(), default=str) + "\n").encode()
                intake.inventory.add(sample)
                digest.update(line)
                file.write(line)
        if intake.faulty and not skip_bad:
            raise BadInputError(intake.faults, intake.faulty)
        if not intake.inventory.samples:
            raise InputError("no usable sample in the input")
    except BaseException:
        target.unlink(missing_ok=True)
        raise
    intake.sha256 = digest.hexdigest()
    return intake, [metric.resolved(intake.inventory) for metric in metrics]


async def _sound(
    records: Iterable[Located | Fault],
    metrics: Sequence[Metric],
    intake: Intake,
    step: Callable[[], None],
    answering: Answering | None,
) -> AsyncIterator[Sample]:
    """Yield the samples without fault, each with an id of its own; note the faults of others."""
    reading = any(metric.reads_response for metric in metrics) or not metrics
    ids = HashSet()
    repeats: Counter[str] = Counter()
    for number, record in enumerate(records):
        step()
        if number % BREATH == 0:
            await asyncio.sleep(0)  # lets an interruption through
        if isinstance(record, Fault):
            intake.note(record)
            continue
        sample, given = record.sample, record.has_id
        problems, as_answered = [], sample
        if not sample.answered and answering and reading:
            problems = answering.problems(sample)
            as_answered = replace(sample, response="") if metrics else sample
        for metric in metrics:
            problems += metric.problems(as_answered)
            if answering is None:
                problems += metric.problems_without_model(sample)
        known_as = hash64(sample.id)
        if known_as in ids:
            if given:
                problems.append(Problem("id", f"{sample.id!r} stands on an earlier record, too"))
            else:
                sample = replace(sample, id=_next_free(sample.id, ids, repeats))
                known_as = hash64(sample.id)
        if problems:
            intake.note(Fault(record.where, tuple(dict.fromkeys(problems))))
            continue
        ids.add(known_as)
        yield sample


def _next_free(sample_id: str, ids: HashSet, repeats: Counter[str]) -> str:
    """Return the first of ``ID-2``, ``ID-3``, ... that is not taken; ``repeats`` says how far."""
    while True:
        repeats[sample_id] += 1
        name = f"{sample_id}-{repeats[sample_id] + 1}"
        if hash64(name) not in ids:
            return name
