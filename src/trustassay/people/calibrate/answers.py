"""Reads a judge's scores with the labels of people, from runs or from a table."""

import hashlib
import json
import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from trustassay.core.sample import LONGEST_LINE_MIB
from trustassay.errors import UnknownNameError, UsageError, did_you_mean
from trustassay.input.records import InputError
from trustassay.people.label.calibration_plan import (
    CalibrationDesign,
    PlanLook,
    check_plan,
    find_stage,
    keys_of,
    last_look,
)
from trustassay.people.label.plan import read_plan
from trustassay.people.study.answers import ScoreColumn, StudyAnswers
from trustassay.people.study.labels import (
    DEFAULT_LABEL,
    Label,
    LabelSource,
    check_positive,
    check_two_classes,
    read_answer_labels,
)
from trustassay.people.study.tables import read_source
from trustassay.runs.calibrator import CalibratedScore, ScoreOrigin
from trustassay.runs.needs import list_needed_backends
from trustassay.statistics import Bools, Floats, Places
from trustassay.statistics.resampling import cluster_numbers
from trustassay.text.numbers import amount

MAX_WORDS = 4
"""Different labels that a note lists for each meaning."""
MAX_WORD_SHOWN = 30
"""Characters of a label that a note quotes."""
NO_GROUP = "none"
"""The value of ``group`` with which each answer counts by itself."""
QUESTION = "question"
"""The group by default."""


@dataclass(frozen=True)
class SourceOptions:
    """Where scores and labels are; the arguments of :func:`trustassay.calibrate`."""

    score: str = ""
    label: Sequence[str] = ()
    lower: bool = False
    group: str = ""
    by: str = ""
    judge: Sequence[str] = ()
    truth: str = ""
    ratings: Sequence[Path] = ()
    positive: Sequence[str] = ()
    at_least: float | None = None
    machines: Collection[str] = ()
    fields: Mapping[str, str] = field(default_factory=dict)
    sheet: str = ""
    longest_line: int = LONGEST_LINE_MIB
    plan: Path | None = None
    """The plan of ``label --for calibrate``, whose labels are uneven by design."""
    extra: Sequence[str] = ()
    """Further fields to read, where they are there."""
    few_labels: bool = False
    """Whether a label, or a word that means right, may be in no answer."""


@dataclass(frozen=True)
class ScoredAnswers:
    """All answers of a source, labelled or not. Arrays have shape (n,)."""

    source: str
    """The name of the source, for messages."""
    score: CalibratedScore
    label: str
    """The names of the labels."""
    scores: Floats
    """The scores times the sign, so that higher is better; NaN without."""
    wrong: Floats
    """1 if anybody calls the answer wrong or could not tell, 0 if all call it right, NaN where
    nobody rated it."""
    lenient: Floats
    """The same with answers that are wrong only if all who could tell say so."""
    failed: Bools
    """The answers whose metric failed, so that they have no score."""
    groups: Places
    """The number of each answer's group: answers of a group depend on each other."""
    group: str
    """What the groups are; empty if each answer is one by itself."""
    by: Sequence[str]
    """The value of the field ``by`` of each answer."""
    keys: Sequence[tuple[str, str]]
    """The id and the model of each answer."""
    look: PlanLook | None
    """The last complete look of the plan; ``None`` without a plan."""
    missed: tuple[int, int] | None
    """By adjudicated labels: wrong answers that raters call right, and all wrong ones that they
    rated; ``None`` without adjudicated labels."""
    notes: Sequence[str]
    """Remarks on the input."""
    fields: Sequence[Mapping[str, Any]]
    """The fields of each answer that were requested, labels among them."""
    opposite: str = ""
    """The options that read the labels the other way round, if there are any."""

    @property
    def labelled(self) -> Bools:
        """The answers with a label and a score."""
        return ~np.isnan(self.wrong) & ~np.isnan(self.scores)

    def select(self, places: Bools) -> "ScoredAnswers":
        """Return the answers that a mask selects."""
        chosen = np.flatnonzero(places).tolist()
        return replace(
            self,
            scores=self.scores[places],
            wrong=self.wrong[places],
            lenient=self.lenient[places],
            failed=self.failed[places],
            groups=self.groups[places],
            by=[self.by[place] for place in chosen],
            keys=[self.keys[place] for place in chosen],
            fields=[self.fields[place] for place in chosen],
        )

    @property
    def digest(self) -> str:
        """A digest of the labelled scores and their labels."""
        used = self.labelled
        table = np.stack([self.scores[used], self.wrong[used]])
        return hashlib.blake2b(table.tobytes(), digest_size=8).hexdigest()


