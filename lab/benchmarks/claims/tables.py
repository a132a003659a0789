"""Figures as Markdown tables, of one version and of two."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lab.benchmarks.claims.speed import UNIT
from lab.benchmarks.which_metric.tables import markdown

Json = Mapping[str, Any]
NOTHING = "–"
MAX_NOTE = 60
"""Characters of an error in a cell."""


def number_cell(value: float | None, digits: int = 3) -> str:
    """Return ".812", or a dash."""
    if value is None:
        return NOTHING
    return f"{value:.{digits}f}".replace("0.", ".", 1) if abs(value) < 1 else f"{value:.{digits}f}"


def estimate_cell(figure: Json) -> str:
    """Return a figure with its interval."""
    if figure["interval"] is None:
        return number_cell(figure["value"])
    low, high = (number_cell(end) for end in figure["interval"])
    return f"{number_cell(figure['value'])} ({low} to {high})"


def difference_cell(figure: Json) -> str:
    """Return a difference with its sign and interval, in bold if p is below 0.05.

    p is the one corrected for the number of sets, where there are several.
    """
    if figure["difference"] is None:
        return NOTHING
    text = f"{figure['difference']:+.3f}"
    if figure["interval"] is not None:
        low, high = figure["interval"]
        text += f" ({low:+.3f} to {high:+.3f})"
    p = figure.get("p_holm", figure["p"])
    return f"**{text}**" if p is not None and p < 0.05 else text


def percent_cell(share: float | None) -> str:
    """Return "12.3 %"."""
    return NOTHING if share is None else f"{100 * share:.1f} %"


def counts_cell(counts: Mapping[str, int]) -> str:
    """Return "supported 30, not found 12"."""
    return ", ".join(f"{name} {count}" for name, count in counts.items())


def labelled_table(figures: Json) -> str:
    """Return the table of the labelled answers."""
    head = ["split", "set", "n (supported)", "clusters", "AUC of support", "balanced accuracy"]
    rows = [[*head, "not scored", "verdicts"]]
    for split, sets in figures.items():
        for name, one in sets.items():
            rows.append(
                [
                    split,
                    name,
                    f"{one['n']:,} ({one['supported']:,})",
                    f"{one['clusters']:,}",
                    estimate_cell(one["auc"]),
                    estimate_cell(one["balanced_accuracy"]),
                    percent_cell(one["unscored"]),
                    counts_cell(one["verdicts"]),
                ]
            )
    return markdown(rows)


def labelled_comparison(figures: Json) -> str:
    """Return the table of the labelled answers before and after."""
    head = ["split", "set", "n (supported)", "clusters"]
    for name in ("AUC", "balanced accuracy"):
        head += [f"{name}, before", "after", "difference"]
    rows = [[*head, "not scored, before", "after"]]
    for split, of_split in figures.items():
        for name, one in of_split["sets"].items():
            size = f"{one['n']:,} ({one['supported']:,})"
            unscored = [percent_cell(one["unscored"][side]) for side in ("before", "after")]
            rows.append([split, name, size, f"{one['clusters']:,}", *paired_cells(one), *unscored])
        rows.append([split, "mean of the sets", "", "", *paired_cells(of_split["mean"]), "", ""])
    return markdown(rows)


def paired_cells(figures: Json) -> list[str]:
    """Return the cells of AUC and balanced accuracy."""
    cells = []
    for name in ("auc", "balanced_accuracy"):
        figure = figures[name]
        cells += [number_cell(figure["before"]), number_cell(figure["after"])]
        cells.append(difference_cell(figure))
    return cells


def empty_table(figures: Json) -> str:
    """Return the table of the empty replies."""
    rows = [["reply", "n", "called supported", "flagged", "verdicts"]]
    for reply, one in figures["replies"].items():
        shares = [percent_cell(one["supported"]), percent_cell(one["flagged"])]
        rows.append([reply, str(one["n"]), *shares, counts_cell(one["verdicts"])])
    everyone = figures["all"]
    shares = [estimate_cell(everyone["supported"]), estimate_cell(everyone["flagged"])]
    rows.append(["all", str(everyone["n"]), *shares, counts_cell(everyone["verdicts"])])
    return markdown(rows)


def empty_comparison(figures: Json) -> str:
    """Return the table of the empty replies before and after."""
    rows = [["reply", "called supported, before", "after", "flagged, before", "after"]]
    for reply, one in figures["replies"].items():
        sides = [
            one[name][side] for name in ("supported", "flagged") for side in ("before", "after")
        ]
        rows.append([reply, *map(percent_cell, sides)])
    everyone = figures["all"]
    cells = []
    for name in ("supported", "flagged"):
        cells += [percent_cell(everyone[name]["before"])]
        cells += [f"{percent_cell(everyone[name]['after'])}; {difference_cell(everyone[name])}"]
    rows.append(["all", *cells])
    return markdown(rows)


def planted_table(figures: Json) -> str:
    """Return the table of the planted errors."""
    rows = [["figure", "value"]]
    rows += [[name, f"{count:g}"] for name, count in figures["counts"].items()]
    rows += [[name, estimate_cell(one)] for name, one in figures.items() if name != "counts"]
    return markdown(rows)


def planted_comparison(figures: Json) -> str:
    """Return the table of the planted errors before and after."""
    before, after = figures["counts"]["before"], figures["counts"]["after"]
    rows = [["figure", "before", "after", "difference"]]
    rows += [[name, f"{before[name]:g}", f"{after[name]:g}", ""] for name in after]
    for name, one in figures.items():
        if name != "counts":
            sides = [number_cell(one["before"]), number_cell(one["after"])]
            rows.append([name, *sides, difference_cell(one)])
    return markdown(rows)


def time_cells(figures: Json, size: str) -> list[str]:
    """Return the seconds per 10,000 characters of claims and of the score, and what is odd."""
    scale = UNIT / int(size)
    cells = [
        number_cell(figures[name] * scale if name in figures else None, 4)
        for name in ("claims_s", "score_s")
    ]
    notes = [str(figures[name]) for name in ("stopped", "error") if name in figures]
    if "by_default" in figures:
        notes.append(f"by default: {figures['by_default']}")
    return [*cells, str(figures.get("claims", NOTHING)), "; ".join(one[:MAX_NOTE] for one in notes)]


def speed_table(figures: Json) -> str:
    """Return the table of the times."""
    unit = f"s per {UNIT:,} characters"
    rows = [["text", "characters", f"claims, {unit}", f"score, {unit}", "claims", "note"]]
    for kind, sizes in figures.items():
        for size, one in sizes.items():
            rows.append([kind, f"{int(size):,}", *time_cells(one, size)])
    return markdown(rows)


def speed_comparison(figures: Json) -> str:
    """Return the table of the times before and after."""
    unit = f"s per {UNIT:,} characters"
    head = ["text", "characters"]
    for side in ("before", "after"):
        head += [f"claims, {unit}, {side}", "score", "claims", "note"]
    rows = [head]
    for kind, sizes in figures.items():
        for size, one in sizes.items():
            cells = [*time_cells(one["before"], size), *time_cells(one["after"], size)]
            rows.append([kind, f"{int(size):,}", *cells])
    return markdown(rows)


TABLES: Mapping[str, Callable[[Json], str]] = {
    "labelled": labelled_table,
    "empty": empty_table,
    "planted": planted_table,
    "speed": speed_table,
}
COMPARISON_TABLES: Mapping[str, Callable[[Json], str]] = {
    "labelled": labelled_comparison,
    "empty": empty_comparison,
    "planted": planted_comparison,
    "speed": speed_comparison,
}
