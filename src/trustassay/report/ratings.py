"""Ratings by people beside the answers: what each rater said of one, and what was joined."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean, stdev

from trustassay.report.text import amount, number

__all__ = ["AnswerRatings", "RaterSaid", "RatingsTold"]

UNKNOWN_TOLD = 5
"""Ids that no answer has which are named."""


@dataclass(frozen=True, slots=True)
class RaterSaid:
    """All ratings of one answer by one rater, as they are shown, with the rater's notes.

    values: the same as numbers; none where ratings are words.
    """

    name: str
    words: Sequence[str]
    values: Sequence[float] = ()
    notes: Sequence[str] = ()

    @property
    def said(self) -> str:
        """The ratings in the order of the repeats."""
        return ", ".join(self.words)


@dataclass(frozen=True, slots=True)
class AnswerRatings:
    """The ratings of one answer; each rater counts once, with the mean of their own."""

    raters: Sequence[RaterSaid]

    @property
    def means(self) -> list[float]:
        """The mean of each rater's numbers."""
        return [fmean(one.values) for one in self.raters if one.values]

    @property
    def mean(self) -> float | None:
        """The mean over raters; ``None`` of words, and of numbers too large to be added up."""
        found = fmean(self.means) if self.means else None
        return found if found is None or math.isfinite(found) else None

    @property
    def sd(self) -> float | None:
        """The standard deviation between raters, n - 1; ``None`` of fewer than two."""
        return None if self.mean is None or len(self.means) < 2 else stdev(self.means)

    @property
    def short(self) -> str:
        """The mean, or how often each word was said."""
        if self.mean is not None:
            return number(self.mean, 2)
        counts = Counter(word for one in self.raters for word in one.words)
        return ", ".join(f"{word} {times}" for word, times in counts.most_common())


@dataclass(frozen=True, slots=True)
class RatingsTold:
    """What was joined to the answers of a run.

    source: the name of the file. numbers: whether ratings have means. answers: of the run, of which
    ``rated`` have ratings. unknown: ids of ratings that belong to no answer, with their numbers.
    """

    source: str
    numbers: bool
    raters: int
    ratings: int
    rated: int
    answers: int
    unknown: dict[str, int] = field(default_factory=dict)

    @property
    def in_words(self) -> str:
        """Say what was joined, and what was not."""
        words = (
            f"{amount(self.ratings, 'rating')} by {amount(self.raters, 'rater')} of "
            f"{self.rated:,} of {amount(self.answers, 'answer')}; "
            f"{amount(self.answers - self.rated, 'answer')} without a rating"
        )
        if not self.unknown:
            return f"{words}."
        ids = ", ".join(one[:40] for one in list(self.unknown)[:UNKNOWN_TOLD])
        more = len(self.unknown) - UNKNOWN_TOLD
        ids += f" and {more:,} more" if more > 0 else ""
        left = amount(sum(self.unknown.values()), "rating")
        return f"{words}. {left} of no answer in the run, by id and model: {ids}."
