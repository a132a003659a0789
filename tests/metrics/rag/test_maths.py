"""Figures by hand, and their bounds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trustassay.metrics.rag.metric import average_precision, compute_figures


def test_the_figures_of_an_answer_by_hand() -> None:
    # four facts: said and retrieved; said alone; retrieved alone; neither
    facts = np.array([[1, 1, 0, 0], [1, 0, 1, 0]], bool)
    # five statements: right and retrieved; right alone; noise of a relevant passage; of another;
    # made up
    said = np.array([[1, 1, 0, 0, 0], [1, 0, 1, 1, 0], [1, 0, 1, 0, 0]], bool)
    assert compute_figures(facts, said, np.array([0, 1, 1], bool)) == pytest.approx(
        {
            "claim_recall": 2 / 4,
            "claim_precision": 2 / 5,
            "f1": 4 / 9,
            "context_recall": 2 / 4,
            "context_utilization": 1 / 2,
            "context_precision": (1 / 2 + 2 / 3) / 2,
            "faithfulness": 3 / 5,
            "noise_sensitivity_relevant": 1 / 5,
            "noise_sensitivity_irrelevant": 1 / 5,
            "hallucination": 1 / 5,
            "self_knowledge": 1 / 5,
        }
    )


def test_what_has_no_denominator_is_absent() -> None:
    nothing = np.zeros((3, 0), bool)
    found = compute_figures(np.array([[0], [0]], bool), nothing, np.zeros(0, bool))
    assert found == {"claim_recall": 0, "context_recall": 0, "f1": 0}
    assert (
        compute_figures(np.array([[0], [1]], bool), nothing, np.ones(1, bool))[
            "context_utilization"
        ]
        == 0
    )


@given(st.lists(st.booleans(), min_size=1, max_size=8))
def test_average_precision_is_that_of_scikit_learn(relevant: list[bool]) -> None:
    from sklearn.metrics import average_precision_score

    value = average_precision(np.array(relevant))
    wanted = average_precision_score(relevant, -np.arange(len(relevant))) if any(relevant) else 0
    assert value == pytest.approx(wanted)
    assert value == 1 or not all(relevant)