def read_scored_answers(source: Any, options: SourceOptions) -> ScoredAnswers:
    """Read the answers of runs or of a table.

    Raises:
        RunFolderError: a folder holds no finished run.
        InputError: the source cannot be read, lacks a column, or its labels are not of two classes.
        UnknownNameError: a run has no such score.
    """
    # 1. The answers with the fields that are needed, and the score.
    names = list(options.label) or ([] if options.ratings else [DEFAULT_LABEL])
    extra = [
        name
        for name in (options.group, options.by, options.truth, *options.judge, *options.extra)
        if name
    ]
    fields = list(dict.fromkeys([*names, *(name for name in extra if name != NO_GROUP)]))
    columns = [options.score] if options.score else []
    answers = read_source(
        source,
        fields,
        scores=columns,
        people=names,
        sheet=options.sheet,
        longest_line=options.longest_line,
    )
    if not options.few_labels:
        _check_fields(answers, options)
    column = _choose_column(answers, options.score)
    # 2. The labels of people, as right and wrong.
    labels = _read_labels(answers, names, options)
    score = _describe_score(answers, column, options)
    nothing = np.full(len(answers.rows), math.nan)
    wrong, lenient = pool_strictly(labels) if labels else (nothing, nothing)
    scores = score.sign * column.as_given
    # 3. What depends on each other, and what a reader has to know.
    failed = np.zeros(len(answers.rows), dtype=bool)
    failed[list(column.failed)] = True
    # A plan draws one answer a question.
    groups, group = _find_groups(answers, NO_GROUP if options.plan else options.group)
    notes = list(answers.notes)
    notes += [
        f"label {label.name}: {label.unread.count:,} of {label.unread.labels:,} labels do not say "
        f"right or wrong and count as wrong: {label.unread.list_words()}"
        for label in labels
        if label.unread
    ]
    readings = [_describe_reading(answers, label) for label in labels if not label.raters]
    notes += [reading for reading in readings if reading]
    if group:
        notes.append(
            f"{amount(len(groups), 'answer')} with {len(np.unique(groups)):,} different values of "
            f"{group}: answers with the same {group} count as dependent (if they are independent: "
            "--group none)"
        )
    for count, what in (
        (int((~np.isnan(wrong) & failed).sum()), "that could not be scored"),
        (int((~np.isnan(wrong) & np.isnan(column.values) & ~failed).sum()), "without a score"),
    ):
        if count:
            notes.append(f"{amount(count, 'labelled answer')} {what}, never accepted")
    return ScoredAnswers(
        next(iter(answers.places_by_run)),
        score,
        ", ".join(dict.fromkeys(label.name for label in labels)),
        scores,
        wrong,
        lenient,
        failed,
        groups,
        group,
        [_read_text(row.fields.get(options.by)) for row in answers.rows],
        keys_of(answers),
        _read_look(answers, column, scores, wrong, options.plan) if options.plan else None,
        _count_missed(answers, wrong, options) if options.truth else None,
        notes,
        [row.fields for row in answers.rows],
        labels[0].opposite if len(labels) == 1 else "",
    )


