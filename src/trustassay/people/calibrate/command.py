"""``calibrate``: what a judge's score is worth on labelled answers, and a threshold with a promise.

The steps:

1. Read scores and labels (:mod:`~trustassay.people.calibrate.answers`).
2. Refuse a score that says nothing: constant, reversed, or without a right answer.
3. Decide which labels count: those of a plan's look, or those that were evenly drawn.
4. Find the thresholds (:mod:`~trustassay.people.calibrate.promises`).
5. Measure the reliability, and fit the curve of probabilities.
"""

import math
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from trustassay.core.sample import LONGEST_LINE_MIB
from trustassay.errors import UsageError, trim_traceback
from trustassay.input.records import InputError
from trustassay.people.calibrate.answers import (
    ScoredAnswers,
    SourceOptions,
    read_scored_answers,
)
from trustassay.people.calibrate.promises import (
    PromiseTerms,
    check_terms,
    find_evenly_rated,
    find_promise,
    fit_curve,
    measure_reliability,
)
from trustassay.people.calibrate.result import ALL_ANSWERS, EVENLY_LABELLED, Calibration
from trustassay.people.calibrate.screen import write_lines
from trustassay.people.label.calibration_plan import CalibrationDesign, PlanLook
from trustassay.people.label.plan import read_plan
from trustassay.people.study.answers import as_list, as_paths
from trustassay.runs.calibrator import (
    Calibrator,
    LabelRecord,
    ThresholdPromise,
    read_calibrator,
)
from trustassay.statistics import Bools
from trustassay.statistics.auroc import auroc_interval
from trustassay.statistics.comparison import summarise_distribution
from trustassay.statistics.correlation import auroc
from trustassay.statistics.warranty import choose_looks
from trustassay.text.numbers import amount

DEFAULT_AT_MOST = 0.1
DEFAULT_CONFIDENCE = 0.95


@dataclass(frozen=True)
class _CountedLabels:
    """The labels that a promise rests on."""

    used: Bools
    """Which answers count, shape (n,)."""
    chosen: str
    """How they were chosen, in words."""
    delta: float
    """How often the promises of this look may fail together."""
    not_below: float = -math.inf
    """The score at or below which nothing may be accepted."""
    look: int = 1
    looks: int = 1

    @property
    def is_even(self) -> bool:
        """Whether they stand for all answers."""
        return self.not_below == -math.inf


