"""Monitoring of one run a day: did figures get worse, and are answers missing?

The steps of a call:

1. Read the state file, which has the counts of each day.
2. Count the new runs, or say why one is left out.
3. Test each figure of each group for a rise (:mod:`~trustassay.statistics.eprocess`), with one
   promise over all days and figures.
4. Look for missing answers, vanished groups and overdue runs (:mod:`~trustassay.live.volume`).
5. Write the state, with the alarms that the webhook is to get.

:func:`post_alarms` sends them afterwards, when they are printed.
"""

import asyncio
import filecmp
import json
import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from trustassay.backends.http import check_address, environment_proxy, read_key, shorten_address
from trustassay.compare.gate_rules import parse_bound
from trustassay.compare.run_scores import (
    describe_changed_judges,
    describe_skipped,
    find_run_day,
    read_finished_run,
)
from trustassay.core.event_loop import run_anywhere
from trustassay.core.files import lock_beside, write_atomic
from trustassay.core.metric import compute_badness
from trustassay.core.outcome import FAILED, NOT_ANSWERED, NOT_SCORED
from trustassay.core.sample import question_key
from trustassay.errors import UsageError, did_you_mean
from trustassay.live.options import Monitoring
from trustassay.live.volume import (
    ALARM_KINDS,
    DAYS_FOR_WEEKDAYS,
    DayVolume,
    Staleness,
    VolumeAlarm,
    find_volume_alarms,
    read_staleness,
    read_volumes,
)
from trustassay.runs.counts import determine_outcome, read_rows
from trustassay.runs.folder import (
    STARTED,
    RunFolder,
    check_settings,
    find_run_model,
    load_metrics,
    read_metric_infos,
)
from trustassay.runs.lines import hash64
from trustassay.runs.units import ANSWER, QUESTION, UNIT, read_domain
from trustassay.statistics import Floats, eprocess
from trustassay.text.numbers import amount, format_figure

if TYPE_CHECKING:
    import aiohttp

MIN_GROUP_ANSWERS = 100
"""The answers of a baseline that a group needs to be watched by itself."""
MAX_ANSWERS_LISTED = 5
"""The most answers of an alarm that are listed."""
ALL_GROUP = "all"
"""The name of the group of all answers."""
WEBHOOK_KEY_VARIABLE = "TRUSTASSAY_WEBHOOK_KEY"
"""The variable with the webhook's key."""
DAYS_LISTED = 7
"""Days whose numbers of answers are printed; ``--json`` has all days."""
ACKNOWLEDGED = "acknowledged"
"""The key of the state under which the last day with handled volume alarms is stored."""
WAITS_S = (0.0, 0.5, 1.0, 2.0)
"""Seconds before each try to post an alarm."""
TIMEOUT_S = 10.0
"""Seconds that the webhook has to answer."""
DELIVERY_S = 60.0
"""Seconds after which no further alarm is posted, as the state is locked meanwhile."""
_PARTS = ("settings", "days", "ends", "probes", "alarms", "judged")
State = dict[str, Any]


class MonitoredFigure(NamedTuple):
    """A figure of a group that is watched."""

    figure: str
    """The metric and the figure, such as faithfulness.failed."""
    group: str
    """Whose answers these are: ``all``, or a value of a field such as model=a."""
    kind: str
    """``change`` against the baseline, or ``line`` against a fixed share."""
    before: float | None
    """The figure in the baseline, or the line; ``None`` where there are no answers."""
    now: float | None
    """The figure since the change, or of the last day; ``None`` where there are no answers."""
    units_now: int
    """The number of questions, or other units, behind ``now``."""
    unit: str
    """The unit of the figure, such as %."""
    evidence: float
    """E of the last day, see :mod:`~trustassay.statistics.eprocess`."""
    needed: float
    """The evidence from which it is an alarm."""
    alarm: str
    """The first day of the alarm; empty if there is none."""
    since: Sequence[str]
    """The day on which the change most probably began, and its 95 % interval; empty if no alarm."""

    def in_words(self) -> str:
        """Return a sentence about what has changed, and since when."""
        before, now = (self.in_unit(value) for value in (self.before, self.now))
        since = " since {} (95 %: {} to {})".format(*self.since) if self.since else ""
        return f"{self.figure} ({self.group}): {before} → {now}{since}; alarm on {self.alarm}"

    def in_unit(self, value: float | None) -> str:
        """Return a value of the figure as text, with its unit."""
        return (
            "no answers"
            if value is None
            else f"{format_figure(value, self.unit)} {self.unit}".strip()
        )


