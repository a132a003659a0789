"""What is counted of a finished run: rows and groups, units, and answers that have no score."""

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

from trustassay.core.outcome import Outcome, Outcomes
from trustassay.entailer_quality import BETTER
from trustassay.errors import RunFolderError
from trustassay.metric import Assessment, Metric, MetricInfo
from trustassay.progress import Steps
from trustassay.runs.fill import CUT
from trustassay.runs.folder import RunFolder, metric_infos
from trustassay.runs.lines import decoded, file_lines, hash64, located_lines
from trustassay.runs.outcomes import RunOutcomes, outcome_of
from trustassay.sample import is_blank, question_key
from trustassay.show.choice import Choice, Finding, finding_of
from trustassay.show.distributions import Groups, Histogram
from trustassay.show.first_card import Looked, problem_of
from trustassay.statistics import Bools, Places
from trustassay.text.language import OTHER_LANGUAGE
from trustassay.text.limits import TOO_LONG

DOMAIN = "domain"
LOOKED = "looked"
"""The key in ``summary.json`` of how many answers need a look."""
OUTCOMES = "outcomes"
"""The key in ``summary.json`` of what became of all questions, by metric."""
SHOWN = 500
"""Answers on a report page; where a run has more, the worst of each kind of problem."""
RatingOf = Callable[[Mapping[str, Any]], float | None]
"""The rating of a stored sample, if it has one."""


class Place(NamedTuple):
    """Where a sample and its assessments stand: its number, and the bytes at which they begin."""

    number: int
    sample: int
    assessments: int


@dataclass
class Counted:
    """What was counted.

    histograms, groups: the scores by metric, and by model and domain.
    choice: which answers the report shows. looked: how many need a look.
    outcomes: what became of all questions, by metric. repeated, copied: answers that are copies of
    another one, or of a passage.
    requests: how often each capability was asked.
    usage: what the metrics' calls of chat models took, by metric and model.
    parts: the names of all parts, in the order in which they first come.
    """

    histograms: dict[str, Histogram]
    groups: dict[str, Groups]
    choice: Choice[Place]
    looked: Looked = field(default_factory=Looked)
    outcomes: dict[str, Outcomes] = field(default_factory=dict)
    repeated: int = 0
    copied: int = 0
    requests: Counter[str] = field(default_factory=Counter)
    usage: dict[str, dict[str, Counter[str]]] = field(default_factory=dict)
    parts: dict[str, None] = field(default_factory=dict)

    def add(self, assessment: Assessment) -> None:
        """Count what is counted without the sample."""
        self.requests.update(assessment.calls)
        for model, usage in assessment.usage.items():
            models = self.usage.setdefault(assessment.metric, {})
            models.setdefault(model, Counter()).update(usage)
        self.parts.update(dict.fromkeys(assessment.parts))
        if assessment.score is not None or assessment.error is not None:
            self.histograms[assessment.metric].add(assessment.score, assessment.verdict)


def own_label(sample: Mapping[str, Any]) -> float | None:
    """Return the label that a stored sample brings itself."""
    label: float | None = sample.get("label")
    return label


