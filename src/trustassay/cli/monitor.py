"""``trustassay monitor``: a run a day, and an alarm that may be looked at every day."""

import json
from pathlib import Path

import typer

from trustassay.cli.common import Json
from trustassay.cli.options import with_options
from trustassay.errors import UsageError
from trustassay.files import write_whole
from trustassay.options import Monitoring
from trustassay.show.terminal import complain, one_line, print_json, say, show_table


@with_options
def monitor(
    runs: list[Path],
    *,
    state: Path,
    watched: Monitoring,
    restart: str,
    webhook: str,
    prometheus: Path | None,
    as_json: Json,
) -> None:
    """Say whether answers got worse since a baseline, from one run a day; may be asked daily."""
    from trustassay.show.text import amount, rounded
    from trustassay.workflows import monitor as monitoring

    if webhook and not webhook.startswith(("http://", "https://")):
        raise UsageError("--webhook: expected an address that begins with http:// or https://")
    known, streams, notes = monitoring.monitor(runs, state, watched, restart)
    notes += monitoring.send(webhook, state) if webhook else []
    headings = ("figure", "group", "before", "now", "evidence", "alarm at")
    rows, exposed = [], ["# TYPE trustassay_evidence gauge"]
    for one in streams:
        values = [rounded(value, one.unit) for value in (one.before, one.now)]
        rows.append([*one[:2], *values, f"{one.evidence:,.3g}", f"{one.needed:,.0f}"])
        told = ",".join(f"{k}={json.dumps(getattr(one, k))}" for k in ("figure", "group", "kind"))
        exposed.append(f"trustassay_evidence{{{told}}} {one.evidence / one.needed:.6g}")
    show_table(headings, rows, {"group"})
    alarms = [one for one in streams if one.alarm]
    for one in alarms:
        complain(one_line(f"ALARM {one.in_words()}"))
        for line in monitoring.differences(one, known, watched.by):
            complain(f"  {one_line(line)}")
    for note in notes:
        complain(one_line(note))
    days = sum(day >= known["from"] for day in known["days"])
    told = f"{amount(days, 'day')}, {amount(len(alarms), 'alarm')}"
    say(f"{told}; changes are looked for after day {1 if watched.fixed else watched.baseline}")
    if prometheus:
        write_whole(prometheus, "\n".join([*exposed, ""]).encode())
    if as_json:
        print_json({"days": days, "streams": [one._asdict() for one in streams], "notes": notes})
    if alarms:
        raise typer.Exit(3)
