"""``trustassay push`` and ``pull``: traces that Langfuse and Phoenix keep, and their scores."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from trustassay.cli.common import Json
from trustassay.cli.options import quietable, with_options
from trustassay.errors import UsageError
from trustassay.options import Argument, Flag
from trustassay.show.terminal import complain, one_line, print_json, say
from trustassay_serve.commands import app_of

Store = Literal["langfuse", "phoenix"]
KEYS = (
    "Which one. Keys: LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY, or PHOENIX_API_KEY where it "
    "asks for one."
)
Url = Annotated[
    str,
    Flag(
        "Its address. Default: LANGFUSE_BASE_URL, or PHOENIX_COLLECTOR_ENDPOINT.",
        metavar="URL",
        default="",
    ),
]


@with_options
def push(
    *,
    run: Annotated[Path, Argument("The folder of a finished run of traces.")],
    to: Annotated[Store, Flag(KEYS)],
    url: Url,
    report_url: Annotated[
        str,
        Flag(
            "Where the run's report can be seen: each comment links to its answer there.",
            metavar="URL",
            default="",
        ),
    ],
    trace_field: Annotated[
        str,
        Flag(
            "The field with the trace's id, for records that are no traces.",
            metavar="FIELD",
            default="",
        ),
    ],
    as_json: Json,
) -> None:
    """Send the scores of a run to the traces in Langfuse or Phoenix, each with its reason.

    What is sent again replaces what was sent before, and what did not change is not sent again: a
    stopped call goes on where it was (pushed.jsonl in the run's folder). Scores that failed are not
    sent.

    Exit status: 0 all is there; 1 some was refused, or the address does not answer; 2 bad input or
    arguments, nothing was sent.

    \b
    trustassay push runs/today --to langfuse
    trustassay push runs/today --to phoenix --url http://127.0.0.1:6006 \\
        --report-url https://example.org/today/report.html
    """
    import dataclasses

    from trustassay.event_loop import run_anywhere
    from trustassay.runs.folder import RunFolder
    from trustassay.text.words import amount
    from trustassay_serve import push as pushing
    from trustassay_serve.trace_stores import STORES

    if report_url and not report_url.startswith(("http://", "https://")):
        raise UsageError("--report-url: expected an address that begins with http:// or https://")
    store = STORES[to](url)
    folder = RunFolder(run)
    done = run_anywhere(lambda: pushing.push(folder, store, report_url, trace_field))
    for line in done.refused:
        complain(one_line(f"not taken: {line}"))
    if done.refusals > len(done.refused):
        complain(f"... {done.refusals - len(done.refused):,} more were not taken")
    if done.stopped:
        complain(one_line(f"stopped: {done.stopped}; the same command goes on"))
    told = [amount(done.sent, "answer") + " sent", f"{done.unchanged:,} unchanged"]
    told += [f"{done.refusals:,} not taken"] * bool(done.refusals)
    told += [amount(done.unscored, "score") + " failed and not sent"] * bool(done.unscored)
    say(f"{store.address}: {', '.join(told)}")
    if as_json:
        print_json(dataclasses.asdict(done))
    if done.refusals or done.stopped:
        raise typer.Exit(1)


@with_options
def pull(
    *,
    file: Annotated[Path, Argument("Where to write them, as JSON Lines (.jsonl).")],
    store: Annotated[Store, Flag(KEYS, "--from")],
    url: Url,
    project: Annotated[
        str,
        Flag("The project of Phoenix; Langfuse's keys are of one.", "--project", default="default"),
    ],
    since: Annotated[
        str, Flag("The first moment, 2026-11-28T00:00:00Z. Default: the oldest.", default="")
    ],
    until: Annotated[str, Flag("The moment after the last. Default: now.", default="")],
) -> None:
    """Read traces of Langfuse or Phoenix into a file, for trustassay score.

    Exit status: 0 they are in the file; 2 bad arguments, or they cannot be read.

    \b
    trustassay pull today.jsonl --from phoenix --since 2026-11-28T00:00:00Z
    trustassay score today.jsonl --out runs/today
    trustassay push runs/today --to phoenix
    """
    from datetime import datetime

    from trustassay.event_loop import run_anywhere
    from trustassay_serve import push as pushing
    from trustassay_serve.trace_stores import STORES

    if file.suffix != ".jsonl":
        raise UsageError(f"{file}: expected a name that ends with .jsonl")
    for name, moment in (("since", since), ("until", until)):
        try:
            sound = not moment or datetime.fromisoformat(moment).tzinfo is not None
        except ValueError:
            sound = False
        if not sound:
            example = "2026-11-28T00:00:00Z"
            raise UsageError(
                f"--{name}: expected a time with its offset, {example}, got {moment!r}"
            )
    chosen = STORES[store](url)
    spans = run_anywhere(lambda: pushing.pull(chosen, file, project, since, until))
    say(f"{file}: {spans:,} spans")


push_app = app_of(quietable(push), "Send scores to the traces in Langfuse or Phoenix.")
pull_app = app_of(quietable(pull), "Read traces of Langfuse or Phoenix into a file.")
