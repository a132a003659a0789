"""A run a day: whether figures got worse, with one promise over all days and figures, and whether
answers are missing (:mod:`~trustassay_serve.volume`)."""

import filecmp
import json
import math
import os
import re
import time
import urllib.request
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, date, datetime
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from trustassay.compare.gate_rules import parse_bound
from trustassay.compare.run_scores import changed_judges, read_finished_run
from trustassay.core.outcome import FAILED, NOT_ANSWERED, NOT_SCORED
from trustassay.errors import UsageError, did_you_mean
from trustassay.files import alone, write_whole
from trustassay.metric import badness_of
from trustassay.runs.counts import ANSWER, QUESTION, UNIT, domain_of, rows
from trustassay.runs.folder import (
    STARTED,
    RunFolder,
    check_settings,
    metric_infos,
    metrics_of,
    start_of,
)
from trustassay.runs.lines import hash64
from trustassay.runs.outcomes import outcome_of
from trustassay.sample import question_key
from trustassay.show.text import rounded
from trustassay.statistics import Floats
from trustassay_serve import eprocess
from trustassay_serve.options import Monitoring
from trustassay_serve.volume import (
    ALARM_KINDS,
    WEEKS,
    DayVolume,
    Staleness,
    VolumeAlarm,
    find_volume_alarms,
    read_staleness,
    read_volumes,
)

FEWEST, LISTED, ALL, KEY = 100, 5, "all", "TRUSTASSAY_WEBHOOK_KEY"
"""Answers of a baseline from which a group is watched by itself; answers listed of an alarm."""
DAYS_LISTED = 7
"""Days whose numbers of answers are printed; ``--json`` has all."""
ACKNOWLEDGED = "acknowledged"
"""The key in the state of the last day whose volume alarms were dealt with."""
WAITS_S, TIMEOUT_S = (0.0, 0.5, 1.0, 2.0), 10.0
_DAY = re.compile(r"(?<!\d)20\d\d-(?:0[1-9]|1[0-2])-(?:[0-2]\d|3[01])(?!\d)")
_PARTS = ("settings", "days", "ends", "probes", "alarms", "judged")
State = dict[str, Any]


class Stream(NamedTuple):
    """A figure of a group, before (or its line) and now: since the change, or on the last day.

    before, now: ``None`` where there are no answers. units_now: the number of questions, or other
    units, behind ``now``. evidence: E of the last day; it is an alarm from ``needed`` on. alarm:
    the first day of one, or "". since: where the change most probably began, and the ends of its
    95 % interval.
    """

    figure: str
    group: str
    kind: str
    before: float | None
    now: float | None
    units_now: int
    unit: str
    evidence: float
    needed: float
    alarm: str
    since: Sequence[str]

    def in_words(self) -> str:
        """Say what moved, and since when."""
        before, now = (self.in_unit(one) for one in (self.before, self.now))
        since = " since {} (95 %: {} to {})".format(*self.since) if self.since else ""
        return f"{self.figure} ({self.group}): {before} → {now}{since}; alarm on {self.alarm}"

    def in_unit(self, value: float | None) -> str:
        """Write a value of the figure with its unit."""
        return "no answers" if value is None else f"{rounded(value, self.unit)} {self.unit}".strip()


class Monitored(NamedTuple):
    """What is known after a call: the state, its figures, alarms first, its days, how old the last
    one is, what is odd about the answers' number, dates and groups, and notes."""

    state: State
    streams: list[Stream]
    days: list[DayVolume]
    staleness: Staleness
    volume_alarms: list[VolumeAlarm]
    notes: list[str]


def current_day() -> date:
    """Return today's date in UTC, as the days of runs are."""
    return datetime.now(UTC).date()


