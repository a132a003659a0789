"""The verdict of several passages, and its score."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trustassay.core.capabilities import Entailment
from trustassay.metrics.factcheck.metric import SCORES, decide_verdict
from trustassay.text.verdict_replies import ENTAILMENT_LABELS

SUPPORTS = Entailment(0.7, 0.2, 0.1)
REFUTES = Entailment(0.05, 0.05, 0.9)
OPEN = Entailment(0.3, 0.4, 0.3)


def test_the_scores_of_the_verdicts() -> None:
    assert SCORES == {"support": 1.0, "neutral": 0.5, "contradict": 0.0}
    assert set(SCORES) == set(ENTAILMENT_LABELS)


@pytest.mark.parametrize(
    ("rows", "rule", "expected"),
    [
        ([], "support", ("neutral", None)),
        ([OPEN], "support", ("neutral", None)),
        ([OPEN, SUPPORTS], "support", ("support", 1)),
        ([OPEN, REFUTES], "support", ("contradict", 1)),
        ([REFUTES, SUPPORTS], "support", ("support", 1)),
        ([REFUTES, SUPPORTS], "stronger", ("contradict", 0)),
        ([SUPPORTS, SUPPORTS], "stronger", ("support", 0)),
        ([Entailment(0.5, 0, 0.5)], "stronger", ("support", 0)),
        ([Entailment(0.5, 0, 0.5)], "support", ("support", 0)),
    ],
)
def test_the_best_passage_decides(rows: list[Entailment], rule: str, expected: object) -> None:
    assert decide_verdict(rows, 0.5, rule) == expected  # type: ignore[arg-type]


def test_the_threshold_holds_for_both() -> None:
    assert decide_verdict([SUPPORTS], 0.7).verdict == "support"
    assert decide_verdict([SUPPORTS], 0.71).verdict == "neutral"
    assert decide_verdict([REFUTES], 0.91).verdict == "neutral"
    assert decide_verdict([SUPPORTS, REFUTES], 0.8) == ("contradict", 1)


PROBABILITIES = st.tuples(*[st.floats(0.01, 1)] * 3).map(
    lambda raw: Entailment(*(value / sum(raw) for value in raw))
)


@given(st.lists(PROBABILITIES, min_size=1, max_size=6), st.floats(0.05, 1))
def test_properties(rows: list[Entailment], threshold: float) -> None:
    verdict, place = decide_verdict(rows, threshold)
    assert (place is None) == (verdict == "neutral")
    stronger = decide_verdict(rows, threshold, "stronger").verdict
    # The rule matters only where both are reached; more evidence of support never hurts.
    assert stronger in (verdict, "contradict")
    assert (stronger == "neutral") == (verdict == "neutral")
    assert decide_verdict([*rows, Entailment(1, 0, 0)], threshold).verdict == "support"
