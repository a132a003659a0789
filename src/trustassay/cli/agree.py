"""``trustassay agree``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from trustassay.cli import common
from trustassay.cli.common import errors_for_people
from trustassay.cli.streams import one_line, print_json, say
from trustassay.cli.tables import show_table

if TYPE_CHECKING:
    from trustassay.workflows.agree import Agreement, Dispute, Estimate

NAMES = {
    "percent": "agree, %",
    "kappa": "kappa",
    "kappa_linear": "kappa, linear",
    "kappa_quadratic": "kappa, quadratic",
    "fleiss_kappa": "Fleiss's kappa",
    "alpha_nominal": "alpha, nominal",
    "alpha_ordinal": "alpha, ordinal",
    "alpha_interval": "alpha, interval",
    "mean_absolute_difference": "mean difference",
    "sd": "mean deviation",
}


def agree(  # noqa: PLR0913 - one argument an option
    source: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="Ratings: .csv, .tsv, .jsonl or .json. A row has item, rater and rating, and "
            "maybe repeat and model; or item, and a column of numbers for each rater.",
            show_default=False,
        ),
    ],
    field: Annotated[
        list[str],
        typer.Option(
            help="Where a column is called otherwise: item=question_id. May be given again.",
            metavar="NAME=COLUMN",
            show_default=False,
        ),
    ] = [],  # noqa: B006 - typer copies it
    rater: Annotated[
        list[str],
        typer.Option(
            help="A column that holds a rater's ratings, of a wide table. More than once for all.",
            metavar="COLUMN",
            show_default=False,
        ),
    ] = [],  # noqa: B006
    levels: Annotated[
        Optional[str],  # noqa: UP045 - typer reads it
        typer.Option(
            help="Words of an ordinal scale, the lowest first, with commas between them. Other "
            "words are categories without an order.",
            show_default=False,
        ),
    ] = None,
    run: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(
            help="Folder of the run that was rated: disputes link to its report.",
            show_default=False,
        ),
    ] = None,
    top: Annotated[int, typer.Option(help="Items on which raters part that are listed.", min=0)] = (
        10
    ),
    seed: common.Seed = 0,
    as_json: common.Json = False,
) -> None:
    """Say how far raters agree: each pair, all together, each with themselves, and where they part.

    Cohen's and Fleiss's kappa, Krippendorff's alpha, percentages, and mean differences, with 95 %
    bootstrap intervals over items. Raters are compared by the first rating of an item; a later
    one of the same rater is a repeat.

    \b
    trustassay agree ratings.csv
    trustassay agree wide.csv --field item=question --rater anna --rater bela --rater judge
    trustassay agree ratings.jsonl --levels poor,fair,good --run runs/one --json
    """
    with errors_for_people():
        from trustassay.data.ratings import read_ratings
        from trustassay.workflows.agree import agreement, links_into

        ratings = read_ratings(
            source,
            fields=common.pairs(field, "--field"),
            raters=rater,
            levels=[word for word in (levels or "").split(",") if word.strip()],
        )
        found = agreement(ratings, seed=seed)
        disputes = links_into(run, found.disputes) if run else found.disputes
        _show(found, disputes, top)
        if as_json:
            print_json(found.to_dict() | {"disputes": [one.to_dict() for one in disputes]})


def _show(found: Agreement, disputes: Sequence[Dispute], top: int) -> None:
    given = ", ".join(f"{name} {count:,}" for name, count in found.raters.items())
    say(one_line(f"{found.items:,} items; ratings of each rater: {given}"))
    if found.missing:
        say(f"{found.missing:,} ratings are missing")
    if found.categories:
        kind = "levels" if found.ordered else "categories without an order"
        say(one_line(f"{kind}: {', '.join(found.categories)}"))
    if found.overall:
        rows = [(NAMES[name], *_cells(name, one)) for name, one in found.overall.items()]
        show_table(("all raters", "value", "95 % interval", "items"), rows, ())
        for words in sorted({one.without for one in found.overall.values() if one.without}):
            say(f"no interval: {words}")
    _show_groups("pair", {f"{a} – {b}": group for (a, b), group in found.pairs.items()})
    _show_groups("model", found.models)
    _show_groups("rater with themselves", found.intra)
    if disputes and top:
        say(f"raters part on {len(disputes):,} of {found.items:,} items; the farthest apart:")
        for dispute in disputes[:top]:
            said = ", ".join(f"{rater} {value}" for rater, value in dispute.ratings.items())
            name = f"{dispute.item} ({dispute.model})" if dispute.model else dispute.item
            say(one_line(f"  {name}: {said}" + (f"  {dispute.link}" if dispute.link else "")))


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
