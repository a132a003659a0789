"""``trustassay study``: how far each score of a run agrees with labels."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from trustassay.cli import common
from trustassay.cli.options import with_options
from trustassay.errors import UsageError
from trustassay.report.terminal import one_line, print_json, say, show_rows, show_table
from trustassay.runs.options import (
    INPUT,
    OUTPUT,
    Flag,
    LongestLine,
    Seed,
    Sheet,
)
from trustassay.text.numbers import amount

if TYPE_CHECKING:
    from trustassay.people.study.command import LabelStudy


MAX_CASES = 3
"""Answers that are listed for each disagreement of two scores."""


MAX_DISAGREEMENTS = 8
"""Disagreements of two scores that are listed, the most frequent first."""


@with_options
def study(  # noqa: PLR0913 - one argument an option
    *,
    source: common.RunsOrTable,
    label: Annotated[list[str], common.LABEL],
    score: Annotated[
        list[str],
        Flag(
            "--score",
            "A score to study. May be given again. Default: all; in a file all columns of numbers.",
            metavar="NAME",
            group=INPUT,
        ),
    ],
    lower: Annotated[
        list[str],
        Flag(
            "--lower",
            "A score for which lower is better. May be given again.",
            metavar="NAME",
            group=INPUT,
        ),
    ],
    sheet: Sheet,
    longest_line: LongestLine,
    ratings: common.Ratings,
    by: Annotated[
        list[str],
        Flag(
            "--by",
            "Also give all figures for each value of a field: source, model, ... May be given "
            "again.",
            metavar="FIELD",
        ),
    ],
    positive: common.Positive,
    at_least: common.AtLeast,
    levels: common.Levels,
    machine: common.Machine,
    fields: common.RatingFields,
    page: common.Page,
    table: Annotated[
        Path | None, Flag("--table", "Write all figures to a .csv, .tsv or .md file.", group=OUTPUT)
    ],
    resamples: common.Resamples,
    seed: Seed,
    as_json: common.Json,
) -> None:
    """Show which scores agree with human labels, in runs or in a file.

    Prints AUROC, AUPRC and PRR (tau-b for levels and numbers) with 95 % intervals over questions;
    differences between scores with p-values corrected for the number of tests; baselines (length,
    source, chance); how well single raters do; the cost of each score; and which score is right
    where another is wrong. --table and --json also have tau-b, Spearman, Pearson with its p-value
    (for independent answers), and for probabilities the Brier score and calibration error.

    \b
    trustassay study runs/one --label label
    trustassay study scores.csv --label human --score jev
    trustassay study runs/one runs/two --label labels.correct --by source \\
        --by model
    trustassay study runs/one --ratings ratings.jsonl --machine gpt-4o \\
        --page study.html
    trustassay study runs/one --ratings gold.csv --label verdict \\
        --positive grounded --table all.csv
    """
    from trustassay.people.study import outputs
    from trustassay.people.study.command import study as run_study

    # Before the study, which may take minutes.
    if table is not None and table.suffix.lower() not in (".csv", ".tsv", ".md"):
        raise UsageError(f"--table {table}: expected a name that ends with .csv, .tsv or .md")
    result = run_study(
        source,
        labels=label,
        scores=score,
        lower=lower,
        ratings=ratings,
        by=by,
        positive=positive,
        at_least=at_least,
        levels=[word for word in (levels or "").split(",") if word.strip()],
        machines=machine,
        fields=fields,
        sheet=str(sheet or ""),
        longest_line=longest_line,
        seed=seed,
        resamples=resamples,
    )
    say(
        f"{amount(result.answers, 'answer')} to {amount(result.questions, 'question')}; intervals "
        f"from {result.resamples:,} resamples of questions, seed {result.seed}"
    )
    for note in result.notes:
        say(one_line(note))
    for label_study in result.labels:
        _show_label(label_study)
    # What a score costs belongs beside how good it is.
    rows = [(cost.metric, *outputs.build_cost_row(cost)) for cost in result.costs]
    if rows:
        show_table(("cost per sample", *outputs.COST_COLUMNS), rows, ("requests",))
    if page:
        outputs.build_document(result, page.parent).write(page)
        say(f"page: {page}")
    if table:
        outputs.write_figures(result, table)
        say(f"table: {table}")
    if as_json:
        print_json(result.to_dict())


def _show_label(label_study: LabelStudy) -> None:
    from trustassay.people.study import outputs

    say("")
    say(one_line(f"label {outputs.describe_label(label_study)}"))
    figure_keys = outputs.choose_figures(label_study)
    # The first figure is the one by which scores are ranked; only it has an interval here.
    headline, *other_headings = [outputs.FIGURE_TITLES[name] for name in figure_keys]
    with_interval = ("n", headline, "95 % interval")
    show_rows(
        "score",
        (*with_interval, *other_headings),
        outputs.build_score_rows(label_study, figure_keys),
    )
    for reason in outputs.describe_missing(label_study):
        say(one_line(reason))
    pair = f"{headline} compared"
    if label_study.tests:
        show_rows(pair, outputs.TEST_COLUMNS, outputs.build_test_rows(label_study), (pair,))
    if label_study.covariates:
        covariate_heading = "covariate (no better direction)"
        show_rows(
            covariate_heading, outputs.COVARIATE_COLUMNS, outputs.build_covariate_rows(label_study)
        )
    say(one_line(outputs.headline(label_study)))
    for by in label_study.groups:
        show_rows(by, with_interval, outputs.build_group_rows(label_study, by, figure_keys[:1]))
    _show_parting(label_study)


def _show_parting(label_study: LabelStudy) -> None:
    disagreements = sorted(label_study.parting, key=lambda disagreement: -disagreement.count)[
        :MAX_DISAGREEMENTS
    ]
    rows = [
        (
            f"{disagreement.first} right, {disagreement.second} wrong",
            f"{disagreement.count:,}",
            f"{disagreement.wrong:,}",
            " ".join(case.id for case in disagreement.cases[:MAX_CASES]),
        )
        for disagreement in disagreements
        if disagreement.count
    ]
    if rows:
        headings = ("scores that disagree", "answers", "errors of the second", "examples")
        show_table(headings, rows, ("scores that disagree", "examples"))
