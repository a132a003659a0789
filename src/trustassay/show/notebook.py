"""How a run shows itself: as text where Python prints it, as a table and a picture in a notebook.

The picture is an SVG of a few rectangles whose text has the colour of the notebook's own, so that
it can be read in light and in dark ones. Every text is escaped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from trustassay.metric import Metric, Summary
from trustassay.show.text import rounded, visible

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
class WorstShown:
    """What is shown of an answer that needs a look."""

    id: str
    question: str
    verdict: str
    reason: str


@dataclass(frozen=True)
class RunShown:
    """What is shown of a run; ``judge`` says how sure its judge is."""

    path: str
    sentence: str
    metrics: Sequence[MetricShown]
    worst: Sequence[WorstShown]
    judge: str = ""


def as_text(run: RunShown) -> str:
    """Return a run in a few lines of text, without characters that a terminal obeys."""
    lines = [f"Run in {run.path}", f"{run.sentence}."]
    for shown in run.metrics:
        lines.append(f"{shown.metric.title} ({shown.metric.name})")
        rows = _figures(shown)
        wide = max((len(key) for key, *_ in rows), default=0)
        for key, value, interval, _, _ in rows:
            lines.append(f"  {key:{wide}}  {value}" + (f"  ({interval})" if interval else ""))
        if shown.summary.error:
            lines.append(f"  {shown.summary.error}")
    if run.judge:
        lines.append(f"How sure is this judge? {run.judge}")
    return "\n".join("".join(c if c.isprintable() else " " for c in line) for line in lines)


def as_html(run: RunShown) -> str:
    """Return a run as HTML: the sentence, a picture and a table for each metric, the worst."""
    parts = [
        Markup('<div class="trustassay-run" style="max-width:56em">'),
        Markup('<p style="margin:.3em 0"><strong>{}.</strong></p>').format(visible(run.sentence)),
    ]
    for shown in run.metrics:
        title, name = visible(shown.metric.title), visible(shown.metric.name)
        parts.append(Markup('<p style="margin:.8em 0 .2em">{} ({})</p>').format(title, name))
        parts += [_picture(shown), _table(shown)]
        if shown.summary.error:
            parts.append(Markup("<p>{}</p>").format(visible(shown.summary.error)))
    if run.judge:
        words = Markup("<p><strong>How sure is this judge?</strong> {}</p>")
        parts.append(words.format(visible(run.judge)))
    if run.worst:
        parts.append(_list(run.worst))
    where = Markup('<p style="margin:.5em 0;opacity:.75"><code>{}</code></p></div>')
    return str(Markup("").join([*parts, where.format(visible(run.path))]))


def _figures(shown: MetricShown) -> list[tuple[str, str, str, str, str]]:
    """Return key, value, interval, samples and meaning of the headline figures."""
    found = []
    for key, value in shown.summary.values.items():
        figure = shown.metric.figures.get(key)
        if figure is None or not figure.headline:
            continue
        interval = shown.summary.intervals.get(key)
        found.append(
            (
                key,
                "n/a" if value is None else f"{rounded(value, figure.unit)} {figure.unit}".strip(),
                "{} to {}".format(*(rounded(end, figure.unit) for end in interval))
                if interval
                else "",
                f"{shown.summary.support.get(key, shown.summary.n):,}"
                + (f" in {units:,} units" if (units := shown.summary.units.get(key)) else ""),
                shown.summary.not_applicable.get(key, figure.explanation),
            )
        )
    return found


HEAD = ("figure", "value", "95 % interval", "n", "meaning")
CELL = Markup(
    '<t{0} style="text-align:left;vertical-align:top;padding:.15em .8em .15em 0;{1}">{2}</t{0}>'
)


def _table(shown: MetricShown) -> Markup:
    rows = [_row("h", HEAD), *(_row("d", row) for row in _figures(shown))]
    style = "border-collapse:collapse;margin:.3em 0;color:inherit;font-size:inherit"
    table = Markup('<table style="{}">{}</table>')
    return table.format(style, Markup("").join(rows))


def _row(kind: str, cells: Sequence[str]) -> Markup:
    whole = ["white-space:nowrap"] * (len(cells) - 1) + [""]
    pairs = zip(cells, whole, strict=True)
    made = Markup("").join(CELL.format(kind, style, visible(cell)) for cell, style in pairs)
    return Markup("<tr>{}</tr>").format(made)


def _list(worst: Sequence[WorstShown]) -> Markup:
    item = Markup(
        '<li style="margin:.4em 0;text-align:left;overflow-wrap:anywhere">{} <code>{}</code>'
        "<br><strong>{}</strong>{}</li>"
    )
    made = [
        item.format(
            visible(one.question),
            visible(one.id),
            visible(one.verdict),
            visible(f": {one.reason}" if one.reason else ""),
        )
        for one in worst
    ]
    return Markup('<ol style="padding-left:1.6em">{}</ol>').format(Markup("").join(made))


def _picture(shown: MetricShown) -> Markup:
    """Return an SVG: the shares of the verdicts if the metric gives some, else the scores."""
    verdicts = {name: count for name, count in shown.verdicts.items() if count}
    height = HEIGHT
    if shown.metric.verdicts:
        drawn, height = _shares(shown, verdicts)
    else:
        drawn = _bars(shown)
    words = ", ".join(f"{count:,} {name}" for name, count in verdicts.items())
    label = words if shown.metric.verdicts else "how many answers have which score"
    return Markup(
        '<svg role="img" aria-label="{}" width="{}" height="{}" viewBox="0 0 {} {}" '
        'style="max-width:100%;font:12px sans-serif;color:inherit">{}</svg>'
    ).format(visible(label), WIDTH, height, WIDTH, height, drawn)


def _rectangle(left: float, top: float, width: float, height: float, colour: str) -> Markup:
    shape = '<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" fill="{}"/>'
    return Markup(shape.format(left, top, width, height, colour))


def _text(left: float, top: float, words: str, anchor: str = "start") -> Markup:
    mark = Markup('<text x="{:.1f}" y="{:.1f}" fill="currentColor" text-anchor="{}">{}</text>')
    return mark.format(left, top, anchor, words)


def _shares(shown: MetricShown, verdicts: Mapping[str, int]) -> tuple[Markup, int]:
    """Return one bar, divided by verdicts, with a legend, and the height of both."""
    total = sum(verdicts.values()) or 1
    drawn: list[Markup] = []
    left = 0.0
    at, row = 0.0, 0
    for name, count in verdicts.items():
        width = WIDTH * count / total
        colour = _colour(shown.metric, name)
        drawn.append(_rectangle(left, 2, max(width - 1, 0.5), 18, colour))
        left += width
        words = f"{count:,} {name[:40]}"
        needed = 16 + 6.6 * len(words) + 12
        if at + needed > WIDTH and at:
            at, row = 0.0, row + 1
        drawn.append(_rectangle(at, 27 + 18 * row, 10, 10, colour))
        drawn.append(_text(at + 15, 36 + 18 * row, visible(words)))
        at += needed
    return Markup("").join(drawn), 44 + 18 * row


def _colour(metric: Metric, verdict: str) -> str:
    """Return a verdict's colour, by its place: the metric's first is that of trust."""
    if verdict == "failed" or verdict not in metric.verdicts:
        return FAILED
    place = list(metric.verdicts).index(verdict)
    if len(metric.verdicts) == 2:
        return (GOOD, BAD)[place]
    return COLOURS[min(place, len(COLOURS) - 1)]


def _bars(shown: MetricShown) -> Markup:
    """Return a bar for each part of the range, the worse half in another colour."""
    most = max([*shown.scores, 1])
    step = WIDTH / BINS
    lower = shown.metric.lower_is_better
    drawn = []
    for place, count in enumerate(shown.scores):
        height = 44 * count / most
        good = (place < BINS / 2) == lower
        drawn.append(
            _rectangle(step * place + 1, 46 - height, step - 2, height, GOOD if good else BAD)
        )
    low, high = shown.metric.score_range
    drawn += [_text(0, 60, f"{low:g}"), _text(WIDTH, 60, f"{high:g}", "end")]
    return Markup("").join(drawn)
