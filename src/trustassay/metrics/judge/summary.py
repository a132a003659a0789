"""The figures of a data set: scores, scatter, faults, panels, agreement with what was expected."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from trustassay.assessment import interval_of, summarised
from trustassay.metric import Assessment, Figure, Mean, Share, Summary, Total, read_figures
from trustassay.metrics.judge.options import JudgeOptions
from trustassay.statistics import Floats, Places
from trustassay.statistics.agreement import (
    Scale,
    Weights,
    cohen_kappa,
    item_interval,
    krippendorff_alpha,
    percent_agreement,
)

MOST_DRAWN = 60
"""Answers whose votes are drawn, the first ones."""
SAME = "all levels are the same, or there are none to compare"
MOST_JUDGES = 50
"""Judges whose severity is told."""

ENTAILER_FIGURES: Mapping[str, Figure] = read_figures(__package__, "entailer")
_OF_LEVELS = frozenset({"passes", "undecided", "higher", "lower"})
"""Figures of levels in an order alone."""
_NOMINAL = {
    "agreement": "the same as a share",
    "kappa": "Cohen's kappa of expected and judged categories",
}
"""What figures of categories are, where these are not those of levels in an order."""


def figures_of(metric: JudgeOptions) -> dict[str, Figure]:
    """Return the figures of a rubric, in the order in which they are shown."""
    scale, found = metric.scale, dict(read_figures(__package__))
    low, high = scale.range
    wide = high - low
    bounds = {"sd": (0.0, wide), "order_difference": (-wide, wide), "expected_score": (low, high)}
    found |= {key: replace(found[key], statistic=Mean(key, ends)) for key, ends in bounds.items()}
    for key in ("sd", "without_variance"):
        found[key] = replace(found[key], headline=metric.repeats > 1)
    passes = f"answers that pass, from {metric.passes_from:g} on"
    found["passes"] = replace(found["passes"], explanation=passes)
    if not scale.ordinal:
        found |= {key: replace(found[key], explanation=words) for key, words in _NOMINAL.items()}
        mean, *others = (one for key, one in found.items() if key not in _OF_LEVELS)
        verdicts = [
            Figure(verdict, f"answers judged {verdict}", "%", "", True, Share(verdict))
            for verdict in metric.verdicts
        ]
        found = {one.key: one for one in (mean, *verdicts, *others)}
    cells = (_cell(one, other) for one in scale.values for other in scale.values)
    return found | {key: Figure(key, "answers", "", "expected and judged") for key in cells}


def _cell(expected: str, judged: str) -> str:
    return f"expected {expected}, judged {judged}"


def summarise(metric: JudgeOptions, assessments: Collection[Assessment]) -> Summary:
    """Return the figures over the judged answers, read once and in order."""
    expected: list[tuple[float, float]] = []
    panels: list[dict[str, tuple[float, float]]] = []
    units: dict[str, list[int]] = {"expected": [], "panels": []}
    drawn: list[list[Any]] = []

    def read() -> Iterator[Assessment]:
        for one in assessments:
            yield one
            if one.error is not None:
                continue
            if len(drawn) < MOST_DRAWN and metric.by == "model":
                drawn.append(_drawn(metric, one))
            unit = -1 if one.unit is None else one.unit
            if "expected_place" in one.parts:
                expected.append((one.parts["expected_place"], one.parts["level_place"]))
                units["expected"].append(unit)
            if panel := _panel(one.parts):
                panels.append(panel)
                units["panels"].append(unit)

    figures = metric.figures
    found = summarised(metric.statistics, read(), metric.score_range)
    values = found.values
    for key, statistic in metric.statistics.items():
        if isinstance(statistic, Total):  # 0 of faults that no answer has
            none = 0 if key.startswith("unreadable") and found.n > found.failed else None
            values[key] = none if (total := values[key]) is None else round(total)
    if metric.by == "model":
        _compare(found, metric, expected, np.array(units["expected"], dtype=np.int64))
        _compare_judges(found, metric, panels, np.array(units["panels"], dtype=np.int64))
    keys = dict.fromkeys((*(key for key in figures if key in values), *values))
    absent = {k: v for k, v in found.not_applicable.items() if k in values and values[k] is None}
    return replace(
        found.with_settings(metric.settings(), keys),
        not_applicable=absent,
        units={},
        details={"levels": metric.scale.upwards, "answers": drawn} if drawn else {},
    )


def _drawn(metric: JudgeOptions, one: Assessment) -> list[Any]:
    """Return what is drawn of an answer: its id, the levels expected and judged, and its votes.

    Levels are places among those of :attr:`Rubric.upwards`.
    """
    labels, upwards = list(metric.scale.values), metric.scale.upwards

    def place(part: str) -> int | None:
        found = one.parts.get(part)
        return None if found is None else upwards.index(labels[int(found)])

    votes = [int(one.parts.get(f"votes:{label}", 0)) for label in upwards]
    return [one.id[:40], place("expected_place"), place("level_place"), votes]


def _compare(
    found: Summary, metric: JudgeOptions, pairs: Sequence[tuple[float, float]], units: Places
) -> None:
    """Add how the judged levels agree with the expected ones, where some were."""
    if not pairs:
        return
    scale, n = metric.scale, len(pairs)
    labels = list(scale.values)
    table = np.array(pairs, dtype=int)
    expected, judged = table[:, 0], table[:, 1]
    found.put("matched", int(np.sum(expected == judged)), n)
    order = np.array([scale.values[label] for label in labels])
    if scale.ordinal:
        found.put("higher", int(np.sum(order[judged] > order[expected])), n)
        found.put("lower", int(np.sum(order[judged] < order[expected])), n)
    found.put("agreement", percent_agreement(expected, judged), n, why=SAME)
    ranks = np.argsort(np.argsort(order, kind="stable")).astype(float)
    known = sorted(set(ranks.tolist()))
    weights: Weights = "quadratic" if scale.ordinal else "none"

    def kappa(ratings: Floats, times: Floats) -> float | None:
        return cohen_kappa(ratings[0], ratings[1], weights, known, times)

    ratings = np.stack([ranks[expected], ranks[judged]])
    interval = item_interval(kappa, ratings, units, "interval" if scale.ordinal else "nominal")
    found.put("kappa", kappa(ratings, np.ones(n)), n, interval, why=SAME)
    for i, one in enumerate(labels):
        for j, other in enumerate(labels):
            if count := int(np.sum((expected == i) & (judged == j))):
                found.put(_cell(one, other), count, n)


def _panel(parts: Mapping[str, float]) -> dict[str, tuple[float, float]]:
    """Return the mean and the place of the level that each judge of a panel gave."""
    return {
        name: (mean, parts[f"place:{name}"])
        for key, mean in parts.items()
        if key.startswith("mean:") and f"place:{(name := key.removeprefix('mean:'))}" in parts
    }


def _compare_judges(
    found: Summary,
    metric: JudgeOptions,
    panels: Sequence[Mapping[str, tuple[float, float]]],
    units: Places,
) -> None:
    """Add each judge's severity, and how far the judges agree, where there are several."""
    names = list(dict.fromkeys(name for panel in panels for name in panel))[:MOST_JUDGES]
    whole = np.array([len(panel) == len(names) for panel in panels], dtype=bool)
    full = [panel for panel in panels if len(panel) == len(names)]
    wide = metric.scale.range[1] - metric.scale.range[0]
    means = np.array([np.mean([mean for mean, _ in panel.values()]) for panel in full])
    for name in names if len(names) > 1 and full else ():
        lower = means - np.array([panel[name][0] for panel in full])
        interval = interval_of(Mean(), lower, units[whole], (-wide, wide), "answers")
        found.put(f"severity {name}", float(lower.mean()), len(lower), interval)
    if len(names) < 2:
        return
    order = list(metric.scale.values.values())
    if not metric.scale.ordinal:  # values of categories may be equal; their places are not
        order = [float(place) for place in range(len(order))]
    ratings: Floats = np.array(
        [[order[int(p[name][1])] if name in p else math.nan for p in panels] for name in names]
    )
    scale: Scale = "ordinal" if metric.scale.ordinal else "nominal"

    def alpha(ratings: Floats, times: Floats) -> float | None:
        return krippendorff_alpha(ratings, scale, times)

    value = alpha(ratings, np.ones(len(panels)))
    two = (~np.isnan(ratings)).sum(axis=0) >= 2
    interval = item_interval(alpha, ratings[:, two], units[two], scale)
    found.put(f"alpha ({scale}, between judges)", value, len(panels), interval, why=SAME)
