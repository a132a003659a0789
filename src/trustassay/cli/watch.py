"""``trustassay watch``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from trustassay.cli import common
from trustassay.cli.common import errors_for_people
from trustassay.cli.options import AtOnce, Backends, Spending, with_options
from trustassay.show.terminal import one_line, say
from trustassay.texts import LONGEST_ANSWER

ALARM = 3
"""Exit status if too many answers were beyond the threshold."""


@with_options
def watch(  # noqa: PLR0913 - one argument an option
    source: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="A growing file, JSON Lines.", show_default=False),
    ],
    *,
    out: Annotated[Path, typer.Option(help="The run's folder.", show_default=False)],
    threshold: Annotated[
        str,
        typer.Option(
            help="Scores beyond this, on the worse side, count; with a per cent sign, of the range "
            "of the metric's scores.",
            metavar="SCORE[%]",
            show_default=False,
        ),
    ],
    metric: Annotated[
        str, typer.Option(help="One metric and its options.", metavar="NAME[:OPTION=VALUE,...]")
    ] = "harmonicity:perturbations=3",
    backends: Backends,
    share: Annotated[
        float,
        typer.Option(help="End with status 3 if more than this share of the last answers count."),
    ] = 0.2,
    window: Annotated[
        int, typer.Option(help="Number of last answers to look at.", min=1, max=common.MOST)
    ] = 50,
    idle: Annotated[
        Optional[float],  # noqa: UP045 - typer reads it
        typer.Option(help="End after this many seconds without a new record.", show_default=False),
    ] = None,
    once: Annotated[
        bool, typer.Option("--once", help="End after the records that are in the file now.")
    ] = False,
    seed: common.Seed = 0,
    at_once: AtOnce,
    longest_answer: common.LongestAnswer = LONGEST_ANSWER,
    field: common.Fields = [],  # noqa: B006 - typer copies it
    opentelemetry: Annotated[
        bool,
        typer.Option(
            "--opentelemetry",
            help="Send each score as an event to OpenTelemetry, as it is configured by "
            "opentelemetry-instrument (see docs/opentelemetry.md).",
        ),
    ] = False,
    explanations: Annotated[
        bool,
        typer.Option(
            "--opentelemetry-explanations",
            help="As --opentelemetry, with the reason of each score, which may quote the answer.",
        ),
    ] = False,
    spending: Spending,
) -> None:
    """Score a growing file of questions and answers as they arrive.

    Ends with status 3 when more than --share of the last --window answers are beyond --threshold;
    with 0 by --once or --idle. Run the same command again to continue after the last record read.

    \b
    trustassay watch log.jsonl --model openai:gpt-4o-mini --threshold 0.3 \\
        --out runs/live
    trustassay watch log.jsonl --metric grounding --threshold 0.5 --share 0.1 \\
        --out runs/live
    opentelemetry-instrument -- trustassay watch log.jsonl --threshold 0.3 \\
        --out runs/live --opentelemetry
    """
    with errors_for_people():
        from trustassay import api
        from trustassay.show.text import amount
        from trustassay.workflows.watch import WatchOptions

        options = WatchOptions(
            threshold,
            share,
            window,
            idle,
            once,
            common.pairs(field, "--field"),
            seed,
            at_once.read(),
            "explanations" if explanations else opentelemetry,
            spending.read(),
            longest_answer,
        )
        found = api.watch(
            source,
            metric=metric,
            out=out,
            options=options,
            tell=lambda text: say(one_line(text)),
            **backends.named(),
        )
        say(
            f"{amount(found.scored, 'answer')} scored, {found.beyond:,} beyond {threshold}, "
            f"{found.failed:,} failed, {amount(found.faulty, 'faulty record')}"
        )
        if found.scoreless:
            say(f"{amount(found.scoreless, 'answer')} cannot have a score; the report says why")
        say(f"run:    {out}")
        if found.alarm is not None:
            say(f"{100 * found.alarm:.0f} % of the last {window} answers are beyond {threshold}")
            raise typer.Exit(ALARM)
        if found.failed:
            raise typer.Exit(1)