class MonitorResult(NamedTuple):
    """The result of a call of ``monitor``."""

    state: State
    """The content of the state file."""
    streams: list[MonitoredFigure]
    """The figures that are watched, alarms first."""
    days: list[DayVolume]
    """The days since the baseline began, with their numbers of answers."""
    staleness: Staleness
    """The age of the last run."""
    volume_alarms: list[VolumeAlarm]
    """Alarms about the number, the dates and the groups of answers."""
    notes: list[str]
    """Messages that are no alarms."""


def current_day() -> date:
    """Return today's date in UTC, in which the days of runs are given, too."""
    return datetime.now(UTC).date()


def monitor(
    runs: Sequence[Path],
    path: Path,
    options: Monitoring,
    restart: str = "",
    acknowledge: str = "",
    today: date | None = None,
) -> MonitorResult:
    """Add runs to the state file ``path``, and return the figures, alarms and notes.

    The day of a run is the date in its folder's name, else its start in UTC; a run without either
    is an alarm. All runs of a day count. A run that was counted before changes nothing. A new run
    of a day before the last one is left out, which is an alarm (a clock may have gone back).

    Args:
        runs: the folders of finished runs.
        path: the state file.
        options: what is watched and promised.
        restart: the day with which another baseline begins.
        acknowledge: the day up to which alarms about the number of answers are handled.
        today: as :func:`current_day` returns it.

    Raises:
        UsageError, RunFolderError: the state is damaged, in use, or of other options; there is no
            such figure; a run is not finished, or was judged differently. Nothing is written if
            one is raised.
    """
    with lock_beside(path):
        # Through JSON and back: tuples become lists, as in the stored settings that they are
        # compared with.
        state = _read_state(path, json.loads(json.dumps(asdict(options))))
        # step 1: count the runs in the order of their days, since a run of an earlier day than the
        # last is refused
        days_of_runs = sorted((find_run_day(run), run) for run in runs)
        notes, alarms = list[str](), list[VolumeAlarm]()
        for day, run in days_of_runs:
            if day:
                left_out = _add_run(state, day, run, options)
            else:
                text = f"{run}: has no date, so it is left out; rename it, as in 2026-11-28"
                left_out = VolumeAlarm("undated", "", text)
            if isinstance(left_out, VolumeAlarm):
                alarms.append(left_out)
            elif left_out:
                notes.append(left_out)
        # Only of the last day: the runs of the days before are often given again.
        last_day = max(state["days"], default="")
        for day, run in days_of_runs:
            notes += describe_skipped(run) if day == last_day else []
        # step 2: a restart makes a new baseline and forgets the alarms of the old one
        if restart not in ("", state["from"]):
            if restart not in state["days"] or options.fixed:
                raise UsageError(
                    f"--restart {restart}: expected the day of a counted run, and no --fixed"
                )
            state |= {"from": restart, "alarms": {}}
        # step 3: acknowledged alarms of the volume stay away, up to and including that day
        if acknowledge and acknowledge not in state["days"]:
            raise UsageError(f"--acknowledge {acknowledge}: expected the day of a counted run")
        state[ACKNOWLEDGED] = max(acknowledge, state.get(ACKNOWLEDGED, ""))
        # step 4: test the figures; alarms of quality enter the state for the webhook
        streams = list(_evaluate_streams(state, options)) if state["days"] else []
        for stream in (stream for stream in streams if stream.alarm):
            _keep_alarm(
                state, f"{stream.figure} {stream.kind} {stream.group}", stream, stream.in_words()
            )
        days = {
            day: counts for day, counts in sorted(state["days"].items()) if day >= state["from"]
        }
        # step 5: look at the number of answers, the groups, and the age of the last run
        volumes = read_volumes(days, ALL_GROUP)
        alarms += find_volume_alarms(days, volumes, ALL_GROUP)
        alarms = [alarm for alarm in alarms if not alarm.day or alarm.day > state[ACKNOWLEDGED]]
        staleness = read_staleness(sorted(state["days"]), today or current_day())
        if staleness.is_stale or staleness.is_in_future:
            kind = "stale" if staleness.is_stale else "future"
            alarms.append(VolumeAlarm(kind, "", staleness.in_words()))
        for alarm in alarms:
            # The text of a stale or future run changes each day, but one alarm is enough: its key
            # is the day of the last run.
            key = staleness.last if alarm.kind in ("stale", "future") else alarm.text
            _keep_alarm(state, f"{alarm.kind} {key}", alarm, f"{alarm.kind}: {alarm.text}")
        # step 6: written last and as a whole, so that an error above leaves the old state
        write_atomic(path, json.dumps(state).encode())
    streams.sort(key=lambda stream: (not stream.alarm, -stream.evidence))
    return MonitorResult(state, streams, volumes, staleness, alarms, notes)


