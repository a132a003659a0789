"""Lists and answers in a real browser: keys, hostile text, a run that grows, accessibility."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest
from lab.benchmarks.viewing import served

from tests.report.test_browser import WATCH, browser
from tests.support import ROOT
from tests.view.payloads import PAYLOADS

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

__all__ = ["browser"]

pytestmark = [pytest.mark.browser, pytest.mark.slow]
AXE = os.environ.get("TRUSTASSAY_AXE", "")


@pytest.fixture
def base(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a folder's pages, at a server that is a process of its own."""
    path = [str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, path)))
    with served(root, tmp_path / "cache") as address:
        yield address


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page in which nothing hostile may happen."""
    context = browser.new_context(viewport={"width": 1280, "height": 800}, bypass_csp=bool(AXE))
    context.add_init_script(WATCH)
    result = context.new_page()
    errors: list[str] = []
    result.on("pageerror", lambda error: errors.append(str(error)))
    result.on("dialog", lambda dialog: errors.append(dialog.message))
    result.set_default_timeout(30_000)
    yield result
    assert result.evaluate("[window.hacked, window.violations]") == [None, []]
    assert not errors
    context.close()


def test_keys_lead_through_answers(base: str, page: Page) -> None:
    page.goto(f"{base}run?run=one&q=town")
    page.wait_for_load_state()
    page.keyboard.press("j")
    page.keyboard.press("j")
    second = page.locator(".answered h2 a").nth(1)
    assert second.evaluate("one => one === document.activeElement")
    page.keyboard.press("k")
    page.keyboard.press("Enter")
    page.locator(".answer.whole").wait_for()
    page.wait_for_load_state()
    assert "1 of 12" in page.inner_text("nav.pages")
    page.keyboard.press("j")
    page.get_by_text("2 of 12").wait_for()
    page.wait_for_load_state()  # of the script, too
    page.keyboard.press("u")
    page.locator("input[type=search]").wait_for()
    page.wait_for_load_state()
    page.keyboard.press("/")
    page.locator("input[type=search]").fill("town 7 built")
    page.keyboard.press("Enter")
    page.get_by_text("1 answer", exact=True).wait_for()
    page.keyboard.press("Escape")
    page.goto(f"{base}run?run=one&order=position")
    page.keyboard.press("o")
    page.locator(".answer.whole").wait_for()
    assert "town-0" in page.inner_text("nav.where")


def test_nothing_hostile_happens(base: str, page: Page) -> None:
    page.goto(f"{base}run?run=one")
    page.locator(".answered > li").first.wait_for()
    for place in range(12, 19):
        page.goto(f"{base}answer?run=one&at={place}")
        page.get_by_role("link", name="Show the stored calls").click()
        page.get_by_text("No stored call").wait_for()
        page.locator("section.more .part").first.wait_for()


def test_a_run_grows_on_the_page(base: str, page: Page, root: Path) -> None:
    (root / "one" / "summary.json").unlink()
    path = root / "one" / "assessments.jsonl"
    told = path.read_text().splitlines(keepends=True)
    path.write_text("".join(told[:5]))
    page.goto(f"{base}run?run=one")
    page.get_by_text("5 of 19 judgements").wait_for()
    with path.open("a") as file:
        file.write("".join(told[5:9]))
    page.get_by_text("9 of 19 judgements").wait_for()


@pytest.mark.skipif(not AXE, reason="TRUSTASSAY_AXE names no file of axe-core (axe.min.js, npm)")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(base: str, page: Page, scheme: str) -> None:
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    for address in ("", "run?run=one", "answer?run=one&at=2", "answer?run=one&at=13", "trend"):
        page.goto(f"{base}{address}")
        page.wait_for_load_state("networkidle")
        page.evaluate(Path(AXE).read_text(encoding="utf-8"))
        found = page.evaluate("axe.run().then((one) => one.violations.map((each) => each.id))")
        assert found == [], address


def test_no_payload_runs_in_any_field(tmp_path: Path, page: Page) -> None:
    """Each in the id, the question, the response, a passage, the model and the domain."""
    from trustassay import score

    rows = [
        {
            "id": f"{place} {text}",
            "question": text,
            "response": f"{text} It is so. {text}",
            "documents": [{"title": text, "text": f"{text} It is so."}],
            "model": text,
            "domain": text,
        }
        for place, text in enumerate(PAYLOADS)
    ]
    how: dict[str, Any] = {"metrics": "faithfulness", "entailer": "lexical", "report": False}
    score(rows, out=tmp_path / "runs" / "one", **how)
    changed = [row | {"response": f"{row['question']} It is not so."} for row in rows]
    score(changed, out=tmp_path / "runs" / "two", **how)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    with served(tmp_path / "runs", tmp_path / "cache") as base:
        for address in ("", "run?run=one", "run?run=one&page=2", "run?run=one&page=3", "trend"):
            page.goto(f"{base}{address}")
            page.wait_for_load_state("networkidle")
        for address in ("compare?first=one&second=two", "study?run=one", "gate?run=one"):
            page.goto(f"{base}{address}")
            page.wait_for_load_state()
        for place, text in enumerate(PAYLOADS):
            page.goto(f"{base}answer?run=one&at={place}")
            assert page.locator("main").is_visible()
            page.goto(f"{base}run?{urlencode({'run': 'one', 'q': text, 'model': text})}")
            assert page.locator("#found").is_visible()
            assert page.evaluate("window.hacked") is None, text
        host = base.split("/")[2]
    assert {one.split("/")[2] for one in asked if one.startswith("http")} == {host}
