"""``trustassay score`` and ``trustassay plan``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from trustassay.cli import common
from trustassay.cli.common import errors_for_people
from trustassay.cli.options import (
    Answers,
    AtOnce,
    Backends,
    Cluster,
    Records,
    Spending,
    with_options,
)
from trustassay.cli.plan import show_plan
from trustassay.texts import LONGEST_ANSWER

Pool = Annotated[
    Optional[Path],  # noqa: UP045 - typer reads it
    typer.Option(
        help="Samples for metrics that compare a sample with others. Default: those of the input. "
        "For a shard, the file that shard --whole writes.",
        show_default=False,
    ),
]


@with_options
def score(  # noqa: PLR0913 - one argument an option
    sources: common.Sources,
    *,
    metric: common.Metrics = [],  # noqa: B006 - typer copies it
    backends: Backends,
    out: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(
            help="The run's folder. Run the same command again with the same folder to continue a "
            "stopped run. Default: one in trustassay-runs, named after the input and the settings.",
            show_default=False,
        ),
    ] = None,
    seed: common.Seed = 0,
    unit: common.Unit = None,
    records: Records,
    pool: Pool = None,
    answers: Answers,
    at_once: AtOnce,
    longest_answer: common.LongestAnswer = LONGEST_ANSWER,
    spending: Spending,
    calibrator: common.CalibratorFile = None,
    cluster: Cluster,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Show the calls that would be made; make none (see plan)."),
    ] = False,
    as_json: common.Json = False,
    open_report: Annotated[
        bool, typer.Option("--open", help="Open the report in a browser.")
    ] = False,
) -> None:
    """Score files of answers; the report and all results go into the run's folder.

    Without --metric: grounding where most answers cite their documents; else faithfulness, and
    grounding of those that cite; for gold answers without documents judge:by=entailer. Questions
    without an answer are first sent to --model.

    \b
    trustassay score answers.jsonl
    trustassay score small-model.jsonl large-model.jsonl
    trustassay score answers.json --metric grounding:profile=paper \\
        --entailer hf:MODEL
    trustassay score ragas.parquet --out runs/one --json > summary.json
    trustassay score mine.csv --field response=answer --field documents=contexts
    trustassay score asked.jsonl --model openai:gpt-4o-mini --budget 2usd \\
        --prices prices.json
    trustassay score asked.jsonl --model openai:qwen3@http://127.0.0.1:8000/v1 \\
        --dry-run
    trustassay score questions.jsonl --model openai:gpt-4o-mini \\
        --retriever bm25:passages.tsv
    trustassay score questions.jsonl --model openai:gpt-4o-mini \\
        --metric harmonicity
    trustassay score new.jsonl --metric faithfulness --calibrator calibrator.json
    trustassay score answers.jsonl --engine ray --workers 4 \\
        --store /mnt/shared/store
    """
    with errors_for_people():
        from trustassay import api
        from trustassay.runs.folder import default_folder

        source = common.source_of(sources)
        answering, read, named = answers.read(), records.read(), backends.named()
        why = None
        if not metric:
            metric, why = common.default_metrics(source, read["fields"], named)
        settings: dict[str, Any] = {"metrics": metric, "seed": seed, **named}
        settings |= {"limit": read["limit"], "fields": read["fields"]}
        if unit:
            settings |= {"unit": unit}
        if "model" in named:
            settings |= {"answering": answering.settings()}
        options = {
            "metrics": metric,
            "out": out or default_folder(source, **settings),
            "answering": answering,
            "seed": seed,
            "unit": unit,
            "pool": pool,
            "samples_at_once": at_once.read(),
            "longest_answer": longest_answer,
            "progress": True,
            "command": common.command_line(),
            "why": why,
            "calibrator": calibrator,
            **named,
            **read,
            **spending.keywords(),
        }
        on_cluster = cluster.keywords()
        if dry_run:
            show_plan(api.plan(source, **options), as_json=as_json)
            return
        run = api.score(source, **options, **on_cluster)
        if open_report:
            typer.launch(str(run.path / "report.html"))
        common.show(run, as_json=as_json)


@with_options
def plan(  # noqa: PLR0913
    sources: common.Sources,
    *,
    metric: common.Metrics = [],  # noqa: B006
    backends: Backends,
    out: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(help="The folder of the run, if it was already started.", show_default=False),
    ] = None,
    records: Records,
    pool: Pool = None,
    answers: Answers,
    cache: common.Cache = "",
    prices: common.PricesFile = None,
    as_json: common.Json = False,
) -> None:
    """Show what a run would need: calls, tokens, money and time for each metric. Calls no model.

    Calls that are already stored count with their stored replies, and cost nothing.

    \b
    trustassay plan asked.jsonl --model openai:gpt-4o-mini --prices prices.json
    trustassay plan questions.jsonl --metric harmonicity \\
        --model openai:gpt-4o-mini
    """
    with errors_for_people():
        from trustassay import api

        source = common.source_of(sources)
        spending = Spending(cache, prices)
        read = records.read()
        named = backends.named()
        metric = metric or common.default_metrics(source, read["fields"], named)[0]
        options = {"pool": pool, **named, **read, **spending.keywords()}
        found = api.plan(
            source, metrics=metric, out=out, answering=answers.read(), progress=True, **options
        )
        show_plan(found, as_json=as_json)
