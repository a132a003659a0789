"""Which of two files of answers a judge prefers, question by question."""

import os
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from trustassay.backends import resolve
from trustassay.calls.client import shared_file
from trustassay.errors import UsageError
from trustassay.event_loop import run_anywhere
from trustassay.metric import Summary
from trustassay.metrics.pairwise import OTHER_MODEL, OTHER_RESPONSE, Pairwise
from trustassay.runs.estimates import Plan
from trustassay.runs.execute import execute
from trustassay.runs.finished import RunOutcome
from trustassay.runs.folder import RunFolder
from trustassay.runs.intake import InputOptions, RunOptions, Source, samples_of
from trustassay.runs.needs import settle
from trustassay.runs.plan import plan as plan_run
from trustassay.sample import Sample, question_key
from trustassay.workflows.json_form import fields_as_json


@dataclass(frozen=True)
class WinRateOptions(InputOptions):
    """How answers are compared; as :class:`~trustassay.runs.intake.InputOptions` of both
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
        result = RunFolder(self.path).read_summary()
        assert result is not None  # the run is finished
        return Summary(**result["metrics"][Pairwise.name])

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        summary = self.summary
        return {
            "judge": self.judge,
            "questions": len(self.pairs.samples),
            "failed": summary.failed,
            **fields_as_json(self.pairs, "only_first", "only_second", "blank"),
            **summary.values,
            **fields_as_json(summary, "intervals", "without_interval", "not_applicable"),
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
    chosen = options or WinRateOptions()

    async def run() -> WinRate:
        pairs = await _pairs(first, second, chosen)
        folder = RunFolder(Path(out))
        stores = (folder.calls_path, shared_file(chosen.calls.cache))
        backends = await settle([chosen.metric], {"judge": judge}, stores=stores)
        outcome = await execute(pairs.samples, [chosen.metric], backends, folder, _run(chosen))
        return WinRate(folder.path, backends.names()["judge"], pairs, outcome)

    return run_anywhere(run)


def plan_win_rate(
    first: Source,
    second: Source,
    judge: resolve.ChatChoice,
    out: str | os.PathLike[str] | None = None,
    options: WinRateOptions | None = None,
) -> Plan:
    """Return the calls that :func:`win_rate` would make; make none. Raises as that."""
    chosen = options or WinRateOptions()

    async def rehearse() -> Plan:
        pairs = await _pairs(first, second, chosen)
        backends = await settle([chosen.metric], {"judge": judge})
        folder = None if out is None else Path(out)
        return await plan_run(pairs.samples, [chosen.metric], backends, _run(chosen), folder)

    return run_anywhere(rehearse)


def _run(options: WinRateOptions) -> RunOptions:
    return RunOptions(
        seed=options.seed, report=options.report, progress=options.progress, calls=options.calls
    )


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
    both_answered = [key for key in shared if ones[key].answered and others[key].answered]
    samples = PairedSamples(
        (_pair(ones[key], others[key]) for key in both_answered), " against ".join(names)
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
    result: dict[str, Sample] = {}
    for sample in samples:
        key = question_key(sample.question)
        if key in result:
            raise UsageError(
                f"{_name(source)}: the question {sample.question.strip()[:80]!r} has several "
                f"answers ({result[key].id!r} and {sample.id!r}); expected one a question"
            )
        result[key] = sample
    return result


def win_rate_headline(preference: WinRate, first: Path, second: Path) -> str:
    """Return a sentence on who is preferred, and how sure that is."""
    summary = preference.summary
    rate, values = summary.values["win_rate"], summary.values
    dropped = {name: values[name] for name in ("unsure", "inconsistent", "unreadable")}
    why = ", ".join(f"{count} {name}" for name, count in dropped.items() if count)
    rest = f"{sum(int(count or 0) for count in dropped.values())} dropped"
    rest += (f" ({why})" if why else "") + (f", {summary.failed} failed" if summary.failed else "")
    if rate is None:
        return f"Nothing was won or lost in both orders: {rest}."
    counts = f"{values['wins']} won, {values['losses']} lost, {rest}"
    message = f"{first} wins {rate:.1f} % against {second}: {counts}"
    if reason := summary.without_interval.get("win_rate"):
        return f"{message}; whether that is a real difference is unknown ({reason})."
    low, high = summary.intervals["win_rate"]
    clear = "" if low > 50 or high < 50 else ", which is not a clear difference"
    return f"{message}{clear} (95 % interval {low:.1f} to {high:.1f})."
