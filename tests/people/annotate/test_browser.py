"""The page in a real browser, at a server that is a process of its own."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from lab.benchmarks.annotating import Served

from tests.people.annotate.helpers import answers, two_files
from tests.report.conftest import HOSTILE
from tests.report.test_browser import CONTRASTS, WATCH, browser
from tests.support import ROOT, jsonl, lines
from trustassay.input.ratings import read_ratings

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Dialog, Page, Request

__all__ = ["browser"]

pytestmark = [pytest.mark.browser, pytest.mark.slow]
PHONE = 420


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Served]]:
    """Start the command; it is killed at the end."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT / "src"), str(ROOT)]))
    started = []

    def begin(*arguments: str, rows: list[dict[str, Any]] | None = None) -> Served:
        if not (tmp_path / "a.jsonl").exists() or rows:
            jsonl(tmp_path / "a.jsonl", rows or answers(4))
        raters = ["--rater", "anna", "--rater", "bela"]
        started.append(Served(tmp_path, [*(arguments or ["a.jsonl"]), *raters]))
        started[-1].start()
        return started[-1]

    yield begin
    for one in started:
        one.kill()


@pytest.fixture
def visit(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Open a page; nothing hostile may happen meanwhile, and nothing be loaded from elsewhere."""
    contexts, seen = [], {"dialogs": list[str](), "errors": list[str](), "requests": list[str]()}

    def opened(link: str, width: int = 1280, **options: Any) -> Page:
        context = browser.new_context(viewport={"width": width, "height": 800}, **options)
        contexts.append(context)
        context.add_init_script(WATCH)
        page = context.new_page()
        page.set_default_timeout(10_000)
        origin = link.rpartition("/")[0]

        def asked(request: Request) -> None:
            if not request.url.startswith((origin, "data:,")):
                seen["requests"].append(request.url)

        def dismissed(dialog: Dialog) -> None:
            seen["dialogs"].append(dialog.message)
            dialog.dismiss()

        page.on("request", asked)
        page.on("dialog", dismissed)
        page.on("pageerror", lambda error: seen["errors"].append(str(error)))
        page.goto(link)
        return page

    yield opened
    for context in contexts:
        for page in context.pages:
            assert page.evaluate("[window.hacked, window.violations]") == [None, []]
        context.close()
    assert seen == {"dialogs": [], "errors": [], "requests": []}


def done(page: Page, number: int) -> None:
    """Wait until the page says so."""
    page.locator("#progress", has_text=f"{number} of").wait_for()


def press(page: Page, *keys: str) -> None:
    """Press keys, each when the page is ready for it."""
    for key in keys:
        page.locator("#view:not([aria-busy])").wait_for()
        page.keyboard.press(key)


def take(page: Page) -> None:
    """Take over from another tab, and wait until the page has loaded again with its styles."""
    with page.expect_navigation():
        page.locator("#take").click()
    page.locator("#elsewhere").wait_for(state="hidden")


def rated(folder: Path, rater: str) -> list[float]:
    return [
        one.value for one in read_ratings(folder / "ratings.jsonl").ratings if one.rater == rater
    ]


def test_two_raters_at_once_with_the_keyboard_alone(
    start: Callable[..., Served], visit: Callable[..., Page], tmp_path: Path
) -> None:
    links = start().links
    anna, bela = visit(links["anna"]), visit(links["bela"])
    for step in range(8):
        press(anna, "543210"[step % 6])
        press(bela, "012345"[step % 6])
        done(anna, step + 1)
        done(bela, step + 1)
    assert anna.locator("h1").inner_text() == "All answers are rated"
    assert rated(tmp_path, "anna") == [5, 4, 3, 2, 1, 0, 5, 4]
    assert rated(tmp_path, "bela") == [0, 1, 2, 3, 4, 5, 0, 1]


def test_note_skip_undo_passages_and_reload(
    start: Callable[..., Served], visit: Callable[..., Page], tmp_path: Path
) -> None:
    page = visit(start().links["anna"])
    assert page.locator(".passage").is_visible()
    press(page, "n")
    page.keyboard.type("4 u s: half a thought")  # keys of the page are letters in a note
    page.reload()
    assert page.locator("#note").input_value() == "4 u s: half a thought"
    press(page, "p", "n", "Escape", "4")
    done(page, 1)
    assert page.locator("#note").input_value() == ""
    assert not page.locator(".passage").is_visible()
    press(page, "s")
    done(page, 2)
    press(page, "u")
    done(page, 1)
    press(page, "u")
    done(page, 0)
    assert page.locator("#note").input_value() == "4 u s: half a thought"
    assert page.locator("button.former .level").inner_text() == "4"
    page.reload()
    press(page, "3")
    done(page, 1)
    assert rated(tmp_path, "anna") == [3]
    assert [row.get("action") for row in lines(tmp_path / "ratings.jsonl")[1:]] == [
        None, "skip", "undo", "undo", None,
    ]  # fmt: skip
    assert lines(tmp_path / "ratings.jsonl")[-1]["note"] == "4 u s: half a thought"


def test_tab_and_enter_suffice(
    start: Callable[..., Served], visit: Callable[..., Page], tmp_path: Path
) -> None:
    page = visit(start().links["anna"])
    for _ in range(12):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.value") == "2":
            break
    page.keyboard.press("Enter")
    done(page, 1)
    assert page.evaluate("document.activeElement.id") == "question"
    assert rated(tmp_path, "anna") == [2]


def test_a_killed_server_loses_nothing(
    start: Callable[..., Served], visit: Callable[..., Page], tmp_path: Path
) -> None:
    served = start()
    anna, bela = visit(served.links["anna"]), visit(served.links["bela"])
    press(anna, "5")
    press(bela, "1")
    done(anna, 1)
    done(bela, 1)
    served.kill()
    press(anna, "n")
    anna.keyboard.type("while it was down")
    press(anna, "Escape", "4")
    anna.locator("#fault", has_text="the server does not answer").wait_for()
    anna.keyboard.press("0")  # what is being sent is not changed by another key
    served.start()
    done(anna, 2)
    assert anna.locator("#fault").is_hidden()
    press(anna, "3")
    done(anna, 3)
    bela.reload()
    done(bela, 1)
    press(bela, "2")
    done(bela, 2)
    assert rated(tmp_path, "anna") == [5, 4, 3]
    assert rated(tmp_path, "bela") == [1, 2]
    assert lines(tmp_path / "ratings.jsonl")[3]["note"] == "while it was down"


def test_it_works_without_scripts(
    start: Callable[..., Served], visit: Callable[..., Page], tmp_path: Path
) -> None:
    page = visit(start().links["anna"], java_script_enabled=False)
    page.locator("#note").fill("by hand")
    page.locator("button[value='4']").click()
    done(page, 1)
    page.locator("button", has_text="Undo").click()
    done(page, 0)
    page.locator("button", has_text="Skip").click()
    page.locator("#progress", has_text="(1 skipped)").wait_for()
    assert [row["rating"] for row in lines(tmp_path / "ratings.jsonl")[1:]] == [4, None, None]


def test_pairs_by_arrow_keys(
    start: Callable[..., Served], visit: Callable[..., Page], tmp_path: Path
) -> None:
    a, b = two_files(tmp_path, 3)
    page = visit(start("--pairs", str(a), str(b)).links["anna"])
    expected = []
    for key in ("ArrowLeft", "t", "ArrowRight"):
        sides = page.locator(".one .prose").all_inner_texts()
        chosen = {"ArrowLeft": sides[0][-2:-1], "t": "tie", "ArrowRight": sides[1][-2:-1]}[key]
        expected.append(chosen)
        press(page, key)
        done(page, len(expected))
    assert [row["rating"] for row in lines(tmp_path / "ratings.jsonl")[1:]] == expected


def test_several_rubrics_by_keys_and_back_through_the_list(
    start: Callable[..., Served], visit: Callable[..., Page], tmp_path: Path
) -> None:
    rubrics = ["--rubric", "truthfulness", "--rubric", "informativeness"]
    page = visit(start("a.jsonl", *rubrics).links["anna"])
    question = page.locator("main .prose").first.inner_text()
    press(page, "5")
    page.locator(".active h2", has_text="Informativeness").wait_for()
    assert page.evaluate("document.activeElement.innerText").startswith("Informativeness")
    press(page, "1")
    done(page, 1)
    press(page, "s")
    done(page, 2)
    press(page, "l")
    page.locator("li a").last.click()
    assert page.locator("main .prose").first.inner_text() == question
    assert page.locator("[aria-pressed] .level").all_inner_texts() == ["5", "1"]
    press(page, "4")
    page.locator(".active h2", has_text="Informativeness").wait_for()
    press(page, "c")
    page.locator("main .prose", has_text=question).wait_for(state="detached")
    rows = lines(tmp_path / "ratings.jsonl")[1:]
    assert [row["rating"] for row in rows] == [5, 1, None, None, 4]
    assert "step=" not in page.url


def test_a_second_tab_of_a_rater_takes_over_when_told_to(
    start: Callable[..., Served], visit: Callable[..., Page], tmp_path: Path
) -> None:
    link = start().links["anna"]
    first = visit(link)
    press(first, "5")
    done(first, 1)
    second = visit(link)
    second.locator("#elsewhere").wait_for()
    second.keyboard.press("4")
    second.locator("button[value='4']").click(force=True)
    assert rated(tmp_path, "anna") == [5]
    take(second)
    second.locator("#view:not([inert])").wait_for()
    press(second, "3")
    done(second, 2)
    press(first, "0")
    first.locator("#elsewhere").wait_for()
    assert rated(tmp_path, "anna") == [5, 3]
    second.close()
    take(first)
    done(first, 2)
    first.reload()
    press(first, "1")
    done(first, 3)
    assert rated(tmp_path, "anna") == [5, 3, 1]


@pytest.mark.parametrize(
    "mode",
    [
        ["a.jsonl"],
        ["a.jsonl", "--together", "--rubric", "answer", "--rubric", "verdict"],
        ["--pairs", "a.jsonl", "b.jsonl"],
    ],
)
def test_hostile_texts_stay_text_at_both_widths_and_themes(
    start: Callable[..., Served], visit: Callable[..., Page], tmp_path: Path, mode: list[str]
) -> None:
    text = "\n".join(HOSTILE) + " " + "x" * 3000
    rows = [
        {"id": f"{n}", "question": text, "response": f"{n}{text}", "answers": [[text, text]]}
        | {"documents": [{"title": text, "text": text}], "model": f"{n}"}
        for n in range(2)
    ]
    jsonl(tmp_path / "b.jsonl", rows)
    served = start(*mode, "--gold", rows=rows)
    sizes = ((1280, "light"), (PHONE, "dark"), (PHONE, "light"), (1280, "dark"))
    for place, (width, scheme) in enumerate(sizes):
        page = visit(served.links["anna"], width, color_scheme=scheme)
        if place:
            take(page)
        page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate(CONTRASTS) == []
        assert page.locator("img, iframe, base, object, svg, main a").count() == 0
        assert page.locator("script").count() == 1


def test_a_phone_has_the_levels_at_hand(
    start: Callable[..., Served], visit: Callable[..., Page], tmp_path: Path
) -> None:
    rows = answers(4)
    for row in rows:
        row["response"] = "long " * 2000
    served = start(rows=rows)
    page = visit(served.links["anna"], PHONE, has_touch=True, is_mobile=True)
    boxes = [button.bounding_box() for button in page.locator(".choices button").all()]
    assert len(boxes) == 6
    for box in boxes:
        assert box
        assert box["y"] + box["height"] <= 800
        assert min(box["width"], box["height"]) >= 44
    page.locator("button[value='3']").tap()
    done(page, 1)
    assert page.evaluate("window.scrollY") == 0
    assert rated(tmp_path, "anna") == [3]
