import numpy as np

from lab.training.agreement import auc, best_balanced_accuracy, resamples
from lab.training.combine import logistic

SCORES = np.array([0.9, 0.6, 0.6, 0.2])
TRUTH = np.array([True, True, False, False])


def test_auc_counts_ties_half() -> None:
    # pairs: .9>.6, .9>.2, .6=.6 (half), .6>.2 -> 3.5 of 4
    assert auc(SCORES, TRUTH) == 3.5 / 4


def test_balanced_accuracy() -> None:
    # at 0.5: both supported found, one of two others rejected
    assert best_balanced_accuracy(SCORES, TRUTH) == 0.75


def test_claims_are_drawn_whole() -> None:
    for pick in resamples(["a", "a", "b"], "x")[:20]:
        assert list(pick).count(0) == list(pick).count(1)


def test_logistic_recovers_weights() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(20000, 2))
    y = rng.random(20000) < 1 / (1 + np.exp(-(0.5 + x @ [1.0, -2.0])))
    beta = logistic(x, y, np.ones(20000))
    assert np.allclose(beta, [0.5, 1.0, -2.0], atol=0.1)
