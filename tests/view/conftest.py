"""Runs below a folder, made by `score`, and a browser without scripts that visits their pages."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.report.conftest import HOSTILE
from trustassay import score
from trustassay.report.serving import AccessLinks, AllowedHosts
from trustassay.view.index import Index
from trustassay.view.pages import Site
from trustassay.view.server import VIEWER, application

if TYPE_CHECKING:
    from starlette.testclient import TestClient

PORT = 8766


def rows(number: int = 12, **changes: Any) -> list[dict[str, Any]]:
    """Answers to towns: every third is wrong; two models; the last ones hold hostile text."""
    result = []
    for place in range(number):
        told = "1850" if place % 3 else "1923"
        result.append(
            {
                "id": f"town-{place}",
                "question": f"When was the hall of town {place} built?",
                "response": f"The hall of town {place} was built in {told}.",
                "documents": [f"The hall of town {place} was built in 1850. It has a tower."],
                "model": "ant" if place % 2 else "bee",
                **changes,
            }
        )
    for place, text in enumerate(HOSTILE):
        result.append(
            {
                "id": f"{place}{text}",
                "question": text,
                "response": f"{text}. Green {text} sleep.",
                "documents": [{"title": text, "text": text}],
                "model": text,
            }
        )
    return result


@pytest.fixture(scope="session")
def scored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one finished run."""
    folder = tmp_path_factory.mktemp("viewed")
    how: dict[str, Any] = {"metrics": "faithfulness", "entailer": "lexical", "report": False}
    score(rows(), out=folder / "one", **how)
    return folder


@pytest.fixture
def root(scored: Path, tmp_path: Path) -> Path:
    """A copy of it, which a test may change."""
    shutil.copytree(scored, tmp_path / "runs")
    return tmp_path / "runs"


class Visited:
    """The pages of a folder."""

    def __init__(self, root: Path, beside: Path) -> None:
        from starlette.testclient import TestClient

        self.said: list[str] = []
        self.index = Index(root, beside / "index.sqlite")
        self.index.refresh()
        links = AccessLinks(beside / "index.sqlite", [VIEWER])
        self.base = f"/{links.tokens[VIEWER]}"
        self.site = Site(root, self.base)
        hosts = AllowedHosts("127.0.0.1")
        served = application(self.site, self.index, links, self.said.append, hosts)
        self.client: TestClient = TestClient(
            served, base_url=f"http://127.0.0.1:{PORT}", raise_server_exceptions=False
        )

    def page(self, path: str = "", status: int = 200, **query: Any) -> str:
        reply = self.client.get(f"{self.base}/{path}", params=query)
        assert reply.status_code == status, reply.text
        return str(reply.text)


@pytest.fixture
def visit(tmp_path: Path) -> Iterator[Callable[[Path], Visited]]:
    """Return what opens a folder's pages."""
    yield lambda root: Visited(root, tmp_path)
