"""``audit``: what changes a judge's scores although it should not.

1. Changes of the answers: some that must not matter, and a planted error, which must
   (:mod:`~trustassay.people.audit.changes`).
2. Experiments: runs of the unchanged and the changed answers, and of changed requests, in folders
   of their own, compared with each other.
3. The result as sentences, as a table, and as a page.
"""

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from importlib.resources import files
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from trustassay.compare.preferences import PairedSamples
from trustassay.core.event_loop import run_anywhere
from trustassay.core.files import is_run_folder, make_private_folder
from trustassay.core.json_form import JsonForm
from trustassay.core.metric import Assessment, Metric
from trustassay.core.sample import Sample, question_key
from trustassay.errors import UsageError
from trustassay.metrics.judge import Judge
from trustassay.metrics.pairwise import Pairwise
from trustassay.people.audit.changes import (
    AUDIT_CHANGES,
    ERROR_CHANGE,
    ChangedSamples,
    build_changes,
)
from trustassay.report import document
from trustassay.runs.estimates import Plan, PlannedCalls
from trustassay.runs.execute import execute
from trustassay.runs.folder import RunFolder
from trustassay.runs.intake import InputOptions, RunOptions, Source, open_samples
from trustassay.runs.needs import can_be_served, choose_backends
from trustassay.runs.plan import plan as plan_run
from trustassay.statistics import Floats
from trustassay.statistics.comparison import ChangeEffect, measure_change_effect, movement_ratios
from trustassay.statistics.resampling import cluster_numbers, generator, holm
from trustassay.text.numbers import amount, ends_text, number, p_text

ANSWERS_RUN, AGAIN_RUN, FAILED_VERDICT = "answers", "again", "failed"
TRIED_TEMPERATURE = 1.0
"""The temperature of the experiment with more random replies."""
POINTS_OF_CHOICE = np.array([1.0, 0.0, 0.5, np.nan])
"""The points of the answer that is read first, by the code of the choice of ``pairwise``: won,
lost, tie, no choice."""
AssessmentsOfRun = Sequence[Assessment]
AuditRun = tuple[Metric, PairedSamples, RunOptions]


@dataclass(frozen=True)
class AuditResult(JsonForm):
    """The result of an audit."""

    run: Path
    """The folder that holds all runs of the audit."""
    metric: str
    judge: str
    """The models that judge, separated by commas."""
    answers: int
    questions: int
    blank: int
    """Samples without a response."""
    failed: int
    """Assessments, in all runs, that failed."""
    moved_by: Sequence[str]
    """Experiments with p below .05, corrected for their number (Holm 1979)."""
    largest: str
    """The experiment with the largest effect, of those in ``moved_by`` if there are any. The effect
    is the shift of the score as a part of its range, or the share of flips, whichever is larger."""
    control: ChangeEffect | None
    """The effect of the planted error; ``None`` if no error could be planted."""
    errors: Mapping[str, int]
    """The number of planted errors of each kind."""
    sees_errors: bool
    """Whether the planted error makes scores significantly worse."""
    experiments: Mapping[str, ChangeEffect]
    """The effect of each experiment, the smallest p first."""


