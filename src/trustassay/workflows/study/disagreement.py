"""Which scores are right about an answer where others are wrong."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trustassay.statistics.correlation import ranks
from trustassay.workflows.study.answers import Answers, Column

__all__ = ["Case", "RightWhereWrong", "accepted", "right_where_wrong"]

Floats = NDArray[np.float64]
EXAMPLES = 5


@dataclass(frozen=True, slots=True)
class Case:
    """An answer on which two scores part; ``label`` is 1 where it is right."""

    id: str
    model: str
    link: str
    label: float
    first: float
    second: float

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class RightWhereWrong:
    """Answers about which the first score is right and the second wrong, of ``n`` with both.

    wrong: about how many of them the second is wrong. cases: those on which they part farthest.
    """

    first: str
    second: str
    n: int
    wrong: int
    count: int
    cases: Sequence[Case]

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        plain: Mapping[str, Any] = {name: getattr(self, name) for name in self.__slots__}
        return dict(plain) | {"cases": [case.to_dict() for case in self.cases]}


def accepted(scores: Floats, labels: Floats) -> NDArray[np.bool_]:
    """Return which answers a score accepts if it is to accept as many as are right, shape (n,).

    The threshold is the score at which the number accepted is nearest to that of right answers (of
    two as near, the higher one): it needs no scale, and is not chosen for what it gets right.
    """
    values, counts = np.unique(scores, return_counts=True)
    above = np.cumsum(counts[::-1])[::-1]  # accepted from each value on
    apart = np.abs(above - labels.sum())[::-1]
    threshold = values[::-1][int(apart.argmin())]
    return np.asarray(scores >= threshold)


def right_where_wrong(
    answers: Answers, columns: Sequence[Column], labels: Floats
) -> list[RightWhereWrong]:
    """Return each ordered pair of columns, on the answers that have both and a label of 0 or 1."""
    found = []
    for first, second in itertools.permutations(columns, 2):
        there = ~(np.isnan(first.values) | np.isnan(second.values) | np.isnan(labels))
        places = np.flatnonzero(there)
        y = labels[places]
        if not len(places) or (y == y[0]).all():
            continue
        x = [one.values[places] for one in (first, second)]
        right = [accepted(one, y) == (y > 0) for one in x]
        parting = np.flatnonzero(right[0] & ~right[1])
        apart = np.abs(ranks(x[0]) - ranks(x[1]))
        farthest = parting[np.argsort(-apart[parting], kind="stable")][:EXAMPLES]
        cases = [
            Case(
                (row := answers.rows[places[at]]).id,
                row.model,
                row.link,
                float(y[at]),
                float(x[0][at]),
                float(x[1][at]),
            )
            for at in farthest
        ]
        wrong = int((~right[1]).sum())
        found.append(
            RightWhereWrong(first.name, second.name, len(places), wrong, len(parting), cases)
        )
    return found