def _keep_alarm(state: State, key: str, alarm: MonitoredFigure | VolumeAlarm, text: str) -> None:
    """Store an alarm in the state, for the webhook, unless it is there already."""
    content = alarm._asdict() | {"text": f"trustassay: {text}", "sent": False}
    state["alarms"].setdefault(key, content)


def _read_state(path: Path, settings: State) -> State:
    """Read the state, or begin one; UsageError if it is damaged or of other options."""
    try:
        state = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {key: {} for key in _PARTS} | {"settings": settings, "from": ""}
    except ValueError:
        state = None
    if not isinstance(state, dict) or not all(isinstance(state.get(k), dict) for k in _PARTS):
        raise UsageError(
            f"{path}: is damaged, or not a state file of monitor; restore it, or name a new --state"
        )
    # Figures with these names come from an earlier version, where they were other shares.
    if any(name.endswith((".look", ".unscored")) for name in state["ends"]):
        raise UsageError(
            f"{path}: was written by an earlier version, whose shares left answers out; "
            "name a new --state"
        )
    check_settings(path, state["settings"], settings, "days counted with other settings")
    for day in state["days"].values():
        if "runs" not in day:  # an earlier version took one run a day
            day["runs"] = [{"run": day.pop("run"), "digest": day.pop("digest")}]
    return state