def count(
    folder: RunFolder,
    run: Mapping[str, Any],
    metrics: Sequence[MetricInfo],
    *,
    domain_field: str = DOMAIN,
    here: Iterable[Metric],
    rating_of: RatingOf = own_label,
    steps: Steps,
) -> Counted:
    """Count a folder whose assessments are sorted: once, for its summary, table and report.

    ``here`` are the metrics that are installed: they say which answers need a look.
    A sample's model is the one it names, else the one that the run asked; its domain is in the
    field ``domain_field``, as :func:`domain_of` reads it. ``rating_of`` gives its rating, else it
    is its own label.
    """
    result = Counted(
        {m.name: Histogram(*m.score_range, m.verdicts) for m in metrics},
        {m.name: groups_of(m, domain_field) for m in metrics},
        Choice(SHOWN),
    )
    asked, installed = run["backends"].get("model"), list(here)
    run_outcomes = start_outcomes(folder, run, metrics, installed)
    with steps.begin("counting groups", run["samples"]["samples"]) as step:
        for row in judged(folder, metrics, installed, result.looked):
            sample = row.sample
            run_outcomes.add(sample, row.outcomes)
            domain = domain_of(sample, domain_field)
            for assessment in row.assessments:
                result.add(assessment)
                if assessment.score is not None:
                    result.groups[assessment.metric].add(
                        sample.get("model") or asked, domain, assessment.score, rating_of(sample)
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
    """Return what counts the outcomes of a run's samples, which are still to be added to it."""
    unit = run.get(UNIT)
    units = read_units(folder, unit)
    # Whoever chose single answers as units counts answers; else a question counts once.
    questions = units if unit in (None, QUESTION, ANSWER) else read_units(folder)
    return RunOutcomes(metrics, {one.name: one for one in installed}, questions, units)


def read_outcomes(folder: RunFolder, metrics: Iterable[Metric]) -> dict[str, Outcomes]:
    """Return the outcomes of a finished run, by metric; those of a run of an earlier version, whose
    summary has none, are counted now.

    Args:
        metrics: those of the run that are installed.
    """
    run, summary = folder.read_finished()
    if stored := summary.get(OUTCOMES):
        return {name: Outcomes.from_dict(name, one) for name, one in stored.items()}
    infos, installed = list(metric_infos(folder, run).values()), list(metrics)
    run_outcomes = start_outcomes(folder, run, infos, installed)
    for row in judged(folder, infos, installed, Looked()):
        run_outcomes.add(row.sample, row.outcomes)
    return run_outcomes.by_metric()


class JudgedRow(NamedTuple):
    """A stored sample with what each metric said of it, in the order of the metrics."""

    place: Place
    sample: dict[str, Any]
    assessments: list[Assessment]
    findings: list[Finding]
    outcomes: list[Outcome]


def judged(
    folder: RunFolder, metrics: Sequence[MetricInfo], drawing: Iterable[Metric], looked: Looked
) -> Iterator[JudgedRow]:
    """Yield :func:`rows` with what each metric found, and count in ``looked`` who needs a look.

    ``drawing`` are the metrics that are installed; those of them that draw a line say who does.
    """
    installed = {metric.name: metric for metric in drawing}
    lines = {name: metric for name, metric in installed.items() if metric.line}
    looked.lines = bool(lines)
    for place, sample, assessments in rows(folder, metrics):
        flags = [
            problem_of(lines[one.metric], one) is not None if one.metric in lines else None
            for one in assessments
        ]
        outcomes = [outcome_of(installed.get(one.metric), one) for one in assessments]
        failed = any(one.error is not None for one in assessments)
        looked.add([bool(flag) for flag in flags], outcomes, failed=failed)
        findings = [
            finding_of(metric, one, flagged=flag)
            for metric, one, flag in zip(metrics, assessments, flags, strict=True)
        ]
        yield JudgedRow(place, sample, assessments, findings, outcomes)


def groups_of(metric: MetricInfo, domain_field: str) -> Groups:
    """Return the empty groups of a metric."""
    return Groups(
        *metric.score_range,
        lower_is_better=metric.lower_is_better,
        stable_below=metric.stable_below,
        domain_field=domain_field,
    )


def rows(
    folder: RunFolder, metrics: Sequence[MetricInfo]
) -> Iterator[tuple[Place, dict[str, Any], list[Assessment]]]:
    """Yield each sample as it is stored (checking it again would take longer than counting) with
    what each metric said of it, in the order of the metrics and without evidence.
    """
    lines = folder.lines()

    def out_of_order(sample_id: str) -> RunFolderError:
        return RunFolderError(
            f"{folder.assessments_path}: {sample_id!r} does not occur once per metric in input "
            "order; delete summary.json and run the command of this run again"
        )

    for number, (at, line) in enumerate(located_lines(folder.samples_path)):
        try:
            sample = decoded(line)
        except ValueError as error:
            raise folder.bad_sample(number + 1, f"is not JSON: {error}") from None
        own = list(islice(lines, len(metrics)))
        by_metric = {read.fields["metric"]: read.fields for _, read in own}
        fields = [by_metric.get(metric.name, {}) for metric in metrics]
        if any(one.get("id") != sample["id"] for one in fields):
            raise out_of_order(sample["id"])
        place = Place(number, at, own[0][0])
        yield place, sample, [Assessment.from_dict(one) for one in fields]
    for _, read in lines:
        raise out_of_order(read.fields["id"])


def domain_of(sample: Mapping[str, Any], name: str) -> Any:
    """Return the value of a sample's field ``name``, where dots descend into objects, or of the one
    of that name under ``metadata``; ``None`` if there is none.
    """
    for outer in (sample, sample.get("metadata")):
        value: Any = outer
        for part in name.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
        if value is not None:
            return value
    return None


DRAWN, GROWN = "drawn", "grown"
"""The keys in run.json and summary.json of what was drawn, and of summaries of fewer samples."""
QUESTION = "question"
"""The default: all answers to a question."""
ANSWER = "answer"
"""Each answer by itself."""
UNIT = "unit"
"""The key of the unit in run.json, where it is not the default."""


def read_units(folder: RunFolder, unit: str | None = None) -> Places | None:
    """Return the number of each sample's unit in input order, from 0 on, -1 for a sample that is
    one by itself; ``None`` if all are.

    Args:
        unit: ``None`` or ``question``: all answers to a question, whose case and white space do not
            count. Where all answers to it have documents, only those that share one with each
            other, directly or through others, belong together: one instruction for many texts is
            not one question. ``answer``: each by itself. Else a field of the samples, with dots
            into objects: samples with the same value belong together, those without it do not.
    """
    return None if unit == ANSWER else _numbers(unit_keys(folder, unit))


def unit_keys(folder: RunFolder, unit: str | None = None) -> NDArray[np.uint64]:
    """Return a key of each sample's unit, as in :func:`read_units`, shape (n,): one unit has the
    same key in other runs. Of ``answer`` it is that of the sample's id."""
    if unit in (None, QUESTION):
        return _by_question(folder)
    keys = array("Q")
    for place, record in enumerate(folder.sample_records()):
        value = record["id"] if unit == ANSWER else domain_of(record, str(unit))
        alone = value in (None, "", [])
        text = f"alone:{place}" if alone else json.dumps(value, sort_keys=True)
        keys.append(hash64(text))
    return np.array(keys, dtype=np.uint64)


def _by_question(folder: RunFolder) -> NDArray[np.uint64]:
    """Return a key for each sample that those of its unit share."""
    questions = array("Q")
    for number, record in enumerate(folder.sample_records(), 1):
        try:
            questions.append(hash64(question_key(record["question"])))
        except (KeyError, TypeError, AttributeError):
            raise folder.bad_sample(number, "has no question") from None
    keys = np.array(questions, dtype=np.uint64)
    _, place, counts = np.unique(keys, return_inverse=True, return_counts=True)
    repeated = counts[place] > 1
    if repeated.any():
        _part_by_documents(folder, keys, repeated)
    return keys


def _part_by_documents(folder: RunFolder, keys: NDArray[np.uint64], repeated: Bools) -> None:
    """Give answers to one question other keys if they share no document; in place."""
    parents = list(range(len(keys)))

    def root(place: int) -> int:
        while parents[place] != place:
            parents[place] = parents[parents[place]]
            place = parents[place]
        return place

    first: dict[tuple[int, int], int] = {}
    whole: set[int] = set()
    for place, record in enumerate(folder.sample_records()):
        if not repeated[place]:
            continue
        question = int(keys[place])
        texts = [str(one.get("text") or "") for one in record.get("documents") or ()]
        texts = [text for text in texts if not is_blank(text)]
        if not texts:
            whole.add(question)
        for text in texts:
            before = first.setdefault((question, hash64(text)), place)
            parents[root(place)] = root(before)
    for place in np.flatnonzero(repeated).tolist():
        if int(keys[place]) not in whole:
            keys[place] ^= np.uint64(hash64(f"unit {root(place)}"))


def _numbers(keys: NDArray[np.uint64]) -> Places | None:
    _, place, counts = np.unique(keys, return_inverse=True, return_counts=True)
    if (counts <= 1).all():
        return None
    return np.where(counts[place] > 1, place, -1).astype(np.int64)


FEW_WITHOUT_PASSAGES = 0.05
"""Share of the answers without passages up to which they are not named by themselves."""
_LANGUAGE = re.compile(r"in another language \((\w+)\) .* give another (--\w+)")
"""The language that the reason of such an assessment names, and the option."""
_TOLD = re.compile(rb'"fault": "|"%s": 1' % OTHER_LANGUAGE.encode())
_RESPONSE = re.compile(
    rb'"response": "(?: |\\[nrtbf]|\\u[0-9a-f]{4})*"|"%s": true' % CUT.encode(), re.IGNORECASE
)
"""A response of nothing but blanks and escaped characters, or the mark of one that was cut."""
_WORDS = {
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


_OF_ANSWERS = {
    "blank": "blank",
    "cut": "cut at max_tokens",
    "repeated": "the same as another answer to the same question, under another id",
    "copied": "copied word for word from a passage",
}


def silence(folder: RunFolder) -> dict[str, Any]:
    """Return counts for ``summary.json``: ``faults`` by metric and kind, blank and cut answers,
    ``languages`` that models do not read, by metric, the option that names the model, and language.

    Counts of zero are left out.
    """
    faults: dict[str, Counter[str]] = {}
    languages: dict[str, dict[str, Counter[str]]] = {}
    for assessment in _records(folder.assessments_path, _TOLD):
        if isinstance(kind := assessment.get("fault"), str):
            faults.setdefault(assessment["metric"], Counter())[kind] += 1
        elif OTHER_LANGUAGE in assessment["parts"]:
            named = _LANGUAGE.search(assessment["reason"])
            language, option = named.groups() if named else ("unknown", "--entailer")
            by_option = languages.setdefault(assessment["metric"], {})
            by_option.setdefault(option, Counter())[language] += 1
    answers: Counter[str] = Counter()
    for sample in _records(folder.samples_path, _RESPONSE):
        response = sample.get("response")
        answers["blank"] += isinstance(response, str) and is_blank(response)
        answers["cut"] += sample.get(CUT) is True
    result: dict[str, Any] = {}
    if faults:
        result["faults"] = {name: dict(sorted(kinds.items())) for name, kinds in faults.items()}
    if told := {name: count for name, count in answers.items() if count}:
        result["answers"] = told
    if languages:
        result["languages"] = {
            metric: {option: dict(by.most_common()) for option, by in options.items()}
            for metric, options in languages.items()
        }
    return result


def unread(summary: Mapping[str, Any]) -> int:
    """Return how many answers no judge of a metric read, by the metric with the most."""
    options = [one for by in summary.get("languages", {}).values() for one in by.values()]
    return max((sum(languages.values()) for languages in options), default=0)


def remarks(summary: Mapping[str, Any], samples: int) -> list[str]:
    """Return a sentence for each count in a summary of ``samples`` samples.

    A metric that leaves answers open has the figures ``open``, ``mean_low`` and ``mean_high``, one
    that needs passages ``no_passages``, which is named from 5 % of the samples on.
    """
    result = []
    for name, count in summary.get("answers", {}).items():
        how = f"{_be(count)} {_OF_ANSWERS[name]}"
        result.append(f"{count:,} of {samples:,} answers {how}")
    for metric, kinds in summary.get("faults", {}).items():
        for kind, count in kinds.items():
            what = f"samples failed: {_WORDS.get(kind, kind)}"
            if kind == "empty":
                what = f"answers {_be(count)} empty"
            result.append(f"{metric}: {count:,} of {samples:,} {what}")
    for metric, options in summary.get("languages", {}).items():
        for option, languages in options.items():
            count = sum(languages.values())
            which = ", ".join(f"{language} {number:,}" for language, number in languages.items())
            other = BETTER if option == "--entailer" else f"agreement:{BETTER}"
            result.append(
                f"{metric}: {count:,} of {samples:,} answers {_be(count)} not scored, being in "
                f"another language ({which}) than their judge reads; {option} {other} reads them"
            )
    for metric, told in summary.get("metrics", {}).items():
        values = told["values"]
        if count := int(values.get("open") or 0):
            are = "is" if count == 1 else "are"
            result.append(
                f"{metric}: {count:,} of {samples:,} answers {are} open, since replies cannot be "
                f"read: the mean over all is between {values['mean_low']:.3f} and "
                f"{values['mean_high']:.3f}"
            )
        count = int(values.get("no_passages") or 0)
        if count > FEW_WITHOUT_PASSAGES * samples:
            result.append(
                f"{metric}: {count:,} of {samples:,} answers have no passages and are in no "
                "figure; does the file have all passages?"
            )
    for metric, models in summary.get("usage", {}).get("metrics", {}).items():
        if cut := sum(used.get("cut", 0) for used in models.values()):
            calls = sum(used["calls"] for used in models.values())
            result.append(f"{metric}: {cut:,} of {calls:,} replies {_be(cut)} cut at max_tokens")
    return result


def drawn_sentence(drawn: Mapping[str, Any]) -> str:
    """Say of how many answers those of a run are, and how they were drawn."""
    by = f" from {drawn['strata']:,} strata by {', '.join(drawn['by'])}" if "by" in drawn else ""
    units = f" in {drawn['units']:,} units" if drawn["units"] < drawn["answers"] else ""
    of = f"{drawn['answers']:,} of {drawn['of']:,} answers{units}"
    return f"{of}, drawn at random{by} (seed {drawn['seed']})"


def notes(summary: Mapping[str, Any]) -> list[str]:
    """Return a sentence on what was drawn, on what is new, and on what second readers read."""
    result = [f"{drawn_sentence(summary[DRAWN])}."] if DRAWN in summary else []
    if grown := summary.get(GROWN):
        now = max(one["n"] for one in summary["metrics"].values())
        result.append(f"{now - grown['samples']:,} of {now:,} answers are new.")
    return [*result, *second_readings(summary)]


def second_readings(summary: Mapping[str, Any]) -> list[str]:
    """Return a sentence for each metric with a second reader."""
    return [f"{name}: {_second(told)}." for name, told in summary.get("second", {}).items()]


def _second(told: Mapping[str, Any]) -> str:
    """Say what a second reader read, what it changed, and what follows for all answers."""
    reader, alone = f"the second reader ({told['reader']})", told.get("alone", 0)
    in_others = f"alone read {alone:,} answers in languages that the first does not read"
    if not told["answers"] and alone:
        return f"{reader} {in_others}"
    message = (
        f"{reader} read {told['read']:,} of {told['answers']:,} "
        f"answers: {told['lifted']:,} need no look any more, {told['set']:,} others do"
    )
    message += f"; it {in_others}" if alone else ""
    if told["failed"]:
        message += f"; {told['failed']:,} could not be read"
    if left := told["unread"] - told["failed"]:
        message += f"; {left:,} were left when its time was spent"
    if told["share"] is None:
        return f"{message}; {told['without']}"
    message += f". Had it read all, {100 * told['share']:.0f} % would need a look"
    if told["interval"]:
        low, high = (100 * bound for bound in told["interval"])
        return message + (f" ({low:.0f} to {high:.0f} %)" if low < high else "")
    return f"{message} (no interval: {told['without']})"


def _be(count: int) -> str:
    return "was" if count == 1 else "were"


def _records(path: Path, pattern: re.Pattern[bytes]) -> Iterator[dict[str, Any]]:
    """Yield the records of those lines of a file in which ``pattern`` is found."""
    for line in file_lines(path):
        if pattern.search(line):
            yield json.loads(line)