@dataclass(frozen=True)
class Audit:
    """An audit of a judge, with answers and requests in which one thing at a time is changed.

    Raises, when it is planned or run:
        BadInputError, InputError: the input has faults; nothing was asked.
        UsageError: the metric compares answers with others, or no sample has a response.
        BackendError, UnknownNameError: no such judge. RunFolderError: ``out`` holds other runs.
    """

    source: Source
    """Answers, or a run, whose stored replies are used."""
    metric: Metric
    backend_choices: Mapping[str, Any]
    """The backends, as of :func:`trustassay.score`."""
    out: Path
    """The folder for the runs; the same audit continues there, and asks nothing twice."""
    options: InputOptions = field(default_factory=InputOptions)
    seed: int = 0
    """Of the changes and the tests."""

    def plan(self) -> Plan:
        """Plan the calls that :meth:`run` would make, without making any."""

        async def rehearse() -> Plan:
            _, runs = self.build_runs(await self._load_samples())
            backends, parts = (
                await choose_backends([self.metric], self.backend_choices),
                list[PlannedCalls](),
            )
            for name, (metric, samples, run_options) in runs.items():
                planned = await plan_run(samples, [metric], backends, run_options, self.out / name)
                parts += [replace(part, metric=name) for part in planned.parts]
            return Plan(sum(len(samples) for _, samples, _ in runs.values()), parts)

        return run_anywhere(rehearse)

    def run(self) -> AuditResult:
        """Run all experiments that are not finished yet, and measure their effects."""

        async def work() -> AuditResult:
            every = await self._load_samples()
            backends = await choose_backends([self.metric], self.backend_choices)
            changes, runs = self.build_runs(every)
            assessments_by_run = dict[str, AssessmentsOfRun]()
            for name, (metric, samples, run_options) in runs.items():
                folder = RunFolder(self.out / name)
                make_private_folder(folder.path)
                await execute(samples, [metric], backends, folder, run_options)
                assessments_by_run[name] = list(folder.assessments(metric.name))
            names_of_backends = backends.names().values()
            judges = (
                names.values() if isinstance(names, Mapping) else [names]
                for names in names_of_backends
            )
            return self.measure(every, changes, assessments_by_run, ", ".join(chain(*judges)))

        return run_anywhere(work)

    @property
    def _source_run(self) -> RunFolder | None:
        """The folder of the source, if it is a run."""
        if not isinstance(self.source, str | os.PathLike):
            return None
        path = Path(self.source)
        return RunFolder(path) if is_run_folder(path) else None

    async def _load_samples(self) -> list[Sample]:
        # A metric that compares answers would change all scores when one answer changes.
        if self.metric.pool:
            raise UsageError(
                f"{self.metric.name}: compares answers with each other; an audit needs a metric "
                "that judges each answer by itself"
            )
        source, options = self.source, self.options
        if folder := self._source_run:
            source = folder.samples_path
            options = replace(options, fields={}, sheet=None, answer_span=None)
        async with open_samples(source, options, self.metric.problems) as (read, _):
            samples = list(read.samples())
        if not any(sample.answered for sample in samples):
            raise UsageError("no sample has a response; an audit needs responses to change")
        return samples

    def build_runs(self, every: Sequence[Sample]) -> tuple[ChangedSamples, Mapping[str, AuditRun]]:
        """Build the changes and all runs.

        One run holds the unchanged and the changed answers; the others hold the unchanged answers
        with changed requests.
        """
        samples = [sample for sample in every if sample.answered]
        changes = build_changes(samples, self.metric.name, self.seed)
        changed = chain(*(by_place.values() for by_place in changes.values()))
        runs = {ANSWERS_RUN: (self.metric, [*samples, *changed])}
        # A decision model has neither prompt nor temperature, so that nothing would change.
        runs |= {
            name: (metric, samples)
            for name, metric in _vary_requests(self.metric)
            if can_be_served(metric, self.backend_choices)
        }
        total = sum(len(samples_of_run) for _, samples_of_run in runs.values())
        calls, result = self.options.calls, {}
        for name, (metric, samples_of_run) in runs.items():
            # Each run gets the part of the budget that its samples are of all.
            if budget := calls.budget:
                budget = replace(budget, amount=budget.amount * len(samples_of_run) / total)
            # The replies of the source answer the unchanged samples.
            earlier = self._source_run if name == ANSWERS_RUN else None
            run_options = RunOptions(
                seed=self.seed,
                report=False,
                progress=self.options.progress,
                # Asking again must not be answered from the cache.
                calls=replace(
                    calls, budget=budget, cache=None if name == AGAIN_RUN else calls.cache
                ),
                calls_from=earlier.calls_path if earlier else None,
            )
            result[name] = metric, PairedSamples(samples_of_run, f"audit: {name}"), run_options
        return changes, result

    def measure(
        self,
        every: Sequence[Sample],
        changes: ChangedSamples,
        runs: Mapping[str, AssessmentsOfRun],
        judge: str,
    ) -> AuditResult:
        """Measure the effect of each change, compared with the unchanged answers and the error.

        Args:
            every: all samples of the source.
            changes: the changed samples.
            runs: the assessments of each run of :meth:`build_runs`, by its name.
            judge: the name of the judge, for the result.
        """
        samples, seed = [sample for sample in every if sample.answered], self.seed
        rows = self._build_rows(runs, changes, len(samples))
        units = cluster_numbers([question_key(sample.question) for sample in samples])
        width = self.metric.score_range[1] - self.metric.score_range[0]
        effects: dict[str, ChangeEffect] = {}
        for name, (shift, flips) in rows.items():
            if (has_verdicts := ~np.isnan(flips)).any():
                rng, flipped = generator(seed, "audit", name, "signs"), flips[has_verdicts] > 0
                # A judge that is merely random flips as often when it is asked again.
                flipped_again = None if name == AGAIN_RUN else rows[AGAIN_RUN][1][has_verdicts] > 0
                effects[name] = measure_change_effect(
                    shift[has_verdicts], flipped, units[has_verdicts], width, rng, flipped_again
                )
        # The planted error is the yardstick, so it is no experiment and not in the correction.
        control = effects.pop(ERROR_CHANGE, None)
        ps = holm([effect.p for effect in effects.values()])
        effects = {name: replace(effects[name], p=p) for name, p in zip(effects, ps, strict=True)}
        # A shift counts only if it is significant, and in the direction that the metric calls
        # worse.
        fall = (control and control.p < 0.05 and control.shift.value) or 0.0
        sees_errors = fall * (1 if self.metric.lower_is_better else -1) > 0
        if sees_errors:
            scored = [name for name, effect in effects.items() if effect.shift.n]
            table = np.stack([rows[name][0] for name in (*scored, ERROR_CHANGE)])
            # Effects relative to the error are only meaningful if the judge sees the error at all.
            ratios = movement_ratios(table, units, generator(seed, "audit", "ratios"))
            for name, ratio in zip(scored, ratios, strict=True):
                effects[name] = replace(effects[name], ratio=ratio)
        moved_by = [name for name, effect in effects.items() if effect.p < 0.05]
        return AuditResult(
            run=self.out,
            metric=self.metric.name,
            judge=judge,
            answers=len(samples),
            questions=len(set(units.tolist())),
            blank=len(every) - len(samples),
            failed=sum(item.error is not None for run in runs.values() for item in run),
            moved_by=moved_by,
            largest=max(
                moved_by or effects, key=lambda name: _effect_size(effects[name], width), default=""
            ),
            control=control,
            errors=Counter(
                sample.id.rpartition("~")[2] for sample in changes.get(ERROR_CHANGE, {}).values()
            ),
            sees_errors=sees_errors,
            experiments=dict(sorted(effects.items(), key=lambda item: (item[1].p, item[0]))),
        )

    def _build_rows(
        self, runs: Mapping[str, AssessmentsOfRun], changes: ChangedSamples, n: int
    ) -> Mapping[str, tuple[Floats, Floats]]:
        """Return for each change how the score of each answer shifted, and whether its verdict
        flipped.

        Both are NaN where the answer could not be changed or had no verdict before. A change with a
        control is compared with the control instead of the unchanged answer; a control has no row.
        """
        unchanged = {
            place: self._read_result(item) for place, item in enumerate(runs[ANSWERS_RUN][:n])
        }
        judged = {
            name: {place: self._read_result(item) for place, item in enumerate(run)}
            for name, run in runs.items()
            if name != ANSWERS_RUN
        }
        # The run of the answers holds the unchanged ones first, then those of each change.
        changed = iter(runs[ANSWERS_RUN][n:])
        for name, samples in changes.items():
            judged[name] = {place: self._read_result(next(changed)) for place in samples}
        rows = {}
        controls = {change.control for change in AUDIT_CHANGES.values()}
        for name, judged_by_place in judged.items():
            if name in controls:
                continue
            shift, flips = np.full(n, np.nan), np.full(n, np.nan)
            control = AUDIT_CHANGES[name].control
            before = judged[control] if control else unchanged
            for place, (score, verdict) in judged_by_place.items():
                score_before, verdict_before = before[place]
                # A failure after the change is a flip; a failure before it leaves nothing to
                # compare.
                if verdict_before != FAILED_VERDICT:
                    shift[place], flips[place] = score - score_before, verdict != verdict_before
            rows[name] = shift, flips
        if isinstance(self.metric, Pairwise):
            # 3 is the code of no choice, whose points are NaN.
            parts = [
                [item.parts.get(order, 3) for order in ("first", "swapped")]
                for item in runs[ANSWERS_RUN]
            ]
            shift = POINTS_OF_CHOICE[np.array(parts[:n], dtype=int)].sum(axis=1) - 1
            rows["position"] = shift, np.where(np.isnan(shift), np.nan, np.abs(shift) > 0)
        return rows

    def _read_result(self, assessment: Assessment) -> tuple[float, str]:
        """Return the score of an assessment, NaN if it has none, and its verdict."""
        if assessment.error is not None:
            return np.nan, FAILED_VERDICT
        # A metric without verdicts has two: whether its score is a problem or not.
        verdict = assessment.verdict or ("bad" if self.metric.problem(assessment) else "good")
        tie = 0.5 if verdict in ("unsure", "inconsistent") else np.nan
        return (tie if assessment.score is None else assessment.score), verdict


