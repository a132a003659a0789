"""The figures over resamples: equal to the summary of the answers written out."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest

from tests.metrics.grounding.helpers import Knows, run_of
from tests.metrics.grounding.test_summary import A, mixed
from trustassay.metric import Assessment
from trustassay.metrics import Grounding


@pytest.mark.parametrize("correctness", ["em", "none"])
def test_figures_are_those_of_the_answers_repeated(correctness: Literal["em", "none"]) -> None:
    run = run_of(mixed(), A, correctness=correctness)
    rows = [*run.assessments, Assessment.failed("x", "grounding", "no")]
    metric = Grounding(correctness=correctness)
    n = len(rows)
    weights = np.random.default_rng(0).multinomial(n, np.full(n, 1 / n), size=15).astype(float)
    found = metric.weighted(rows).figures(weights)
    compared = 0
    for draw, counts in enumerate(weights):
        written = [one for one, count in zip(rows, counts, strict=True) for _ in range(int(count))]
        for key, value in metric.summarise(written).values.items():
            if value is not None and key in found:
                digits = 0.006 if key == "answered_ratio" else 1e-9
                assert found[key][draw] == pytest.approx(value, abs=digits), key
                compared += 1
    assert compared > 200


def test_inputs_are_what_a_figure_is_made_of() -> None:
    rows = list(run_of(mixed(), Knows({"A is.": ["1"]}), correctness="em").assessments)
    other = list(run_of(mixed(), A, correctness="em").assessments)
    metric = Grounding(correctness="em")
    one, two = metric.weighted(rows), metric.weighted(other)
    for key, changed in (("macro_f1", False), ("trust_score", True), ("refuse_f1", False)):
        differ = (one.inputs(key) != two.inputs(key)).any()
        assert bool(differ) == changed, key
