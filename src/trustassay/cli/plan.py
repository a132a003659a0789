"""``trustassay plan``: the calls, tokens, money and time that a run would need."""

from pathlib import Path
from typing import Annotated

from trustassay.cli import common
from trustassay.cli.options import Only, with_options
from trustassay.cli.results import show_plan
from trustassay.runs.options import (
    OUTPUT,
    AnswerOptions,
    BackendChoices,
    DrawOptions,
    Flag,
    Pool,
    RecordOptions,
    SpendingOptions,
    Turns,
)


@with_options
def plan(  # noqa: PLR0913
    sources: common.Sources,
    *,
    metric: common.Metrics,
    allow_missing_references: common.AllowMissingReferences,
    backends: BackendChoices,
    out: Annotated[
        Path | None,
        Flag("--out", "Folder of the run, if it was already started.", group=OUTPUT),
    ],
    turns: Turns,
    records: RecordOptions,
    drawn: Annotated[DrawOptions, Only("sample", "sample_by")],
    pool: Pool,
    answers: AnswerOptions,
    spending: Annotated[SpendingOptions, Only("prices")],
    as_json: common.Json,
) -> None:
    """Show the calls, tokens, money and time that a run would need, by metric. Calls no model.

    Calls whose replies are already stored cost nothing.

    \b
    trustassay plan asked.jsonl --model openai:gpt-4o-mini --prices prices.json
    trustassay plan questions.jsonl --metric harmonicity \\
        --model openai:gpt-4o-mini
    """
    from trustassay import api

    source = common.join_sources(sources)
    if allow_missing_references:
        metric = common.allow_missing_references(metric)
    metric = metric or common.default_metrics(source, records, backends)[0]
    result = api.plan(
        source,
        metrics=metric,
        out=out,
        answering=common.build_answering(answers),
        turns=turns,
        pool=pool,
        progress=True,
        **backends,
        **records,
        **drawn,
        **spending,
    )
    show_plan(result, as_json=as_json)
