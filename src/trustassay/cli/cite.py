"""``trustassay cite``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from trustassay.backends import DEFAULT_ENTAILER
from trustassay.cli import common
from trustassay.cli.common import errors_for_people
from trustassay.show.terminal import say


def cite(  # noqa: PLR0913 - one argument an option
    source: common.Source,
    out: Annotated[Path, typer.Option(help="The cited answers, JSON Lines.", show_default=False)],
    by: Annotated[
        str,
        typer.Option(help="How support is judged: entailment, embedding, bm25."),
    ] = "entailment",
    entailer: common.Entailer = DEFAULT_ENTAILER,
    embedder: Annotated[
        str, typer.Option(help="The embedder for --by embedding.", metavar="URI")
    ] = "embedded",
    threshold: Annotated[
        Optional[float],  # noqa: UP045 - typer reads it
        typer.Option(
            help="Cite a document if its support is at least this, and above 0. Default: 0.5 "
            "for entailment and embedding, 0 for bm25.",
            show_default=False,
        ),
    ] = None,
    only_uncited: Annotated[
        bool,
        typer.Option("--only-uncited", help="Leave answers that already cite something unchanged."),
    ] = False,
    limit: common.Limit = None,
    field: common.Fields = [],  # noqa: B006
    skip_bad: common.SkipBad = False,
    cache: common.Cache = "",
) -> None:
    """Put citations into answers that have documents but do not cite them.

    Each sentence without a citation gets the number of the document that supports it most, before
    its final punctuation. A sentence that no document supports gets none. Refusals are left
    unchanged. Run a stopped command again to continue.

    \b
    trustassay cite answers.jsonl --by entailment --entailer embedded \\
        --out cited.jsonl
    trustassay cite answers.jsonl --by bm25 --only-uncited --out cited.jsonl
    """
    with errors_for_people():
        from trustassay.backends import resolve
        from trustassay.calls.backends import Backends
        from trustassay.workflows import cite as citing

        options = citing.CiteOptions(
            by=by,
            threshold=threshold,
            only_uncited=only_uncited,
            fields=common.pairs(field, "--field"),
            limit=limit,
            skip_bad=skip_bad,
            progress=True,
            calls=common.call_options(cache),
        )
        backends = Backends.of(
            entail=resolve.entailer(entailer) if by == "entailment" else None,
            embed=resolve.embedder(embedder) if by == "embedding" else None,
        )
        done = citing.cite(source, out, backends, options)
        if done.resumed:
            say(f"{done.resumed:,} answers were already done")
        common.end_if_stopped(done.stopped)
        say(f"{done.answers:,} answers in {out}, {done.citations:,} citations added")
        if done.unsupported:
            say(f"{done.unsupported:,} sentences have no support and get no citation")
        common.end_if_failed(done.failed)
