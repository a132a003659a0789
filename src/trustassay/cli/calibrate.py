"""``trustassay calibrate``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from trustassay.cli import common
from trustassay.cli.common import errors_for_people
from trustassay.show.terminal import one_line, print_json, say, show_table

if TYPE_CHECKING:
    from trustassay.workflows.calibrate import Calibration


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
        from trustassay.workflows.calibrate import calibrate as make

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
        _show(found)
        if page:
            from trustassay.workflows.calibrate.outputs import write_page

            write_page(found, page)
            say(f"page: {page}")
        say(f"calibrator: {found.write(out)}")
        if as_json:
            print_json(found.to_dict())


def _show(found: Calibration) -> None:
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
    rows = [(name, *cells) for name, cells in figure_rows(found)]
    show_table(("probability", *FIGURES.values()), rows, ())
    kept = [(name, *cells) for name, cells in promise_rows(found.calibrator)]
    show_table(("accepted with", *PROMISES), kept, ("threshold",))
