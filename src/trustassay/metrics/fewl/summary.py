"""The figures of a data set: the score beside what it is to be held against."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterator, Mapping

import numpy as np

from trustassay.metric import Assessment, Figure, Mean, Metric, Summary
from trustassay.statistics.auroc import auroc_interval
from trustassay.statistics.correlation import auroc
from trustassay.summaries import summarised

__all__ = ["FIGURES", "summarise"]

CHANCE = 50.0
_HELD_AGAINST = {
    "auroc": "score",
    "auroc_no_penalty": "no_penalty",
    "auroc_agreement": "agreement",
    "auroc_length": "brevity",
}
"""What is held against the label, by the figure."""
_MEANS = {
    "mean": Mean(),
    "no_penalty": Mean("no_penalty"),
    "penalty": Mean("penalty"),
    "references": Mean("references"),
    "neighbours": Mean("neighbours"),
    "pairs": Mean("pairs"),
    "characters": Mean("characters"),
}


def _figures(*rows: tuple[str, str, str, bool]) -> dict[str, Figure]:
    return {
        key: Figure(key, words, unit, headline=main, statistic=_MEANS.get(key))
        for key, words, unit, main in rows
    }


FIGURES: Mapping[str, Figure] = _figures(
    ("mean", "mean score; higher is less hallucinated", "", True),
    ("no_penalty", "the same without the penalty", "", True),
    ("auroc", "right answers that score higher than wrong ones (AUROC)", "%", True),
    ("auroc_no_penalty", "the same of the score without the penalty", "%", True),
    ("auroc_agreement", "the same of the weighted similarity alone", "%", False),
    ("auroc_length", "the same of a rule that knows nothing: the shorter is right", "%", True),
    ("chance", "the same by chance", "%", True),
    ("penalty", "mean likeness to answers to other questions", "", False),
    ("references", "mean number of references behind a score", "", False),
    ("neighbours", "mean number of other questions behind a penalty", "", False),
    ("pairs", "mean number of wrong and corrected answers behind the weights", "", False),
    ("characters", "mean length of an answer", "", False),
)


def summarise(metric: Metric, assessments: Collection[Assessment]) -> Summary:
    """Return the figures over the scored samples, read once.

    Those that need labels take answers with a label of 0 or less for wrong and all others for
    right, and have intervals over units.
    """
    columns = {name: array("d") for name in ("unit", "label", *_HELD_AGAINST.values())}
    found = summarised(_MEANS, _noting(assessments, columns), metric.score_range)
    labels, units = np.array(columns["label"]), np.array(columns["unit"], dtype=np.int64)
    for key, of in _HELD_AGAINST.items():
        found.support[key] = len(labels)
        scores = np.array(columns[of])
        value = auroc(scores, labels)
        if value is None:
            found.values[key] = None
            found.not_applicable[key] = (
                "all labels say the same" if len(labels) else "no scored sample has a label"
            )
            continue
        found.values[key] = 100 * value
        if (independent := int((units < 0).sum()) + len(np.unique(units[units >= 0]))) < len(units):
            found.units[key] = independent
        interval = auroc_interval(scores, labels, units)
        if isinstance(interval, str):
            found.without_interval[key] = interval
        else:
            found.intervals[key] = (100 * interval[0], 100 * interval[1])
    found.support["chance"] = len(labels)
    known = found.values["auroc"] is not None
    found.values["chance"] = CHANCE if known else None
    if not known:
        found.not_applicable["chance"] = found.not_applicable["auroc"]
    return Summary(
        {key: found.values[key] for key in FIGURES},
        found.n,
        found.failed,
        found.intervals,
        found.support,
        found.not_applicable,
        metric.settings(),
        found.without_interval,
        units=found.units,
    )


def _noting(
    assessments: Collection[Assessment], columns: Mapping[str, array[float]]
) -> Iterator[Assessment]:
    """Pass assessments on, and note what is held against labels."""
    for one in assessments:
        if one.error is None and one.score is not None and "label" in one.parts:
            numbers = {**one.parts, "score": one.score}
            numbers["unit"] = -1 if one.unit is None else one.unit
            numbers["brevity"] = -numbers.get("characters", 0.0)
            for name, column in columns.items():
                column.append(numbers.get(name, 0.0))
        yield one
