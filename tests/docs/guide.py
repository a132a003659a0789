"""What the pages are held to: budgets of words, and figures taken from measured results.

    python -m tests.docs.guide            # put today's figures into the pages (make figures)

``docs/_site/figures.py`` describes how a page names a figure; the site's build uses it, too.
"""

from __future__ import annotations

import re
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import tables

from tests.docs.pages import DOCS, PAGES, ROOT

SITE = runpy.run_path(str(DOCS / "_site/figures.py"))
MEASURED: Path = SITE["MEASURED"]
NoFigureError: type[LookupError] = SITE["NoFigureError"]
value_of: Callable[[str, str], Any] = SITE["value_of"]
with_figures: Callable[[str], str] = SITE["with_figures"]
BUDGETS: dict[str, tuple[int, tuple[str, ...]]] = {
    "first": (1400, ("index.md", "start.md", "low-scores.md")),
    "errands": (2400, ("errands/*.md",)),
    "choose": (1500, ("which-metric.md",)),
    "methods": (9600, ("methods/*.md",)),
    "input": (1000, ("input.md",)),
    "models": (4300, ("models/*.md",)),
    "runs": (
        4800,
        ("runs.md", "view.md", "intervals.md", "monitoring.md", "privacy.md", "big-runs.md"),
    ),
    "live": (3550, ("live/*.md",)),
    "people": (3150, ("people/*.md",)),
    "data and papers": (1250, ("data.md", "papers.md")),
    "contributing": (2050, ("../CONTRIBUTING.md", "architecture.md")),
}
"""The words that each group of pages may have, tables and code included; 35,000 in all."""
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)


def pages_of(group: str) -> list[Path]:
    """Return the pages of a group."""
    return sorted({page.resolve() for place in BUDGETS[group][1] for page in DOCS.glob(place)})


def words_of(group: str) -> int:
    """Return the words of a group's pages, as ``wc -w`` counts them without comments."""
    texts = (page.read_text(encoding="utf-8") for page in pages_of(group))
    return sum(len(_COMMENT.sub("", text).split()) for text in texts)


if __name__ == "__main__":
    tables.PAGE.write_text(tables.page(), encoding="utf-8")
    for page in PAGES:
        old = page.read_text(encoding="utf-8")
        if (new := with_figures(old)) != old:
            page.write_text(new, encoding="utf-8")
            print(page.relative_to(ROOT))
