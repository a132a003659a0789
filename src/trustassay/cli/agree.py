"""``trustassay agree``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from trustassay.cli import common
from trustassay.cli.options import with_options
from trustassay.show.terminal import one_line, print_json, say, show_rows

if TYPE_CHECKING:
    from trustassay.data.ratings import Ratings
    from trustassay.workflows.agree import Agreement, Dispute

MOST_LISTED = 12
"""Levels that are listed one by one."""


@with_options
def agree(  # noqa: PLR0913 - one argument an option
    *,
    source: Path | None,
    fields: Mapping[str, str],
    rater: list[str],
    levels: str | None,
    run: Path | None,
    machine: list[str],
    page: Path | None,
    top: int,
    as_json: common.Json,
) -> None:
    """Say how far raters agree: each pair, all together, each with themselves; and where not."""
    from trustassay.workflows.agree import agreement, links_into, units_of_items
    from trustassay.workflows.agree_outputs import document_of

    ratings, judges = _gathered(source, run, fields, rater, levels, machine)
    units = units_of_items(run) if run else None
    found = agreement(ratings, machines=judges, units=units, progress=True)
    disputes = links_into(run, found.disputes) if run else found.disputes
    _show(found, disputes, top)
    if page:
        if document := document_of(found, source, run):
            document.write(page)
            say(f"page: {page}")
        else:
            say("no page: categories without an order have no variance")
    if as_json:
        print_json(found.to_dict() | {"disputes": [one.to_dict() for one in disputes]})


def _gathered(
    source: Path | None,
    run: Path | None,
    fields: Mapping[str, str],
    raters: list[str],
    levels: str | None,
    machines: list[str],
) -> tuple[Ratings, set[str]]:
    """Return all ratings, of the file and by the judges of the run, and which raters are judges."""
    from trustassay.data.ratings import read_ratings
    from trustassay.data.records import InputError
    from trustassay.errors import UsageError, did_you_mean
    from trustassay.workflows.judges import joined, votes_of

    votes = votes_of(run) if run else None
    if source is None:
        if votes is None:
            where = f"{run}: holds no votes of judges" if run else "no ratings"
            raise InputError(f"{where}; expected FILE, or --run with a run of judge")
        if machines or fields or raters or levels:
            raise InputError("--machine, --field, --rater and --levels are about FILE: name it")
        return votes, {one.rater for one in votes.ratings}
    ratings = read_ratings(
        source,
        fields=fields,
        raters=raters,
        levels=[word for word in (levels or "").split(",") if word.strip()],
    )
    if ratings.chosen:
        say(
            f"warning: {source}: `label` chose these answers with unequal probabilities, the less "
            "certain ones more often: raters may agree more on the others"
        )
    known = {one.rater for one in ratings.ratings}
    for name in machines:
        if name not in known:
            raise InputError(f"--machine: {did_you_mean('rater', name, sorted(known))}")
    if votes is None:
        return ratings, set(machines)
    try:
        both = joined(ratings, votes)
    except UsageError as error:
        say(one_line(f"the votes of the run's judges are left out: {error}"))
        return ratings, set(machines)
    return both, {*machines, *(one.rater for one in votes.ratings)}


def _show(found: Agreement, disputes: Sequence[Dispute], top: int) -> None:
    from trustassay.workflows import agree_outputs as outputs

    given = ", ".join(f"{name} {count:,}" for name, count in found.raters.items())
    say(one_line(f"{found.items:,} items; ratings of each rater: {given}"))
    if found.missing:
        say(f"missing ratings: {found.missing:,}")
    if found.categories and not found.ordered:
        say(one_line(f"categories without an order: {', '.join(found.categories)}"))
    elif found.levels_declared:
        say(one_line(f"levels: {_listed(found.levels)}"))
    else:
        say(
            one_line(
                f"levels that occur: {_listed(found.levels)}; the whole scale is not known, so "
                "weighted kappas and AC1 use these levels; --levels 1..5 gives the scale"
            )
        )
    if found.overall:
        table = outputs.overall(found)
        show_rows(table.first, table.columns, table.rows)
        for words in sorted({one.without for one in found.overall.values() if one.without}):
            say(f"no interval: {words}")
    for table in outputs.groups(found):
        show_rows(table.first, table.columns, table.rows, wide=True)
    if found.variance:
        if rows := outputs.variance(found.variance).rows:
            show_rows("variance of ratings", outputs.VARIANCE, rows, wide=True)
        for note in outputs.variance_notes(found.variance):
            say(one_line(note))
        say(one_line(found.variance.in_words()))
    if disputes and top:
        say(f"raters disagree on {len(disputes):,} of {found.items:,} items; the largest first:")
        for dispute in disputes[:top]:
            said = ", ".join(f"{rater} {value}" for rater, value in dispute.ratings.items())
            name = f"{dispute.item} ({dispute.model})" if dispute.model else dispute.item
            say(one_line(f"  {name}: {said}" + (f"  {dispute.link}" if dispute.link else "")))


def _listed(levels: Sequence[str]) -> str:
    """Write levels with commas between them, of many the first and the last."""
    if len(levels) <= MOST_LISTED:
        return ", ".join(levels)
    return f"{', '.join(levels[:3])}, ..., {levels[-1]} ({len(levels):,} levels)"
