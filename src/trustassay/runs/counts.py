"""Counts over a finished run: rows and groups, units, and answers that have no score."""

import json
import re
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trustassay.core.metric import Assessment, Metric, MetricInfo
from trustassay.core.outcome import Outcome, Outcomes
from trustassay.core.progress import StepProgress
from trustassay.core.sample import is_blank, question_key
from trustassay.errors import RunFolderError
from trustassay.judging.entailer_quality import LARGER_ENTAILER
from trustassay.report.choice import AnswerSelector, MetricFinding, finding_of
from trustassay.report.distributions import Histogram, ScoreGroups
from trustassay.report.first_card import ReviewCounts, problem_of
from trustassay.runs.fill import CUT_FIELD
from trustassay.runs.folder import RunFolder, read_metric_infos
from trustassay.runs.lines import decode_object, hash64, read_lines, read_located_lines
from trustassay.runs.outcomes import RunOutcomes, determine_outcome
from trustassay.statistics import Bools, Places
from trustassay.text.language import OTHER_LANGUAGE
from trustassay.text.limits import TOO_LONG

DOMAIN = "domain"
"""The default field of a sample's domain."""
LOOKED_KEY = "looked"
"""The key in ``summary.json`` of how many answers need a look."""
OUTCOMES_KEY = "outcomes"
"""The key in ``summary.json`` of the outcomes of all questions, by metric."""
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
    repeated: int = 0
    """Answers that equal another one to the same question."""
    copied: int = 0
    """Answers that are copied from a passage."""
    requests: Counter[str] = field(default_factory=Counter)
    """Requests by capability."""
    usage: dict[str, dict[str, Counter[str]]] = field(default_factory=dict)
    """Calls and tokens of chat models, by metric and model."""
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
    """Return the label in a stored sample, if it has one."""
    label: float | None = sample.get("label")
    return label


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

    A sample's model is the one that it names, else the one that the run asked.

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
    run_model, installed = run["backends"].get("model"), list(installed_metrics)
    run_outcomes = start_outcomes(folder, run, metrics, installed)
    with steps.begin("counting groups", run["samples"]["samples"]) as step:
        # One pass: samples and assessments of a large run take minutes to read.
        for row in read_judged_rows(folder, metrics, installed, result.look_counts):
            sample = row.sample
            run_outcomes.add(sample, row.outcomes)
            domain = read_domain(sample, domain_field)
            for assessment in row.assessments:
                result.add(assessment)
                if assessment.score is not None:
                    result.groups[assessment.metric].add(
                        sample.get("model") or run_model,
                        domain,
                        assessment.score,
                        rating_of(sample),
                    )
            result.choice.add(row.findings, row.place)
            step()
    result.outcomes = run_outcomes.by_metric()
    result.repeated, result.copied = run_outcomes.repeated, run_outcomes.copied
    return result


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
    for place, sample, assessments in read_rows(folder, metrics):
        # ``None``: this metric has no line, which is not the same as a good answer.
        flags = [
            problem_of(lines[assessment.metric], assessment) is not None
            if assessment.metric in lines
            else None
            for assessment in assessments
        ]
        outcomes = [
            determine_outcome(installed.get(assessment.metric), assessment)
            for assessment in assessments
        ]
        has_failure = any(assessment.error is not None for assessment in assessments)
        look_counts.add([bool(flag) for flag in flags], outcomes, failed=has_failure)
        findings = [
            finding_of(metric, assessment, flagged=flag)
            for metric, assessment, flag in zip(metrics, assessments, flags, strict=True)
        ]
        yield JudgedRow(place, sample, assessments, findings, outcomes)


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
        if any(assessment_fields.get("id") != sample["id"] for assessment_fields in fields):
            raise out_of_order(sample["id"])
        place = AnswerPlace(number, offset, lines_of_sample[0][0])
        yield (
            place,
            sample,
            [Assessment.from_dict(assessment_fields) for assessment_fields in fields],
        )
    # A line is left after the last sample.
    for _, read in lines:
        raise out_of_order(read.fields["id"])