def monitor(
    runs: Sequence[Path],
    path: Path,
    options: Monitoring,
    restart: str = "",
    acknowledge: str = "",
    today: date | None = None,
) -> Monitored:
    """Add the days of runs to the state ``path``; return what is known then.

    A day is the date in a folder's name, else that of the run's start in UTC; a run without either
    is an alarm. All runs of a day count. A run that was counted changes nothing; another one of a
    day before the last is left out, which is an alarm, as a clock may go back.

    Args:
        restart: the day with which another baseline begins.
        acknowledge: the day until which alarms about the number of answers were dealt with.
        today: as of :func:`current_day`.

    Raises:
        UsageError, RunFolderError: the state is damaged, in use, or of other options; no such
            figure; a run is not finished, or was judged in another way. Nothing is written then.
    """
    with _locked(path):
        state = _read(path, json.loads(json.dumps(asdict(options))))
        days_of_runs = sorted((_day_of(run), run) for run in runs)
        notes, alarms = list[str](), list[VolumeAlarm]()
        for day, run in days_of_runs:
            if day:
                _add(state, day, run, options, alarms, notes)
            else:
                text = f"{run}: has no date, so it is left out; rename it, as in 2026-11-28"
                alarms.append(VolumeAlarm("undated", "", text))
        if restart not in ("", state["from"]):
            if restart not in state["days"] or options.fixed:
                raise UsageError(f"--restart {restart}: expected a day of a run, and no --fixed")
            state |= {"from": restart, "alarms": {}}
        if acknowledge and acknowledge not in state["days"]:
            raise UsageError(f"--acknowledge {acknowledge}: expected a day of a run")
        state[ACKNOWLEDGED] = max(acknowledge, state.get(ACKNOWLEDGED, ""))
        streams = list(_streams(state, options)) if state["days"] else []
        for one in (one for one in streams if one.alarm):
            _keep_alarm(state, f"{one.figure} {one.kind} {one.group}", one, one.in_words())
        days = {day: one for day, one in sorted(state["days"].items()) if day >= state["from"]}
        volumes = read_volumes(days, ALL)
        alarms += find_volume_alarms(days, volumes, ALL)
        alarms = [one for one in alarms if not one.day or one.day > state[ACKNOWLEDGED]]
        staleness = read_staleness(sorted(state["days"]), today or current_day())
        if staleness.is_stale or staleness.is_in_future:
            kind = "stale" if staleness.is_stale else "future"
            alarms.append(VolumeAlarm(kind, "", staleness.in_words()))
        for alarm in alarms:
            # of a stale monitor the text changes each day, and one alarm is enough
            key = staleness.last if alarm.kind in ("stale", "future") else alarm.text
            _keep_alarm(state, f"{alarm.kind} {key}", alarm, f"{alarm.kind}: {alarm.text}")
        write_whole(path, json.dumps(state).encode())
    streams.sort(key=lambda one: (not one.alarm, -one.evidence))
    return Monitored(state, streams, volumes, staleness, alarms, notes)


def _keep_alarm(state: State, key: str, alarm: Stream | VolumeAlarm, text: str) -> None:
    """Put an alarm into the state, for the webhook, unless it is there."""
    content = alarm._asdict() | {"text": f"trustassay: {text}", "sent": False}
    state["alarms"].setdefault(key, content)


def _locked(path: Path) -> IO[bytes]:
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        return alone(path.with_name(f".{path.name}.lock"), wait=False)
    except BlockingIOError:
        raise UsageError(f"{path}: another process is using it; try again when it ends") from None


def _read(path: Path, settings: State) -> State:
    try:
        state = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {key: {} for key in _PARTS} | {"settings": settings, "from": ""}
    except ValueError:
        state = None
    if not isinstance(state, dict) or not all(isinstance(state.get(k), dict) for k in _PARTS):
        raise UsageError(f"{path}: is no state of monitor; restore it, or begin another --state")
    if any(name.endswith((".look", ".unscored")) for name in state["ends"]):
        raise UsageError(
            f"{path}: is of a version whose shares left answers out; begin another --state"
        )
    check_settings(path, state["settings"], settings, "the days of another monitor")
    for day in state["days"].values():
        if "runs" not in day:  # an earlier version took one run a day
            day["runs"] = [{"run": day.pop("run"), "digest": day.pop("digest")}]
    return state


def _day_of(path: Path) -> str:
    """Return the day of a run, empty if neither its name nor its ``run.json`` says one."""
    start = start_of(read_finished_run(path))
    result = f"{start.date()}" if start else ""
    for match in _DAY.findall(path.resolve().name):
        with suppress(ValueError):  # as of 2026-02-30
            result = f"{date.fromisoformat(match)}"
    return result


