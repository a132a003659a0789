"""What the pages are held to: budgets of words, and figures taken from measured results.

    python -m tests.docs.guide            # put today's figures into the pages (make figures)

A page writes a figure as ``<!-- figure: FILE#KEY/KEY -->.923<!-- /figure -->``. FILE is a JSON file
below the repository's root, or a name in ``benchmarks/results`` without ``.json``; ``measured`` is
``src/trustassay/backends/weights/measured.json``. A KEY of a list is a number, or ``FIELD=VALUE``
for the entry with that value.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from tests.docs.pages import DOCS, PAGES, ROOT

MEASURED = ROOT / "src/trustassay/backends/weights/measured.json"
RESULTS = ROOT / "benchmarks/results"
BUDGETS: dict[str, tuple[int, tuple[str, ...]]] = {
    "first": (1400, ("index.md", "start.md", "low-scores.md")),
    "errands": (2500, ("errands/*.md",)),
    "choose": (1500, ("which-metric.md",)),
    "methods": (9100, ("methods/*.md",)),
    "input": (1400, ("input.md",)),
    "models": (4500, ("models/*.md",)),
    "runs": (4000, ("runs.md", "intervals.md", "monitoring.md", "privacy.md", "big-runs.md")),
    "live": (3500, ("live/*.md",)),
    "people": (3500, ("people/*.md",)),
    "data and papers": (1600, ("data.md", "papers.md")),
    "contributing": (2000, ("../CONTRIBUTING.md", "architecture.md")),
}
"""The words that each group of pages may have, tables and code included; 35,000 in all."""
_FIGURE = re.compile(
    r"(<!-- figure: (?P<file>[\w./-]+)#(?P<keys>[^>]+?) -->)(?P<shown>[^<]*)(<!-- /figure -->)"
)


def pages_of(group: str) -> list[Path]:
    """Return the pages of a group."""
    return sorted({page.resolve() for place in BUDGETS[group][1] for page in DOCS.glob(place)})


def words_of(group: str) -> int:
    """Return the words of a group's pages, as ``wc -w`` counts them."""
    return sum(len(page.read_text(encoding="utf-8").split()) for page in pages_of(group))


def value_of(file: str, keys: str) -> Any:
    """Return the value that a marker names.

    Raises:
        KeyError, IndexError, FileNotFoundError, StopIteration: no file holds it.
    """
    path = MEASURED if file == "measured" else RESULTS / f"{file}.json"
    path = ROOT / file if file.endswith(".json") else path
    value = json.loads(path.read_text(encoding="utf-8"))
    for key in keys.split("/"):
        if isinstance(value, list) and "=" in key:
            field, _, wanted = key.partition("=")
            value = next(one for one in value if str(one[field]) == wanted)
        else:
            value = value[int(key) if isinstance(value, list) else key]
    return value


def shown(value: Any, before: str) -> str:
    """Write a value with as many decimals as the page has now, and shares as ``.92``."""
    if not isinstance(value, float):
        return f"{value:,}" if isinstance(value, int) else str(value)
    decimals = len(before.partition(".")[2]) or 3
    text = f"{value:.{decimals}f}"
    return text.removeprefix("0") if not before.startswith("0") else text


def with_figures(text: str) -> str:
    """Return a page with the figures of today's files."""

    def figure(match: re.Match[str]) -> str:
        value = shown(value_of(match["file"], match["keys"]), match["shown"])
        return f"{match[1]}{value}{match[5]}"

    return _FIGURE.sub(figure, text)


if __name__ == "__main__":
    for page in PAGES:
        old = page.read_text(encoding="utf-8")
        if (new := with_figures(old)) != old:
            page.write_text(new, encoding="utf-8")
            print(page.relative_to(ROOT))
