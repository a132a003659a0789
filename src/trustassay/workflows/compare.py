"""``compare``: two runs side by side, what changed in figures, answers and scores; or two files of
answers to the same questions, of which a judge prefers the better one."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from trustassay.backends import resolve
from trustassay.calls.client import shared_file
from trustassay.errors import RunFolderError, UsageError
from trustassay.event_loop import run_anywhere
from trustassay.metric import MetricInfo, Summary
from trustassay.metrics.pairwise import OTHER_MODEL, OTHER_RESPONSE, Pairwise
from trustassay.runs.counts import UNIT, read_units
from trustassay.runs.estimates import Plan
from trustassay.runs.execute import execute
from trustassay.runs.finished import RunOutcome
from trustassay.runs.folder import RunFolder
from trustassay.runs.intake import InputOptions, RunOptions, Source, samples_of
from trustassay.runs.needs import settle
from trustassay.runs.plan import plan as plan_run
from trustassay.sample import Sample, question_key
from trustassay.show.distributions import Groups
from trustassay.statistics import Floats, Places, comparison
from trustassay.statistics.comparison import Difference
from trustassay.statistics.resampling import generator
from trustassay.text.words import amount
from trustassay.workflows import changes, two_runs
from trustassay.workflows.corrected import Corrected, LabelFiles, correct
from trustassay.workflows.json_form import fields_as_json

PERMUTATIONS = 1999


@dataclass(frozen=True)
class Side:
    """One of two runs: its scores, and the number of the unit of each, -1 for one by itself."""

    path: Path
    scores: Floats
    samples: int
    units: Places | None = None

    @property
    def without_score(self) -> int:
        """The number of samples that failed, or that the metric cannot score."""
        return self.samples - len(self.scores)

    def share_below(self, bound: float) -> float:
        """Return the percentage of scores below a bound."""
        return 100.0 * float(np.mean(self.scores < bound))


@dataclass(frozen=True)
class Comparison:
    """What changed from the first run to the second.

    ``pairing`` says which answers belong together. ``figures`` are the headline figures over the
    pairs, ``not_compared`` why others are not among them; ``outcomes`` say how many answers were
    scored, refused and so on in both runs; ``answers`` are the changed answers.

    ``mean``, ``median``, ``distribution`` and ``stable``, the percentage below ``stable_below``,
    compare all scores of both runs; where answers share a unit the test of the distributions has no
    p-value (NaN). ``pairs`` counts the pairs that both runs scored, ``paired`` is the mean of their
    differences and ``paired_p`` its p-value, ``None`` of fewer than two.
    ``warnings`` say which settings differ, and what has no score. ``corrected``: the shares of
    right answers, if there are labels. ``scored``: what the metric said of all samples of each.
    """

    metric: MetricInfo
    first: Side
    second: Side
    stable_below: float | None
    mean: Difference
    median: Difference
    stable: Difference | None
    distribution: comparison.KolmogorovSmirnov
    pairs: int
    paired: Difference | None
    paired_p: float | None
    pairing: two_runs.Pairing
    figures: Mapping[str, changes.FigureChange]
    not_compared: Mapping[str, str]
    outcomes: Sequence[two_runs.Outcome]
    answers: changes.AnswerChanges
    warnings: Sequence[str]
    scored: tuple[two_runs.Scored, two_runs.Scored] = field(repr=False)
    corrected: Corrected | None = None

    @property
    def groups(self) -> Groups:
        """The scores of both runs, counted for a drawing."""
        groups = Groups(
            *self.metric.score_range,
            lower_is_better=self.metric.lower_is_better,
            stable_below=self.stable_below,
        )
        sides = (self.first, self.second)
        names = [side.path.name or str(side.path) for side in sides]
        if names[0] == names[1]:
            names = [str(side.path) for side in sides]
        if names[0] == names[1]:
            names = [f"{names[0]} (first)", f"{names[1]} (second)"]
        for name, side in zip(names, sides, strict=True):
            for score in side.scores.tolist():
                groups.add(name, None, score, None)
        return groups

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""

        def side(one: Side) -> dict[str, Any]:
            result = {
                "run": str(one.path),
                "scores": len(one.scores),
                "without_score": one.without_score,
                "mean": float(one.scores.mean()),
                "median": float(np.median(one.scores)),
            }
            if self.stable_below is not None:
                result["stable_share"] = one.share_below(self.stable_below)
            return result

        return {
            "metric": self.metric.name,
            "stable_below": self.stable_below,
            "first": side(self.first),
            "second": side(self.second),
            "mean": changes.difference_as_json(self.mean),
            "median": changes.difference_as_json(self.median),
            "stable_share": self.stable and changes.difference_as_json(self.stable),
            "kolmogorov_smirnov": self.distribution._asdict(),
            "pairs": self.pairs,
            "paired": self.paired
            and {**changes.difference_as_json(self.paired), "p": self.paired_p},
            **fields_as_json(self, "pairing", "figures", "not_compared"),
            "outcomes": {one.name: one.to_dict() for one in self.outcomes},
            **fields_as_json(self, "answers", "warnings"),
            **({"corrected": self.corrected.to_dict()} if self.corrected else {}),
        }


def compare(
    first: Path,
    second: Path,
    *,
    metric: str | None = None,
    labels: LabelFiles | None = None,
    seed: int = 0,
) -> Comparison:
    """Compare the scores of a metric in two finished runs, and with labels the right answers.

    Raises:
        RunFolderError: one is not a finished run, or lacks the metric, or two scores of it.
        ValueError: the runs share several metrics, and none is named.
        UnknownNameError: a run of an earlier version, and the metric is not installed.
    """
    otherwise = ", or --judge, which compares answers"
    runs = (two_runs.finished_run(first, otherwise), two_runs.finished_run(second, otherwise))
    name = two_runs.common_metric((first, second), runs, metric)
    pairing, read = two_runs.paired_runs((first, second), runs, [name])
    scored = read[name]
    a, b = (_side(one, run) for one, run in zip(scored, runs, strict=True))
    info = scored[0].info
    bounds = [one.info.stable_below for one in scored]
    bound = bounds[0] if bounds[0] == bounds[1] else None

    stable = None
    if bound is not None:
        stable = comparison.difference_of_shares(
            a.scores < bound, b.scores < bound, (a.units, b.units)
        )
    kept = pairing.only(
        ~np.isnan(scored[1].scores[pairing.second] - scored[0].scores[pairing.first])
    )
    moved = scored[1].scores[kept.second] - scored[0].scores[kept.first]
    paired, paired_p = None, None
    if len(moved) > 1:
        lowest, highest = info.score_range
        paired = comparison.mean_of_differences(moved, highest - lowest, kept.units)
        sums = np.bincount(kept.units, moved)
        flips = generator(seed, "compare", name, "sign flips")
        paired_p = comparison.sign_flip_p(sums, flips, PERMUTATIONS)
    keys, absent = two_runs.headlines(scored)
    figures = changes.figure_changes(*scored, pairing, keys, seed)
    absent |= {
        key: changes.why_not_resampled(pairing, *scored) for key in keys if key not in figures
    }
    rng = generator(seed, "compare", name, "permutations")
    distribution = comparison.kolmogorov_smirnov(a.scores, b.scores, rng, PERMUTATIONS)
    if a.units is not None or b.units is not None:
        distribution = distribution._replace(p=None)
    return Comparison(
        metric=info,
        first=a,
        second=b,
        stable_below=bound,
        mean=comparison.difference_of_means(
            a.scores, b.scores, info.score_range, (a.units, b.units)
        ),
        median=comparison.difference_of_medians(a.scores, b.scores, (a.units, b.units)),
        stable=stable,
        distribution=distribution,
        pairs=len(moved),
        paired=paired,
        paired_p=paired_p,
        pairing=pairing,
        figures=figures,
        not_compared=absent,
        outcomes=two_runs.outcome_changes(*scored, pairing),
        answers=changes.answer_changes(*scored, pairing),
        warnings=changes.differing_settings(*runs, [name])
        + [
            f"{side.path}: {amount(side.without_score, 'sample')} without a score"
            for side in (a, b)
            if side.without_score
        ],
        scored=scored,
        corrected=correct([first, second], labels, [name], seed=seed)[name] if labels else None,
    )


def _side(scored: two_runs.Scored, run: Mapping[str, Any]) -> Side:
    there = ~np.isnan(scored.scores)
    path, metric = scored.path, scored.info.name
    if not there.any():
        raise RunFolderError(f"{path}: no sample has a score for {metric}")
    if there.sum() == 1:
        raise RunFolderError(
            f"{path}: only one sample has a score for {metric}; at least two are needed"
        )
    units = read_units(RunFolder(path), run.get(UNIT))
    return Side(path, scored.scores[there], len(there), None if units is None else units[there])


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
