"""Rating in a real browser, at servers that are processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.people.towns import town_run, towns
from tests.report.conftest import HOSTILE
from tests.report.test_browser import CONTRASTS, WATCH, browser
from tests.support import ROOT, lines
from trustassay import score

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

__all__ = ["browser"]

pytestmark = [pytest.mark.browser, pytest.mark.slow]
PHONE = 420
TOLD_S = 2.0
"""Seconds after a rating within which the page says what it makes of the share."""


@dataclass
class Viewed:
    """``trustassay view`` at work; it can be killed and started again at the same address."""

    folder: Path
    rater: str = "anna"
    port: int = 0
    link: str = ""
    process: subprocess.Popen[bytes] | None = field(default=None)

    def start(self) -> str:
        """Start it and return its address."""
        said = self.folder.parent / f"said-{self.rater}"
        rate = ["--rate", self.rater] if self.rater else []
        words = [str(self.folder), *rate, "--port", str(self.port)]
        own = [str(ROOT / "src"), str(ROOT)]
        path = os.pathsep.join([*own, *filter(None, [os.environ.get("PYTHONPATH")])])
        cache = str(self.folder.parent / "cache")
        env = {**os.environ, "PYTHONPATH": path, "XDG_CACHE_HOME": cache}
        with said.open("wb") as file:
            begin = "from trustassay.cli.main import app; app()"
            command = [sys.executable, "-c", begin, "view", *words]
            self.process = subprocess.Popen(command, stderr=file, env=env)
        deadline = time.monotonic() + 60
        while "Ctrl-C ends" not in (text := said.read_text()):
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the server did not start: {text}")
            time.sleep(0.02)
        self.link = text.split()[0].rstrip("/")
        self.port = int(self.link.split(":")[2].split("/")[0])
        return self.link

    def kill(self) -> None:
        """End it with SIGKILL."""
        assert self.process
        self.process.kill()
        self.process.wait()


@pytest.fixture
def serve() -> Iterator[Callable[..., Viewed]]:
    started: list[Viewed] = []

    def begin(folder: Path, rater: str = "anna") -> Viewed:
        started.append(Viewed(folder, rater))
        started[-1].start()
        return started[-1]

    yield begin
    for one in started:
        one.kill()


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rated")
    town_run(folder / "one", towns(90, junk=True), metrics="faithfulness")
    return folder


@pytest.fixture
def root(scored: Path, tmp_path: Path) -> Path:
    """A copy of a run, whose report is not needed."""
    (tmp_path / "runs" / "one").mkdir(parents=True)
    for path in (scored / "one").iterdir():
        if path.is_file():
            (tmp_path / "runs" / "one" / path.name).write_bytes(path.read_bytes())
    return tmp_path / "runs"


@pytest.fixture
def visit(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Open a page; nothing hostile may happen meanwhile, and nothing be loaded from elsewhere."""
    contexts, seen = [], list[str]()

    def opened(link: str, width: int = 1280, **options: Any) -> Page:
        context = browser.new_context(viewport={"width": width, "height": 800}, **options)
        contexts.append(context)
        context.add_init_script(WATCH)
        page = context.new_page()
        page.set_default_timeout(10_000)
        origin = "/".join(link.split("/")[:3])
        page.on(
            "request",
            lambda one: None if one.url.startswith((origin, "data:,")) else seen.append(one.url),
        )
        page.on("dialog", lambda one: seen.append(one.message))
        page.on("pageerror", lambda error: seen.append(str(error)))
        page.goto("/".join(link.split("/")[:4]) + "/")
        while not page.locator(".runs th a").count():  # the folder is being read
            page.reload()
        page.goto(link)
        return page

    yield opened
    for context in contexts:
        for page in context.pages:
            assert page.evaluate("[window.hacked, window.violations]") == [None, []]
        context.close()
    assert seen == []


