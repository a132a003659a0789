"""``trustassay audit``: what changes the verdicts of a judge although it should not."""

from pathlib import Path
from typing import Annotated

from trustassay.cli import common
from trustassay.cli.common import Json, Source, default_metrics, run_folder
from trustassay.cli.options import Only, with_options
from trustassay.cli.results import show_plan
from trustassay.report.terminal import (
    complain,
    one_line,
    print_json,
    say,
    show_rows,
)
from trustassay.runs.options import (
    MODELS,
    OUTPUT,
    BackendChoices,
    Flag,
    RecordOptions,
    Seed,
    SpendingOptions,
)
from trustassay.text.numbers import amount


@with_options
def audit(  # noqa: PLR0913 - one argument an option
    source: Source,
    *,
    metric: Annotated[
        str | None,
        Flag(
            "--metric",
            "The metric to audit: judge (the default with --judge), pairwise, faithfulness with "
            "an entailer, or any other metric that judges each answer on its own.",
            metavar="NAME[:OPTION=VALUE,...]",
            group=MODELS,
        ),
    ],
    backends: Annotated[BackendChoices, Only("judge", "entailer", "backends")],
    out: Annotated[
        Path | None,
        Flag(
            "--out",
            "Folder for the runs of the audit. Run the same command again to continue. Default: "
            "a folder in trustassay-runs.",
            group=OUTPUT,
        ),
    ],
    page: common.Page,
    seed: Seed,
    records: RecordOptions,
    spending: Annotated[SpendingOptions, Only("budget")],
    dry_run: common.DryRun,
    as_json: Json,
) -> None:
    """Show what changes a judge's scores although it should not.

    The audit changes one thing at a time that should not matter: in your own answers (length,
    Markdown, polite phrases, mentioned experts, citation marks, the user's belief, an instruction
    to the judge), or in the request (sent again, temperature, order, wording). It also plants
    errors, which should matter. The first line compares the largest effect with that of a planted
    error. INPUT may be a run, whose replies are reused.

    \b
    trustassay audit answers.jsonl --judge openai:gpt-4o-mini --limit 200 \\
        --dry-run
    trustassay audit answers.jsonl --judge openai:gpt-4o-mini --limit 200 \\
        --budget 2usd
    trustassay audit answers.jsonl --metric faithfulness --entailer embedded
    trustassay audit runs/pairs --metric pairwise --judge openai:gpt-4o-mini
    """
    from trustassay.calls.client import CallOptions
    from trustassay.core.registry import metric_from_text
    from trustassay.people.audit import experiment
    from trustassay.runs.intake import InputOptions

    metric_text = metric or (
        # A given judge is what the user wants to audit.
        "judge" if "judge" in backends else default_metrics(source, records, {})[0][0]
    )
    folder = run_folder(out, source, records, audit=metric_text, seed=seed, **backends)
    options = InputOptions(progress=True, calls=CallOptions.of(**spending), **records)
    auditing = experiment.Audit(
        source, metric_from_text(metric_text), backends, folder, options, seed
    )
    if dry_run:
        show_plan(auditing.plan(), as_json=as_json)
        return
    result = auditing.run()
    say(one_line(experiment.headline(result)))
    table = experiment.build_table(result)
    show_rows("change", table.columns, table.rows, wide=True)
    for line in experiment.describe_notes(result):
        say(one_line(line))
    experiment.build_document(result).write(page or folder / "audit.html")
    say(f"page: {page or folder / 'audit.html'}")
    if as_json:
        print_json(result.to_dict())
    if result.failed:
        complain(
            f"failed: {amount(result.failed, 'assessment')}; a failure after a change counts as a "
            "flipped verdict; run the same command again to retry only these"
        )
