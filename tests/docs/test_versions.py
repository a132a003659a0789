"""Pages, pictures and messages name no other version of the entailer than the one that ships."""

from __future__ import annotations

import json
import re
import runpy
from collections.abc import Callable
from pathlib import Path

import pytest

import trustassay
from tests.docs.guide import MEASURED, SITE, TABLE, find_places, read_table
from tests.docs.pages import DOCS, PAGES, ROOT

SHIPPED = trustassay.entailer("embedded").name.partition(":")[2]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
PICTURES = sorted((DOCS / "images").glob("*.svg"))
RESULTS = sorted((ROOT / "lab/results").glob("*.md"))
_NAMES = runpy.run_path(str(DOCS / "_site/versions.py"))
others: Callable[[str], list[str]] = _NAMES["others"]


def test_the_build_of_the_site_knows_the_shipped_version() -> None:
    assert _NAMES["SHIPPED"] == SHIPPED


def test_no_other_version_is_named() -> None:
    for path in (*PAGES, TABLE, *PICTURES, *SOURCES):
        assert not others(path.read_text(encoding="utf-8")), f"{path}: embedded:{SHIPPED} ships"


@pytest.mark.parametrize(
    "text",
    ["embedded:999", "the entailer, version 999", "version 999 of the embedded entailer"],
)
def test_another_version_is_noticed(text: str) -> None:
    assert others(text) == ["999"]


def test_pictures_are_of_the_shipped_version() -> None:
    assert not SITE["old_pictures"](f"embedded:{SHIPPED}"), "python -m lab.benchmarks.pictures"


def test_pictures_of_another_version_or_origin_are_noticed(tmp_path: Path) -> None:
    (tmp_path / "report.png").write_bytes((DOCS / "images/report.png").read_bytes())
    (tmp_path / "annotate.png").write_bytes(b"of unknown origin")
    assert SITE["old_pictures"](f"embedded:{SHIPPED}", tmp_path) == ["annotate.png"]
    assert SITE["old_pictures"]("embedded:999", tmp_path) == ["annotate.png", "report.png"]


@pytest.mark.parametrize("path", RESULTS, ids=lambda path: path.name)
def test_a_table_of_an_old_version_says_so_first(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"version \d+, shipped", text)
    if set(others(text)) - set(_compared(text)):
        first = text.split("\n\n", 2)[1]
        assert re.search(r"version \d+\b.*\d{4}-\d\d-\d\d", first, re.DOTALL), first


def _compared(text: str) -> list[str]:
    """Return the old versions that a table of the shipped one is compared with."""
    return others(text) if f"version {SHIPPED} of the embedded entailer" in text else []


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if page.parent.name != "api"],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_measured_figures_are_taken_from_files(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    name = page.relative_to(ROOT).as_posix()
    for start, end, _ in reversed(find_places(text, name, read_table())):
        text = text[:start] + text[end:]
    text = re.sub(r"^ *```.*?^ *```$", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"<!-- executed -->.*?<!-- /executed -->", "", text, flags=re.DOTALL)
    text = re.sub(r'"[^"]*"', "", text)  # how to publish what is printed above
    assert not re.findall(r"(?<![\w.])\.\d{2,3}\b", text), (
        f"{name}: a row of docs/_site/figures.csv names the file of each measured figure"
    )


def test_what_the_tool_says_of_the_entailer_is_in_the_results() -> None:
    measured = json.loads(MEASURED.read_text(encoding="utf-8"))[f"embedded:{SHIPPED}"]
    folder = ROOT / "lab/results"
    table = (folder / "faithfulness.md").read_text(encoding="utf-8")
    for one in measured["sets"]["faithfulness"]:
        value, low, high = (f"{x:.3f}"[1:] for x in (one["auc"], *one["interval"]))
        row = next(line for line in table.splitlines() if line.startswith(f"| {one['set']}"))
        assert f"| {one['n']:,} (" in row
        assert f"| {value} ({low} to {high}) |" in row
    results = json.loads((folder / "entailer.json").read_text(encoding="utf-8"))
    assert results["version"] == f"embedded:{SHIPPED}"
    of_sets = {one["set"]: (one["n"], one["auc"]) for one in results["sets"]}
    for one in measured["sets"]["pairs"]:
        assert of_sets[one["set"]] == (one["n"], one["auc"])
    assert {key: results["near_copies"][key] for key in ("n", "auc", "interval")} == measured[
        "near_copies"
    ]
