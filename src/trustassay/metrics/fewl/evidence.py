"""Evidence of FEWL, and its view: the references, and what they make of the answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trustassay.views import EvidenceRow, Rows


@dataclass(frozen=True, slots=True)
class Weighting(EvidenceRow):
    """By which formula the score was computed, and by which weights."""

    told_by = ("form", "weights")

    form: str
    weights: str


@dataclass(frozen=True, slots=True)
class Row(EvidenceRow):
    """One reference, by its name.

    penalty: its mean likeness to its answers to so many other questions, the ``neighbours``.
    """

    told_by = ("reference", "answer")

    reference: str
    answer: str
    similarity: float | None
    expertise: float | None
    weight: float | None
    penalty: float | None = None
    neighbours: int | None = None


@dataclass(frozen=True, slots=True)
class Absent(EvidenceRow):
    """A reference that does not count for a sample, and why."""

    told_by = ("absent", "why")

    absent: str
    why: str


@dataclass(frozen=True, slots=True)
class NearQuestion(EvidenceRow):
    """A neighbour of the question."""

    told_by = ("neighbour",)

    neighbour: str
    likeness: float | None


@dataclass(frozen=True, slots=True)
class Weighed:
    """What the evidence of one answer says; ``rest`` is evidence of any other kind."""

    weights: str
    rows: Sequence[Row]
    absent: Sequence[Absent]
    neighbours: Sequence[NearQuestion]
    rest: Sequence[Mapping[str, Any]]

    @classmethod
    def read(cls, evidence: Iterable[Any]) -> Weighed:
        """Sort the evidence; references by weight, the heaviest first."""
        rows = Rows(evidence, Weighting, Row, Absent, NearQuestion)
        weights = [one.weights for one in rows.of(Weighting)]
        by_weight = sorted(rows.of(Row), key=lambda row: -(row.weight or 0.0))
        absent, near = rows.of(Absent), rows.of(NearQuestion)
        return cls("".join(weights[-1:]), by_weight, absent, near, rows.rest)

    @property
    def penalised(self) -> bool:
        """Whether any reference has a penalty."""
        return any(row.penalty is not None for row in self.rows)
