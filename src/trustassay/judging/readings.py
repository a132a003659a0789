"""Puts together several readings of one statement: the mean of their log-odds."""

import math
from collections.abc import Sequence

from trustassay.core.capabilities import Entailment

PROBABILITY_MARGIN = 1e-4
"""Distance from 0 and 1 to which probabilities are clipped before taking log-odds."""


def average_readings(rows: Sequence[Entailment], divided_as: Entailment) -> Entailment:
    """Return the probabilities of several readings of one statement together.

    The log-odds of entailment are the mean of all readings: weights fitted to human labels came out
    nearly equal, for two texts (``lab/benchmarks/reading.py``) and for two readers
    (``lab/benchmarks/second_reader.py``).

    Args:
        rows: the probabilities of each reading, at least one.
        divided_as: the reading in whose proportion neutral and contradiction share what is not
            entailed; neutral has all of it where that reading leaves nothing.
    """
    log_odds = sum(_compute_log_odds(row.entailment) for row in rows) / len(rows)
    entailment = 1 / (1 + math.exp(-log_odds))
    remaining = divided_as.neutral + divided_as.contradiction
    against = divided_as.contradiction / remaining if remaining else 0.0
    return Entailment(entailment, (1 - entailment) * (1 - against), (1 - entailment) * against)


def combine_readers(first: Entailment, second: Entailment) -> Entailment:
    """Return the probabilities of two readers together; the second one divides the rest."""
    return average_readings([first, second], second)


def _compute_log_odds(probability: float) -> float:
    p = min(max(probability, PROBABILITY_MARGIN), 1 - PROBABILITY_MARGIN)
    return math.log(p / (1 - p))
