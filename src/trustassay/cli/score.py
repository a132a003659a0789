"""``trustassay score`` and ``trustassay plan``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from trustassay.backends import DEFAULT_EMBEDDER, DEFAULT_ENTAILER
from trustassay.cli import common
from trustassay.cli.common import errors_for_people
from trustassay.cli.plan import show_plan


def score(  # noqa: PLR0913 - one argument an option
    source: common.Source,
    metric: common.Metrics = ["grounding"],  # noqa: B006 - typer copies it
    model: common.Model = None,
    entailer: common.Entailer = DEFAULT_ENTAILER,
    embedder: common.Embedder = DEFAULT_EMBEDDER,
    out: Annotated[
        Optional[Path],  # noqa: UP045 - typer reads it
        typer.Option(
            help="The run's folder; the same command with the same folder goes on where it "
            "stopped. Default: one in trustassay-runs, named after the input and the settings.",
            show_default=False,
        ),
    ] = None,
    limit: common.Limit = None,
    seed: common.Seed = 0,
    concurrency: common.Concurrency = None,
    field: common.Fields = [],  # noqa: B006
    skip_bad: common.SkipBad = False,
    style: common.Style = "auto",
    prompt: common.PromptFile = None,
    examples: common.Examples = None,
    temperature: common.Temperature = 0.0,
    max_tokens: common.MaxTokens = 300,
    cache: common.Cache = "",
    prices: common.PricesFile = None,
    budget: common.BudgetText = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be asked; ask nothing (see plan).")
    ] = False,
    as_json: common.Json = False,
    open_report: Annotated[
        bool, typer.Option("--open", help="Open the report in a browser.")
    ] = False,
) -> None:
    """Score a file of answers; the report and all results go into the run's folder.

    Questions without an answer are put to --model first; for grounding they bring documents.

    \b
    trustassay score answers.jsonl
    trustassay score answers.json --metric grounding:profile=paper --entailer hf:MODEL
    trustassay score ragas.parquet --out runs/one --json > summary.json
    trustassay score mine.csv --field response=answer --field documents=contexts
    trustassay score asked.jsonl --model openai:gpt-4o-mini --budget 2usd --prices prices.json
    trustassay score asked.jsonl --model openai:qwen3@http://127.0.0.1:8000/v1 --dry-run
    trustassay score questions.jsonl --model openai:gpt-4o-mini --metric harmonicity
    """
    with errors_for_people():
        from trustassay.engine import api
        from trustassay.engine.naming import default_folder

        fields = common.pairs(field, "--field")
        answering = common.answering(style, prompt, examples, temperature, max_tokens)
        settings: dict[str, Any] = {"metrics": metric, "entailer": entailer, "embedder": embedder}
        settings |= {"seed": seed, "limit": limit, "fields": fields}
        if model is not None:
            settings |= {"model": model, "answering": answering.settings()}
        folder = out or default_folder(source, **settings)
        options = {
            "metrics": metric,
            "entailer": entailer,
            "embedder": embedder,
            "model": model,
            "out": folder,
            "answering": answering,
            "fields": fields,
            "limit": limit,
            "seed": seed,
            "skip_bad": skip_bad,
            "concurrency": concurrency,
            "progress": True,
            **common.spending(cache, prices, budget),
        }
        if dry_run:
            show_plan(api.plan(source, **options), as_json=as_json)
            return
        run = api.score(source, **options)
        if open_report:
            typer.launch(str(run.path / "report.html"))
        common.show(run, as_json=as_json)


def plan(  # noqa: PLR0913 - one argument an option
    source: common.Source,
    metric: common.Metrics = ["grounding"],  # noqa: B006 - typer copies it
    model: common.Model = None,
    entailer: common.Entailer = DEFAULT_ENTAILER,
    embedder: common.Embedder = DEFAULT_EMBEDDER,
    out: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(help="The folder of the run, where it was begun already.", show_default=False),
    ] = None,
    limit: common.Limit = None,
    field: common.Fields = [],  # noqa: B006
    skip_bad: common.SkipBad = False,
    style: common.Style = "auto",
    prompt: common.PromptFile = None,
    examples: common.Examples = None,
    temperature: common.Temperature = 0.0,
    max_tokens: common.MaxTokens = 300,
    cache: common.Cache = "",
    prices: common.PricesFile = None,
    as_json: common.Json = False,
) -> None:
    """Say what a run would ask: calls, tokens, money and time for each metric. Asks nothing.

    What is stored already counts as it was answered, and costs nothing. Tokens, money and time are
    ranges: learnt from stored replies of the same model, or guesses that are marked as such.

    \b
    trustassay plan asked.jsonl --model openai:gpt-4o-mini --prices prices.json
    trustassay plan questions.jsonl --metric harmonicity --model openai:gpt-4o-mini
    """
    score(
        source,
        metric,
        model,
        entailer,
        embedder,
        out,
        limit,
        field=field,
        skip_bad=skip_bad,
        style=style,
        prompt=prompt,
        examples=examples,
        temperature=temperature,
        max_tokens=max_tokens,
        cache=cache,
        prices=prices,
        dry_run=True,
        as_json=as_json,
    )
