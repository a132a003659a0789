"""``trustassay pull``: read traces of Langfuse or Phoenix, with their scores, into a file."""

from pathlib import Path
from typing import Annotated

from trustassay.cli.options import with_options
from trustassay.cli.push import KEYS, Store, Url
from trustassay.errors import UsageError
from trustassay.live.options import MAX_PAGES
from trustassay.report.terminal import say
from trustassay.runs.options import (
    DISTRIBUTED,
    Flag,
)


@with_options
def pull(
    *,
    file: Annotated[Path, Flag("FILE", "The JSON Lines file to write (.jsonl).")],
    store: Annotated[Store, Flag("--from", KEYS, group=DISTRIBUTED)],
    url: Url,
    project: Annotated[
        str,
        Flag(
            "--project",
            "The Phoenix project. Langfuse does not need it: each of its keys belongs to one "
            "project.",
            default="default",
        ),
    ],
    since: Annotated[
        str,
        Flag(
            "--since",
            "Read traces from this time on, for example 2026-11-28T00:00:00Z. Default: from the "
            "oldest.",
            default="",
        ),
    ],
    until: Annotated[
        str, Flag("--until", "Read traces from before this time. Default: now.", default="")
    ],
    max_pages: Annotated[
        int,
        Flag(
            "--max-pages",
            "The most pages of 500 spans to read. The command fails if there are more.",
            default=MAX_PAGES,
            least=1,
            rare=True,
        ),
    ],
) -> None:
    """Write traces from Langfuse or Phoenix, with their scores and ratings, to a file.

    Exit status: 0 all traces are in the file; 2 bad arguments, or the traces could not be read.
    FILE.partial then holds what was read before the failure.

    \b
    trustassay pull today.jsonl --from phoenix --since 2026-11-28T00:00:00Z
    trustassay score today.jsonl --out runs/today
    trustassay push runs/today --to phoenix
    trustassay calibrate today.jsonl --score helpful --label correctness
    """
    from datetime import datetime

    from trustassay.core.event_loop import run_anywhere
    from trustassay.live import push as pushing
    from trustassay.live.trace_stores import STORES
    from trustassay.text.numbers import amount

    # `score` recognises the layout by this name
    if file.suffix != ".jsonl":
        raise UsageError(f"{file}: expected a name that ends with .jsonl")
    for name, moment in (("since", since), ("until", until)):
        try:
            # Without an offset the stores would each assume another time zone.
            sound = not moment or datetime.fromisoformat(moment).tzinfo is not None
        except ValueError:
            sound = False
        if not sound:
            example = "2026-11-28T00:00:00Z"
            raise UsageError(
                f"--{name}: expected a time with its UTC offset, for example {example}, "
                f"got {moment!r}"
            )
    chosen = STORES[store](url)
    chosen.max_pages = max_pages
    spans = run_anywhere(lambda: pushing.pull(chosen, file, project, since, until))
    say(f"{file}: {amount(spans, 'span')}")
