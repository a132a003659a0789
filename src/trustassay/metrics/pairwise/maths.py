"""What a judge's choices between two answers amount to, each pair asked in both orders.

Wei et al. 2024 (FEWL), appendix C.10 and tables 6 and 7. A judge reads two answers as A and B and
chooses A, B, or C, not sure; a second time the answers have changed places.

All figures are functions of one table of counts, shape (4, 4): row, the choice in the first
order; column, the choice with the places changed; both in the order of :data:`CHOICES`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Outcome = Literal["win", "loss", "unsure", "inconsistent", "unreadable"]
CHOICES: tuple[str | None, ...] = ("A", "B", "C", None)
"""The answer that is read first, the second one, not sure, and a reply that names none of them."""
OUTCOMES: tuple[Outcome, ...] = ("win", "loss", "unsure", "inconsistent", "unreadable")


def outcome(first: str | None, swapped: str | None) -> Outcome:
    """Return what the choices in both orders say of the answer that was A in the first order.

    It wins or loses only if both choices are for the same answer. ``unsure``: a choice is C;
    ``inconsistent``: both choices are for the same place; ``unreadable``: one is ``None``. A choice
    that does not exist raises ValueError.
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


def _cells(*marked: tuple[int, int]) -> Floats:
    found = np.zeros((4, 4))
    for row, column in marked:
        found[row, column] += 1
    return found


_WON, _LOST = _cells((0, 1)), _cells((1, 0))
_READ = _cells(*((i, j) for i in range(3) for j in range(3)))
_FIRST, _SECOND = (_cells(*((k, j) for j in range(4)), *((i, k) for i in range(4))) for k in (0, 1))
RATES: Mapping[str, tuple[Floats, Floats]] = {
    "win_rate": (_WON, _WON + _LOST),
    "win_share": (_WON, _READ),
    "loss_share": (_LOST, _READ),
    "tie_share": (_READ - _WON - _LOST, _READ),
    "first_chosen": (_FIRST, _FIRST + _SECOND),
}
"""Rates by name, as ratios of two sums over the table: how often each cell counts above and below,
shape (4, 4) each.

``win_rate``: wins among wins and losses; what is inconsistent or not sure is dropped (section 5.2,
table 7). ``win_share``, ``loss_share``, ``tie_share``: ties are kept, and whatever is neither won
nor lost is one; questions with an unreadable reply do not count, and the three sum to 1 (table 6).
``first_chosen``: of the choices for an answer, those for the one that is read first; 1/2 for a
judge to whom the place is no matter, since each answer stands first once.
"""


def rate(name: str, table: ArrayLike) -> float:
    """Return one of :data:`RATES` in percent; NaN where the sum below is 0."""
    above, below = RATES[name]
    t = np.asarray(table, dtype=float)
    whole = float((below * t).sum())
    return 100 * float((above * t).sum()) / whole if whole else float("nan")


def outcomes(table: ArrayLike) -> dict[Outcome, int]:
    """Return how many questions had each outcome; shape of ``table`` is (4, 4)."""
    t = np.asarray(table, dtype=int)
    found: dict[Outcome, int] = dict.fromkeys(OUTCOMES, 0)
    for i, first in enumerate(CHOICES):
        for j, swapped in enumerate(CHOICES):
            found[outcome(first, swapped)] += int(t[i, j])
    return found