def read_domain(sample: Mapping[str, Any], name: str) -> Any:
    """Return the value of a sample's field, or of the field of that name under ``metadata``.

    ``None`` if there is none.

    Args:
        name: dots descend into objects: ``source.site``.
    """
    # Fields of the input that are not canonical are kept under ``metadata``.
    for outer in (sample, sample.get("metadata")):
        value: Any = outer
        for part in name.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
        if value is not None:
            return value
    return None


DRAWN, GROWN = "drawn", "grown"
"""Keys in ``run.json`` and ``summary.json``: how a part of the input was drawn; the figures before
the run grew."""
QUESTION = "question"
"""The default: all answers to a question."""
ANSWER = "answer"
"""Each answer by itself."""
UNIT = "unit"
"""The key of the unit in run.json, where it is not the default."""


def read_units(folder: RunFolder, unit: str | None = None) -> Places | None:
    """Return the number of each sample's unit in input order, from 0.

    A sample that is a unit by itself has -1. If all are, ``None`` is returned.

    Args:
        unit: ``None`` or ``question``: all answers to a question; case and white space do not
            count. If all answers to it have documents, only those belong together that share a
            document, directly or through others: one instruction for many texts is not one
            question. ``answer``: each by itself. Else a field of the samples, with dots into
            objects: samples with the same value belong together, those without it do not.
    """
    # With single answers as units no sample has to be read.
    return None if unit == ANSWER else _number_units(compute_unit_keys(folder, unit))


def compute_unit_keys(folder: RunFolder, unit: str | None = None) -> NDArray[np.uint64]:
    """Return a key of each sample's unit, shape (n,); a unit has the same key in other runs.

    Args:
        unit: as in :func:`read_units`. For ``answer`` the key is that of the sample's id.
    """
    if unit in (None, QUESTION):
        return _build_question_keys(folder)
    keys = array("Q")
    for place, record in enumerate(folder.sample_records()):
        value = record["id"] if unit == ANSWER else read_domain(record, str(unit))
        is_alone = value in (None, "", [])
        # A sample without the field is a unit by itself: the place makes its key unique.
        text = f"alone:{place}" if is_alone else json.dumps(value, sort_keys=True)
        keys.append(hash64(text))
    return np.array(keys, dtype=np.uint64)


def _build_question_keys(folder: RunFolder) -> NDArray[np.uint64]:
    """Return a key for each sample, equal for samples of one unit."""
    questions = array("Q")
    for number, record in enumerate(folder.sample_records(), 1):
        try:
            # ``question_key`` removes case and white space.
            questions.append(hash64(question_key(record["question"])))
        except (KeyError, TypeError, AttributeError):
            raise folder.build_sample_error(number, "has no question") from None
    keys = np.array(questions, dtype=np.uint64)
    _, place, counts = np.unique(keys, return_inverse=True, return_counts=True)
    is_repeated = counts[place] > 1
    # The documents are read only if a question occurs more than once.
    if is_repeated.any():
        _split_by_documents(folder, keys, is_repeated)
    return keys


def _split_by_documents(folder: RunFolder, keys: NDArray[np.uint64], is_repeated: Bools) -> None:
    """Give answers to one question different keys, in place, if they share no document.

    Args:
        is_repeated: which samples have a question that occurs more than once.
    """
    # A forest of disjoint sets (union-find): samples with one root belong together.
    parents = list(range(len(keys)))

    def root(place: int) -> int:
        while parents[place] != place:
            # Halving the path keeps the trees flat.
            parents[place] = parents[parents[place]]
            place = parents[place]
        return place

    first: dict[tuple[int, int], int] = {}
    undivided: set[int] = set()
    for place, record in enumerate(folder.sample_records()):
        if not is_repeated[place]:
            continue
        question = int(keys[place])
        texts = [str(document.get("text") or "") for document in record.get("documents") or ()]
        texts = [text for text in texts if not is_blank(text)]
        # An answer without documents could be about any of them, so all answers stay together.
        if not texts:
            undivided.add(question)
        for text in texts:
            # The same text under two questions does not join them.
            first_place = first.setdefault((question, hash64(text)), place)
            parents[root(place)] = root(first_place)
    for place in np.flatnonzero(is_repeated).tolist():
        if int(keys[place]) not in undivided:
            # The key of the question, changed by the first sample of its group.
            keys[place] ^= np.uint64(hash64(f"unit {root(place)}"))