def _add(
    state: State,
    day: str,
    path: Path,
    options: Monitoring,
    alarms: list[VolumeAlarm],
    notes: list[str],
) -> None:
    """Put a run's day into the state, or add why it is left out to the alarms or notes."""
    digest, days = f"{hash64((path / 'summary.json').read_text('utf-8')):016x}", state["days"]
    run = read_finished_run(path)
    entry = {"run": str(path), "digest": digest, STARTED: run.get(STARTED)}
    counted = list(days[day]["runs"]) if day in days else []
    at_path = [one for one in counted if Path(one["run"]).resolve() == path.resolve()]
    for one in counted:
        if one["digest"] != digest:
            continue
        if one in at_path or not Path(one["run"]).exists():
            return  # it was counted, perhaps at another place
        if _is_copy(Path(one["run"]), path):
            text = f"{path}: is a copy of {one['run']}, so its answers count once"
            alarms.append(VolumeAlarm("copy", day, text))
            return
    if days and day < (last := max(days)):
        text = f"{path}: left out: {day} is before {last}, which was counted"
        if at_path:  # its outputs were written again
            notes.append(text)
        else:
            alarms.append(VolumeAlarm("left out", day, text))
        return
    # A run of the last day that went on takes the place of what was counted of it. A run that began
    # at another time is another one, and what it overwrote is gone.
    others = [one for one in counted if one not in at_path or one.get(STARTED) != entry[STARTED]]
    lost = [
        one["run"]
        for one in others
        if one in at_path or not (Path(one["run"]) / "summary.json").exists()
    ]
    if lost:
        text = f"{path}: left out: it counts only together with the run {lost[0]}, which is gone"
        alarms.append(VolumeAlarm("left out", day, text))
        return
    state["judged"] = state["judged"] or {key: run[key] for key in ("metrics", "backends")}
    if differ := changed_judges(state["judged"], run, [*run["metrics"]]):
        differ = [f"{path}: was judged otherwise than the days before: {'; '.join(differ)}"]
        raise UsageError(f"{differ[0]}; score it in the same way, or begin another --state")
    paths = [*(Path(one["run"]) for one in others), path]
    days[day] = {"runs": [*others, entry], **_counted(state, paths, run, options)}


def _is_copy(first: Path, second: Path) -> bool:
    """Whether two runs hold the same assessments of the same samples."""
    names = ["samples.jsonl", "assessments.jsonl"]
    equal, _, _ = filecmp.cmpfiles(first, second, names, shallow=False)
    return len(equal) == len(names)


