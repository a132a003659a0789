"""The figures of a run in which each question counts once, however many answers it has."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from trustassay.compare.run_scores import RunScores
from trustassay.core.assessment import compute_interval
from trustassay.core.metric import Mean, Quantile, Share, Total
from trustassay.core.outcome import compute_question_weights
from trustassay.statistics import Floats, Places
from trustassay.statistics.intervals import Estimate, count_units, unit_mean
from trustassay.statistics.resampling import draw_counts, generator, resample_interval


@dataclass(frozen=True)
class QuestionWeighing:
    """Recomputes figures of a metric with weights that add up to the same for each question."""

    scores: RunScores
    questions: Places
    """The question of each answer, from 0, shape (n,)."""
    units: Places
    """The independent unit of each answer, from 0 without gaps, shape (n,)."""
    seed: int
    """Of the resamples."""

    def estimate(self, key: str) -> Estimate | None:
        """Return a figure, or ``None`` where weights mean nothing, as for quantiles and counts.

        A mean or a share has the kind of interval that the run prints, over the questions that
        count in it. Any other figure is resampled; it has no interval where all resamples agree.
        """
        keys = self.scores.weighted.keys()
        if key not in keys:
            return None
        statistic = self.scores.figures[key].statistic
        if isinstance(statistic, Quantile | Total):
            return None
        if isinstance(statistic, Mean | Share):
            return self._estimate_mean(key, statistic)
        return self._estimate_by_resamples(key)

    def _estimate_mean(self, key: str, statistic: Mean | Share) -> Estimate:
        column = self.scores.weighted.inputs(key)[:, 0]
        has_value = ~np.isnan(column)
        numbers, units = column[has_value], self.units[has_value]
        if not len(numbers):
            return Estimate(None, 0, without="no sample has this figure")
        # Of the answers that count, so that one without a score takes no weight from another.
        weights = compute_question_weights(self.questions[has_value], len(numbers))
        value = unit_mean(numbers, units, weights).mean
        interval = compute_interval(
            statistic, numbers, units, self.scores.info.score_range, "questions", weights
        )
        percent = 100 if isinstance(statistic, Share) else 1
        message = "all questions have the same value, so the variance is unknown"
        return Estimate.of(percent * value, count_units(units), interval or message)

    def _estimate_by_resamples(self, key: str) -> Estimate:
        count = int(self.units.max()) + 1
        value = float(self.scores.weighted.figures(self._weights[None])[key][0])
        rng = generator(self.seed, "gate", self.scores.info.name, "questions")
        draws = [
            self.scores.weighted.figures(times[:, self.units] * self._weights)[key]
            for times in draw_counts(count, rng)
        ]
        interval = resample_interval(np.concatenate(draws), count)
        return Estimate.of(None if np.isnan(value) else value, count, interval)

    @cached_property
    def _weights(self) -> Floats:
        return compute_question_weights(self.questions, len(self.questions))
