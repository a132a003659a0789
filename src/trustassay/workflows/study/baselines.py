"""What a score has to beat: the length of an answer, where it came from, and what people reach."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trustassay.statistics.correlation import kendall_tau_b
from trustassay.workflows.study.answers import Answers, Column
from trustassay.workflows.study.figures import Estimate, Resampling, mean_estimates
from trustassay.workflows.study.labelling import Label

__all__ = ["LENGTH", "SOURCE", "ceiling", "group_values", "length_column", "source_column"]

Floats = NDArray[np.float64]
Places = NDArray[np.int64]
LENGTH, SOURCE = "length", "source"
SOURCES = ("source", "model")
"""Fields that say where an answer comes from."""
FEWEST_OF_SOURCE = 20
"""Answers of a source below which it is counted with other small ones."""
OTHERS = "others"


def length_column(answers: Answers, labels: Floats) -> Column:
    """Return the length of each response in words: as it is where longer answers have higher labels
    (by Kendall's tau-b), else with its sign turned.

    The sign is chosen on the labels themselves, so the baseline is a little too strong where length
    says nothing.
    """
    words = np.array([float(row.words) for row in answers.rows])
    there = ~np.isnan(labels)
    shorter = (kendall_tau_b(words[there], labels[there]) or 0.0) < 0
    name = f"{LENGTH} (shorter)" if shorter else f"{LENGTH} (longer)"
    about = f"words of the response; {'fewer' if shorter else 'more'} count as better"
    return Column(name, "baseline", -words if shorter else words, about=about)


def group_values(answers: Answers, name: str) -> list[str]:
    """Return a field of all answers as text, empty where it is missing; ``model`` is the model."""
    if name == "model":
        return [row.model for row in answers.rows]
    return ["" if value is None else _text(value) for value in answers.field(name)]


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def source_column(answers: Answers, label: Label, fields: Sequence[str]) -> Column:
    """Return the mean label of all answers with the same source, model and other ``fields``.

    An answer's own label is not left out of the mean. Left out, it would move the mean of its own
    group the wrong way: of groups that do not differ at all, every right answer would have a lower
    mean than every wrong one, and the AUROC would be 0. Instead groups of fewer than 20 answers
    are counted as one.
    """
    names = list(dict.fromkeys([*SOURCES, *fields]))
    groups = list(zip(*(group_values(answers, name) for name in names), strict=True))
    there = ~np.isnan(label.values)
    counts: dict[tuple[str, ...], int] = {}
    for group, labelled in zip(groups, there, strict=True):
        counts[group] = counts.get(group, 0) + bool(labelled)
    small = (OTHERS,)
    of = [group if counts[group] >= FEWEST_OF_SOURCE else small for group in groups]
    values = np.full(len(of), math.nan)
    for group in set(of):
        mine = np.array([one == group for one in of])
        if (mine & there).any():
            values[mine] = label.values[mine & there].mean()
    used = [
        name
        for name, column in zip(names, zip(*groups, strict=True), strict=True)
        if len(set(column)) > 1
    ]
    about = f"mean label by {' and '.join(used)}" if used else "all answers have the same source"
    return Column(SOURCE, "baseline", values, label.kind == "binary", about=about)


def ceiling(label: Label, questions: Places, resampling: Resampling) -> dict[str, Estimate]:
    """Return how well one rater's ratings tell the label that the other raters make up: the mean
    over raters of each figure, nothing where there are fewer than two.
    """
    if len(label.raters) < 2:
        return {}
    pairs = [
        (Column(name, "judge", values, label.kind == "binary"), label.others[name])
        for name, values in label.raters.items()
    ]
    return mean_estimates(pairs, label.kind, questions, resampling)
