"""``compare --judge``: which of two files of answers a judge prefers, question by question."""

import os
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from trustassay.backends import resolve
from trustassay.calls.client import build_cache_path
from trustassay.core.event_loop import run_anywhere
from trustassay.core.files import is_run_folder
from trustassay.core.json_form import fields_as_json
from trustassay.core.metric import Summary
from trustassay.core.sample import Sample, question_key
from trustassay.errors import UsageError
from trustassay.metrics.pairwise import OTHER_MODEL, OTHER_RESPONSE, Pairwise
from trustassay.runs.estimates import Plan
from trustassay.runs.execute import execute
from trustassay.runs.finished import RunOutcome
from trustassay.runs.folder import RunFolder
from trustassay.runs.intake import InputOptions, RunOptions, Source, open_samples
from trustassay.runs.needs import choose_backends
from trustassay.runs.plan import plan as plan_run


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
    """A list of samples with the name that their run records as its input."""

    def __init__(self, samples: Iterable[Sample], name: str) -> None:
        super().__init__(samples)
        self.name = name


@dataclass(frozen=True)
class AnswerPairsToJudge:
    """The questions that both inputs answered, in the order of the first."""

    samples: PairedSamples
    """Samples for the metric ``pairwise``: the second answer is in the metadata."""
    only_first: int
    """Questions of the first input only."""
    only_second: int
    """Questions of the second input only."""
    blank: int
    """Common questions to which one of the inputs has no answer."""


