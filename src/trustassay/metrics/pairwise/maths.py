"""What a judge's choices between two answers amount to, each pair asked in both orders.

Wei et al. 2024 (FEWL), appendix C.10 and tables 6 and 7. A judge reads two answers as A and B and
chooses A, B, or C, not sure; a second time the answers have changed places.

All figures are functions of one table of counts, shape (..., 4, 4): row, the choice in the first
order; column, the choice with the places changed; both in the order of :data:`CHOICES`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trustassay.statistics.bootstrap import percentile_interval
from trustassay.statistics.intervals import binomial_interval

__all__ = [
    "CHOICES",
    "OUTCOMES",
    "Outcome",
    "counted",
    "first_chosen",
    "interval",
    "losses",
    "outcome",
    "outcomes",
    "shares",
    "win_rate",
    "wins",
]

Floats = NDArray[np.float64]
Outcome = Literal["win", "loss", "unsure", "inconsistent", "unreadable"]
CHOICES: tuple[str | None, ...] = ("A", "B", "C", None)
"""The answer that is read first, the second one, not sure, and a reply that names none of them."""
OUTCOMES: tuple[Outcome, ...] = ("win", "loss", "unsure", "inconsistent", "unreadable")
REPLICATES = 2000


def outcome(first: str | None, swapped: str | None) -> Outcome:
    """Return what the choices in both orders say of the answer that was A in the first order.

    It wins or loses only if both choices are for the same answer. ``unsure``: a choice is C;
    ``inconsistent``: both choices are for the same place; ``unreadable``: one is ``None``.

    Raises:
        ValueError: a choice that does not exist.
    """
    for choice in (first, swapped):
        if choice not in CHOICES:
            raise ValueError(f"expected a choice of A, B, C or None, got {choice!r}")
    if first is None or swapped is None:
        return "unreadable"
    if "C" in (first, swapped):
        return "unsure"
    if first == swapped:
        return "inconsistent"
    return "win" if first == "A" else "loss"


def counted(choices: Iterable[tuple[str | None, str | None]]) -> Floats:
    """Return the table of the choices in both orders, shape (4, 4)."""
    table = np.zeros((4, 4))
    for first, swapped in choices:
        table[CHOICES.index(first), CHOICES.index(swapped)] += 1
    return table


def wins(table: ArrayLike) -> Floats:
    """Return how many questions the answer won: A, then B."""
    return np.asarray(table, dtype=float)[..., 0, 1]


def losses(table: ArrayLike) -> Floats:
    """Return how many questions the answer lost: B, then A."""
    return np.asarray(table, dtype=float)[..., 1, 0]


def win_rate(table: ArrayLike) -> Floats:
    """Return 100 wins / (wins + losses); NaN where nothing was won or lost.

    Section 5.2 and table 7: what is inconsistent or not sure is dropped.
    """
    return _percent(wins(table), wins(table) + losses(table))


def shares(table: ArrayLike) -> Floats:
    """Return the percentages of questions won, lost, and neither, shape (..., 3); sum 100.

    Table 6: ties are kept, and whatever is neither won nor lost is one. Questions with an
    unreadable reply do not count; NaN where no other is left.
    """
    t = np.asarray(table, dtype=float)
    read = t[..., :3, :3].sum(axis=(-2, -1))
    won, lost = wins(t), losses(t)
    return np.stack([_percent(one, read) for one in (won, lost, read - won - lost)], axis=-1)


def first_chosen(table: ArrayLike) -> Floats:
    """Return in what percentage of choices for an answer the one that is read first was chosen.

    50 for a judge to whom the place is no matter: each answer stands first once. Replies that are
    not sure or unreadable do not count; NaN where no other is left.
    """
    t = np.asarray(table, dtype=float)
    first = t[..., 0, :].sum(axis=-1) + t[..., :, 0].sum(axis=-1)
    second = t[..., 1, :].sum(axis=-1) + t[..., :, 1].sum(axis=-1)
    return _percent(first, first + second)


def outcomes(table: ArrayLike) -> dict[Outcome, int]:
    """Return how many questions had each outcome; shape of ``table`` is (4, 4)."""
    t = np.asarray(table, dtype=int)
    found: dict[Outcome, int] = dict.fromkeys(OUTCOMES, 0)
    for i, first in enumerate(CHOICES):
        for j, swapped in enumerate(CHOICES):
            found[outcome(first, swapped)] += int(t[i, j])
    return found


def interval(
    figure: Callable[[Floats], Floats], table: ArrayLike, rng: np.random.Generator
) -> tuple[float, float] | None:
    """Return the 95 % interval of a figure, of shape (...) in percent, over the questions.

    Percentile bootstrap: whole questions are drawn anew, which is the multinomial of the table.
    Draws of a figure that is 0 or 100 are all the same; then it is the exact interval of a share,
    of the questions that decide it. ``None`` where the figure is undefined, or has no scatter, as
    the choices of a judge who always prefers the same answer in both orders.
    """
    t = np.asarray(table, dtype=float)
    value, n = float(figure(t)), int(t.sum())
    if np.isnan(value):
        return None
    if value in (0.0, 100.0):
        deciding = sum(
            int(t[i, j]) for i in range(4) for j in range(4) if not np.isnan(figure(_one(i, j)))
        )
        low, high = binomial_interval(deciding * value / 100, deciding)
        return 100 * low, 100 * high
    drawn = rng.multinomial(n, t.ravel() / n, size=REPLICATES).reshape(-1, 4, 4)
    found = percentile_interval(figure(drawn.astype(float)))
    return None if found is None or found[0] == found[1] else found


def _one(row: int, column: int) -> Floats:
    table = np.zeros((4, 4))
    table[row, column] = 1
    return table


def _percent(part: Floats, whole: Floats) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(100 * part / whole, dtype=float)
