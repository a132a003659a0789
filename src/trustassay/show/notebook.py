"""How a run shows itself: as text where Python prints it, as a table and a picture in a notebook.

The picture is an SVG of a few rectangles whose text has the colour of the notebook's own, so that
it can be read in light and in dark ones.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from trustassay.metric import Figure, Metric, Summary
from trustassay.show.text import rounded

BINS = 20
"""Bars of the picture of scores."""
WIDTH, HEIGHT = 480, 64
GOOD, BAD, FAILED = "#2a9d6f", "#d6455d", "#848b97"
COLOURS = (GOOD, "#c07f0c", BAD, "#4d8fd1", "#9a6fd0")
"""Colours of verdicts, with a contrast of 3 and more to white as to black."""


@dataclass(frozen=True)
class MetricShown:
    """What is shown of a metric: its summary, how often each verdict was given, and how many
    scores are in each of :data:`BINS` parts of its range.
    """

    metric: Metric
    summary: Summary
    verdicts: Mapping[str, int]
    scores: Sequence[int]


@dataclass(frozen=True)
class RunShown:
    """What is shown of a run.

    outcomes: for each metric the line with its outcomes, and the one with the reasons if there is
    one. sentence: how many answers need a look. worst: id, question, verdict and reason of answers
    that do. judge: how sure its judge is.
    """

    path: str
    outcomes: Sequence[Sequence[str]]
    sentence: str
    metrics: Sequence[MetricShown]
    worst: Sequence[tuple[str, str, str, str]]
    judge: str = ""


def as_text(run: RunShown) -> str:
    """Return a run in a few lines of text, without characters that a terminal obeys."""
    lines = [line for outcome_lines in run.outcomes for line in outcome_lines]
    lines.append(f"{run.sentence}.")
    for shown in run.metrics:
        lines.append(f"{shown.metric.title} ({shown.metric.name})")
        rows = headline_rows(shown.summary, shown.metric.figures)
        wide = max((len(key) for key, *_ in rows), default=0)
        for key, value, interval, _, _ in rows:
            lines.append(f"  {key:{wide}}  {value}" + (f"  ({interval})" if interval else ""))
        if shown.summary.error:
            lines.append(f"  {shown.summary.error}")
    if run.judge:
        lines.append(f"How sure is this judge? {run.judge}")
    lines.append(f"Run in {run.path}")
    return "\n".join("".join(c if c.isprintable() else " " for c in line) for line in lines)


def as_html(run: RunShown) -> str:
    """Return a run as HTML: its outcomes, a picture and a table for each metric, the worst."""
    from trustassay.show.page import rendered

    metrics = [
        (shown, _picture(shown), headline_rows(shown.summary, shown.metric.figures))
        for shown in run.metrics
    ]
    return rendered("notebook.html.jinja", run=run, metrics=metrics, width=WIDTH)


def headline_rows(
    summary: Summary, figures: Mapping[str, Figure]
) -> list[tuple[str, str, str, str, str]]:
    """Return key, value, interval, samples and meaning of the headline figures."""
    result = []
    for key, value in summary.values.items():
        figure = figures.get(key)
        if figure is None or not figure.headline:
            continue
        shown = "n/a" if value is None else f"{rounded(value, figure.unit)} {figure.unit}".strip()
        ends = [rounded(end, figure.unit) for end in summary.intervals.get(key) or ()]
        n = f"{summary.support.get(key, summary.n):,}"
        n += f" ({summary.units[key]:,} units)" if key in summary.units else ""
        meaning = summary.not_applicable.get(key, figure.explanation)
        result.append((key, shown, " to ".join(ends), n, meaning))
    return result


_Rectangle = tuple[float, float, float, float, str]
"""Left, top, width, height and colour."""
_Text = tuple[float, float, str, str]
"""Left, top, words and anchor."""


class _Picture(NamedTuple):
    """What is drawn, and what it says to who does not see it."""

    label: str
    height: int
    rectangles: Sequence[_Rectangle]
    texts: Sequence[_Text]


def _picture(shown: MetricShown) -> _Picture:
    """Return one bar, divided by verdicts, with a legend; the scores of a metric without any."""
    if not shown.metric.verdicts:
        return _bars(shown)
    verdicts = {name: count for name, count in shown.verdicts.items() if count}
    total = sum(verdicts.values()) or 1
    rectangles: list[_Rectangle] = []
    texts: list[_Text] = []
    left = 0.0
    at, row = 0.0, 0
    for name, count in verdicts.items():
        width = WIDTH * count / total
        colour = _colour(shown.metric, name)
        rectangles.append((left, 2, max(width - 1, 0.5), 18, colour))
        left += width
        message = f"{count:,} {name[:40]}"
        needed = 16 + 6.6 * len(message) + 12
        if at + needed > WIDTH and at:
            at, row = 0.0, row + 1
        rectangles.append((at, 27 + 18 * row, 10, 10, colour))
        texts.append((at + 15, 36 + 18 * row, message, "start"))
        at += needed
    label = ", ".join(f"{count:,} {name}" for name, count in verdicts.items())
    return _Picture(label, 44 + 18 * row, rectangles, texts)


def _colour(metric: Metric, verdict: str) -> str:
    """Return a verdict's colour, by its place: the metric's first is that of trust."""
    if verdict == "failed" or verdict not in metric.verdicts:
        return FAILED
    place = list(metric.verdicts).index(verdict)
    if len(metric.verdicts) == 2:
        return (GOOD, BAD)[place]
    return COLOURS[min(place, len(COLOURS) - 1)]


def _bars(shown: MetricShown) -> _Picture:
    """Return a bar for each part of the range, the worse half in another colour."""
    most, step = max([*shown.scores, 1]), WIDTH / BINS
    rectangles: list[_Rectangle] = []
    for place, count in enumerate(shown.scores):
        height = 44 * count / most
        good = (place < BINS / 2) == shown.metric.lower_is_better
        colour = GOOD if good else BAD
        rectangles.append((step * place + 1, 46 - height, step - 2, height, colour))
    low, high = (f"{end:g}" for end in shown.metric.score_range)
    texts: list[_Text] = [(0, 60, low, "start"), (WIDTH, 60, high, "end")]
    return _Picture("how many answers have which score", HEIGHT, rectangles, texts)