def _vary_requests(metric: Metric) -> Iterator[tuple[str, Metric]]:
    """Yield the metric with one thing in its requests changed, where it has that thing."""
    # The same request again: the noise with which every other experiment is compared.
    yield AGAIN_RUN, metric
    options: Any = metric
    if not any(need.capability in ("chat", "choose") for need in metric.needs()):
        return
    if getattr(options, "temperature", TRIED_TEMPERATURE) != TRIED_TEMPERATURE:
        yield "temperature", replace(options, temperature=TRIED_TEMPERATURE)
    if isinstance(metric, Judge) and metric.order != "both":
        # UsageError: the rubric shows no gold answer, so there is no order to change.
        with suppress(UsageError):
            first = metric.order == "gold-first"
            yield "order", replace(metric, order="answer-first" if first else "gold-first")
    # Prompts of the user are not varied; our own have variants for some metrics.
    for name in ("levels", "wording") if getattr(options, "prompt", "") is None else ():
        path = files(__package__) / "prompts" / f"{metric.name}-{name}.jinja"
        if path.is_file():
            yield name, replace(options, prompt=str(path))


EXPERIMENT_COLUMNS = (
    "score shift",
    "95 % interval",
    "verdict flips, %",
    "95 % interval ",
    "p",
    "vs. error",
)