def _rows(path: Path, by: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """Yield by sample and metric: the sample, its groups, the metric, the assessment, its verdict,
    and by figure the badness, 0 to 1, and what it is shown as: the values of 0 and 1, the unit."""
    run = read_finished_run(path)
    infos, here = list(metric_infos(RunFolder(path), run).values()), metrics_of(run)
    for _, sample, said in rows(RunFolder(path), infos):
        sample.setdefault("model", run["backends"].get("model"))
        named = {name: domain_of(sample, name) for name in by or ("model", "domain")}
        groups = [ALL, *(f"{name}={value}" for name, value in named.items() if value is not None)]
        for info, one in zip(infos, said, strict=True):
            low, high = info.score_range if info.lower_is_better else info.score_range[::-1]
            metric, values = here.get(info.name), dict[str, tuple[float, Any]]()
            if one.error is None and one.score is not None:
                badness = min(max((one.score - low) / (high - low), 0.0), 1.0)
                values["mean"] = (badness, (low, high, ""))
            # Every question counts in the shares, whatever became of its answer.
            outcome, percent = outcome_of(metric, one), (0, 100, "%")
            if metric and metric.counts_outcomes:
                values[FAILED] = (float(outcome.kind == FAILED), percent)
                values[NOT_ANSWERED] = (float(outcome.kind == NOT_ANSWERED), percent)
            else:
                values[NOT_SCORED] = (float(outcome.kind == NOT_SCORED), percent)
            verdict = "failed" if one.error is not None else one.verdict or "no verdict"
            yield sample, groups, info, one, verdict, values


def _counted(
    state: State, paths: Sequence[Path], run: Mapping[str, Any], options: Monitoring
) -> State:
    """Return sums and numbers of units by figure and group, verdicts, and evidence of probes.

    A question that several runs of the day asked is one unit; an answer by its id is one of its run
    alone, unless it is that of a probe.
    """
    cells: dict[tuple[str, str], dict[str, list[float]]] = {}
    said: dict[str, dict[str, Counter[str]]] = {}
    sums: dict[str, dict[str, tuple[float, int]]] = {}
    paired: dict[str, float] = {}
    unit = "id" if options.fixed or run.get(UNIT) == ANSWER else run.get(UNIT, QUESTION)
    rows_of_day = ((path, *row) for path in paths for row in _rows(path, options.by))
    for path, sample, groups, info, _, verdict, values in rows_of_day:
        unit_key = question_key(sample["question"]) if unit == QUESTION else domain_of(sample, unit)
        if not unit_key or (unit == "id" and not options.fixed):
            unit_key = f"{sample['id']} of {path.resolve()}"
        for group in groups:
            said.setdefault(info.name, {}).setdefault(group, Counter())[verdict] += 1
            for key, (value, about) in values.items():
                state["ends"][figure := f"{info.name}.{key}"] = about
                of_group = cells.setdefault((figure, group), {})
                of_group.setdefault(str(unit_key), []).append(value)
    for (figure, group), units in cells.items():
        means = {key: sum(values) / len(values) for key, values in units.items()}
        sums.setdefault(figure, {})[group] = sum(means.values()), len(means)
        if options.fixed and group == ALL:
            first = state["probes"].setdefault(figure, means)
            moved = [means[key] - value for key, value in first.items() if key in means]
            paired[figure] = eprocess.paired_evidence(moved)
    return {"sums": sums, "said": said, "paired": paired}


def _streams(state: State, how: Monitoring) -> Iterator[Stream]:
    days = {day: one for day, one in sorted(state["days"].items()) if day >= state["from"]}
    first, ends = list(days.values())[: how.baseline], state["ends"]
    bounds = [parse_bound(one, at_least=False) for one in how.at_most]
    chosen = how.figure or _usual_figures(ends)
    for wanted in (*chosen, *(one.name for one in bounds)):
        if wanted not in ends:
            raise UsageError(did_you_mean("figure to watch", wanted, ends))
    watched = [
        (figure, group)
        for figure in dict.fromkeys(chosen)
        for group in dict.fromkeys(
            [ALL, *(g for day in first for g in day["sums"].get(figure, ()))]
        )
        if group == ALL or sum(_sum(day, figure, group)[1] for day in first) >= FEWEST
        if group == ALL or not how.fixed
    ]
    kinds = (1 + bool(bounds)) / how.promise
    for bound in bounds:
        if ends[bound.name][2] != "%" or not 0 < bound.value < 100:
            raise UsageError(f"--max {bound.name}: expected a share, as in {chosen[-1]}=5%")
        needed, name = len(bounds) * kinds, (bound.name, ALL)
        yield _look(days, name, ends[bound.name], needed, how, bound.value / 100)
    for name in watched:
        yield _look(days, name, ends[name[0]], len(watched) * kinds, how)


def _usual_figures(known: Iterable[str]) -> list[str]:
    """Return what is watched by default: the questions that failed, or the mean of a metric without
    a line, and then those without an answer or a score.
    """
    first: dict[str, str] = {}
    without_answer = []
    for name in sorted(known):
        metric, _, key = name.rpartition(".")
        if key in (NOT_ANSWERED, NOT_SCORED):
            without_answer.append(name)
        else:
            first.setdefault(metric, name)  # "failed" comes before "mean"
    return [*first.values(), *without_answer]


def _sum(day: Mapping[str, Any], figure: str, group: str) -> Sequence[float]:
    result: Sequence[float] = day["sums"].get(figure, {}).get(group, (0.0, 0))
    return result


def _look(
    days: State, name: tuple[str, str], ends: Any, needed: float, how: Monitoring, line: float = 0.0
) -> Stream:
    """Return what is known of a figure of a group against the baseline, or a line above 0."""
    names, (low, high, unit), least = list(days), ends, math.log(needed)
    s, n = np.array([_sum(one, *name) for one in days.values()], dtype=np.float64).T
    b = 0 if line else 1 if how.fixed else how.baseline
    logs = eprocess.answers_evidence(s, n, b, line or None)
    if how.fixed:
        daily = [one["paired"].get(name[0], 0.0) for one in days.values()][1:]
        logs = np.logaddexp.accumulate(np.array(daily)) + eprocess.EACH
    over: Iterator[int] = iter((b + np.flatnonzero(logs >= least)).tolist())
    log, since = float(logs[-1]) if len(logs) else -math.inf, list[int]()
    if len(logs) and not line:
        bad = n - s if how.fixed and s[-1] * n[0] < s[0] * n[-1] else s  # a judge may get milder
        weekdays = [date.fromisoformat(day).weekday() if b >= WEEKS else 0 for day in names]

        def by_days(end: int) -> tuple[Floats, float]:
            starts = eprocess.starts_evidence(bad[:end], n[:end], weekdays[:end], b)
            return starts, float(np.logaddexp.reduce(starts)) + eprocess.EACH

        starts, log_by_days = by_days(len(s))
        since = [b + place for place in eprocess.change_day(starts)]
        if how.unit == "day" and not how.fixed:
            log, over = min(log, log_by_days), (i for i in over if by_days(i + 1)[1] >= least)
    alarm = next(over, None)
    now = len(s) - 1 if alarm is None else since[0] if since else alarm
    sums = [(float(s[:b].sum()), float(n[:b].sum())), (float(s[now:].sum()), float(n[now:].sum()))]
    if line:
        sums[0] = (line, 1.0)
    before, after = (low + (high - low) * total / count if count else None for total, count in sums)
    told, evidence = "" if alarm is None else names[alarm], float(f"{math.exp(log):.3g}")
    held = [names[place] for place in since] if told else []
    kind = "line" if line else "change"
    units_now = int(sums[1][1])
    return Stream(*name, kind, before, after, units_now, unit, evidence, needed, told, held)


def list_volumes(days: Sequence[DayVolume]) -> str:
    """Say how many answers the last days have."""
    if not days:
        return "answers a day: none"
    numbers = ", ".join(f"{one.day[5:]}: {one.answers:,}" for one in days[-DAYS_LISTED:])
    usual = days[-1].usual
    return f"answers a day: {numbers}" + ("" if usual is None else f"; usually {usual:,.0f}")


def json_content(result: Monitored) -> dict[str, Any]:
    """Return what ``--json`` prints."""
    staleness = result.staleness
    return {
        "days": len(result.days),
        "streams": [one._asdict() for one in result.streams],
        "volume": [one._asdict() for one in result.days],
        "staleness": {**staleness._asdict(), "is_stale": staleness.is_stale},
        "volume_alarms": [one._asdict() for one in result.volume_alarms],
    }


def prometheus_text(result: Monitored) -> str:
    """Return what ``--prometheus`` writes: evidence, 1 where it is an alarm, and volume.

    The last run is there with its time, not its age, as the file is read long after it was written.
    """
    lines = ["# TYPE trustassay_evidence gauge"]
    for one in result.streams:
        names = ("figure", "group", "kind")
        labels = ",".join(f"{name}={json.dumps(getattr(one, name))}" for name in names)
        lines.append(f"trustassay_evidence{{{labels}}} {one.evidence / one.needed:.6g}")
    kinds = Counter(one.kind for one in result.volume_alarms)
    lines.append("# TYPE trustassay_volume_alarms gauge")
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


def differences(alarm: Stream, state: State, by: Sequence[str]) -> Iterator[str]:
    """Yield what answers since an alarm's change have more often than those before, then some."""
    metric, since = alarm.figure.rpartition(".")[0], (*alarm.since, alarm.alarm)[0]
    counts = {True: Counter[str](), False: Counter[str]()}
    for day, one in state["days"].items():
        if day >= state["from"]:
            counts[day >= since].update(one["said"].get(metric, {}).get(alarm.group, {}))
    after, before = ({k: v / own.total() for k, v in own.items()} for own in counts.values())
    risen = max(after, key=lambda one: after[one] - before.get(one, 0.0))
    yield f"{risen}: {before.get(risen, 0.0):.1%} of the answers, then {after[risen]:.1%}; such as"
    paths = [Path(one["run"]) for one in state["days"][max(state["days"])]["runs"]]
    rows_of_day = (row for path in paths if path.exists() for row in _rows(path, by))
    listed = [
        (-(badness_of(info, one) or 0.0), one.id, sample["question"], one.error or one.reason)
        for sample, groups, info, one, said, _ in rows_of_day
        if info.name == metric and alarm.group in groups and said == risen
    ]
    for _, name, question, why in sorted(listed)[:LISTED]:
        yield f"{question} ({name}): {why}"


def send(url: str, path: Path) -> list[str]:
    """Post the alarms of a state that no call has posted, and keep which were; return why not."""
    result, why = list[str](), ""
    with _locked(path):
        state = json.loads(path.read_bytes())
        for alarm in (one for one in state["alarms"].values() if not one["sent"]):
            body, headers = json.dumps(alarm).encode(), {"Content-Type": "application/json"}
            request = urllib.request.Request(url, body, headers)
            if key := os.environ.get(KEY, "").strip():
                request.add_unredirected_header("Authorization", f"Bearer {key}")
            for wait in WAITS_S:
                time.sleep(wait)
                try:
                    with urllib.request.urlopen(request, timeout=TIMEOUT_S) as reply:
                        alarm["sent"] = reply.url == url  # a redirect is followed without the alarm
                        why = "it redirects"
                except (OSError, ValueError) as error:
                    why = f"status {error.code}" if hasattr(error, "code") else type(error).__name__
                if alarm["sent"]:
                    break
            else:
                result.append(f"--webhook did not take an alarm ({why}); the next call tries again")
            write_whole(path, json.dumps(state).encode())
    return result