def _add_run(state: State, day: str, path: Path, options: Monitoring) -> VolumeAlarm | str | None:
    """Count a run, or return the alarm or the note that says why it is left out."""
    digest, days = f"{hash64((path / 'summary.json').read_text('utf-8')):016x}", state["days"]
    run = read_finished_run(path)
    entry = {"run": str(path), "digest": digest, STARTED: run.get(STARTED)}
    counted = list(days[day]["runs"]) if day in days else []
    # step 1: skip a run that was counted before; a copy of one raises an alarm
    at_path = [
        counted_run
        for counted_run in counted
        if Path(counted_run["run"]).resolve() == path.resolve()
    ]
    for counted_run in counted:
        if counted_run["digest"] != digest:
            continue
        if counted_run in at_path or not Path(counted_run["run"]).exists():
            return None  # counted before, perhaps in another folder
        if _is_copy(Path(counted_run["run"]), path):
            text = f"{path}: is a copy of {counted_run['run']}, so its answers count once"
            return VolumeAlarm("copy", day, text)
    # step 2: refuse a run of an earlier day, since the tests of later days have used its counts
    if days and day < (last := max(days)):
        text = f"{path}: left out: {day} is before {last}, which was counted"
        # Only a note if the run at this path was counted: just its outputs were written again.
        return text if at_path else VolumeAlarm("left out", day, text)
    # step 3: A run of the last day that was continued replaces its own earlier count. A run in the
    # same folder that began at another time is another run, and the one that it overwrote is lost:
    # its answers cannot be counted again together with the new ones.
    other_runs = [
        counted_run
        for counted_run in counted
        if counted_run not in at_path or counted_run.get(STARTED) != entry[STARTED]
    ]
    lost = [
        counted_run["run"]
        for counted_run in other_runs
        if counted_run in at_path or not (Path(counted_run["run"]) / "summary.json").exists()
    ]
    if lost:
        text = f"{path}: left out: it counts only together with the run {lost[0]}, which is gone"
        return VolumeAlarm("left out", day, text)
    # step 4: only runs of the same judge and settings can be compared
    state["judged"] = state["judged"] or {key: run[key] for key in ("metrics", "backends")}
    differences = describe_changed_judges(state["judged"], run, [*run["metrics"]])
    if differences:
        raise UsageError(
            f"{path}: was judged differently from the days before: {'; '.join(differences)}; "
            "score it with the earlier settings, or name a new --state"
        )
    # step 5: all runs of the day are counted anew, since their questions may overlap
    paths = [*(Path(counted_run["run"]) for counted_run in other_runs), path]
    days[day] = {"runs": [*other_runs, entry], **_count_day(state, paths, run, options)}
    return None


def _is_copy(first: Path, second: Path) -> bool:
    """Whether two runs hold the same assessments of the same samples."""
    names = ["samples.jsonl", "assessments.jsonl"]
    equal, _, _ = filecmp.cmpfiles(first, second, names, shallow=False)
    return len(equal) == len(names)


