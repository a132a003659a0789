"""``trustassay agree``: how far raters agree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from trustassay.cli import common
from trustassay.cli.options import with_options
from trustassay.errors import UsageError, did_you_mean
from trustassay.report.terminal import one_line, print_json, say, show_rows
from trustassay.runs.options import (
    LABELS,
    Flag,
    LongestLine,
    Sheet,
    Unit,
)
from trustassay.text.numbers import amount

if TYPE_CHECKING:
    from trustassay.input.ratings import Ratings
    from trustassay.people.agree import RaterAgreement, RatingDispute


MAX_DISPUTES = 10
"""Items on which raters disagree that are listed, the largest disagreement first."""


MAX_LEVELS_LISTED = 12
"""Levels that are listed one by one; of more, the first and the last are shown."""


@with_options
def agree(  # noqa: PLR0913 - one argument an option
    *,
    source: Annotated[
        str | None,
        Flag(
            "FILE",
            "Ratings: .csv, .tsv, .xlsx, .jsonl, .json, .parquet or traces. Each row has item, "
            "rater and rating, optionally repeat and model; or item and a column of numbers for "
            "each rater. Optional if --run has judges' votes.",
        ),
    ],
    fields: common.RatingFields,
    rater: Annotated[
        list[str],
        Flag(
            "--rater",
            "Read only the ratings by this rater from FILE; in a wide table, the rater's column. "
            "May be given again.",
            metavar="NAME",
            group=LABELS,
        ),
    ],
    levels: common.Levels,
    sheet: Sheet,
    longest_line: LongestLine,
    run: Annotated[
        Path | None,
        Flag(
            "--run",
            "Folder of the rated run. Disputes link to its report, and the votes of its judges, "
            "if any, are added to the ratings of FILE.",
        ),
    ],
    unit: Unit,
    machine: common.Machine,
    page: common.Page,
    as_json: common.Json,
) -> None:
    """Measure how far raters agree, and list the items on which they disagree.

    Prints Cohen's and Fleiss's kappa, Krippendorff's alpha, Gwet's AC1, intraclass correlations,
    percentages and mean differences, with 95 % intervals over items: for each pair, for all raters
    together, and for each rater's repeated ratings. Raters are compared by their first rating of an
    item; later ratings by the same rater are repeats. Each judge is compared with all people. The
    variance of the ratings is split into parts for answers, raters and repeats, separately for
    people and judges.

    \b
    trustassay agree ratings.csv
    trustassay agree wide.csv --field item=question --rater anna --rater bela \\
        --rater judge
    trustassay agree ratings.csv --levels 1..5
    trustassay agree ratings.jsonl --levels poor,fair,good --run runs/one --json
    trustassay agree --run runs/judged --page variance.html
    """
    from trustassay.people.agree import (
        add_report_links,
        build_document,
        measure_agreement,
        read_unit_of_run,
        read_units_of_items,
    )
    from trustassay.runs.units import ANSWER

    ratings, judges = _gather_ratings(
        source, run, fields, rater, levels, machine, str(sheet or ""), longest_line
    )
    if unit not in (None, ANSWER) and run is None:
        raise UsageError(
            f"--unit {unit}: needs the run that was rated; add --run, or use --unit answer"
        )
    # Only the run knows the questions, and the unit that it was scored with.
    unit = unit or (read_unit_of_run(run) if run else None)
    units = read_units_of_items(run, unit) if run else None
    result = measure_agreement(
        ratings, machines=judges, units=units, each_answer=unit == ANSWER, progress=True
    )
    disputes = add_report_links(run, result.disputes) if run else result.disputes
    _show_agreement(result, disputes)
    if page:
        if document := build_document(result, source, run):
            document.write(page)
            say(f"page: {page}")
        else:
            say("no page written: unordered categories have no variance")
    if as_json:
        print_json(result.to_dict() | {"disputes": [dispute.to_dict() for dispute in disputes]})


def _gather_ratings(  # noqa: PLR0913 - one argument an option
    source: str | None,
    run: Path | None,
    fields: Mapping[str, str],
    raters: list[str],
    levels: str | None,
    machines: list[str],
    sheet: str,
    longest_line: int,
) -> tuple[Ratings, set[str]]:
    """Return the ratings of the file and by the judges of the run, and the names of the judges.

    Raises:
        InputError: there are no ratings, or a judge is named that is no rater.
    """
    from trustassay.input.ratings import read_ratings
    from trustassay.input.records import InputError
    from trustassay.people.agree import leave_out_scores
    from trustassay.people.votes import join_ratings, read_votes

    votes = read_votes(run) if run else None
    if source is None:
        if votes is None:
            location = f"{run}: has no judges' votes" if run else "no ratings"
            raise InputError(
                f"{location}; name a FILE of ratings, or a run of the metric judge with --run"
            )
        if machines or fields or raters or levels or sheet:
            raise InputError(
                "--machine, --field, --rater, --levels and --sheet apply to FILE; name the file"
            )
        return votes, {rating.rater for rating in votes.ratings}
    ratings = read_ratings(
        source,
        fields=fields,
        raters=raters,
        levels=[word for word in (levels or "").split(",") if word.strip()],
        sheet=sheet,
        longest_line=longest_line,
    )
    ratings, remarks = leave_out_scores(ratings, source)
    for remark in remarks:
        say(one_line(remark))
    # Agreement on hard answers is lower, so that it says little about all answers.
    if ratings.has_unequal_chances:
        say(
            f"warning: {source}: `label` drew uncertain answers more often; on all answers, "
            "raters may agree more"
        )
    names = {rating.rater for rating in ratings.ratings}
    for name in machines:
        if name not in names:
            raise InputError(f"--machine: {did_you_mean('rater', name, sorted(names))}")
    if votes is None:
        return ratings, set(machines)
    try:
        # The scales may differ: then only the file is used.
        all_ratings = join_ratings(ratings, votes)
    except UsageError as error:
        say(one_line(f"the votes of the run's judges are not used: {error}"))
        return ratings, set(machines)
    return all_ratings, {*machines, *(rating.rater for rating in votes.ratings)}


def _show_agreement(agreement: RaterAgreement, disputes: Sequence[RatingDispute]) -> None:
    from trustassay.people.agree import (
        VARIANCE_COLUMNS,
        build_group_tables,
        build_overall_table,
        build_variance_table,
        describe_left_out,
        describe_variance,
    )

    rater_counts = ", ".join(f"{name} {count:,}" for name, count in agreement.raters.items())
    say(one_line(f"{amount(agreement.items, 'item')}; ratings per rater: {rater_counts}"))
    for line in describe_left_out(agreement):
        say(one_line(line))
    if agreement.categories and not agreement.ordered:
        say(one_line(f"unordered categories: {', '.join(agreement.categories)}"))
    # Weighted kappas depend on the whole scale, so the source of the levels is reported.
    elif agreement.levels_declared:
        say(one_line(f"levels: {_list_levels(agreement.levels)}"))
    else:
        say(
            one_line(
                f"levels in the ratings: {_list_levels(agreement.levels)}; weighted kappas and AC1 "
                "assume that the scale has no others; --levels 1..5 declares the scale"
            )
        )
    if agreement.overall:
        table = build_overall_table(agreement)
        show_rows(table.first, table.columns, table.rows)
        for reason in sorted(
            {figure.without for figure in agreement.overall.values() if figure.without}
        ):
            say(f"no interval: {reason}")
    for table in build_group_tables(agreement):
        show_rows(table.first, table.columns, table.rows, wide=True)
    if agreement.variance:
        if rows := build_variance_table(agreement.variance).rows:
            show_rows("variance of ratings", VARIANCE_COLUMNS, rows, wide=True)
        for note in describe_variance(agreement.variance):
            say(one_line(note))
        say(one_line(agreement.variance.in_words()))
    # Disputed items are what people should talk about, so that they are listed.
    if disputes:
        say(
            f"raters disagree on {len(disputes):,} of {amount(agreement.items, 'item')}; "
            "the largest differences:"
        )
        for dispute in disputes[:MAX_DISPUTES]:
            values = ", ".join(f"{rater} {value}" for rater, value in dispute.ratings.items())
            name = f"{dispute.item} ({dispute.model})" if dispute.model else dispute.item
            say(one_line(f"  {name}: {values}" + (f"  {dispute.link}" if dispute.link else "")))


def _list_levels(levels: Sequence[str]) -> str:
    """Return levels separated by commas; of many, the first ones and the last."""
    if len(levels) <= MAX_LEVELS_LISTED:
        return ", ".join(levels)
    return f"{', '.join(levels[:3])}, ..., {levels[-1]} ({len(levels):,} levels)"
