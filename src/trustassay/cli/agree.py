"""``trustassay agree``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from trustassay.cli import common
from trustassay.cli.options import with_options
from trustassay.options import Argument, Flag, pairs
from trustassay.show.terminal import one_line, print_json, say, show_rows, show_table

if TYPE_CHECKING:
    from trustassay.data.ratings import Ratings
    from trustassay.show.document import Block, Row
    from trustassay.statistics.intervals import Estimate
    from trustassay.workflows.agree import Agreement, Dispute
    from trustassay.workflows.judges import Variances

MOST_LISTED = 12
"""Levels that are listed one by one."""
NAMES = {
    "percent": "agree, %",
    "kappa": "kappa",
    "mean_kappa": "Cohen's kappa, mean of pairs",
    "mean_kappa_quadratic": "quadratic, mean of pairs",
    "ac1": "Gwet's AC1",
    "ac2": "AC2, quadratic",
    "icc_single": "ICC(A,1)",
    "icc_mean": "ICC(A,k)",
    "kappa_linear": "kappa, linear",
    "kappa_quadratic": "kappa, quadratic",
    "fleiss_kappa": "Fleiss's kappa",
    "alpha_nominal": "alpha, nominal",
    "alpha_ordinal": "alpha, ordinal",
    "alpha_interval": "alpha, interval",
    "mean_absolute_difference": "mean difference",
    "sd": "mean deviation",
}


@with_options
def agree(  # noqa: PLR0913 - one argument an option
    *,
    source: Annotated[
        Path | None,
        Argument(
            "Ratings: .csv, .tsv, .jsonl or .json. A row has item, rater and rating, and "
            "maybe repeat and model; or item, and a column of numbers for each rater. May be "
            "left out where --run holds the votes of judges.",
            metavar="FILE",
        ),
    ] = None,
    fields: Annotated[
        Mapping[str, str],
        Flag(
            "Where a column is called otherwise: item=question_id; if FILE has several "
            "rubrics, which one: rating=truthfulness. May be given again.",
            metavar="NAME=COLUMN",
            name="--field",
            kind=list[str],
            read=lambda given: pairs(given, "--field"),
        ),
    ],
    rater: Annotated[
        list[str],
        Flag(
            "Read the ratings of FILE by this rater alone; of a wide table the column that "
            "holds them. May be given again.",
            metavar="NAME",
        ),
    ],
    levels: Annotated[
        str | None,
        Flag(
            "All levels of the scale: 1..5, numbers, or words, the lowest first, with commas "
            "between them. Needed for weights where the ratings do not use all levels. Other words "
            "are categories without an order.",
            metavar="LEVELS",
        ),
    ] = None,
    run: Annotated[
        Path | None,
        Flag(
            "Folder of the run that was rated: disputes link to its report, and the votes of "
            "its judges, if it has any, are ratings like those of FILE."
        ),
    ] = None,
    machine: Annotated[
        list[str],
        Flag(
            "A rater of FILE that is a judge and not a person: their variances are told "
            "apart. More than once for all.",
            metavar="RATER",
        ),
    ],
    page: Annotated[
        Path | None,
        Flag("Write a page with the variance drawn."),
    ] = None,
    top: Annotated[int, Flag("Items on which raters part that are listed.", least=0)] = (10),
    as_json: common.Json,
) -> None:
    """Say how far raters agree: each pair, all together, each with themselves, and where they part.

    Cohen's and Fleiss's kappa, Krippendorff's alpha, Gwet's AC1, intraclass correlations,
    percentages, and mean differences, with 95 % intervals over items. Raters are compared by the
    first rating of an item; a later one of the same rater is a repeat. Each judge is compared with
    all people. The variance of the ratings is taken apart into what comes from answers, raters and
    repeats, of people and of judges.

    \b
    trustassay agree ratings.csv
    trustassay agree wide.csv --field item=question --rater anna --rater bela \\
        --rater judge
    trustassay agree ratings.csv --levels 1..5
    trustassay agree ratings.jsonl --levels poor,fair,good --run runs/one --json
    trustassay agree --run runs/judged --page variance.html
    """
    from trustassay.workflows.agree import agreement, links_into, units_of_items

    ratings, judges = _gathered(source, run, fields, rater, levels, machine)
    units = units_of_items(run) if run else None
    found = agreement(ratings, machines=judges, units=units, progress=True)
    disputes = links_into(run, found.disputes) if run else found.disputes
    _show(found, disputes, top)
    if page:
        _write_page(found, source, run, page)
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
    given = ", ".join(f"{name} {count:,}" for name, count in found.raters.items())
    say(one_line(f"{found.items:,} items; ratings of each rater: {given}"))
    if found.missing:
        say(f"missing ratings: {found.missing:,}")
    if found.categories and not found.ordered:
        say(one_line(f"categories without an order: {', '.join(found.categories)}"))
    elif found.declared:
        say(one_line(f"levels: {_listed(found.levels)}"))
    else:
        say(
            one_line(
                f"levels that occur: {_listed(found.levels)}; the whole scale is not known, and "
                "weighted kappas and AC1 take these for it: --levels 1..5 states it"
            )
        )
    if found.overall:
        rows = [(NAMES[name], *_cells(name, one)) for name, one in found.overall.items()]
        show_table(("all raters", "value", "95 % interval", "items"), rows, ())
        for words in sorted({one.without for one in found.overall.values() if one.without}):
            say(f"no interval: {words}")
    _show_groups("pair", {f"{a} – {b}": group for (a, b), group in found.pairs.items()})
    _show_groups("judge with people", found.judges)
    _show_groups("model", found.models)
    _show_groups("rater with themselves", found.intra)
    if found.variance:
        _show_variance(found.variance)
    if disputes and top:
        say(f"raters part on {len(disputes):,} of {found.items:,} items; the farthest apart:")
        for dispute in disputes[:top]:
            said = ", ".join(f"{rater} {value}" for rater, value in dispute.ratings.items())
            name = f"{dispute.item} ({dispute.model})" if dispute.model else dispute.item
            say(one_line(f"  {name}: {said}" + (f"  {dispute.link}" if dispute.link else "")))


def _listed(levels: Sequence[str]) -> str:
    """Write levels with commas between them, of many the first and the last."""
    if len(levels) <= MOST_LISTED:
        return ", ".join(levels)
    return f"{', '.join(levels[:3])}, ..., {levels[-1]} ({len(levels):,} levels)"


VARIANCE = ("variance", "standard deviation", "share, %", "95 % interval")


def _variance_rows(found: Variances) -> list[Row]:
    """Return the table of all parts of all groups."""
    from trustassay.show.document import Row

    return [
        Row(
            f"{name}: {one.name}",
            [
                f"{one.variance:.3f}",
                f"{one.sd:.3f}",
                "undefined" if one.share is None else f"{one.share:.1f}",
                "{:.1f} to {:.1f}".format(*one.share_interval) if one.share_interval else "",
            ],
        )
        for name, group in found.groups.items()
        for one in group.components
    ]


def _variance_notes(found: Variances) -> list[str]:
    """Say what the table does not: what could not be told, and what lies below 0."""
    notes = []
    for name, group in found.groups.items():
        if group.why:
            notes.append(f"{name}: the variance cannot be taken apart: {group.why}")
        if group.without:
            notes.append(f"{name}: no intervals: {group.without}")
        if group.raters == 1 and group.components:
            notes.append(
                f"{name}: a single rater, whose own level and tastes count as the answer's"
            )
        if below := [one.name for one in group.components if one.estimate < 0]:
            notes.append(f"{name}: estimated below 0 and taken as 0: {', '.join(below)}")
    return notes


def _show_variance(found: Variances) -> None:
    if rows := _variance_rows(found):
        show_rows("variance of ratings", VARIANCE, rows, wide=True)
    for note in _variance_notes(found):
        say(one_line(note))
    say(one_line(found.in_words()))


def _write_page(found: Agreement, source: Path | None, run: Path | None, page: Path) -> None:
    """Write the page with the variance drawn, where there is one."""
    from trustassay.show.document import Document, Section

    if found.variance is None:
        say("no page: categories without an order have no variance")
        return
    facts = {"ratings": str(source)} if source else {}
    facts |= {"run": str(run)} if run else {}
    facts |= {"answers": f"{found.items:,}"}
    facts |= {
        name: f"{group.raters:,} raters, {group.ratings:,} ratings, {group.repeated:,} answers "
        "rated again"
        for name, group in found.variance.groups.items()
    }
    Document(
        "agree",
        f"{(source or run or page).name}: variance of ratings",
        facts,
        found.variance.in_words(),
        _variance_notes(found.variance),
        [Section("Where the variance of the ratings comes from", _variance_parts(found.variance))],
    ).write(page)
    say(f"page: {page}")


def _variance_parts(found: Variances) -> list[Block]:
    """Return what the page draws: each group's shares in one bar, and each with its interval."""
    from markupsafe import Markup

    from trustassay.show.charts import interval_svg, stacked_svg
    from trustassay.show.document import (
        MEAN,
        Bar,
        Bars,
        Chart,
        Legend,
        Panels,
        Table,
        Text,
    )
    from trustassay.show.text import number

    percent = ("0 %", "50 %", "100 %")
    names = list(dict.fromkeys(one.name for g in found.groups.values() for one in g.components))
    stacked, intervals = [], dict[str, list[Bar]]()
    for group, parts in found.groups.items():
        shares = [(one.name, one.share or 0.0) for one in parts.components]
        if any(one.share is not None for one in parts.components):
            stacked.append(Bar(group, "", stacked_svg(shares, names, group)))
        for one in parts.components:
            if one.share is not None and one.share_interval is not None:
                low, high = one.share_interval
                text = f"{number(one.share)} % ({number(low)} to {number(high)})"
                label = f"{group}, {one.name}: {text}"
                drawing = interval_svg((low / 100, high / 100), one.share / 100, label)
                intervals.setdefault(one.name, []).append(Bar(group, text, drawing))
    bars = Bars(stacked, percent if stacked else ())
    shown: list[Block] = [
        Text(
            "Answer: answers differ, which is what ratings are for. Rater: some raters give higher "
            "levels to all answers. Answer x rater: raters differ about single answers. Repeat: "
            "the same rater gives the same answer another level.",
            "note",
        ),
        Chart("Shares of the variance", "", [bars, Legend(names)]),
    ]
    if intervals:
        note = Markup(
            "Bar: 95 % interval from resampled answers; {}the share. The raters stay the same: "
            "what other raters would give, the intervals do not say."
        ).format(MEAN)
        panels = [Chart(name, "", [Bars(own, percent)]) for name, own in intervals.items()]
        shown.append(Chart("Each share with its interval", note, [Panels(panels)]))
    if rows := _variance_rows(found):
        shown.append(Table("Part", VARIANCE, rows, "In numbers"))
    return shown


def _show_groups(what: str, groups: Mapping[str, Mapping[str, Estimate]]) -> None:
    if not groups:
        return
    names = list(next(iter(groups.values())))
    rows = [
        (title, *(_with_interval(name, group[name]) for name in names), str(group[names[0]].n))
        for title, group in groups.items()
    ]
    headings = [what, *(NAMES[name] for name in names), "items"]
    show_table(headings, rows, (), wide=True)


def _cells(name: str, one: Estimate) -> tuple[str, str, str]:
    interval = " to ".join(_number(name, end) for end in one.interval) if one.interval else ""
    return _number(name, one.value), interval, str(one.n)


def _with_interval(name: str, one: Estimate) -> str:
    value, interval, _ = _cells(name, one)
    return f"{value} ({interval})" if interval else value


def _number(name: str, value: float | None) -> Any:
    if value is None:
        return "undefined"
    return f"{value:.1f}" if name == "percent" else f"{value:.3f}"
