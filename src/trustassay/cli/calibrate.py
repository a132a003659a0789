"""``trustassay calibrate``: turn scores into probabilities of being right."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from trustassay.cli import common
from trustassay.cli.options import with_options
from trustassay.report.terminal import one_line, print_json, say, show_rows
from trustassay.runs.options import (
    CHANCE,
    MODELS,
    OUTPUT,
    Flag,
    Seed,
)


@with_options
def calibrate(  # noqa: PLR0913 - one argument an option
    *,
    runs: common.FinishedRuns,
    label: Annotated[str, common.LABEL] = "",
    metric: Annotated[
        list[str],
        Flag(
            "--metric",
            "A score of the runs: a metric, or a part of one (faithfulness.support). Given "
            "again, they are combined. Not needed where the runs have one metric.",
            metavar="NAME",
            group=MODELS,
        ),
    ],
    lower: Annotated[
        list[str],
        Flag(
            "--lower",
            "A part named by --metric of which lower is better, if its metric does not say so.",
            metavar="NAME",
            rare=True,
        ),
    ],
    at_most: Annotated[
        list[float],
        Flag(
            "--at-most",
            "Find a threshold above which at most this share is wrong. May be given again; the "
            "report shows the first. Default: 0.05, 0.1 and 0.2.",
            metavar="SHARE",
        ),
    ],
    confidence: Annotated[
        float,
        Flag(
            "--confidence",
            "How surely a promise about accepted answers holds.",
            group=CHANCE,
            default=0.95,
        ),
    ],
    method: Annotated[
        str,
        Flag(
            "--method",
            "isotonic, logistic, or auto: the one with the lower log loss out of fold.",
            default="auto",
            rare=True,
        ),
    ],
    ratings: common.Ratings,
    positive: common.Positive,
    at_least: common.AtLeast,
    machine: common.Machine,
    fields: common.RatingFields,
    out: Annotated[
        Path,
        Flag(
            "--out", "The file to write.", metavar="FILE", group=OUTPUT, default="calibrator.json"
        ),
    ],
    page: common.Page,
    resamples: common.Resamples,
    seed: Seed,
    as_json: common.Json,
) -> None:
    """Make scores into probabilities of being right, from labelled answers.

    The file that is written holds the curve, thresholds with a guarantee (above this one, at most 5
    % of what is accepted is wrong), and what the scores looked like. score, rescore and report
    apply it with --calibrator, refuse it for another metric or other options, and warn if the new
    scores look unlike those that it was made from. Too few labels are refused, with the number that
    would do. No model is asked.

    \b
    trustassay calibrate runs/labelled --label label
    trustassay calibrate runs/labelled --label correct \\
        --metric faithfulness.support --at-most 0.05
    trustassay calibrate runs/one runs/two --label label \\
        --metric faithfulness --metric reference
    trustassay calibrate runs/one --ratings ratings.jsonl --out good.json \\
        --page good.html
    trustassay score new.jsonl --metric faithfulness --calibrator calibrator.json
    """
    from trustassay.people.calibrate import command

    result = command.calibrate(
        runs,
        label=label,
        metrics=metric,
        lower=lower,
        at_most=at_most,
        confidence=confidence,
        method=method,
        ratings=ratings,
        positive=positive,
        at_least=at_least,
        machines=machine,
        fields=fields,
        seed=seed,
        resamples=resamples,
    )
    say(one_line(command.headline(result)))
    for note in result.notes:
        say(one_line(note))
    show_rows(
        "probability", list(command.FIGURE_TITLES.values()), command.build_figure_rows(result)
    )
    promises = command.build_promise_rows(result.calibrator)
    show_rows("accepted with", command.PROMISE_COLUMNS, promises, ("threshold",))
    if page:
        command.build_document(result).write(page)
        say(f"page: {page}")
    say(f"calibrator: {result.write(out)}")
    if as_json:
        print_json(result.to_dict())
