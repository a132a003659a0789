"""docs/api/figures.md names every figure of every built-in metric, as the program explains it."""

from __future__ import annotations

from tests.docs.figures import METRICS, PAGE, page
from tests.support import metric_names


def test_the_page_of_figures_is_that_of_the_program() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "python -m tests.docs.figures"


def test_no_metric_is_missing() -> None:
    named = {name.partition(":")[0] for name in METRICS} | {"grounding"}
    assert set(metric_names()) <= named
