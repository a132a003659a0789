"""The outcome of every question that was asked: passed, failed or not answered.

A metric with a line between good and bad answers gives each question one outcome, and a reason if
it is *not answered*. A metric without a line counts *scored* and *not scored*. The shares are of
all questions asked, so they add up to 100 %:

1. Each answer gets its :class:`Outcome` (:meth:`trustassay.core.metric.Metric.outcome`).
2. All answers to one question together weigh one question: copies of an answer under new ids
   change no share.
3. The interval of a share is over independent units, such as questions or conversations.
"""

import math
from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np

from trustassay.statistics import Bools, Floats, Places
from trustassay.statistics.intervals import (
    MIN_UNITS,
    Interval,
    RowSums,
    mean_interval,
    reason_too_few_units,
)

OutcomeKind = Literal["passed", "failed", "not_answered", "scored", "not_scored"]
PASSED: OutcomeKind = "passed"
FAILED: OutcomeKind = "failed"
NOT_ANSWERED: OutcomeKind = "not_answered"
SCORED: OutcomeKind = "scored"
NOT_SCORED: OutcomeKind = "not_scored"
WITH_LINE: Sequence[OutcomeKind] = (PASSED, FAILED, NOT_ANSWERED)
WITHOUT_LINE: Sequence[OutcomeKind] = (SCORED, NOT_SCORED)

# Why a question is not answered. A metric may give others, such as its own verdicts.
BLANK = "blank"
ERROR = "error"
LANGUAGE_NOT_READ = "language not read"
TOO_LONG = "too long"
MODEL_NOT_GIVEN = "model not given"
REFUSED = "refused"
REFUSED_WRONGLY = "refused though it could be answered"
REFUSED_RIGHTLY = "refused rightly"
NO_PASSAGES = "no passages"
NO_CLAIM = "no claim"
NOT_ASSESSABLE = "not assessable"
JUDGED_REFUSALS = (REFUSED_RIGHTLY, REFUSED_WRONGLY)
"""Refusals that a metric judged by gold answers."""

MAX_REASONS = 8
"""Reasons that are counted by name; a user's metric may give a different one for each answer."""
OTHER_REASONS = "other reasons"


class Outcome(NamedTuple):
    """What became of one question."""

    kind: OutcomeKind
    """The outcome."""
    reason: str = ""
    """Why it was not answered or not scored."""

    @property
    def is_judged(self) -> bool:
        """Whether the metric judged the answer's content, or whether its refusal was right."""
        if self.kind in (NOT_ANSWERED, NOT_SCORED):
            return self.reason in JUDGED_REFUSALS
        return True


@dataclass(frozen=True, slots=True)
class OutcomeShare:
    """The share of one outcome among all questions."""

    answers: int
    """Number of answers with this outcome."""
    percent: float
    """Share of the questions, 0 to 100."""
    interval: Interval | None = None
    """95 % interval of ``percent``."""
    without_interval: str = ""
    """Why there is no interval."""

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        result: dict[str, Any] = {"answers": self.answers, "percent": self.percent}
        if self.interval is None:
            return {**result, "interval": None, "without_interval": self.without_interval}
        return {**result, "interval": list(self.interval)}

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> "OutcomeShare":
        """Return the object from the output of :meth:`to_dict`."""
        ends = raw["interval"]
        interval = None if ends is None else (float(ends[0]), float(ends[1]))
        return cls(raw["answers"], raw["percent"], interval, raw.get("without_interval", ""))


