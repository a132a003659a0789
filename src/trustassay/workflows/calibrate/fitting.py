"""What is fitted on labelled answers, and what it says of answers that it was not fitted on."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from trustassay.runs.calibrator import AMONG_ACCEPTED, OF_ALL, Promise
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

Model = Isotonic | Combination
FOLDS = 10


@dataclass(frozen=True)
class Rows:
    """Labelled answers: scores, shape (n, d), higher is better, NaN where there is none; whether
    each is right, 0 or 1; the number of its question."""

    scores: Floats
    right: Floats
    questions: Places

    def of(self, places: Bools) -> "Rows":
        """Return some of them."""
        return Rows(self.scores[places], self.right[places], self.questions[places])

    @property
    def scored(self) -> Bools:
        """Which have a score at all."""
        return np.asarray(~np.isnan(self.scores).all(axis=1))


@dataclass(frozen=True)
class Fitted:
    """A model, and what it is worth.

    out_of_fold: of each answer the probability by a model that was not fitted on its question, NaN
    without a score. tested: the answers on which thresholds may be found, by ``ranks`` that were
    not fitted on them.
    """

    model: Model
    method: str
    out_of_fold: Floats
    tested: Rows
    ranks: Floats


def fit(rows: Rows, method: Method | None, seed: int) -> Fitted:
    """Fit a calibrator of one score on all answers, or one of several on half of the questions.

    Thresholds on one score are about the score itself, which no label has touched, so that all
    answers can test them. A combination is fitted on labels; so the other half of the questions
    tests its thresholds, and out of fold each half is predicted by the fit on the other.
    """
    scored = rows.scored
    labelled_scored = rows.of(scored)
    probabilities = np.full(len(rows.right), np.nan)
    if rows.scores.shape[1] > 1:
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
        return Fitted(
            model, "combination", probabilities, tested, model.probabilities(tested.scores)
        )
    rarer_class_questions = min(
        len(np.unique(labelled_scored.questions[labelled_scored.right == kind])) for kind in (0, 1)
    )
    folds = fold_numbers(
        labelled_scored.questions,
        labelled_scored.right,
        min(FOLDS, rarer_class_questions),
        generator(seed, "calibrate", "folds"),
    )

    def of_method(x: Floats, y: Floats, of: Places) -> tuple[Method, Model]:
        """Do all that is done, the choice of the method included."""
        chosen = method
        if chosen is None:
            chosen = choose_method(x, y, of, generator(seed, "calibrate", "method")).method
        return chosen, (fit_isotonic if chosen == "isotonic" else fit_logistic)(x, y)

    def predicts(x: Floats, y: Floats, of: Places) -> Predict:
        _, model = of_method(x, y, of)
        return model.at if isinstance(model, Isotonic) else model.probabilities

    inputs = labelled_scored.scores[:, 0], labelled_scored.right, labelled_scored.questions
    probabilities[scored] = out_of_fold(predicts, *inputs, folds.tolist())
    chosen, fitted = of_method(*inputs)
    return Fitted(fitted, chosen, probabilities, rows, rows.scores[:, 0])


def promises(
    fitted: Fitted, at_most: Sequence[float], confidence: float, seed: int
) -> list[Promise]:
    """Return the thresholds: for each risk among accepted answers, then for each of all answers."""
    rows, ranks = fitted.tested, fitted.ranks
    inputs = (ranks, 1 - rows.right, rows.questions)
    n = len(np.unique(rows.questions))
    result = []
    for alpha in at_most:
        delta = round(1 - confidence, 12)
        fewest = conformal.fewest_questions(alpha, delta)
        rng = generator(seed, "calibrate", "answers")
        passed = conformal.selective_threshold(*inputs, alpha=alpha, delta=delta, rng=rng)
        needed = None
        if passed is None:
            needed = conformal.questions_needed(*inputs, alpha=alpha, delta=delta)
            needed = max(needed or 0, fewest) if needed or n < fewest else None
        promise = Promise(AMONG_ACCEPTED, alpha, confidence)
        result.append(_fill_promise(promise, passed, _explain_none(n, fewest, needed), needed))
    for alpha in at_most:
        fewest = conformal.fewest_questions_of_expected(alpha)
        passed = conformal.accepted_and_wrong_threshold(*inputs, alpha=alpha)
        promise = Promise(OF_ALL, alpha, None)
        result.append(_fill_promise(promise, passed, _explain_none(n, fewest, fewest), fewest))
    return result


def _fill_promise(
    promise: Promise, result: conformal.Threshold | None, reason: str, needed: int | None
) -> Promise:
    """Return a promise with the threshold that keeps it, or why there is none."""
    if result is None:
        return replace(promise, without=reason, needed=needed)
    above = None if result.above == -math.inf else result.above
    counts = {name: getattr(result, name) for name in ("questions", "answers", "wrong")}
    return replace(promise, above=above, **counts)


def _explain_none(n: int, fewest: int, needed: int | None) -> str:
    if n < fewest:
        estimate = f", about {needed:,} at the error rate seen" if (needed or 0) > fewest else ""
        return f"{n:,} questions test it, at least {fewest:,} are needed{estimate}"
    if needed:
        return f"too few: {n:,} questions; about {needed:,} are needed at the error rate seen"
    return "too many wrong answers, also among those with the best scores"
