"""The ranking of samples by likeness to right and wrong answers."""

import pytest

from trustassay.papers.experiments.fewl import truthfulqa_score


def test_truth_of_an_answer_is_the_tqa_metric() -> None:
    assert truthfulqa_score([0.2, 0.7], [0.4, 0.1]) == pytest.approx(0.3)
    with pytest.raises(ValueError, match="at least"):
        truthfulqa_score([0.2], [])
