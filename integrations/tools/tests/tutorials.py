"""Runs a section of docs/live/tools.md, and compares what it prints with what stands there.

    python integrations/tools/tests/tutorials.py        # put in what is printed today

A section runs if the tool that its first code imports is installed.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[3]
sys.path[:0] = [str(ROOT)]

from tests.docs.pages import Printed, filled_in, run_page

PAGE = ROOT / "docs" / "live/tools.md"
RUN_HERE = "the tests of the integration run it"
"""The reason above code that the other tests of the documentation do not run."""


def section(title: str) -> str:
    """Return the section of this title."""
    found = re.search(
        rf"^## {re.escape(title)}\n.*?(?=^## |\Z)",
        PAGE.read_text("utf-8"),
        re.MULTILINE | re.DOTALL,
    )
    assert found, f"{PAGE.name} has no section {title!r}"
    return found[0]


def run_section(title: str, folder: Path) -> list[Printed]:
    """Run the code of a section in an empty folder; return what it says and what it prints."""
    return run_page(as_executed(section(title)), folder, run=RUN_HERE)


def as_executed(text: str) -> str:
    """Return a section as a part of a page that runs as it stands."""
    return f"<!-- executed -->\n{text}\n<!-- /executed -->\n"


def titles() -> Iterator[str]:
    yield from re.findall(r"^## (.+)$", PAGE.read_text("utf-8"), re.MULTILINE)


def main() -> None:
    for title in titles():
        with tempfile.TemporaryDirectory() as folder:
            try:
                printed = run_section(title, Path(folder))
            except ImportError as error:
                print(f"{title}: {error}")
                continue
        before = section(title)
        after = filled_in(as_executed(before), printed)
        after = after.removeprefix("<!-- executed -->\n").removesuffix("\n<!-- /executed -->\n")
        PAGE.write_text(PAGE.read_text("utf-8").replace(before, after))
        print(f"{title}: {sum(not one.agrees() for one in printed)} of {len(printed)} changed")


if __name__ == "__main__":
    main()
