"""A check that an entailer's outputs have the meaning of their labels."""

from __future__ import annotations

import numpy as np

from trustassay.capabilities import Entailer
from trustassay.errors import BackendError

__all__ = ["CHECK_PAIRS", "check_labels"]

_STAGE = "A woman is playing the guitar on a stage in front of a large crowd."
CHECK_PAIRS = (
    (_STAGE, "A woman is playing a musical instrument."),
    (_STAGE, "The woman has two younger brothers."),
    (_STAGE, "There is nobody on the stage."),
)
"""An entailed, a neutral and a contradicted pair, by which a label order is checked."""


def check_labels(entailer: Entailer, *, labels: int = 3, advice: str = "") -> None:
    """Score the three pairs: each label must have its highest probability for its own pair.

    With two ``labels`` contradiction is not checked.

    Raises:
        BackendError: it has not; the message has the probabilities, and ``advice``.
    """
    rows = entailer.scores(CHECK_PAIRS)
    for label, column in (("entailment", 0), ("contradiction", 2)):
        seen = rows[:, column]  # the pair of this label has the column's number
        if column < labels and seen[column] <= np.delete(seen, column).max():
            raise BackendError(
                f"{entailer.name}: the labels look wrong: P({label}) of an entailed, a neutral "
                f"and a contradicted pair is {seen[0]:.3f}, {seen[1]:.3f}, {seen[2]:.3f}{advice}"
            )