@dataclass(frozen=True)
class WinRate:
    """The result of a comparison by a judge."""

    path: Path
    """The folder of the run in which the pairs were judged."""
    judge: str
    """The name of the model that judged."""
    pairs: AnswerPairsToJudge
    outcome: RunOutcome
    """The outcome of the run in ``path``."""

    @property
    def summary(self) -> Summary:
        """The figures of the metric ``pairwise``."""
        result = RunFolder(self.path).read_summary()
        # The run is finished, so it has a summary.
        assert result is not None
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

    The inputs are files, runs, or samples, each with one answer to a question. ``out`` is a run's
    folder: after an interruption the same call continues there, and asks nothing twice.

    Raises:
        BadInputError, InputError: an input has faults; nothing was asked.
        ValueError: no question is answered in both, or one has several answers in one of them.
        BackendError, UnknownNameError: no such judge.
        RunFolderError: ``out`` holds another run.
    """
    chosen = options or WinRateOptions()

    async def run() -> WinRate:
        pairs = await _pair_answers(first, second, chosen)
        folder = RunFolder(Path(out))
        # A key is not needed where all replies are stored already.
        stores = (folder.calls_path, build_cache_path(chosen.calls.cache))
        backends = await choose_backends([chosen.metric], {"judge": judge}, stores=stores)
        outcome = await execute(
            pairs.samples, [chosen.metric], backends, folder, _build_run_options(chosen)
        )
        return WinRate(folder.path, backends.names()["judge"], pairs, outcome)

    return run_anywhere(run)


def plan_win_rate(
    first: Source,
    second: Source,
    judge: resolve.ChatChoice,
    out: str | os.PathLike[str] | None = None,
    options: WinRateOptions | None = None,
) -> Plan:
    """Plan the calls that :func:`win_rate` would make, without making any; raises the same
    errors."""
    chosen = options or WinRateOptions()

    async def rehearse() -> Plan:
        pairs = await _pair_answers(first, second, chosen)
        backends = await choose_backends([chosen.metric], {"judge": judge})
        folder = None if out is None else Path(out)
        return await plan_run(
            pairs.samples, [chosen.metric], backends, _build_run_options(chosen), folder
        )

    return run_anywhere(rehearse)


def _build_run_options(options: WinRateOptions) -> RunOptions:
    return RunOptions(
        seed=options.seed, report=options.report, progress=options.progress, calls=options.calls
    )


async def _pair_answers(
    first: Source, second: Source, options: WinRateOptions
) -> AnswerPairsToJudge:
    first_answers = await _read_answers(first, options, options.limit)
    second_answers = await _read_answers(second, options, None)
    # Questions are matched by text, since ids of two files need not agree.
    shared = [key for key in first_answers if key in second_answers]
    both = f"{_name_source(first)} and {_name_source(second)}"
    # Nothing has been asked yet, so a wrong pair of files costs nothing.
    if not shared:
        raise UsageError(
            f"{both} have no question in common ({len(first_answers):,} and "
            f"{len(second_answers):,} questions); expected answers to the same questions "
            "(their texts may differ only in case and white space)"
        )
    names = [Path(_name_source(source)).name for source in (first, second)]
    both_answered = [
        key for key in shared if first_answers[key].answered and second_answers[key].answered
    ]
    # The name of the run shows which side is which.
    samples = PairedSamples(
        (_merge_samples(first_answers[key], second_answers[key]) for key in both_answered),
        " against ".join(names),
    )
    if not samples:
        raise UsageError(f"{both}: none of {len(shared):,} common questions has answers in both")
    # --limit reads part of the first input only, so the surplus of the second means nothing.
    limited = options.limit is not None
    return AnswerPairsToJudge(
        samples,
        len(first_answers) - len(shared),
        0 if limited else len(second_answers) - len(shared),
        len(shared) - len(samples),
    )


def _merge_samples(first: Sample, second: Sample) -> Sample:
    model_of_second = {OTHER_MODEL: second.model} if second.model else {}
    metadata = {OTHER_RESPONSE: second.response, **model_of_second}
    return Sample(first.id, first.question, first.response, first.model, metadata=metadata)


def _name_source(source: Source) -> str:
    return str(source) if isinstance(source, str | os.PathLike) else "samples"


async def _read_answers(
    source: Source, options: WinRateOptions, limit: int | None
) -> dict[str, Sample]:
    """Read the samples of an input, by their normalised question."""
    reading = replace(options, limit=limit)
    if isinstance(source, str | os.PathLike) and is_run_folder(Path(source)):
        # A run stores samples under the canonical names, so --field does not apply.
        source, reading = (
            RunFolder(Path(source)).samples_path,
            replace(reading, fields={}, sheet=None, answer_span=None),
        )
    async with open_samples(source, reading) as (folder, _):
        samples = list(folder.samples())
    result: dict[str, Sample] = {}
    for sample in samples:
        key = question_key(sample.question)
        # Which of several answers to compare would be arbitrary.
        if key in result:
            raise UsageError(
                f"{_name_source(source)}: several answers to {sample.question.strip()[:80]!r} "
                f"({result[key].id!r} and {sample.id!r}); expected one answer to each question"
            )
        result[key] = sample
    return result


def win_rate_headline(preference: WinRate, first: Path, second: Path) -> str:
    """Write who is preferred, and how certain that is."""
    summary = preference.summary
    rate, values = summary.values["win_rate"], summary.values
    dropped = {name: values[name] for name in ("unsure", "inconsistent", "unreadable")}
    counts_by_reason = ", ".join(f"{count} {name}" for name, count in dropped.items() if count)
    dropped_in_words = f"{sum(int(count or 0) for count in dropped.values())} dropped"
    dropped_in_words += (f" ({counts_by_reason})" if counts_by_reason else "") + (
        f", {summary.failed} failed" if summary.failed else ""
    )
    # Only wins and losses that hold in both orders count; ties are not decisions.
    if rate is None:
        return f"No question was won or lost in both orders: {dropped_in_words}."
    counts = f"{values['wins']} won, {values['losses']} lost, {dropped_in_words}"
    # The share of decided questions; dropped ones are listed beside it.
    message = f"{first} wins {rate:.1f} % against {second}: {counts}"
    if reason := summary.without_interval.get("win_rate"):
        return f"{message}. Whether the difference is significant is unknown ({reason})."
    low, high = summary.intervals["win_rate"]
    # At 50 % neither side is preferred.
    clear = "" if low > 50 or high < 50 else ", not a significant difference"
    return f"{message}{clear} (95 % interval {low:.1f} to {high:.1f})."
