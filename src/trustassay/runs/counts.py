"""Counts over a finished run: outcomes of questions, rows and groups, answers without a score."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from trustassay.calls.backends import MODEL_ROLE
from trustassay.core import outcome as outcomes
from trustassay.core.asked import ASKED_FIELD, AskedTotals, read_asked
from trustassay.core.labels import read_single_label
from trustassay.core.metric import Assessment, Metric, MetricInfo
from trustassay.core.outcome import Outcome, OutcomeCounter, Outcomes
from trustassay.core.progress import StepProgress
from trustassay.core.sample import UNANSWERED_FIELD, is_blank
from trustassay.errors import MODEL_NOT_GIVEN, RunFolderError
from trustassay.judging.input_kind import InputKind, InputKindCounter
from trustassay.report.columns import (
    ColumnCounter,
    ColumnOutcomes,
    FileColumn,
    GroupOutcomes,
)
from trustassay.report.distributions import Histogram, ScoreGroups
from trustassay.report.review import (
    AnswerSelector,
    MetricFinding,
    ReviewCounts,
    finding_of,
    problem_of,
)
from trustassay.runs.answering_models import AskedInstead, asks_model, find_asked_instead
from trustassay.runs.fill import CUT_FIELD
from trustassay.runs.folder import RunFolder, find_run_model, read_metric_infos
from trustassay.runs.lines import HashSet, decode_object, hash64, read_lines, read_located_lines
from trustassay.runs.second_reading import SECOND_FILE
from trustassay.runs.units import ANSWER, QUESTION, UNIT, read_domain, read_units
from trustassay.statistics import Places
from trustassay.text.language import OTHER_LANGUAGE

MIN_COPIED_WORDS = 8
"""Number of words from which an answer can be a copy of a passage.