def _number_units(keys: NDArray[np.uint64]) -> Places | None:
    _, place, counts = np.unique(keys, return_inverse=True, return_counts=True)
    # No unit has two samples: intervals are then those of single answers.
    if (counts <= 1).all():
        return None
    return np.where(counts[place] > 1, place, -1).astype(np.int64)


MIN_SHARE_WITHOUT_PASSAGES = 0.05
"""Share of answers without passages from which a remark mentions them."""
_LANGUAGE_PATTERN = re.compile(
    r"in another language \((\w+)\) .* give another (--backend \S+(?==)|--\w+)"
)
"""Finds language and option in the reason of an assessment in another language: "the answer is in
another language (de) than the entailer reads (en); give another --entailer"."""
# Only lines that match one of these are decoded: a bytes pattern is far faster than JSON.
_FAULT_OR_LANGUAGE_PATTERN = re.compile(rb'"fault": "|"%s": 1' % OTHER_LANGUAGE.encode())
_BLANK_OR_CUT_PATTERN = re.compile(
    rb'"response": "(?: |\\[nrtbf]|\\u[0-9a-f]{4})*"|"%s": true' % CUT_FIELD.encode(), re.IGNORECASE
)
"""A response of nothing but blanks and escaped characters, or the mark of one that was cut."""
# In the words of the remarks, for each kind of failed call.
_FAULT_DESCRIPTIONS = {
    "closed": "the endpoint rejects all requests",
    "connection": "no connection",
    "limited": "too many requests for the endpoint",
    "malformed": "the reply could not be read",
    "oversized": "the reply was too large",
    "refused": "the endpoint refused the request",
    "server": "server error of the endpoint",
    "timeout": "no reply in time",
    TOO_LONG: "too long to assess",
}


# Continues the sentence "3 of 100 answers were ...".
_ANSWER_DESCRIPTIONS = {
    "blank": "blank",
    "cut": "cut at max_tokens",
    "repeated": "the same as another answer to the same question, under another id",
    "copied": "copied word for word from a passage",
}


