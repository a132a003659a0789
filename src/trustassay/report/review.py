"""Which answers of a run need a look, by which rule, and which of them a page shows.

A page that cannot show all answers shows in turn the worst of each kind of problem. A kind follows
from a metric's error, verdict, score and reason for an answer, so that this module needs to know no
metric. Memory does not grow with the run: only the worst of each kind are stored.
"""

import heapq
import re
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import lru_cache
from itertools import groupby, islice
from typing import Generic, NamedTuple, TypeVar

from trustassay.core.metric import Assessment, Metric, MetricInfo, compute_badness
from trustassay.core.outcome import (
    JUDGED_REFUSALS,
    MAX_REASONS,
    NOT_ASSESSABLE,
    OTHER_REASONS,
    REFUSED,
    Outcome,
    format_counts,
)
from trustassay.text.numbers import amount


def problem_of(metric: Metric | None, assessment: Assessment) -> str | None:
    """Return why an answer needs a look: its error, or the metric's problem; else ``None``.

    If a metric of another package raises here, its answer is flagged, so that no error hides one.
    """
    if assessment.error is not None:
        return assessment.error
    if metric is None:
        return None
    try:
        return metric.problem(assessment)
    except Exception as error:  # of another package's metric
        return f"the rule of {assessment.metric} failed: {type(error).__name__}: {error}"


@dataclass
class ReviewCounts:
    """Counts of the answers of a run that need a look, and of those that no metric judged."""

    lines: bool = True
    """Whether any metric has a rule for answers that need a look."""
    answers: int = 0
    """All answers."""
    flagged: int = 0
    """Answers that need a look."""
    failed: int = 0
    """Flagged answers for which a metric failed."""
    judged: int = 0
    """Answers that at least one metric judged."""
    not_judged: int = 0
    """Answers that are not flagged, and that a metric should have judged and did not."""
    partly_judged: int = 0
    """Those of ``not_judged`` that another metric judged."""
    skipped: int = 0
    """Faulty records of the input, which are no answers of the run."""
    reasons: Counter[str] = field(default_factory=Counter)
    """Answers that no metric judged, failed ones included, by the first metric's reason."""

    def add(
        self,
        flagged: Sequence[bool],
        outcomes: Sequence[Outcome],
        *,
        failed: bool,
        times: int = 1,
    ) -> None:
        """Count one answer, or several with the same results.

        Args:
            flagged: for each metric, whether it flags the answer.
            outcomes: for each metric, the outcome.
            failed: whether any metric failed.
            times: the number of such answers.
        """
        is_flagged = failed or any(flagged)
        is_judged = any(outcome.is_judged for outcome in outcomes)
        self.answers += times
        self.failed += times * failed
        self.flagged += times * is_flagged
        self.judged += times * is_judged
        if not is_flagged and not _is_judged_completely(outcomes):
            self.not_judged += times
            self.partly_judged += times * is_judged
        if is_judged:
            return
        reason = outcomes[0].reason if outcomes else NOT_ASSESSABLE
        # Reasons of other packages' metrics are open-ended: bound the number of different ones.
        if reason not in self.reasons and len(self.reasons) >= MAX_REASONS:
            reason = OTHER_REASONS
        self.reasons[reason] += times

    def to_dict(self) -> dict[str, int]:
        """Return the JSON form: the counts; without a rule none is flagged."""
        # These keys are part of summary.json.
        names = ("answers", "flagged", "failed", "judged")
        return {name: getattr(self, name) for name in names}

    @property
    def sentence(self) -> str:
        """The sentence below the outcomes: how many answers need a look, and how many were not
        judged, so that nobody takes these for good ones. "None needs a look" is said only if every
        answer was judged.
        """
        n = self.answers
        if not n:
            return "There are no answers"
        if not self.judged:
            reasons = format_counts(dict(self.reasons.most_common()))
            return f"0 of {amount(n, 'answer')} could be judged: {reasons}"
        by_every_metric = " by every metric" if self.partly_judged else ""
        if self.flagged:
            verb = "needs" if self.flagged == 1 else "need"
            sentence = f"{self.flagged:,} of {amount(n, 'answer')} {verb} a look"
            if self.failed:
                pronoun = "it" if self.failed == 1 else "they"
                sentence += f", {self.failed:,} because {pronoun} could not be scored"
        elif not self.lines:
            # No metric has a rule, so "none needs a look" would be no finding.
            sentence = f"{amount(n, 'answer')}, worst scores first"
        elif self.not_judged:
            judged = n - self.not_judged
            verb = "was" if judged == 1 else "were"
            sentence = f"{judged:,} of {amount(n, 'answer')} {verb} judged{by_every_metric}"
            # Each answer is judged by some metric, none by all of them.
            if not judged:
                return sentence
            sentence += ": 0 need a look"
        elif self.skipped:
            # What could not be read may be the worst answer of all.
            sentence = f"{amount(n, 'answer')} {'was' if n == 1 else 'were'} judged: 0 need a look"
        elif n == 1:
            sentence = "No answer needs a look"
        else:
            sentence = f"None of the {n:,} answers needs a look"
        if self.not_judged:
            is_one = self.not_judged == 1
            noun = (" other" if is_one else " others") if self.flagged else ""
            verb = "was" if is_one else "were"
            sentence += f"; {self.not_judged:,}{noun} {verb} not judged{by_every_metric}"
        if self.skipped:
            verb = "was" if self.skipped == 1 else "were"
            sentence += f"; {amount(self.skipped, 'faulty record')} {verb} skipped"
        return sentence


