"""Which labels give a corrected share (the estimates: tests/statistics/test_corrected.py)."""

from __future__ import annotations

import numpy as np

from trustassay.compare.corrected import JudgedAnswers, estimate_stratified_rate

NAN = float("nan")


def judge_answers(labelled: np.ndarray) -> JudgedAnswers:
    """Return 200 answers that passed, then 200 that failed, the worst of each last; all right."""
    strata = np.repeat([0, 1], 200)
    labels = np.where(labelled, 1.0, NAN)
    units = np.arange(400)
    names = ("passed", "failed")
    badness = np.arange(400.0)
    return JudgedAnswers(strata, badness, badness, strata == 0, labels, units, np.zeros(400), names)


def test_labels_at_random_give_a_share_and_what_has_to_be_true() -> None:
    rng = np.random.default_rng(1)
    rate, note = estimate_stratified_rate(judge_answers(rng.random(400) < 0.3), rng)
    assert rate is not None
    assert rate.value == 1
    assert note == "Assumes that within each outcome the labelled answers were drawn at random."


def test_an_outcome_with_few_labels_gives_no_share() -> None:
    rate, why = estimate_stratified_rate(
        judge_answers(np.arange(400) >= 197), np.random.default_rng(1)
    )
    assert rate is None
    assert why.endswith("draw at random and label 2 more of the 200 answers with outcome passed")


def test_labels_that_were_chosen_by_score_in_any_outcome_give_none() -> None:
    places = np.arange(400)
    worst_passed, drawn_failed = (places >= 150) & (places < 200), places % 4 == 0
    for labelled, words in (
        (worst_passed | (drawn_failed & (places >= 200)), "outcome passed have the worst"),
        ((drawn_failed & (places < 200)) | ((places >= 200) & (places < 250)), "have the best"),
    ):
        rate, why = estimate_stratified_rate(judge_answers(labelled), np.random.default_rng(1))
        assert rate is None
        assert words in why