def _check_fields(answers: StudyAnswers, options: SourceOptions) -> None:
    """Raise InputError for a field that no answer has: without it other things are promised."""
    options_of_fields = [("--group", options.group), ("--by", options.by)]
    options_of_fields += [("--judge", name) for name in options.judge]
    for option, name in options_of_fields:
        if name in ("", NO_GROUP, QUESTION) or any(v is not None for v in answers.field(name)):
            continue
        fields = sorted({field for of_run in answers.label_fields.values() for field in of_run})
        raise InputError(
            f"{next(iter(answers.places_by_run))}: {option} {name}: no answer has this field; "
            f"fields with numbers or short texts: {', '.join(fields)}"
        )


def _choose_column(answers: StudyAnswers, name: str) -> ScoreColumn:
    columns = {column.name: column for column in answers.columns}
    if name:
        if name not in columns:
            raise UnknownNameError(did_you_mean("score", name, columns))
        return columns[name]
    # Parts have to be named: there are too many to choose from.
    scores = [column for column in answers.columns if column.kind == "metric"]
    if len(scores) != 1:
        names = ", ".join(column.name for column in scores) or "none"
        raise InputError(f"--score: name the score to calibrate; available: {names}")
    return scores[0]


def _describe_score(
    answers: StudyAnswers, column: ScoreColumn, options: SourceOptions
) -> CalibratedScore:
    if not column.settings:
        judges = {
            name: sorted({_read_text(row.fields.get(name)) for row in answers.rows})
            for name in options.judge
        }
        origin = ScoreOrigin("table", judges=judges)
    else:
        settings, backends = json.loads(column.settings)
        # Only backends that the metric uses: others may change without invalidating the promise.
        needed = list_needed_backends(column.metric, settings, backends)
        used = {name: value for name, value in backends.items() if name in needed}
        origin = ScoreOrigin("run", column.metric, column.part, settings, used)
        if options.lower and not column.part:
            raise UsageError(
                f"--lower: {column.name} is a metric with a known direction; leave the option out"
            )
    return CalibratedScore(column.name, -1 if column.turned or options.lower else 1, origin)


def _read_labels(
    answers: StudyAnswers, names: Sequence[str], options: SourceOptions
) -> list[Label]:
    if options.few_labels and not options.ratings:
        names = _choose_present(answers, names)
    source = LabelSource(
        (),
        names,
        options.fields,
        options.machines,
        options.positive,
        options.at_least,
        weighted=options.plan is not None,
    )
    # Each file is a label by itself, as each column is: an answer is wrong if any says so.
    parts = [replace(source, ratings=[path]) for path in options.ratings] or [source]
    labels = [label for part in parts for label in read_answer_labels(answers, part)[0]]
    if not options.few_labels:
        check_positive(source, labels)
    for label in labels:
        check_two_classes(label)
    return labels


def _describe_reading(answers: StudyAnswers, label: Label) -> str:
    """Return which words of a label are read as right and which as wrong, the frequent ones."""
    texts: dict[float, Counter[str]] = {1.0: Counter(), 0.0: Counter()}
    for row, value in zip(answers.rows, label.values.tolist(), strict=True):
        text = row.fields.get(label.name)
        # Labels of another file are not among the fields.
        if value in texts and text is not None:
            texts[value][str(text)[:MAX_WORD_SHOWN]] += 1
    # 0 and 1 need no explanation.
    if not {text for counts in texts.values() for text in counts} - {"0", "1", "0.0", "1.0"}:
        return ""
    read = [
        ", ".join(f"{text} ({n:,})" for text, n in counts.most_common(MAX_WORDS)) + f" = {word}"
        for word, counts in (("right", texts[1.0]), ("wrong", texts[0.0]))
        if counts
    ]
    return f"label {label.name}: {'; '.join(read)}"


def _choose_present(answers: StudyAnswers, names: Sequence[str]) -> list[str]:
    """Return the labels that an answer has; raises InputError for one that is misspelt."""
    present = [name for name in names if any(value is not None for value in answers.field(name))]
    fields = {name for of_run in answers.label_fields.values() for name in of_run}
    for name in names:
        message = did_you_mean("label", name, fields)
        # A column without any label yet is no mistake.
        if name not in present and "did you mean" in message:
            raise InputError(f"{next(iter(answers.places_by_run))}: {message}")
    return present


