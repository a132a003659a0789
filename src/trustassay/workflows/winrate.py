"""Two files of answers to the same questions: how often does a judge prefer the first one's?"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from trustassay.backends import resolve
from trustassay.calls.backends import Backends
from trustassay.calls.client import shared_file
from trustassay.errors import UsageError
from trustassay.event_loop import run_anywhere
from trustassay.metric import Summary
from trustassay.metrics.pairwise import OTHER_MODEL, OTHER_RESPONSE, Pairwise
from trustassay.runs.estimates import Plan
from trustassay.runs.execute import RunOutcome, execute
from trustassay.runs.folder import RunFolder
from trustassay.runs.intake import RunOptions, Source
from trustassay.runs.needs import settle
from trustassay.runs.plan import plan as plan_run
from trustassay.sample import Sample, question_key
from trustassay.workflows.resumable import InputOptions, samples_of


@dataclass(frozen=True)
class WinRateOptions(InputOptions):
    """How answers are compared; as :class:`~trustassay.workflows.resumable.InputOptions` of both
    inputs, of which ``limit`` takes the first records of the first one, and:

    metric: how the judge is asked. seed: of the intervals.
    """

    metric: Pairwise = field(default_factory=Pairwise)
    seed: int = 0
    report: bool = True


class PairedSamples(list[Sample]):
    """Samples with the name under which their run is recorded."""

    def __init__(self, samples: Iterable[Sample], name: str) -> None:
        super().__init__(samples)
        self.name = name


@dataclass(frozen=True)
class Pairs:
    """The questions that both inputs answered, in the order of the first.

    samples: for the metric ``pairwise``. only_first, only_second: questions of one input alone.
    blank: questions of both to which one has no answer.
    """

    samples: PairedSamples
    only_first: int
    only_second: int
    blank: int


@dataclass(frozen=True)
class WinRate:
    """What a judge made of the pairs; ``outcome`` is that of the run in ``path``."""

    path: Path
    judge: str
    pairs: Pairs
    outcome: RunOutcome

    @property
    def summary(self) -> Summary:
        """The figures, as of the metric ``pairwise``."""
        found = RunFolder(self.path).read_summary()
        assert found is not None  # the run is finished
        return Summary(**found["metrics"][Pairwise.name])

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        summary = self.summary
        return {
            "judge": self.judge,
            "questions": len(self.pairs.samples),
            "failed": summary.failed,
            "only_first": self.pairs.only_first,
            "only_second": self.pairs.only_second,
            "blank": self.pairs.blank,
            **summary.values,
            "intervals": {key: list(ends) for key, ends in summary.intervals.items()},
            "without_interval": dict(summary.without_interval),
            "not_applicable": dict(summary.not_applicable),
            "run": str(self.path),
        }


def win_rate(
    first: Source,
    second: Source,
    judge: resolve.ChatChoice,
    out: str | os.PathLike[str],
    options: WinRateOptions | None = None,
) -> WinRate:
    """Let a judge compare the answers of ``first`` with those of ``second``, in both orders.

    The inputs are files, runs, or samples; each has one answer to a question. ``out`` is a run's
    folder: the same call goes on with what was interrupted, and asks nothing twice.

    Raises:
        BadInputError, InputError: an input has faults; nothing was asked.
        ValueError: no question is answered in both, or one has several answers in one of them.
        BackendError, UnknownNameError: no such judge.
        RunFolderError: ``out`` holds another run.
    """
    return run_anywhere(lambda: _win_rate(first, second, judge, Path(out), _of(options)))


def plan_win_rate(
    first: Source,
    second: Source,
    judge: resolve.ChatChoice,
    out: str | os.PathLike[str] | None = None,
    options: WinRateOptions | None = None,
) -> Plan:
    """Return the calls that :func:`win_rate` would make; make none. Raises as that."""

    async def rehearse() -> Plan:
        chosen = _of(options)
        pairs = await _pairs(first, second, chosen)
        backends = await settle([chosen.metric], {"judge": judge})
        folder = None if out is None else Path(out)
        return await plan_run(pairs.samples, [chosen.metric], backends, _run(chosen), folder)

    return run_anywhere(rehearse)


def pair_answers(first: Source, second: Source, options: WinRateOptions | None = None) -> Pairs:
    """Return the answers of both inputs by question; raises as :func:`win_rate`."""
    return run_anywhere(lambda: _pairs(first, second, _of(options)))


def _of(options: WinRateOptions | None) -> WinRateOptions:
    return options or WinRateOptions()


def _run(options: WinRateOptions) -> RunOptions:
    return RunOptions(
        seed=options.seed, report=options.report, progress=options.progress, calls=options.calls
    )


async def _win_rate(
    first: Source, second: Source, judge: resolve.ChatChoice, out: Path, options: WinRateOptions
) -> WinRate:
    pairs = await _pairs(first, second, options)
    stores = (RunFolder(out).calls_path, shared_file(options.calls.cache))
    backends: Backends = await settle([options.metric], {"judge": judge}, stores=stores)
    outcome = await execute(
        pairs.samples, [options.metric], backends, RunFolder(out), _run(options)
    )
    return WinRate(out, backends.names()["judge"], pairs, outcome)


async def _pairs(first: Source, second: Source, options: WinRateOptions) -> Pairs:
    ones = await _answers(first, options, options.limit)
    others = await _answers(second, options, None)
    shared = [key for key in ones if key in others]
    both = f"{_name(first)} and {_name(second)}"
    if not shared:
        raise UsageError(
            f"{both} have no question in common ({len(ones):,} and "
            f"{len(others):,} questions); expected answers to the same questions, whose texts "
            "may differ in case and white space alone"
        )
    names = [Path(_name(one)).name for one in (first, second)]
    samples = PairedSamples(
        (
            _pair(ones[key], others[key])
            for key in shared
            if ones[key].answered and others[key].answered
        ),
        " against ".join(names),
    )
    if not samples:
        raise UsageError(f"{both}: none of {len(shared):,} questions has an answer in both")
    limited = options.limit is not None
    return Pairs(
        samples,
        len(ones) - len(shared),
        0 if limited else len(others) - len(shared),
        len(shared) - len(samples),
    )


def _pair(one: Sample, other: Sample) -> Sample:
    named = {OTHER_MODEL: other.model} if other.model else {}
    metadata = {OTHER_RESPONSE: other.response, **named}
    return Sample(one.id, one.question, one.response, one.model, metadata=metadata)


def _name(source: Source) -> str:
    return str(source) if isinstance(source, str | os.PathLike) else "samples"


async def _answers(source: Source, options: WinRateOptions, limit: int | None) -> dict[str, Sample]:
    """Return the samples of an input by their question."""
    reading = replace(options, limit=limit)
    if isinstance(source, str | os.PathLike) and (Path(source) / "run.json").exists():
        source, reading = RunFolder(Path(source)).samples_path, replace(reading, fields={})
    async with samples_of(source, reading) as (folder, _):
        samples = list(folder.samples())
    found: dict[str, Sample] = {}
    for sample in samples:
        key = question_key(sample.question)
        if key in found:
            raise UsageError(
                f"{_name(source)}: the question {sample.question.strip()[:80]!r} has several "
                f"answers ({found[key].id!r} and {sample.id!r}); expected one a question"
            )
        found[key] = sample
    return found
