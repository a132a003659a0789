"""The share of right answers in a run, corrected by human labels of some of the answers.

A metric judges every answer and people label some of them. The estimators are in
:mod:`trustassay.statistics.corrected`; ``compare``, ``gate``, ``rank`` and reports use this module.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from trustassay.compare.run_scores import (
    RunScores,
    describe_changed_judges,
    read_finished_run,
    read_scores,
)
from trustassay.core.json_form import JsonForm
from trustassay.core.outcome import PASSED, SCORED
from trustassay.errors import UsageError
from trustassay.input.ratings import Rating, read_ratings
from trustassay.input.records import InputError
from trustassay.people.label.population import read_labels, read_population
from trustassay.people.study.labels import LabelSource
from trustassay.runs.folder import RunFolder
from trustassay.runs.units import UNIT, compute_unit_keys, read_domain
from trustassay.statistics import Bools, Floats, Places
from trustassay.statistics.corrected import (
    LabelCorrectedShare,
    assign_strata,
    difference_of_rates,
    prediction_powered,
    rank_sum_z,
    rogan_gladen,
)
from trustassay.statistics.intervals import MIN_UNITS, Interval, reason_too_few
from trustassay.statistics.resampling import generator
from trustassay.text.numbers import amount, ends_text

RIGHT_FIGURE = "right"
"""The name of the corrected share as a figure: ``METRIC.right``."""
METHOD_BY_STRATA, METHOD_BY_ERRORS = "stratified by outcome", "Rogan-Gladen"
MIN_LABELS_OF_OUTCOME = 5
"""Labels that each outcome needs, or one for each answer if it has fewer answers (measured in
lab/results/corrected.json)."""
MAX_RANK_SUM_Z = 3.29
"""Rank-sum z above which labelled answers are not a random sample of their outcome: p = 0.001."""


@dataclass(frozen=True)
class LabelFiles(LabelSource):
    """The files that hold labels of some answers."""

    of: Path | None = None
    """The run whose answers are labelled, if it is not one of the runs to be corrected."""

    @classmethod
    def from_options(cls, **options: Any) -> "LabelFiles | None":
        """Build this from the label options of a command; ``None`` where none is given.

        Raises:
            UsageError: an option about labels is given without ``--labels``.
        """
        if options and not options.get("labels"):
            raise UsageError(
                "--labels-of, --at-least, --positive and --label-field need --labels FILE"
            )
        if not options:
            return None
        return cls(
            [Path(file) for file in options["labels"]],
            columns=options.get("label_columns") or {},
            positive=options.get("right_words") or (),
            at_least=options.get("right_from"),
            of=Path(options["labels_of"]) if options.get("labels_of") else None,
        )


@dataclass(frozen=True)
class CorrectedRate(JsonForm):
    """The corrected share of right answers among all answers of a run or of a group."""

    json_names = "name method answers labels right passed value interval without strata".split()

    name: str
    """The name of the run, or the value of the field that defines the group."""
    method: str
    """The estimator, in words: stratified by outcome, or Rogan-Gladen."""
    answers: int
    labels: int
    """The number of labelled answers behind the estimate."""
    right: int
    """The number of labels that mean right."""
    passed: float | None
    """The uncorrected share of answers that pass by the metric, from 0 to 1; ``None`` where the
    metric has no line between passed and failed."""
    strata: Mapping[str, tuple[int, int]]
    """The number of answers and of labels, by outcome."""
    value: float | None = None
    """The corrected share, from 0 to 1; ``None`` where ``without`` gives the reason."""
    interval: Interval | None = None
    """The 95 % interval of ``value``."""
    without: str = ""
    """Why there is no value."""
    rate: LabelCorrectedShare | None = None
    """The estimate with its replicates, from which differences are computed."""


@dataclass(frozen=True)
class CorrectedRateChange(JsonForm):
    """The difference of two corrected shares."""

    first: str
    """The name of the share that is subtracted."""
    second: str
    value: float
    """The second share minus the first, from -1 to 1."""
    interval: Interval | None


@dataclass(frozen=True)
class CorrectedShares(JsonForm):
    """The corrected shares of one metric, and their differences."""

    metric: str
    rates: Sequence[CorrectedRate]
    """One share for each run, or for each group of one run."""
    differences: Sequence[CorrectedRateChange]
    """The last run, or the best group, compared with each of the others."""
    notes: Sequence[str] = ()
    """The assumptions of the estimates, and remarks on the label files."""

    def in_words(self) -> list[str]:
        """Return the sentences that a command prints and that its page shows."""
        result = []
        for rate in self.rates:
            line = f"{rate.name}: share of right answers unknown: {rate.without}"
            if rate.value is not None:
                line = (
                    f"{rate.name}: {100 * rate.value:.1f} % of {rate.answers:,} answers are right "
                )
                line += f"(95 % interval {_format_ends(rate.interval)}), {rate.method}, "
                line += f"from {rate.labels:,} labels"
            if rate.passed is not None:
                line += f"; {100 * rate.passed:.1f} % pass by {self.metric} alone"
            result.append(line)
        for change in self.differences:
            line = f"{change.second} minus {change.first}: {100 * change.value:+.1f} points (95 % "
            result.append(f"{line}interval {_format_ends(change.interval, '+')})".replace("-", "−"))
        return [*result, *self.notes]


def _format_ends(interval: Interval | None, sign: str = "") -> str:
    return ends_text(interval and (100 * interval[0], 100 * interval[1]), sign, 1) or "none"


@dataclass(frozen=True)
class JudgedAnswers:
    """All answers of a run with the metric's verdicts and people's labels; arrays have shape
    (n,)."""

    strata: Places
    """The number of each answer's stratum: its outcome, or a part of one."""
    badness: Floats
    """What lists of answers are ordered by; NaN without a score."""
    loss: Floats
    """The score with the sign at which less is better; NaN without a score."""
    passed: Bools | None
    """Whether each answer passes; ``None`` where the metric has no line."""
    labels: Floats
    """1 for right, 0 for wrong, NaN without a label."""
    units: Places
    """The number of each answer's independent unit."""
    groups: np.ndarray[Any, Any]
    """The value of the field by which answers are grouped, as text."""
    names: Sequence[str]
    """The names of the strata."""

    def select(self, keep: Bools) -> "JudgedAnswers":
        """Return the answers that the mask ``keep`` selects."""
        columns = {
            name: value[keep]
            for name, value in vars(self).items()
            if name != "names" and value is not None
        }
        return replace(self, **columns)


