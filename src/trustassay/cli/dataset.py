"""``trustassay dataset``: grounded data sets, or those of a name of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Optional, cast

import typer
from typer.core import TyperGroup

from trustassay.backends import DEFAULT_ENTAILER
from trustassay.cli import common, mixedqa
from trustassay.cli.common import errors_for_people
from trustassay.errors import UsageError
from trustassay.show.terminal import say

__all__ = ["app"]

UNNAMED = "trust-eval"
"""The command that is meant where none is named."""


class _Group(TyperGroup):
    """Takes what begins with no command of its own for :data:`UNNAMED`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in {*self.commands, *ctx.help_option_names}:
            args = [UNNAMED, *args]
        return super().parse_args(ctx, args)


app = typer.Typer(cls=_Group, no_args_is_help=True)


@app.callback()
def group() -> None:
    """Build a data set: trust-eval (where no command is named), or mixedqa.

    \b
    trustassay dataset questions.jsonl --corpus texts/ --out data.jsonl
    trustassay dataset mixedqa --nq NQ-open.dev.jsonl \\
        --model openai:gpt-4o-mini --out mixed
    """


@app.command(UNNAMED)
def trust_eval(  # noqa: PLR0913 - one argument an option
    source: Annotated[
        Path,
        typer.Argument(
            metavar="QUESTIONS",
            help="Questions with gold answers or claims: .jsonl, .json, .csv, .tsv, .parquet, or "
            "a folder saved by datasets.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path, typer.Option(help="The data set to write, JSON Lines.", show_default=False)
    ],
    corpus: Annotated[
        Optional[Path],  # noqa: UP045 - typer reads it
        typer.Option(
            help="The source of the documents: a folder of texts, .jsonl, .csv, .tsv, .parquet, "
            "or an index.",
            show_default=False,
        ),
    ] = None,
    retriever: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            help="In place of --corpus: bm25:PATH or bm25:PATH?index=FOLDER.",
            metavar="URI",
            show_default=False,
        ),
    ] = None,
    words: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(
            help="Cut documents into passages of N words. Default: 100 for plain text; "
            "records are not cut.",
            min=1,
            show_default=False,
        ),
    ] = None,
    claims: Annotated[
        str,
        typer.Option(
            help="Gold claims: given (those in the records, else the gold answers), sentences (of "
            "the gold answers), or model (asked of --model)."
        ),
    ] = "given",
    entailer: common.Entailer = DEFAULT_ENTAILER,
    model: common.Model = None,
    candidates: Annotated[
        int, typer.Option(help="Passages to retrieve for each question.", min=1)
    ] = 100,
    documents: Annotated[int, typer.Option(help="Documents to keep of these.", min=1)] = 5,
    threshold: Annotated[
        float,
        typer.Option(help="Entailment probability from which a passage counts as supporting."),
    ] = 0.5,
    limit: common.Limit = None,
    seed: common.Seed = 0,
    field: common.Fields = [],  # noqa: B006
    skip_bad: common.SkipBad = False,
    cache: common.Cache = "",
    prices: common.PricesFile = None,
    budget: common.BudgetText = None,
) -> None:
    """Build a grounded data set from questions, gold answers and a corpus.

    Run a stopped command again to continue. Score answers to the result with --metric grounding.

    \b
    trustassay dataset questions.jsonl --corpus texts/ --out data.jsonl
    trustassay dataset eli5.jsonl --corpus wiki.tsv --claims sentences \\
        --entailer embedded \\
        --out data.jsonl
    trustassay dataset questions.csv \\
        --retriever "bm25:wiki.tsv?index=wiki.bm25" --out data.jsonl
    """
    with errors_for_people():
        from trustassay.retrieval.retriever import bm25_retriever_of
        from trustassay.workflows import dataset as datasets

        if (corpus is None) == (retriever is None):
            raise UsageError("give either --corpus or --retriever")
        options = datasets.BuildOptions(
            claims=cast("datasets.Claims", claims),
            candidates=candidates,
            documents=documents,
            threshold=threshold,
            seed=seed,
            fields=common.pairs(field, "--field"),
            limit=limit,
            skip_bad=skip_bad,
            progress=True,
            calls=common.call_options(cache, prices, budget),
        )
        if corpus is not None:
            found = datasets.bm25_retriever(corpus, words=words, progress=True)
        else:
            found = bm25_retriever_of(retriever or "", words=words, progress=True)
        built = datasets.build(source, out, found, entailer, model, options)
        if built.resumed:
            say(f"{built.resumed:,} questions were already done")
        common.show_endpoints(built.endpoints)
        common.end_if_stopped(built.stopped)
        say(
            f"{built.written:,} questions in {out}, {built.answerable:,} of them answerable "
            f"from {documents} documents"
        )
        common.end_if_failed(built.failed)


app.command("mixedqa")(mixedqa.mixedqa)
