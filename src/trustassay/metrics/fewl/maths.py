"""Formulas of FEWL: aggregation, expertise, weights, penalties, and the score in its forms.

Wei et al. 2024, "Measuring and Reducing LLM Hallucination without Gold-Standard Answers". Arrays
hold one row an answer and one column a reference: n answers, N references. A similarity may be any
number; nothing is clipped.
"""

import math
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from trustassay.statistics import Bools, Floats

Divergence = Literal["tv", "js", "kl"]
Form = Literal["eq1", "theory", "agreement"]
MAX_ABILITY_ROUNDS = 1000
"""Most rounds of :func:`abilities`."""
ABILITY_TOLERANCE = 1e-13
"""Largest change of an ability in a round from which :func:`abilities` has converged."""
MAX_ABILITY = 0.99
"""Largest ability that :func:`ability_weights` believes; at 1 a weight would be infinite."""
DIVERGENCES: tuple[Divergence, ...] = ("tv", "js", "kl")
FORMS: tuple[Form, ...] = ("eq1", "theory", "agreement")


def aggregate_agreement(values: ArrayLike, divergence: Divergence) -> Floats:
    """Return g(v), the paper's aggregation of agreement; any shape.

    Total variation: tanh(v) / 2. Jensen-Shannon: log(2 / (1 + exp(-v))). Kullback-Leibler: v.
    (Section 2.3, footnote 5; appendix C.9; natural logarithms.) All are 0 at 0. A divergence of
    another name raises ValueError.
    """
    v = np.asarray(values, dtype=float)
    if divergence == "tv":
        return np.asarray(np.tanh(v) / 2)
    if divergence == "js":
        # logaddexp(0, x) is log(1 + e^x) without overflow.
        return np.asarray(np.log(2.0) - np.logaddexp(0.0, -v))
    if divergence == "kl":
        return v.copy()
    raise ValueError(f"divergence: expected {', '.join(DIVERGENCES)}, got {divergence!r}")


def aggregate_penalty(values: ArrayLike, divergence: Divergence) -> Floats:
    """Return f(g(v)), the paper's aggregation of the penalty; any shape.

    Total variation: f(u) = u, so tanh(v) / 2. Jensen-Shannon: f(u) = -log(2 - exp(u)), so
    log((1 + exp(v)) / 2). Kullback-Leibler: f(u) = exp(u - 1). (Footnote 5; appendix C.9.) At 0 the
    first two are 0, the last is exp(-1): an answer that is like nothing has a penalty there. A
    divergence of another name raises ValueError.
    """
    v = np.asarray(values, dtype=float)
    if divergence == "js":
        return np.asarray(np.logaddexp(0.0, v) - np.log(2.0))
    if divergence == "kl":
        return np.asarray(np.exp(v - 1.0))
    return aggregate_agreement(v, divergence)


def expertise(to_corrected: ArrayLike, to_wrong: ArrayLike) -> float:
    """Return r of one reference: its likeness to the nearest corrected answer, less that to the
    nearest wrong one (Algorithm 1, step 2.2).

    Args:
        to_corrected: similarities of the reference's answer to the K corrected answers.
        to_wrong: those to the wrong answers; the two maxima may belong to different pairs.

    A side without an answer contributes 0: of no pair at all every reference knows the same.
    """
    # A reference that has neither side knows nothing more or less than the others.
    right, wrong = (
        np.asarray(similarities, dtype=float) for similarities in (to_corrected, to_wrong)
    )
    return float(right.max() if right.size else 0.0) - float(wrong.max() if wrong.size else 0.0)


def softmax_weights(
    values: ArrayLike, temperature: float = 1.0, present: ArrayLike | None = None
) -> Floats:
    """Return exp(r / T) over its sum along the last axis (Algorithm 1, step 2.3, with T = 1).

    Args:
        values: expertise, shape (..., N).
        present: which references count, the same shape; the others weigh 0. By default all.

    A row without any reference is all 0, every other sums to 1. A temperature that is not above 0
    raises ValueError.
    """
    if not temperature > 0:
        raise ValueError(f"temperature: expected more than 0, got {temperature}")
    r = np.asarray(values, dtype=float) / temperature
    mask = _build_mask(present, r)
    if not r.size:
        return np.zeros(r.shape)
    # Subtract the row's maximum before exp, which else overflows; absent references become
    # exp(-inf) = 0. A row without references has a maximum of -inf, hence the guard.
    highest = np.where(mask, r, -np.inf).max(axis=-1, keepdims=True)
    shifted = np.where(mask, r - np.where(np.isfinite(highest), highest, 0.0), -np.inf)
    raised = np.exp(shifted)
    total = raised.sum(axis=-1, keepdims=True)
    return np.asarray(np.divide(raised, total, out=np.zeros_like(raised), where=total > 0))


