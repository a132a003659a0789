"""The directions of parts; that every written part has one is checked in all tests of metrics."""

from __future__ import annotations

import pytest

from trustassay.core.metric import Mean, Metric, Quantile, Total
from trustassay.metrics.harmonicity import Harmonicity
from trustassay.metrics.judge import Judge


def test_every_part_behind_a_figure_is_declared(own_metric: type[Metric]) -> None:
    statistics = [figure.statistic for figure in own_metric().figures.values()]
    parts = {one.of for one in statistics if isinstance(one, Mean | Quantile | Total)} - {"score"}
    assert own_metric.part_directions
    assert {part for part in parts if own_metric().direction_of(part) is None} == set()
    assert set(own_metric.part_directions.values()) <= {"higher", "lower", ""}


@pytest.mark.parametrize(
    ("metric", "part", "direction"),
    [
        (Harmonicity(), "angle_degrees", "lower"),
        (Judge(), "mean:gpt", "higher"),
        (Judge(), "votes:5", ""),
        (Judge(), "nothing:5", None),
    ],
)
def test_a_name_with_a_colon_stands_for_all_that_begin_so(
    metric: Metric, part: str, direction: str | None
) -> None:
    assert metric.direction_of(part) == direction
