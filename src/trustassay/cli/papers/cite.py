"""``trustassay papers cite``: citations for answers that have documents but cite none."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from trustassay.cli import common
from trustassay.cli.options import with_options
from trustassay.cli.papers.ending import end_if_stopped, show_failed
from trustassay.report.terminal import say
from trustassay.runs.options import (
    OUTPUT,
    Flag,
    RecordOptions,
)
from trustassay.text.numbers import amount


@with_options
def cite(  # noqa: PLR0913 - one argument an option
    *,
    source: common.Source,
    out: Annotated[
        Path, Flag("--out", "File for the answers with citations, JSON Lines.", group=OUTPUT)
    ],
    by: Annotated[
        str, Flag("--by", "How to measure support: entailment, embedding or bm25.")
    ] = "entailment",
    entailer: common.Entailer,
    embedder: common.Embedder,
    threshold: Annotated[
        float | None,
        Flag(
            "--threshold",
            "Cite a document if its support is at least this and above 0. Default: 0.5 for "
            "entailment and embedding, 0 for bm25.",
        ),
    ] = None,
    only_uncited: Annotated[
        bool, Flag("--only-uncited", "Skip answers that already contain a citation.")
    ] = False,
    records: RecordOptions,
) -> None:
    """Put citations into answers that have documents but do not cite them.

    Each sentence without a citation gets the number of the document that supports it most, before
    its final punctuation. A sentence that no document supports gets none. Refusals are left
    unchanged. Run a stopped command again to continue.

    \b
    trustassay papers cite answers.jsonl --by entailment --entailer embedded \\
        --out cited.jsonl
    trustassay papers cite answers.jsonl --by bm25 --only-uncited \\
        --out cited.jsonl
    """
    from trustassay.backends import resolve
    from trustassay.calls.backends import Backends
    from trustassay.calls.client import CallOptions
    from trustassay.papers import cite as citing

    options = citing.CiteOptions(
        by=by,
        threshold=threshold,
        only_uncited=only_uncited,
        progress=True,
        calls=CallOptions(),
        **records,
    )
    # Only the backend that --by names is loaded.
    backends = Backends.of(
        entail=resolve.entailer(entailer) if by == "entailment" else None,
        embed=resolve.embedder(embedder) if by == "embedding" else None,
    )
    # The same command continues an interrupted one.
    result = citing.cite(source, out, backends, options)
    if result.resumed:
        say(f"{amount(result.resumed, 'answer')} already done")
    end_if_stopped(result.stopped)
    say(
        f"{amount(result.written, 'answer')} in {out}, "
        f"{amount(result.counts['citations'], 'citation')} added"
    )
    if unsupported := result.counts["unsupported"]:
        say(f"{amount(unsupported, 'sentence')} without support, left without a citation")
    show_failed(result.failed, result.written)
