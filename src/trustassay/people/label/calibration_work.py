"""``label --for calibrate``: a plan with its answers and ratings, and what it promises so far."""

import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from trustassay.core.files import make_private_folder, open_locked
from trustassay.errors import UsageError, did_you_mean
from trustassay.input.journal import UNEQUAL, is_journal, read_journal
from trustassay.input.records import InputError
from trustassay.metrics.judge.options import Rubric
from trustassay.people.label.calibration_plan import (
    CALIBRATE,
    UNSTEERED_FROM,
    CalibrationDesign,
    PlanLook,
    PlanOrder,
    PlanStage,
    check_plan,
    digest_of,
    draw_next,
    draw_order,
    find_stage,
    keys_of,
    last_look,
)
from trustassay.people.label.plan import (
    AnswerKey,
    LabelPlan,
    PlanBatch,
    append_lines,
    read_plan,
)
from trustassay.people.label.population import check_distinct
from trustassay.people.study.labels import LabelSource, check_two_classes, read_answer_labels
from trustassay.people.study.tables import read_source
from trustassay.statistics.warranty import choose_looks, fewest_labels
from trustassay.text.numbers import amount

DEFAULT_LABELS = 200
DEFAULT_AT_MOST = 0.1
DEFAULT_HOPE = 0.5
CONFIDENCE = 0.95


@dataclass(frozen=True)
class CalibrationPlanOptions:
    """The settings of a new plan; for an existing one ``None`` stands for its own."""

    score: str
    """The score that the plan is made for."""
    is_lower_better: bool = False
    number: int | None = None
    """Labels in all, with one look."""
    at_most: float | None = None
    """The share of accepted answers that may be wrong, between 0 and 1."""
    looks: int | None = None
    """With several, at 50, 100, 200 ... labels."""
    hope: float | None = None
    """The share of answers that is rated first, from .1 to .9."""
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.score:
            raise UsageError("--for calibrate: name the score to calibrate with --score")
        if self.at_most is not None and not 0 < self.at_most < 1:
            raise UsageError(f"--at-most: expected a share such as 10% or 0.1, got {self.at_most}")
        if self.hope is not None and not 0.1 <= self.hope <= 0.9:
            raise UsageError(f"--hope: expected from 10% to 90%, got {self.hope:g}")
        if self.number and self.looks and self.looks > 1:
            raise UsageError("--looks: fixes the number of labels; leave --number out")


def labels_of_rubric(files: Sequence[Path], rubric: Rubric) -> LabelSource:
    """Return files of ratings as labels: an answer is right at the levels that pass."""
    if rubric.numeric:
        return LabelSource(files, at_least=rubric.passes, weighted=True)
    passing = [level for level in rubric.upwards if rubric.values[level] >= rubric.passes]
    return LabelSource(files, positive=passing, weighted=True)


class PlanProgress(NamedTuple):
    """How far the ratings of a plan are."""

    look: PlanLook | None
    """The last complete look."""
    stage: PlanStage | None
    """What is missing to the next; ``None`` at the end."""
    waiting: Sequence[AnswerKey]
    """The drawn answers without a label, in their order."""
    rated: int
    """The drawn answers with one."""


