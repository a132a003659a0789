"""The figures of a data set whose answers count several times, or not at all."""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from trustassay.metric import Assessment
from trustassay.metrics.grounding import maths
from trustassay.metrics.grounding.keys import FIGURES, LATER_NAMES
from trustassay.metrics.grounding.options import GroundingOptions
from trustassay.metrics.grounding.summary import Answers, is_scored

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
            parts = [one.parts for one in chunk if is_scored(one)]
            scored = np.array([is_scored(one) for one in chunk])
            if scored.any():
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

    def keys(self) -> Set[str]:
        """Return the keys of the figures."""
        found = self.answers.figures(np.zeros((1, self.answers.width)))
        return {key for key in FIGURES if FIRST_NAMES.get(key, key) in found}

    def counted(self, key: str) -> NDArray[np.bool_]:
        """Return whether each answer counts for a figure, shape (n,).

        Figures of answered questions alone (``answered_...``) are means over answers that are not
        refused; all others either do not depend on that, or say how answers are refused.
        """
        name = FIRST_NAMES.get(key, key)
        if not name.startswith("answered_") or name == "answered_ratio":
            return np.ones(len(self.rows), dtype=np.bool_)
        terms = self.answers.columns(name)
        populations = self.rows[:, terms[len(terms) // 2 :]]
        return np.asarray((populations > 0).any(axis=1))

    def inputs(self, key: str) -> Floats:
        """Return the terms and populations of each answer that a figure is made of."""
        return self.rows[:, self.answers.columns(FIRST_NAMES.get(key, key))]
