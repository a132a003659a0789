"""Drawings of scores as SVG."""

import math
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from trustassay.show.distributions import BINS, SHOWN_BINS, Group, Groups, Histogram, Series
from trustassay.show.text import NO_BREAK, amount, finalized, number, score_text, with_error

LEAST_HEIGHT = 1.5  # one answer among a million stays visible


@cache
def _drawings() -> Any:
    environment = Environment(
        loader=PackageLoader("trustassay.show"),
        autoescape=True,
        finalize=finalized,
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    for function in (score_text, with_error, amount):
        environment.globals[function.__name__] = function
    return environment.get_template("drawings.html.jinja").module


def drawn(macro: str, **context: Any) -> Markup:
    """Return what a macro of ``drawings.html.jinja`` draws."""
    result: Markup = getattr(_drawings(), macro)(**context)
    return result


def histogram_svg(histogram: Histogram) -> Markup:
    """Draw the distribution as stacked bars, one colour a verdict."""
    series, label = Series.all_of(histogram), histogram_text(histogram)
    return drawn("histogram", label=label, histogram=histogram, series=series, least=LEAST_HEIGHT)


def histogram_text(histogram: Histogram) -> str:
    """Return a sentence on what the drawing shows."""
    scope = f"{score_text(histogram.low)} to {score_text(histogram.high)}"
    if not histogram.n:
        return f"No scores in the range {scope}."
    counts = histogram.counts
    fullest = max(range(BINS), key=counts.__getitem__)
    low, high = histogram.edges(fullest)
    verdicts = ", ".join(f"{one.name} {one.total:,}" for one in Series.all_of(histogram))
    return (
        f"Distribution of {amount(histogram.n, 'score')} from {scope}: the largest of {BINS} bins "
        f"is {score_text(low)} to {score_text(high)} with {counts[fullest]:,}. By verdict: "
        f"{verdicts}."
    )


def percent_svg(value: float, interval: tuple[float, float] | None) -> Markup:
    """Draw a value and its interval on the scale from 0 to 100."""
    label = f"{number(float(value))} on a scale from 0 to 100"
    band = None
    if interval is not None:
        band = [min(100.0, max(0.0, bound)) for bound in interval]
        label += f", interval {number(float(interval[0]))} to {number(float(interval[1]))}"
    return drawn("percent", label=label, value=value, band=band)


def meter_svg(score: float, low: float, high: float) -> Markup:
    """Draw one score as a short bar; the number is next to it."""
    return drawn("meter", share=min(1.0, max(0.0, (score - low) / (high - low))))


def interval_text(interval: tuple[float, float], digits: int = 1) -> str:
    """Write an interval: ``55.2 – 66.9``."""
    low, high = (number(float(bound), digits) for bound in interval)
    return f"{low}{NO_BREAK}–{NO_BREAK}{high}"


WIDTH, HEIGHT = 400.0, 100.0
FEW = 1500
"""Scores below which twice as broad bins are drawn."""
TOO_FEW = 10
"""Scores below which a group has no say in the height of the rows: one score fills its bin."""


class Mark(NamedTuple):
    """A line across a drawing, at a share of its width; ``kind`` is its class."""

    kind: str
    at: float


class Curve(NamedTuple):
    """A line through points, each a share of the drawing's width and height."""

    kind: str
    points: Sequence[tuple[float, float]]


Box = tuple[float, float, float, float, str]
"""Left, right, top and height of a box that is seen however narrow it is, and its title."""


def _drawing(
    kind: str,
    label: str,
    boxes: Sequence[Box] = (),
    marks: Sequence[Mark] = (),
    curves: Sequence[Curve] = (),
) -> Markup:
    size = {"width": WIDTH, "height": HEIGHT}
    return drawn("drawing", kind=kind, label=label, **size, boxes=boxes, marks=marks, curves=curves)


def bars_svg(
    shares: Sequence[float],
    peak: float,
    label: str,
    marks: Sequence[Mark] = (),
    kind: str = "ridge",
    titles: Sequence[str] = (),
) -> Markup:
    """Draw bars whose heights are shares of ``peak``, and marks across them."""
    width = WIDTH / len(shares)
    boxes = []
    for place, share in enumerate(shares):
        if share > 0:
            height = min(HEIGHT, max(HEIGHT * share / peak, LEAST_HEIGHT))
            title = titles[place] if titles else ""
            ends = width * (place + 0.06), width * (place + 0.94)
            boxes.append((*ends, HEIGHT - height, height, title))
    return _drawing(kind, label, boxes, marks)


def interval_svg(interval: tuple[float, float] | None, at: float, label: str) -> Markup:
    """Draw an interval as a bar and its middle as a line; all are shares of the width."""
    low, high = (WIDTH * min(1.0, max(0.0, end)) for end in interval or (0.0, 0.0))
    boxes = [(low, high, HEIGHT / 4, HEIGHT / 2, "")] if interval is not None else []
    return _drawing("ridge", label, boxes, [Mark("mean", at)])


def box_svg(five: Sequence[float], label: str) -> Markup:
    """Draw least, quartiles and largest: a line, a box on it, and the median as a mark.

    All five are shares of the width, in rising order.
    """
    least, low, middle, high, largest = (WIDTH * min(1.0, max(0.0, one)) for one in five)
    whiskers = (least, largest, HEIGHT / 2 - 2, 4.0, "")
    box = (low, high, HEIGHT / 5, 3 * HEIGHT / 5, "")
    return _drawing("ridge", label, [whiskers, box], [Mark("mean", middle / WIDTH)])


def curves_svg(curves: Sequence[Curve], label: str, marks: Sequence[Mark] = ()) -> Markup:
    """Draw curves over each other; their classes tell them apart by colour and by dashes."""
    return _drawing("curves", label, marks=marks, curves=curves)


class Ridges(NamedTuple):
    """What the rows of one figure share: fine bins on the axis and in a bar, the largest share.

    ``cut`` says that a bar of a small group is larger and ends there.
    """

    axis: int
    step: int
    peak: float
    cut: bool = False


def ridges_of(groups: Groups) -> Ridges:
    """Choose the axis, the bins and the height for the rows of a metric's groups."""
    axis = groups.axis()
    step = axis // SHOWN_BINS
    shown = groups.shown().values()
    if sorted(group.n for group in shown)[len(shown) // 2] < FEW:
        step *= 2
    ridges = Ridges(axis, step, 1.0)
    tallest = [(group.n, float(_shares(ridges, group).max())) for group in shown]
    most = max(share for _, share in tallest)
    peak = max((share for n, share in tallest if n >= TOO_FEW and share), default=most)
    return ridges._replace(peak=peak, cut=most > peak)


def _shares(ridges: Ridges, group: Group) -> np.ndarray:
    counts = group.counts[: ridges.axis].reshape(-1, ridges.step).sum(axis=1)
    return np.asarray(counts / max(group.n, 1))


def beyond(ridges: Ridges, group: Group) -> int:
    """Return how many scores lie beyond the axis."""
    return int(group.counts[ridges.axis :].sum())


def ridge_svg(groups: Groups, group: Group, ridges: Ridges) -> Markup:
    """Draw one group's row: the share of its scores in each bin, its mean, the stable bound."""
    shares = _shares(ridges, group)
    top = groups.value(ridges.axis)

    def at(score: float) -> float:
        return (score - groups.low) / (top - groups.low)

    marks = [Mark("mean", at(group.scores.mean))]
    if groups.stable_below is not None and groups.stable_below < top:
        marks.insert(0, Mark("bound", at(groups.stable_below)))
    titles = [
        f"{score_text(groups.value(i * ridges.step))} to "
        f"{score_text(groups.value((i + 1) * ridges.step))}: {number(100 * share)} %"
        for i, share in enumerate(shares.tolist())
    ]
    label = (
        f"{amount(group.n, 'score')}, mean {with_error(group.scores.mean, group.scores.error)}; "
        f"largest bin: {titles[int(shares.argmax())]}"
    )
    return bars_svg(shares.tolist(), ridges.peak, label, marks, titles=titles)


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Return round numbers that span a range: steps of 1, 2 or 5 times a power of ten."""
    span = high - low if high > low else abs(high) or 1.0
    rough = span / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next((m * power for m in (1, 2, 5) if m * power >= rough), 10 * power)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [step * place for place in range(first, max(last, first + 1) + 1)]


def stacked_svg(parts: Sequence[tuple[str, float]], names: Sequence[str], label: str) -> Markup:
    """Draw shares, in %, as pieces of one bar; a part's colour is its place in ``names``."""
    at, pieces = 0.0, []
    for name, share in parts:
        width = WIDTH * share / 100
        pieces.append((names.index(name), at, width, f"{name}: {number(share, 1)} %"))
        at += width
    said = ", ".join(f"{name} {number(share, 1)} %" for name, share in parts)
    return drawn("stacked", label=f"{label}: {said}", pieces=pieces, width=WIDTH, height=HEIGHT)
