"""The site's page of figures names every figure of every built-in metric."""

from __future__ import annotations

import runpy

from tests.docs.pages import DOCS
from tests.support import metric_names
from trustassay.core.registry import metric_from_text

BUILT = runpy.run_path(str(DOCS / "_site/all_figures.py"))


def test_the_page_of_figures_has_all_that_a_metric_declares() -> None:
    page = BUILT["page"]()
    for name in BUILT["METRICS"]:
        for figure in metric_from_text(name).figures.values():
            assert f"| `{figure.key}` | {figure.unit} | {figure.explanation} |" in page


def test_no_metric_is_missing() -> None:
    named = {name.partition(":")[0] for name in BUILT["METRICS"]} | {"grounding"}
    assert set(metric_names()) <= named
