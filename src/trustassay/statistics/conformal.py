"""Thresholds above which answers can be accepted, with a guarantee that holds for any score.

There are two risks, which are easily confused:

* the share of wrong answers *among the accepted ones* (:func:`selective_threshold`). It need not
  fall as the threshold rises, so each threshold is a hypothesis that is tested (Learn then Test;
  Angelopoulos, Bates, Candès, Jordan and Lei 2021). The promise holds with a stated confidence.
* the share of *all* answers that are accepted and wrong (:func:`risk_control_threshold`), which can
  only fall as the threshold rises: conformal risk control (Angelopoulos, Bates, Fisch, Lei and
  Schuster 2022). The promise is about the mean over labelled sets.

Questions are the independent units, with all their answers. Answers with a score above the
threshold are accepted; an answer without a score (NaN) never is.
"""

import math
from bisect import bisect_left
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from trustassay.statistics import Places
from trustassay.statistics.distributions import incomplete_beta

MAX_TESTS = 20
"""The most thresholds that are tested; each takes its part of the permitted error."""
ESTIMATE_THRESHOLDS = 200
"""Thresholds from which :func:`questions_needed` estimates how many labels are enough."""
MIN_COUNT_RATIO = 1.2
"""The least ratio of the numbers of accepted questions of two successive tests."""


@dataclass(frozen=True, slots=True)
class AcceptanceThreshold:
    """A threshold for accepting answers, and what it accepts of the labelled set."""

    above: float
    """Answers with a higher score are accepted; minus infinity accepts all that have a score."""
    questions: int
    """Labelled questions with an accepted answer."""
    answers: int
    """Labelled answers that are accepted."""
    wrong: int
    """How many of these answers are wrong."""
    p: float | None = None
    """The p-value of the test that was passed; ``None`` where no test is needed."""


def fewest_questions(alpha: float, delta: float) -> int:
    """Return how many accepted questions, all right, are enough to pass a test at ``delta``.

    It is the least k with (1 - alpha)^k <= delta.
    """
    _check(alpha, delta)
    # Without the slack, rounding could ask for one question more than an exact power needs.
    return math.ceil(math.log(delta) / math.log1p(-alpha) - 1e-9)


def fewest_questions_of_expected(alpha: float) -> int:
    """Return how many questions :func:`risk_control_threshold` needs to accept anything.

    It is the least n with 1 / (n + 1) <= alpha.
    """
    _check(alpha, 0.5)
    return max(1, math.ceil(1 / alpha - 1 - 1e-9))


def binomial_p_value(wrong: int, accepted: int, alpha: float) -> float:
    """Return the probability of at most ``wrong`` wrong answers if the risk were ``alpha``.

    It is P(X <= wrong) with X binomial of ``accepted`` draws; 1 where nothing is accepted.
    """
    if wrong >= accepted:
        return 1.0
    return incomplete_beta(accepted - wrong, wrong + 1, 1 - alpha)


def choose_test_counts(n: int, alpha: float, delta: float) -> list[int]:
    """Return how many of n questions each tested threshold accepts, rising.

    The counts depend only on these numbers, which keeps the tests valid. They run from the fewest
    questions that can pass to n, evenly on a logarithmic scale. Each further test makes the fewest
    larger, so there are as many tests as still fit.
    """
    tests = 0
    while (
        tests < MAX_TESTS
        and fewest_questions(alpha, delta / (tests + 1)) * MIN_COUNT_RATIO**tests <= n
    ):
        tests += 1
    if not tests:
        return []
    counts = np.geomspace(fewest_questions(alpha, delta / tests), n, tests)
    return sorted({round(count) for count in counts.tolist()})


def selective_threshold(
    scores: ArrayLike,
    wrong: ArrayLike,
    clusters: ArrayLike,
    *,
    alpha: float,
    delta: float,
    rng: np.random.Generator | None = None,
) -> AcceptanceThreshold | None:
    """Return the lowest threshold whose accepted answers are wrong at most with the share alpha.

    The promise holds with a probability of at least 1 - delta. ``None`` where no threshold passes.

    Each question counts once: the share is that of an answer drawn from the accepted answers of a
    question that has any, so no bound on the number of answers is needed. For each number k of
    :func:`choose_test_counts` the threshold is the (k + 1)-th highest of the questions' best
    scores. Given the threshold, the questions above it are independent draws of all such questions.
    So the number of wrong answers among one accepted answer of each, drawn at random, is binomial,
    and the test is exact although the threshold was chosen by the scores. Each test has delta over
    the number of tests (Bonferroni), so at most one set in 1 / delta passes any threshold whose
    risk is above alpha.

    Args:
        scores: shape (n,), higher is better, NaN where there is none. They must not have been
            fitted on these labels.
        wrong: 1 where the answer is wrong, else 0, shape (n,). clusters: each answer's question.
        alpha: the largest share that may be wrong, between 0 and 1.
        delta: how often the promise may fail, between 0 and 1.
        rng: draws the answer that counts for each question; irrelevant where each has one answer.
    """
    answers = _LabelledAnswers(scores, wrong, clusters)
    drawn = (rng or np.random.default_rng(0)).permutation(len(answers.wrong))
    counts = choose_test_counts(answers.questions, alpha, delta)
    best: AcceptanceThreshold | None = None
    for count in counts:
        above = answers.threshold_of(count)
        accepted = answers.count_accepted(above)
        p = binomial_p_value(answers.count_wrong_of_one_each(above, drawn), accepted[0], alpha)
        if p <= delta / len(counts):
            # The counts rise, so the last threshold that passes accepts most.
            best = AcceptanceThreshold(above, *accepted, p)
    return best


