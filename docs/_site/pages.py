"""Brings the pages that stand beside docs/ into the site, and points links at them."""

from __future__ import annotations

from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

OUTSIDE = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
"""Files of the repository's root by the name that they have in the site."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages from outside; their links to ``docs/`` lead to neighbours."""
    root = Path(config.docs_dir).parent
    for name, page in OUTSIDE.items():
        text = (root / name).read_text(encoding="utf-8").replace("](docs/", "](")
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, **_: object) -> str:
    """Let links out of ``docs/`` lead to the pages that were added."""
    for name, page in OUTSIDE.items():
        markdown = markdown.replace(f"](../{name}", f"]({page}")
        markdown = markdown.replace(f"](../../{name}", f"](../{page}")
    return markdown
