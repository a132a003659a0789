"""``trustassay study`` and ``trustassay calibrate``: scores compared with labels."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from trustassay.cli import common
from trustassay.cli.common import errors_for_people
from trustassay.errors import UsageError
from trustassay.show.terminal import one_line, print_json, say, show_rows, show_table

if TYPE_CHECKING:
    from trustassay.workflows.calibrate.command import Calibration
    from trustassay.workflows.study.command import LabelStudy, Study

CASES = 3
PARTING = 8


def study(  # noqa: PLR0913 - one argument an option
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN...",
            help="Folders of finished runs: of the same answers, or of others.",
            show_default=False,
        ),
    ],
    label: Annotated[
        list[str],
        typer.Option(
            help="The field of the samples that says how good an answer is: 0 and 1, a level, a "
            "number, or words such as yes and no; dots descend into objects. Or a column of "
            "--ratings. May be given again.",
            metavar="FIELD",
            show_default=False,
        ),
    ] = [],  # noqa: B006 - typer copies it
    ratings: Annotated[
        Optional[Path],  # noqa: UP045 - typer reads it
        typer.Option(
            help="Ratings by people as `annotate` writes them or `agree` reads them, pooled to one "
            "label; or a table keyed by id, whose columns --label names.",
            show_default=False,
        ),
    ] = None,
    by: Annotated[
        list[str],
        typer.Option(
            help="Tell all figures again for each value of a field: source, model, ... May be "
            "given again.",
            metavar="FIELD",
            show_default=False,
        ),
    ] = [],  # noqa: B006
    positive: Annotated[
        list[str],
        typer.Option(
            help="A word of a label that means right; all others of that label then mean wrong. "
            "May be given again.",
            metavar="WORD",
            show_default=False,
        ),
    ] = [],  # noqa: B006
    levels: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            help="Words of an ordinal scale, the lowest first, with commas between them.",
            show_default=False,
        ),
    ] = None,
    machine: Annotated[
        list[str],
        typer.Option(
            help="A rater of --ratings that is a judge: a score to be studied, and no label. May "
            "be given again.",
            metavar="RATER",
            show_default=False,
        ),
    ] = [],  # noqa: B006
    field: common.RatingFields = [],  # noqa: B006
    page: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(help="Write a page with curves and tables.", show_default=False),
    ] = None,
    table: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(help="Write all figures: .csv, .tsv or .md.", show_default=False),
    ] = None,
    resamples: Annotated[
        int, typer.Option(help="How often questions are drawn anew.", min=100)
    ] = 2000,
    seed: common.Seed = 0,
    as_json: common.Json = False,
) -> None:
    """Say which scores of a run to believe: each held against labels by people.

    AUROC, AUPRC, PRR, Kendall's tau-b, Spearman, Pearson, and for probabilities Brier and
    calibration error, with 95 % intervals over questions; differences between scores
    with p-values corrected for their number; baselines (length, source, chance), what people
    reach, what each score takes, and which is right where another is wrong.

    \b
    trustassay study runs/one --label label
    trustassay study runs/one runs/two --label labels.correct --by source --by model
    trustassay study runs/one --ratings ratings.jsonl --machine gpt-4o --page study.html
    trustassay study runs/one --ratings gold.csv --label verdict --positive grounded --table all.csv
    """
    with errors_for_people():
        from trustassay.workflows.study.command import study as hold

        _check_table(table)
        found = hold(
            runs,
            labels=label,
            ratings=ratings,
            by=by,
            positive=positive,
            levels=[word for word in (levels or "").split(",") if word.strip()],
            machines=machine,
            fields=common.pairs(field, "--field"),
            seed=seed,
            resamples=resamples,
        )
        _show(found)
        _write(found, page, table)
        if as_json:
            print_json(found.to_dict())


def _check_table(table: Path | None) -> None:
    """Refuse a name that would be refused after minutes of work."""
    if table is not None and table.suffix.lower() not in (".csv", ".tsv", ".md"):
        raise UsageError(f"--table {table}: expected a name that ends with .csv, .tsv or .md")


def _write(found: Study, page: Path | None, table: Path | None) -> None:
    from trustassay.workflows.study.outputs import write_figures, write_page

    if page:
        write_page(found, page)
        say(f"page: {page}")
    if table:
        write_figures(found, table)
        say(f"table: {table}")


def _show(found: Study) -> None:
    from trustassay.show.text import amount
    from trustassay.workflows.study.outputs import COST_COLUMNS, cost_row

    say(
        f"{amount(found.answers, 'answer')} to {amount(found.questions, 'question')}; intervals "
        f"from {found.resamples:,} resamples of questions, seed {found.seed}"
    )
    for note in found.notes:
        say(one_line(note))
    for one in found.labels:
        _show_label(one)
    rows = [(cost.metric, *cost_row(cost)) for cost in found.costs]
    show_table(("a sample takes", *COST_COLUMNS), rows, ("requests",))


def _show_label(one: LabelStudy) -> None:
    from trustassay.workflows.study.outputs import (
        COVARIATE_COLUMNS,
        FIGURES,
        TEST_COLUMNS,
        covariate_rows,
        group_rows,
        headline,
        label_title,
        missing,
        score_rows,
        shown_figures,
        test_rows,
    )

    say("")
    say(one_line(f"label {label_title(one)}"))
    shown = shown_figures(one)
    first, second = shown[:4], shown[4:]
    named = [FIGURES[name] for name in first]
    show_rows("score", ("n", named[0], "95 % interval", *named[1:]), score_rows(one, first))
    if second:
        rest = [(row.name, *row.cells[3:]) for row in score_rows(one, [second[0], *second])]
        show_table(("score", *(FIGURES[name] for name in second)), rest, ())
    for reason in missing(one):
        say(one_line(reason))
    of = f"{named[0]} of"
    if one.tests:
        show_rows(of, TEST_COLUMNS, test_rows(one), (of,))
    if one.covariates:
        what = "covariate (neither end is better)"
        show_rows(what, COVARIATE_COLUMNS, covariate_rows(one))
    say(one_line(headline(one)))
    for by in one.groups:
        show_rows(by, ("n", named[0], "95 % interval"), group_rows(one, by, shown[:1]))
    _show_parting(one)


def _show_parting(one: LabelStudy) -> None:
    parting = sorted(one.parting, key=lambda each: -each.count)[:PARTING]
    rows = [
        (
            f"{each.first} right, {each.second} wrong",
            f"{each.count:,}",
            f"{each.wrong:,}",
            " ".join(case.id for case in each.cases[:CASES]),
        )
        for each in parting
        if each.count
    ]
    if rows:
        show_table(("answers", "count", "of errors", "such as"), rows, ("such as",))


def calibrate(  # noqa: PLR0913 - one argument an option
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN...",
            help="Folders of finished runs with labelled answers.",
            show_default=False,
        ),
    ],
    label: Annotated[
        str,
        typer.Option(
            help="The field of the samples that says whether an answer is right: two classes, as "
            "study reads them. Or a column of --ratings.",
            metavar="FIELD",
            show_default=False,
        ),
    ] = "",
    metric: Annotated[
        list[str],
        typer.Option(
            help="A score of the runs: a metric, or a part of one (faithfulness.support). Given "
            "again, they are combined. Not needed where the runs have one metric.",
            metavar="NAME",
            show_default=False,
        ),
    ] = [],  # noqa: B006 - typer copies it
    lower: Annotated[
        list[str],
        typer.Option(
            help="A part named by --metric of which lower is better, where its metric does not "
            "say so.",
            metavar="NAME",
            show_default=False,
        ),
    ] = [],  # noqa: B006
    at_most: Annotated[
        list[float],
        typer.Option(
            help="Find a threshold above which at most this share is wrong. May be given again; "
            "the report shows the first. Default: 0.05, 0.1 and 0.2.",
            metavar="SHARE",
            show_default=False,
        ),
    ] = [],  # noqa: B006
    confidence: Annotated[
        float, typer.Option(help="How surely a promise about accepted answers holds.")
    ] = 0.95,
    method: Annotated[
        str,
        typer.Option(
            help="isotonic, logistic, or auto: the one with the lower log loss out of fold."
        ),
    ] = "auto",
    ratings: Annotated[
        Optional[Path],  # noqa: UP045 - typer reads it
        typer.Option(
            help="Ratings by people, pooled to one label; or a table keyed by id, whose column "
            "--label names. As of study.",
            show_default=False,
        ),
    ] = None,
    positive: Annotated[
        list[str],
        typer.Option(
            help="A word of the label that means right; all others then mean wrong. May be given "
            "again.",
            metavar="WORD",
            show_default=False,
        ),
    ] = [],  # noqa: B006
    machine: Annotated[
        list[str],
        typer.Option(
            help="A rater of --ratings that is a judge, and does not count. May be given again.",
            metavar="RATER",
            show_default=False,
        ),
    ] = [],  # noqa: B006
    field: common.RatingFields = [],  # noqa: B006
    out: Annotated[Path, typer.Option(help="The file to write.", metavar="FILE")] = Path(
        "calibrator.json"
    ),
    page: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(help="Write a page with curves and tables.", show_default=False),
    ] = None,
    resamples: Annotated[
        int, typer.Option(help="How often questions are drawn anew.", min=100)
    ] = 2000,
    seed: common.Seed = 0,
    as_json: common.Json = False,
) -> None:
    """Make scores into probabilities of being right, from labelled answers.

    The file that is written holds the curve, thresholds with a guarantee (above this one, at most
    5 % of what is accepted is wrong), and what the scores looked like. score, rescore and report
    apply it with --calibrator, refuse it for another metric or other options, and warn if the new
    scores look unlike those that it was made from. Too few labels are refused, with the number
    that would do. No model is asked.

    \b
    trustassay calibrate runs/labelled --label label
    trustassay calibrate runs/labelled --label correct --metric faithfulness.support --at-most 0.05
    trustassay calibrate runs/one runs/two --label label --metric faithfulness --metric reference
    trustassay calibrate runs/one --ratings ratings.jsonl --out good.json --page good.html
    trustassay score new.jsonl --metric faithfulness --calibrator calibrator.json
    """
    with errors_for_people():
        from trustassay.workflows.calibrate.command import calibrate as make

        found = make(
            runs,
            label=label,
            metrics=metric,
            lower=lower,
            at_most=at_most,
            confidence=confidence,
            method=method,
            ratings=ratings,
            positive=positive,
            machines=machine,
            fields=common.pairs(field, "--field"),
            seed=seed,
            resamples=resamples,
        )
        _show_calibration(found)
        if page:
            from trustassay.workflows.calibrate.outputs import write_page

            write_page(found, page)
            say(f"page: {page}")
        say(f"calibrator: {found.write(out)}")
        if as_json:
            print_json(found.to_dict())


def _show_calibration(found: Calibration) -> None:
    from trustassay.workflows.calibrate.command import FIGURES
    from trustassay.workflows.calibrate.outputs import (
        PROMISES,
        figure_rows,
        headline,
        promise_rows,
    )

    say(one_line(headline(found)))
    for note in found.notes:
        say(one_line(note))
    show_rows("probability", list(FIGURES.values()), figure_rows(found))
    show_rows("accepted with", PROMISES, promise_rows(found.calibrator), ("threshold",))
