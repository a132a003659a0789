"""Watches the promise of a calibrator by a few rated answers a day; ``monitor --audit``.

The steps of a call, under one lock:

1. Read the calibrator, and the state with the days that were counted.
2. Count what is new of each day: rated answers that the threshold accepts, and all scores.
3. Suspend the promise if the judge has changed or the scores are unlike those of the calibration.
4. Withdraw it if more accepted answers are wrong than it allows.
5. Write the state and then the calibrator. A call that is killed in between leaves the result in
   the state, from which the next one writes the calibrator.
"""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from trustassay.compare.run_scores import find_run_day, read_finished_run
from trustassay.core.files import lock_beside, write_atomic
from trustassay.core.json_form import MAX_ITEMS, JsonForm, read_json
from trustassay.errors import UsageError
from trustassay.input.records import InputError, raise_faults
from trustassay.people.calibrate.answers import ScoredAnswers, SourceOptions, read_scored_answers
from trustassay.runs.calibrator import (
    AuditStatus,
    Calibrator,
    check_calibrator,
    read_calibrator,
    write_calibrator,
)
from trustassay.statistics import Bools
from trustassay.statistics.comparison import compare_distribution, kolmogorov_p_value
from trustassay.statistics.intervals import effective_size
from trustassay.statistics.warranty import (
    AUDIT_ALARM,
    AUDIT_DAYS,
    AuditEvidence,
    audit_change_logs,
)
from trustassay.text.numbers import amount, p_equation

DAY_FIELDS = ("day", "date", "timestamp")
"""The columns that may hold the day of an answer, the preferred one first."""
DAYS_COMPARED = 7
"""The last days whose scores are compared together with those of the calibration."""
UNLIKE_P = 0.01 / AUDIT_DAYS
"""The p-value below which scores are unlike: at one test a day, 1 % of the years have a false
one at most."""
MAX_LOG_SHOWN = 25.0
"""The largest log of evidence that is returned; the alarm is far below."""
MAX_ANSWERS_LISTED = 5


@dataclass(frozen=True)
class RatedAnswer(JsonForm):
    """An accepted answer that was rated."""

    wrong: int
    """1 if anybody calls it wrong or could not tell, else 0."""
    score: float
    """Times the sign."""
    of: str
    """The value of the calibrator's ``by``."""


@dataclass
class AuditedDay(JsonForm):
    """What is known of a day."""

    rated: Mapping[str, RatedAnswer] = field(default_factory=dict)
    """The rated accepted answers by id and model."""
    counts: Sequence[int] = ()
    """How many answers have no score, and how many lie up to each point of the calibrator's
    ``spread`` and beyond the last one."""
    size: float = 0.0
    """How many independent scores these are worth."""
    compared: bool = False
    """Whether the scores up to this day were compared."""

    @property
    def wrong(self) -> int:
        """The number of rated answers that are wrong."""
        return sum(answer.wrong for answer in self.rated.values())


@dataclass
class PromiseAuditState(JsonForm):
    """What a call leaves for the next one."""

    promise: str
    """The promise that is watched, so that no other one continues with these days."""
    since: str = ""
    """The day with which the current year begins; earlier rows are ignored."""
    seen: str = ""
    """The last rated day at the end of the last call."""
    days: dict[str, AuditedDay] = field(default_factory=dict)
    status: AuditStatus | None = None
    """What the calibrator's ``audit`` is to be."""

    @property
    def is_withdrawn(self) -> bool:
        """Whether there was an alarm."""
        return self.status is not None and self.status.status == "withdrawn"

    @property
    def rated_days(self) -> list[str]:
        """The days with rated accepted answers, in order."""
        return [day for day, content in sorted(self.days.items()) if content.rated]


@dataclass(frozen=True)
class PromiseAudit(JsonForm):
    """The result of a call."""

    status: AuditStatus | None
    """``None`` before an answer was counted."""
    days: int
    """Days with rated accepted answers, since the audit or the year began."""
    rated: int
    """Rated accepted answers on these days."""
    wrong: int
    """How many of these are wrong."""
    evidence: float
    """The evidence of more wrong answers than promised; an alarm from 20 on."""
    answers: Sequence[str]
    """After an alarm, wrong answers with the best scores since the change."""
    notes: Sequence[str]
    """Remarks on the input."""

    @property
    def is_alarm(self) -> bool:
        """Whether the promise does not hold."""
        return self.status is not None and self.status.status != "holds"


