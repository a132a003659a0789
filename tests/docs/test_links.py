"""Links and anchors between the pages lead somewhere, and the site has every page in its menu."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.docs.pages import DOCS, ROOT

PAGES = sorted(
    [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        ROOT / "CHANGELOG.md",
        *(ROOT / "lab/results").glob("*.md"),
        *DOCS.rglob("*.md"),
    ]
)
FROM_OUTSIDE = {"contributing.md", "changelog.md", "api/figures.md"}
"""Pages that docs/_site/pages.py adds to the site."""
_CODE = re.compile(r"^( *)```.*?^\1```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)[^)]*\)")


def prose(page: Path) -> str:
    return _CODE.sub("", page.read_text(encoding="utf-8"))


@cache
def anchors(page: Path) -> frozenset[str]:
    """Return the anchors of a page's headings, as GitHub and the site make them."""
    fenceless = re.sub(
        r"^( *)```.*?^\1```$",
        "",
        page.read_text(encoding="utf-8"),
        flags=re.MULTILINE | re.DOTALL,
    )
    found: list[str] = []
    for heading in re.findall(r"^#{1,6} +(.+)$", fenceless, re.MULTILINE):
        text = unicodedata.normalize("NFKD", heading.replace("`", ""))
        plain = re.sub(r"[^\w\s-]", "", text.encode("ascii", "ignore").decode()).strip().lower()
        slug = re.sub(r"[\s-]+", "-", plain)
        found.append(f"{slug}_{found.count(slug)}" if slug in found else slug)
    return frozenset(found)


def broken(page: Path) -> Iterator[str]:
    """Yield the links of a page that lead nowhere in the repository."""
    for target in _LINK.findall(prose(page)):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        if not there.exists():
            yield f"{target}: no such file"
        elif anchor and anchor not in anchors(there):
            yield f"{target}: no such heading in {there.name}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_and_anchors_lead_somewhere(page: Path) -> None:
    assert not list(broken(page))


def test_a_broken_link_is_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Here it is\n[a](#here-it-is) [b](#there) [c](no.md) `[d](no.md)`\n")
    assert [line.partition(":")[0] for line in broken(page)] == ["#there", "no.md"]


def test_every_example_is_linked_from_a_page() -> None:
    linked = {
        (page.parent / target.partition("#")[0]).resolve()
        for page in DOCS.rglob("*.md")
        for target in _LINK.findall(prose(page))
    }
    examples = [path for path in (DOCS / "examples").iterdir() if path.is_file()]
    assert examples
    assert [path.name for path in sorted(examples) if path.resolve() not in linked] == []


def menu(entries: Any) -> Iterator[str]:
    """Yield the pages of a menu, however deep."""
    if isinstance(entries, str):
        yield entries
    else:
        for entry in entries.values() if isinstance(entries, dict) else entries:
            yield from menu(entry)


def test_every_page_is_in_the_menu_once() -> None:
    settings = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    there = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")} | FROM_OUTSIDE
    assert sorted(menu(settings["nav"])) == sorted(there)


def test_the_site_loads_nothing_from_elsewhere() -> None:
    settings = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    assert settings["theme"]["font"] is False
    assert "analytics" not in settings["extra"]
    # Without a script of this name the offline plugin names one of another host.
    assert settings["extra"]["polyfills"] == ["_site/iframe-worker.js"]
    own = [path for path in (DOCS / "_site").iterdir() if path.suffix in (".js", ".css")]
    assert own
    for path in own:
        assert not re.search(r"^(?!//).*//", path.read_text(encoding="utf-8"), re.MULTILINE), path
