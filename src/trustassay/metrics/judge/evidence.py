"""Evidence of judges, and its view: the votes of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from trustassay.views import EvidenceRow, Rows

REASONS_SHOWN = 12
"""Different reasons of one judge that are listed."""
FAULTS = {
    "none": "no score",
    "several": "several scores",
    "outside": "off the scale",
    "empty": "empty",
}


@dataclass(frozen=True, slots=True)
class VoteRow(EvidenceRow):
    """A vote: ``level`` is ``None`` where the reply has a ``fault``.

    expected, told: the mean level by log-probabilities, and the probability that those sum up to.
    repaired: whether the second reply could be read, where one was asked for. own: the judge wrote
    the answer itself.
    """

    told_by = ("judge", "order")

    judge: str
    order: str
    repeat: int
    level: str | None
    reason: str
    expected: float | None = None
    told: float | None = None
    repaired: bool | None = None
    fault: str = ""
    reply: str | None = None
    own: bool = False


@dataclass(frozen=True, slots=True)
class GoldRow(EvidenceRow):
    """A gold answer, and the probabilities by which an entailer judged."""

    told_by = ("gold", "entailment", "contradiction")

    gold: str
    entailment: float
    contradiction: float


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

    judges: Sequence[JudgeVotes]
    golds: Sequence[GoldRow]
    rest: Sequence[Mapping[str, Any]]

    @classmethod
    def read(cls, evidence: Iterable[Any]) -> Votes:
        """Sort the evidence by judge."""
        rows = Rows(evidence, VoteRow, GoldRow)
        by_judge: dict[str, list[VoteRow]] = {}
        for vote in rows.of(VoteRow):
            by_judge.setdefault(vote.judge, []).append(vote)
        judges = [_votes(name, own) for name, own in by_judge.items()]
        return cls(judges, rows.of(GoldRow), rows.rest)


def _votes(name: str, rows: Sequence[VoteRow]) -> JudgeVotes:
    given = [(row.level, row.reason.strip()) for row in rows if row.level is not None]
    levels = Counter(level for level, _ in given)
    most = max(levels.values(), default=1)
    reasons = Counter((level, text) for level, text in given if text)
    listed = [Reason(*key, times) for key, times in reasons.most_common()]
    faulty = [row for row in rows if row.level is None and row.fault]
    return JudgeVotes(
        name,
        any(row.own for row in rows),
        [(level, n, 100 * n / most) for level, n in sorted(levels.items())],
        listed[:REASONS_SHOWN],
        max(0, len(listed) - REASONS_SHOWN),
        [(FAULTS.get(row.fault, "unreadable"), row.reply or "") for row in faulty],
        sum(row.repaired is True for row in rows),
    )
