"""Figures of all answers from the labels of some, and how many labels more they need."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from trustassay.statistics.active import Estimate, Labels, Target, auroc_target, mean_target
from trustassay.statistics.distributions import normal_quantile
from trustassay.statistics.intervals import FEWEST, Interval, mean_interval, t_interval, too_few
from trustassay.workflows.label.population import Population

Floats = NDArray[np.float64]
FigureKind = Literal["share", "share of", "difference", "auroc", "auroc difference"]
FEWEST_OF_CLASS = 10
POWER = 0.8
LEVEL = 0.95


@dataclass(frozen=True)
class Figure:
    """What is asked of the answers: of ``share of`` a model, of ``auroc`` a score is named, of a
    difference two of them.
    """

    kind: FigureKind = "share"
    names: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """What it is called."""
        match self.kind:
            case "share":
                return "share right"
            case "share of":
                return f"share right: {self.names[0] or 'no model named'}"
            case "difference":
                return f"share right: {self.names[0]} – {self.names[1]}"
            case "auroc":
                return f"AUROC: {self.names[0]}"
        return f"AUROC: {self.names[0]} – {self.names[1]}"

    @property
    def signed(self) -> bool:
        """Whether it is a difference, from -1 to 1, and not from 0 to 1."""
        return "difference" in self.kind

    @property
    def by_class(self) -> bool:
        """Whether it needs answers of both kinds."""
        return "auroc" in self.kind

    def target(self, population: Population, labels: Floats) -> Target | None:
        """Return the figure of labels, known or expected, of all answers."""
        match self.kind:
            case "share":
                return mean_target(labels, np.ones(len(labels), dtype=bool))
            case "share of":
                return mean_target(labels, population.of_model(self.names[0]))
            case "difference":
                one, other = (mean_target(labels, population.of_model(m)) for m in self.names)
                return one - other
        scores = [population.column(name).values for name in self.names]
        missing = np.isnan(np.stack(scores)).any(axis=0)  # both of the same answers
        result = [auroc_target(labels, np.where(missing, np.nan, each)) for each in scores]
        there = [one for one in result if one is not None]
        if len(there) < len(result):
            return None
        return there[0] - there[1] if len(there) == 2 else there[0]


@dataclass(frozen=True)
class LabelFigure:
    """A figure as labels tell it. ``beyond`` is the interval for questions like these, of which
    these are a sample; ``evenly`` what as many labels of answers drawn evenly would give without
    scores. ``without`` says why there is no interval.
    """

    figure: Figure
    value: float | None
    interval: Interval | None = None
    beyond: Interval | None = None
    evenly: Interval | None = None
    without: str = ""
    estimate: Estimate | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "figure": self.figure.kind,
            "of": list(self.figure.names),
            "value": self.value,
            "interval": self.interval,
            "beyond": self.beyond,
            "evenly": self.evenly,
            "without": self.without,
        }


@dataclass(frozen=True)
class Need:
    """How many labels more a goal takes: 0 where it is reached, ``None`` where all answers together
    do not reach it. ``evenly``: the same of answers drawn evenly, without scores.
    """

    goal: str
    more: int | None
    evenly: int | None

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {"goal": self.goal, "more": self.more, "evenly": self.evenly}


def measured(figure: Figure, population: Population, labels: Labels, told: Floats) -> LabelFigure:
    """Return a figure with its intervals. told: the labels that people gave, NaN where none."""
    target = figure.target(population, labels.estimates)
    if target is None:
        return LabelFigure(figure, None, without="too few labels of one kind")
    result = labels.estimate(target)
    value = float(np.clip(target.value, -1.0 if figure.signed else 0.0, 1.0))
    if result is None:
        return LabelFigure(figure, None, without="fewer than two drawn units have labels")
    there = told[~np.isnan(told)]
    rarer = int(min(there.sum(), len(there) - there.sum()))
    reason = too_few(f"rated {population.unit}s", result.draws, FEWEST)
    if figure.by_class:
        reason = reason or too_few("labels of one kind", rarer, FEWEST_OF_CLASS)
    if reason:
        return LabelFigure(figure, value, without=reason, estimate=result)
    interval = interval_at(figure, result, result.variance, result.effective)
    beyond = None
    if population.unit == "question" or not population.clustered:
        beyond = interval_at(figure, result, result.variance + result.between, result.effective)
    even = interval_at(figure, result, result.variance_at(result.draws, evenly=True), result.draws)
    if figure.kind == "share":
        interval = _possible(interval, told)
    return LabelFigure(figure, value, interval, beyond, even, "", result)


def interval_at(figure: Figure, result: Estimate, variance: float, draws: float) -> Interval:
    """Return the interval that a figure has with this variance, from so many draws."""
    n = max(2, int(draws))
    if figure.signed:
        low, high = t_interval(result.value, variance, n, LEVEL) or (result.value, result.value)
        return max(-1.0, low), min(1.0, high)
    return mean_interval(min(max(result.value, 0.0), 1.0), variance, n, LEVEL)


def _possible(interval: Interval, told: Floats) -> Interval:
    """Keep the share within what the labels at hand leave possible."""
    right, wrong = (told == 1).sum() / len(told), (told == 0).sum() / len(told)
    low, high = interval
    return max(low, float(right)), min(high, 1 - float(wrong))


def wide_enough(result: LabelFigure, width: float, labels: int, *, beyond: bool) -> Need:
    """Return how many labels more make the interval no wider than ``width``. ``labels``: so far."""
    one = result.estimate
    assert one is not None
    goal = f"an interval of {width:g}"
    now = result.beyond if beyond else result.interval
    if now is not None and now[1] - now[0] <= width:
        return Need(goal, 0, None)
    added = one.between if beyond else 0.0

    def enough(variance: float, draws: float) -> bool:
        low, high = interval_at(result.figure, one, variance + added, draws)
        return high - low <= width

    return _need(goal, one, enough, labels)


def told_apart(result: LabelFigure, labels: int, *, beyond: bool) -> Need:
    """Return how many labels more show with a power of 80 % at 5 % that a difference is not 0,
    if it is the one that was seen. It is 0 where the interval leaves 0 out already.
    """
    one = result.estimate
    assert one is not None
    goal = f"telling them apart (a difference of {abs(one.value):.3f}, power 80 %)"
    now = result.beyond if beyond else result.interval
    if now is not None and not now[0] <= 0 <= now[1]:
        return Need(goal, 0, None)
    reach = normal_quantile((1 + LEVEL) / 2) + normal_quantile(POWER)
    added = one.between if beyond else 0.0

    def enough(variance: float, _draws: float) -> bool:
        return abs(one.value) >= reach * float(np.sqrt(variance + added))

    return _need(goal, one, enough, labels)


def _need(goal: str, one: Estimate, enough: Callable[[float, float], bool], labels: int) -> Need:
    of_one = labels / one.draws
    result = []
    for evenly in (False, True):
        draws = one.draws_for(enough, evenly=evenly)
        never = draws > one.draws + one.left
        result.append(None if never else max(0, round((draws - one.draws) * of_one)))
    return Need(goal, result[0], result[1])
