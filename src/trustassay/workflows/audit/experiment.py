"""An audit: what moves a judge, by experiments that change one thing in answers, or requests.

First the changes, of what must not matter and an error, which must. Then the experiments, run in
folders of their own and measured against each other. Last what an audit found in a sentence, as a
table and as a page.
"""

import os
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from importlib.resources import files
from itertools import chain
from pathlib import Path
from typing import Any

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
from trustassay.show import document
from trustassay.show.text import ends_text, number, p_text
from trustassay.statistics import Floats
from trustassay.statistics.comparison import Moved, moved, movement_ratios
from trustassay.statistics.resampling import cluster_numbers, generator, holm
from trustassay.text.sentences import splitter
from trustassay.workflows.json_form import JsonForm
from trustassay.workflows.preferences import PairedSamples

LISTED: Mapping[str, Mapping[str, Any]] = tomllib.loads(
    (files(__package__) / "changes.toml").read_text(encoding="utf-8")
)
CONTROLS: Mapping[str, str] = {
    name: change["control"] for name, change in LISTED.items() if "control" in change
}
"""Changes that are compared with another change, and not with the answers as they are: of an order
to the judge, the text that it adds must not count as the order's effect."""
Changes = Mapping[str, Mapping[int, Sample]]
ERROR = "error"
"""The change that must matter."""
MAX_ANSWERS_TRIED = 50
"""Other answers that are looked at for one that can stand in an answer's place."""
NUMBER = re.compile(r"(?<![\w.,])(?:\d{1,3}(?:,\d{3})+|\d{1,12})(?![\w,]|\.\d)")
NAME = re.compile(r"(?<=[\w,;] )[A-Z][^\W\d_][\w'-]+(?: [A-Z][\w'-]+)*")
VERB = re.compile(rf"\b(?:{LISTED[ERROR]['verbs'].replace(' ', '|')})\b(?! not\b|n['’]t)")


def changes_of(samples: Sequence[Sample], metric: str, seed: int) -> Changes:
    """Return by its name each change that a metric must not mind, and the error: the changed
    samples, by their places. An error's kind stands behind its id.

    What is changed, and in which answers, follows from the samples and the seed alone.
    """
    names = sorted({name for one in samples for name in NAME.findall(one.response or "")})
    result = dict[str, dict[int, Sample]]()
    for name, listed in LISTED.items():
        field = next((one for one in ("response", "question") if one in listed), None)
        if metric in listed.get("not_for", ()) or not (field or name in (*_RULES, ERROR)):
            continue
        for place, sample in enumerate(samples):
            # A control draws as its change does, so that its text is as long for each answer.
            drawn_as = listed.get("drawn_as", name)
            rng, kind = generator(seed, "audit", drawn_as, sample.id), name
            if name == ERROR:
                kind, changed = _plant_error(place, samples, names, rng)
            elif field:
                given: dict[str, Any] = {field: _fill_template(sample, rng.choice(listed[field]))}
                changed = replace(sample, **given)
            else:
                changed = _RULES[name](sample)
            if changed != sample:
                result.setdefault(name, {})[place] = replace(changed, id=f"{sample.id}~{kind}")
    return result


def _fill_template(sample: Sample, text: str) -> str:
    values = {"question": sample.question, "response": (sample.response or "").strip()}
    return re.sub(r"\{(question|response)\}", lambda match: values[match[1]], str(text))


def _join_sentences(sample: Sample, form: Callable[[str], str], between: str) -> Sample:
    sentences = [
        sentence
        for sentence in map(str.strip, splitter("sentencex")(sample.response or ""))
        if sentence
    ]
    return replace(sample, response=between.join(map(form, sentences)))


def _add_citation(sample: Sample) -> Sample:
    if re.search(r"\[\d", sample.response or ""):
        return sample
    return _join_sentences(
        sample, lambda sentence: re.sub(r"([.!?]*)$", r" [1]\1", sentence, count=1), " "
    )


