"""The built site finds pages by what people type, and its tables fit a telephone.

It is built by mkdocs, which ``make docs`` and ``make nightly`` install.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.docs.pages import DOCS, ROOT
from tests.docs.test_guide import QUERIES

pytestmark = pytest.mark.slow
TELEPHONE = 420
"""Pixels."""
WIDER = """() => [...document.querySelectorAll("article table:not(.highlighttable)")]
    .filter((table) => [...table.rows].some(
        (row) => row.lastElementChild.getBoundingClientRect().right > innerWidth)).length"""
"""A script that counts the tables whose last column is cut off."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("mkdocs", reason="mkdocs is not installed: make docs")
    pytest.importorskip("material", reason="mkdocs-material is not installed: make docs")
    folder = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "-q", "-d", str(folder)]
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    subprocess.run(build, cwd=ROOT, check=True, env=quiet)
    return folder


def test_it_finds_the_page(site: Path) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    mkdocs = pytest.importorskip("mkdocs")
    lunr = Path(mkdocs.__file__).parent / "contrib/search/templates/search/lunr.js"
    index = site / "search/search_index.json"
    script = ROOT / "tests/docs/search.js"
    asks = [node, *map(str, (script, lunr, index)), json.dumps([*QUERIES])]
    found = json.loads(subprocess.run(asks, check=True, capture_output=True).stdout)
    missed = {q: found[q] for q, page in QUERIES.items() if f"{page}.html" not in found[q]}
    assert not missed
    assert '"location":"api/' not in index.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def telephone() -> Iterator[Any]:
    browser = shutil.which("chromium")
    if browser is None:
        pytest.skip("chromium is not installed")
    api = pytest.importorskip("playwright.sync_api")
    with api.sync_playwright() as playwright:
        shown = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        yield shown.new_page(viewport={"width": TELEPHONE, "height": 900})
        shown.close()


def test_the_last_column_of_each_table_is_seen_on_a_telephone(site: Path, telephone: Any) -> None:
    wide = {}
    for page in DOCS.rglob("*.md"):
        name = page.relative_to(DOCS)
        if name.parts[0] != "api":
            telephone.goto((site / name).with_suffix(".html").as_uri())
            wide[str(name)] = telephone.evaluate(WIDER)
    assert not {name: tables for name, tables in wide.items() if tables}


def test_a_table_that_is_too_wide_is_noticed(telephone: Any) -> None:
    cells = f"<td>{'x' * 100}</td><td>y</td>"
    telephone.set_content(f"<article><table><tr>{cells}</tr></table></article>")
    assert telephone.evaluate(WIDER) == 1
