"""Evidence of the reference metric, read into a view. Total: what has the wrong type is absent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trustassay.metric import Assessment
from trustassay.metrics.reference.parts import Part
from trustassay.sample import Sample
from trustassay.views import Mark, View

__all__ = ["Golds", "view_of"]


@dataclass(frozen=True, slots=True)
class Gold:
    """A gold answer, its value, and how that is marked; ``None`` where it has none of its own."""

    text: str
    value: float | None
    mark: Mark | None


@dataclass(frozen=True, slots=True)
class Golds:
    """The gold answers, the nearest first; ``rest`` is evidence of any other kind."""

    part: str
    golds: Sequence[Gold]
    rest: Sequence[Mapping[str, Any]]


def view_of(sample: Sample, assessment: Assessment, part: Part) -> View:  # noqa: ARG001
    """Return the gold answers with what each gives the answer by ``part``."""
    golds, rest = [], []
    for item in assessment.evidence:
        match item:
            case {"gold": str(text)}:
                value = item.get(part.name)
                number = float(value) if isinstance(value, int | float) else None
                golds.append(Gold(text, number, _mark(number, part)))
            case Mapping():
                rest.append(item)
            case _:
                rest.append({"value": item})
    golds.sort(key=lambda gold: -(gold.value if gold.value is not None else float("-inf")))
    return View(data=Golds(part.name, golds, rest), tells_golds=bool(golds))


def _mark(value: float | None, part: Part) -> Mark | None:
    """Return the mark of a value from 0 to 1; other scales have no such ends."""
    if value is None or part.bounds != (0.0, 1.0):
        return None
    if value >= 1:
        return Mark("good", "✓", "the whole")
    return Mark("fair", "≈", "in part") if value > 0 else Mark("bad", "✕", "nothing")