A shorter one, such as a name or a number, is not a copy.
"""


def determine_outcome(metric: Metric | None, assessment: Assessment) -> Outcome:
    """Return the outcome of a question.

    If a metric of another package raises here, the question counts as failed, so that an error
    hides nothing.

    Args:
        metric: ``None`` if it is not installed.
    """
    if metric is not None:
        kinds = outcomes.WITH_LINE if metric.counts_outcomes else outcomes.WITHOUT_LINE
        try:
            outcome = metric.outcome(assessment)
            if outcome.kind in kinds:
                return outcome
        except Exception:
            # Of another package's metric: the question counts as failed below.
            pass
        failed = outcomes.FAILED if metric.counts_outcomes else outcomes.NOT_SCORED
        return Outcome(failed, "the metric failed")
    if assessment.error is None and assessment.score is not None:
        return Outcome(outcomes.SCORED)
    reason = outcomes.ERROR if assessment.error is not None else assessment.verdict
    return Outcome(outcomes.NOT_SCORED, reason or outcomes.NOT_ASSESSABLE)


def build_outcome_columns(
    metrics: Mapping[str, Metric], assessments: Iterable[Assessment]
) -> dict[str, list[str | None]]:
    """Return the columns ``outcome`` and ``outcome_reason`` of a table of assessments.

    Args:
        metrics: the installed ones, by name.
        assessments: one for each row. A row without a reason has ``None``.
    """
    columns: dict[str, list[str | None]] = {"outcome": [], "outcome_reason": []}
    for assessment in assessments:
        outcome = determine_outcome(metrics.get(assessment.metric), assessment)
        columns["outcome"].append(outcome.kind)
        columns["outcome_reason"].append(outcome.reason or None)
    return columns


class RunOutcomes:
    """Counts the outcomes of a run, and answers that are copies, sample by sample in input order.

    Args:
        infos: the metrics of the run, in their order.
        metrics: the installed ones, by name.
        questions, units: as for :meth:`trustassay.core.outcome.OutcomeCounter.outcomes`.
    """

    def __init__(
        self,
        infos: Sequence[MetricInfo],
        metrics: Mapping[str, Metric],
        questions: Places | None,
        units: Places | None,
    ) -> None:
        self._metrics, self._questions, self._units = metrics, questions, units
        self._counters = {info.name: _build_counter(info.name, metrics) for info in infos}
        self._answer_hashes = HashSet()
        self.repeated = 0
        """Answers that equal an earlier one to the same question, by the same model."""
        self.copied = 0
        """Answers that repeat a passage word for word."""

    def add(self, sample: Mapping[str, Any], sample_outcomes: Iterable[Outcome]) -> None:
        """Count a stored sample, with its outcome by each metric, in the order of the metrics."""
        for counter, outcome in zip(self._counters.values(), sample_outcomes, strict=True):
            counter.add(outcome)
        response = " ".join(str(sample.get("response") or "").split())
        if response:
            self._count_repeated(sample, response)
            self.copied += is_copy_of_passage(response, sample.get("documents") or ())

    def by_column(self, columns: Iterable[FileColumn]) -> list[ColumnOutcomes]:
        """Return the outcomes of the answers with each value of each column."""
        return [
            ColumnOutcomes(column, [self._count_group(column, *group) for group in column.groups])
            for column in columns
        ]

    def _count_group(self, column: FileColumn, place: int, label: str) -> GroupOutcomes:
        where = column.places == place
        questions, shares = 0, {}
        for name, counter in self._counters.items():
            questions, shares[name] = counter.shares(self._questions, self._units, where)
        return GroupOutcomes(place, label, int(where.sum()), questions, shares)

    def _count_repeated(self, sample: Mapping[str, Any], response: str) -> None:
        # Questions count as the same whatever their punctuation, spaces and passages: a copy of an
        # answer under a new id is counted even if these were changed.
        question = "".join(filter(str.isalnum, str(sample.get("question")))).casefold()
        key = hash64(question, str(sample.get("model")), response.casefold())
        if key in self._answer_hashes:
            self.repeated += 1
        self._answer_hashes.add(key)

    def by_metric(self) -> dict[str, Outcomes]:
        """Return the outcomes by the name of the metric."""
        return {
            name: counter.outcomes(self._questions, self._units, self.repeated)
            for name, counter in self._counters.items()
        }


def _build_counter(name: str, metrics: Mapping[str, Metric]) -> OutcomeCounter:
    metric = metrics.get(name)
    if metric is None:
        # The metric is not installed, so its line between good and bad answers is unknown.
        words = {outcomes.SCORED: "scored", outcomes.NOT_SCORED: "not scored"}
        return OutcomeCounter(name, words, has_line=False)
    return OutcomeCounter(name, metric.outcome_words, has_line=metric.counts_outcomes)


def is_copy_of_passage(response: str, documents: Iterable[Mapping[str, Any]]) -> bool:
    """Whether an answer stands word for word in a passage and is at least half of it.

    One sentence out of a long passage is a quotation and no copy.

    Args:
        response: the answer, with single spaces.
    """
    if response.count(" ") + 1 < MIN_COPIED_WORDS:
        return False
    for document in documents:
        raw = str(document.get("text") or "")
        # Most passages are far longer than an answer: skip them before splitting them into words.
        if len(raw) > 4 * len(response):
            continue
        text = " ".join(raw.split())
        if response in text and 2 * len(response) >= len(text):
            return True
    return False


DOMAIN = "domain"
"""The default field of a sample's domain."""
LOOKED_KEY = "looked"
"""The key in ``summary.json`` of how many answers need a look."""
OUTCOMES_KEY = "outcomes"
"""The key in ``summary.json`` of the outcomes of all questions, by metric."""
ASKED_KEY = "asked"
"""The key in ``summary.json`` of who was asked and did not answer."""
KIND_KEY = "kind"
"""The key in ``summary.json`` of the kind of the run's answers."""
MAX_ANSWERS_SHOWN = 500
"""Answers on a report page; of a larger run, the worst of each kind of problem."""
RatingOf = Callable[[Mapping[str, Any]], float | None]
"""Returns the rating of a stored sample, if it has one."""


class AnswerPlace(NamedTuple):
    """Where a sample and its assessments are stored."""

    number: int
    """The sample's number in the input, from 0."""
    sample: int
    """The byte at which the sample's line begins."""
    assessments: int
    """The byte at which the line of its first assessment begins."""