def _effect_size(effect: ChangeEffect, width: float) -> tuple[float, float]:
    """Return the size of an effect, from 0 to 1, and its negated p, which decides ties."""
    shift = abs(effect.shift.value or 0.0) / width
    return max(shift, effect.flips.value or 0.0), -effect.p


def headline(audited: AuditResult) -> str:
    """Write the largest effect, that of a planted error, and all significant changes."""
    by = f"Changes with a significant effect: {', '.join(audited.moved_by) or 'none'}."
    if not audited.largest:
        return f"Nothing could be compared: no answer was scored. {by}"
    text = f"{audited.largest} ({AUDIT_CHANGES[audited.largest].says})"
    largest = f"Largest effect on this judge: {text}: {_format_effect(audited, audited.largest)}."
    if audited.control is None:
        error = "No error could be planted."
    elif audited.sees_errors:
        error = f"For comparison, a planted error: {_format_effect(audited, ERROR_CHANGE)}."
    else:
        error = "A planted error does not make the scores significantly worse."
    return f"{largest} {error} {by}"


def _format_effect(audited: AuditResult, name: str) -> str:
    """Write the effect of a change: the shift of the score and the share of flips, with
    intervals."""
    effect = (
        audited.control if name == ERROR_CHANGE and audited.control else audited.experiments[name]
    )
    shift, shift_interval, flips, flips_interval, *_ = _build_cells(effect)
    return (
        f"score {shift} (95 % interval: {shift_interval}), {flips} % of the verdicts flip "
        f"({flips_interval})"
    )


