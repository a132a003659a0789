"""``trustassay generate`` and ``trustassay cite``: what happens to answers before scores."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Optional

import typer

from trustassay.backends import DEFAULT_ENTAILER
from trustassay.cli import common
from trustassay.cli.common import errors_for_people
from trustassay.cli.options import Answers, OldConcurrency, Spending, renamed, with_options
from trustassay.show.terminal import complain, one_line, say


@with_options
def generate(  # noqa: PLR0913 - one argument an option
    source: common.Source,
    *,
    model: Annotated[
        str,
        typer.Option(
            help="The model to ask: openai:MODEL[@BASE_URL], anthropic:MODEL, gemini:MODEL, "
            "hf:ID-or-path, replay:FILE, python:MODULE:FUNCTION.",
            metavar="URI",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path, typer.Option(help="The answered questions to write, JSON Lines.", show_default=False)
    ],
    answers: Answers,
    repeats: Annotated[int, typer.Option(help="Answers per question.", min=1)] = 1,
    again: Annotated[
        bool, typer.Option("--again", help="Also answer questions that already have an answer.")
    ] = False,
    limit: common.Limit = None,
    concurrency: OldConcurrency = None,
    field: common.Fields = [],  # noqa: B006
    skip_bad: common.SkipBad = False,
    spending: Spending,
) -> None:
    """Answer a file of questions. Run a stopped command again to continue: replies are cached.

    \b
    trustassay generate questions.jsonl --model openai:gpt-4o-mini \\
        --out answers.jsonl
    trustassay generate asqa.json --model hf:MODEL --style rag-refusal \\
        --out answers.jsonl
    trustassay generate questions.csv \\
        --model openai:m@http://127.0.0.1:8000/v1 --style icl \\
        --examples chosen.jsonl --out answers.jsonl
    """
    with errors_for_people():
        from trustassay.workflows import generate as generating

        old = renamed(concurrency, "--calls-at-once")
        calls = replace(spending, calls_at_once=old) if old else spending
        options = generating.GenerateOptions(
            answering=answers.read(),
            fields=common.pairs(field, "--field"),
            limit=limit,
            skip_bad=skip_bad,
            repeats=repeats,
            again=again,
            progress=True,
            calls=calls.read(),
        )
        done = generating.generate(source, model, out, options)
        common.show_endpoints(done.endpoints)
        for sample_id, error in list(done.failed.items())[: common.FAILURES_SHOWN]:
            complain(one_line(f"  {sample_id}: {error}"))
        asked = done.written + len(done.failed)
        if done.cut:
            words = f"answers were cut at {answers.max_tokens} tokens (--max-tokens)"
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
            complain(
                f"failed: {len(done.failed):,}; run the same command again to retry only these"
            )
            raise typer.Exit(1)


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
        say(f"{done.written:,} answers in {out}, {done.counts['citations']:,} citations added")
        if unsupported := done.counts["unsupported"]:
            say(f"{unsupported:,} sentences have no support and get no citation")
        common.end_if_failed(done.failed)
