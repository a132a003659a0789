"""Evidence of FEWL, read into views: the references, and what they make of the answer.

Every reader is total: what has the wrong type counts as absent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trustassay.views import as_data, number_in


@dataclass(frozen=True, slots=True)
class Row:
    """One reference; numbers that are not there are ``None``.

    penalty: its mean likeness to its answers to so many other questions, the ``neighbours``.
    """

    name: str
    answer: str
    similarity: float | None
    expertise: float | None
    weight: float | None
    penalty: float | None = None
    neighbours: int | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the row of the evidence."""
        row: dict[str, Any] = {
            "reference": self.name,
            "answer": self.answer,
            "similarity": self.similarity,
            "expertise": self.expertise,
            "weight": self.weight,
        }
        if self.penalty is not None:
            row |= {"penalty": self.penalty, "neighbours": self.neighbours}
        return row


@dataclass(frozen=True, slots=True)
class Weighed:
    """What the evidence of one answer says; ``rest`` is evidence of any other kind."""

    form: str = ""
    weights: str = ""
    rows: Sequence[Row] = ()
    absent: Sequence[tuple[str, str]] = ()
    neighbours: Sequence[tuple[str, float | None]] = ()
    rest: Sequence[Mapping[str, Any]] = ()

    def to_json(self) -> list[dict[str, Any]]:
        """Return the evidence as it is stored."""
        return [
            *([{"form": self.form, "weights": self.weights}] if self.form else []),
            *(row.to_json() for row in self.rows),
            *({"absent": name, "why": why} for name, why in self.absent),
            *({"neighbour": question, "likeness": n} for question, n in self.neighbours),
        ]

    @classmethod
    def read(cls, evidence: Iterable[Any]) -> Weighed:
        """Sort the evidence; references by weight, the heaviest first."""
        form = weights = ""
        rows: list[Row] = []
        absent: list[tuple[str, str]] = []
        neighbours: list[tuple[str, float | None]] = []
        rest: list[Mapping[str, Any]] = []
        for item in evidence:
            match item:
                case {"form": str(form), "weights": str(weights)}:
                    pass
                case {"reference": str(name), "answer": str(answer)}:
                    similarity, expertise, weight, penalty = (
                        number_in(item, key)
                        for key in ("similarity", "expertise", "weight", "penalty")
                    )
                    rows.append(Row(name, answer, similarity, expertise, weight, penalty))
                case {"absent": str(name), "why": str(why)}:
                    absent.append((name, why))
                case {"neighbour": str(question)}:
                    neighbours.append((question, number_in(item, "likeness")))
                case _:
                    rest.append(as_data(item))
        rows.sort(key=lambda row: -(row.weight or 0.0))
        return cls(form, weights, rows, absent, neighbours, rest)

    @property
    def penalised(self) -> bool:
        """Whether any reference has a penalty."""
        return any(row.penalty is not None for row in self.rows)