def audit_promise(
    path: Path,
    sources: Sequence[str],
    options: SourceOptions,
    *,
    day: str = "",
    state_path: Path | None = None,
    restart: str = "",
) -> PromiseAudit:
    """Count what is new in the sources, and say whether the promise of a calibrator holds.

    Args:
        path: the calibrator, whose field ``audit`` is written.
        sources: tables, or folders of finished runs, with scores, days and some labels.
        options: where labels are; default: where they were when the calibrator was made. The rest
            is the calibrator's.
        day: the column with the day; default: one of :data:`DAY_FIELDS`, or of a run its day.
        state_path: the state; default: beside the calibrator, as ``calibrator.audit.json``.
        restart: the day from which a suspended promise holds again.

    Raises:
        UsageError, RunFolderError: the state is damaged, in use or of another promise; or the
            promise cannot be restarted. Nothing is written if one is raised.
        InputError: the calibrator or a source cannot be read, or has no promise or no days.
    """
    state_path = state_path or path.with_name(f"{path.stem}.audit.json")
    # The lock is the calibrator's, since two states may be of one calibrator.
    with lock_beside(path):
        # step 1: what was promised, and what is known
        calibrator = read_calibrator(path)
        limits = _find_limits(calibrator, path)
        state = _read_state(state_path, calibrator)
        if restart:
            _restart(state, restart)
        notes = list[str]()
        # step 2: the days of each source
        options = _complete_options(options, calibrator, day)
        for source in sources:
            notes += _count_source(state, calibrator, source, options, is_named=bool(day))
        # step 3 and 4: an alarm is worse than a suspension, so it comes last
        _compare_scores(state, calibrator)
        if not state.is_withdrawn:
            _look_for_alarm(state, limits)
        if state.status is None and state.days:
            state.status = AuditStatus("holds", state.since or min(state.days))
        # step 5: the state first
        write_atomic(state_path, (json.dumps(state.to_dict()) + "\n").encode())
        try:
            if state.status != calibrator.audit:
                write_calibrator(replace(calibrator, audit=state.status), path)
        except OSError as error:
            # An alarm is not hidden by the file that is to say so; the next call writes it.
            if state.status is None or state.status.status == "holds":
                raise
            reason = error.strerror or error
            notes.append(f"{path}: cannot be written ({reason}), so it still accepts answers")
    days = [state.days[day] for day in state.rated_days]
    log = _trace_evidence(state, state.rated_days, limits)[-1] if days else -math.inf
    return PromiseAudit(
        state.status,
        len(days),
        sum(len(day.rated) for day in days),
        sum(day.wrong for day in days),
        float(f"{math.exp(min(log, MAX_LOG_SHOWN)):.3g}"),
        _list_answers(state, calibrator),
        notes,
    )


def _find_limits(calibrator: Calibrator, path: Path) -> dict[str, float]:
    """Return the share that may be called wrong, for each value of ``by`` that has a promise."""
    values = sorted({promise.of for promise in calibrator.promises})
    promises = {of: calibrator.find_promise(of) for of in values}
    # Raters miss some errors here as well, so that fewer are called wrong than are wrong.
    result = {
        of: promise.at_most * (1 - promise.missed)
        for of, promise in promises.items()
        if promise is not None
    }
    if not result:
        raise InputError(f"{path}: has no threshold, so there is no promise to check")
    return result


def _read_state(path: Path, calibrator: Calibrator) -> PromiseAuditState:
    """Read the state, or begin one; UsageError if it is damaged or of another promise."""
    thresholds = [(p.of, p.at_most, p.above) for p in calibrator.promises if not p.without]
    text = json.dumps([calibrator.score.name, calibrator.labels.digest, thresholds])
    promise = hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
    try:
        state: PromiseAuditState = read_json(PromiseAuditState, json.loads(path.read_bytes()))
    except FileNotFoundError:
        return PromiseAuditState(promise, status=calibrator.audit)
    except (ValueError, RecursionError) as error:
        raise UsageError(
            f"{path}: not a state file of monitor --audit ({error}); restore it, or name another "
            "--state"
        ) from None
    if state.promise != promise:
        raise UsageError(f"{path}: belongs to another calibrator; name another --state")
    audit = calibrator.audit
    # What the calibrator says may come from another state: it stands, unless this state was
    # restarted after it.
    if audit is not None and not calibrator.is_valid and not state.is_withdrawn:
        is_later = audit.status == "withdrawn" or audit.day >= state.since
        state.status = audit if is_later else state.status
    return state


