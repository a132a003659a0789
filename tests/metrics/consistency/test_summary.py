"""Figures over a data set, from assessments made by hand."""

from __future__ import annotations

import numpy as np
import pytest

from trustassay.core.metric import Assessment
from trustassay.metrics import Consistency
from trustassay.metrics.consistency.maths import (
    ChoiceCheck,
    count_choices,
    score_bounds,
    share_consistent,
    trust_bc,
)
from trustassay.statistics.intervals import mean_interval

METRIC = Consistency()


def made(name: str, *checks: ChoiceCheck, short: bool = False) -> Assessment:
    score = trust_bc(checks, len(checks), unparsed_counts=False)
    verdict = {1.0: "consistent", 0.0: "inconsistent"}.get(score) if score is not None else None
    parts: dict[str, float] = {"candidates": 40, "short": int(short), **count_choices(checks)}
    if (share := share_consistent(checks, unparsed_counts=False)) is not None:
        parts["share_consistent"] = share
    if checks:
        parts["lowest"], parts["highest"] = score_bounds(score)
        parts["open"] = float(score is None)
    return Assessment(name, METRIC.name, score, verdict=verdict, parts=parts)


def test_answers_and_choices_are_counted_apart() -> None:
    found = METRIC.summarise(
        [
            made(
                "kept", ChoiceCheck(0, 0), ChoiceCheck(1, 1), ChoiceCheck(2, 2), ChoiceCheck(3, 3)
            ),
            made("left", ChoiceCheck(1, 1), ChoiceCheck(2, 0)),
            made("none", ChoiceCheck(3, 4)),
            made("mute", ChoiceCheck(0, None, asked_again=True), ChoiceCheck(1, 1), short=True),
            made("bare", short=True),
            Assessment.for_failure("dead", METRIC.name, "the line is dead"),
        ]
    )
    assert list(found.values) == list(METRIC.figures)
    assert "written" not in found.values  # no generator
    assert (found.n, found.failed) == (6, 1)
    values = {name: value for name, value in found.values.items() if "_" not in name[-2:]}
    assert values == pytest.approx(
        {
            "mean": 1 / 3,
            "mean_low": 1 / 4,
            "mean_high": 2 / 4,
            "open": 1.0,
            "consistent": 100 / 3,
            "assessable": 60.0,
            "share": (1 + 1 / 2 + 0 + 1) / 4,
            "checks_consistent": 100 * 6 / 8,
            "none_chosen": 100 / 8,
            "asked_again": 100 / 9,
            "unparsed": 100 / 9,
            "checks": 9 / 5,
            "short": 2.0,
            # chosen 2, 3, 1, 1 of 7; offered 1, 3, 2, 2 of 8
            "position_bias": (abs(2 / 7 - 1 / 8) + abs(3 / 7 - 3 / 8) + 2 * abs(1 / 7 - 2 / 8)) / 2,
        }
    )
    offered = [found.values[f"offered_{x}"] for x in "abcd"]
    chosen = [found.values[f"chosen_{x}"] for x in "abcd"]
    assert offered == pytest.approx([12.5, 37.5, 25, 25])
    assert chosen == pytest.approx([25, 37.5, 12.5, 12.5])
    assert (
        found.without_interval["checks_consistent"] == "too few samples: 5; at least 40 are needed"
    )


def test_without_any_check_figures_do_not_apply() -> None:
    found = METRIC.summarise([made("bare"), made("bare too")])
    assert found.values["assessable"] == 0
    assert found.values["mean"] is None
    assert found.not_applicable["checks_consistent"] == "no reply names an option"
    assert found.not_applicable["unparsed"] == "no choice was asked for"
    assert found.not_applicable["position_bias"] == "no option from A to D was chosen"
    nothing = METRIC.summarise([Assessment.for_failure("dead", METRIC.name, "dead")])
    assert nothing.not_applicable["assessable"] == "no sample was scored"


def test_the_interval_of_a_share_of_choices_is_over_answers() -> None:
    """Half the answers keep to themselves in all of two choices, half in none of one."""
    rows = [made(f"a{i}", ChoiceCheck(0, 0), ChoiceCheck(1, 1)) for i in range(30)]
    rows += [made(f"b{i}", ChoiceCheck(0, 1)) for i in range(30)]
    found = METRIC.summarise(rows)
    assert found.values["checks_consistent"] == pytest.approx(100 * 60 / 90)
    x = np.array([2.0] * 30 + [0.0] * 30)
    n = np.array([2.0] * 30 + [1.0] * 30)
    variance = float((((x - 2 / 3 * n) / n.sum()) ** 2).sum())
    low, high = mean_interval(2 / 3, variance, 90**2 / float((n**2).sum()))
    assert found.intervals["checks_consistent"] == pytest.approx((100 * low, 100 * high))
    assert found.without_interval["position_bias"] == "a distance is above 0 even by chance"


def test_the_interval_holds_the_true_share_of_choices() -> None:
    """Answers differ in how likely they are kept to."""
    rng, held = np.random.default_rng(0), 0
    for _ in range(50):
        rows = []
        for i in range(60):
            likely = rng.beta(2, 1)
            kept = rng.random(rng.integers(1, 11)) < likely
            rows.append(made(str(i), *(ChoiceCheck(0, 0 if one else 1) for one in kept)))
        low, high = METRIC.summarise(rows).intervals["checks_consistent"]
        held += low <= 100 * 2 / 3 <= high
    assert held >= 45