@trim_traceback
def calibrate(  # noqa: PLR0913 - one argument an option
    source: Any,
    *,
    score: str = "",
    label: str | Sequence[str] = (),
    at_most: float | Sequence[float] | None = None,
    lower: bool = False,
    group: str = "",
    by: str = "",
    exact: bool = False,
    confidence: float = DEFAULT_CONFIDENCE,
    looks: int = 1,
    previous: str | os.PathLike[str] | None = None,
    plan: str | os.PathLike[str] | None = None,
    ratings: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None = None,
    positive: str | Sequence[str] = (),
    at_least: float | None = None,
    machines: Collection[str] = (),
    fields: Mapping[str, str] | None = None,
    sheet: str = "",
    longest_line: int = LONGEST_LINE_MIB,
    judge: str | Sequence[str] = (),
    truth: str = "",
    seed: int = 0,
) -> Calibration:
    """Find the threshold of a score above which at most a share of the answers is wrong.

    Nothing is written until :meth:`Calibration.write`.

    Args:
        source: folders of finished runs; a file (CSV, Excel, Parquet, JSON, JSON Lines, traces); a
            frame; or an iterable of records.
        score: the judge's score: a column, a score in traces, or of runs a metric or a part of one
            (``faithfulness.support``). Not needed where the runs have one metric.
        label: the columns or fields in which people say which answers are right, one for each
            rater. Default, without ratings: ``label``.
        at_most: shares of wrong answers among the accepted ones, each promised by itself. Default:
            that of the plan, or 10 %.
        lower: whether lower scores are better.
        group: the field whose equal values depend on each other; default: the question. ``none``:
            each answer counts by itself.
        by: a field for each of whose values there is a promise of its own; all hold together.
        exact: draw one answer of each group, which makes the promise exact and needs more labels.
        confidence: how often a promise holds, from 0.5 to 1.
        looks: how many times labels are looked at, at 50, 100, 200, ... labels.
        previous: the calibrator of the last look.
        plan: the plan of ``label --for calibrate`` by which the answers were chosen for rating.
        ratings, positive, at_least, machines, fields: as for :func:`trustassay.study`.
        sheet: the sheet of a workbook. longest_line: MiB of the longest record.
        judge: columns that name the judge's model, version or prompt; another value later suspends
            the promise.
        truth: a field with adjudicated labels of some rated answers; the promise then includes the
            wrong answers that raters miss, if these do not depend on the score.
        seed: of the draws of ``exact``.

    Raises:
        RunFolderError: a folder holds no finished run.
        InputError: a column is missing, labels are not of two classes, or the score says nothing.
        UnknownNameError: the runs have no such score.
        UsageError: an option is out of its range.
    """
    design = CalibrationDesign.of(read_plan(Path(plan))) if plan is not None else None
    shares = [at_most] if isinstance(at_most, int | float) else list(at_most or ())
    shares = shares or [design.at_most if design else DEFAULT_AT_MOST]
    lower = lower or (design is not None and design.is_lower_better)
    if fault := check_terms(shares, confidence):
        raise UsageError(fault)
    if design and shares != [design.at_most]:
        raise UsageError(
            f"{plan}: the plan was made for --at-most {100 * design.at_most:g}%; leave it out"
        )
    if design:
        is_other = lower and not design.is_lower_better
        is_other |= confidence not in (DEFAULT_CONFIDENCE, design.confidence)
        if is_other or group or exact or looks > 1:
            raise UsageError(
                f"{plan}: the plan fixes --lower, --confidence, --group, --exact and --looks; "
                "leave them out"
            )
        lower, confidence = design.is_lower_better, design.confidence
    if not 1 <= looks <= 10:
        raise UsageError(f"--looks: expected 1 to 10, got {looks}")
    # 1. Scores and labels.
    options = SourceOptions(
        score,
        as_list(label),
        lower,
        group,
        by,
        as_list(judge),
        truth,
        as_paths(ratings),
        as_list(positive),
        at_least,
        machines,
        fields or {},
        sheet,
        longest_line,
        Path(plan) if plan is not None else None,
    )
    answers = read_scored_answers(source, options)
    if answers.group and not exact and confidence > DEFAULT_CONFIDENCE:
        # Far in the tail, the t-test over groups breaks three times as many promises.
        raise UsageError(
            f"--confidence {confidence:g}: with several answers per {answers.group} at most "
            f"{DEFAULT_CONFIDENCE:g} is possible; --exact allows more"
        )
    # 2. A score that says nothing.
    check_score(answers)
    # 3. The labels that count.
    # 1 - 0.95 is 0.050000000000000044 in floating point.
    delta = round(1 - confidence, 12)
    looks_at = choose_looks(min(shares), delta, looks)
    last = read_calibrator(Path(previous)) if previous is not None else None
    if last is not None:
        _check_previous(last, answers, shares, confidence, len(looks_at), by, str(previous))
    counted = _choose_labels(answers, looks_at, delta, last)
    notes = list(answers.notes)
    if by and (blank := sum(not value for value in answers.by)):
        notes.append(f"{amount(blank, 'answer')} without {by}, never accepted")
    if counted is None and last is not None:
        return _repeat_last(last, answers, looks_at, notes)
    if counted is None:
        n = int(answers.labelled.sum())
        raise InputError(
            f"{answers.source}: look 1 of {len(looks_at)} needs {looks_at[0]} labels; "
            f"{looks_at[0] - n:,} are missing"
        )
    # 4. The promises, for each value of `by` with its part of delta.
    promises = _find_promises(answers, counted, shares, confidence, exact, seed, by)
    if last is not None:
        # Values of `by` may be new, and shares in another order.
        before = {(old.of, old.at_most): old for old in last.promises if not old.without}
        promises = [
            before.get((now.of, now.at_most), now) if now.without else now for now in promises
        ]
    # 5. Reliability, curve and the distribution of all scores.
    used = answers.labelled
    scores, wrong = answers.scores[used], answers.wrong[used]
    has_score = ~np.isnan(answers.scores)
    record = LabelRecord(
        answers.label,
        len(wrong),
        int((1 - wrong).sum()),
        counted.chosen,
        answers.group,
        answers.digest,
        counted.look,
        tuple(options.positive),
        options.at_least,
    )
    calibrator = Calibrator(
        answers.score,
        record,
        tuple(promises),
        tuple(measure_reliability(answers)),
        fit_curve(scores, wrong),
        summarise_distribution(
            answers.score.sign * answers.scores[~answers.failed], answers.groups[~answers.failed]
        ),
        by,
        made_by=f"trustassay {version('trustassay')}",
    )
    accepted = calibrator.accepts(answers.score.sign * answers.scores, answers.by)
    even = counted.used & has_score
    result = Calibration(
        calibrator,
        answers.source,
        len(answers.scores),
        scores,
        wrong,
        int(counted.used.sum()),
        float(answers.wrong[even].mean()) if counted.is_even else None,
        int(answers.lenient[accepted & used].sum()),
        notes,
    )
    return replace(result, lines=write_lines(result))