def _is_judged_completely(outcomes: Sequence[Outcome]) -> bool:
    """Whether every metric judged an answer that is made for answers of its kind."""
    reasons = [outcome.reason for outcome in outcomes if not outcome.is_judged]
    # A metric that knows the right answer judges refusals for the others.
    if any(outcome.reason in JUDGED_REFUSALS for outcome in outcomes):
        reasons = [reason for reason in reasons if reason != REFUSED]
    # A metric for other answers, as one for those with tool calls, leaves no gap.
    return len(reasons) < len(outcomes) and set(reasons) <= {NOT_ASSESSABLE}


@dataclass(frozen=True)
class FlagRule:
    """The rule by which answers need a look, of one metric."""

    title: str
    """The title of the metric."""
    rule: str
    """The rule; empty if the metric has none."""
    is_installed: bool = True
    """Whether the metric is installed here; else its rule is not known."""

    @property
    def sentence(self) -> str:
        """The rule as a sentence."""
        if self.rule:
            return f"An answer needs a look if {self.rule}."
        if not self.is_installed:
            return "The metric is not installed here, so its rule is unknown; sorted by score."
        return "This metric has no rule for which answers need a look; sorted by score."


def lines_of(titles: Mapping[str, str], metrics: Mapping[str, Metric]) -> list[FlagRule]:
    """Return the rule of each metric of a run; ``metrics`` are those installed here, by name."""
    return [
        FlagRule(title, metrics[name].line if name in metrics else "", name in metrics)
        for name, title in titles.items()
    ]


Where = TypeVar("Where")

MOST_VERDICTS = 20
"""Verdicts of one metric and level that are distinguished; later ones count as ``OTHER``."""
MOST_DETAILS = 12
"""Reasons of one verdict that are distinguished; if there are more, none are."""
FAILED = "failed"
OTHER = "other"
NO_VERDICT = "no verdict"
NO_SCORE = "no score"
# Characters of a verdict, and of a reason.
LONGEST_NAME = 60
MAX_DETAIL_CHARACTERS = 160


class AnswerPriority(IntEnum):
    """The importance of an answer for a reader, the highest first."""

    FAILURE = 0
    PROBLEM = 1
    REST = 2


LEVEL_NAMES = {
    AnswerPriority.FAILURE: "failures",
    AnswerPriority.PROBLEM: "problems",
    AnswerPriority.REST: "others",
}


