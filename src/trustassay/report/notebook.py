"""A run as text, where Python prints it, and as tables with pictures in a notebook.

A picture is an SVG of a few rectangles. Its text has the colour of the notebook's text, so that it
is readable in light and dark ones.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from trustassay.core.metric import Figure, Metric, Summary
from trustassay.text.numbers import format_figure

BINS = 20
"""Bars of the picture of scores."""
WIDTH, HEIGHT = 480, 64
GOOD, BAD, FAILED = "#2a9d6f", "#d6455d", "#848b97"
COLOURS = (GOOD, "#c07f0c", BAD, "#4d8fd1", "#9a6fd0")
"""Colours of verdicts, with a contrast of 3 or more to white and to black."""


@dataclass(frozen=True)
class NotebookMetric:
    """A metric of a run."""

    metric: Metric
    """The metric."""
    summary: Summary
    """The values of its figures."""
    verdicts: Mapping[str, int]
    """The number of answers with each verdict."""
    scores: Sequence[int]
    """The number of scores in each of :data:`BINS` equal parts of its range."""


@dataclass(frozen=True)
class NotebookRun:
    """A run."""

    path: str
    """Its folder."""
    outcomes: Sequence[Sequence[str]]
    """For each metric the line with its outcomes and, if there is one, that with the reasons."""
    sentence: str
    """How many answers need a look."""
    metrics: Sequence[NotebookMetric]
    """Its metrics."""
    worst: Sequence[tuple[str, str, str, str]]
    """Id, question, verdict and reason of the worst answers."""
    judge: Sequence[str] = ()
    """How far its entailer can be believed, in lines."""
    remarks: Sequence[str] = ()
    """Why answers were not judged, and what to do."""


def as_text(run: NotebookRun) -> str:
    """Return a run in a few lines of text, without control characters."""
    lines = [line for outcome_lines in run.outcomes for line in outcome_lines]
    lines += [f"{run.sentence}.", *run.remarks]
    for item in run.metrics:
        lines.append(f"{item.metric.title} ({item.metric.name})")
        rows = headline_rows(item.summary, item.metric.figures)
        width = max((len(key) for key, *_ in rows), default=0)
        for key, value, interval, _, _ in rows:
            lines.append(f"  {key:{width}}  {value}" + (f"  ({interval})" if interval else ""))
        if item.summary.error:
            lines.append(f"  {item.summary.error}")
    lines += filter(None, run.judge)
    lines.append(f"Run in {run.path}")
    # Titles and reasons may hold text of samples, with escape sequences in it.
    return "\n".join("".join(c if c.isprintable() else " " for c in line) for line in lines)


def as_html(run: NotebookRun) -> str:
    """Return a run as HTML: outcomes, a picture and a table for each metric, the worst answers."""
    # Imported late: Jinja is needed in notebooks only.
    from trustassay.report.page import render_template

    metrics = [
        (item, _draw_verdicts(item), headline_rows(item.summary, item.metric.figures))
        for item in run.metrics
    ]
    return render_template("notebook.html.jinja", run=run, metrics=metrics, width=WIDTH)


def headline_rows(
    summary: Summary, figures: Mapping[str, Figure]
) -> list[tuple[str, str, str, str, str]]:
    """Return key, value, interval, samples and meaning of the headline figures."""
    result = []
    for key, value in summary.values.items():
        figure = figures.get(key)
        # Figures of undeclared keys have no meaning to show.
        if figure is None or not figure.headline:
            continue
        text = (
            "n/a" if value is None else f"{format_figure(value, figure.unit)} {figure.unit}".strip()
        )
        ends = [format_figure(end, figure.unit) for end in summary.intervals.get(key) or ()]
        n = f"{summary.support.get(key, summary.n):,}"
        n += f" ({summary.units[key]:,} units)" if key in summary.units else ""
        meaning = summary.not_applicable.get(key, figure.explanation)
        result.append((key, text, " to ".join(ends), n, meaning))
    return result


_Rectangle = tuple[float, float, float, float, str]
"""Left, top, width, height and colour."""
_Text = tuple[float, float, str, str]
"""Left, top, words and anchor."""


class _Picture(NamedTuple):
    """A picture, as the template draws it."""

    label: str
    """The description for readers who cannot see it."""
    height: int
    """Its height; the width is :data:`WIDTH`."""
    rectangles: Sequence[_Rectangle]
    texts: Sequence[_Text]


def _draw_verdicts(item: NotebookMetric) -> _Picture:
    """Draw one bar divided by verdicts, with a legend; for a metric without verdicts its scores."""
    if not item.metric.verdicts:
        return _draw_scores(item)
    verdicts = {name: count for name, count in item.verdicts.items() if count}
    # 1 for a run without verdicts, whose picture is empty.
    total = sum(verdicts.values()) or 1
    rectangles: list[_Rectangle] = []
    texts: list[_Text] = []
    bar_left = 0.0
    legend_left, row = 0.0, 0
    for name, count in verdicts.items():
        width = WIDTH * count / total
        colour = _choose_colour(item.metric, name)
        # A gap of 1 between parts; a rare verdict stays visible.
        rectangles.append((bar_left, 2, max(width - 1, 0.5), 18, colour))
        bar_left += width
        message = f"{count:,} {name[:40]}"
        # The square, 6.6 for each character of this font, and a gap; then a new row.
        width_needed = 16 + 6.6 * len(message) + 12
        if legend_left + width_needed > WIDTH and legend_left:
            legend_left, row = 0.0, row + 1
        rectangles.append((legend_left, 27 + 18 * row, 10, 10, colour))
        texts.append((legend_left + 15, 36 + 18 * row, message, "start"))
        legend_left += width_needed
    label = ", ".join(f"{count:,} {name}" for name, count in verdicts.items())
    return _Picture(label, 44 + 18 * row, rectangles, texts)


def _choose_colour(metric: Metric, verdict: str) -> str:
    """Return the colour of a verdict by its place: the first one is that of trust."""
    if verdict == "failed" or verdict not in metric.verdicts:
        return FAILED
    place = list(metric.verdicts).index(verdict)
    # With two verdicts the second is the bad one; more have shades between.
    if len(metric.verdicts) == 2:
        return (GOOD, BAD)[place]
    return COLOURS[min(place, len(COLOURS) - 1)]


def _draw_scores(item: NotebookMetric) -> _Picture:
    """Draw a bar for each part of the range, the worse half in another colour."""
    most, step = max([*item.scores, 1]), WIDTH / BINS
    rectangles: list[_Rectangle] = []
    for place, count in enumerate(item.scores):
        height = 44 * count / most
        # The lower half is the good one if lower is better, the upper one otherwise.
        is_good = (place < BINS / 2) == item.metric.lower_is_better
        colour = GOOD if is_good else BAD
        rectangles.append((step * place + 1, 46 - height, step - 2, height, colour))
    low, high = (f"{end:g}" for end in item.metric.score_range)
    texts: list[_Text] = [(0, 60, low, "start"), (WIDTH, 60, high, "end")]
    return _Picture("number of answers by score", HEIGHT, rectangles, texts)
