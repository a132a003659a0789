"""Distributions and intervals: streaming counts, and their drawing as inline SVG.

A drawing stretches to the width that the style sheet gives it, so it holds shapes only; numbers
and words is next to it as HTML. Colours come from classes, so that both themes fit.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from markupsafe import Markup

from trustassay.report.text import NO_BREAK, amount, finalized, number, score_text

__all__ = ["Histogram", "Series", "histogram_svg", "histogram_text", "interval_svg", "meter_svg"]

BINS = 20
MOST_VERDICTS = 50
MOST_SERIES = 6
NO_VERDICT = "no verdict"
OTHER = "other"

HEIGHT = 100.0
LEAST_HEIGHT = 1.5  # one answer among a million stays visible


class Histogram:
    """Counts of per-sample scores in 20 equal bins, each split by verdict.

    Memory does not grow with the number of scores: of more than 50 different verdicts, later ones
    count as ``other``. A score outside the range counts in the bin at that end. ``verdicts`` come
    first, in their order, even without scores, so that each keeps its colour.
    """

    def __init__(self, low: float = 0.0, high: float = 1.0, verdicts: Sequence[str] = ()) -> None:
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise ValueError(f"a score range runs from low to high, got {low} to {high}")
        self.low = low
        self.high = high
        self.without_score = 0
        self.rows: dict[str, list[int]] = {name: [0] * BINS for name in verdicts}
        self._declared = tuple(verdicts)

    def add(self, score: float | None, verdict: str | None) -> None:
        """Count one assessment, failed ones and others without a score apart."""
        if score is None:
            self.without_score += 1
            return
        if not math.isfinite(score):
            raise ValueError(f"a score is a finite number, got {score}")
        name = verdict or NO_VERDICT
        if name not in self.rows and len(self.rows) >= MOST_VERDICTS:
            name = OTHER
        self.rows.setdefault(name, [0] * BINS)[self._bin(score)] += 1

    def _bin(self, score: float) -> int:
        share = (score - self.low) / (self.high - self.low)
        return min(BINS - 1, max(0, math.floor(share * BINS)))

    @property
    def counts(self) -> list[int]:
        """The number of scores in each bin."""
        return [sum(column) for column in zip([0] * BINS, *self.rows.values(), strict=True)]

    @property
    def verdicts(self) -> dict[str, int]:
        """The number of scores under each verdict: the declared ones, then by frequency."""
        totals = {name: sum(row) for name, row in self.rows.items()}
        others = [item for item in totals.items() if item[0] not in self._declared]
        declared = {name: totals[name] for name in self._declared}
        return declared | dict(sorted(others, key=lambda item: -item[1]))

    @property
    def n(self) -> int:
        """The number of scores."""
        return sum(map(sum, self.rows.values()))

    def edges(self, index: int) -> tuple[float, float]:
        """Return the lower and upper bound of a bin."""
        width = (self.high - self.low) / BINS
        return self.low + index * width, self.low + (index + 1) * width


class Series(NamedTuple):
    """One colour of a stacked histogram."""

    name: str
    counts: Sequence[int]
    total: int

    @classmethod
    def all_of(cls, histogram: Histogram) -> list[Series]:
        """Return the verdicts as series, the rarest ones of more than six gathered as one."""
        names = list(histogram.verdicts)
        if len(names) > MOST_SERIES:
            names = [name for name in names if name != OTHER]
        own = names if len(names) <= MOST_SERIES else names[: MOST_SERIES - 1]
        rest = [row for name, row in histogram.rows.items() if name not in own]
        series = [cls(name, histogram.rows[name], sum(histogram.rows[name])) for name in own]
        if rest:
            counts = [sum(column) for column in zip(*rest, strict=True)]
            series.append(cls(OTHER, counts, sum(counts)))
        return series


def histogram_svg(histogram: Histogram) -> Markup:
    """Draw the distribution as stacked bars, one colour a verdict."""
    return Markup(
        '<svg class="histogram" viewBox="0 0 {} {}" preserveAspectRatio="none" role="img"'
        ' aria-label="{}">{}</svg>'
    ).format(
        10 * BINS,
        f"{HEIGHT:g}",
        finalized(histogram_text(histogram)),
        Markup("").join(_bars(histogram)),
    )


def _bars(histogram: Histogram) -> Iterator[Markup]:
    series = Series.all_of(histogram)
    tallest = max(histogram.counts, default=0)
    for index, total in enumerate(histogram.counts):
        if not total:
            continue
        title = Markup("<title>{}</title>").format(finalized(_bin_text(histogram, series, index)))
        yield Markup("<g>{}{}</g>").format(
            title, Markup("").join(_stack(series, index, total, tallest))
        )


def _stack(series: Sequence[Series], index: int, total: int, tallest: int) -> Iterator[Markup]:
    top = HEIGHT
    scale = max(HEIGHT * total / tallest, LEAST_HEIGHT) / total
    for place, one in enumerate(series):
        height = one.counts[index] * scale
        if height:
            top -= height
            yield Markup('<rect class="v{}" x="{}" y="{:.2f}" width="9" height="{:.2f}"/>').format(
                place, 10 * index + 0.5, top, height
            )


def _bin_text(histogram: Histogram, series: Sequence[Series], index: int) -> str:
    low, high = histogram.edges(index)
    parts = ", ".join(f"{one.name} {one.counts[index]:,}" for one in series if one.counts[index])
    return f"{score_text(low)} to {score_text(high)}: {histogram.counts[index]:,} ({parts})"


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


def interval_svg(value: float, interval: tuple[float, float] | None) -> Markup:
    """Draw a value and its interval on the scale from 0 to 100."""
    label = f"{number(float(value))} on a scale from 0 to 100"
    band = Markup("")
    if interval is not None:
        low, high = (min(100.0, max(0.0, bound)) for bound in interval)
        band = Markup('<rect class="band" x="{:.2f}" y="3" width="{:.2f}" height="6"/>').format(
            low, max(high - low, 0.5)
        )
        label += f", interval {number(float(interval[0]))} to {number(float(interval[1]))}"
    tick = min(99.0, max(0.0, value - 0.5))
    return Markup(
        '<svg class="interval" viewBox="0 0 100 12" preserveAspectRatio="none" role="img"'
        ' aria-label="{}"><rect class="track" y="5.5" width="100" height="1"/>{}'
        '<rect class="tick" x="{:.2f}" width="1" height="12"/></svg>'
    ).format(label, band, tick)


def meter_svg(score: float, low: float, high: float) -> Markup:
    """Draw one score as a short bar; the number is next to it."""
    share = min(1.0, max(0.0, (score - low) / (high - low)))
    return Markup(
        '<svg class="meter" viewBox="0 0 40 6" preserveAspectRatio="none" aria-hidden="true">'
        '<rect width="{:.1f}" height="6"/></svg>'
    ).format(40 * share)


def interval_text(interval: tuple[float, float], digits: int = 1) -> str:
    """Write an interval: ``55.2 – 66.9``."""
    low, high = (number(float(bound), digits) for bound in interval)
    return f"{low}{NO_BREAK}–{NO_BREAK}{high}"