class AnswerKind(NamedTuple):
    """A group of answers with the same verdict and reason of a metric."""

    level: AnswerPriority
    """The importance for a reader."""
    metric: str
    """The name of the metric."""
    verdict: str
    """The verdict, or one of the constants above."""
    detail: str = ""
    """The reason without numbers and quotes; empty where reasons are not distinguished."""


class MetricFinding(NamedTuple):
    """The result of one metric for one answer."""

    kind: AnswerKind
    """The group that the answer belongs to."""
    badness: float
    """0 to 1; larger is worse."""
    score: float | None
    """The score; ``None`` if there is none."""
    flagged: bool = False
    """Whether the answer needs a look by the metric's own rule."""
    place: int = 0
    """The place of its verdict among those of the metric."""


def need_of(findings: Sequence[MetricFinding]) -> tuple[int, float, int]:
    """Return a sort key by which the answers that need a look most come first.

    Answers that a metric flags come first, then those that could not be scored, then the others.
    Within each group the worst come first (:func:`~trustassay.core.metric.compute_badness`), and of
    equally bad ones those with the later verdict.
    """
    failed = any(finding.kind.level == AnswerPriority.FAILURE for finding in findings)
    worst = worst_of(findings)
    if worst is None:
        return 2, 0.0, 0
    return 0 if worst.flagged else 1 if failed else 2, -worst.badness, -worst.place


def worst_of(findings: Sequence[MetricFinding]) -> MetricFinding | None:
    """Return the finding that decides the place of an answer in the order of :func:`need_of`.

    It is the worst of the flagged ones, or else of the failures, or else of all.
    """
    flagged = [finding for finding in findings if finding.flagged]
    failed = [finding for finding in findings if finding.kind.level == AnswerPriority.FAILURE]
    candidates = flagged or failed or findings
    return max(candidates, key=lambda finding: (finding.badness, finding.place), default=None)


class KindCount(NamedTuple):
    """The counts of a kind."""

    kind: AnswerKind
    """The kind."""
    total: int
    """The number of its answers."""
    listed: int
    """The number of its answers on the page."""
    scores: tuple[float, float] | None
    """The least and the largest score of those on the page."""


@dataclass(frozen=True)
class Selection:
    """Which answers a page lists; an answer has a kind for each metric."""

    listed: int
    """The number of answers on the page."""
    kinds: Sequence[KindCount]
    """The kinds, the most important level first."""

    def by_level(self) -> dict[str, list[KindCount]]:
        """Return the kinds under the names of their levels, without empty ones."""
        in_levels = groupby(self.kinds, key=lambda count: count.kind.level)
        return {LEVEL_NAMES[level]: list(kinds) for level, kinds in in_levels}


def finding_of(
    metric: MetricInfo, assessment: Assessment, *, flagged: bool | None = None
) -> MetricFinding:
    """Return the kind of an assessment, and its badness within the kind.

    An answer that the metric flags is a problem. Where the metric has no rule, or is not installed
    (``None``), a problem is a score in the worse half of the metric's range, or any verdict but the
    first that the metric declares, unless the score is the best possible: a refusal can be right.
    """
    badness = compute_badness(metric, assessment)
    if assessment.error is not None:
        detail = _without_specifics(assessment.error)
        return MetricFinding(
            AnswerKind(AnswerPriority.FAILURE, metric.name, FAILED, detail), 1.0, None
        )
    verdict = assessment.verdict or NO_VERDICT
    detail = _without_specifics(assessment.reason)
    # No score and no error: refused, or nothing to assess.
    if badness is None:
        level = AnswerPriority.PROBLEM if flagged else AnswerPriority.REST
        return MetricFinding(
            AnswerKind(level, metric.name, NO_SCORE, detail), 0.0, None, bool(flagged)
        )
    # The first declared verdict is the one of trust.
    distrusted = bool(metric.verdicts) and verdict != metric.verdicts[0]
    problem = badness > 0.5 or (distrusted and badness > 0) if flagged is None else flagged
    level = AnswerPriority.PROBLEM if problem else AnswerPriority.REST
    kind = AnswerKind(level, metric.name, verdict[:LONGEST_NAME], detail)
    place = metric.verdicts.index(verdict) if verdict in metric.verdicts else 0
    return MetricFinding(kind, badness, assessment.score, bool(flagged), place)