def _restart(state: PromiseAuditState, restart: str) -> None:
    """Begin with another day, whose promise holds until something speaks against it."""
    day = _parse_day(restart)
    if not day:
        raise UsageError(f"--restart {restart}: expected a day such as 2026-11-28")
    # The same command again, or one from before the year turned, restarts nothing.
    if day <= state.since:
        return
    if state.status is not None and state.status.status != "holds":
        if state.is_withdrawn:
            raise UsageError(
                f"--restart: the promise has been withdrawn since {state.status.day}; calibrate "
                "again, with labels of answers from that day on"
            )
        if day <= state.status.day:
            raise UsageError(f"--restart {restart}: expected a day after {state.status.day}")
    state.seen, state.status = "", None
    _begin_with(state, day)
    for content in state.days.values():
        content.compared = False


def _begin_with(state: PromiseAuditState, day: str) -> None:
    state.since = day
    state.days = {name: content for name, content in state.days.items() if name >= day}


def _parse_day(text: str) -> str:
    """Return the day of a date or a time, in UTC if it has a zone; empty if it is neither."""
    try:
        moment = datetime.fromisoformat(text)
        return f"{moment.astimezone(UTC).date() if moment.tzinfo else moment.date()}"
    except (ValueError, OverflowError):
        return ""


def _complete_options(options: SourceOptions, calibrator: Calibrator, day: str) -> SourceOptions:
    """Return the options with what the calibrator knows."""
    origin = calibrator.score.source
    label = options.label or ([] if options.ratings else calibrator.labels.name.split(", "))
    return replace(
        options,
        score=calibrator.score.name,
        label=label,
        positive=options.positive or calibrator.labels.positive,
        at_least=calibrator.labels.at_least if options.at_least is None else options.at_least,
        # A metric of a run knows itself which scores are better.
        lower=calibrator.score.sign < 0 and bool(origin.kind == "table" or origin.part),
        group=calibrator.labels.group,
        by=calibrator.by,
        judge=list(origin.judges),
        extra=[day] if day else DAY_FIELDS,
        few_labels=True,
    )


def _count_source(
    state: PromiseAuditState,
    calibrator: Calibrator,
    source: str,
    options: SourceOptions,
    *,
    is_named: bool,
) -> list[str]:
    """Add what is new of each day of a source; return remarks.

    Args:
        is_named: whether the user named the column with the day.
    """
    is_run = calibrator.score.source.kind == "run"
    if is_run != Path(source).is_dir():
        kind = "the folder of a finished run" if is_run else "a table"
        raise InputError(f"{source}: expected {kind}, since the calibrator was made from one")
    answers = read_scored_answers([source], options)
    fallback = find_run_day(Path(source)) if is_run and not is_named else ""
    days = np.array(_read_days(answers, source, options.extra, fallback))
    current = days >= state.since
    judged = current & _find_judged_alike(state, calibrator, answers, source, days, current)
    changed, uncompared, notes = 0, 0, list[str]()
    for day in np.unique(days[judged]).tolist():
        here = judged & (days == day)
        content = state.days.setdefault(day, AuditedDay())
        changed += _count_rated(content, calibrator, answers, here)
        # Where all answers are rated, they were chosen for rating and are not all of the day.
        if np.isnan(answers.wrong[here]).any():
            _count_scores(content, calibrator, answers, here)
        else:
            uncompared += 1
        if len(content.rated) > MAX_ITEMS:
            raise InputError(f"{source}: {day}: expected at most {MAX_ITEMS:,} rated answers a day")
    if np.isnan(answers.wrong).all():
        notes.append(f"{source}: no answer has a label ({', '.join(options.label) or 'ratings'})")
    if uncompared:
        notes.append(
            f"{source}: all answers of {amount(uncompared, 'day')} are rated, so their scores are "
            "not compared with those of the calibration; include the unrated answers, too"
        )
    if changed:
        notes.append(
            f"{source}: {amount(changed, 'rating')} changed since an earlier call; the first "
            "one counts"
        )
    return notes


