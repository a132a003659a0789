"""How far raters agree: tables for the terminal, and a page of the variance of ratings."""

import csv
from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path

from markupsafe import Markup

from trustassay.show import document
from trustassay.show.charts import interval_svg, stacked_svg
from trustassay.show.text import number
from trustassay.statistics.intervals import Estimate
from trustassay.workflows.agree import Agreement
from trustassay.workflows.judges import Variances

NAMES = dict(csv.reader(files(__package__).joinpath("agree.csv").read_text("utf-8").splitlines()))
"""What the coefficients are called."""
VARIANCE = ("variance", "standard deviation", "share, %", "95 % interval")
PERCENT = ("0 %", "50 %", "100 %")


def overall(found: Agreement) -> document.Table:
    """Return the figures of all raters together."""
    rows = []
    for name, one in found.overall.items():
        interval = " to ".join(_number(name, end) for end in one.interval or ())
        rows.append(document.Row(NAMES[name], [_number(name, one.value), interval, str(one.n)]))
    return document.Table("all raters", ("value", "95 % interval", "items"), rows)


def groups(found: Agreement) -> Iterator[document.Table]:
    """Yield the figures of each pair, of judges with people, by model, and of repeated ratings."""
    pairs = {f"{a} – {b}": group for (a, b), group in found.pairs.items()}
    for what, named in (
        ("pair", pairs),
        ("judge with people", found.judges),
        ("model", found.models),
        ("rater with themselves", found.intra),
    ):
        if named:
            yield _table(what, named)


def _table(what: str, named: Mapping[str, Mapping[str, Estimate]]) -> document.Table:
    keys = list(next(iter(named.values())))
    rows = [
        document.Row(
            title, [*(_with_interval(key, group[key]) for key in keys), str(group[keys[0]].n)]
        )
        for title, group in named.items()
    ]
    return document.Table(what, [*(NAMES[key] for key in keys), "items"], rows)


def _with_interval(name: str, one: Estimate) -> str:
    value = _number(name, one.value)
    ends = " to ".join(_number(name, end) for end in one.interval or ())
    return f"{value} ({ends})" if ends else value


def _number(name: str, value: float | None) -> str:
    if value is None:
        return "undefined"
    return f"{value:.1f}" if name == "percent" else f"{value:.3f}"


def variance(found: Variances) -> document.Table:
    """Return the table of all parts of all groups."""
    rows = [
        document.Row(
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
    return document.Table("Part", VARIANCE, rows, "In numbers")


def variance_notes(found: Variances) -> list[str]:
    """Say what the table does not: what is not known, and what lies below 0."""
    notes = []
    for name, group in found.groups.items():
        if group.why:
            notes.append(f"{name}: the variance cannot be decomposed: {group.why}")
        if group.without:
            notes.append(f"{name}: no intervals: {group.without}")
        if group.raters == 1 and group.components:
            notes.append(
                f"{name}: a single rater, whose own level and tastes count as the answer's"
            )
        if below := [one.name for one in group.components if one.estimate < 0]:
            notes.append(f"{name}: estimated below 0 and taken as 0: {', '.join(below)}")
    return notes


def document_of(
    found: Agreement, source: Path | None, run: Path | None
) -> document.Document | None:
    """Return the page with the variance drawn; None for categories, which have no variance."""
    if found.variance is None:
        return None
    facts = {"ratings": str(source)} if source else {}
    facts |= {"run": str(run)} if run else {}
    facts |= {"answers": f"{found.items:,}"}
    facts |= {
        name: f"{group.raters:,} raters, {group.ratings:,} ratings, {group.repeated:,} answers "
        "rated again"
        for name, group in found.variance.groups.items()
    }
    of = source or run
    return document.Document(
        "agree",
        f"{of.name if of else ''}: variance of ratings",
        facts,
        found.variance.in_words(),
        variance_notes(found.variance),
        [
            document.Section(
                "Where the variance of the ratings comes from", _variance_parts(found.variance)
            )
        ],
    )


def _variance_parts(found: Variances) -> list[document.Block]:
    """Return what the page draws: each group's shares in one bar, and each with its interval."""
    names = list(dict.fromkeys(one.name for g in found.groups.values() for one in g.components))
    stacked, intervals = [], dict[str, list[document.Bar]]()
    for group, parts in found.groups.items():
        shares = [(one.name, one.share or 0.0) for one in parts.components]
        if any(one.share is not None for one in parts.components):
            stacked.append(document.Bar(group, "", stacked_svg(shares, names, group)))
        for one in parts.components:
            if one.share is not None and one.share_interval is not None:
                low, high = one.share_interval
                text = f"{number(one.share)} % ({number(low)} to {number(high)})"
                label = f"{group}, {one.name}: {text}"
                drawing = interval_svg((low / 100, high / 100), one.share / 100, label)
                intervals.setdefault(one.name, []).append(document.Bar(group, text, drawing))
    bars = document.Bars(stacked, PERCENT if stacked else ())
    shown: list[document.Block] = [
        document.Text(
            "Answer: answers differ, which is what ratings are for. Rater: some raters give higher "
            "levels to all answers. Answer x rater: raters differ about single answers. Repeat: "
            "the same rater gives the same answer another level.",
            "note",
        ),
        document.Chart("Shares of the variance", "", [bars, document.Legend(names)]),
    ]
    if intervals:
        note = Markup(
            "Bar: 95 % interval from resampled answers; {}the share. The raters stay the same: "
            "what other raters would give, the intervals do not say."
        ).format(document.MEAN)
        panels = [
            document.Chart(name, "", [document.Bars(own, PERCENT)])
            for name, own in intervals.items()
        ]
        shown.append(
            document.Chart("Each share with its interval", note, [document.Panels(panels)])
        )
    if (table := variance(found)).rows:
        shown.append(table)
    return shown