# Quoted texts; numbers and ids such as "12", "0.5", "req-81f3".
_SPECIFICS = re.compile(r"""(?<!\w)'[^']*'|"[^"]*"|“[^”]*”|[\w-]*\d(?:[\w.,-]*\w)?""")
# HTTP status codes of errors stay: 401 and 500 are different problems.
_STATUS = re.compile(r"[45]\d\d")


@lru_cache(maxsize=1024)
def _without_specifics(text: str) -> str:
    """Return the first line of a message without details that differ from sample to sample.

    These are quoted texts, numbers other than an HTTP status, and ids: words with three digits or
    more.
    """
    line = next(iter(text.strip().splitlines()), "")[: 4 * MAX_DETAIL_CHARACTERS]
    line = _SPECIFICS.sub(_generalise, line)
    return line if len(line) <= MAX_DETAIL_CHARACTERS else line[: MAX_DETAIL_CHARACTERS - 1] + "…"


def _generalise(specific: re.Match[str]) -> str:
    text = specific[0]
    if _STATUS.fullmatch(text):
        return text
    quoted_or_number = text[0] in "'\"“-" or text[0].isdigit()
    return "…" if quoted_or_number or sum(map(str.isdigit, text)) >= 3 else text


class _HeapEntry(NamedTuple, Generic[Where]):
    """An answer on a heap: the least bad comes first, of equally bad ones the latest."""

    badness: float
    # The position with a minus sign, so that later answers are smaller.
    negative_position: int
    findings: Sequence[MetricFinding]
    where: Where


class _WorstOfKind(Generic[Where]):
    """Counts the answers of a kind, and stores the worst ``most`` of them."""

    def __init__(self, most: int) -> None:
        self.total = 0
        self._most = most
        self._heap: list[_HeapEntry[Where]] = []

    def add(self, entry: _HeapEntry[Where]) -> None:
        self.total += 1
        if len(self._heap) < self._most:
            heapq.heappush(self._heap, entry)
        # heap[0] is the best of the stored ones: it makes room for a worse answer.
        elif entry[:2] > self._heap[0][:2]:
            heapq.heapreplace(self._heap, entry)

    def take_over(self, other: "_WorstOfKind[Where]") -> None:
        total = self.total + other.total
        for entry in other._heap:
            self.add(entry)
        # ``add`` has counted the entries of ``other`` once more.
        self.total = total

    def sort_entries(self) -> list[_HeapEntry[Where]]:
        return sorted(self._heap, key=lambda entry: entry[:2], reverse=True)


