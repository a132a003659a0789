"""Made-up populations of answers, scores and changes, for the coverage of intervals.

What a real run brings depends on model and questions; these are chosen to be hard on intervals:
figures near 0 and near 100, few refusals, many equal values, long tails.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Rng = np.random.Generator


@dataclass(frozen=True)
class Answers:
    """A population of answers; called, it draws from it.

    answerable: share of questions whose documents hold an answer.
    answers, answers_wrongly: shares answered of those, and of the others.
    correct, supported, precise: mean shares of gold answers given, of statements supported and of
    citations precise; each answer has a share of its own about them.
    whole: one gold answer, statement and citation an answer, so all is yes or no.
    without_support: share of answers none of whose statements is supported.
    """

    answerable: float
    answers: float
    answers_wrongly: float
    correct: float
    supported: float
    precise: float
    whole: bool = False
    without_support: float = 0.0

    def __call__(self, rng: Rng, size: int) -> Mapping[str, Floats]:
        """Return the parts of grounding's assessments, as columns."""

        def own(mean: float) -> Floats:
            return rng.beta(3 * mean, 3 * (1 - mean), size)

        can = rng.random(size) < self.answerable
        answered = np.where(
            can, rng.random(size) < self.answers, rng.random(size) < self.answers_wrongly
        )
        golds = np.ones(size, int) if self.whole else rng.integers(1, 6, size)
        backed = np.where(can, 1 + rng.binomial(golds - 1, 0.7), 0)
        given = own(self.correct)
        backed_hits = np.where(answered, rng.binomial(backed, given), 0)
        other_hits = np.where(answered, rng.binomial(golds - backed, 0.3 * given), 0)
        statements = np.ones(size, int) if self.whole else 1 + rng.binomial(5, 0.4, size)
        share = np.where(rng.random(size) < self.without_support, 0.0, own(self.supported))
        held = np.where(answered, rng.binomial(statements, share), 0)
        citations = np.ones(size, int) if self.whole else rng.binomial(2 * statements, 0.6)
        exact = rng.binomial(citations, self.precise * (0.5 + 0.5 * share))
        hits = backed_hits + other_hits
        elements = np.maximum(hits, rng.poisson(4, size))
        columns = {
            "answered": answered,
            "answered_stripped": answered,
            "answerable": can,
            "words": 5 + rng.poisson(20, size),
            "blank": np.zeros(size),
            "golds": golds,
            "hits": hits,
            "supported": backed,
            "supported_hits": backed_hits,
            "elements": elements,
            "precise_elements": hits,
            "supported_elements": backed_hits,
            "statements": statements,
            "supported_statements": held,
            "citations": citations,
            "precise_citations": np.where(answered & (held > 0), exact, 0),
            "invalid_citations": np.zeros(size),
        }
        return {name: np.asarray(column, dtype=np.float64) for name, column in columns.items()}


ANSWERS: Mapping[str, Callable[[Rng, int], Mapping[str, Floats]]] = {
    # answerable, answers, answers_wrongly, correct, supported, precise
    "middling": Answers(0.6, 0.7, 0.4, 0.6, 0.6, 0.7),
    "good": Answers(0.7, 0.95, 0.1, 0.9, 0.92, 0.95),
    "excellent": Answers(0.7, 0.98, 0.03, 0.97, 0.98, 0.98),
    "poor": Answers(0.5, 0.5, 0.5, 0.1, 0.1, 0.4),
    "yes or no": Answers(0.7, 0.9, 0.2, 0.7, 0.7, 0.8, whole=True),
    "refuses hardly ever": Answers(0.6, 0.98, 0.95, 0.6, 0.5, 0.7),
    "refuses mostly": Answers(0.6, 0.3, 0.1, 0.7, 0.7, 0.8),
    "few unanswerable": Answers(0.9, 0.9, 0.3, 0.7, 0.7, 0.8),
    "none unanswerable": Answers(1.0, 0.9, 0.3, 0.7, 0.7, 0.8),
    "a tenth unsupported": Answers(0.7, 0.95, 0.1, 0.9, 0.95, 0.97, without_support=0.1),
}
"""By name, in the order in which they are shown."""


def _lognormal(rng: Rng, size: int, middle: float, scatter: float) -> Floats:
    return np.minimum(1.0, rng.lognormal(np.log(middle), scatter, size))


def _zero_or(share: float, rng: Rng, size: int, others: Floats) -> Floats:
    return np.where(rng.random(size) < share, 0.0, others)


SCORES: Mapping[str, Callable[[Rng, int], Floats]] = {
    "narrow": lambda rng, n: rng.beta(50, 950, n),
    "skewed": lambda rng, n: rng.beta(1, 19, n),
    "long tail": lambda rng, n: _lognormal(rng, n, 0.05, 1.0),
    "very long tail": lambda rng, n: _lognormal(rng, n, 0.03, 1.5),
    "60 % zero": lambda rng, n: _zero_or(0.6, rng, n, rng.beta(1, 12, n)),
    "90 % zero": lambda rng, n: _zero_or(0.9, rng, n, rng.beta(3, 5, n)),
    "97 % zero": lambda rng, n: _zero_or(0.97, rng, n, rng.beta(3, 5, n)),
    "middle": lambda rng, n: rng.beta(2, 2, n),
    "near 1": lambda rng, n: rng.beta(8, 1, n),
    "two kinds": lambda rng, n: np.where(
        rng.random(n) < 0.7, rng.beta(1, 40, n), rng.beta(8, 4, n)
    ),
    "a tenth erratic": lambda rng, n: np.where(
        rng.random(n) < 0.9, rng.beta(1, 40, n), rng.beta(8, 4, n)
    ),
}


def _changed(share: float, rng: Rng, first: Floats, others: Floats) -> tuple[Floats, Floats]:
    return first, np.where(rng.random(len(first)) < share, others, first)


def _noisy(rng: Rng, first: Floats, by: float, scatter: float) -> tuple[Floats, Floats]:
    return first, np.clip(first + rng.normal(by, scatter, len(first)), 0.0, 1.0)


def _times(first: Floats, factors: Floats) -> tuple[Floats, Floats]:
    return first, np.minimum(1.0, first * factors)


def _flipped(rng: Rng, first: Floats, share: float) -> tuple[Floats, Floats]:
    return first, np.where(rng.random(len(first)) < share, 1 - first, first)


CHANGES: Mapping[str, Callable[[Rng, int], tuple[Floats, Floats]]] = {
    "narrow, a little worse": lambda rng, n: _noisy(rng, SCORES["narrow"](rng, n), 0.002, 0.01),
    "all drawn anew": lambda rng, n: (SCORES["skewed"](rng, n), 1.2 * SCORES["skewed"](rng, n)),
    "long tail, worse": lambda rng, n: _times(
        SCORES["long tail"](rng, n), rng.lognormal(0.2, 0.5, n)
    ),
    "a tenth changed": lambda rng, n: _changed(
        0.1, rng, SCORES["skewed"](rng, n), SCORES["skewed"](rng, n)
    ),
    "3 % became erratic": lambda rng, n: _changed(
        0.03, rng, SCORES["60 % zero"](rng, n), SCORES["two kinds"](rng, n)
    ),
    "more zeros": lambda rng, n: (SCORES["60 % zero"](rng, n), SCORES["90 % zero"](rng, n)),
    "a tenth erratic": lambda rng, n: (
        SCORES["a tenth erratic"](rng, n),
        SCORES["a tenth erratic"](rng, n),
    ),
    "yes or no": lambda rng, n: _flipped(rng, _zero_or(0.3, rng, n, np.ones(n)), 0.2),
}