@dataclass(frozen=True)
class Outcomes:
    """The outcomes of all questions of a run by one metric.

    >>> run.outcomes["faithfulness"].failed.percent  # doctest: +SKIP
    12.5
    """

    metric: str
    """The metric's name."""
    questions: int
    """Questions asked: the weight of all answers together."""
    answers: int
    """Answers, failed and blank ones included."""
    shares: Mapping[OutcomeKind, OutcomeShare]
    """Passed, failed and not answered; of a metric without a line scored and not scored."""
    words: Mapping[OutcomeKind, str]
    """What the metric calls each outcome."""
    reasons: Mapping[str, int] = field(default_factory=dict)
    """Answers by why they count as not answered or not scored, the most frequent reason first."""
    repeated: int = 0
    """Answers that say the same as another one to the same question, under another id."""

    @property
    def passed(self) -> OutcomeShare | None:
        """Questions that passed; ``None`` where the metric draws no line."""
        return self.shares.get(PASSED)

    @property
    def failed(self) -> OutcomeShare | None:
        """Questions that failed; ``None`` where the metric draws no line."""
        return self.shares.get(FAILED)

    @property
    def not_answered(self) -> OutcomeShare | None:
        """Questions without an answer that could be judged; ``None`` without a line."""
        return self.shares.get(NOT_ANSWERED)

    @property
    def judged(self) -> int:
        """Answers that passed or failed, or were scored."""
        return self.answers - self.without.answers

    @property
    def without(self) -> OutcomeShare:
        """Questions that were not answered, or not scored where the metric draws no line."""
        return self.shares[NOT_ANSWERED if NOT_ANSWERED in self.shares else NOT_SCORED]

    @property
    def sentence(self) -> str:
        """The first line about a run: all shares with their intervals."""
        if not self.questions:
            return f"{self.metric}: no questions"
        # Rounded together, so that the numbers in the sentence add up to 100.
        numbers = round_percents([share.percent for share in self.shares.values()])
        parts = [
            f"{percent} % {self.words[kind]}{_format_interval(share.interval, is_first=not index)}"
            for index, (percent, (kind, share)) in enumerate(
                zip(numbers, self.shares.items(), strict=True)
            )
        ]
        noun = "question" if self.questions == 1 else "questions"
        return f"{self.metric}: {', '.join(parts)} of {self.questions:,} {noun}"

    @property
    def reasons_in_words(self) -> str:
        """Why answers were not judged: ``not answered: refused (5), blank (2)``; "" if all were."""
        if not self.reasons:
            return ""
        word = self.words[NOT_ANSWERED if NOT_ANSWERED in self.shares else NOT_SCORED]
        return f"{word}: {format_counts(self.reasons)}"

    @property
    def lines(self) -> list[str]:
        """What a run opens with: :attr:`sentence` and, if there are any, the reasons."""
        return [self.sentence, self.reasons_in_words] if self.reasons else [self.sentence]

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form, that of ``summary.json``."""
        result: dict[str, Any] = {"questions": self.questions, "answers": self.answers}
        result |= {kind: share.to_dict() for kind, share in self.shares.items()}
        result |= {"words": dict(self.words), "reasons": dict(self.reasons)}
        return {**result, "repeated": self.repeated}

    @classmethod
    def from_dict(cls, metric: str, raw: Mapping[str, Any]) -> "Outcomes":
        """Return the object from the output of :meth:`to_dict`."""
        kinds = WITH_LINE if PASSED in raw else WITHOUT_LINE
        shares = {kind: OutcomeShare.from_dict(raw[kind]) for kind in kinds}
        counts = raw["questions"], raw["answers"]
        return cls(metric, *counts, shares, raw["words"], raw["reasons"], raw["repeated"])


def format_counts(counts: Mapping[str, int]) -> str:
    """Return names with their counts: ``refused (5), blank (2)``."""
    return ", ".join(f"{name} ({count:,})" for name, count in counts.items())


def _format_interval(interval: Interval | None, *, is_first: bool) -> str:
    """Return an interval in brackets; only the first of a sentence says what it is."""
    if interval is None:
        return ""
    low, high = (round(end) for end in interval)
    label = "95 % interval " if is_first else ""
    return f" ({label}{low} to {high})"


def round_percents(percents: Sequence[float]) -> list[int]:
    """Round percentages to whole numbers that add up to 100, as the exact ones do.

    The largest remainders are rounded up (Hamilton's method), of equal ones that of the first
    percentage last: it is what passed, and rounding should flatter no run. All 0 stay so.
    """
    # 1e-9: a share of 3/3 may come out as 99.99999999999999 and must not be rounded down.
    floors = [math.floor(percent + 1e-9) for percent in percents]
    points_to_add = round(sum(percents)) - sum(floors)
    # Rounded, since 33.333... computed in two ways differs in its last digit and would be no tie.
    order_keys = [round(floor - exact, 9) for floor, exact in zip(floors, percents, strict=True)]
    # Sorted by floor - exact, the most negative first; `at == 0` puts the first share last among
    # equals.
    largest_remainder_first = sorted(range(len(percents)), key=lambda at: (order_keys[at], at == 0))
    for at in largest_remainder_first[:points_to_add]:
        floors[at] += 1
    return floors


class OutcomeCounter:
    """Collects the outcomes of a run's answers by one metric, in input order.

    Args:
        metric: the metric's name. words: what it calls each outcome.
        has_line: whether answers pass or fail, or are only scored.
    """

    def __init__(self, metric: str, words: Mapping[OutcomeKind, str], *, has_line: bool) -> None:
        self.metric, self.words = metric, words
        self.kinds = WITH_LINE if has_line else WITHOUT_LINE
        self._places = array("b")
        self._reasons: Counter[str] = Counter()

    def add(self, outcome: Outcome) -> None:
        """Count one answer."""
        self._places.append(self.kinds.index(outcome.kind))
        if outcome.kind in (NOT_ANSWERED, NOT_SCORED):
            reason = outcome.reason or NOT_ASSESSABLE
            # Bounds the memory and the line in the report; reasons are texts of a metric.
            if reason not in self._reasons and len(self._reasons) >= MAX_REASONS:
                reason = OTHER_REASONS
            self._reasons[reason] += 1

    def outcomes(
        self, questions: Places | None, units: Places | None, repeated: int = 0
    ) -> Outcomes:
        """Return the shares.

        Args:
            questions: the number of each answer's question, -1 for an answer with a question of
                its own, shape (n,); ``None`` if all have one.
            units: the number of each answer's independent unit, in the same form.
            repeated: number of answers that are copies, for the record.
        """
        total, by_kind = self.shares(questions, units)
        words = {kind: self.words[kind] for kind in self.kinds}
        reasons = dict(self._reasons.most_common())
        answers = len(self._places)
        return Outcomes(self.metric, total, answers, by_kind, words, reasons, repeated)

    def shares(
        self, questions: Places | None, units: Places | None, where: Bools | None = None
    ) -> tuple[int, dict[OutcomeKind, OutcomeShare]]:
        """Return the number of questions and the share of each outcome.

        Args:
            questions, units: as for :meth:`outcomes`.
            where: which answers count, shape (n,); by default all. A question counts once among
                these.
        """
        places = np.array(self._places, dtype=np.int64)
        if where is not None:
            places = places[where]
            questions = questions if questions is None else questions[where]
            units = units if units is None else units[where]
        weights = compute_question_weights(questions, len(places))
        shares = compute_outcome_shares(places, weights, units, len(self.kinds))
        counts = np.bincount(places, minlength=len(self.kinds)).tolist()
        by_kind = {
            kind: OutcomeShare(count, *share)
            for kind, count, share in zip(self.kinds, counts, shares, strict=True)
        }
        return round(float(weights.sum())), by_kind


def compute_question_weights(questions: Places | None, n: int) -> Floats:
    """Return the weight of each of n answers, shape (n,): those to one question weigh 1
    together."""
    if questions is None:
        return np.ones(n)
    together = questions >= 0
    counts = np.bincount(questions[together], minlength=1)
    weights = np.ones(n)
    weights[together] = 1.0 / counts[questions[together]]
    return weights


def compute_outcome_shares(
    places: Places, weights: Floats, units: Places | None, kinds: int
) -> list[tuple[float, Interval | None, str]]:
    """Return for each outcome its share in percent, the interval, and why there is none.

    Args:
        places: the outcome of each answer, 0 to ``kinds`` - 1, shape (n,). weights: shape (n,).
        units: as for :meth:`~trustassay.statistics.intervals.RowSums.add`.
        kinds: the number of outcomes.
    """
    if not len(places):
        return [(0.0, None, "there are no questions")] * kinds
    # One column for each outcome with the weight of the answers that have it. A share is the ratio
    # of two sums, whose variance over units RowSums computes.
    rows = np.zeros((len(places), kinds + 1))
    rows[np.arange(len(places)), places] = weights
    rows[:, kinds] = weights  # the last sum is that of all weights
    sums = RowSums(kinds + 1)
    sums.add(rows, units)
    below = np.zeros(kinds + 1)
    below[kinds] = 1.0
    result: list[tuple[float, Interval | None, str]] = []
    for kind in range(kinds):
        above = np.zeros(kinds + 1)
        above[kind] = 1.0
        share = sums.ratio(above, below)
        # Sums of weights such as 1/3 can put a share of all answers slightly above 1.
        mean = min(max(share.mean, 0.0), 1.0)
        reason = reason_too_few_units(len(places), sums.units, share.units, MIN_UNITS, "questions")
        if reason:
            result.append((100 * mean, None, reason))
            continue
        low, high = mean_interval(mean, share.variance, share.units)
        result.append((100 * mean, (100 * low, 100 * high), ""))
    return result
