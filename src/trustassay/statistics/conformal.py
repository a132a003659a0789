"""Thresholds above which answers can be accepted, with a guarantee that holds for any score.

Two risks, which are easily taken for one another:

* the share of wrong answers *among those accepted* (:func:`selective_threshold`). It need not fall
  as the threshold rises, so each threshold is a hypothesis that is tested (Learn then Test;
  Angelopoulos, Bates, Candès, Jordan and Lei 2021). The promise holds with a stated confidence.
* the share of *all* answers that are accepted and wrong (:func:`accepted_and_wrong_threshold`),
  which can only fall as the threshold rises: conformal risk control (Angelopoulos, Bates, Fisch,
  Lei and Schuster 2022). The promise is about the mean over labelled sets.

Questions are the units that are drawn independently, with all their answers. Accepted is what has
a score above the threshold; an answer without a score (NaN) never is.
"""

import math
from bisect import bisect_left
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from trustassay.statistics import Places
from trustassay.statistics.distributions import incomplete_beta

MOST_TESTS = 20
"""Thresholds that are tested at most: each takes its part of the permitted error."""
LOOKED_AT = 200
"""Thresholds at which it is estimated how many labels would do."""
STEP = 1.2
"""By what factor the numbers of accepted questions of two tests differ at least."""


@dataclass(frozen=True, slots=True)
class Threshold:
    """Accept answers whose score is above ``above`` (minus infinity: all that have a score).

    questions, answers: those of the labelled set that are accepted. wrong: how many of these
    answers are wrong. p: of the test that was passed; ``None`` where none is needed.
    """

    above: float
    questions: int
    answers: int
    wrong: int
    p: float | None = None


def fewest_questions(alpha: float, delta: float) -> int:
    """Return how many accepted questions without any wrong answer pass a test at ``delta``: the
    least k with (1 - alpha)^k <= delta.
    """
    _check(alpha, delta)
    return math.ceil(math.log(delta) / math.log1p(-alpha) - 1e-9)


def fewest_questions_of_expected(alpha: float) -> int:
    """Return how many questions :func:`accepted_and_wrong_threshold` needs to accept anything: the
    least n with 1 / (n + 1) <= alpha.
    """
    _check(alpha, 0.5)
    return max(1, math.ceil(1 / alpha - 1 - 1e-9))


def binomial_p_value(wrong: int, accepted: int, alpha: float) -> float:
    """Return P(X <= wrong), X binomial of ``accepted`` draws with chance ``alpha``: the chance of
    so few wrong answers were the risk as high as alpha. 1 where nothing is accepted.
    """
    if wrong >= accepted:
        return 1.0
    return incomplete_beta(accepted - wrong, wrong + 1, 1 - alpha)


def tested_counts(n: int, alpha: float, delta: float) -> list[int]:
    """Return how many of n questions are accepted by the thresholds that are tested, rising.

    They depend on nothing but these numbers, so that the tests are valid. From the fewest that can
    pass to n, about evenly on a scale of factors; so many that the fewest still fit.
    """
    tests = 0
    while tests < MOST_TESTS and fewest_questions(alpha, delta / (tests + 1)) * STEP**tests <= n:
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
) -> Threshold | None:
    """Return the threshold that accepts most, such that with a probability of at least 1 - delta
    at most a share alpha of the answers that it accepts are wrong; ``None`` where none passes.

    Each question counts once: the share is that of an answer drawn from the accepted ones of a
    question that has any, so that no bound on the number of answers is needed. For each number k of
    :func:`tested_counts` the threshold is the (k + 1)-th highest of the questions' best scores.
    Given it, the questions that reach above it are independent draws of all such questions, so that
    the number of wrong ones among one accepted answer of each, drawn at random, is binomial: the
    test is exact although the threshold was chosen by the scores. Each test has delta over their
    number (Bonferroni), so at most one set in 1 / delta passes any threshold whose risk is above
    alpha.

    Args:
        scores: shape (n,), higher is better, NaN where there is none. They must not have been
            fitted on these labels.
        wrong: 1 where the answer is wrong, else 0, shape (n,). clusters: each answer's question.
        alpha: the largest share that may be wrong, delta: how often the promise may fail; between
            0 and 1.
        rng: draws the answer of a question that counts; not used where each has one.
    """
    answers = _Answers(scores, wrong, clusters)
    drawn = (rng or np.random.default_rng(0)).permutation(len(answers.wrong))
    counts = tested_counts(answers.questions, alpha, delta)
    best: Threshold | None = None
    for count in counts:
        above = answers.threshold_of(count)
        accepted = answers.accepted(above)
        p = binomial_p_value(answers.wrong_of_one_each(above, drawn), accepted[0], alpha)
        if p <= delta / len(counts):
            best = Threshold(above, *accepted, p)
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
    """Return about how many labelled questions would let :func:`selective_threshold` accept
    something, if what is seen here held for them; ``None`` where not even ``most`` would.

    Seen is the share of wrong answers above each threshold, with one more wrong answer added.
    """
    answers = _Answers(scores, wrong, clusters)
    result: list[int] = []
    counts = np.geomspace(1, max(1, answers.questions), LOOKED_AT).round().astype(int)
    for count in np.unique(counts[counts <= answers.questions]).tolist():
        questions, accepted, bad = answers.accepted(answers.threshold_of(count))
        risk = (bad + 1) / (accepted + 1)
        if questions and risk < alpha:
            result.append(_enough(questions / answers.questions, risk, alpha, delta, most))
    fewest = min(result, default=most)
    return int(float(f"{fewest:.2g}")) if fewest < most else None