def check_score(answers: ScoredAnswers) -> None:
    """Refuse a score that cannot separate answers.

    Raises:
        InputError: nothing is labelled, the score is constant, no answer is right, or higher scores
            are wrong more often.
    """
    used, name = answers.labelled, answers.score.name
    n = int(used.sum())
    if not n:
        raise InputError(f"{answers.source}: no answer has both a label and the score {name}")
    scores, right = answers.scores[used], 1 - answers.wrong[used]
    opposite = f"; if labels mean the opposite, add {answers.opposite}" if answers.opposite else ""
    if len(np.unique(scores)) == 1:
        value = answers.score.sign * float(scores[0])
        raise InputError(
            f"{name} is {value:g} in every labelled row ({n:,} in all), so it cannot separate "
            "right from wrong"
        )
    if not right.any():
        raise InputError(f"label {answers.label}: none of the {n:,} answers is right{opposite}")
    area = auroc(scores, right)
    interval = auroc_interval(scores, right, answers.groups[used]) if area is not None else ""
    if area is None or isinstance(interval, str) or interval[1] >= 0.5:
        return
    worse, advice = "lower", "if higher scores are better, leave out --lower"
    if answers.score.sign > 0:
        worse, advice = "higher", "if lower scores are better, add --lower"
    raise InputError(
        f"{name}: answers with {worse} scores are wrong more often (AUROC {area:.2f}, "
        f"{interval[0]:.2f} to {interval[1]:.2f}); {advice}{opposite}"
    )


def is_another_look(last: Calibrator, now: Calibrator) -> bool:
    """Whether labels of this score were looked at before, without a plan for both looks."""
    before = (last.score.name, last.labels.name)
    is_planned = all(promise.looks == 1 for promise in last.promises)
    more = last.labels.n < now.labels.n or not is_planned
    return more and before == (now.score.name, now.labels.name)


def _choose_labels(
    answers: ScoredAnswers,
    looks: Sequence[int],
    delta: float,
    last: Calibrator | None,
) -> _CountedLabels | None:
    """Return the labels of the look that is due; ``None`` if none is."""
    labelled = answers.labelled
    if answers.look is not None:
        return _choose_planned(answers, answers.look)
    n, look = int(labelled.sum()), 1
    if len(looks) > 1:
        look = sum(n >= number for number in looks)
        if look <= (last.labels.look if last is not None else 0):
            return None
    not_below = find_evenly_rated(answers)
    is_complete = n == int((~np.isnan(answers.scores)).sum())
    chosen = ALL_ANSWERS if is_complete else EVENLY_LABELLED
    if not_below > -math.inf:
        edge = answers.score.sign * not_below
        side = "above" if answers.score.sign > 0 else "below"
        chosen = f"only scores {side} {edge:.4g}, where labels are spread evenly"
    used = labelled & (answers.scores > not_below)
    return _CountedLabels(used, chosen, delta / len(looks), not_below, look, len(looks))


def _choose_planned(answers: ScoredAnswers, look: PlanLook) -> _CountedLabels:
    planned = set(look.answers)
    used = np.array([key in planned for key in answers.keys])
    chosen = "a random sample" if look.above == -math.inf else "the better scores"
    return _CountedLabels(
        used, f"{chosen}, chosen by the plan", look.delta, look.above, look.number, look.of
    )


def _check_previous(
    last: Calibrator,
    answers: ScoredAnswers,
    shares: Sequence[float],
    confidence: float,
    looks: int,
    by: str,
    path: str,
) -> None:
    """Raise UsageError if the calibrator of the last look is of another question."""
    before, now = (last.score, last.labels.name, last.by), (answers.score, answers.label, by)
    terms = {(promise.at_most, promise.confidence, promise.looks) for promise in last.promises}
    if before != now or terms != {(share, confidence, looks) for share in shares}:
        raise UsageError(
            f"{path}: was made with another score, label, --by, --at-most, --confidence or "
            "--looks; use the same ones, or another --out"
        )


def _repeat_last(
    last: Calibrator, answers: ScoredAnswers, looks: Sequence[int], notes: Sequence[str]
) -> Calibration:
    """Return the promise of the last look, which stands until the next one."""
    used = answers.labelled
    n, spent = int(used.sum()), last.labels.look
    ahead = "no look is left"
    if spent < len(looks):
        following = looks[spent]
        ahead = f"the next look needs {following:,} labels; {following - n:,} are missing"
    note = f"the promise of look {spent} of {len(looks)} stands; {ahead}"
    result = Calibration(
        last,
        answers.source,
        len(answers.scores),
        answers.scores[used],
        answers.wrong[used],
        last.labels.n,
        None,
        # Which of its labels were disputed is not known any more.
        max(promise.wrong for promise in last.promises),
        [*notes, note],
    )
    return replace(result, lines=write_lines(result))


def _find_promises(
    answers: ScoredAnswers,
    counted: _CountedLabels,
    shares: Sequence[float],
    confidence: float,
    exact: bool,
    seed: int,
    by: str,
) -> list[ThresholdPromise]:
    # A blank value is none: a promise of it would read as one of all answers.
    values = sorted({of for of, used in zip(answers.by, counted.used, strict=True) if used and of})
    if by and not values:
        raise InputError(f"{answers.source}: --by {by}: the field is empty in all labelled answers")
    values = values if by else [""]
    result = []
    for value in values:
        mask = np.array([not by or of == value for of in answers.by])
        for share in shares:
            terms = PromiseTerms(
                share,
                confidence,
                counted.delta / len(values),
                exact,
                counted.look,
                counted.looks,
                counted.not_below,
                seed,
            )
            promise = find_promise(answers.select(mask), counted.used[mask], terms)
            result.append(replace(promise, of=value))
    return result
