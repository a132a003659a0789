"""Populations of scored answers whose true risks are known: generators, hostile curves, sets.

A population is a list of answers that are equally likely to be drawn, each with a score and a
probability of being wrong. So the share that a threshold accepts, and the share of these that is
wrong, are exact.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import norm  # type: ignore[import-untyped]

from trustassay.statistics import Bools, Floats, Places

GRID = 20_000
"""Answers of a simulated population."""
ABOVE = 1e-6
"""By how much a hostile curve is above alpha where it is just above."""
BUMP_SHARE, BUMP_RISK = 0.04, 0.5


class Population:
    """Answers to draw from.

    Args:
        scores: higher is better, shape (n,).
        risks: the probability that each is wrong; 0 or 1 for labelled answers, shape (n,).
    """

    def __init__(self, scores: ArrayLike, risks: ArrayLike) -> None:
        levels = np.unique(np.asarray(scores, np.float64), return_inverse=True)[1]
        order = np.argsort(levels, kind="stable")
        self.levels: Places = levels[order].astype(np.int32)
        """The rank of each answer's score, from 0; equal scores have one rank. Rising."""
        self.risks: Floats = np.asarray(risks, np.float64)[order]
        sizes = np.bincount(self.levels)
        accepted = np.append(np.cumsum(sizes[::-1])[::-1], 0)
        wrong = np.append(np.cumsum(np.bincount(self.levels, self.risks)[::-1])[::-1], 0.0)
        self.shares: Floats = accepted / len(self.levels)
        """The share of answers above each level, from -1 (all) to the highest (none)."""
        self.shares_wrong: Floats = wrong / np.maximum(accepted, 1)
        """The share of these that is wrong."""

    @property
    def best_level(self) -> int:
        """The highest level, above which nothing is accepted."""
        return int(self.levels[-1])

    @property
    def upper_cut(self) -> int:
        """The level above which the better half is; equal scores stay together, so it may be more.

        -1 if it is all answers.
        """
        half = -(-len(self.levels) // 2)
        return int(self.levels[-half]) - 1

    def limit(self, alpha: float) -> float:
        """Return the largest share that a threshold can accept with at most alpha wrong."""
        return float(self.shares[self.shares_wrong <= alpha].max())

    def draw(self, shape: tuple[int, int], rng: np.random.Generator, above: int = -1) -> Places:
        """Draw answers with replacement; of each, twice its level, and one more if it is wrong.

        Args:
            shape: (samples, answers). rng: draws. above: draw from answers above this level alone.
        """
        first = int(np.searchsorted(self.levels, above, "right"))
        places = rng.integers(first, len(self.levels), shape)
        wrong: Bools = rng.random(shape) < self.risks[places]
        return np.asarray(2 * self.levels[places] + wrong, np.int32)


class Generator(NamedTuple):
    """Right and wrong answers whose scores are two shifted normal distributions."""

    auroc: float
    wrong: float
    """The share of wrong answers."""
    has_bump: bool = False
    """Whether half of the best-scored answers are wrong."""


GENERATORS: Mapping[str, Generator] = {
    "strong": Generator(0.95, 0.3),
    "good": Generator(0.85, 0.2),
    "middle": Generator(0.8, 0.3),
    "weak": Generator(0.7, 0.15),
    "easy": Generator(0.8, 0.06),
    "bump": Generator(0.85, 0.2, True),
}


def compute_risks(generator: Generator) -> Floats:
    """Return the probability of being wrong at each of :data:`GRID` ranks, from the lowest."""
    p, half = generator.wrong, np.sqrt(2) * norm.ppf(generator.auroc) / 2
    y = np.linspace(-8, 8, 16_001)
    below = p * norm.cdf(y + half) + (1 - p) * norm.cdf(y - half)
    at_rank = np.interp((np.arange(GRID) + 0.5) / GRID, below, y)
    wrong, right = p * norm.pdf(at_rank + half), (1 - p) * norm.pdf(at_rank - half)
    risks = np.asarray(wrong / (wrong + right))
    if generator.has_bump:
        risks[-round(BUMP_SHARE * GRID) :] = BUMP_RISK
    return risks


def _pieces(alpha: float, *pieces: tuple[float, float]) -> Floats:
    """Return risks from the lowest rank, of pieces from the highest.

    A piece is the share of answers down to which it goes, and its risk as a multiple of alpha.
    """
    risks, begin = np.empty(GRID), 0
    for share, multiple in pieces:
        end = round(share * GRID)
        risks[begin:end] = multiple * alpha
        begin = end
    return np.minimum(risks[::-1] + ABOVE, 1.0)


def _saw(alpha: float) -> Floats:
    teeth = [((number + 1) / 20, 2.0 if number % 2 == 0 else 0.0) for number in range(20)]
    return _pieces(alpha, *teeth)


def _rising(alpha: float) -> Floats:
    return np.asarray(2 * alpha * (np.arange(GRID) + 0.5) / GRID + ABOVE)


HOSTILE: Mapping[str, Callable[[float], Floats]] = {
    "flat": lambda alpha: _pieces(alpha, (1, 1)),
    "dip": lambda alpha: _pieces(alpha, (0.3, 1), (0.5, 0.5), (0.6, 2), (1, 1)),
    "bad top": lambda alpha: _pieces(alpha, (0.1, 3), (1, 7 / 9)),
    "saw": _saw,
    "rising": _rising,
    "atom that crosses": lambda alpha: _pieces(alpha, (0.3, 0.5), (0.8, 1.5), (1, 0.5)),
}
"""Risks at each rank for alpha. "Flat" is just above alpha everywhere, and in most of the others
the share of wrong answers above every threshold, or all but some, is just above it."""
ATOM = (0.2, 0.7)
"""The ranks of "atom that crosses" that have one score."""


def make_population(name: str, alpha: float, levels: int) -> Population:
    """Return a generator or a hostile curve.

    Args:
        name: of :data:`GENERATORS` or :data:`HOSTILE`. alpha: what the curve is hostile to.
        levels: of the score, with equally many answers each; 0 for as many as there are answers.
    """
    risks = compute_risks(GENERATORS[name]) if name in GENERATORS else HOSTILE[name](alpha)
    ranks = (np.arange(GRID) + 0.5) / GRID
    if name == "atom that crosses":
        low, high = ATOM
        ranks[(ranks > low) & (ranks < high)] = (low + high) / 2
    return Population(np.floor(ranks * levels) if levels else ranks, risks)