def correct(
    paths: Sequence[Path],
    label_files: LabelFiles,
    metrics: Sequence[str] | None = None,
    *,
    group_field: str = "",
    seed: int = 0,
) -> dict[str, CorrectedShares]:
    """Return the corrected shares of one or two runs, by metric.

    Args:
        paths: folders of finished runs; two runs are compared with each other.
        label_files: where the labels are.
        metrics: their names; by default all metrics that the runs have in common.
        group_field: a field of the samples. Each of its groups is corrected by its own labels, and
            the best group is compared with the others.
        seed: of the resamples.

    Raises:
        RunFolderError: a folder holds no finished run.
        InputError: labels cannot be read, belong to other answers, were drawn with unequal
            probabilities, or are too few; or a rating fits several answers.
        UsageError: files do not fit the runs, or the labelled run was judged in another way.
    """
    # A run that is compared with itself has its labels once.
    # 1. Whose answers are labelled: those of each run, or of the run that --labels-of names.
    owners = list(dict.fromkeys(paths)) if label_files.of is None else [label_files.of]
    runs = {path: read_finished_run(path) for path in (*paths, *owners)}
    names = [
        name
        for name in metrics or runs[paths[0]]["metrics"]
        if all(name in run["metrics"] for run in runs.values())
    ]
    # Error rates carry over from another run only if its answers were judged in the same way.
    for path in paths if label_files.of else ():
        if differ := describe_changed_judges(runs[owners[0]], runs[path], names):
            raise UsageError(
                f"--labels-of {label_files.of}: was judged differently from {path} ({differ[0]}), "
                "so its error rates do not apply; score both in the same way"
            )
    # 2. Which files belong to which run. A single file may hold the ratings of all runs, so it is
    # read for each of them.
    files = [label_files.ratings] if len(owners) == 1 else [[file] for file in label_files.ratings]
    if len(files) not in (1, len(owners)):
        raise UsageError(
            f"--labels: {len(files)} files for {len(owners)} runs; expected one file for each run"
        )
    if label_files.of and {path.resolve() for path in paths} == {label_files.of.resolve()}:
        raise UsageError(
            f"--labels-of {label_files.of}: is the run to be corrected; expected another run. Give "
            "labels of the run itself with --labels alone"
        )
    files_by_run = files * (len(owners) // len(files))
    labels_by_run, label_notes = _read_labels_of_runs(owners, files_by_run, label_files)
    # 3. For each metric the corrected shares, all from the same labels.
    labels = dict(zip(owners, labels_by_run, strict=True))
    result = {}
    for name in names:
        judged = [
            _read_judged_answers(path, runs[path], name, labels.get(path), group_field)
            for path in paths
        ]
        labelled_run = None
        if owner := label_files.of:
            labelled_run = _read_judged_answers(owner, runs[owner], name, labels[owner], "")
        parts = [(path.name or str(path), run) for path, run in zip(paths, judged, strict=True)]
        if group_field:
            groups = dict.fromkeys(judged[0].groups.tolist())
            parts = [
                (group or "(none)", judged[0].select(judged[0].groups == group)) for group in groups
            ]
        # One generator a metric: the shares of a metric do not change when another metric is added.
        rng = generator(seed, "corrected", name)
        estimates = [_estimate_rate(title, part, labelled_run, rng) for title, part in parts]
        rates = [rate for rate, _ in estimates]
        notes = [*dict.fromkeys(note for _, note in estimates if note), *label_notes]
        # Groups are compared with the best group, runs with the last run.
        values = [(rate.value or 0.0) if group_field else 0.0 for rate in rates]
        best = values.index(max(values)) if group_field else len(rates) - 1
        differences = [
            CorrectedRateChange(
                rate.name, rates[best].name, *difference_of_rates(rate.rate, best_rate)
            )
            for place, rate in enumerate(rates)
            if place != best and rate.rate and (best_rate := rates[best].rate)
        ]
        if labelled_run and differences:
            notes.append("Assumes the same error rates for all; labels of each would measure them.")
        result[name] = CorrectedShares(name, rates, differences, notes)
    return result


def _read_labels_of_runs(
    owners: Sequence[Path], files: Sequence[Sequence[Path]], label_files: LabelFiles
) -> tuple[list[Floats], list[str]]:
    """Read the labels of the answers of each run, and write notes on the label files.

    Each rating must fit exactly one answer. An answer on which raters are divided counts as wrong:
    otherwise a rater who calls everything right could remove every answer that others call wrong.
    """
    result, notes = list[Floats](), list[str]()
    fits = dict[Path, dict[str, Counter[str]]]()
    ratings_by_file = dict[Path, Sequence[Rating]]()
    for path, files_of_run in zip(owners, files, strict=True):
        source = replace(label_files, ratings=files_of_run)
        population = read_population([path], source, "answer", ())
        labels = read_labels(population, source)
        notes += labels.notes
        for file in files_of_run:
            if file not in ratings_by_file:
                ratings_by_file[file] = read_ratings(file, fields=label_files.columns).ratings
        rated = [rating for file in files_of_run for rating in ratings_by_file[file]]
        result.append(np.where(labels.tied, 0.0, labels.values))
        names = ", ".join(map(str, files_of_run))
        notes.append(
            f"{names}: labels are matched to the answers of {path} by id only. Labels of other "
            "answers with the same ids would be used too."
        )
        if labels.tied.any():
            divided = amount(int(labels.tied.sum()), "answer")
            notes.append(f"{names}: raters are tied on {divided}; ties count as wrong.")
        # Ratings of other answers are reported, since they may show that a wrong file was given.
        ids = {row.id for row in population.answers.rows}
        if unknown := sum(rating.item not in ids for rating in rated):
            notes.append(f"{names}: {amount(unknown, 'rating')} for ids that are not in {path}.")
        for file in files_of_run:
            # Counted over all runs that use the file: one id may occur in two runs, or once for
            # each model.
            models = fits.setdefault(file, {})
            for row in population.answers.rows:
                models.setdefault(row.id, Counter())[row.model] += 1
        labelled_questions = population.answers.questions[~np.isnan(result[-1])]
        if reason := reason_too_few(
            # Questions are counted, not answers: ten answers to one question are one observation.
            f"questions of {path} with a label",
            len(np.unique(labelled_questions)),
            MIN_UNITS,
        ):
            raise InputError(
                f"{', '.join(map(str, files_of_run))}: {reason}. To draw answers to rate, run "
                f"`trustassay label {path} --random`"
            )
    # A rating without a model fits every answer with its id; more than one such answer is
    # ambiguous.
    for file, models in fits.items():
        for rating in ratings_by_file[file]:
            answers = models.get(rating.item, Counter[str]())
            # A sample without a model may have been written by any model.
            fitting = answers[rating.model] + answers[""] if rating.model else answers.total()
            if fitting > 1:
                raise InputError(
                    f"{file}: the rating of {rating.item[:40]!r} fits several answers; add a field "
                    "`model` to ratings and samples, or give --labels once for each run, in order"
                )
    return result, notes


def _read_judged_answers(
    path: Path, run: Mapping[str, Any], metric: str, labels: Floats | None, by: str
) -> JudgedAnswers:
    folder = RunFolder(path)
    scores = read_scores(path, run, metric)
    groups = [
        str((read_domain(record, by) if by else "") or "") for record in folder.sample_records()
    ]
    # Only equality matters: the 64-bit hashes are reinterpreted as signed integers, not converted.
    units = compute_unit_keys(folder, run.get(UNIT)).view(np.int64)
    labels_or_nan = np.full(len(scores.scores), np.nan) if labels is None else labels
    strata, names = _build_strata(scores)
    # A metric without a line has no outcome "passed", so the correction by errors does not apply.
    passed = scores.indicate(PASSED) == 1 if scores.outcomes.passed else None
    loss = scores.scores if scores.info.lower_is_better else -scores.scores
    groups_of_answers = np.array(groups)
    return JudgedAnswers(
        strata, scores.badness, loss, passed, labels_or_nan, units, groups_of_answers, names
    )


def _build_strata(scores: RunScores) -> tuple[Places, list[str]]:
    """Return the stratum of each answer and the names of the strata.

    A stratum is an outcome. Where the metric has no line, scored answers are divided into thirds by
    score.
    """
    kinds = list(scores.outcomes.shares)
    strata = np.array([kinds.index(kind) for kind in scores.kinds], dtype=np.int64)
    names = [scores.outcomes.words[kind] for kind in kinds]
    # Without a line nearly all answers have the outcome "scored". Thirds by score keep the strata
    # informative.
    if SCORED in kinds and (strata == 0).any():
        is_scored = strata == 0
        thirds = assign_strata(scores.badness[is_scored])
        strata[is_scored] = len(names) + thirds
        # New strata are numbered after the outcomes; "scored" itself keeps its name, and is then
        # empty.
        names += [f"scored, part {place + 1} by score" for place in range(int(thirds.max()) + 1)]
    return strata, names


def _estimate_rate(
    name: str, judged: JudgedAnswers, labelled_run: JudgedAnswers | None, rng: np.random.Generator
) -> tuple[CorrectedRate, str]:
    """Estimate the corrected share of a run or group; also return the assumption it rests on."""
    # Labels and their units come from the other run where there is one.
    source = labelled_run or judged
    labelled = ~np.isnan(source.labels)
    right = source.labels[labelled] == 1
    strata = _count_by_stratum(judged, source)
    passed = None if judged.passed is None else float(judged.passed.mean())
    result = CorrectedRate(
        name=name,
        method=METHOD_BY_ERRORS if labelled_run else METHOD_BY_STRATA,
        answers=len(judged.labels),
        labels=len(right),
        right=int(right.sum()),
        passed=passed,
        strata=strata,
    )
    reason = reason_too_few(
        "questions with a label", len(np.unique(source.units[labelled])), MIN_UNITS
    )
    if reason:
        return replace(result, without=reason), ""
    if labelled_run:
        return _correct_by_errors(result, judged, labelled_run, rng)
    rate, note = estimate_stratified_rate(judged, rng)
    if rate is None:
        return replace(result, without=note), ""
    return replace(result, value=rate.value, interval=rate.interval, rate=rate), note


def _count_by_stratum(judged: JudgedAnswers, source: JudgedAnswers) -> dict[str, tuple[int, int]]:
    """Count the answers of each stratum, and the labels of that stratum in ``source``."""
    labelled = source.strata[~np.isnan(source.labels)]
    return {
        judged.names[place]: (int((judged.strata == place).sum()), int((labelled == place).sum()))
        for place in np.unique(judged.strata).tolist()
    }


def estimate_stratified_rate(
    judged: JudgedAnswers, rng: np.random.Generator
) -> tuple[LabelCorrectedShare | None, str]:
    """Estimate the share of right answers by strata; also return the assumption it rests on.

    Returns:
        The estimate and its assumption, or ``None`` and the reason why there is no estimate.
    """
    if reason := _explain_missing_labels(_count_by_stratum(judged, judged)):
        return None, reason
    if reason := _explain_selection_by_score(judged):
        return None, reason
    # Numbers without gaps: a group of a run may lack an outcome.
    numbers = np.unique(judged.strata, return_inverse=True)[1].astype(np.int64)
    rate = prediction_powered(numbers, judged.labels, judged.units, rng)
    return rate, "Assumes that within each outcome the labelled answers were drawn at random."


def _explain_missing_labels(strata: Mapping[str, tuple[int, int]]) -> str:
    """Return which labels an estimate lacks, "" if there are enough.

    An outcome without labels has no estimate: nothing is known of how people would label it.
    """
    # A small outcome needs no more labels than it has answers.
    wants = []
    for name, (answers, labels) in strata.items():
        enough = min(answers, MIN_LABELS_OF_OUTCOME)
        if labels < enough:
            wants.append(f"{enough - labels:,} more of the {answers:,} answers with outcome {name}")
    if not wants:
        return ""
    return f"too few labels: draw at random and label {' and '.join(wants)}"


def _explain_selection_by_score(judged: JudgedAnswers) -> str:
    """Return why labels that were chosen by score give no share, "" where they were not.

    Within an outcome, labels must be drawn at random: labels of the best answers make the share too
    high, labels of the worst answers too low.
    """
    for place in np.unique(judged.strata).tolist():
        # People who choose answers by hand take them from a sorted list, or by their score.
        for values in (judged.badness, judged.loss):
            in_stratum = (judged.strata == place) & ~np.isnan(values)
            labelled = values[in_stratum & ~np.isnan(judged.labels)]
            unlabelled = values[in_stratum & np.isnan(judged.labels)]
            z = rank_sum_z(labelled, unlabelled) if len(labelled) and len(unlabelled) else 0.0
            # A negative z means that labelled answers have less badness or loss than the others.
            if abs(z) > MAX_RANK_SUM_Z:
                which = "best" if z < 0 else "worst"
                return (
                    f"the labelled answers with outcome {judged.names[place]} have the {which} "
                    "scores; draw answers to label at random (`trustassay label RUN --random`)"
                )
    return ""


def _correct_by_errors(
    result: CorrectedRate,
    judged: JudgedAnswers,
    labelled_run: JudgedAnswers,
    rng: np.random.Generator,
) -> tuple[CorrectedRate, str]:
    """Correct the share by the errors that the metric makes in another, labelled run."""
    if judged.passed is None or labelled_run.passed is None:
        return replace(
            result, without="the metric has no pass threshold, so it has no error rates"
        ), ""
    # Rogan and Gladen (1978): the share that passes, corrected by sensitivity and specificity.
    note = "Assumes that the judge has the same error rates here as on the labelled answers."
    labelled = ~np.isnan(labelled_run.labels)
    errors = (
        labelled_run.passed[labelled],
        labelled_run.labels[labelled] == 1,
        labelled_run.units[labelled],
    )
    rate = rogan_gladen(judged.passed, judged.units, errors, rng)
    # Checked in this order: a judge no better than chance explains the NaN better than a missing
    # interval.
    without = "" if rate.interval else "the error rates on the labelled answers do not fit this run"
    if math.isnan(rate.value):
        without = "the judge is no better than chance on the labelled answers"
    value = None if without else rate.value
    interval = rate.interval if value is not None else None
    return replace(result, value=value, interval=interval, without=without, rate=rate), note


def describe_corrected_shares(path: Path, labels: LabelFiles, domain: str) -> list[str]:
    """Return the sentences of a report: on the run, and on its models and domains if several."""
    result = list[str]()
    for by in ("", "model", domain):
        for shares in correct([path], labels, group_field=by).values():
            result += shares.in_words() if not by or len(shares.rates) > 1 else []
    return list(dict.fromkeys(result))