@dataclass
class RunCounts:
    """Counts over a run, for its summary, table and report."""

    histograms: dict[str, Histogram]
    """The distribution of scores by metric."""
    groups: dict[str, ScoreGroups]
    """By metric, the scores of each model and domain."""
    choice: AnswerSelector[AnswerPlace]
    """The answers that the report shows."""
    look_counts: ReviewCounts = field(default_factory=ReviewCounts)
    """How many answers need a look."""
    outcomes: dict[str, Outcomes] = field(default_factory=dict)
    """The outcomes of all questions, by metric."""
    columns: Sequence[ColumnOutcomes] = ()
    """The outcomes by the columns of the input."""
    kind: InputKind | None = None
    """The kind of the answers, by which it is known what an entailer misses in them."""
    repeated: int = 0
    """Answers that equal another one to the same question."""
    copied: int = 0
    """Answers that are copied from a passage."""
    left_out: dict[str, Counter[str]] = field(default_factory=dict)
    """By metric, the answers whose model was not given, by its name."""
    asked_instead: AskedInstead = field(default_factory=AskedInstead)
    """The answers about which a model was asked that they do not name."""
    requests: Counter[str] = field(default_factory=Counter)
    """Requests by capability."""
    usage: dict[str, dict[str, Counter[str]]] = field(default_factory=dict)
    """Calls and tokens of chat models, by metric and model."""
    asked: AskedTotals = field(default_factory=AskedTotals)
    """The outcomes of all requests, by role and name."""
    parts: dict[str, None] = field(default_factory=dict)
    """The names of all parts as keys, in the order in which they first occur."""

    def add(self, assessment: Assessment) -> None:
        """Count an assessment, as far as the sample is not needed for it."""
        self.requests.update(assessment.calls)
        for model, usage in assessment.usage.items():
            models = self.usage.setdefault(assessment.metric, {})
            models.setdefault(model, Counter()).update(usage)
        self.parts.update(dict.fromkeys(assessment.parts))
        # An answer that has no score and did not fail, such as one in another language, is in no
        # histogram.
        if assessment.score is not None or assessment.error is not None:
            self.histograms[assessment.metric].add(assessment.score, assessment.verdict)


def read_sample_label(sample: Mapping[str, Any]) -> float | None:
    """Return the label in a stored sample as a number, if it has one that can be read."""
    label = sample.get("label")
    # An object or a list is no label; a field of it may be.
    return read_single_label(label) if isinstance(label, str | int | float) else None


def count_run(
    folder: RunFolder,
    run: Mapping[str, Any],
    metrics: Sequence[MetricInfo],
    *,
    domain_field: str = DOMAIN,
    installed_metrics: Iterable[Metric],
    rating_of: RatingOf = read_sample_label,
    steps: StepProgress,
) -> RunCounts:
    """Count a run whose assessments are sorted, in one pass for summary, table and report.

    Args:
        domain_field: the field of a sample's domain, as :func:`read_domain` reads it.
        installed_metrics: the metrics that are installed: they say which answers need a look.
        rating_of: returns the rating of a stored sample; by default its own label.
    """
    result = RunCounts(
        {m.name: Histogram(*m.score_range, m.verdicts) for m in metrics},
        {m.name: create_groups(m, domain_field) for m in metrics},
        AnswerSelector(MAX_ANSWERS_SHOWN),
    )
    installed = list(installed_metrics)
    name_model = ModelNamer(run, installed)
    columns = ColumnCounter()
    run_outcomes = start_outcomes(folder, run, metrics, installed)
    total = run["samples"]["samples"]
    kinds = InputKindCounter(total)
    with steps.begin("counting groups", total) as step:
        # One pass: samples and assessments of a large run take minutes to read.
        for row in read_judged_rows(folder, metrics, installed, result.look_counts):
            sample = row.sample
            run_outcomes.add(sample, row.outcomes)
            columns.add(sample)
            kinds.add(sample)
            domain, model = read_domain(sample, domain_field), sample.get("model") or ""
            result.asked_instead.note_sample(model)
            for assessment in row.assessments:
                result.add(assessment)
                asked_model = name_model.find_asked_instead(sample, assessment)
                result.asked_instead.add(assessment.metric, model, asked_model)
                if assessment.fault == MODEL_NOT_GIVEN:
                    left_out = result.left_out.setdefault(assessment.metric, Counter())
                    left_out[model] += 1
                if assessment.score is not None:
                    result.groups[assessment.metric].add(
                        name_model(sample, assessment),
                        domain,
                        assessment.score,
                        rating_of(sample),
                    )
            of_sample = read_asked(sample.get(ASKED_FIELD))
            result.asked.add(
                [of_sample, *(one.asked for one in row.assessments if one.error is None)],
                [one.asked for one in row.assessments if one.error is not None],
            )
            result.choice.add(row.findings, row.place)
            step()
    _add_other_outcomes(folder, result.asked, total)
    result.outcomes, result.kind = run_outcomes.by_metric(), kinds.kind
    result.columns = run_outcomes.by_column(columns.columns())
    result.repeated, result.copied = run_outcomes.repeated, run_outcomes.copied
    return result