def count_unscored(folder: RunFolder) -> dict[str, Any]:
    """Return counts of answers without a score for ``summary.json``.

    ``faults``: failed calls by metric and kind. ``answers``: blank and cut ones. ``languages``:
    those that a model does not read, by metric, option of the model and language. Counts of zero
    are left out.
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
    for sample in _read_matching_records(folder.samples_path, _BLANK_OR_CUT_PATTERN):
        response = sample.get("response")
        # The pattern also matches texts of escaped letters, so that the decoded text decides.
        answers["blank"] += isinstance(response, str) and is_blank(response)
        answers["cut"] += sample.get(CUT_FIELD) is True
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


def write_remarks(summary: Mapping[str, Any], samples: int) -> list[str]:
    """Return a sentence for each count in a summary that users should know of.

    A metric that leaves answers open has the figures ``open``, ``mean_low`` and ``mean_high``. A
    metric that needs passages has ``no_passages``, which is mentioned above 5 % of the samples.

    Args:
        samples: the number of samples of the run.
    """
    result = []
    for name, count in summary.get("answers", {}).items():
        status = f"{_was_or_were(count)} {_ANSWER_DESCRIPTIONS[name]}"
        result.append(f"{count:,} of {samples:,} answers {status}")
    for metric, kinds in summary.get("faults", {}).items():
        for kind, count in kinds.items():
            consequence = f"samples failed: {_FAULT_DESCRIPTIONS.get(kind, kind)}"
            # An empty answer is no failure of a call.
            if kind == "empty":
                consequence = f"answers {_was_or_were(count)} empty"
            result.append(f"{metric}: {count:,} of {samples:,} {consequence}")
    for metric, options in summary.get("languages", {}).items():
        for option, languages in options.items():
            count = sum(languages.values())
            language_list = ", ".join(
                f"{language} {number:,}" for language, number in languages.items()
            )
            # The model that is proposed here reads many languages.
            proposal = f"--entailer {LARGER_ENTAILER}"
            if option != "--entailer":
                proposal = f"--backend similarity=agreement:{LARGER_ENTAILER}"
            result.append(
                f"{metric}: {count:,} of {samples:,} answers {_was_or_were(count)} not scored, "
                f"being in another language ({language_list}) than their judge reads; "
                f"{proposal} reads them"
            )
    for metric, metric_summary in summary.get("metrics", {}).items():
        values = metric_summary["values"]
        # Both bounds of the mean, as if all open answers had the lowest or the highest score.
        if count := int(values.get("open") or 0):
            are = "is" if count == 1 else "are"
            result.append(
                f"{metric}: {count:,} of {samples:,} answers {are} open, since replies cannot be "
                f"read: the mean over all is between {values['mean_low']:.3f} and "
                f"{values['mean_high']:.3f}"
            )
        count = int(values.get("no_passages") or 0)
        if count > MIN_SHARE_WITHOUT_PASSAGES * samples:
            result.append(
                f"{metric}: {count:,} of {samples:,} answers have no passages and are in no "
                "figure; does the file have all passages?"
            )
    for metric, models in summary.get("usage", {}).get("metrics", {}).items():
        if cut := sum(usage.get("cut", 0) for usage in models.values()):
            calls = sum(usage["calls"] for usage in models.values())
            result.append(
                f"{metric}: {cut:,} of {calls:,} replies {_was_or_were(cut)} cut at max_tokens"
            )
    return result


def describe_draw(draw: Mapping[str, Any]) -> str:
    """Return how many answers of how many were drawn, and how, as one sentence."""
    strata_text = (
        f" from {draw['strata']:,} strata by {', '.join(draw['by'])}" if "by" in draw else ""
    )
    # Units are mentioned only if they differ from answers.
    units_text = f" in {draw['units']:,} units" if draw["units"] < draw["answers"] else ""
    answers_text = f"{draw['answers']:,} of {draw['of']:,} answers{units_text}"
    return f"{answers_text}, drawn at random{strata_text} (seed {draw['seed']})"


def write_notes(summary: Mapping[str, Any]) -> list[str]:
    """Return sentences on the draw, on answers that were added, and on second readers."""
    result = [f"{describe_draw(summary[DRAWN])}."] if DRAWN in summary else []
    if grown := summary.get(GROWN):
        answer_count = max(metric_summary["n"] for metric_summary in summary["metrics"].values())
        result.append(f"{answer_count - grown['samples']:,} of {answer_count:,} answers are new.")
    return [*result, *describe_second_readings(summary)]


def describe_second_readings(summary: Mapping[str, Any]) -> list[str]:
    """Return a sentence for each metric that a second reader read for."""
    return [
        f"{name}: {_describe_second_reading(reading)}."
        for name, reading in summary.get("second", {}).items()
    ]


def _describe_second_reading(reading: Mapping[str, Any]) -> str:
    """Return what a second reader read and changed, and the estimate for all answers."""
    reader, alone_count = f"the second reader ({reading['reader']})", reading.get("alone", 0)
    in_others = f"alone read {alone_count:,} answers in languages that the first does not read"
    # The first reader read no answer: there is nothing that the second one could have changed.
    if not reading["answers"] and alone_count:
        return f"{reader} {in_others}"
    message = (
        f"{reader} read {reading['read']:,} of {reading['answers']:,} "
        f"answers: {reading['lifted']:,} need no look any more, {reading['set']:,} others do"
    )
    message += f"; it {in_others}" if alone_count else ""
    if reading["failed"]:
        message += f"; {reading['failed']:,} could not be read"
    # Failed answers are among the unread ones.
    if out_of_time := reading["unread"] - reading["failed"]:
        message += f"; {out_of_time:,} were left when its time was spent"
    if reading["share"] is None:
        return f"{message}; {reading['without']}"
    message += f". Had it read all, {100 * reading['share']:.0f} % would need a look"
    if reading["interval"]:
        low, high = (100 * bound for bound in reading["interval"])
        return message + (f" ({low:.0f} to {high:.0f} %)" if low < high else "")
    return f"{message} (no interval: {reading['without']})"


def _was_or_were(count: int) -> str:
    return "was" if count == 1 else "were"


def _read_matching_records(path: Path, pattern: re.Pattern[bytes]) -> Iterator[dict[str, Any]]:
    """Yield the decoded lines of a file that contain a match of ``pattern``."""
    for line in read_lines(path):
        if pattern.search(line):
            yield json.loads(line)
