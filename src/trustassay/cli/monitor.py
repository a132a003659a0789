"""``trustassay monitor``: whether answers got worse, from one run a day."""

from pathlib import Path
from typing import Annotated

import typer

from trustassay.cli.common import Json
from trustassay.cli.options import with_options
from trustassay.core.files import write_atomic
from trustassay.errors import UsageError
from trustassay.live.options import AlarmTargets, Monitoring
from trustassay.report.terminal import complain, one_line, print_json, say, show_table
from trustassay.runs.options import (
    Flag,
)


@with_options
def monitor(
    *,
    runs: Annotated[
        list[Path],
        Flag(
            "RUN...",
            "Folders of finished runs, one a day. Those that were counted before may be given "
            "again; their day is the date in the name (2026-11-28), else the run's start in UTC.",
        ),
    ],
    state: Annotated[
        Path,
        Flag(
            "--state",
            "The file that keeps the days. The next call goes on with it.",
            metavar="FILE",
        ),
    ],
    watched: Monitoring,
    restart: Annotated[
        str,
        Flag(
            "--restart",
            "Begin another baseline with this day, after an alarm that was dealt with.",
            metavar="DAY",
            default="",
            rare=True,
        ),
    ],
    acknowledge: Annotated[
        str,
        Flag(
            "--acknowledge",
            "Alarms about the number of answers were dealt with, those of this day and before.",
            metavar="DAY",
            default="",
            rare=True,
        ),
    ],
    targets: AlarmTargets,
    as_json: Json,
) -> None:
    """Say whether answers got worse since a baseline, from one run a day; may be asked daily.

    Evidence is the gain of bets that something got worse. Without a change it reaches "alarm at" in
    one year of a hundred at most (--promise), however often one looks. An alarm says since when,
    lists answers, and stays until --restart.

    It is also an alarm if a day has too few answers or several runs, a group vanished, a run has no
    date or is left out (these stay until --acknowledge), or the last run is too old.

    Exit status: 0 no alarm; 2 bad input or arguments, nothing was counted; 3 alarm.

    \b
    trustassay monitor runs/2026-* --state monitor.json
    trustassay monitor runs/today --state monitor.json \\
        --max faithfulness.failed=10%
    trustassay monitor probes/* --fixed --state judge.json
    trustassay monitor runs/* --state monitor.json --restart 2026-11-14 \\
        --webhook https://example.org/hook --prometheus trustassay.prom
    """
    from trustassay.live import monitor as monitoring
    from trustassay.report.text import format_figure
    from trustassay.text.words import amount

    # The address is checked before a run is counted: a typo must not leave a changed state.
    webhook = targets.webhook
    if webhook and not webhook.startswith(("http://", "https://")):
        raise UsageError("--webhook: expected an address that begins with http:// or https://")
    result = monitoring.monitor(
        runs, state, watched, restart, acknowledge, monitoring.current_day()
    )
    # Alarms are in the state before they are posted, so a crash here posts them at the next call.
    notes = result.notes + (monitoring.post_alarms(webhook, state) if webhook else [])
    # step 1: the table of figures
    headings = ("figure", "group", "before", "now", "units now", "evidence", "alarm at")
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
    for note in notes:
        complain(one_line(note))
    # step 3: the volume of the last days, and how old the last run is
    say(monitoring.list_volumes(result.days))
    say(result.staleness.in_words())
    count = amount(len(alarms) + len(result.volume_alarms), "alarm")
    first = 1 if watched.fixed else watched.baseline
    say(f"{amount(len(result.days), 'day')}, {count}; changes are looked for after day {first}")
    # step 4: files and JSON for other programs; the exit status comes last, after all are written
    if targets.prometheus:
        write_atomic(targets.prometheus, monitoring.prometheus_text(result).encode())
    if as_json:
        print_json(monitoring.json_content(result) | {"notes": notes})
    # The exit status comes last: files and JSON are complete by then.
    if alarms or result.volume_alarms:
        raise typer.Exit(3)