def _add_other_outcomes(folder: RunFolder, totals: AskedTotals, samples: int) -> None:
    """Add the outcomes of requests that no sample and no assessment holds.

    They are those of preparations, and of second readings that failed: the answer keeps its first
    assessment.
    """
    preparations = (folder.read_json("prepared") or {}).values()
    # A preparation that failed has no calls on record.
    totals.add(
        [read_asked(one.get("asked")) for one in preparations if one.get("calls")],
        [read_asked(one.get("asked")) for one in preparations if not one.get("calls")],
        of_all=samples,
    )
    second_readings = (folder.read_json(SECOND_FILE) or {}).get("asked", ())
    for asked_of_sample in second_readings:
        totals.add((), map(read_asked, asked_of_sample))


class ModelNamer:
    """Names the model whose value a score is: the sample's, else the one that the run asked.

    If a run asked its single model about an answer of another name, both stand in the name.
    """

    def __init__(self, run: Mapping[str, Any], installed: Iterable[Metric]) -> None:
        self._run_model = find_run_model(run)
        models = run["backends"].get(MODEL_ROLE)
        # Names under which a run has its models are those of the samples.
        self._has_names = isinstance(models, Mapping)
        self._backend = self._run_model
        if self._has_names and self._run_model:
            self._backend = models[self._run_model]
        self._asking_metrics = frozenset(m.name for m in installed if _may_ask(m))
        self._asked_by_model: dict[str, str] = {}

    def __call__(self, sample: Mapping[str, Any], assessment: Assessment) -> str | None:
        """Return the name for a stored sample and one of its assessments."""
        model = sample.get("model")
        asked = self.find_asked_instead(sample, assessment)
        return f"{model} (asked: {asked})" if model and asked else model or self._run_model

    def find_asked_instead(self, sample: Mapping[str, Any], assessment: Assessment) -> str:
        """Return the model that was asked although the sample does not name it; empty if none."""
        is_asked = MODEL_ROLE in assessment.asked or self._backend in assessment.usage
        if not (self._run_model and is_asked and assessment.metric in self._asking_metrics):
            return ""
        model = sample.get("model") or ""
        if model not in self._asked_by_model:
            name = self._run_model if self._has_names else ""
            self._asked_by_model[model] = find_asked_instead(model, name, str(self._backend))
        return self._asked_by_model[model]


def _may_ask(metric: Metric) -> bool:
    """Whether a metric may have asked the model of a run."""
    try:
        return asks_model(metric)
    # Its packages are not installed here, or it is another package's: its calls decide.
    except Exception:
        return True


def start_outcomes(
    folder: RunFolder,
    run: Mapping[str, Any],
    metrics: Sequence[MetricInfo],
    installed: Iterable[Metric],
) -> RunOutcomes:
    """Return a counter of outcomes for the samples of a run, which are still to be added."""
    unit = run.get(UNIT)
    units = read_units(folder, unit)
    # By default a question counts once, with however many answers. Users who chose single answers
    # as units want answers counted.
    questions = units if unit in (None, QUESTION, ANSWER) else read_units(folder)
    return RunOutcomes(metrics, {metric.name: metric for metric in installed}, questions, units)


