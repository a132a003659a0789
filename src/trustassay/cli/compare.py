"""``trustassay compare``: two runs, or with a judge two sets of answers."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from trustassay.cli import common
from trustassay.cli.common import Json, run_folder
from trustassay.cli.options import Only, list_given_flags, with_options
from trustassay.cli.results import print_run, show_plan, show_worse
from trustassay.errors import UsageError
from trustassay.report.terminal import (
    one_line,
    print_json,
    results_on_output,
    say,
    show_rows,
)
from trustassay.runs.options import (
    MODELS,
    OUTPUT,
    Flag,
    KnownLabelOptions,
    RecordOptions,
    Seed,
    SpendingOptions,
)
from trustassay.text.numbers import amount

if TYPE_CHECKING:
    from trustassay.compare.two_runs import RunComparison


@with_options
def compare(  # noqa: PLR0913 - one argument an option
    first: Annotated[
        Path,
        Flag("RUN", "The earlier run's folder; with --judge, a file of answers or a run."),
    ],
    second: Annotated[
        Path, Flag("RUN", "The later run's folder; with --judge, the answers to compare with.")
    ],
    *,
    metric: Annotated[
        str | None,
        Flag(
            "--metric",
            "Metric to compare. Required if the runs share several.",
            metavar="NAME",
            group=MODELS,
        ),
    ],
    labels: KnownLabelOptions,
    seed: Seed,
    as_json: Json,
    out: Annotated[
        Path | None,
        Flag(
            "--page --out",
            "Write a page with the shares of all questions, the figures and the changed answers; "
            "with --judge, with all pairs.",
            metavar="FILE",
            group=OUTPUT,
        ),
    ],
    judge: Annotated[
        str | None,
        Flag(
            "--judge",
            "A model that judges whose answer is better; a URI as for --model of score. The win "
            "rate is reported instead of differences of scores.",
            metavar="URI",
            group=MODELS,
        ),
    ],
    prompt: Annotated[
        Path | None,
        Flag(
            "--prompt",
            "With --judge: your prompt template; its fields are question, first, second, fence.",
            group=MODELS,
        ),
    ],
    run: Annotated[
        Path | None,
        Flag(
            "--run",
            "With --judge: folder for the calls and verdicts. The same command continues a "
            "stopped run. Default: a folder in trustassay-runs.",
        ),
    ],
    records: RecordOptions,
    spending: Annotated[SpendingOptions, Only("budget")],
    dry_run: common.DryRun,
) -> None:
    """Compare two runs by outcomes, figures and single answers, or compare answers by a judge.

    The first line says which share of all questions changed: passed, failed or not answered.
    Answers are paired by id and question, else by question. Means are compared over the pairs that
    have a score in both runs. The answers that got worse are listed last.

    With --judge, a model compares the two answers to each question in both orders, and the win rate
    of the first input is reported. With --labels, the shares of right answers are compared too.

    \b
    trustassay compare runs/monday runs/tuesday
    trustassay compare runs/monday runs/tuesday --labels monday.jsonl \\
        --labels tuesday.jsonl
    trustassay compare runs/monday runs/tuesday --metric harmonicity \\
        --page change.html
    trustassay compare tuned.jsonl vanilla.jsonl --judge openai:gpt-4o-mini \\
        --budget 2usd
    """
    if judge is not None:
        if metric is not None or labels:
            flag = "--labels" if labels else "--metric"
            raise UsageError(
                f"{flag}: cannot be used with --judge, which compares answers, not scores"
            )
        # A judge compares the answers themselves: the two paths are files of answers and not runs.
        _compare_by_judge(
            (first, second, judge), prompt, run, out, seed, records, spending, dry_run, as_json
        )
        return
    # Options for calls of a judge would be ignored when two runs are compared.
    if flags := list_given_flags(records, spending, prompt=prompt, run=run, dry_run=dry_run):
        raise UsageError(f"{flags[0]}: works only with --judge")
    from trustassay.compare import two_runs
    from trustassay.compare.corrected import LabelFiles

    label_files = LabelFiles.from_options(**labels)
    comparison = two_runs.compare(first, second, metric=metric, labels=label_files, seed=seed)
    with results_on_output(not as_json):
        _show_comparison(comparison)
    if as_json:
        print_json(comparison.to_dict())
    # After the result, which a page that cannot be written must not hide.
    if out:
        two_runs.build_document(comparison).write(out)
        say(f"page: {out}")


def _compare_by_judge(  # noqa: PLR0913 - the options of compare
    inputs: tuple[Path, Path, str],
    prompt: Path | None,
    folder: Path | None,
    page: Path | None,
    seed: int,
    records: RecordOptions,
    spending: SpendingOptions,
    dry_run: bool,
    as_json: bool,
) -> None:
    from trustassay.api import Run
    from trustassay.calls.client import CallOptions
    from trustassay.compare import preferences
    from trustassay.metrics.pairwise import Pairwise
    from trustassay.runs.folder import RunFolder
    from trustassay.runs.intake import default_folder

    first, second, judge = inputs
    metric = Pairwise(None if prompt is None else str(prompt))
    options = preferences.WinRateOptions(
        metric, seed, progress=True, calls=CallOptions.of(**spending), **records
    )
    # The name has a hash of the file's state: a changed second file makes another run.
    state = default_folder(second).name
    settings = {"second": state, "judge": judge, "metrics": metric.settings(), "seed": seed}
    out = run_folder(folder, first, records, **settings)
    if dry_run:
        show_plan(preferences.plan_win_rate(*inputs, out, options), as_json=as_json)
        return
    result = preferences.win_rate(*inputs, out, options)
    # A win rate is stored as a run of the metric pairwise, and is printed like one.
    run = Run(RunFolder(result.path), result.outcome)
    status = print_run(run, as_json=False, worst=False)
    for count, description in (
        (result.pairs.only_first, f"only in {first}"),
        (result.pairs.only_second, f"only in {second}"),
        (result.pairs.blank, "without an answer in one or both of them"),
    ):
        if count:
            say(one_line(f"excluded: {amount(count, 'question')} {description}"))
    say(one_line(preferences.win_rate_headline(result, first, second)))
    if as_json:
        print_json(result.to_dict())
    if page:
        page.parent.mkdir(parents=True, exist_ok=True)
        say(f"page: {run.report(page)}")
    if status:
        raise typer.Exit(status)


def _show_comparison(comparison: "RunComparison") -> None:
    from trustassay.compare.two_runs import build_figures_table, build_outcomes_table

    say(one_line(comparison.headline))
    paths = " and ".join(str(side.path) for side in comparison.scores)
    say(one_line(f"{comparison.metric.title}: {paths}"))
    if comparison.pairing.only_first or comparison.pairing.only_second:
        # The table below covers only the questions of both runs, so all are reported first.
        for side in comparison.scores:
            say(one_line(f"{side.path}, {side.outcomes.sentence}"))
    table = build_outcomes_table(comparison)
    show_rows("all questions", table.columns, table.rows, wide=True)
    say(comparison.pairing.in_words())
    if comparison.figures:
        table = build_figures_table(comparison)
        show_rows("scored pairs", table.columns, table.rows, wide=True)
    # Figures that only one run has, or that have no pairs, are named with the reason.
    for key, reason in comparison.not_compared.items():
        say(one_line(f"{key} is not compared: {reason}"))
    if len(comparison.pairing.first):
        show_worse(comparison.metric.name, comparison.answers)
    for line in comparison.corrected.in_words() if comparison.corrected else ():
        say(one_line(line))
    for note in comparison.notes:
        say(one_line(f"note: {note}"))
