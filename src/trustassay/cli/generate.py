"""``trustassay generate`` and ``trustassay cite``: what happens to answers before scores."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from trustassay.cli import common
from trustassay.cli.options import Only, with_options
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


@with_options
def cite(  # noqa: PLR0913 - one argument an option
    *,
    source: common.Source,
    out: Path,
    by: str,
    entailer: common.Entailer,
    embedder: str,
    threshold: float | None,
    only_uncited: bool,
    records: Records,
    spending: Annotated[Spending, Only("cache")],
) -> None:
    """Put citations into answers that have documents but do not cite them."""
    from trustassay.backends import resolve
    from trustassay.calls.backends import Backends
    from trustassay.calls.client import CallOptions
    from trustassay.workflows import cite as citing

    options = citing.CiteOptions(
        by=by,
        threshold=threshold,
        only_uncited=only_uncited,
        progress=True,
        calls=CallOptions.of(**spending),
        **records,
    )
    backends = Backends.of(
        entail=resolve.entailer(entailer) if by == "entailment" else None,
        embed=resolve.embedder(embedder) if by == "embedding" else None,
    )
    done = citing.cite(source, out, backends, options)
    if done.resumed:
        say(f"{done.resumed:,} answers were already done")
    common.end_if_stopped(done.stopped)
    say(f"{done.written:,} answers in {out}, {done.counts['citations']:,} citations added")
    if unsupported := done.counts["unsupported"]:
        say(f"{unsupported:,} sentences have no support and get no citation")
    common.end_if_failed(done.failed)
