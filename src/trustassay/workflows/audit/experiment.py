"""The experiments of an audit: run in folders of their own, and measured against each other."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from trustassay.errors import UsageError
from trustassay.event_loop import run_anywhere
from trustassay.metric import Assessment, Metric
from trustassay.metrics.judge import Judge
from trustassay.metrics.pairwise import Pairwise
from trustassay.runs.estimates import Plan, Planned
from trustassay.runs.execute import execute
from trustassay.runs.folder import RunFolder
from trustassay.runs.intake import InputOptions, RunOptions, Source, samples_of
from trustassay.runs.needs import settle
from trustassay.runs.plan import plan as plan_run
from trustassay.sample import Sample, question_key
from trustassay.statistics.intervals import Estimate
from trustassay.statistics.matched import moved, movement_ratios
from trustassay.statistics.resampling import cluster_numbers, generator, holm
from trustassay.workflows.audit.changes import ERROR, LISTED, Change, changes_of
from trustassay.workflows.compare import PairedSamples
from trustassay.workflows.json_form import JsonForm

ANSWERS, AGAIN, POSITION, FAILED = "answers", "again", "position", "failed"
HOT = 1.0
"""The temperature that is tried."""
CHOSEN = np.array([1.0, 0.0, 0.5, np.nan])
"""What a choice of ``pairwise``, by its place, counts for the answer that is read first."""


@dataclass(frozen=True)
class Experiment(JsonForm):
    """One thing changed in ``n`` answers. kinds: of errors. shift: of the score; flips: the share
    of other verdicts, or none any more. p: corrected for the number of things that must not matter
    (Holm 1979). moves: whether it is below .05. ratio: to how far the error moves the judge.
    """

    name: str
    says: str
    n: int
    kinds: Mapping[str, int]
    shift: Estimate
    flips: Estimate
    p: float
    moves: bool
    ratio: Estimate | None = None


@dataclass(frozen=True)
class Audited(JsonForm):
    """What moves a judge: ``moved_by`` of all experiments. blank: samples without a response;
    failed: answers, of all runs, that could not be scored. control: the planted error. ratio: of
    the mean movement by what must not matter to that by the error; ``None`` if the error does not
    make scores significantly worse.
    """

    run: Path
    metric: str
    judge: str
    answers: int
    questions: int
    blank: int
    failed: int
    moved_by: Sequence[str]
    ratio: Estimate | None
    control: Experiment | None
    experiments: Sequence[Experiment]


class _Part(NamedTuple):
    """One run of an audit, in the folder ``name``."""

    name: str
    metric: Metric
    samples: PairedSamples
    options: RunOptions


@dataclass(frozen=True)
class Audit:
    """What moves a judge, asked by answers, and requests, of which one thing is changed at a time.

    source: answers, or a run, whose stored replies are used. named: backends, as of
    :func:`trustassay.score`. out: a folder for the runs; the same audit goes on with what was
    interrupted, and asks nothing twice. seed: of the changes and the tests.

    Raises, when it is planned or run:
        BadInputError, InputError: the input has faults; nothing was asked.
        UsageError: the metric compares answers with others, or no sample has a response.
        BackendError, UnknownNameError: no such judge. RunFolderError: ``out`` holds other runs.
    """

    source: Source
    metric: Metric
    named: Mapping[str, Any]
    out: Path
    options: InputOptions = field(default_factory=InputOptions)
    seed: int = 0

    def plan(self) -> Plan:
        """Return the calls that :meth:`run` would make; make none."""

        async def rehearse() -> Plan:
            *_, parts = await self._designed()
            planned, unsure = list[Planned](), dict[str, int]()
            backends = await settle([self.metric], self.named)
            for part in parts:
                folder = self.out / part.name
                one = await plan_run(part.samples, [part.metric], backends, part.options, folder)
                planned += [replace(own, metric=part.name) for own in one.parts]
                unsure |= dict.fromkeys([part.name] if one.unsure else [], sum(one.unsure.values()))
            return Plan(sum(len(part.samples) for part in parts), planned, unsure)

        return run_anywhere(rehearse)

    def run(self) -> Audited:
        """Ask what is not asked yet, and measure."""

        async def work() -> Audited:
            samples, blank, changes, parts = await self._designed()
            backends = await settle([self.metric], self.named)
            for part in parts:
                folder = RunFolder(self.out / part.name)
                folder.path.mkdir(parents=True, exist_ok=True)
                await execute(part.samples, [part.metric], backends, folder, part.options)
            judge = ", ".join(map(str, backends.names().values()))
            return self._measured(samples, blank, changes, parts, judge)

        return run_anywhere(work)

    async def _designed(self) -> tuple[list[Sample], int, list[Change], list[_Part]]:
        """Return the answers, the number of blank ones, the changes, and all runs."""
        source, options, metric = self.source, self.options, self.metric
        if metric.pool:
            raise UsageError(f"{metric.name}: compares answers with others; an audit needs a judge")
        reading, stored = options, dict[str, Path | None]({AGAIN: None, ANSWERS: None})
        if isinstance(source, str | os.PathLike) and (Path(source) / "run.json").exists():
            folder, reading = RunFolder(Path(source)), replace(options, fields={})
            source, stored[ANSWERS] = folder.samples_path, folder.calls_path
        async with samples_of(source, reading, metric.problems) as (read, _):
            every = list(read.samples())
        samples = [one for one in every if one.answered]
        if not samples:
            raise UsageError("no sample has a response, and an audit changes responses")
        changes = list(changes_of(samples, metric, self.seed))
        changed = [one for change in changes for one in change.samples]
        runs = [(ANSWERS, metric, [*samples, *changed])]
        runs += [(name, own, samples) for name, own in _requests(metric)]
        total, parts = sum(len(some) for *_, some in runs), []
        for name, own, some in runs:
            calls = options.calls if name != AGAIN else replace(options.calls, cache=None)
            if budget := calls.budget:  # each run has its part
                part = replace(budget, amount=budget.amount * len(some) / total)
                calls = replace(calls, budget=part)
            earlier = stored.get(name, RunFolder(self.out / ANSWERS).calls_path)
            how = RunOptions(seed=self.seed, report=False, calls=calls, calls_from=earlier)
            how = replace(how, progress=options.progress)
            parts.append(_Part(name, own, PairedSamples(some, f"audit: {name}"), how))
        return samples, len(every) - len(samples), changes, parts

    def _measured(
        self,
        samples: Sequence[Sample],
        blank: int,
        changes: Sequence[Change],
        parts: Sequence[_Part],
        judge: str,
    ) -> Audited:
        runs = [
            list(RunFolder(self.out / part.name).assessments(self.metric.name)) for part in parts
        ]
        n, seed, bounds = len(samples), self.seed, self.metric.score_range
        units = cluster_numbers([question_key(one.question) for one in samples])
        base, changed = runs[0][:n], iter(runs[0][n:])
        found = {one.name: dict(zip(one.places, changed)) for one in changes}  # noqa: B905
        found |= {
            part.name: dict(enumerate(run)) for part, run in zip(parts[1:], runs[1:], strict=True)
        }
        before = list(map(self._read, base))
        shifts, flips, there = (
            np.full((len(found) + 1, n), fill) for fill in (np.nan, False, False)
        )
        for row, after in enumerate(found.values()):
            for place, (score, verdict) in zip(after, map(self._read, after.values()), strict=True):
                there[row, place] = before[place][1] != FAILED
                shifts[row, place] = score - before[place][0]
                flips[row, place] = there[row, place] and verdict != before[place][1]
        names = [*found]
        if isinstance(self.metric, Pairwise):
            names.append(POSITION)
            for place, one in enumerate(base):
                first, swapped = (CHOSEN[int(one.parts.get(k, 3))] for k in ("first", "swapped"))
                shifts[-1, place] = first - (1 - swapped)
            there[-1], flips[-1] = ~np.isnan(shifts[-1]), np.abs(shifts[-1]) > 0
        calm = flips[names.index(AGAIN)]
        results = {}
        for name, change, flipped, own in zip(names, shifts, flips, there, strict=False):
            if own.any():
                rng = generator(seed, "audit", name, "sign flips")
                asked = None if name == AGAIN else calm[own]
                width = bounds[1] - bounds[0]
                results[name] = moved(change[own], flipped[own], units[own], width, rng, asked)
        control = results.get(ERROR)
        tested = [name for name in results if name != ERROR]
        ps = dict(zip(tested, holm([results[name].p for name in tested]), strict=True))
        ratios: dict[str, Estimate] = {}
        fall = (control and control.p < 0.05 and control.shift.value) or 0.0
        if fall * (1 if self.metric.lower_is_better else -1) > 0:
            kept = [one for one in tested if results[one].shift.value is not None]
            rows = shifts[[names.index(one) for one in (*kept, ERROR)]]
            values = movement_ratios(rows, units, generator(seed, "audit", "ratios"))
            ratios = dict(zip(("", *kept), values, strict=True))
        kinds = {one.name: one.kinds for one in changes}

        def experiment(name: str) -> Experiment:
            one, p = results[name], ps.get(name, results[name].p)
            says, n = str(LISTED[name]["says"]), one.flips.n
            own = (one.shift, one.flips, p, p < 0.05, ratios.get(name))
            return Experiment(name, says, n, kinds.get(name, {}), *own)

        experiments = sorted(map(experiment, tested), key=lambda one: (one.p, one.name))
        return Audited(
            self.out,
            self.metric.name,
            judge,
            n,
            int(units.max()) + 1,
            blank,
            sum(one.error is not None for run in runs for one in run),
            [one.name for one in experiments if one.moves],
            ratios.get(""),
            experiment(ERROR) if control else None,
            experiments,
        )

    def _read(self, one: Assessment) -> tuple[float, str]:
        """Return a score, NaN if there is none, and a verdict."""
        if one.error is not None:
            return np.nan, FAILED
        verdict = one.verdict or ("bad" if self.metric.problem(one) else "good")
        tie = 0.5 if verdict in ("unsure", "inconsistent") else np.nan
        return (tie if one.score is None else one.score), verdict


def _requests(metric: Metric) -> Iterator[tuple[str, Metric]]:
    """Yield the metric with a request that is changed in one thing, where it has that."""
    yield AGAIN, metric
    options: Any = metric
    if not any(need.capability in ("chat", "choose") for need in metric.needs()):
        return
    if getattr(options, "temperature", HOT) != HOT:
        yield "temperature", replace(options, temperature=HOT)
    if isinstance(metric, Judge) and metric.order != "both":
        with suppress(UsageError):  # the rubric shows no gold answer
            first = metric.order == "gold-first"
            yield "order", replace(metric, order="answer-first" if first else "gold-first")
    for name in ("levels", "wording") if getattr(options, "prompt", "") is None else ():
        path = files(__package__) / "prompts" / f"{metric.name}-{name}.jinja"
        if path.is_file():
            yield name, replace(options, prompt=str(path))
