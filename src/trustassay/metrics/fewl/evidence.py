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
    """One reference; numbers that are not there are ``None``."""

    name: str
    answer: str
    similarity: float | None
    expertise: float | None
    weight: float | None
    penalty: float | None


@dataclass(frozen=True, slots=True)
class Weighed:
    """What the evidence of one answer says; ``rest`` is evidence of any other kind."""

    form: str = ""
    weights: str = ""
    rows: Sequence[Row] = ()
    absent: Sequence[tuple[str, str]] = ()
    neighbours: Sequence[tuple[str, float | None]] = ()
    rest: Sequence[Mapping[str, Any]] = ()

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
                    numbers = (
                        number_in(item, key)
                        for key in ("similarity", "expertise", "weight", "penalty")
                    )
                    rows.append(Row(name, answer, *numbers))
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