def read_outcomes(folder: RunFolder, metrics: Iterable[Metric]) -> dict[str, Outcomes]:
    """Return the outcomes of a finished run, by metric.

    The summary of a run of an earlier version has none: they are counted now.

    Args:
        metrics: those of the run that are installed.
    """
    run, summary = folder.read_finished()
    if stored_outcomes := summary.get(OUTCOMES_KEY):
        return {
            name: Outcomes.from_dict(name, stored_outcome)
            for name, stored_outcome in stored_outcomes.items()
        }
    infos, installed = list(read_metric_infos(folder, run).values()), list(metrics)
    run_outcomes = start_outcomes(folder, run, infos, installed)
    for row in read_judged_rows(folder, infos, installed, ReviewCounts()):
        run_outcomes.add(row.sample, row.outcomes)
    return run_outcomes.by_metric()


class JudgedRow(NamedTuple):
    """A stored sample with its results by each metric, in the order of the metrics."""

    place: AnswerPlace
    sample: dict[str, Any]
    """The sample as it is stored, unchecked."""
    assessments: list[Assessment]
    """Without evidence."""
    findings: list[MetricFinding]
    """How bad each metric finds the answer."""
    outcomes: list[Outcome]
    """The outcome of the question by each metric."""


def read_judged_rows(
    folder: RunFolder,
    metrics: Sequence[MetricInfo],
    installed_metrics: Iterable[Metric],
    look_counts: ReviewCounts,
) -> Iterator[JudgedRow]:
    """Yield the rows of :func:`read_rows` with findings and outcomes.

    Args:
        installed_metrics: those that have a line say which answers need a look.
        look_counts: each answer is counted there.
    """
    installed = {metric.name: metric for metric in installed_metrics}
    # Only a metric with a line can say which answers need a look; without any, nothing is counted.
    lines = {name: metric for name, metric in installed.items() if metric.line}
    look_counts.lines = bool(lines)
    look_counts.skipped = int((folder.read_run() or {}).get("skipped") or 0)
    for place, sample, assessments in read_rows(folder, metrics):
        # ``None``: this metric has no line, which is not the same as a good answer.
        flags = [
            problem_of(lines[assessment.metric], assessment) is not None
            if assessment.metric in lines
            else None
            for assessment in assessments
        ]
        outcomes = count_looks(look_counts, assessments, flags, installed)
        findings = [
            finding_of(metric, assessment, flagged=flag)
            for metric, assessment, flag in zip(metrics, assessments, flags, strict=True)
        ]
        yield JudgedRow(place, sample, assessments, findings, outcomes)


def count_looks(
    look_counts: ReviewCounts,
    assessments: Sequence[Assessment],
    flags: Sequence[bool | None],
    installed: Mapping[str, Metric],
) -> list[Outcome]:
    """Count an answer by its assessments, and return its outcome by each of them.

    Args:
        flags: of each assessment, whether the answer needs a look.
        installed: the metrics that are installed, by name.
    """
    result = [
        determine_outcome(installed.get(assessment.metric), assessment)
        for assessment in assessments
    ]
    has_failure = any(assessment.error is not None for assessment in assessments)
    look_counts.add([bool(flag) for flag in flags], result, failed=has_failure)
    return result


def create_groups(metric: MetricInfo, domain_field: str) -> ScoreGroups:
    """Return the empty groups of a metric."""
    return ScoreGroups(
        *metric.score_range,
        lower_is_better=metric.lower_is_better,
        stable_below=metric.stable_below,
        domain_field=domain_field,
    )


def read_rows(
    folder: RunFolder, metrics: Sequence[MetricInfo]
) -> Iterator[tuple[AnswerPlace, dict[str, Any], list[Assessment]]]:
    """Yield each sample with its assessments by each metric, in the order of the metrics.

    Samples are not checked again, which would take longer than counting. Evidence is not decoded.

    Raises:
        RunFolderError: the assessments are not sorted, or some are missing.
    """
    # The iterator is shared by all samples: each takes its lines from it.
    lines = folder.lines()

    def out_of_order(sample_id: str) -> RunFolderError:
        return RunFolderError(
            f"{folder.assessments_path}: {sample_id!r} does not occur once per metric in input "
            "order; delete summary.json and run the command of this run again"
        )

    for number, (offset, line) in enumerate(read_located_lines(folder.samples_path)):
        try:
            sample = decode_object(line)
        except ValueError as error:
            raise folder.build_sample_error(number + 1, f"is not JSON: {error}") from None
        # The file is sorted: the next lines are those of this sample, one of each metric.
        lines_of_sample = list(islice(lines, len(metrics)))
        by_metric = {read.fields["metric"]: read.fields for _, read in lines_of_sample}
        fields = [by_metric.get(metric.name, {}) for metric in metrics]
        # Also true where a metric is missing, since its fields are then empty.
        if any(of_metric.get("id") != sample["id"] for of_metric in fields):
            raise out_of_order(sample["id"])
        place = AnswerPlace(number, offset, lines_of_sample[0][0])
        yield place, sample, [Assessment.from_dict(of_metric) for of_metric in fields]
    # A line is left after the last sample.
    for _, read in lines:
        raise out_of_order(read.fields["id"])


