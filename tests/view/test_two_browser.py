"""A fall found, understood and exported in a real browser, at a server that is a process."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest
from lab.benchmarks.viewing import served, until

from tests.report.test_browser import CONTRASTS, WATCH, browser
from tests.view.test_browser import AXE
from tests.view.test_trend import HIGH, LOW, add
from tests.view.test_two import both

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

__all__ = ["both", "browser"]
Scheme = Literal["light", "dark"]

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture
def base(both: Path, tmp_path: Path) -> Iterator[str]:
    """Serve ten runs: a fall between two that can be compared, the names of which stay."""
    root = tmp_path / "runs"
    shutil.copytree(both, root)
    for day in range(12):
        add(root, day, HIGH if day < 6 else LOW)
    for day, name in ((5, "one"), (6, "two")):
        for file in ("samples.jsonl", "assessments.jsonl"):
            shutil.copy(root / name / file, root / f"day-{day:04}" / file)
    shutil.move(root / "one", tmp_path / "one")
    shutil.move(root / "two", tmp_path / "two")
    with served(root, tmp_path / "cache") as address:
        yield address


def opened(browser: Browser, address: str, width: int = 1280, scheme: Scheme = "light") -> Page:
    context = browser.new_context(
        viewport={"width": width, "height": 800}, color_scheme=scheme, accept_downloads=True
    )
    context.add_init_script(WATCH)
    page = context.new_page()
    page.set_default_timeout(20_000)
    page.goto(address)
    page.locator("#found", has_text="12 runs").wait_for()
    return page


def harmless(page: Page) -> None:
    assert page.evaluate("[window.hacked, window.violations]") == [None, []]


def test_a_fall_is_found_understood_and_exported_by_clicks(
    base: str, browser: Browser, tmp_path: Path
) -> None:
    page = opened(browser, base)
    card = page.locator(".small-lines li")
    assert "fell here" in card.inner_text()
    card.locator("a").first.click()
    page.locator("svg.trend circle").first.wait_for()
    assert "0.910 (0.90 to 0.92) → 0.780" in page.locator(".change").inner_text().replace(" ", " ")
    harmless(page)
    page.locator(".change a", has_text="which answers changed").click()
    page.locator(".decision").wait_for()
    assert page.locator(".pairs > li").count() == 2
    assert page.locator(".pairs ins").first.inner_text() == "1777."
    page.locator(".kinds-of a", has_text="1").first.click()
    page.locator("#found", has_text="Better: 1 answer").wait_for()
    with page.expect_download() as download:
        page.locator(".decision a", has_text="Markdown").click()
    download.value.save_as(tmp_path / "gate.md")
    assert "trustassay gate:" in (tmp_path / "gate.md").read_text()
    harmless(page)
    page.go_back()
    page.locator("#found", has_text="Worse: 2 answers").wait_for()
    page.context.close()


def test_two_runs_are_chosen_by_their_marks_and_the_address_shows_the_same(
    base: str, browser: Browser
) -> None:
    page = opened(browser, base)
    page.locator('input[name="first"][value="day-0005"]').check()
    page.locator('input[name="second"][value="day-0006"]').check()
    page.locator("#two button").click()
    page.locator(".pairs > li").first.wait_for()
    shown = page.locator(".pairs").inner_text()
    again = opened(browser, base)
    again.goto(page.url)
    assert again.locator(".pairs").inner_text() == shown
    page.context.close()
    again.context.close()


def test_a_dot_leads_to_its_run(base: str, browser: Browser) -> None:
    page = opened(browser, f"{base}")
    page.goto(f"{base}trend")
    page.locator("svg.trend a").nth(5).click()
    page.wait_for_url("**/run?run=day-0005")
    page.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 420])
def test_pages_fit_and_can_be_read(base: str, browser: Browser, width: int, scheme: Scheme) -> None:
    page = opened(browser, base, width, scheme)
    pair = "compare?first=day-0005&second=day-0006&show=all"
    for path in ("", "trend", pair, "gate?run=day-0005&min=faithfulness.mean=0.5"):
        page.goto(f"{base}{path}")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate(CONTRASTS) == []
        harmless(page)
    page.context.close()


@pytest.mark.skipif(not AXE, reason="TRUSTASSAY_AXE names no file of axe-core (axe.min.js, npm)")
def test_axe_finds_nothing(base: str, browser: Browser) -> None:
    page = opened(browser, base)
    pair = "compare?first=day-0005&second=day-0006&show=all"
    for address in ("trend", pair, "gate?run=day-0005&min=faithfulness.mean=0.5"):
        page.goto(f"{base}{address}")
        page.locator("main h2, main h3, main svg").first.wait_for(state="attached")
        for folded in page.locator("details").all():
            folded.evaluate("(one) => one.open = true")
        page.evaluate(Path(AXE).read_text(encoding="utf-8"))
        found = page.evaluate("axe.run().then((one) => one.violations.map((each) => each.id))")
        assert found == [], address
    page.context.close()


def test_pages_are_complete_without_a_script(base: str, browser: Browser) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    until(base, lambda text: "12 runs" in text)
    page.goto(f"{base}compare?first=day-0005&second=day-0006")
    page.locator(".pairs > li").first.wait_for(timeout=20_000)
    assert page.locator(".pairs > li").count() == 2
    page.goto(f"{base}trend?group=bee")
    assert page.locator("svg.trend circle").count() == 12
    context.close()
