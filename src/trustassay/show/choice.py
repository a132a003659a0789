"""The answers shown by a page that cannot show all: in turn the worst of each kind of problem.

A kind depends on a metric's error, verdict, score and reason for an answer, so that this module
knows no metric by name. Memory does not grow with the run: only the worst of each kind are kept.
"""

import heapq
import re
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from itertools import groupby, islice
from typing import Generic, NamedTuple, TypeVar

from trustassay.metric import Assessment, MetricInfo, badness_of

Where = TypeVar("Where")

MOST_VERDICTS = 20
"""Verdicts of one metric and level that are distinguished; what comes later counts as ``OTHER``."""
MOST_DETAILS = 12
"""Reasons of one verdict that are distinguished; if there are more, none is."""
FAILED = "failed"
OTHER = "other"
NO_VERDICT = "no verdict"
NO_SCORE = "no score"
LONGEST_NAME = 60
LONGEST_DETAIL = 160


class Level(IntEnum):
    """How important an answer is for a reader, the most important first."""

    FAILURE = 0
    PROBLEM = 1
    REST = 2


LEVEL_NAMES = {Level.FAILURE: "failures", Level.PROBLEM: "problems", Level.REST: "others"}


class Kind(NamedTuple):
    """Answers with the same verdict and reason of a metric."""

    level: Level
    metric: str
    verdict: str
    detail: str = ""


class Finding(NamedTuple):
    """The result of one metric for one answer; a larger ``badness`` is worse, 0 to 1.

    ``flagged`` says whether the metric's own line says that the answer needs a look; ``place`` is
    that of its verdict among those of the metric.
    """

    kind: Kind
    badness: float
    score: float | None
    flagged: bool = False
    place: int = 0


def need_of(findings: Sequence[Finding]) -> tuple[int, float, int]:
    """Return how much an answer needs a look: what sorts first needs it most.

    First come answers that a metric flags, then those that could not be scored, then the others;
    among each the worst first (:func:`~trustassay.metric.badness_of`), of equal ones the later
    verdict.
    """
    failed = any(found.kind.level == Level.FAILURE for found in findings)
    worst = worst_of(findings)
    if worst is None:
        return 2, 0.0, 0
    return 0 if worst.flagged else 1 if failed else 2, -worst.badness, -worst.place


def worst_of(findings: Sequence[Finding]) -> Finding | None:
    """Return the finding for which an answer stands where :func:`need_of` puts it.

    It is a flagged one, or else a failure, or else any; the worst, of equal ones the first.
    """
    flagged = [found for found in findings if found.flagged]
    failed = [found for found in findings if found.kind.level == Level.FAILURE]
    among = flagged or failed or findings
    return max(among, key=lambda found: (found.badness, found.place), default=None)


class KindCount(NamedTuple):
    """How many answers are of a kind, how many of them are listed, and with which scores."""

    kind: Kind
    total: int
    listed: int
    scores: tuple[float, float] | None


@dataclass(frozen=True)
class Selection:
    """How many answers a page lists, and of which kinds, the most important level first; an answer
    has a kind for each metric.
    """

    listed: int
    kinds: Sequence[KindCount]

    def by_level(self) -> dict[str, list[KindCount]]:
        """Return the kinds under the names of their levels, without empty ones."""
        in_levels = groupby(self.kinds, key=lambda count: count.kind.level)
        return {LEVEL_NAMES[level]: list(kinds) for level, kinds in in_levels}


def finding_of(
    metric: MetricInfo, assessment: Assessment, *, flagged: bool | None = None
) -> Finding:
    """Return the kind of an assessment, and how bad it is among its kind.

    A problem is what the metric flags. Where it draws no line or is not here (``None``) it is one
    in the worse half of the metric's range, or any verdict but the one of trust (the first that the
    metric declares), unless its score is the best there is: a refusal can be right.
    """
    badness = badness_of(metric, assessment)
    if assessment.error is not None:
        detail = _without_specifics(assessment.error)
        return Finding(Kind(Level.FAILURE, metric.name, FAILED, detail), 1.0, None)
    verdict = assessment.verdict or NO_VERDICT
    detail = _without_specifics(assessment.reason)
    if badness is None:
        level = Level.PROBLEM if flagged else Level.REST
        return Finding(Kind(level, metric.name, NO_SCORE, detail), 0.0, None, bool(flagged))
    distrusted = bool(metric.verdicts) and verdict != metric.verdicts[0]
    problem = badness > 0.5 or (distrusted and badness > 0) if flagged is None else flagged
    level = Level.PROBLEM if problem else Level.REST
    kind = Kind(level, metric.name, verdict[:LONGEST_NAME], detail)
    place = metric.verdicts.index(verdict) if verdict in metric.verdicts else 0
    return Finding(kind, badness, assessment.score, bool(flagged), place)


_SPECIFICS = re.compile(r"""(?<!\w)'[^']*'|"[^"]*"|[\w-]*\d(?:[\w.,-]*\w)?""")
_STATUS = re.compile(r"[45]\d\d")


@lru_cache(maxsize=1024)
def _without_specifics(text: str) -> str:
    """Return the first line of a message without what differs from sample to sample: quoted texts,
    numbers but the status of an HTTP reply, and words with three digits or more, as ids are."""
    line = next(iter(text.strip().splitlines()), "")[: 4 * LONGEST_DETAIL]
    line = _SPECIFICS.sub(_general, line)
    return line if len(line) <= LONGEST_DETAIL else line[: LONGEST_DETAIL - 1] + "…"


