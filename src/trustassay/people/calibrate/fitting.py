"""Fits calibrators to labelled answers, and tests them on answers that they were not fitted to."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from trustassay.runs.calibrator import AMONG_ACCEPTED, OF_ALL, ThresholdPromise
from trustassay.statistics import Bools, Floats, Places, conformal
from trustassay.statistics.calibration import (
    Combination,
    Method,
    Predict,
    choose_method,
    fit_combination,
    fit_isotonic,
    fit_logistic,
    fold_numbers,
    out_of_fold,
)
from trustassay.statistics.regression import Isotonic
from trustassay.statistics.resampling import generator

FittedModel = Isotonic | Combination
MAX_FOLDS = 10


@dataclass(frozen=True)
class LabelledScores:
    """The scores and labels of n answers."""

    scores: Floats
    """Shape (n, d) for d scores; higher is better, NaN where there is none."""
    right: Floats
    """1 for right, 0 for wrong, shape (n,)."""
    questions: Places
    """The number of each answer's question, shape (n,)."""

    def of(self, places: Bools) -> "LabelledScores":
        """Return the answers that the mask selects."""
        return LabelledScores(self.scores[places], self.right[places], self.questions[places])

    @property
    def has_score(self) -> Bools:
        """Which answers have at least one score, shape (n,)."""
        return np.asarray(~np.isnan(self.scores).all(axis=1))


@dataclass(frozen=True)
class FittedCalibrator:
    """A fitted model, with the data to evaluate it."""

    model: FittedModel
    method: str
    """``isotonic``, ``logistic`` or ``combination``."""
    out_of_fold: Floats
    """The probability of each answer by a model that was not fitted to its question; NaN without a
    score."""
    tested: LabelledScores
    """The answers on which thresholds may be chosen."""
    ranks: Floats
    """The values by which ``tested`` answers are accepted; they were not fitted to these
    answers."""


def fit(rows: LabelledScores, method: Method | None, seed: int) -> FittedCalibrator:
    """Fit one score to all answers, or a combination of scores to half of the questions.

    Thresholds on one score apply to the score itself, which was not fitted, so that all answers can
    test them. A combination is fitted to labels, so the other half of the questions tests its
    thresholds; for out-of-fold probabilities each half is predicted by the fit to the other half.
    """
    scored = rows.has_score
    # Answers without a score get no probability.
    labelled_scored = rows.of(scored)
    probabilities = np.full(len(rows.right), np.nan)
    if rows.scores.shape[1] > 1:
        # A combination of several scores: by questions, so that no question is in both halves.
        halves = fold_numbers(rows.questions, rows.right, 2, generator(seed, "calibrate", "halves"))
        probabilities[scored] = out_of_fold(
            lambda x, y, _: fit_combination(x, y).probabilities,
            labelled_scored.scores,
            labelled_scored.right,
            labelled_scored.questions,
            halves[scored].tolist(),
        )
        first = rows.of(halves == 0)
        tested = rows.of(halves == 1)
        model = fit_combination(first.scores, first.right)
        return FittedCalibrator(
            model, "combination", probabilities, tested, model.probabilities(tested.scores)
        )
    # Every fold needs both classes, so there can be no more folds than questions of the rarer one.
    rarer_class_questions = min(
        len(np.unique(labelled_scored.questions[labelled_scored.right == kind])) for kind in (0, 1)
    )
    folds = fold_numbers(
        labelled_scored.questions,
        labelled_scored.right,
        min(MAX_FOLDS, rarer_class_questions),
        generator(seed, "calibrate", "folds"),
    )

    def fit_by_method(x: Floats, y: Floats, of: Places) -> tuple[Method, FittedModel]:
        """Repeat the whole fit, including the choice of the method."""
        # Chosen anew in each fold: choosing on all answers would leak into the evaluation.
        chosen = method
        if chosen is None:
            chosen = choose_method(x, y, of, generator(seed, "calibrate", "method")).method
        return chosen, (fit_isotonic if chosen == "isotonic" else fit_logistic)(x, y)

    def fit_predictor(x: Floats, y: Floats, of: Places) -> Predict:
        _, model = fit_by_method(x, y, of)
        return model.at if isinstance(model, Isotonic) else model.probabilities

    inputs = labelled_scored.scores[:, 0], labelled_scored.right, labelled_scored.questions
    probabilities[scored] = out_of_fold(fit_predictor, *inputs, folds.tolist())
    chosen, fitted = fit_by_method(*inputs)
    return FittedCalibrator(fitted, chosen, probabilities, rows, rows.scores[:, 0])


def find_promises(
    fitted: FittedCalibrator, at_most: Sequence[float], confidence: float, seed: int
) -> list[ThresholdPromise]:
    """Find thresholds for each risk: first among accepted answers, then among all answers."""
    rows, ranks = fitted.tested, fitted.ranks
    inputs = (ranks, 1 - rows.right, rows.questions)
    n = len(np.unique(rows.questions))
    result = []
    for alpha in at_most:
        # 1 - 0.95 is 0.050000000000000044 in floating point.
        delta = round(1 - confidence, 12)
        fewest = conformal.fewest_questions(alpha, delta)
        rng = generator(seed, "calibrate", "answers")
        passed = conformal.selective_threshold(*inputs, alpha=alpha, delta=delta, rng=rng)
        needed = None
        # Estimate how many questions would be enough, if the error rate stays the same.
        if passed is None:
            needed = conformal.questions_needed(*inputs, alpha=alpha, delta=delta)
            needed = max(needed or 0, fewest) if needed or n < fewest else None
        promise = ThresholdPromise(AMONG_ACCEPTED, alpha, confidence)
        result.append(_complete_promise(promise, passed, n, fewest, needed))
    for alpha in at_most:
        fewest = conformal.fewest_questions_of_expected(alpha)
        passed = conformal.risk_control_threshold(*inputs, alpha=alpha)
        promise = ThresholdPromise(OF_ALL, alpha, None)
        result.append(_complete_promise(promise, passed, n, fewest, fewest))
    return result


def _complete_promise(
    promise: ThresholdPromise,
    result: conformal.AcceptanceThreshold | None,
    n: int,
    fewest: int,
    needed: int | None,
) -> ThresholdPromise:
    """Complete a promise with the threshold that keeps it, or the reason why there is none."""
    if result is None:
        return replace(promise, without=_explain_none(n, fewest, needed), needed=needed)
    # JSON has no infinity; None means that every answer with a score is accepted.
    above = None if result.above == -math.inf else result.above
    counts = {name: getattr(result, name) for name in ("questions", "answers", "wrong")}
    return replace(promise, above=above, **counts)


def _explain_none(n: int, fewest: int, needed: int | None) -> str:
    # Even without a single wrong answer the promise could not be tested.
    if n < fewest:
        estimate = f", about {needed:,} at the error rate seen" if (needed or 0) > fewest else ""
        return f"{n:,} questions test it, at least {fewest:,} are needed{estimate}"
    if needed:
        return f"too few: {n:,} questions; about {needed:,} are needed at the error rate seen"
    return "too many wrong answers, also among those with the best scores"