def _ratio_value(effect: ChangeEffect) -> float:
    return (effect.ratio and effect.ratio.value) or 0.0


def describe_notes(audited: AuditResult) -> Iterator[str]:
    """Yield notes on the planted errors, and on what was left out."""
    errors = ", ".join(f"{kind} {count:,}" for kind, count in sorted(audited.errors.items()))
    yield f"planted errors: {errors or 'none are possible in these answers'}"
    lost: dict[int, list[str]] = {}
    for name, effect in audited.experiments.items():
        if effect.flips.n < audited.answers:
            yield f"{name}: could be compared in {effect.flips.n:,} of {audited.answers:,} answers"
        lost.setdefault(effect.flips.n - effect.shift.n, []).append(name)
    for count, names in sorted(lost.items()):
        if count:
            each = " each" if len(names) > 1 else ""
            yield (
                f"{', '.join(names)}: {amount(count, 'answer')}{each} without a score before or "
                "after the change, counted only in verdict flips"
            )
    if audited.blank:
        yield f"left out: {amount(audited.blank, 'sample')} without a response"


def build_table(audited: AuditResult) -> document.Table:
    """Build the table of all experiments: the planted error first, the others by p."""
    rows = ({ERROR_CHANGE: audited.control} if audited.control else {}) | dict(audited.experiments)
    texts = [
        document.DocumentRow(name, _build_cells(effect), AUDIT_CHANGES[name].says)
        for name, effect in rows.items()
    ]
    return document.Table("Change", EXPERIMENT_COLUMNS, texts)


def _build_cells(effect: ChangeEffect) -> Sequence[str]:
    shift = "–" if effect.shift.value is None else f"{effect.shift.value:+.3f}".replace("-", "−")
    ends = effect.flips.interval and (
        100 * effect.flips.interval[0],
        100 * effect.flips.interval[1],
    )
    cells = (shift, ends_text(effect.shift.interval, "+") or "too few answers")
    flips = (
        number(100 * (effect.flips.value or 0.0)),
        ends_text(ends, digits=1) or "too few answers",
    )
    return (*cells, *flips, p_text(effect.p), f"{_ratio_value(effect):.2f}" if effect.ratio else "")


def build_document(audited: AuditResult) -> document.PageDocument:
    """Build the page of an audit."""
    moves = audited.experiments.items()
    ratios = [
        (name, _ratio_value(effect), effect.ratio.interval)
        for name, effect in moves
        if effect.ratio
    ]
    parts: list[document.Block] = [
        build_table(audited),
        *map(document.Text, describe_notes(audited)),
    ]
    if ratios:
        note = (
            "Mean absolute change of the score, divided by that of a planted error (1: the same). "
            "Bar: 95 % interval over questions."
        )
        # The drawing comes before the table.
        parts.insert(
            0,
            document.Chart(
                "Change relative to an error", note, [document.interval_bars(ratios, style="thin")]
            ),
        )
    facts = {"judge": audited.judge, "metric": audited.metric, "run": str(audited.run)}
    facts |= {"answers": f"{audited.answers:,} to {amount(audited.questions, 'question')}"}
    section = document.Section("Effect of each change", parts)
    return document.PageDocument(
        "audit", "What changes this judge's scores", facts, headline(audited), [], [section]
    )