class AnswerSelector(Generic[Where]):
    """Selects ``most`` answers of those that are added in input order."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._position = 0
        self._kinds: dict[AnswerKind, _WorstOfKind[Where]] = {}
        self._reasons: dict[AnswerKind, set[AnswerKind] | None] = {}
        """The kinds of each verdict's reasons; ``None`` once they are no longer distinguished."""

    def add(self, findings: Sequence[MetricFinding], where: Where) -> None:
        """Add the next answer: the findings of all metrics, and the place to find it again."""
        for result in findings:
            kind = self._assign_kind(result.kind)
            if kind not in self._kinds:
                self._kinds[kind] = _WorstOfKind(self._most)
            entry = _HeapEntry(result.badness, -self._position, findings, where)
            self._kinds[kind].add(entry)
        self._position += 1

    def _assign_kind(self, kind: AnswerKind) -> AnswerKind:
        """Return the kind that an answer of ``kind`` counts as.

        A new kind is distinguished until there are too many verdicts or reasons.
        """
        verdict = kind._replace(detail="")
        same_metric = (other[:2] == kind[:2] for other in self._reasons)
        if verdict not in self._reasons and sum(same_metric) < MOST_VERDICTS:
            self._reasons[verdict] = set()
        reasons = self._reasons.get(verdict)
        if reasons is not None:
            reasons.add(kind)
            # Too many reasons are as good as none: merge all kinds of this verdict into one.
            if len(reasons) > MOST_DETAILS:
                merged: _WorstOfKind[Where] = _WorstOfKind(self._most)
                for other in reasons & self._kinds.keys():
                    merged.take_over(self._kinds.pop(other))
                self._kinds[verdict] = merged
                self._reasons[verdict] = None
        return self._find_counted_kind(kind)

    def _find_counted_kind(self, kind: AnswerKind) -> AnswerKind:
        """Return the kind under which answers of ``kind`` are counted now."""
        verdict = kind._replace(detail="")
        if verdict not in self._reasons:
            return kind._replace(verdict=OTHER, detail="")
        return verdict if self._reasons[verdict] is None else kind

    def choose(self) -> list[Where]:
        """Return the places of the selected answers, the most important first.

        The kinds of failures and problems take turns in the order of :meth:`selection`. Each gives
        its worst remaining answer, of equally bad ones the earliest. Remaining room goes to the
        worst of the other answers.
        """
        return [entry.where for entry in self._select_entries()]

    def by_need(self) -> list[Where]:
        """Return the places of the selected answers, by need of a look, the highest first."""
        entries = sorted(
            self._select_entries(),
            key=lambda item: (*need_of(item.findings), -item.negative_position),
        )
        return [entry.where for entry in entries]

    def selection(self) -> Selection:
        """Return the kinds: failures, then problems, then the rest, each by frequency."""
        chosen = self._select_entries()
        listed: dict[AnswerKind, list[float | None]] = {}
        for entry in chosen:
            for result in entry.findings:
                listed.setdefault(self._find_counted_kind(result.kind), []).append(result.score)
        counts = []
        for kind in self._sort_kinds():
            # An answer counts under the kind of each of its metrics, whichever kind got it
            # selected.
            of_kind = listed.get(kind, [])
            scores = [score for score in of_kind if score is not None]
            between = (min(scores), max(scores)) if scores else None
            counts.append(KindCount(kind, self._kinds[kind].total, len(of_kind), between))
        return Selection(len(chosen), counts)

    def _sort_kinds(self) -> list[AnswerKind]:
        return sorted(self._kinds, key=lambda kind: (kind.level, -self._kinds[kind].total, kind))

    def _select_entries(self) -> list[_HeapEntry[Where]]:
        result: dict[int, _HeapEntry[Where]] = {}
        entries_by_kind = [(kind, self._kinds[kind].sort_entries()) for kind in self._sort_kinds()]
        problems = [
            entries for kind, entries in entries_by_kind if kind.level != AnswerPriority.REST
        ]
        other_entries = [
            entry
            for kind, entries in entries_by_kind
            if kind.level == AnswerPriority.REST
            for entry in entries
        ]
        other_entries.sort(key=lambda entry: entry[:2], reverse=True)
        # All others form one list by badness: their kinds do not take turns.
        for lists in (problems, [other_entries]):
            for entry in islice(_take_turns(lists, result), self._most - len(result)):
                result[entry.negative_position] = entry
        return list(result.values())


def _take_turns(
    lists: Sequence[Sequence[_HeapEntry[Where]]], used: Container[int]
) -> Iterator[_HeapEntry[Where]]:
    """Yield the next entry of each list in turn, without those in ``used`` by then."""
    iterators = [iter(candidate) for candidate in lists]
    while iterators:
        remaining = []
        for entries in iterators:
            # ``used`` grows between two steps: an answer may be in the list of several kinds.
            entry = next(
                (candidate for candidate in entries if candidate.negative_position not in used),
                None,
            )
            if entry is not None:
                yield entry
                remaining.append(entries)
        iterators = remaining