def _enough(share: float, risk: float, alpha: float, delta: float, most: int) -> int:
    """Return the least n at which a share of accepted questions with this risk would pass."""

    def passes(n: int) -> bool:
        accepted = math.floor(n * share)
        return binomial_p_value(math.floor(accepted * risk), accepted, alpha) <= delta / MOST_TESTS

    high = fewest_questions(alpha, delta)
    while not passes(high) and high < most:
        high *= 2
    return min(bisect_left(range(high), True, high // 2 + 1, key=passes), most)


def accepted_and_wrong_threshold(
    scores: ArrayLike, wrong: ArrayLike, clusters: ArrayLike, *, alpha: float
) -> Threshold | None:
    """Return the lowest threshold such that of a new question's answers at most a share alpha is
    accepted and wrong, in expectation over labelled sets and questions; ``None`` where n is too
    small for any.

    The least t with (sum_i L_i(t) + 1) / (n + 1) <= alpha, L_i(t) being the share of the i-th
    question's answers that score above t and are wrong (Angelopoulos et al. 2022, eq. 4 with
    B = 1; theorem 1). Questions need only be exchangeable.

    Args:
        scores, wrong, clusters: as for :func:`selective_threshold`.
    """
    answers = _Answers(scores, wrong, clusters)
    if answers.questions < fewest_questions_of_expected(alpha):
        return None
    budget = alpha * (answers.questions + 1) - 1 + 1e-12
    order = np.argsort(-answers.scores, kind="stable")
    order = order[~np.isnan(answers.scores[order])]
    ranked = answers.scores[order]
    losses = np.cumsum((answers.wrong / answers.sizes[answers.of])[order])
    ends = np.flatnonzero(np.diff(ranked, append=-np.inf))
    # From the highest score: where more is lost if answers down to this one are taken.
    beyond = ends[losses[ends] > budget]
    above = float(ranked[beyond[0]]) if len(beyond) else -math.inf
    return Threshold(above, *answers.accepted(above))


class _Answers:
    """Labelled answers by question."""

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
        known = ~np.isnan(self.scores)
        np.maximum.at(best, self.of[known], self.scores[known])
        self._best = -np.sort(-best)

    def threshold_of(self, count: int) -> float:
        """Return the best score of the question after the first ``count``."""
        return float(self._best[count]) if count < self.questions else -math.inf

    def accepted(self, above: float) -> tuple[int, int, int]:
        """Return how many questions have an accepted answer, and the numbers of accepted answers
        and of wrong ones among them.
        """
        taken = self.scores > above  # never of NaN
        wrong = self.wrong[taken] > 0
        return len(np.unique(self.of[taken])), len(wrong), int(wrong.sum())

    def wrong_of_one_each(self, above: float, order: Places) -> int:
        """Return how many are wrong of one accepted answer of each question: the first in order."""
        taken = order[self.scores[order] > above]
        first = np.unique(self.of[taken], return_index=True)[1]
        return int(self.wrong[taken[first]].sum())


def _check(alpha: float, delta: float) -> None:
    if not (0 < alpha < 1 and 0 < delta < 1):
        raise ValueError(f"expected alpha and delta between 0 and 1, got {alpha} and {delta}")
