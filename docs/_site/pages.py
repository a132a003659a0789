"""Brings the pages that stand beside docs/ into the site, and leads old addresses to new pages."""

from __future__ import annotations

import json
import posixpath
import re
from html import escape
from pathlib import Path

from all_figures import page as all_figures
from figures import NoFigureError, old_pictures, with_figures
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from versions import SHIPPED, others

OUTSIDE = {
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
"""Files of the repository's root by the name that they have in the site."""
RESULTS = "lab/results"
"""The folder of the tables, which are in the site but neither in its menu nor in its search."""
UNSEARCHED = ("api/", "results/", "changelog.md")
BOOSTED = {"errands/": 1.3, "start.md": 1.3}
MOVED = Path(__file__).with_name("moved.json")
"""Old addresses of pages, each with today's."""
_LINK = re.compile(r"(\]\()([^)\s:#]+)(?=[)#\s])")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages from outside of ``docs/``, and that of all figures."""
    if old := old_pictures(f"embedded:{SHIPPED}"):
        hint = "run python -m lab.benchmarks.pictures"
        raise PluginError(f"not taken from today's program: {', '.join(old)}; {hint}")
    root = Path(config.docs_dir).parent
    for name, page in OUTSIDE.items():
        files.append(_generated(config, page, root / name, root))
    for path in sorted((root / RESULTS).glob("*.md")):
        files.append(_generated(config, f"results/{path.name}", path, root))
    files.append(File.generated(config, "api/figures.md", content=all_figures()))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Let links out of ``docs/`` lead to the pages that were added."""
    here = page.file.src_uri
    if here.startswith(UNSEARCHED):
        page.meta["search"] = {"exclude": True}
    else:
        boosts = [boost for place, boost in BOOSTED.items() if here.startswith(place)]
        page.meta.setdefault("search", {"boost": max(boosts, default=1.0)})
    if page.file.generated_by:
        return markdown
    if named := others(markdown):
        raise PluginError(f"{here} names the entailer's version {named[0]}; {SHIPPED} ships")
    try:
        markdown = with_figures(markdown, f"docs/{here}")
    except NoFigureError as error:
        raise PluginError(f"{here}: {error}") from None
    return _linked(markdown, f"docs/{here}", here)


def on_post_build(config: MkDocsConfig) -> None:
    """Write a page at each old address that leads to today's."""
    for old, new in json.loads(MOVED.read_text(encoding="utf-8")).items():
        path = Path(config.site_dir, old).with_suffix(".html")
        address = posixpath.relpath(new, posixpath.dirname(old)).replace(".md", ".html")
        if path.exists():
            raise ValueError(f"{old} in {MOVED.name} is a page of today: remove it there")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            '<!doctype html><meta charset="utf-8"><title>Moved</title>'
            f'<meta http-equiv="refresh" content="0; url={escape(address)}">'
            f'<p>This page moved: <a href="{escape(address)}">{escape(address)}</a></p>\n',
            encoding="utf-8",
        )


def _generated(config: MkDocsConfig, page: str, path: Path, root: Path) -> File:
    text = path.read_text(encoding="utf-8")
    name = path.relative_to(root).as_posix()
    return File.generated(config, page, content=_linked(text, name, page))


def _linked(markdown: str, source: str, page: str) -> str:
    """Return the text with links between files of the repository as links between pages.

    ``source``: the path of the text in the repository. ``page``: its path in the site.
    """

    def link(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), match[2]))
        if target in OUTSIDE:
            there = OUTSIDE[target]
        elif target.startswith(f"{RESULTS}/"):
            there = target.removeprefix("lab/")
        elif target.startswith("docs/") and not source.startswith("docs/"):
            there = target.removeprefix("docs/")
        else:
            return match[0]
        return match[1] + posixpath.relpath(there, posixpath.dirname(page) or ".")

    return _LINK.sub(link, markdown)
