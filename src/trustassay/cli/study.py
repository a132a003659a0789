"""``trustassay study`` and ``trustassay calibrate``: scores compared with labels."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from trustassay.cli import common
from trustassay.cli.options import with_options
from trustassay.errors import UsageError
from trustassay.options import Seed
from trustassay.show.terminal import one_line, print_json, say, show_rows, show_table
from trustassay.show.text import amount

if TYPE_CHECKING:
    from trustassay.workflows.study.command import LabelStudy

CASES = 3
PARTING = 8


@with_options
def study(  # noqa: PLR0913 - one argument an option
    *,
    runs: list[Path],
    label: list[str],
    ratings: Path | None,
    by: list[str],
    positive: list[str],
    levels: str | None,
    machine: list[str],
    fields: common.RatingFields,
    page: Path | None,
    table: Path | None,
    resamples: int,
    seed: Seed,
    as_json: common.Json,
) -> None:
    """Say which scores of a run to believe: each compared with labels by people."""
    from trustassay.workflows.study import outputs
    from trustassay.workflows.study.command import study as hold

    if table is not None and table.suffix.lower() not in (".csv", ".tsv", ".md"):
        raise UsageError(f"--table {table}: expected a name that ends with .csv, .tsv or .md")
    found = hold(
        runs,
        labels=label,
        ratings=ratings,
        by=by,
        positive=positive,
        levels=[word for word in (levels or "").split(",") if word.strip()],
        machines=machine,
        fields=fields,
        seed=seed,
        resamples=resamples,
    )
    say(
        f"{amount(found.answers, 'answer')} to {amount(found.questions, 'question')}; intervals "
        f"from {found.resamples:,} resamples of questions, seed {found.seed}"
    )
    for note in found.notes:
        say(one_line(note))
    for one in found.labels:
        _show_label(one)
    rows = [(cost.metric, *outputs.cost_row(cost)) for cost in found.costs]
    show_table(("a sample takes", *outputs.COST_COLUMNS), rows, ("requests",))
    if page:
        outputs.write_page(found, page)
        say(f"page: {page}")
    if table:
        outputs.write_figures(found, table)
        say(f"table: {table}")
    if as_json:
        print_json(found.to_dict())


def _show_label(one: LabelStudy) -> None:
    from trustassay.workflows.study import outputs

    say("")
    say(one_line(f"label {outputs.label_title(one)}"))
    shown = outputs.shown_figures(one)
    first, second = shown[:4], shown[4:]
    headline, *named = [outputs.FIGURES[name] for name in first]
    with_interval = ("n", headline, "95 % interval")
    show_rows("score", (*with_interval, *named), outputs.score_rows(one, first))
    if second:
        rest = [(row.name, *row.cells[3:]) for row in outputs.score_rows(one, [first[0], *second])]
        show_table(("score", *(outputs.FIGURES[name] for name in second)), rest, ())
    for reason in outputs.missing(one):
        say(one_line(reason))
    of = f"{headline} of"
    if one.tests:
        show_rows(of, outputs.TEST_COLUMNS, outputs.test_rows(one), (of,))
    if one.covariates:
        what = "covariate (neither end is better)"
        show_rows(what, outputs.COVARIATE_COLUMNS, outputs.covariate_rows(one))
    say(one_line(outputs.headline(one)))
    for by in one.groups:
        show_rows(by, with_interval, outputs.group_rows(one, by, shown[:1]))
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


@with_options
def calibrate(  # noqa: PLR0913 - one argument an option
    *,
    runs: list[Path],
    label: str,
    metric: list[str],
    lower: list[str],
    at_most: list[float],
    confidence: float,
    method: str,
    ratings: Path | None,
    positive: list[str],
    machine: list[str],
    fields: common.RatingFields,
    out: Path,
    page: Path | None,
    resamples: int,
    seed: Seed,
    as_json: common.Json,
) -> None:
    """Make scores into probabilities of being right, from labelled answers."""
    from trustassay.workflows.calibrate import outputs
    from trustassay.workflows.calibrate.command import FIGURES
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
        fields=fields,
        seed=seed,
        resamples=resamples,
    )
    say(one_line(outputs.headline(found)))
    for note in found.notes:
        say(one_line(note))
    show_rows("probability", list(FIGURES.values()), outputs.figure_rows(found))
    promises = outputs.promise_rows(found.calibrator)
    show_rows("accepted with", outputs.PROMISES, promises, ("threshold",))
    if page:
        outputs.write_page(found, page)
        say(f"page: {page}")
    say(f"calibrator: {found.write(out)}")
    if as_json:
        print_json(found.to_dict())