def questions_needed(
    scores: ArrayLike,
    wrong: ArrayLike,
    clusters: ArrayLike,
    *,
    alpha: float,
    delta: float,
    most: int = 1_000_000,
) -> int | None:
    """Estimate how many labelled questions :func:`selective_threshold` needs to accept anything.

    The estimate assumes the shares of wrong answers above each threshold that are observed here,
    with one more wrong answer added. ``None`` where not even ``most`` questions are enough.
    """
    answers = _LabelledAnswers(scores, wrong, clusters)
    result: list[int] = []
    counts = np.geomspace(1, max(1, answers.questions), ESTIMATE_THRESHOLDS).round().astype(int)
    for count in np.unique(counts[counts <= answers.questions]).tolist():
        questions, accepted, bad = answers.count_accepted(answers.threshold_of(count))
        risk = (bad + 1) / (accepted + 1)
        if questions and risk < alpha:
            result.append(
                _questions_to_pass(questions / answers.questions, risk, alpha, delta, most)
            )
    fewest = min(result, default=most)
    # two digits: more would claim a precision that the estimate does not have
    return int(float(f"{fewest:.2g}")) if fewest < most else None


def _questions_to_pass(share: float, risk: float, alpha: float, delta: float, most: int) -> int:
    """Return the least n at which a share of accepted questions with this risk passes."""

    def passes(n: int) -> bool:
        accepted = math.floor(n * share)
        return binomial_p_value(math.floor(accepted * risk), accepted, alpha) <= delta / MAX_TESTS

    high = fewest_questions(alpha, delta)
    while not passes(high) and high < most:
        high *= 2
    # Doubling found an upper bound; the answer lies above half of it.
    return min(bisect_left(range(high), True, high // 2 + 1, key=passes), most)


def risk_control_threshold(
    scores: ArrayLike, wrong: ArrayLike, clusters: ArrayLike, *, alpha: float
) -> AcceptanceThreshold | None:
    """Return the lowest threshold at which at most a share alpha of answers is accepted and wrong.

    The share is that of a new question's answers, in expectation over labelled sets and questions.
    ``None`` where n is too small for any threshold.

    It is the least t with (sum_i L_i(t) + 1) / (n + 1) <= alpha, where L_i(t) is the share of the
    i-th question's answers that score above t and are wrong (Angelopoulos et al. 2022, eq. 4 with
    B = 1; theorem 1). Questions need only be exchangeable.

    Args:
        scores, wrong, clusters: as for :func:`selective_threshold`.
    """
    answers = _LabelledAnswers(scores, wrong, clusters)
    if answers.questions < fewest_questions_of_expected(alpha):
        return None
    budget = alpha * (answers.questions + 1) - 1 + 1e-12
    order = np.argsort(-answers.scores, kind="stable")
    order = order[~np.isnan(answers.scores[order])]
    ranked = answers.scores[order]
    losses = np.cumsum((answers.wrong / answers.sizes[answers.of])[order])
    ends = np.flatnonzero(np.diff(ranked, append=-np.inf))
    # Losses add up from the highest score down: the first group of equal scores that exceeds the
    # budget is the threshold, which excludes the group itself.
    beyond = ends[losses[ends] > budget]
    above = float(ranked[beyond[0]]) if len(beyond) else -math.inf
    return AcceptanceThreshold(above, *answers.count_accepted(above))


class _LabelledAnswers:
    """Labelled answers, grouped by question."""

    def __init__(self, scores: ArrayLike, wrong: ArrayLike, clusters: ArrayLike) -> None:
        self.scores = np.asarray(scores, dtype=np.float64)
        self.wrong = np.asarray(wrong, dtype=np.float64)
        names = np.asarray(clusters)
        if self.scores.ndim != 1 or not self.scores.shape == self.wrong.shape == names.shape:
            raise ValueError("expected a score, a label and a question of each answer")
        if not np.isin(self.wrong, (0.0, 1.0)).all():
            raise ValueError("expected 1 where an answer is wrong, else 0")
        self.of: Places = np.unique(names, return_inverse=True)[1].astype(np.int64)
        self.sizes = np.bincount(self.of)
        self.questions = len(self.sizes)
        best = np.full(self.questions, -np.inf)
        has_score = ~np.isnan(self.scores)
        # best score of each question; a question without any score is never accepted
        np.maximum.at(best, self.of[has_score], self.scores[has_score])
        self._best = -np.sort(-best)

    def threshold_of(self, count: int) -> float:
        """Return the threshold that accepts ``count`` questions: the best score of the next one."""
        return float(self._best[count]) if count < self.questions else -math.inf

    def count_accepted(self, above: float) -> tuple[int, int, int]:
        """Count the questions with an accepted answer, the accepted answers, and the wrong ones."""
        is_accepted = self.scores > above  # never of NaN
        wrong = self.wrong[is_accepted] > 0
        return len(np.unique(self.of[is_accepted])), len(wrong), int(wrong.sum())

    def count_wrong_of_one_each(self, above: float, order: Places) -> int:
        """Count the wrong ones among one accepted answer of each question, the first in order."""
        accepted_in_order = order[self.scores[order] > above]
        first = np.unique(self.of[accepted_in_order], return_index=True)[1]
        return int(self.wrong[accepted_in_order[first]].sum())


def _check(alpha: float, delta: float) -> None:
    if not (0 < alpha < 1 and 0 < delta < 1):
        raise ValueError(f"expected alpha and delta between 0 and 1, got {alpha} and {delta}")