class CalibrationWork:
    """The answers of a source, with a plan that several processes may continue."""

    def __init__(
        self, source: Path, path: Path, labels: LabelSource, options: CalibrationPlanOptions
    ) -> None:
        """Read the answers, and the plan at ``path``, or make one.

        Args:
            source: a run's folder, or a table.
            path: the plan's file. labels: where the labels are, and which mean right.
            options: of a new plan.

        Raises:
            RunFolderError, InputError: the source or the plan cannot be read, or do not fit.
            UsageError: the options are not those of the plan, or promise nothing.
        """
        self.source, self.path, self.labels = source, path, labels
        self.answers = read_source([source], labels.fields, scores=[options.score])
        check_distinct(keys_of(self.answers))
        if not any(row.words for row in self.answers.rows):
            raise InputError(
                f"{source}: no column holds the answers to rate; call the column with the answers "
                "`response`"
            )
        by_name = {column.name: column for column in self.answers.columns}
        if options.score not in by_name:
            raise InputError(f"{source}: {did_you_mean('score', options.score, by_name)}")
        self.scores = by_name[options.score].values
        self.score = options.score
        make_private_folder(path.parent)
        # The lock keeps a second process from beginning another plan in the same file.
        with open_locked(path):
            try:
                if not path.stat().st_size:
                    self._begin(options)
                self.plan = read_plan(path)
            finally:
                if not path.stat().st_size:
                    path.unlink()
        check_plan(self.plan, self.answers, self.score, self.scores)
        self.design = CalibrationDesign.of(self.plan)
        self.order = self._draw_order(self.design, int(self.plan.start["seed"]))
        self._check_options(options)

    def _draw_order(self, design: CalibrationDesign, seed: int) -> PlanOrder:
        scores = -self.scores if design.is_lower_better else self.scores
        hope = 1.0 if design.at_most >= UNSTEERED_FROM else design.hope
        return draw_order(self.answers, scores, hope, seed)

    def _begin(self, options: CalibrationPlanOptions) -> None:
        """Write the first line of a new plan, and its first batch."""
        at_most = DEFAULT_AT_MOST if options.at_most is None else options.at_most
        hope = DEFAULT_HOPE if options.hope is None else options.hope
        several = options.looks is not None and options.looks > 1
        design = CalibrationDesign(
            at_most, CONFIDENCE, hope, options.is_lower_better, (), (), 0, 0, None
        )
        if np.isnan(self.scores).all():
            raise InputError(f"{self.source}: no answer has the score {self.score}")
        order = self._draw_order(design, options.seed)
        answers = len(order.upper) + len(order.lower)
        walks = 1 if order.above is None else 2
        looks = tuple(choose_looks(at_most, 1 - CONFIDENCE, options.looks or 1, walks))
        if not several:
            # Without a number, a small source is rated as a whole.
            looks = (options.number or min(DEFAULT_LABELS, answers),)
        if looks[-1] > answers:
            option = "--looks" if several else "--number"
            raise UsageError(
                f"{option}: needs {looks[-1]:,} questions with a scored answer; {self.source} has "
                f"{answers:,}; choose fewer"
            )
        design = replace(
            design,
            looks=looks,
            sample_upper=tuple(map(order.count_upper, looks)),
            upper_answers=len(order.upper),
            lower_answers=len(order.lower),
            above=order.above,
        )
        if looks[-1] < (needed := fewest_labels(at_most, design.delta_of_walk)):
            raise UsageError(
                f"{self.source}: {amount(looks[-1], 'label')} cannot give a promise: at most "
                f"{100 * at_most:g} % wrong needs {needed:,} even if none is wrong; rate more, or "
                "choose a larger --at-most"
            )
        start = {
            "purpose": CALIBRATE,
            "runs": [str(self.source)],
            "input": digest_of(self.answers, self.scores),
            "unit": "answer",
            # Labels of the upper part say nothing about the lower one, so `study` must refuse them.
            "chances": "equal" if order.above is None else UNEQUAL,
            "scores": [self.score],
            "models": [],
            "seed": options.seed,
            **design.to_dict(),
        }
        append_lines(self.path, start, PlanBatch([], draw_next(design, order, [], {})), 1)

    def _choose_looks(self, looks: int) -> tuple[int, ...]:
        walks = 1 if self.order.above is None else 2
        return tuple(choose_looks(self.design.at_most, 1 - CONFIDENCE, looks, walks))

    def _check_options(self, options: CalibrationPlanOptions) -> None:
        """Raise UsageError for options that differ from those of the plan."""
        design, seed = self.design, int(self.plan.start["seed"])
        fixed = {
            f"--at-most {100 * design.at_most:g}%": options.at_most not in (None, design.at_most),
            f"--hope {100 * design.hope:g}%": options.hope not in (None, design.hope),
            f"--looks {len(design.looks)}": options.looks is not None
            and options.looks > 1
            and self._choose_looks(options.looks) != design.looks,
            f"--number {design.looks[-1]}": options.number not in (None, design.looks[-1]),
            f"--seed {seed}": options.seed not in (0, seed),
            "--lower" if design.is_lower_better else "no --lower": (
                options.is_lower_better and not design.is_lower_better
            ),
        }
        if different := [setting for setting, differs in fixed.items() if differs]:
            raise UsageError(
                f"{self.path}: the plan was made with {' and '.join(different)}, which is fixed "
                "before rating begins; leave the option out, or name another --plan"
            )

    def read_wrong(self) -> dict[AnswerKey, bool]:
        """Return whether each rated answer is wrong: if any rater says so, or cannot tell.

        Raises:
            InputError: the labels cannot be read as right and wrong.
        """
        keys, result = keys_of(self.answers), dict[AnswerKey, bool]()
        sources = [replace(self.labels, fields=[name], ratings=()) for name in self.labels.fields]
        for path in self.labels.ratings:
            is_rated = True
            if is_journal(path):
                journal = read_journal(path).select_rubric(self.labels.columns.get("rating"))
                lines = [line for _, line in journal.last_states()]
                skipped = [line for line in lines if line.get("rating") is None]
                # A rater who skips an answer has seen it and cannot tell. A line, or an answer,
                # without a model matches by id alone.
                models = [(line["item"], line.get("model") or "") for line in skipped]
                without = {item for item, model in models if not model}
                of_items = {item for item, _ in models}
                result |= {
                    key: True
                    for key in keys
                    if key in models or key[0] in (without if key[1] else of_items)
                }
                is_rated = any(line.get("rating") is not None for line in lines)
            if is_rated:
                sources.append(replace(self.labels, fields=(), ratings=[path]))
        for source in sources:
            label = read_answer_labels(self.answers, source)[0][-1]
            check_two_classes(label)
            if label.undecided is not None:
                result |= dict.fromkeys(
                    (keys[place] for place in np.flatnonzero(label.undecided).tolist()), True
                )
            for values in label.raters.values() or [label.values]:
                for place in np.flatnonzero(~np.isnan(values)).tolist():
                    # Below 1 is also a rater's mean of two ratings of which one says wrong.
                    is_wrong = bool(values[place] < 1)
                    result[keys[place]] = result.get(keys[place], False) or is_wrong
        return result

    def advance(self, wrong: Mapping[AnswerKey, bool]) -> None:
        """Append the next batch to the plan if all of it is rated.

        Raises:
            InputError: the plan was damaged meanwhile. OSError: it cannot be written.
        """
        # Read again under the lock: another process may have appended the batch.
        with open_locked(self.path):
            self.plan = read_plan(self.path)
            if batch := draw_next(self.design, self.order, self.plan.draws, wrong):
                append_lines(self.path, None, PlanBatch([], batch), len(self.plan.batches) + 1)
                self.plan = read_plan(self.path)

    def measure_progress(self, wrong: Mapping[AnswerKey, bool]) -> PlanProgress:
        """Return how far the plan is with these labels."""
        drawn = [key for draw in self.plan.draws for key in draw.answers]
        waiting = [key for key in drawn if key not in wrong]
        stage = find_stage(self.design, self.plan.draws, wrong)
        return PlanProgress(last_look(self.plan, wrong), stage, waiting, len(drawn) - len(waiting))

    def to_dict(self, progress: PlanProgress) -> dict[str, Any]:
        """Return the JSON form of the plan and its progress."""
        look, stage = progress.look, progress.stage
        return {
            "plan": str(self.path),
            "score": self.score,
            **self.design.to_dict(),
            "drawn": progress.rated + len(progress.waiting),
            "rated": progress.rated,
            "missing": stage.missing if stage else 0,
            "look": look and {"number": look.number, "of": look.of, "labels": len(look.answers)},
        }

    def describe_missing(self, progress: PlanProgress) -> str:
        """Return in words what is missing to the next look."""
        looks = len(self.design.looks)
        if progress.stage is None:
            return "All answers of the plan are labelled"
        missing = amount(progress.stage.missing, "label")
        if looks == 1:
            return f"{missing} missing until the promise is tested"
        return f"{missing} missing until look {progress.stage.look} of {looks}"


