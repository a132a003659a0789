"""Entailers side by side: figures by hand, differences, and the line that is printed."""

from __future__ import annotations

import numpy as np

from lab.training.measure import measured, row
from lab.training.sets import Item

ITEMS = [Item("p", str(n), n % 2, f"d{n}") for n in range(40)]
TRUTH = np.array([item.label == 0 for item in ITEMS])


def test_figures_and_differences() -> None:
    right, blind = np.where(TRUTH, 0.9, 0.1), np.full(40, 0.7)
    made = measured("x", {"blind": blind, "right": right}, ITEMS)
    assert (made["n"], made["supported"]) == (40, 20)
    assert made["blind"]["auc"] == [0.5, 0.5, 0.5]
    assert made["right"]["auc"] == [1, 1, 1]
    assert made["right"]["above_first"] == [0.5, 0.5]
    assert made["blind"]["above_first"] == [0, 0]
    assert (made["blind"]["true_passed"], made["blind"]["false_passed"]) == (1, 1)
    assert made["right"]["calibration_error"] == 0.1
    line = row("x", made, ["blind", "right"])
    assert line == "| x | 40 (20) | 0.500 0.50 0.20 | 1.000 (+0.500 +0.500) 1.00 0.10 |"