def pool_strictly(labels: Sequence[Label]) -> tuple[Floats, Floats]:
    """Return which answers are wrong if anybody says so, and which if all who could tell say so.

    Whoever could not tell, or skipped the answer, counts as saying that it is wrong in the first
    and not at all in the second. Both have the shape (n,): 1, 0, NaN where nobody rated.
    """
    verdicts = [
        values for label in labels for values in (label.raters or {"": label.values}).values()
    ]
    table = np.stack(verdicts)
    undecided = np.zeros(table.shape[1], dtype=bool)
    for label in labels:
        if label.undecided is not None:
            undecided |= label.undecided
    # Below 1 is also the mean of two ratings by one person, of which one says wrong.
    says_wrong, says_right = (table < 1).any(axis=0), (table == 1).any(axis=0)
    rated = says_wrong | says_right | undecided
    strict = np.where(rated, (says_wrong | undecided).astype(float), math.nan)
    lenient = np.where(rated, (says_wrong & ~says_right).astype(float), math.nan)
    return strict, lenient


def _read_look(
    answers: StudyAnswers, column: ScoreColumn, scores: Floats, wrong: Floats, path: Path
) -> PlanLook:
    """Return the last complete look of a plan, with its edge among ``scores``."""
    plan = read_plan(path)
    design = CalibrationDesign.of(plan)
    check_plan(plan, answers, column.name, column.values)
    labels = {
        key: bool(value)
        for key, value in zip(keys_of(answers), wrong.tolist(), strict=True)
        if not math.isnan(value)
    }
    look = last_look(plan, labels)
    if look is None:
        stage = find_stage(design, plan.draws, labels)
        missing = stage.missing if stage else 0
        raise InputError(
            f"{path}: {amount(missing, 'label')} missing until the first look of the plan; rate "
            "these answers, then run `trustassay label` again"
        )
    # The plan mirrors scores in its own way; the highest score below its edge is the same answer.
    planned = -column.values if design.is_lower_better else column.values
    below = scores[planned <= look.above]
    return look._replace(above=float(below.max(initial=-math.inf)))


def _count_missed(answers: StudyAnswers, wrong: Floats, options: SourceOptions) -> tuple[int, int]:
    """Return how many wrong answers raters call right, and how many wrong ones they rated."""
    if options.truth in options.label:
        raise UsageError(
            f"--truth {options.truth}: is the label; name a field with adjudicated labels"
        )
    (label,) = _read_labels(answers, [options.truth], replace(options, ratings=()))
    truly_wrong = (label.values == 0) & ~np.isnan(wrong)
    n, missed = int(truly_wrong.sum()), int((wrong[truly_wrong] == 0).sum())
    if not n:
        raise InputError(
            f"--truth {options.truth}: no rated answer is wrong by it, so missed errors are unknown"
        )
    if missed == n:
        raise InputError(
            f"--truth {options.truth}: raters call all {n:,} wrong answers right, so no promise "
            "is possible"
        )
    return missed, n


def _find_groups(answers: StudyAnswers, name: str) -> tuple[Places, str]:
    """Return the number of each answer's group, and what groups are; empty without any."""
    singles = np.arange(len(answers.rows))
    if name == NO_GROUP:
        return singles, ""
    if name and name != QUESTION:
        # An answer without a value is a group by itself.
        values = [_read_text(row.fields.get(name)) for row in answers.rows]
        groups = cluster_numbers([text or f"\0{at}" for at, text in enumerate(values)])
    else:
        groups = answers.questions
    has_groups = len(np.unique(groups)) < len(singles)
    return (groups, name or QUESTION) if has_groups else (singles, "")


def _read_text(value: Any) -> str:
    return "" if value is None else str(value).strip()
