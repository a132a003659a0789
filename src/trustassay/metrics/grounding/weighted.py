"""The figures of a data set whose answers count several times, or not at all."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from trustassay.metric import Assessment
from trustassay.metrics.grounding import maths
from trustassay.metrics.grounding.keys import FIGURES, LATER_NAMES
from trustassay.metrics.grounding.options import GroundingOptions
from trustassay.metrics.grounding.summary import Answers

__all__ = ["WeightedAnswers"]

Floats = NDArray[np.float64]
CHUNK = 4096
FIRST_NAMES = {later: first for first, later in LATER_NAMES.items()}


@dataclass(frozen=True)
class WeightedAnswers:
    """The rows of n answers, as of :class:`Answers`, shape (n, 2 K); 0 where an answer failed."""

    answers: Answers
    rows: Floats

    @classmethod
    def of(cls, metric: GroundingOptions, assessments: Iterable[Assessment]) -> WeightedAnswers:
        """Read the assessments once."""
        answers = Answers(metric)
        iterator, found = iter(assessments), [np.zeros((0, answers.width))]
        while chunk := list(islice(iterator, CHUNK)):
            rows = np.zeros((len(chunk), answers.width))
            scored = np.array([one.error is None for one in chunk])
            if scored.any():
                parts = [one.parts for one in chunk if one.error is None]
                rows[scored] = answers.rows(maths.part_table(parts))
            found.append(rows)
        return cls(answers, np.concatenate(found))

    def at(self, places: NDArray[np.int64]) -> WeightedAnswers:
        """Return the same of the answers at these places."""
        return WeightedAnswers(self.answers, self.rows[places])

    def figures(self, weights: Floats) -> dict[str, Floats]:
        """Return the figures over data sets of these weights, shape (b,) each."""
        found = self.answers.figures(weights @ self.rows)
        named = {key: FIRST_NAMES.get(key, key) for key in FIGURES}
        return {key: found[name] for key, name in named.items() if name in found}

    def inputs(self, key: str) -> Floats:
        """Return the terms and populations of each answer that a figure is made of."""
        return self.rows[:, self.answers.columns(FIRST_NAMES.get(key, key))]
