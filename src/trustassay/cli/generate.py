"""``trustassay generate``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

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