def abilities(agreement: ArrayLike, counts: ArrayLike) -> Floats:
    """Return q of each of R raters, shape (R,), from how much they agree over a whole file.

    One factor: raters agree because both know the truth, so the mean agreement of i and j is
    q_i q_j (Spearman 1904; Dawid and Skene 1979 for raters who choose among classes). The least
    squares, weighted by the questions behind each pair, are found one rater after the other.

    Args:
        agreement: mean similarity of the answers of two raters, shape (R, R), symmetric; the
            diagonal does not count. Below 0 it counts as 0.
        counts: questions that both answered, shape (R, R); 0 where nothing is known.

    Each lies from 0 to 1. Two raters alone share one number, the root of their agreement; a rater
    who shares no question with another one is given the mean of the others, or 0.
    """
    # Negative agreement says that two raters know nothing together, not that one is wrong.
    a = np.clip(np.asarray(agreement, dtype=float), 0.0, None)
    n = np.asarray(counts, dtype=float).copy()
    np.fill_diagonal(n, 0.0)
    rated = n.sum(axis=1) > 0
    if not rated.any():
        return np.zeros(len(a))
    # Start where all raters are equally able: q^2 is the mean agreement.
    start = math.sqrt(float((a * n).sum() / n.sum()))
    q = np.where(rated, start, 0.0)
    for _ in range(MAX_ABILITY_ROUNDS):
        before = q.copy()
        for i in np.flatnonzero(rated):
            # The q_i that minimises sum_j n_ij (a_ij - q_i q_j)^2, the other abilities held fixed.
            denominator = float(n[i] @ q**2)
            q[i] = min(1.0, float(n[i] @ (a[i] * q)) / denominator) if denominator > 0 else 0.0
        if np.abs(q - before).max() < ABILITY_TOLERANCE:
            break
    q[~rated] = q[rated].mean()
    return q


def ability_weights(q: ArrayLike, present: ArrayLike | None = None) -> Floats:
    """Return weights in proportion to q / (1 - q^2), which sum to 1 along the last axis.

    They make the weighted mean of the raters follow the factor as closely as possible (Bartlett
    1937). Shapes and ``present`` as in :func:`softmax_weights`. q counts as at most 0.99: nobody
    is certain. Where all are 0 the weights are equal.
    """
    ability = np.clip(np.asarray(q, dtype=float), 0.0, MAX_ABILITY)
    mask = _build_mask(present, ability)
    raw = np.where(mask, ability / (1 - ability**2), 0.0)
    total = raw.sum(axis=-1, keepdims=True)
    shares = np.divide(raw, total, out=np.zeros_like(raw), where=total > 0)
    # All abilities 0: no rater is known to be better than another.
    return np.asarray(np.where(total > 0, shares, uniform_weights(mask)))


def uniform_weights(present: ArrayLike) -> Floats:
    """Return 1 / N for each of the N references of a row that count, 0 for the others."""
    mask = np.asarray(present, dtype=bool)
    return softmax_weights(np.zeros(mask.shape), present=mask)


def find_best_reference(values: ArrayLike, present: ArrayLike | None = None) -> Bools:
    """Return a mask of the reference with the largest expertise in each row, the first of equals.

    Shape (..., N) in and out. The rule "single-best" scores with that one as the only reference.
    """
    r = np.asarray(values, dtype=float)
    mask = _build_mask(present, r)
    if not r.size:
        return np.zeros(r.shape, dtype=bool)
    # argmax takes the first of equal values; the mask below clears rows without references.
    best = np.where(mask, r, -np.inf).argmax(axis=-1)[..., None]
    return np.asarray((np.arange(r.shape[-1]) == best) & mask)


def score(
    similarities: ArrayLike,
    weights: ArrayLike,
    penalties: ArrayLike | None,
    *,
    divergence: Divergence = "tv",
    form: Form = "eq1",
    present: ArrayLike | None = None,
    has_penalty: ArrayLike | None = None,
) -> Floats:
    """Return the score of each answer, shape (n,); higher is less hallucinated.

    eq1 (equation 1): mean over i of g(w_i s_i) - f(g(p_i)). The weight stands inside g, the
    penalty is not weighted, and the weights that sum to 1 are divided by N once more.

    theory (section 3.1): sum over i of w_i (g(s_i) - f(g(p_i))).

    agreement (ours): sum over i of w_i (s_i - p_i), without a divergence.

    Args:
        similarities: s, of the answer to each reference's answer, shape (n, N).
        weights: shape (n, N); 0 where a reference is not present.
        penalties: p, the mean similarity to each reference's answers to the neighbours, shape
            (n, N). ``None`` leaves the term out, which is not the term at 0 (see
            :func:`aggregate_penalty`).
        present: references that count; N is their number in each row. By default all.
        has_penalty: references that answered a neighbour; the others' term is left out.

    The score of a row without any reference is 0: callers keep such rows away. A form or divergence
    of another name raises ValueError.
    """
    s = np.atleast_2d(np.asarray(similarities, dtype=float))
    w = np.atleast_2d(np.asarray(weights, dtype=float))
    mask = _build_mask(present, s)
    if form not in FORMS:
        raise ValueError(f"form: expected {', '.join(FORMS)}, got {form!r}")
    if form == "agreement":
        gain = w * s
    else:
        # eq1 has the weight inside the aggregation, as printed in the paper's equation 1.
        gain = (
            aggregate_agreement(w * s, divergence)
            if form == "eq1"
            else w * aggregate_agreement(s, divergence)
        )
    if penalties is not None:
        loss = np.atleast_2d(np.asarray(penalties, dtype=float))
        loss = loss if form == "agreement" else aggregate_penalty(loss, divergence)
        # Left out, not taken at p = 0: for kl the penalty at 0 is exp(-1).
        loss = np.where(_build_mask(has_penalty, s), loss, 0.0)
        gain = gain - (loss if form == "eq1" else w * loss)
    total = np.where(mask, gain, 0.0).sum(axis=-1)
    if form != "eq1":
        return np.asarray(total)
    # Equation 1 takes a mean over references although its weights sum to 1 already.
    count = mask.sum(axis=-1)
    return np.asarray(np.divide(total, count, out=np.zeros(len(s)), where=count > 0))


def _build_mask(present: ArrayLike | None, values: Floats) -> Bools:
    if present is None:
        return np.ones(values.shape, dtype=bool)
    return np.broadcast_to(np.atleast_1d(np.asarray(present, dtype=bool)), values.shape)