_LANGUAGE_PATTERN = re.compile(
    r"in another language \((\w+)\) .* give another (--backend \S+(?==)|--\w+)"
)
"""Finds language and option in the reason of an assessment in another language: "the answer is in
another language (de) than the entailer reads (en); give another --entailer"."""
# Only lines that match one of these are decoded: a bytes pattern is far faster than JSON.
_FAULT_OR_LANGUAGE_PATTERN = re.compile(rb'"fault": "|"%s": 1' % OTHER_LANGUAGE.encode())
_BLANK_OR_MARKED_PATTERN = re.compile(
    rb'"response": "(?: |\\[nrtbf]|\\u[0-9a-f]{4})*"|"(?:%s|%s)": true'
    % (CUT_FIELD.encode(), UNANSWERED_FIELD.encode()),
    re.IGNORECASE,
)
"""A response of nothing but blanks and escaped characters, or the mark of an answer."""


def count_unscored(folder: RunFolder) -> dict[str, Any]:
    """Return counts of answers without a score for ``summary.json``.

    ``faults``: failed calls by metric and kind. ``answers``: blank and cut ones, those before an
    unanswered message. ``languages``: those that a model does not read, by metric, option of the
    model and language. Counts of zero are left out.
    """
    faults: dict[str, Counter[str]] = {}
    languages: dict[str, dict[str, Counter[str]]] = {}
    for assessment in _read_matching_records(folder.assessments_path, _FAULT_OR_LANGUAGE_PATTERN):
        if isinstance(kind := assessment.get("fault"), str):
            faults.setdefault(assessment["metric"], Counter())[kind] += 1
        elif OTHER_LANGUAGE in assessment["parts"]:
            # Another package may word its reason in another way.
            match = _LANGUAGE_PATTERN.search(assessment["reason"])
            language, option = match.groups() if match else ("unknown", "--entailer")
            by_option = languages.setdefault(assessment["metric"], {})
            by_option.setdefault(option, Counter())[language] += 1
    answers: Counter[str] = Counter()
    for sample in _read_matching_records(folder.samples_path, _BLANK_OR_MARKED_PATTERN):
        response = sample.get("response")
        # The pattern also matches texts of escaped letters, so that the decoded text decides.
        answers["blank"] += isinstance(response, str) and is_blank(response)
        answers["cut"] += sample.get(CUT_FIELD) is True
        answers["unanswered"] += sample.get(UNANSWERED_FIELD) is True
    result: dict[str, Any] = {}
    if faults:
        result["faults"] = {name: dict(sorted(kinds.items())) for name, kinds in faults.items()}
    if nonzero := {name: count for name, count in answers.items() if count}:
        result["answers"] = nonzero
    if languages:
        result["languages"] = {
            metric: {
                option: dict(counts_by_language.most_common())
                for option, counts_by_language in options.items()
            }
            for metric, options in languages.items()
        }
    return result


def count_unread(summary: Mapping[str, Any]) -> int:
    """Return how many answers were in a language that a model does not read.

    The largest number over metrics and models.
    """
    options = [
        language_counts
        for option_counts in summary.get("languages", {}).values()
        for language_counts in option_counts.values()
    ]
    return max((sum(languages.values()) for languages in options), default=0)


def _read_matching_records(path: Path, pattern: re.Pattern[bytes]) -> Iterator[dict[str, Any]]:
    """Yield the decoded lines of a file that contain a match of ``pattern``."""
    for line in read_lines(path):
        if pattern.search(line):
            yield json.loads(line)
