"""Choose a form on half of one set's questions and on the other sets; report on the other half.

Candidates are all forms, divergences, and weights that need no pairs, with and without a penalty,
by each similarity. The one is chosen whose mean over the four sets is largest: a set's figure is
the mean AUROC of TrustScore's systems, or the mean share of pairs that are ordered rightly, a tie
as half.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from lab.benchmarks.fewl.figures import (
    Floats,
    Judge,
    all_once,
    drawn,
    half,
    judge_of,
    with_interval,
)
from lab.benchmarks.fewl.measuring import WITHOUT_PENALTY, Measured, Variant
from lab.benchmarks.fewl.sets import SETS
from lab.benchmarks.fewl.tables import (
    OURS,
    OURS_SIMILARITY,
    measured_set,
    own,
    row,
)
from trustassay.metrics.fewl.maths import DIVERGENCES

REFERENCE = (Variant("eq1", penalty=False), "cosine")
"""What the choice is held against: no penalty, as published."""


class Candidate(NamedTuple):
    """A way to score."""

    variant: Variant
    similarity: str

    def __str__(self) -> str:
        return f"{self.variant}, `{self.similarity}`"


RECOMMENDED = Candidate(OURS, OURS_SIMILARITY)


def candidates(similarities: Sequence[str]) -> list[Candidate]:
    """Return all that can be chosen."""
    found = []
    for similarity in similarities:
        for weights in ("uniform", "agreement"):
            for penalty in (False,) if similarity in WITHOUT_PENALTY else (False, True):
                variants = [
                    Variant(form, weights, penalty, divergence)
                    for form in ("eq1", "theory")
                    for divergence in DIVERGENCES
                ]
                variants.append(Variant("agreement", weights, penalty))
                found += [Candidate(variant, similarity) for variant in variants]
    return found


class Scored(NamedTuple):
    """A set, and each candidate's scores of its answers."""

    judge: Judge
    scores: Mapping[Candidate, Floats]

    def figures(self, counts: Floats) -> dict[Candidate, float]:
        """Return each candidate's figure over the questions that count."""
        return {
            one: float(self.judge.one_figure(scores, counts)[0])
            for one, scores in self.scores.items()
        }


def choose(similarities: Sequence[str], work: Path) -> None:
    """Print what is chosen for each set and half, and how it does on the other half."""
    known = candidates(similarities)
    sets = {name: _scored(name, known, work) for name in SETS}
    whole = {name: one.figures(all_once(one.judge.questions)) for name, one in sets.items()}
    print(f"{len(known)} candidates")
    row(["set, reported on", "chosen on the rest", "it", "recommended", "no penalty, cosine"])
    row(["---"] * 5)
    for name, one in sets.items():
        for rest, words in ((1, "odd"), (0, "even")):
            seen = one.figures(half(one.judge.questions, 1 - rest))
            chosen = max(known, key=partial(_mean, {**whole, name: seen}))
            held_out = drawn(one.judge.questions, half(one.judge.questions, rest))
            both = np.vstack([half(one.judge.questions, rest), held_out])
            cells = []
            for candidate in (chosen, RECOMMENDED, Candidate(*REFERENCE)):
                values = one.judge.one_figure(one.scores[candidate], both)
                cells.append(with_interval(values[0], values[1:]))
            row([f"{name}, {words} questions", str(chosen), *cells])
    print()
    row(["rank", "candidate", "mean of the four sets", *SETS])
    row(["---"] * (3 + len(SETS)))
    ranked = sorted(known, key=lambda c: -_mean(whole, c))
    for rank, candidate in enumerate(ranked, 1):
        if rank <= 10 or candidate in (RECOMMENDED, Candidate(*REFERENCE)):
            each = [f"{whole[name][candidate]:.1f}" for name in SETS]
            row([str(rank), str(candidate), f"{_mean(whole, candidate):.1f}", *each])


def _scored(name: str, known: Sequence[Candidate], work: Path) -> Scored:
    numbers: dict[str, Measured] = {}
    for similarity in {one.similarity for one in known}:
        records, numbers[similarity] = measured_set(name, similarity, work)
    scores = {one: numbers[one.similarity].scores(own(name, one.variant)) for one in known}
    return Scored(judge_of(records), scores)


def _mean(figures: Mapping[str, Mapping[Candidate, float]], one: Candidate) -> float:
    return float(np.mean([of_set[one] for of_set in figures.values()]))