def open_promise(
    source: Path, plan: LabelPlan, files: Sequence[Path], rubric: Rubric
) -> "CalibrationPromise":
    """Return what a plan promises by these files of ratings.

    Args:
        source: a run's folder, or a table. plan: made of it for calibrate.
        files: of ratings; they may be missing. rubric: of the ratings.

    Raises:
        RunFolderError, InputError: the source cannot be read, or the plan is not of it.
    """
    CalibrationDesign.of(plan)
    options = CalibrationPlanOptions(str(plan.start["scores"][0]))
    labels = labels_of_rubric(files, rubric)
    return CalibrationPromise(CalibrationWork(source, plan.path, labels, options))


class CalibrationPromise:
    """What a plan promises while people rate: the text of ``calibrate`` at the last look."""

    def __init__(self, work: CalibrationWork) -> None:
        self.work, self._files = work, work.labels.ratings
        # Handlers of a server call from several threads.
        self._lock = threading.Lock()
        self._labels: object = None
        self.text = ""
        """What was promised at the last complete look; empty before the first."""
        self.missing = ""
        """What is missing to the next look, in words; or why it is not known."""

    def update(self, *, may_grow: bool, unfinished: Collection[str] = ()) -> None:
        """Read the ratings, append the next batch of the plan if it is time, and compute the text.

        Args:
            may_grow: whether the next batch may be appended.
            unfinished: the ids of answers that some of their raters have not rated yet.

        Raises:
            OSError: the plan cannot be written.
        """
        with self._lock:
            try:
                # A file begins with its first rating.
                files = [path for path in self._files if path.exists()]
                self.work.labels = replace(self.work.labels, ratings=files)
                wrong = self.work.read_wrong()
                wrong = {
                    key: is_wrong for key, is_wrong in wrong.items() if key[0] not in unfinished
                }
                self.work.plan = read_plan(self.work.path)
                if may_grow:
                    self.work.advance(wrong)
                progress = self.work.measure_progress(wrong)
                self.missing = self.work.describe_missing(progress)
            except UsageError as error:
                # A rating is stored by now, so the fault is shown beside it.
                self.missing = str(error)
                return
            look = progress.look
            # Between looks the last promise stands, unless one of its labels was changed.
            labels = look and (look.number, [wrong[key] for key in look.answers])
            if labels != self._labels:
                self.text = self._compute() if look else ""
                self._labels = labels

    def _compute(self) -> str:
        from trustassay.people.calibrate.command import calibrate

        work = self.work
        options: dict[str, Any] = {
            "score": work.score,
            "plan": work.path,
            "ratings": list(work.labels.ratings),
            "at_most": work.design.at_most,
            "at_least": work.labels.at_least,
            "positive": work.labels.positive,
        }
        if work.design.is_lower_better:
            options["lower"] = True
        try:
            result: Any = calibrate(work.source, **options)
        except UsageError as error:
            # A refusal says what is missing for a promise.
            return str(error)
        return str(result.text)
