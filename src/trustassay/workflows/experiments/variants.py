"""Every variant and ablation of the FEWL paper, as formulas on numbers that were measured once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trustassay.metrics.fewl import maths

__all__ = ["Numbers", "Penalty", "Variant", "scores_of", "variants_of"]

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Weighting = Literal["single", "uniform", "ours", "ideal", "single-best", "agreement"]


@dataclass(frozen=True)
class Penalty:
    """Mean likeness to each reference's answers to other questions, shape (n, N), and of which
    references there is one.
    """

    values: Floats
    there: Mask


@dataclass(frozen=True)
class Numbers:
    """What is measured of n answers and N references; all arrays have shape (n, N).

    present: which references answered. similarity: of the answer to each reference's. single: the
    one reference that counts where only one does. ours: expertise by wrong and corrected answers;
    ideal: by labelled ones; ability: by agreement over the file; ``None`` where the input has not
    what it is made of. nearest and random: penalties of such neighbours. temperature: of weights
    by expertise.
    """

    ids: Sequence[str]
    names: Sequence[str]
    present: Mask
    single: Mask
    similarity: Floats
    nearest: Penalty
    random: Penalty
    ability: Floats
    ours: Floats | None = None
    ideal: Floats | None = None
    temperature: float = 1.0


class Variant(NamedTuple):
    """One way to score."""

    weights: Weighting
    penalty: Literal["none", "nearest", "random"]
    form: maths.Form
    divergence: maths.Divergence

    @property
    def name(self) -> str:
        """As people read it."""
        penalty = {"none": "no penalty", "nearest": "nearest", "random": "random"}[self.penalty]
        if self.form == "agreement":
            return f"agreement, {penalty}"
        form = () if self.weights in ALONE else (self.form,)
        return ", ".join((self.weights, penalty, *form, self.divergence))

    @property
    def tables(self) -> tuple[int, ...]:
        """The paper's tables that have this row."""
        if self.form != "eq1":
            return ()
        return PUBLISHED.get((self.weights, self.penalty, self.divergence), ())


ALONE = ("single", "single-best")
"""With one reference the forms eq1 and theory are the same."""
PENALTIES: tuple[Literal["none", "nearest", "random"], ...] = ("none", "nearest", "random")
PUBLISHED = {
    ("single", "none", "tv"): (1, 3, 5, 8, 10, 11),
    ("single", "nearest", "tv"): (1, 3, 5, 10, 11),
    ("single", "random", "tv"): (8,),
    ("single-best", "none", "tv"): (11,),
    ("uniform", "none", "tv"): (1, 3, 8, 10, 11),
    ("uniform", "nearest", "tv"): (2, 9),
    ("uniform", "random", "tv"): (8,),
    ("ours", "nearest", "tv"): (1, 2, 3, 4, 9, 10, 11),
    ("ours", "random", "tv"): (8,),
    ("ideal", "nearest", "tv"): (2, 9),
    ("ideal", "random", "tv"): (8,),
    **{
        (weights, penalty, divergence): (12,)
        for divergence in ("js", "kl")
        for weights, penalty in (
            ("single", "none"),
            ("single", "nearest"),
            ("uniform", "none"),
            ("ours", "nearest"),
        )
    },
}


def variants_of(numbers: Numbers) -> list[Variant]:
    """Return all variants that the numbers allow: weights, penalties, forms, divergences."""
    weights: list[Weighting] = ["single", "uniform"]
    if numbers.ours is not None:
        weights += ["single-best", "ours"]
    if numbers.ideal is not None:
        weights.append("ideal")
    forms: tuple[maths.Form, ...] = ("eq1", "theory")
    found = [
        Variant(weighting, penalty, form, divergence)
        for divergence in maths.DIVERGENCES
        for weighting in weights
        for form in (forms[:1] if weighting in ALONE else forms)
        for penalty in PENALTIES
    ]
    return found + [Variant("agreement", penalty, "agreement", "tv") for penalty in PENALTIES]


def scores_of(variant: Variant, numbers: Numbers) -> Floats:
    """Return the score of each answer, shape (n,), as the metric gives it with these options."""
    present, weights = _weighed(variant, numbers)
    penalty = {"none": None, "nearest": numbers.nearest, "random": numbers.random}[variant.penalty]
    return maths.score(
        numbers.similarity,
        weights,
        None if penalty is None else penalty.values,
        divergence=variant.divergence,
        form=variant.form,
        present=present,
        has_penalty=None if penalty is None else penalty.there,
    )


def _weighed(variant: Variant, numbers: Numbers) -> tuple[Mask, Floats]:
    """Return which references count, and their weights."""
    present = numbers.present
    if variant.weights == "single":
        return numbers.single, numbers.single.astype(float)
    if variant.weights == "uniform":
        return present, maths.uniform_weights(present)
    if variant.weights == "agreement":
        return present, maths.ability_weights(numbers.ability, present)
    expertise = numbers.ideal if variant.weights == "ideal" else numbers.ours
    assert expertise is not None  # variants_of offers none without
    if variant.weights == "single-best":
        best = maths.best_alone(expertise, present)
        return best, best.astype(float)
    return present, maths.softmax_weights(expertise, numbers.temperature, present)
