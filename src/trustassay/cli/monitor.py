"""``trustassay monitor``: whether answers got worse, or a calibrator's promise still holds."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from trustassay.cli.common import LABEL, RATINGS, AtLeast, Json, Positive
from trustassay.cli.options import list_given_flags, with_options
from trustassay.core.files import write_atomic
from trustassay.errors import UsageError
from trustassay.live.options import AlarmTargets, Monitoring
from trustassay.report.terminal import complain, one_line, print_json, say, show_table
from trustassay.runs.options import (
    LABELS,
    Flag,
)

if TYPE_CHECKING:
    from trustassay.live.monitor import MonitorResult


@dataclass(frozen=True)
class PromiseWatching:
    """Options for watching the promise of a calibrator; all but the first need ``--audit``."""

    audit: Annotated[
        Path | None,
        Flag(
            "--audit",
            "Check each day whether this calibrator's promise still holds, with human labels of a "
            "few accepted answers. RUN is then a table or run with scores, days and labels.",
            metavar="CALIBRATOR",
        ),
    ]
    day: Annotated[
        str,
        Flag(
            "--day",
            "With --audit: the column with the day. Default: the column day, date or timestamp, "
            "else the day of the run.",
            metavar="FIELD",
            group=LABELS,
            default="",
        ),
    ]
    label: Annotated[list[str], LABEL]
    ratings: Annotated[list[Path], RATINGS]
    positive: Positive
    at_least: AtLeast

    def watch(
        self,
        sources: list[str],
        state: Path | None,
        restart: str,
        without_effect: list[str],
        *,
        as_json: bool,
    ) -> None:
        """Count what is new, print whether the promise holds, and exit with 3 if it does not."""
        if without_effect:
            raise UsageError(f"{without_effect[0]}: has no effect with --audit; leave it out")
        from trustassay.people.calibrate.answers import SourceOptions
        from trustassay.people.calibrate.promise_audit import audit_promise
        from trustassay.text.numbers import amount, verb

        assert self.audit is not None
        labels = SourceOptions(
            label=self.label,
            ratings=self.ratings,
            positive=self.positive,
            at_least=self.at_least,
        )
        result = audit_promise(
            self.audit, sources, labels, day=self.day, state_path=state, restart=restart
        )
        if not result.rated:
            say("no accepted answer has a human label yet, so errors are not checked")
        else:
            holds = "" if result.is_alarm else "the promise holds: "
            say(
                f"{holds}{result.wrong:,} of {amount(result.rated, 'labelled accepted answer')} "
                f"on {amount(result.days, 'day')} {verb(result.wrong, 'is', 'are')} wrong; "
                f"evidence {result.evidence:,.3g}, alarm at 20"
            )
        status = result.status if result.is_alarm else None
        if status is not None:
            complain(one_line(f"ALARM promise {status.status} since {status.day}: {status.reason}"))
            for answer in result.answers:
                complain(one_line(f"  wrong: {answer}"))
        for note in result.notes:
            complain(one_line(note))
        # After the alarm, which an output that cannot be written must not hide.
        if as_json:
            print_json(result.to_dict())
        if status is not None:
            raise typer.Exit(3)


@with_options
def monitor(  # noqa: PLR0913 - one argument an option
    *,
    runs: Annotated[
        list[str],
        Flag(
            "RUN...",
            "Folders of finished runs, one per day. You may repeat runs that are already counted. "
            "The day is the date in the folder's name (2026-11-28), else the run's start in UTC.",
        ),
    ],
    state: Annotated[
        Path | None,
        Flag(
            "--state",
            "The file that stores the counts of all days for the next call. Required without "
            "--audit. Default with --audit: CALIBRATOR.audit.json.",
            metavar="FILE",
        ),
    ],
    watched: Monitoring,
    restart: Annotated[
        str,
        Flag(
            "--restart",
            "Start a new baseline on this day, after you have dealt with an alarm. With --audit, a "
            "suspended promise holds again from this day on.",
            metavar="DAY",
            default="",
            rare=True,
        ),
    ],
    acknowledge: Annotated[
        str,
        Flag(
            "--acknowledge",
            "Clear alarms about missing answers and runs up to and including this day.",
            metavar="DAY",
            default="",
            rare=True,
        ),
    ],
    targets: AlarmTargets,
    watching: PromiseWatching,
    as_json: Json,
) -> None:
    """Test whether answers got worse than in a baseline, from one run per day.

    "evidence" measures how strongly the data speak for a change. If nothing has changed, it
    reaches "alarm at" in at most one year of a hundred (--promise), however often you call the
    command. An alarm says when the change began, lists answers, and stays until --restart.

    The number of answers is checked, too. It is an alarm if a day has too few answers or several
    runs, a group has vanished, a run has no date or is left out, or the last run is too old. All
    but the last stay until --acknowledge.

    --audit checks a calibrator's promise instead. The promise is withdrawn when too many accepted
    answers are wrong, and suspended when the judge or the scores have changed. Until the promise
    holds again, no answer is accepted.

    Exit status: 0 no alarm; 1 --prometheus could not be written; 2 bad input or arguments, nothing
    was counted; 3 alarm, even if --webhook or --prometheus failed.

    \b
    trustassay monitor runs/2026-* --state monitor.json
    trustassay monitor runs/today --state monitor.json \\
        --max faithfulness.failed=10%
    trustassay monitor probes/* --fixed --state judge.json
    trustassay monitor runs/* --state monitor.json --restart 2026-11-14 \\
        --webhook https://example.org/hook --prometheus trustassay.prom
    trustassay monitor today.csv --audit calibrator.json --label human
    """
    # step 0: the promise of a calibrator is another kind of watch, with options of its own
    if watching.audit is not None:
        without_effect = list_given_flags(watched, targets, acknowledge=acknowledge)
        watching.watch(runs, state, restart, without_effect, as_json=as_json)
        return
    flags = list_given_flags(watching)
    if flags or state is None:
        only = f"{flags[0]}: needs --audit" if flags else ""
        raise UsageError(only or "--state: is required; name the file that stores the days")
    from trustassay.live import monitor as monitoring
    from trustassay.text.numbers import amount, format_figure

    # The address is checked before a run is counted: a typo must not leave a changed state.
    if targets.webhook:
        monitoring.check_webhook(targets.webhook)
    result = monitoring.monitor(
        [Path(run) for run in runs], state, watched, restart, acknowledge, monitoring.current_day()
    )
    # step 1: the table of figures
    headings = ("figure", "group", "before", "now", "sample size", "evidence", "alarm at")
    rows = []
    for stream in result.streams:
        values = [
            "none" if value is None else format_figure(value, stream.unit)
            for value in (stream.before, stream.now)
        ]
        sizes = [f"{stream.units_now:,}", f"{stream.evidence:,.3g}", f"{stream.needed:,.0f}"]
        rows.append([stream.figure, stream.group, *values, *sizes])
    show_table(headings, rows, {"group"})
    # step 2: alarms go to standard error, each with the verdicts that became more frequent
    alarms = [stream for stream in result.streams if stream.alarm]
    for stream in alarms:
        complain(one_line(f"ALARM {stream.in_words()}"))
        for line in monitoring.list_differences(stream, result.state, watched.by):
            complain(f"  {one_line(line)}")
    for alarm in result.volume_alarms:
        complain(one_line(f"ALARM {alarm.kind}: {alarm.text}"))
    for note in result.notes:
        complain(one_line(note))
    # step 3: the volume of the last days, and how old the last run is
    say(monitoring.list_volumes(result.days))
    say(result.staleness.in_words())
    count = amount(len(alarms) + len(result.volume_alarms), "alarm")
    first = 1 if watched.fixed else watched.baseline
    say(
        f"{amount(len(result.days), 'day')}, {count}; the test for changes begins after day {first}"
    )
    # step 4: what other programs get, once people can read the alarms
    status = 3 if alarms or result.volume_alarms else 0
    status = _hand_out(result, state, targets, status, as_json=as_json)
    if status:
        raise typer.Exit(status)


def _hand_out(
    result: "MonitorResult", state: Path, targets: AlarmTargets, status: int, *, as_json: bool
) -> int:
    """Write the file and the JSON, then post the alarms; return the exit status.

    A fault of one of them is a line of its own, and hides none of the others.

    Args:
        status: the exit status if all of them work.
    """
    from trustassay.live import monitor as monitoring

    try:
        if targets.prometheus:
            write_atomic(
                targets.prometheus, monitoring.prometheus_text(result).encode(), private=False
            )
    except OSError as error:
        complain(one_line(f"--prometheus {targets.prometheus}: {error.strerror or error}"))
        status = status or 1
    try:
        if as_json:
            print_json(monitoring.json_content(result) | {"notes": result.notes})
    # Even if standard output is closed, which ends the process.
    finally:
        # Alarms are in the state, so that the next call posts those of a call that was killed here.
        if targets.webhook and (fault := monitoring.post_alarms(targets.webhook, state)):
            complain(one_line(fault))
    return status
