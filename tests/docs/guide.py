"""What the pages are held to: budgets of words, and figures taken from measured results.

    python -m tests.docs.guide            # put today's figures into the pages

``docs/_site/figures.csv`` has the place and the source of each figure, and ``figures.py`` beside it
describes the columns; the site's build uses them, too.
"""

from __future__ import annotations

import runpy
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from lab.benchmarks import tables

from tests.docs.pages import DOCS, PAGES, ROOT

SITE = runpy.run_path(str(DOCS / "_site/figures.py"))
MEASURED: Path = SITE["MEASURED"]
NoFigureError: type[LookupError] = SITE["NoFigureError"]
value_of: Callable[[str, str], Any] = SITE["value_of"]
TABLE: Path = SITE["TABLE"]
FigurePlace: Callable[[str, str, str, str], Any] = SITE["FigurePlace"]
read_table: Callable[[], Sequence[Any]] = SITE["read_table"]
find_places: Callable[[str, str, Sequence[Any]], list[tuple[int, int, Any]]] = SITE["find_places"]
with_figures: Callable[..., str] = SITE["with_figures"]
MAX_WORDS = 33_500
"""The words that the guide may have, tables and code included."""


if __name__ == "__main__":
    tables.PAGE.write_text(tables.page(), encoding="utf-8")
    for page in PAGES:
        old = page.read_text(encoding="utf-8")
        if (new := with_figures(old, page.relative_to(ROOT).as_posix())) != old:
            page.write_text(new, encoding="utf-8")
            print(page.relative_to(ROOT))