def press(page: Page, *keys: str) -> None:
    """Press keys, each when the page is ready for it."""
    for key in keys:
        page.locator("main:not([aria-busy])").wait_for()
        page.keyboard.press(key)


def rows(root: Path, name: str = "ratings-answer.jsonl") -> list[dict[str, Any]]:
    return lines(root / "one" / name)[1:]


def test_an_answer_is_rated_by_keys_and_its_scores_appear(
    serve: Callable[..., Viewed], visit: Callable[..., Page], root: Path
) -> None:
    page = visit(f"{serve(root).link}/answer?run=one&order=position&at=0")
    assert page.locator(".badge").count() == 0
    press(page, "m")
    page.keyboard.type("j 4 k: half a thought")  # keys of the page are letters in a note
    page.reload()
    assert page.locator("textarea").input_value() == "j 4 k: half a thought"
    press(page, "2")
    page.locator(".gave", has_text="You rated 2").wait_for()
    assert page.locator("main > .top .badge").is_visible()
    assert page.evaluate("document.activeElement.tagName") == "H1"
    assert page.url.endswith("at=0&order=position") or "order=position" in page.url
    press(page, "5")  # what was rated is changed by no stray key
    press(page, "c", "1")
    page.locator(".gave", has_text="You rated 1").wait_for()
    page.get_by_role("button", name="Wrong").first.click()
    page.locator(".marks [aria-pressed]", has_text="Wrong").wait_for()
    assert page.evaluate("document.activeElement.closest('.marks') !== null")
    press(page, "j")
    page.wait_for_url("**at=1**")
    press(page, "s")
    page.locator(".gave", has_text="You skipped").wait_for()
    assert page.locator(".badge").count() == 0
    assert [(row["item"], row["rating"], row["blind"]) for row in rows(root)] == [
        ("t0", 2, True), ("t0", 1, False), ("t1", None, True),
    ]  # fmt: skip
    assert rows(root)[0]["note"] == rows(root)[1]["note"] == "j 4 k: half a thought"
    assert [row["rating"] for row in rows(root, "verdicts.jsonl")] == ["yes"]


def test_a_killed_server_loses_nothing_and_the_page_goes_on(
    serve: Callable[..., Viewed], visit: Callable[..., Page], root: Path
) -> None:
    served = serve(root)
    page = visit(f"{served.link}/answer?run=one&order=position&at=0")
    press(page, "4")
    page.locator(".gave", has_text="You rated 4").wait_for()
    press(page, "j")
    page.wait_for_url("**at=1**")
    served.kill()
    press(page, "m")
    page.keyboard.type("while it was down")
    page.keyboard.press("Escape")
    press(page, "3")
    page.locator("#fault", has_text="the server does not answer").wait_for()
    page.keyboard.press("0")  # what is being sent is not changed by another key
    address = served.link
    assert served.start() == address
    page.locator(".gave", has_text="You rated 3").wait_for()
    assert page.locator("#fault").is_hidden()
    press(page, "j")
    page.wait_for_url("**at=2**")
    press(page, "5")
    page.locator(".gave", has_text="You rated 5").wait_for()
    assert [(row["rating"], row["note"]) for row in rows(root)] == [
        (4, ""), (3, "while it was down"), (5, ""),
    ]  # fmt: skip


def test_the_interval_shrinks_while_one_rates(
    serve: Callable[..., Viewed], visit: Callable[..., Page], root: Path
) -> None:
    page = visit(f"{serve(root).link}/next?run=one")
    page.get_by_role("button", name="Draw 50 answers").click()
    page.locator("#progress", has_text="0 of 50").wait_for()
    waits, widths = [], []
    for number in range(1, 31):
        town = int(page.locator("h1").inner_text().split()[-1].rstrip("?"))
        press(page, "0" if town % 3 == 0 else "5")
        page.locator("#progress", has_text=f"{number} of 50").wait_for()
        start = time.monotonic()
        page.locator("#promise:not([data-computing])", has_text=f"from {number} rating").wait_for()
        waits.append(time.monotonic() - start)
        if number >= 20:
            low, _, high, _ = page.locator("#promise .ends").inner_text().split()[-4:]
            widths.append(float(high) - float(low))
    assert max(waits) < TOLD_S
    assert widths[-1] < widths[0]
    page.locator("#promise", has_text="Before the last rating").wait_for()
    press(page, "b")
    page.locator(".gave", has_text="You rated").wait_for()
    assert len(rows(root, "ratings-answer-plan.jsonl")) == 30