_RULES: Mapping[str, Callable[[Sample], Sample]] = {
    "bullets": lambda sample: _join_sentences(sample, "- {}".format, "\n"),
    "citations": _add_citation,
    "passages": lambda one: replace(one, documents=one.documents and one.documents[::-1]),
}


def _plant_error(
    place: int, samples: Sequence[Sample], names: Sequence[str], rng: np.random.Generator
) -> tuple[str, Sample]:
    """Return the kind of an error and the answer with it: a small one, drawn from those that the
    text allows, else the answer to another question; the same answer if there is none."""
    sample = samples[place]
    answer, key = sample.response or "", question_key(sample.question)
    other_names = [name for name in names if name not in answer]
    kinds = {"number": NUMBER, "negation": VERB, **({"name": NAME} if other_names else {})}
    for kind in rng.permutation(list(kinds)).tolist():
        if kind == "negation" and " not " in answer:
            return kind, replace(sample, response=answer.replace(" not ", " ", 1))
        if matches := list(kinds[kind].finditer(answer)):
            match = matches[int(rng.integers(len(matches)))]
            replacement = f"{match[0]} not" if kind == "negation" else ""
            if kind == "number":
                value = int(match[0].replace(",", ""))
                value += int(rng.integers(1, max(9, value // 20) + 1))
                replacement = f"{value:,}" if "," in match[0] else str(value)
            replacement = replacement or other_names[int(rng.integers(len(other_names)))]
            text = f"{answer[: match.start()]}{replacement}{answer[match.end() :]}"
            return kind, replace(sample, response=text)
    for other_sample in (
        samples[(place + step) % len(samples)] for step in range(1, MAX_ANSWERS_TRIED)
    ):
        if question_key(other_sample.question) != key and other_sample.response != answer:
            return "another answer", replace(sample, response=other_sample.response)
    return "none", sample


ANSWERS, AGAIN, FAILED = "answers", "again", "failed"
TRIED_TEMPERATURE = 1.0
"""The temperature that is tried."""
POINTS_OF_CHOICE = np.array([1.0, 0.0, 0.5, np.nan])
"""What a choice of ``pairwise``, by its place, counts for the answer that is read first."""
Judged = Sequence[Assessment]
Run = tuple[Metric, PairedSamples, RunOptions]


@dataclass(frozen=True)
class Audited(JsonForm):
    """What moves a judge: those of ``experiments``, by name, whose p is below .05, corrected for
    their number (Holm 1979). blank: samples without a response. failed: answers, of all runs, that
    could not be scored. largest: the experiment with the largest effect, the shift of the score as
    a part of its range or the share of flips, of those in ``moved_by`` if there are any. control:
    what the planted error did, None if none was possible; errors: how many of each kind.
    sees_errors: whether it makes scores significantly worse.
    """

    run: Path
    metric: str
    judge: str
    answers: int
    questions: int
    blank: int
    failed: int
    moved_by: Sequence[str]
    largest: str
    control: Moved | None
    errors: Mapping[str, int]
    sees_errors: bool
    experiments: Mapping[str, Moved]


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
            _, runs = self.runs(await self._samples())
            backends, parts = await settle([self.metric], self.named), list[Planned]()
            for name, (metric, samples, run_options) in runs.items():
                planned = await plan_run(samples, [metric], backends, run_options, self.out / name)
                parts += [replace(part, metric=name) for part in planned.parts]
            return Plan(sum(len(samples) for _, samples, _ in runs.values()), parts)

        return run_anywhere(rehearse)

    def run(self) -> Audited:
        """Ask what is not asked yet, and measure."""

        async def work() -> Audited:
            every = await self._samples()
            backends = await settle([self.metric], self.named)
            changes, runs = self.runs(every)
            assessments_by_run = dict[str, Judged]()
            for name, (metric, samples, run_options) in runs.items():
                folder = RunFolder(self.out / name)
                folder.path.mkdir(parents=True, exist_ok=True)
                await execute(samples, [metric], backends, folder, run_options)
                assessments_by_run[name] = list(folder.assessments(metric.name))
            names_of_backends = backends.names().values()
            judges = (
                names.values() if isinstance(names, Mapping) else [names]
                for names in names_of_backends
            )
            return self.measured(every, changes, assessments_by_run, ", ".join(chain(*judges)))

        return run_anywhere(work)

    @property
    def _source_run(self) -> RunFolder | None:
        """The source, if it is a run."""
        if not isinstance(self.source, str | os.PathLike):
            return None
        path = Path(self.source)
        return RunFolder(path) if (path / "run.json").exists() else None

    async def _samples(self) -> list[Sample]:
        if self.metric.pool:
            raise UsageError(f"{self.metric.name}: judges no answer by itself, as an audit needs")
        source, options = self.source, self.options
        if folder := self._source_run:
            source, options = folder.samples_path, replace(options, fields={})
        async with samples_of(source, options, self.metric.problems) as (read, _):
            samples = list(read.samples())
        if not any(sample.answered for sample in samples):
            raise UsageError("no sample has a response, and an audit changes responses")
        return samples

    def runs(self, every: Sequence[Sample]) -> tuple[Changes, Mapping[str, Run]]:
        """Return the changes, and all runs: of the answers, as they are and changed, and of these
        with other requests."""
        samples = [one for one in every if one.answered]
        changes = changes_of(samples, self.metric.name, self.seed)
        changed = chain(*(own.values() for own in changes.values()))
        runs = {ANSWERS: (self.metric, [*samples, *changed])}
        runs |= {name: (own, samples) for name, own in _vary_requests(self.metric)}
        total, calls, result = sum(len(own) for _, own in runs.values()), self.options.calls, {}
        for name, (metric, own) in runs.items():
            if budget := calls.budget:  # each run has its part
                budget = replace(budget, amount=budget.amount * len(own) / total)
            earlier = self._source_run if name == ANSWERS else None
            run_options = RunOptions(
                seed=self.seed,
                report=False,
                progress=self.options.progress,
                calls=replace(calls, budget=budget, cache=None if name == AGAIN else calls.cache),
                calls_from=earlier.calls_path if earlier else None,
            )
            result[name] = metric, PairedSamples(own, f"audit: {name}"), run_options
        return changes, result

    def measured(
        self, every: Sequence[Sample], changes: Changes, runs: Mapping[str, Judged], judge: str
    ) -> Audited:
        """Compare each change with the answers as they are, and with the error; ``runs`` hold what
        was said of the samples of :meth:`runs`, by their names."""
        samples, seed = [one for one in every if one.answered], self.seed
        rows = self._build_rows(runs, changes, len(samples))
        units = cluster_numbers([question_key(one.question) for one in samples])
        width, found = self.metric.score_range[1] - self.metric.score_range[0], {}
        for name, (shift, flips) in rows.items():
            if (kept := ~np.isnan(flips)).any():
                rng, own = generator(seed, "audit", name, "signs"), flips[kept] > 0
                calm = None if name == AGAIN else rows[AGAIN][1][kept] > 0
                found[name] = moved(shift[kept], own, units[kept], width, rng, calm)
        control = found.pop(ERROR, None)
        ps = holm([one.p for one in found.values()])
        found = {name: replace(found[name], p=p) for name, p in zip(found, ps, strict=True)}
        fall = (control and control.p < 0.05 and control.shift.value) or 0.0
        sees_errors = fall * (1 if self.metric.lower_is_better else -1) > 0
        if sees_errors:
            scored = [name for name, one in found.items() if one.shift.n]
            table = np.stack([rows[name][0] for name in (*scored, ERROR)])
            ratios = movement_ratios(table, units, generator(seed, "audit", "ratios"))
            for name, ratio in zip(scored, ratios, strict=True):
                found[name] = replace(found[name], ratio=ratio)
        moved_by = [name for name, one in found.items() if one.p < 0.05]
        return Audited(
            run=self.out,
            metric=self.metric.name,
            judge=judge,
            answers=len(samples),
            questions=len(set(units.tolist())),
            blank=len(every) - len(samples),
            failed=sum(one.error is not None for run in runs.values() for one in run),
            moved_by=moved_by,
            largest=max(
                moved_by or found, key=lambda name: _effect_size(found[name], width), default=""
            ),
            control=control,
            errors=Counter(one.id.rpartition("~")[2] for one in changes.get(ERROR, {}).values()),
            sees_errors=sees_errors,
            experiments=dict(sorted(found.items(), key=lambda one: (one[1].p, one[0]))),
        )

    def _build_rows(
        self, runs: Mapping[str, Judged], changes: Changes, n: int
    ) -> Mapping[str, tuple[Floats, Floats]]:
        """Return by change how the score of each answer moved, and whether its verdict did; NaN
        where it could not be changed, or had no verdict before. A change with a control moved it
        from where the control left it; a control has no row."""
        unchanged = {place: self._read(one) for place, one in enumerate(runs[ANSWERS][:n])}
        judged = {
            name: {place: self._read(one) for place, one in enumerate(run)}
            for name, run in runs.items()
            if name != ANSWERS
        }
        # The run of the answers holds the changed ones behind the others, in the order of changes.
        changed = iter(runs[ANSWERS][n:])
        for name, samples in changes.items():
            judged[name] = {place: self._read(next(changed)) for place in samples}
        rows = {}
        for name, judged_by_place in judged.items():
            if name in CONTROLS.values():
                continue
            shift, flips = np.full(n, np.nan), np.full(n, np.nan)
            before = judged[CONTROLS[name]] if name in CONTROLS else unchanged
            for place, (score, verdict) in judged_by_place.items():
                score_before, verdict_before = before[place]
                if verdict_before != FAILED:
                    shift[place], flips[place] = score - score_before, verdict != verdict_before
            rows[name] = shift, flips
        if isinstance(self.metric, Pairwise):
            parts = [[one.parts.get(of, 3) for of in ("first", "swapped")] for one in runs[ANSWERS]]
            shift = POINTS_OF_CHOICE[np.array(parts[:n], dtype=int)].sum(axis=1) - 1
            rows["position"] = shift, np.where(np.isnan(shift), np.nan, np.abs(shift) > 0)
        return rows

    def _read(self, assessment: Assessment) -> tuple[float, str]:
        """Return a score, NaN if there is none, and a verdict."""
        if assessment.error is not None:
            return np.nan, FAILED
        verdict = assessment.verdict or ("bad" if self.metric.problem(assessment) else "good")
        tie = 0.5 if verdict in ("unsure", "inconsistent") else np.nan
        return (tie if assessment.score is None else assessment.score), verdict


def _vary_requests(metric: Metric) -> Iterator[tuple[str, Metric]]:
    """Yield the metric with a request that is changed in one thing, where it has that."""
    yield AGAIN, metric
    options: Any = metric
    if not any(need.capability in ("chat", "choose") for need in metric.needs()):
        return
    if getattr(options, "temperature", TRIED_TEMPERATURE) != TRIED_TEMPERATURE:
        yield "temperature", replace(options, temperature=TRIED_TEMPERATURE)
    if isinstance(metric, Judge) and metric.order != "both":
        with suppress(UsageError):  # the rubric shows no gold answer
            first = metric.order == "gold-first"
            yield "order", replace(metric, order="answer-first" if first else "gold-first")
    for name in ("levels", "wording") if getattr(options, "prompt", "") is None else ():
        path = files(__package__) / "prompts" / f"{metric.name}-{name}.jinja"
        if path.is_file():
            yield name, replace(options, prompt=str(path))


COLUMNS = ("shift of the score", "95 % interval", "flips, %", "95 % interval ", "p", "of error")


def _effect_size(effect: Moved, width: float) -> tuple[float, float]:
    """Return how large an effect is from 0 to 1, and its p turned round, which decides ties."""
    shift = abs(effect.shift.value or 0.0) / width
    return max(shift, effect.flips.value or 0.0), -effect.p


def headline(audited: Audited) -> str:
    """Return sentences: the largest effect with its intervals, what a planted error does beside
    it, and everything that moves the judge."""
    by = f"It is significantly moved by {', '.join(audited.moved_by) or 'nothing that was tried'}."
    if not audited.largest:
        return f"Nothing could be compared: no answer was scored. {by}"
    text = f"{audited.largest} ({LISTED[audited.largest]['says']})"
    largest = f"Largest effect on this judge: {text}: {_format_effect(audited, audited.largest)}."
    if audited.control is None:
        error = "No error could be planted."
    elif audited.sees_errors:
        error = f"A planted error, which must matter: {_format_effect(audited, ERROR)}."
    else:
        error = "A planted error does not make its scores significantly worse."
    return f"{largest} {error} {by}"


def _format_effect(audited: Audited, name: str) -> str:
    """Write what a change did: the shift of the score and the share of flips, with intervals."""
    effect = audited.control if name == ERROR and audited.control else audited.experiments[name]
    shift, shift_interval, flips, flips_interval, *_ = _build_cells(effect)
    return (
        f"score {shift} (95 % interval {shift_interval}), verdicts that flip {flips} % "
        f"({flips_interval})"
    )


def _ratio(effect: Moved) -> float:
    return (effect.ratio and effect.ratio.value) or 0.0


def notes(audited: Audited) -> Iterator[str]:
    """Yield what the error is made of, and what was left out."""
    errors = ", ".join(f"{count:,} {kind}" for kind, count in sorted(audited.errors.items()))
    yield f"planted errors: {errors or 'none is possible in these answers'}"
    lost: dict[int, list[str]] = {}
    for name, effect in audited.experiments.items():
        if effect.flips.n < audited.answers:
            yield f"{name}: compared in {effect.flips.n:,} of {audited.answers:,} answers"
        lost.setdefault(effect.flips.n - effect.shift.n, []).append(name)
    for count, names in sorted(lost.items()):
        if count:
            yield f"without both scores, in flips alone: {count:,} answers of {', '.join(names)}"
    if audited.blank:
        yield f"left out: {audited.blank:,} samples without a response"


def table(audited: Audited) -> document.Table:
    """Return the table of all experiments, the error first, then by p."""
    rows = ({ERROR: audited.control} if audited.control else {}) | dict(audited.experiments)
    texts = [
        document.Row(name, _build_cells(effect), LISTED[name]["says"])
        for name, effect in rows.items()
    ]
    return document.Table("Changed", COLUMNS, texts)


def _build_cells(effect: Moved) -> Sequence[str]:
    shift = "–" if effect.shift.value is None else f"{effect.shift.value:+.3f}".replace("-", "−")
    ends = effect.flips.interval and (
        100 * effect.flips.interval[0],
        100 * effect.flips.interval[1],
    )
    cells = (shift, ends_text(effect.shift.interval, "+") or "too few")
    flips = (number(100 * (effect.flips.value or 0.0)), ends_text(ends, digits=1) or "too few")
    return (*cells, *flips, p_text(effect.p), f"{_ratio(effect):.2f}" if effect.ratio else "")


def document_of(audited: Audited) -> document.Document:
    """Return the page of an audit."""
    moves = audited.experiments.items()
    ratios = [
        (name, _ratio(effect), effect.ratio.interval) for name, effect in moves if effect.ratio
    ]
    parts: list[document.Block] = [table(audited), *map(document.Text, notes(audited))]
    if ratios:
        note = "1: as far as a planted error. Bar: 95 % interval over questions."
        parts.insert(
            0, document.Chart("Movement", note, [document.interval_bars(ratios, style="thin")])
        )
    facts = {"judge": audited.judge, "metric": audited.metric, "run": str(audited.run)}
    facts |= {"answers": f"{audited.answers:,} to {audited.questions:,} questions"}
    section = document.Section("What was changed, and what it did", parts)
    return document.Document(
        "audit", "What moves this judge", facts, headline(audited), [], [section]
    )
