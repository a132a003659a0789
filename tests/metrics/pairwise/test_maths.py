"""What choices in both orders amount to: by hand, by properties, and on published judgements."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trustassay.metrics.pairwise import metric

SHARED = Path(os.environ.get("TRUSTASSAY_SHARED", "../shared")).resolve()
JUDGED = SHARED / "data" / "pairwise-judgements"
CHOICE = st.sampled_from(metric.CHOICES)


def counted(choices: Iterable[tuple[str | None, str | None]]) -> np.ndarray:
    """Return the table of the choices in both orders, shape (4, 4)."""
    table = np.zeros((4, 4))
    for first, swapped in choices:
        table[metric.CHOICES.index(first), metric.CHOICES.index(swapped)] += 1
    return table


TABLES = st.lists(st.tuples(CHOICE, CHOICE), min_size=1, max_size=60).map(counted)


def shares(table: np.ndarray) -> list[float]:
    return [metric.compute_rate(name, table) for name in ("win_share", "loss_share", "tie_share")]


@pytest.mark.parametrize(
    ("first", "swapped", "expected"),
    [
        ("A", "B", "win"),
        ("B", "A", "loss"),
        ("A", "A", "inconsistent"),
        ("B", "B", "inconsistent"),
        ("A", "C", "unsure"),
        ("C", "C", "unsure"),
        ("C", "B", "unsure"),
        (None, "B", "unreadable"),
        ("C", None, "unreadable"),
    ],
)
def test_a_win_takes_the_same_answer_in_both_orders(
    first: str | None, swapped: str | None, expected: str
) -> None:
    assert metric.decide_outcome(first, swapped) == expected


def test_another_choice_is_refused() -> None:
    with pytest.raises(ValueError, match="'D'"):
        metric.decide_outcome("A", "D")


def test_figures_by_hand() -> None:
    """Three wins, one loss, one tie, two for the first place, one unreadable."""
    choices = [("A", "B")] * 3 + [("B", "A"), ("A", "C"), ("A", "A"), ("A", "A"), ("A", None)]
    table = counted(choices)
    assert metric.count_outcomes(table) == {
        "win": 3,
        "loss": 1,
        "unsure": 1,
        "inconsistent": 2,
        "unreadable": 1,
    }
    assert metric.compute_rate("win_rate", table) == 75
    assert shares(table) == pytest.approx([300 / 7, 100 / 7, 300 / 7])
    # A is chosen 3 + 1 + 4 + 1 times, B 4 times: 3 wins and 1 loss hold one of each.
    assert metric.compute_rate("first_chosen", table) == pytest.approx(100 * 10 / 14)


def test_nothing_won_or_lost_has_no_rate() -> None:
    table = counted([("A", "A"), ("C", "B")])
    assert np.isnan(metric.compute_rate("win_rate", table))


@given(TABLES)
def test_the_other_side_of_every_figure(table: np.ndarray) -> None:
    """With the answers exchanged wins are losses; shares sum to 100; all counts are kept."""
    other = table.T
    if table[0, 1] + table[1, 0]:
        assert metric.compute_rate("win_rate", table) + metric.compute_rate(
            "win_rate", other
        ) == pytest.approx(100)
    assert sum(metric.count_outcomes(table).values()) == table.sum()
    if table[:3, :3].sum():
        own, others = shares(table), shares(other)
        assert sum(own) == pytest.approx(100)
        assert own[0] == pytest.approx(others[1])
    if table[:2].sum() + table[:, :2].sum():
        assert 0 <= metric.compute_rate("first_chosen", table) <= 100
        assert metric.compute_rate("first_chosen", table) == pytest.approx(
            metric.compute_rate("first_chosen", other)
        )


def test_every_pair_of_choices_is_counted() -> None:
    table = counted(product(metric.CHOICES, metric.CHOICES))
    assert (table == 1).all()


@pytest.mark.skipif(not JUDGED.exists(), reason=f"no {JUDGED}; set TRUSTASSAY_SHARED")
def test_published_judgements_in_both_orders() -> None:
    """80 verdicts on guanaco-65b against gpt-3.5: 19 won, 17 lost, 44 dropped."""
    orders: list[dict[int, str]] = []
    for name in sorted(JUDGED.glob("*.jsonl")):  # guanaco first, then gpt-3.5 first
        rows = [json.loads(line) for line in name.read_text("utf-8").splitlines()]
        orders.append({row["question_id"]: "?ABC"[row["score"]] for row in rows})
    assert len(orders) == 2
    table = counted((orders[0][key], orders[1][key]) for key in orders[0])
    counts = metric.count_outcomes(table)
    assert (counts["win"], counts["loss"]) == (19, 17)
    assert (counts["inconsistent"], counts["unsure"], counts["unreadable"]) == (17, 27, 0)
    assert (table[0, 0], table[1, 1]) == (17, 0)
    assert metric.compute_rate("win_rate", table) == pytest.approx(52.8, abs=0.05)
    assert shares(table) == [23.75, 21.25, 55.0]
    assert metric.compute_rate("first_chosen", table) == pytest.approx(71.65, abs=0.01)
