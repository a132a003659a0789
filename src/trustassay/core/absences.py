"""Who was asked for scores and is absent from them, counted for the figures of a metric.

A score is incomplete where a model that was asked for it brought nothing that could be used, and
the score is of the others alone.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, NamedTuple

from trustassay.core.asked import describe_kinds
from trustassay.core.assessment import INCOMPLETE, REMARKS, Assessment

ABSENT = "absent"
"""The part of an assessment with the number of those absent from its score, left out where it is 0;
and the key of the details of a summary with the counts by name and kind."""


class Absence(NamedTuple):
    """One model that is absent from a score."""

    name: str
    """Its name in its role."""
    kind: str
    """A kind of failure, or why else it is absent."""


class Absences:
    """Counts absences over the scores of a run, by name and kind.

    Args:
        role: what the absent models are called, in the singular.
        read: returns the absences from an assessment that has the part :data:`ABSENT`.
        by_rule: kinds that follow from a rule of the method: they make a score incomplete only if
            the model is absent from all scores.
    """

    def __init__(
        self,
        role: str,
        read: Callable[[Assessment], Iterable[Absence]],
        by_rule: Collection[str] = (),
    ) -> None:
        self.scored = 0
        """Assessments with a score."""
        self._role, self._read, self._by_rule = role, read, by_rule
        self._incomplete = 0
        self._kinds: dict[str, Counter[str]] = {}

    def collect(self, assessments: Iterable[Assessment]) -> Iterator[Assessment]:
        """Pass assessments on, and count who is absent from those with a score."""
        for assessment in assessments:
            if assessment.score is not None:
                self.scored += 1
                # Evidence is read from the disk, so only where something is absent.
                if assessment.parts.get(ABSENT):
                    self._count(list(self._read(assessment)))
            yield assessment

    def _count(self, absences: Collection[Absence]) -> None:
        for name, kind in absences:
            self._kinds.setdefault(name, Counter())[kind] += 1
        self._incomplete += any(kind not in self._by_rule for _, kind in absences)

    def details(self) -> dict[str, Any]:
        """Return the counts and the sentences on them; empty if nobody was absent."""
        if not self._kinds:
            return {}
        ordered = sorted(self._kinds.items())
        sentences = [
            f"{self._role} {name} is absent from {kinds.total():,} of {self.scored:,} scores "
            f"({describe_kinds(kinds)}): its weight goes to the others"
            for name, kinds in ordered
        ]
        is_never_there = any(kinds.total() == self.scored for _, kinds in ordered)
        return {
            REMARKS: sentences,
            ABSENT: {name: dict(sorted(kinds.items())) for name, kinds in ordered},
            INCOMPLETE: self.scored if is_never_there else self._incomplete,
        }
