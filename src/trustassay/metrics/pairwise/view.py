"""Evidence of a comparison, read for the report; what has the wrong type counts as absent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

__all__ = ["Compared"]

_MEANINGS = {
    ("answer first", "A"): "this answer",
    ("answer first", "B"): "the other answer",
    ("other first", "A"): "the other answer",
    ("other first", "B"): "this answer",
}


class Row(NamedTuple):
    """One order: which answer was read first, what the judge preferred, and what it said."""

    order: str
    preferred: str
    reply: str
    repaired: bool


@dataclass(slots=True)
class Compared:
    """The other answer, who gave it, and the judge's replies."""

    other: str = ""
    by: str = ""
    rows: list[Row] = field(default_factory=list)
    rest: Sequence[Mapping[str, Any]] = ()

    @classmethod
    def read(cls, evidence: Iterable[Any]) -> Compared:
        """Sort the evidence."""
        found, rest = cls(), list[Mapping[str, Any]]()
        for item in evidence:
            match item:
                case {"other": str(other), "by": by}:
                    found.other, found.by = other, by if isinstance(by, str) else ""
                case {"order": str(order), "choice": str() | None as choice, "reply": str(reply)}:
                    preferred = "not sure" if choice == "C" else "unreadable"
                    preferred = _MEANINGS.get((order, choice or ""), preferred)
                    found.rows.append(Row(order, preferred, reply, item.get("repaired") is True))
                case Mapping():
                    rest.append(item)
                case _:
                    rest.append({"value": item})
        found.rest = rest
        return found
