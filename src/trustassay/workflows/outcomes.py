"""What became of the answers of two runs: scored, refused, not assessable, failed, or missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from trustassay.statistics.comparison import share_rise_p
from trustassay.statistics.resampling import holm
from trustassay.workflows.pairing import Pairing

__all__ = [
    "FAILED",
    "MISSING",
    "NOT_ASSESSABLE",
    "SCORED",
    "Outcome",
    "as_json",
    "in_words",
    "outcome_changes",
]

SCORED, NOT_ASSESSABLE, FAILED, MISSING = "scored", "not assessable", "failed", "missing"


@dataclass(frozen=True)
class Outcome:
    """What became of answers in two runs: how many of each run's samples.

    risen, fallen: of ``questions`` with answers in both runs, those with more and with fewer
    answers of this outcome in the second run. p: one-sided, that the share did not rise by more
    than the margin, corrected for the number of outcomes that are tested (Holm 1979); ``None``
    where it is not tested: scored answers, whose share falls where another rises, missing ones,
    which have no partner, and what did not change.
    """

    name: str
    first: int
    second: int
    of_first: int
    of_second: int
    risen: int = 0
    fallen: int = 0
    questions: int = 0
    p: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        found: dict[str, Any] = {"first": self.first, "second": self.second}
        if self.p is not None:
            names = ("risen", "fallen", "questions", "p")
            found |= {name: getattr(self, name) for name in names}
        return found


def outcome_changes(
    outcomes: tuple[Sequence[str], Sequence[str]], pairing: Pairing, margin: float = 0.0
) -> list[Outcome]:
    """Return the outcomes of two runs, scored ones first, failed and missing ones last.

    Args:
        outcomes: of all samples of each run. margin: by how much a share may rise, from 0 to 1.

    An answer of one run that has no partner counts as missing in the other.
    """
    counts = [Counter(one) for one in outcomes]
    totals = (len(outcomes[0]), len(outcomes[1]))
    between = sorted({*counts[0], *counts[1]} - {SCORED, FAILED, NOT_ASSESSABLE})
    found, tested = [Outcome(SCORED, counts[0][SCORED], counts[1][SCORED], *totals)], []
    for name in (*between, NOT_ASSESSABLE, FAILED):
        one, other = counts[0][name], counts[1][name]
        if one or other or name == FAILED:
            risen, fallen, questions = _moved(name, outcomes, pairing)
            changed = risen + fallen > 0  # what did not change can raise no alarm (Tarone 1990)
            p = share_rise_p(risen, fallen, questions, margin) if changed else None
            tested.append(Outcome(name, one, other, *totals, risen, fallen, questions, p))
    corrected = iter(holm([one.p for one in tested if one.p is not None]))
    found += [
        one if one.p is None else Outcome(**{**vars(one), "p": next(corrected)}) for one in tested
    ]
    return [*found, Outcome(MISSING, pairing.only_second, pairing.only_first, *totals)]


def _moved(
    name: str,
    outcomes: tuple[Sequence[str], Sequence[str]],
    pairing: Pairing,
) -> tuple[int, int, int]:
    """Return in how many questions there are more and fewer of an outcome, and all questions."""
    before, after = (
        np.array([run[place] == name for place in own.tolist()], dtype=np.float64)
        for run, own in zip(outcomes, (pairing.first, pairing.second), strict=True)
    )
    if not len(before):
        return 0, 0, 0
    change = np.bincount(pairing.units, after - before)
    return int((change > 0).sum()), int((change < 0).sum()), len(change)


def in_words(outcomes: Sequence[Outcome]) -> str:
    """Write the outcomes of both runs: ``scored 50 → 40, refused 0 → 10``."""
    return ", ".join(f"{one.name} {one.first:,} → {one.second:,}" for one in outcomes)


def as_json(outcomes: Sequence[Outcome]) -> Mapping[str, Any]:
    """Return the JSON form of all outcomes by name."""
    return {one.name: one.to_dict() for one in outcomes}
