"""``trustassay push``: send scores to the traces in Langfuse or Phoenix."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from trustassay.cli.common import Json
from trustassay.cli.options import with_options
from trustassay.report.terminal import complain, one_line, print_json, say
from trustassay.runs.options import (
    INPUT,
    OUTPUT,
    Flag,
)

Store = Literal["langfuse", "phoenix"]


KEYS = (
    "The trace store. Its keys come from LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY, or from "
    "PHOENIX_API_KEY if the server requires a key."
)


Url = Annotated[
    str,
    Flag(
        "--url",
        "The address of the store. Default: LANGFUSE_BASE_URL or PHOENIX_COLLECTOR_ENDPOINT.",
        metavar="URL",
        default="",
    ),
]


@with_options
def push(
    *,
    run: Annotated[Path, Flag("RUN", "The folder of a finished run that scored traces.")],
    to: Annotated[Store, Flag("--to", KEYS)],
    url: Url,
    report_url: Annotated[
        str,
        Flag(
            "--report-url",
            "The URL where you publish the run's report. Each comment then links to its answer.",
            metavar="URL",
            group=OUTPUT,
            default="",
        ),
    ],
    trace_field: Annotated[
        str,
        Flag(
            "--trace-field",
            "The field that holds the trace id, for records that are not traces.",
            metavar="FIELD",
            group=INPUT,
            default="",
            rare=True,
        ),
    ],
    as_json: Json,
) -> None:
    """Send the scores of a run to its traces in Langfuse or Phoenix, with verdicts and reasons.

    Changed scores replace the ones sent before, and unchanged scores are not sent again. If a push
    stops, the same command continues it (pushed.jsonl in the run's folder has what was sent).
    Failed scores are not sent.

    Exit status: 0 all scores were sent; 1 some were refused, or the store does not answer; 2 bad
    input or arguments, nothing was sent.

    \b
    trustassay push runs/today --to langfuse
    trustassay push runs/today --to phoenix --url http://127.0.0.1:6006 \\
        --report-url https://example.org/today/report.html
    """
    import dataclasses

    from trustassay.backends.http import check_address
    from trustassay.core.event_loop import run_anywhere
    from trustassay.live import push as pushing
    from trustassay.live.trace_stores import STORES
    from trustassay.runs.folder import RunFolder
    from trustassay.text.numbers import amount, verb

    if report_url:
        check_address(report_url, "--report-url")
    # step 1: read the keys, before the run is read
    store = STORES[to](url)
    folder = RunFolder(run)
    result = run_anywhere(lambda: pushing.push(folder, store, report_url, trace_field))
    # step 2: refused answers one by one, up to a limit; then why it stopped, if it did
    for line in result.refused:
        complain(one_line(f"refused: {line}"))
    if result.refusals > len(result.refused):
        more = result.refusals - len(result.refused)
        complain(f"... {more:,} more {verb(more, 'was', 'were')} refused")
    if result.stopped:
        complain(one_line(f"stopped: {result.stopped}; run the same command again to continue"))
    # step 3: one line with all counts
    counts = [amount(result.sent, "answer") + " sent", f"{result.unchanged:,} unchanged"]
    counts += [f"{result.refusals:,} refused"] * bool(result.refusals)
    counts += [amount(result.unscored, "score") + " failed and not sent"] * bool(result.unscored)
    say(f"{store.address}: {', '.join(counts)}")
    if as_json:
        print_json(dataclasses.asdict(result))
    # after the JSON, which the exit status must not suppress
    if result.refusals or result.stopped:
        raise typer.Exit(1)
