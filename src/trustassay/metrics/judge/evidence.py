"""Votes of judges, read out of the evidence; what has the wrong type counts as absent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from trustassay.views import as_data

REASONS_SHOWN = 12
"""Different reasons of one judge that are listed."""
FAULTS = {
    "none": "no score",
    "several": "several scores",
    "outside": "off the scale",
    "empty": "empty",
}


class Reason(NamedTuple):
    """A reason, the level that it was given for, and how often."""

    level: str
    text: str
    times: int


@dataclass(slots=True)
class JudgeVotes:
    """The votes of one judge: how often each level, the reasons, and replies that were unreadable.

    ``shares`` holds (level, votes, percentage of the largest); ``left_out`` counts reasons that are
    not shown.
    """

    name: str
    own: bool = False
    shares: Sequence[tuple[str, int, float]] = ()
    reasons: Sequence[Reason] = ()
    left_out: int = 0
    unreadable: Sequence[tuple[str, str]] = ()
    repaired: int = 0


@dataclass(slots=True)
class Votes:
    """The votes of all judges; ``golds`` instead where an entailer judged."""

    judges: Sequence[JudgeVotes] = ()
    golds: Sequence[Mapping[str, Any]] = ()
    rest: Sequence[Mapping[str, Any]] = field(default_factory=list)

    @classmethod
    def read(cls, evidence: Iterable[Any]) -> Votes:
        """Sort the evidence by judge."""
        rows: dict[str, list[Mapping[str, Any]]] = {}
        golds: list[Mapping[str, Any]] = []
        rest: list[Mapping[str, Any]] = []
        for item in evidence:
            match item:
                case {"judge": str(name), "order": str()}:
                    rows.setdefault(name, []).append(item)
                case {
                    "gold": str(),
                    "entailment": int() | float(),
                    "contradiction": int() | float(),
                }:
                    golds.append(item)
                case _:
                    rest.append(as_data(item))
        return cls([_votes(name, own) for name, own in rows.items()], golds, rest)


def _votes(name: str, rows: Sequence[Mapping[str, Any]]) -> JudgeVotes:
    levels = Counter(row["level"] for row in rows if isinstance(row.get("level"), str))
    most = max(levels.values(), default=1)
    reasons = Counter(
        (row["level"], row["reason"].strip())
        for row in rows
        if isinstance(row.get("level"), str)
        and isinstance(row.get("reason"), str)
        and row["reason"].strip()
    )
    listed = [Reason(*key, times) for key, times in reasons.most_common()]
    return JudgeVotes(
        name,
        any(row.get("own") is True for row in rows),
        [(level, n, 100 * n / most) for level, n in sorted(levels.items())],
        listed[:REASONS_SHOWN],
        max(0, len(listed) - REASONS_SHOWN),
        [
            (FAULTS.get(str(row["fault"]), "unreadable"), str(row.get("reply") or ""))
            for row in rows
            if row.get("level") is None and row.get("fault")
        ],
        sum(row.get("repaired") is True for row in rows),
    )
