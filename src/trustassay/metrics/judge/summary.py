"""The figures of a data set: scores, scatter, faults, panels, agreement with what was expected."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trustassay.metric import Assessment, Figure, Mean, Share, Summary, Total
from trustassay.metrics.judge.options import JudgeOptions
from trustassay.statistics.agreement import (
    bootstrap_interval,
    cohen_kappa,
    krippendorff_alpha,
    percent_agreement,
)
from trustassay.statistics.intervals import FEWEST_FOR_MEANS, t_interval, too_few
from trustassay.statistics.randomness import generator
from trustassay.summaries import summarised

__all__ = ["ENTAILER_FIGURES", "figures_of", "summarise"]

Floats = NDArray[np.float64]
MOST_DRAWN = 60
"""Answers whose votes are drawn, the first ones."""
SAME = "all levels are the same, or there are none to compare"
MOST_JUDGES = 50
"""Judges whose severity is told."""

ENTAILER_FIGURES: Mapping[str, Figure] = {
    "mean": Figure(
        "mean",
        "mean score: how far a gold answer and the answer say the same",
        "",
        "",
        True,
        Mean(),
    ),
    "passes": Figure(
        "passes", "answers that say the same as a gold answer", "%", "", True, Share("passes")
    ),
    "contradiction": Figure(
        "contradiction",
        "mean probability that the two contradict each other",
        "",
        statistic=Mean("contradiction", (0.0, 1.0)),
    ),
}
UNREADABLE = {
    "unreadable": "replies that could not be read, also after the judge was asked once more",
    "unreadable_none": "of these, without a score",
    "unreadable_several": "of these, with several scores",
    "unreadable_outside": "of these, with a score off the scale",
    "unreadable_empty": "of these, without a word",
}


def figures_of(metric: JudgeOptions) -> dict[str, Figure]:
    """Return the figures of a rubric, in the order in which they are shown."""
    scale = metric.scale
    low, high = scale.range
    wide = high - low
    found = [Figure("mean", "mean score", "", headline=True, statistic=Mean())]
    if scale.ordinal:
        found += [
            Figure("passes", f"answers that pass, from {metric.passes_from:g} on", "%", "", True,
                   Share("passes")),
            Figure("undecided", "answers of which the votes do not decide it", "%", "", True,
                   Share("undecided")),
        ]  # fmt: skip
    else:
        found += [
            Figure(verdict, f"answers judged {verdict}", "%", "", True, Share(verdict))
            for verdict in metric.verdicts
        ]
    steady = "steadiness"
    found += [
        Figure("sd", "mean standard deviation of a judge's repeated votes on an answer", "", steady,
               metric.repeats > 1, Mean("sd", (0.0, wide))),
        Figure("without_variance", "answers that got the same level at every repeat", "", steady,
               metric.repeats > 1, Total("steady")),
        Figure("flip_rate", "votes on the lesser side of the threshold, mean over answers", "%",
               steady, statistic=Mean("flip_rate", (0.0, 50.0))),
        Figure("order_difference", "mean score with the gold answer first, less that with it last",
               "", steady, statistic=Mean("order_difference", (-wide, wide))),
        Figure("expected_score", "mean level by log-probabilities", "", steady,
               statistic=Mean("expected_score", (low, high))),
        Figure("votes", "votes that were read", "", "replies", statistic=Total("votes")),
        *(Figure(key, words, "", "replies", statistic=Total(key))
          for key, words in UNREADABLE.items()),
        Figure("repairs", "replies that were asked for once more", "", "replies",
               statistic=Total("repairs")),
        Figure("cut", "replies that were cut at max_tokens", "", "replies", statistic=Total("cut")),
        Figure("own", "answers that a judge wrote itself", "", "replies", statistic=Total("own")),
    ]  # fmt: skip
    return {figure.key: figure for figure in found + _against_expected(metric)}


def _against_expected(metric: JudgeOptions) -> list[Figure]:
    group = "against the expected levels"
    if not metric.scale.ordinal:
        found = [
            Figure("matched", "answers judged as expected", "", group, headline=True),
            Figure("agreement", "the same as a share", "%", group),
            Figure("kappa", "Cohen's kappa of expected and judged categories", "", group),
        ]
    else:
        found = [
            Figure("matched", "answers judged as expected", "", group, headline=True),
            Figure("higher", "answers judged higher than expected", "", group),
            Figure("lower", "answers judged lower than expected", "", group),
            Figure("agreement", "answers judged as expected, as a share", "%", group),
            Figure(
                "kappa", "Cohen's kappa of expected and judged level, quadratic weights", "", group
            ),
        ]
    labels = list(metric.scale.values)
    return found + [
        Figure(_cell(expected, judged), "answers", "", "expected and judged")
        for expected in labels
        for judged in labels
    ]


def _cell(expected: str, judged: str) -> str:
    return f"expected {expected}, judged {judged}"


def summarise(
    metric: JudgeOptions, assessments: Collection[Assessment], *, seed: int = 0
) -> Summary:
    """Return the figures over the judged answers, read once and in order."""
    expected: list[tuple[float, float]] = []
    panels: list[dict[str, tuple[float, float]]] = []

    drawn: list[list[Any]] = []

    def read() -> Iterator[Assessment]:
        for one in assessments:
            if one.error is None and len(drawn) < MOST_DRAWN and metric.by == "model":
                drawn.append(_drawn(metric, one))
            if one.error is None and "expected_place" in one.parts:
                expected.append((one.parts["expected_place"], one.parts["level_place"]))
            if one.error is None and (panel := _panel(one.parts)):
                panels.append(panel)
            yield one

    figures = metric.figures
    statistics = {key: figure.statistic for key, figure in figures.items() if figure.statistic}
    found = summarised(statistics, read(), metric.score_range)
    values: dict[str, float | int | None] = dict(found.values)
    for key, statistic in statistics.items():
        if isinstance(statistic, Total):
            values[key] = _whole(values[key], key, found)
    extra = _Extra(
        values, found.intervals, found.without_interval, found.support, found.not_applicable
    )
    if metric.by == "model":
        _compare(extra, metric, expected, seed)
        _compare_judges(extra, metric, panels, seed)
    return Summary(
        {
            key: values[key]
            for key in [*(k for k in figures if k in values), *_others(values, figures)]
        },
        found.n,
        found.failed,
        extra.intervals,
        extra.support,
        {k: v for k, v in extra.undefined.items() if k in values and values[k] is None},
        metric.settings(),
        extra.without,
        details={"levels": _upwards(metric), "answers": drawn} if drawn else {},
    )


def _upwards(metric: JudgeOptions) -> list[str]:
    """Return the labels as they are drawn, the lowest first."""
    values = metric.scale.values
    return sorted(values, key=values.__getitem__)


def _drawn(metric: JudgeOptions, one: Assessment) -> list[Any]:
    """Return what is drawn of an answer: its id, the levels expected and judged, and its votes.

    Levels are places among those of :func:`_upwards`.
    """
    labels, upwards = list(metric.scale.values), _upwards(metric)

    def place(part: str) -> int | None:
        found = one.parts.get(part)
        return None if found is None else upwards.index(labels[int(found)])

    votes = [int(one.parts.get(f"votes:{label}", 0)) for label in upwards]
    return [one.id[:40], place("expected_place"), place("level_place"), votes]


def _others(values: Mapping[str, object], figures: Mapping[str, Figure]) -> list[str]:
    return [key for key in values if key not in figures]


def _whole(value: float | int | None, key: str, found: object) -> int | None:
    """Return a total as a whole number; 0 of what nothing was noted of."""
    if value is not None:
        return round(value)
    n, failed = getattr(found, "n", 0), getattr(found, "failed", 0)
    return 0 if key.startswith("unreadable") and n > failed else None


class _Extra:
    """Figures beyond those that are declared with a statistic, and where they are written."""

    def __init__(
        self,
        values: dict[str, float | int | None],
        intervals: dict[str, tuple[float, float]],
        without: dict[str, str],
        support: dict[str, int],
        undefined: Mapping[str, str],
    ) -> None:
        self.values, self.intervals, self.without, self.support = (
            values,
            intervals,
            without,
            support,
        )
        self.undefined = dict(undefined)

    def put(
        self,
        key: str,
        value: float | int | None,
        n: int,
        interval: tuple[float, float] | str | None = None,
    ) -> None:
        self.values[key], self.support[key] = value, n
        if value is None:
            self.undefined[key] = SAME
        elif isinstance(interval, str):
            self.without[key] = interval
        elif interval is not None:
            self.intervals[key] = interval


def _compare(
    extra: _Extra, metric: JudgeOptions, pairs: Sequence[tuple[float, float]], seed: int
) -> None:
    """Add how the judged levels agree with the expected ones, where some were."""
    if not pairs:
        return
    scale, n = metric.scale, len(pairs)
    labels = list(scale.values)
    table = np.array(pairs, dtype=int)
    expected, judged = table[:, 0], table[:, 1]
    extra.put("matched", int(np.sum(expected == judged)), n)
    weights = "quadratic" if scale.ordinal else "none"
    order = np.array([scale.values[label] for label in labels])
    if scale.ordinal:
        extra.put("higher", int(np.sum(order[judged] > order[expected])), n)
        extra.put("lower", int(np.sum(order[judged] < order[expected])), n)
    extra.put("agreement", percent_agreement(expected, judged), n)
    ranks = np.argsort(np.argsort(order, kind="stable")).astype(float)
    known = sorted(set(ranks.tolist()))

    def kappa(places: NDArray[np.int64]) -> float | None:
        one, other = ranks[expected[places]], ranks[judged[places]]
        return cohen_kappa(one, other, weights, known)  # type: ignore[arg-type]

    value = kappa(np.arange(n))
    interval = bootstrap_interval(kappa, n, generator(seed, "judge", "kappa"))
    extra.put("kappa", value, n, interval)
    for i, one in enumerate(labels):
        for j, other in enumerate(labels):
            if count := int(np.sum((expected == i) & (judged == j))):
                extra.put(_cell(one, other), count, n)


def _panel(parts: Mapping[str, float]) -> dict[str, tuple[float, float]]:
    """Return the mean and the place of the level that each judge of a panel gave."""
    return {
        name: (mean, parts[f"place:{name}"])
        for key, mean in parts.items()
        if key.startswith("mean:") and f"place:{(name := key.removeprefix('mean:'))}" in parts
    }


def _compare_judges(
    extra: _Extra,
    metric: JudgeOptions,
    panels: Sequence[Mapping[str, tuple[float, float]]],
    seed: int,
) -> None:
    """Add each judge's severity, and how far the judges agree, where there are several."""
    names = list(dict.fromkeys(name for panel in panels for name in panel))[:MOST_JUDGES]
    whole = [panel for panel in panels if len(panel) == len(names)]
    for name in names if len(names) > 1 else ():
        differences = np.array(
            [panel[name][0] - np.mean([mean for mean, _ in panel.values()]) for panel in whole]
        )
        if len(differences):
            key, n = f"severity {name}", len(differences)
            reason = too_few("answers that all judges rated", n, FEWEST_FOR_MEANS)
            variance = float(differences.var()) / n
            extra.put(
                key,
                -float(differences.mean()),
                n,
                reason or _mirrored(t_interval(float(differences.mean()), variance, n)),
            )
    if len(names) < 2:
        return
    order = np.array(list(metric.scale.values.values()))
    ratings: Floats = np.array(
        [[order[int(p[name][1])] if name in p else math.nan for p in panels] for name in names]
    )
    if not metric.scale.ordinal:  # values of categories may be equal; their places are not
        ratings = np.array(
            [[p[name][1] if name in p else math.nan for p in panels] for name in names]
        )
    scale = "ordinal" if metric.scale.ordinal else "nominal"

    def alpha(places: NDArray[np.int64]) -> float | None:
        return krippendorff_alpha(ratings[:, places], scale)  # type: ignore[arg-type]

    value = alpha(np.arange(len(panels)))
    interval = bootstrap_interval(alpha, len(panels), generator(seed, "judge", "alpha"))
    extra.put(f"alpha ({scale}, between judges)", value, len(panels), interval)


def _mirrored(interval: tuple[float, float] | None) -> tuple[float, float] | None:
    return None if interval is None else (-interval[1], -interval[0])
