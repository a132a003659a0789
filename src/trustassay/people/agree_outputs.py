"""Agreement of raters as tables for the terminal, and a page on the variance of ratings."""

import csv
from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path

from markupsafe import Markup

from trustassay.people.agree import RaterAgreement
from trustassay.people.judges import VarianceReport
from trustassay.report import document
from trustassay.report.charts import interval_svg, stacked_svg
from trustassay.report.text import number
from trustassay.statistics.intervals import Estimate

COEFFICIENT_NAMES = dict(
    csv.reader(files(__package__).joinpath("agree.csv").read_text("utf-8").splitlines())
)
"""The titles of the coefficients, by name."""
VARIANCE_COLUMNS = ("variance", "standard deviation", "share, %", "95 % interval")
PERCENT_AXIS = ("0 %", "50 %", "100 %")


def build_overall_table(agreement: RaterAgreement) -> document.Table:
    """Build the table of all raters together."""
    rows = []
    for name, estimate in agreement.overall.items():
        interval = " to ".join(_format_number(name, end) for end in estimate.interval or ())
        rows.append(
            document.DocumentRow(
                COEFFICIENT_NAMES[name],
                [_format_number(name, estimate.value), interval, str(estimate.n)],
            )
        )
    return document.Table("all raters", ("value", "95 % interval", "items"), rows)


def build_group_tables(agreement: RaterAgreement) -> Iterator[document.Table]:
    """Yield tables of pairs of raters, judges with people, models, and repeated ratings."""
    pairs = {f"{a} – {b}": group for (a, b), group in agreement.pairs.items()}
    for heading, estimates_by_group in (
        ("pair", pairs),
        ("judge with people", agreement.judges),
        ("model", agreement.models),
        ("rater with themselves", agreement.intra),
    ):
        if estimates_by_group:
            yield _build_table(heading, estimates_by_group)


def _build_table(
    heading: str, estimates_by_group: Mapping[str, Mapping[str, Estimate]]
) -> document.Table:
    # All groups of a table have the same figures and the same number of items.
    keys = list(next(iter(estimates_by_group.values())))
    rows = [
        document.DocumentRow(
            title,
            [*(_format_with_interval(key, group[key]) for key in keys), str(group[keys[0]].n)],
        )
        for title, group in estimates_by_group.items()
    ]
    return document.Table(heading, [*(COEFFICIENT_NAMES[key] for key in keys), "items"], rows)


def _format_with_interval(name: str, estimate: Estimate) -> str:
    value = _format_number(name, estimate.value)
    ends = " to ".join(_format_number(name, end) for end in estimate.interval or ())
    return f"{value} ({ends})" if ends else value


def _format_number(name: str, value: float | None) -> str:
    if value is None:
        return "undefined"
    return f"{value:.1f}" if name == "percent" else f"{value:.3f}"


def build_variance_table(variances: VarianceReport) -> document.Table:
    """Build the table of the variance components of all groups."""
    rows = [
        document.DocumentRow(
            f"{name}: {component.name}",
            [
                f"{component.variance:.3f}",
                f"{component.sd:.3f}",
                "undefined" if component.share is None else f"{component.share:.1f}",
                # An empty cell where there is no interval; the notes say why.
                "{:.1f} to {:.1f}".format(*component.share_interval)
                if component.share_interval
                else "",
            ],
        )
        for name, group in variances.groups.items()
        for component in group.components
    ]
    return document.Table("Part", VARIANCE_COLUMNS, rows, "In numbers")


def describe_variance(variances: VarianceReport) -> list[str]:
    """Describe what the table cannot show: what is unknown, and estimates below 0."""
    notes = []
    for name, group in variances.groups.items():
        if group.why:
            notes.append(f"{name}: the variance cannot be decomposed: {group.why}")
        if group.without:
            notes.append(f"{name}: no intervals: {group.without}")
        # With one rater, a strict rater cannot be told from weak answers.
        if group.raters == 1 and group.components:
            notes.append(
                f"{name}: a single rater, whose own level and tastes count as the answer's"
            )
        if below := [component.name for component in group.components if component.estimate < 0]:
            notes.append(f"{name}: estimated below 0 and taken as 0: {', '.join(below)}")
    return notes


def build_document(
    agreement: RaterAgreement, source: Path | None, run: Path | None
) -> document.PageDocument | None:
    """Build the page that draws the variance; ``None`` for categories, which have no variance."""
    # Categories without an order have no variance.
    if agreement.variance is None:
        return None
    facts = {"ratings": str(source)} if source else {}
    facts |= {"run": str(run)} if run else {}
    facts |= {"answers": f"{agreement.items:,}"}
    facts |= {
        name: f"{group.raters:,} raters, {group.ratings:,} ratings, {group.repeated:,} answers "
        "rated again"
        for name, group in agreement.variance.groups.items()
    }
    # Either a file of ratings, or a run whose judges voted, or both.
    of = source or run
    return document.PageDocument(
        "agree",
        f"{of.name if of else ''}: variance of ratings",
        facts,
        agreement.variance.in_words(),
        describe_variance(agreement.variance),
        [
            document.Section(
                "Where the variance of the ratings comes from",
                _build_variance_blocks(agreement.variance),
            )
        ],
    )


def _build_variance_blocks(variances: VarianceReport) -> list[document.Block]:
    """Build the blocks of the page: the shares of each group, and each share with its interval."""
    # Groups may lack a component; the colours have to agree all the same.
    names = list(
        dict.fromkeys(
            component.name for g in variances.groups.values() for component in g.components
        )
    )
    stacked, intervals = [], dict[str, list[document.Bar]]()
    for group, parts in variances.groups.items():
        shares = [(component.name, component.share or 0.0) for component in parts.components]
        if any(component.share is not None for component in parts.components):
            # One bar for each group, whose parts add up to 100 %.
            stacked.append(document.Bar(group, "", stacked_svg(shares, names, group)))
        for component in parts.components:
            # One panel for each component, so that groups can be compared within it.
            if component.share is not None and component.share_interval is not None:
                low, high = component.share_interval
                text = f"{number(component.share)} % ({number(low)} to {number(high)})"
                label = f"{group}, {component.name}: {text}"
                drawing = interval_svg((low / 100, high / 100), component.share / 100, label)
                intervals.setdefault(component.name, []).append(document.Bar(group, text, drawing))
    bars = document.Bars(stacked, PERCENT_AXIS if stacked else ())
    blocks: list[document.Block] = [
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
            document.Chart(name, "", [document.Bars(bars_of_component, PERCENT_AXIS)])
            for name, bars_of_component in intervals.items()
        ]
        blocks.append(
            document.Chart("Each share with its interval", note, [document.Panels(panels)])
        )
    # The same numbers as a table, for readers who cannot see the drawing.
    if (table := build_variance_table(variances)).rows:
        blocks.append(table)
    return blocks