def _general(specific: re.Match[str]) -> str:
    text = specific[0]
    if _STATUS.fullmatch(text):
        return text
    quoted_or_number = text[0] in "'\"-" or text[0].isdigit()
    return "…" if quoted_or_number or sum(map(str.isdigit, text)) >= 3 else text


class _Entry(NamedTuple, Generic[Where]):
    """An answer in the order of a heap: the least bad comes first, of equal ones the last."""

    badness: float
    before: int
    findings: Sequence[Finding]
    where: Where


class _Worst(Generic[Where]):
    """How many answers are of a kind, and the worst ``most`` of them."""

    def __init__(self, most: int) -> None:
        self.total = 0
        self._most = most
        self._heap: list[_Entry[Where]] = []

    def add(self, entry: _Entry[Where]) -> None:
        self.total += 1
        if len(self._heap) < self._most:
            heapq.heappush(self._heap, entry)
        elif entry[:2] > self._heap[0][:2]:
            heapq.heapreplace(self._heap, entry)

    def take_over(self, other: "_Worst[Where]") -> None:
        total = self.total + other.total
        for entry in other._heap:
            self.add(entry)
        self.total = total

    def in_order(self) -> list[_Entry[Where]]:
        return sorted(self._heap, key=lambda entry: entry[:2], reverse=True)


class Choice(Generic[Where]):
    """Chooses ``most`` of the answers that are added, in input order."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._position = 0
        self._kinds: dict[Kind, _Worst[Where]] = {}
        self._reasons: dict[Kind, set[Kind] | None] = {}
        """By verdict the kinds of its reasons; ``None`` where they are distinguished no longer."""

    def add(self, findings: Sequence[Finding], where: Where) -> None:
        """Take the next answer: what each metric says of it, and where it is found again."""
        for result in findings:
            kind = self._place(result.kind)
            if kind not in self._kinds:
                self._kinds[kind] = _Worst(self._most)
            entry = _Entry(result.badness, -self._position, findings, where)
            self._kinds[kind].add(entry)
        self._position += 1

    def _place(self, kind: Kind) -> Kind:
        """Return the kind that an answer of ``kind`` counts as; a new one is distinguished if there
        are not too many yet.
        """
        verdict = kind._replace(detail="")
        beside = (one[:2] == kind[:2] for one in self._reasons)
        if verdict not in self._reasons and sum(beside) < MOST_VERDICTS:
            self._reasons[verdict] = set()
        reasons = self._reasons.get(verdict)
        if reasons is not None:
            reasons.add(kind)
            if len(reasons) > MOST_DETAILS:
                whole: _Worst[Where] = _Worst(self._most)
                for one in reasons & self._kinds.keys():
                    whole.take_over(self._kinds.pop(one))
                self._kinds[verdict] = whole
                self._reasons[verdict] = None
        return self._found(kind)

    def _found(self, kind: Kind) -> Kind:
        """Return the kind under which an answer of ``kind`` was counted."""
        verdict = kind._replace(detail="")
        if verdict not in self._reasons:
            return kind._replace(verdict=OTHER, detail="")
        return verdict if self._reasons[verdict] is None else kind

    def chosen(self) -> list[Where]:
        """Return where the chosen answers are, the most important first.

        Of each kind of failure and problem one is taken in turn, its worst that is left, of equal
        ones the earliest; kinds take turns as :meth:`selection` lists them. If there is room
        left, the worst of the rest follow.
        """
        return [entry.where for entry in self._chosen()]

    def by_need(self) -> list[Where]:
        """Return where the chosen answers are, those first that need a look most."""
        entries = sorted(self._chosen(), key=lambda one: (*need_of(one.findings), -one.before))
        return [entry.where for entry in entries]

    def selection(self) -> Selection:
        """Return the kinds: failures first, then problems, then the rest, of each the most frequent
        first.
        """
        chosen = self._chosen()
        listed: dict[Kind, list[float | None]] = {}
        for entry in chosen:
            for result in entry.findings:
                listed.setdefault(self._found(result.kind), []).append(result.score)
        counts = []
        for kind in self._in_turn():
            of_kind = listed.get(kind, [])
            scores = [score for score in of_kind if score is not None]
            between = (min(scores), max(scores)) if scores else None
            counts.append(KindCount(kind, self._kinds[kind].total, len(of_kind), between))
        return Selection(len(chosen), counts)

    def _in_turn(self) -> list[Kind]:
        return sorted(self._kinds, key=lambda kind: (kind.level, -self._kinds[kind].total, kind))

    def _chosen(self) -> list[_Entry[Where]]:
        result: dict[int, _Entry[Where]] = {}
        in_order = [(kind, self._kinds[kind].in_order()) for kind in self._in_turn()]
        problems = [entries for kind, entries in in_order if kind.level != Level.REST]
        rest = [
            entry for kind, entries in in_order if kind.level == Level.REST for entry in entries
        ]
        rest.sort(key=lambda entry: entry[:2], reverse=True)
        for lists in (problems, [rest]):
            for entry in islice(_in_turns(lists, result), self._most - len(result)):
                result[entry.before] = entry
        return list(result.values())


def _in_turns(
    lists: Sequence[Sequence[_Entry[Where]]], taken: Container[int]
) -> Iterator[_Entry[Where]]:
    """Yield the next entry of each list in turn, without those that are taken by then."""
    left = [iter(one) for one in lists]
    while left:
        going_on = []
        for entries in left:
            entry = next((one for one in entries if one.before not in taken), None)
            if entry is not None:
                yield entry
                going_on.append(entries)
        left = going_on