def _read_days(
    answers: ScoredAnswers, source: str, names: Sequence[str], fallback: str
) -> list[str]:
    """Return the day of each answer; InputError where there is none."""
    result, faults = [], []
    for (known_as, _), fields in zip(answers.keys, answers.fields, strict=True):
        values = (fields.get(name) for name in names)
        value = next((value for value in values if value is not None), fallback)
        result.append(_parse_day(str(value).strip()))
        if not result[-1]:
            faults.append(
                f"{source}: {known_as}: {' or '.join(names)}: expected a day such as 2026-11-28, "
                f"got {str(value)[:40]!r}"
            )
    # A column that is missing is one fault, not one for each answer.
    if (
        faults
        and not any(result)
        and not any(fields.get(n) for fields in answers.fields for n in names)
    ):
        raise InputError(
            f"{source}: no answer has a day ({' or '.join(names)}, such as 2026-11-28); add this "
            "column, or name another one with --day"
        )
    raise_faults(faults)
    return result


def _find_judged_alike(
    state: PromiseAuditState,
    calibrator: Calibrator,
    answers: ScoredAnswers,
    source: str,
    days: NDArray[np.str_],
    current: Bools,
) -> Bools:
    """Return which answers the calibrator's judge scored; suspend the promise for others."""
    origin = calibrator.score.source
    if origin.kind == "run":
        run = read_finished_run(Path(source))
        try:
            check_calibrator(calibrator, run["metrics"], run["backends"], source)
        except InputError as error:
            _suspend(state, days[current], str(error))
            return np.zeros(len(days), dtype=bool)
    alike = np.ones(len(days), dtype=bool)
    for name, known in origin.judges.items():
        values = [str(fields.get(name) or "").strip() for fields in answers.fields]
        if not any(values):
            raise InputError(f"{source}: has no column {name}, which names the judge's version")
        strange = np.array([value not in known for value in values])
        alike &= ~strange
        if (current & strange).any():
            value = values[int(np.flatnonzero(current & strange)[0])]
            reason = f"{name} is {value[:60]!r}, which no labelled answer had"
            _suspend(
                state, days[current & strange], f"{reason}; calibrate with labels of this judge"
            )
    return alike


def _suspend(state: PromiseAuditState, days: NDArray[np.str_], reason: str) -> None:
    # The first cause counts until a restart.
    if len(days) and (state.status is None or state.status.status == "holds"):
        state.status = AuditStatus("suspended", str(min(days)), reason)


def _count_rated(
    content: AuditedDay, calibrator: Calibrator, answers: ScoredAnswers, here: Bools
) -> int:
    """Add the rated accepted answers of a day; return how many have another label than before."""
    # What the threshold accepts counts also while the promise is suspended.
    as_made = replace(calibrator, audit=None)
    accepted = as_made.accepts(calibrator.score.sign * answers.scores, answers.by)
    places = np.flatnonzero(here & accepted & ~np.isnan(answers.wrong))
    if calibrator.labels.group:
        # Answers of a group depend on each other, so one counts a day.
        places = places[np.sort(np.unique(answers.groups[places], return_index=True)[1])]
    changed, rated = 0, dict(content.rated)
    for place in places.tolist():
        name, model = answers.keys[place]
        key = f"{name} ({model})" if model else name
        of = answers.by[place] if calibrator.by else ""
        answer = RatedAnswer(int(answers.wrong[place]), float(answers.scores[place]), of)
        changed += rated.setdefault(key, answer).wrong != answer.wrong
    content.rated = rated
    return changed


def _count_scores(
    content: AuditedDay, calibrator: Calibrator, answers: ScoredAnswers, here: Bools
) -> None:
    """Store the distribution of all scores of a day, unless an earlier call had more of them."""
    if int(here.sum()) <= sum(content.counts):
        return
    scores = calibrator.score.sign * answers.scores[here]
    points = calibrator.spread.points
    bins = np.searchsorted(points, scores[~np.isnan(scores)], "left")
    counts = np.bincount(bins, minlength=len(points) + 1)
    content.counts = [int(np.isnan(scores).sum()), *counts.tolist()]
    content.size = effective_size(answers.groups[here])


