"""``trustassay generate``."""

from __future__ import annotations

from pathlib import Path

import typer

from trustassay.cli import common
from trustassay.cli.options import with_options
from trustassay.options import AnswerOptions, Records, Spending
from trustassay.show.terminal import complain, one_line, say


@with_options
def generate(  # noqa: PLR0913 - one argument an option
    source: common.Source,
    *,
    model: common.NeededModel,
    out: Path,
    answers: AnswerOptions,
    repeats: int,
    again: bool,
    records: Records,
    spending: Spending,
) -> None:
    """Answer a file of questions. Run a stopped command again to continue: replies are cached."""
    from trustassay.calls.client import CallOptions
    from trustassay.workflows import generate as generating

    answering = common.answering(answers)
    options = generating.GenerateOptions(
        answering=answering,
        repeats=repeats,
        again=again,
        progress=True,
        calls=CallOptions.of(**spending),
        **records,
    )
    done = generating.generate(source, model, out, options)
    common.show_endpoints(done.endpoints)
    for sample_id, error in list(done.failed.items())[: common.FAILURES_SHOWN]:
        complain(one_line(f"  {sample_id}: {error}"))
    asked = done.written + len(done.failed)
    if done.cut:
        words = f"answers were cut at {answering.max_tokens} tokens (--max-tokens)"
        say(f"{done.cut:,} of {asked:,} {words}")
    if done.empty:
        say(f"{done.empty:,} of {asked:,} answers were empty")
    if done.written:
        say(f"{done.written:,} answers in {out}")
    if done.failed:
        if (more := len(done.failed) - common.FAILURES_SHOWN) > 0:
            complain(f"  ... and {more:,} more")
        if not done.written:
            complain(f"no question was answered; {out} was not written")
        complain(f"failed: {len(done.failed):,}; run the same command again to retry only these")
        raise typer.Exit(1)