def _read_rows(path: Path, by: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """Yield a row for each sample and metric.

    A row has the sample, its groups, the metric, the assessment, its verdict, and by figure a pair:
    the badness from 0 to 1, and how to show it (the values for 0 and 1, and the unit).
    """
    run = read_finished_run(path)
    infos, metric_by_name = (
        list(read_metric_infos(RunFolder(path), run).values()),
        load_metrics(run),
    )
    for _, sample, assessments in read_rows(RunFolder(path), infos):
        sample.setdefault("model", find_run_model(run))
        group_values = {name: read_domain(sample, name) for name in by or ("model", "domain")}
        groups = [
            ALL_GROUP,
            *(f"{name}={value}" for name, value in group_values.items() if value is not None),
        ]
        for info, assessment in zip(infos, assessments, strict=True):
            # `low` is always the good end, so that badness rises from it
            low, high = info.score_range if info.lower_is_better else info.score_range[::-1]
            metric, values = metric_by_name.get(info.name), dict[str, tuple[float, Any]]()
            if assessment.error is None and assessment.score is not None:
                badness = min(max((assessment.score - low) / (high - low), 0.0), 1.0)
                values["mean"] = (badness, (low, high, ""))
            # Every question counts in the shares, whatever became of its answer.
            outcome, percent = determine_outcome(metric, assessment), (0, 100, "%")
            if metric and metric.counts_outcomes:
                values[FAILED] = (float(outcome.kind == FAILED), percent)
                values[NOT_ANSWERED] = (float(outcome.kind == NOT_ANSWERED), percent)
            else:
                values[NOT_SCORED] = (float(outcome.kind == NOT_SCORED), percent)
            verdict = (
                "failed" if assessment.error is not None else assessment.verdict or "no verdict"
            )
            yield sample, groups, info, assessment, verdict, values


def _count_day(
    state: State, paths: Sequence[Path], run: Mapping[str, Any], options: Monitoring
) -> State:
    """Count a day: sums and numbers of units by figure and group, verdicts, evidence of probes.

    A question that several runs of the day asked is one unit. Where ids are units, equal ids in two
    runs are different answers, except those of probes.
    """
    cells: dict[tuple[str, str], dict[str, list[float]]] = {}
    verdict_counts: dict[str, dict[str, Counter[str]]] = {}
    sums: dict[str, dict[str, tuple[float, int]]] = {}
    paired: dict[str, float] = {}
    unit = "id" if options.fixed or run.get(UNIT) == ANSWER else run.get(UNIT, QUESTION)
    rows_of_day = ((path, *row) for path in paths for row in _read_rows(path, options.by))
    for path, sample, groups, info, _, verdict, values in rows_of_day:
        unit_key = (
            question_key(sample["question"]) if unit == QUESTION else read_domain(sample, unit)
        )
        if not unit_key or (unit == "id" and not options.fixed):
            unit_key = f"{sample['id']} of {path.resolve()}"
        for group in groups:
            verdict_counts.setdefault(info.name, {}).setdefault(group, Counter())[verdict] += 1
            for key, (value, about) in values.items():
                state["ends"][figure := f"{info.name}.{key}"] = about
                of_group = cells.setdefault((figure, group), {})
                of_group.setdefault(str(unit_key), []).append(value)
    for (figure, group), units in cells.items():
        # Each unit counts once, with the mean of its answers.
        means = {key: sum(values) / len(values) for key, values in units.items()}
        sums.setdefault(figure, {})[group] = sum(means.values()), len(means)
        if options.fixed and group == ALL_GROUP:
            # The first day of probes is stored as the one that later days are compared with.
            first = state["probes"].setdefault(figure, means)
            changes = [means[key] - value for key, value in first.items() if key in means]
            paired[figure] = eprocess.probe_evidence(changes)
    return {"sums": sums, "said": verdict_counts, "paired": paired}


def _evaluate_streams(state: State, options: Monitoring) -> Iterator[MonitoredFigure]:
    """Evaluate all watched figures of all groups; UsageError for a figure that does not exist."""
    days = {day: counts for day, counts in sorted(state["days"].items()) if day >= state["from"]}
    first, ends = list(days.values())[: options.baseline], state["ends"]
    bounds = [parse_bound(text, at_least=False) for text in options.at_most]
    chosen = options.figure or _default_figures(ends)
    for wanted in (*chosen, *(bound.name for bound in bounds)):
        if wanted not in ends:
            raise UsageError(did_you_mean("figure to watch", wanted, ends))
    watched = [
        (figure, group)
        for figure in dict.fromkeys(chosen)
        for group in dict.fromkeys(
            [ALL_GROUP, *(g for day in first for g in day["sums"].get(figure, ()))]
        )
        # Small groups would only raise the evidence that every other one needs.
        if group == ALL_GROUP
        or sum(_day_sum(day, figure, group)[1] for day in first) >= MIN_GROUP_ANSWERS
        if group == ALL_GROUP or not options.fixed
    ]
    # Bonferroni: the promise is shared between lines and changes, and then among the figures of
    # each.
    kinds = (1 + bool(bounds)) / options.promise
    for bound in bounds:
        if ends[bound.name][2] != "%" or not 0 < bound.value < 100:
            raise UsageError(
                f"--max {bound.name}: expected a share above 0% and below 100%, "
                f"for example {chosen[-1]}=5%"
            )
        needed, name = len(bounds) * kinds, (bound.name, ALL_GROUP)
        yield _evaluate_stream(days, name, ends[bound.name], needed, options, bound.value / 100)
    for name in watched:
        yield _evaluate_stream(days, name, ends[name[0]], len(watched) * kinds, options)


def _default_figures(figures: Iterable[str]) -> list[str]:
    """Return the figures that are watched by default.

    They are the share of failed questions of each metric, or the mean of a metric without a line;
    then the shares of questions without an answer or a score.
    """
    first: dict[str, str] = {}
    without_answer = []
    for name in sorted(figures):
        metric, _, key = name.rpartition(".")
        if key in (NOT_ANSWERED, NOT_SCORED):
            without_answer.append(name)
        else:
            first.setdefault(metric, name)  # "failed" comes before "mean"
    return [*first.values(), *without_answer]


def _day_sum(day: Mapping[str, Any], figure: str, group: str) -> Sequence[float]:
    """Return the sum of a figure over the units of a group on a day, and their number."""
    result: Sequence[float] = day["sums"].get(figure, {}).get(group, (0.0, 0))
    return result


def _evaluate_stream(
    days: State,
    name: tuple[str, str],
    ends: Any,
    needed: float,
    options: Monitoring,
    line: float = 0.0,
) -> MonitoredFigure:
    """Evaluate a figure of a group against the baseline, or against a line above 0.

    Args:
        days: the days since the baseline began, by name.
        name: the figure and the group.
        ends: the values that badness 0 and 1 stand for, and the unit.
        needed: the evidence from which it is an alarm.
        options: the options.
        line: the share that it is compared with; 0 for the baseline.
    """
    names, (low, high, unit), least = list(days), ends, math.log(needed)
    s, n = np.array(
        [_day_sum(day_counts, *name) for day_counts in days.values()], dtype=np.float64
    ).T
    # days of the baseline: none with a line; with probes the first day is compared with
    b = 0 if line else 1 if options.fixed else options.baseline
    logs = eprocess.answers_evidence(s, n, b, line or None)
    if options.fixed:
        # Probes are paired with their first day: the evidence of single days adds up.
        daily = [day_counts["paired"].get(name[0], 0.0) for day_counts in days.values()][1:]
        logs = np.logaddexp.accumulate(np.array(daily)) + eprocess.LOG_DAY_SHARE
    over: Iterator[int] = iter((b + np.flatnonzero(logs >= least)).tolist())
    log, since = float(logs[-1]) if len(logs) else -math.inf, list[int]()
    if len(logs) and not line:
        bad = (
            n - s if options.fixed and s[-1] * n[0] < s[0] * n[-1] else s
        )  # a judge may get milder
        weekdays = [
            date.fromisoformat(day).weekday() if b >= DAYS_FOR_WEEKDAYS else 0 for day in names
        ]

        def by_days(end: int) -> tuple[Floats, float]:
            starts = eprocess.starts_evidence(bad[:end], n[:end], weekdays[:end], b)
            return starts, float(np.logaddexp.reduce(starts)) + eprocess.LOG_DAY_SHARE

        starts, log_by_days = by_days(len(s))
        since = [b + place for place in eprocess.change_day(starts)]
        # Both kinds of evidence must suffice: answers as units raise false alarms where days differ
        # by themselves (weekdays), and days as units do so for shares of a few counts.
        if options.unit == "day" and not options.fixed:
            log, over = min(log, log_by_days), (i for i in over if by_days(i + 1)[1] >= least)
    # an alarm stays, so its first day counts
    alarm = next(over, None)
    # "now" is everything since the change, or the last day while nothing has changed
    now = len(s) - 1 if alarm is None else since[0] if since else alarm
    sums = [(float(s[:b].sum()), float(n[:b].sum())), (float(s[now:].sum()), float(n[now:].sum()))]
    if line:
        sums[0] = (line, 1.0)
    before, after = (low + (high - low) * total / count if count else None for total, count in sums)
    alarm_day, evidence = "" if alarm is None else names[alarm], float(f"{math.exp(log):.3g}")
    since_days = [names[place] for place in since] if alarm_day else []
    kind = "line" if line else "change"
    units_now = int(sums[1][1])
    return MonitoredFigure(
        *name, kind, before, after, units_now, unit, evidence, needed, alarm_day, since_days
    )


def list_volumes(days: Sequence[DayVolume]) -> str:
    """Return a line with the numbers of answers of the last days."""
    if not days:
        return "answers per day: none"
    numbers = ", ".join(f"{volume.day[5:]}: {volume.answers:,}" for volume in days[-DAYS_LISTED:])
    usual = days[-1].usual
    return f"answers per day: {numbers}" + ("" if usual is None else f"; usually {usual:,.0f}")


def json_content(result: MonitorResult) -> dict[str, Any]:
    """Return the object that ``--json`` prints."""
    staleness = result.staleness
    return {
        "days": len(result.days),
        "streams": [stream._asdict() for stream in result.streams],
        "volume": [volume._asdict() for volume in result.days],
        "staleness": {**staleness._asdict(), "is_stale": staleness.is_stale},
        "volume_alarms": [alarm._asdict() for alarm in result.volume_alarms],
    }


def prometheus_text(result: MonitorResult) -> str:
    """Return the text that ``--prometheus`` writes: evidence (1 is an alarm) and volume.

    The last run has its time there, not its age, since the file is read long after it was written.
    """
    lines = ["# TYPE trustassay_evidence gauge"]
    for stream in result.streams:
        names = ("figure", "group", "kind")
        labels = ",".join(f"{name}={json.dumps(getattr(stream, name))}" for name in names)
        lines.append(f"trustassay_evidence{{{labels}}} {stream.evidence / stream.needed:.6g}")
    kinds = Counter(alarm.kind for alarm in result.volume_alarms)
    lines.append("# TYPE trustassay_volume_alarms gauge")
    # kinds without an alarm are written as 0, so that a rule for alerts sees them end
    lines += [f'trustassay_volume_alarms{{kind="{kind}"}} {kinds[kind]}' for kind in ALARM_KINDS]
    if result.days:
        lines += [
            "# TYPE trustassay_answers gauge",
            f"trustassay_answers {result.days[-1].answers}",
        ]
    if result.staleness.last:
        midnight = datetime.fromisoformat(result.staleness.last).replace(tzinfo=UTC)
        name = "trustassay_last_run_timestamp_seconds"
        lines += [f"# TYPE {name} gauge", f"{name} {midnight.timestamp():.0f}"]
    return "\n".join([*lines, ""])


def list_differences(alarm: MonitoredFigure, state: State, by: Sequence[str]) -> Iterator[str]:
    """Yield the verdict that became more frequent since an alarm's change, then some examples."""
    metric, since = alarm.figure.rpartition(".")[0], (*alarm.since, alarm.alarm)[0]
    counts = {True: Counter[str](), False: Counter[str]()}
    for day, day_counts in state["days"].items():
        if day >= state["from"]:
            counts[day >= since].update(day_counts["said"].get(metric, {}).get(alarm.group, {}))
    after, before = (
        {k: v / counter.total() for k, v in counter.items()} for counter in counts.values()
    )
    risen = max(after, key=lambda verdict: after[verdict] - before.get(verdict, 0.0))
    shares = f"{before.get(risen, 0.0):.1%} of the answers before, {after[risen]:.1%} since"
    yield f"{risen}: {shares}; examples:"
    # Examples are of the last day: its runs are the ones that most likely still exist.
    paths = [Path(counted_run["run"]) for counted_run in state["days"][max(state["days"])]["runs"]]
    rows_of_day = (row for path in paths if path.exists() for row in _read_rows(path, by))
    try:
        listed = [
            (
                -(compute_badness(info, assessment) or 0.0),
                assessment.id,
                sample["question"],
                assessment.error or assessment.reason,
            )
            for sample, groups, info, assessment, verdict, _ in rows_of_day
            if info.name == metric and alarm.group in groups and verdict == risen
        ]
    # A run that was damaged since it was counted must not hide the alarms that are not yet printed.
    except Exception as error:
        yield f"no examples, since a run cannot be read: {error}"
        return
    for _, name, question, reason in sorted(listed)[:MAX_ANSWERS_LISTED]:
        yield f"{question} ({name}): {reason}"


def check_webhook(url: str) -> None:
    """Raise BackendError or UsageError if the address or the key of a webhook cannot be used."""
    check_address(url, "--webhook")
    read_key(WEBHOOK_KEY_VARIABLE)


def post_alarms(url: str, path: Path) -> str:
    """Post the alarms of a state that were not posted yet; return what failed, or an empty text.

    The state notes each posted alarm, so a failed one is tried again by the next call. Nothing is
    raised, whatever the server replies: a fault of the delivery is never a fault of the alarms.

    Args:
        url: the address, see :func:`check_webhook`. Only its scheme and host are in the text.
        path: the state file.
    """
    try:
        with lock_beside(path):
            state = json.loads(path.read_bytes())
            alarms = [alarm for alarm in state["alarms"].values() if not alarm["sent"]]

            # after each alarm, so that a crash does not post one of them twice
            def save() -> None:
                write_atomic(path, json.dumps(state).encode())

            reason = run_anywhere(lambda: _post_each(url, alarms, save)) if alarms else ""
        what = f"{amount(sum(not alarm['sent'] for alarm in alarms), 'alarm')} not delivered"
    except Exception as error:
        what = "the state does not record which alarms were delivered"
        # The text of any other error may have the address in it.
        is_of_state = isinstance(error, UsageError | OSError)
        reason = str(error) if is_of_state else type(error).__name__
    message = f"--webhook {shorten_address(url)}: {what} ({reason}); the next call tries again"
    return message if reason else ""


async def _post_each(url: str, alarms: Sequence[State], save: Callable[[], None]) -> str:
    """Post alarms, and note in each that it was sent; return the last reason of a failure.

    Args:
        url: the address.
        alarms: those of the state.
        save: writes the state.
    """
    import aiohttp

    reason, deadline = "", time.monotonic() + DELIVERY_S
    headers = {"Content-Type": "application/json"}
    if key := read_key(WEBHOOK_KEY_VARIABLE):
        headers["Authorization"] = f"Bearer {key}"
    async with aiohttp.ClientSession(
        headers=headers,
        # For the whole reply: a server may send a byte from time to time for ever.
        timeout=aiohttp.ClientTimeout(total=TIMEOUT_S),
        cookie_jar=aiohttp.DummyCookieJar(),
    ) as session:
        for alarm in alarms:
            # After a failure the server is probably down, and the others get one try.
            for wait in WAITS_S[:1] if reason else WAITS_S:
                if time.monotonic() > deadline:
                    return reason
                await asyncio.sleep(wait)
                fault = await _post_alarm(session, url, alarm)
                if not fault:
                    alarm["sent"] = True
                    save()
                    break
            else:
                reason = fault
    return reason


async def _post_alarm(session: "aiohttp.ClientSession", url: str, alarm: State) -> str:
    """Post an alarm once; return why it was not taken, or an empty text."""
    import aiohttp
    from yarl import URL

    try:
        async with session.post(
            # As it was given: an address may be signed.
            URL(url, encoded=url.isascii()),
            data=json.dumps(alarm).encode(),
            # A redirect would send the key elsewhere.
            allow_redirects=False,
            proxy=environment_proxy(url),
        ) as reply:
            return "" if 200 <= reply.status < 300 else f"status {reply.status}"
    except Exception as error:  # whatever a server can cause
        reasons = {
            TimeoutError: f"no reply within {TIMEOUT_S:g} s",
            aiohttp.ClientConnectorCertificateError: "its certificate is not valid",
            aiohttp.ClientConnectorError: "no connection",
            aiohttp.ClientResponseError: "its reply is not HTTP",
        }
        matches = (reason for kind, reason in reasons.items() if isinstance(error, kind))
        return next(matches, type(error).__name__)