def _compare_scores(state: PromiseAuditState, calibrator: Calibrator) -> None:
    """Compare the scores up to each new day with those of the calibration."""
    spread = calibrator.spread
    places = [math.nan, *spread.points, math.inf]
    with_scores = [day for day, content in sorted(state.days.items()) if content.counts]
    for number, day in enumerate(with_scores, 1):
        if state.days[day].compared:
            continue
        state.days[day].compared = True
        window = [state.days[name] for name in with_scores[max(0, number - DAYS_COMPARED) : number]]
        values = np.repeat(places, np.sum([content.counts for content in window], axis=0))
        # At the stored points these values have the distribution of the scores.
        distance = compare_distribution(spread, values, np.arange(len(values))).distance
        p = kolmogorov_p_value(distance, spread.size, sum(content.size for content in window))
        if p < UNLIKE_P:
            reason = (
                f"the scores of the last {amount(len(window), 'day')} are distributed differently "
                f"from those of the calibration (largest distance {distance:.2f}, {p_equation(p)});"
                " monitor needs all answers of a day, not only the accepted ones"
            )
            _suspend(state, np.array([day]), reason)
    for day in with_scores[:-DAYS_COMPARED]:
        state.days[day].counts = ()
    last = with_scores[-DAYS_COMPARED:]
    state.days = {day: c for day, c in state.days.items() if c.rated or day in last}


def _trace_evidence(
    state: PromiseAuditState, days: Sequence[str], limits: Mapping[str, float]
) -> list[float]:
    """Return the log of the evidence after each day: the mean over the promises."""
    evidence, result = {of: AuditEvidence() for of in limits}, []
    for day in days:
        for of, (rated, wrong) in _count_by_promise(state.days[day], limits).items():
            if rated:
                evidence[of] = evidence[of].add_day(rated, wrong, limits[of])
        logs = [item.log_mean for item in evidence.values()]
        result.append(float(np.logaddexp.reduce(logs)) - math.log(len(logs)))
    return result


def _count_by_promise(day: AuditedDay, limits: Mapping[str, float]) -> dict[str, tuple[int, int]]:
    """Return the rated answers of each promise, and how many are wrong."""
    wrong = {of: [item.wrong for item in day.rated.values() if item.of == of] for of in limits}
    return {of: (len(items), sum(items)) for of, items in wrong.items()}


def _look_for_alarm(state: PromiseAuditState, limits: Mapping[str, float]) -> None:
    """Withdraw the promise if the evidence reached the alarm since the last call; else turn the
    year if it is over."""
    while True:
        days = state.rated_days
        year = days[:AUDIT_DAYS]
        for number, log in enumerate(_trace_evidence(state, year, limits), 1):
            # Days before the last look are not looked at again: their late labels count from now
            # on, so that the evidence grows as labels arrive, for which its bound holds.
            if year[number - 1] >= state.seen and log >= AUDIT_ALARM:
                _withdraw(state, year[:number], limits)
                return
        if len(days) <= AUDIT_DAYS:
            state.seen = max(days, default="")
            return
        _begin_with(state, days[AUDIT_DAYS])


def _withdraw(state: PromiseAuditState, days: Sequence[str], limits: Mapping[str, float]) -> None:
    """Withdraw the promise from the most likely day of the change on."""
    counts = [_count_by_promise(state.days[day], limits) for day in days]
    logs = np.zeros(len(days))
    for of, limit in limits.items():
        rated, wrong = np.array([by_promise[of] for by_promise in counts]).T
        logs += audit_change_logs(rated, wrong, limit)
    # The last of equal ones: days without ratings of a promise do not speak for a change.
    first = days[len(days) - 1 - int(np.argmax(logs[::-1]))]
    after = [state.days[day] for day in days if day >= first]
    rated_after, wrong_after = sum(len(d.rated) for d in after), sum(d.wrong for d in after)
    shares = " or ".join(f"{100 * limit:.3g} %" for limit in sorted(set(limits.values())))
    state.status = AuditStatus(
        "withdrawn",
        first,
        f"{wrong_after:,} of {rated_after:,} accepted answers rated since then are wrong, but the "
        f"promise allows at most {shares}; alarm on {days[-1]}",
    )


def _list_answers(state: PromiseAuditState, calibrator: Calibrator) -> list[str]:
    """Return the wrong answers since an alarm's change, those with the best scores first."""
    if state.status is None or not state.is_withdrawn:
        return []
    wrong = [
        (-answer.score, day, key)
        for day, content in state.days.items()
        for key, answer in content.rated.items()
        if answer.wrong and day >= state.status.day
    ]
    sign, name = calibrator.score.sign, calibrator.score.name
    return [
        f"{key} ({day}): {name} {-sign * score:.4g}"
        for score, day, key in sorted(wrong)[:MAX_ANSWERS_LISTED]
    ]