def test_two_people_and_two_tabs_at_once(
    serve: Callable[..., Viewed], visit: Callable[..., Page], root: Path
) -> None:
    anna, bela = serve(root, "anna").link, serve(root, "bela").link
    pages = [
        visit(f"{link}/answer?run=one&order=position&at={at}")
        for link, at in ((anna, 0), (anna, 20), (bela, 0))
    ]
    for _ in range(5):
        for page, level in zip(pages, "123", strict=True):
            press(page, level)
        for page, level in zip(pages, "123", strict=True):
            page.locator(".gave", has_text=f"You rated {level}").wait_for()
            press(page, "j")
            page.locator(".gave").wait_for(state="detached")
    found = {(row["rater"], row["item"]): row["rating"] for row in rows(root)}
    assert found == {
        **{("anna", f"t{at}"): 1 for at in range(5)},
        **{("anna", f"t{at}"): 2 for at in range(20, 25)},
        **{("bela", f"t{at}"): 3 for at in range(5)},
    }


def test_it_works_without_scripts(
    serve: Callable[..., Viewed], visit: Callable[..., Page], root: Path
) -> None:
    page = visit(
        f"{serve(root).link}/answer?run=one&order=position&at=0", java_script_enabled=False
    )
    page.locator("textarea").fill("by hand")
    page.locator("button[value='4']").click()
    assert page.locator(".gave").inner_text() == "You rated 4: by hand"
    page.locator("details.again summary").click()
    page.get_by_role("button", name="Take back").click()
    assert page.locator(".badge").count() == 0
    page.locator(".where a").nth(1).click()
    page.get_by_role("link", name="What to rate next").click()
    page.get_by_role("button", name="Draw 50").click()
    page.locator("button[value='4']").click()
    assert page.locator("#progress").inner_text() == "1 of 50 done"
    assert page.locator("#promise", has_text="from 1 rating").count() == 1


def test_hostile_texts_stay_text_at_both_widths_and_themes(
    serve: Callable[..., Viewed], visit: Callable[..., Page], tmp_path: Path
) -> None:
    text = "\n".join(HOSTILE) + " " + "x" * 3000
    hostile = [
        {"id": f"{n}{text}", "question": text, "response": f"{n}{text}", "answers": [[text, text]]}
        | {"documents": [{"title": text, "text": text}], "model": f"{n}{text}"}
        for n in range(5)
    ]
    run = tmp_path / "runs" / "one"
    score(hostile, metrics="faithfulness", entailer="lexical", out=run, report=False)
    link = serve(tmp_path / "runs").link
    sizes = ((1280, "light"), (PHONE, "dark"), (PHONE, "light"), (1280, "dark"))
    for at, (width, scheme) in enumerate(sizes):
        page = visit(f"{link}/answer?run=one&order=position&at={at}", width, color_scheme=scheme)
        for rated in (False, True):
            page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            assert page.evaluate(CONTRASTS) == []
            assert page.locator("main :is(img, iframe, base, object)").count() == 0
            assert page.locator("script").count() == 1
            if not rated:
                page.locator("textarea").fill(text[:1900])
                page.locator("button[value='3']").click()
                page.locator(".gave").wait_for()
        page.goto(f"{link}/next?run=one")
        if at == 0:
            page.get_by_role("button", name="Draw 50").click()
        page.locator("#progress").wait_for()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate(CONTRASTS) == []
