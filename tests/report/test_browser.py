"""The page in a real browser: what a reader sees, does, and is kept safe from."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.many import HashedWords, many
from tests.report.conftest import HOSTILE, sentence
from trustassay import score
from trustassay.compare.two_runs import build_document, compare
from trustassay.input.ratings import Rating, Ratings
from trustassay.papers.harmonicity.ascent import AscentPoint
from trustassay.papers.harmonicity.ascent_page import AscentPage, write_ascent_page
from trustassay.report.charts import NamedCurve, Plot, RescueCount, heat_svg, stacked_svg
from trustassay.report.document import (
    Bar,
    Bars,
    Block,
    ChangedAnswer,
    ChangedAnswers,
    Chart,
    DocumentRow,
    DrawingBlock,
    FoldedBlock,
    Legend,
    LinkItem,
    ListBlock,
    PageDocument,
    Panels,
    Section,
    Table,
    Text,
    interval_bars,
)
from trustassay.report.page import ReportRun, ReportSample, write_page
from trustassay.runs.folder import RunFolder
from trustassay.runs.report import RunRatings, write_pooled, write_report

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [pytest.mark.browser, pytest.mark.slow]

CHROMIUM = shutil.which("chromium")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
WATCH = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (e) => window.violations.push(e.blockedURI));
"""

Opened = Callable[..., "Page"]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("chromium is not installed")
    with playwright.sync_playwright() as running:
        chromium = running.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def pages() -> dict[str, Page]:
    """The pages that tests have opened, by their options: to start one takes a second of work."""
    return {}


@pytest.fixture
def opened(browser: Browser, pages: dict[str, Page], made_up_page: Path) -> Iterator[Opened]:
    """Open the made-up page; whatever the test does, nothing hostile may happen meanwhile.

    What is opened with the same options takes the place of what was opened before.
    """
    used: list[Page] = []
    seen: dict[str, list[str]] = {"dialogs": [], "requests": [], "errors": []}
    asked_for = [made_up_page.as_uri()]

    def dismissed(dialog: Any) -> None:
        seen["dialogs"].append(dialog.message)
        dialog.dismiss()

    def failed(request: Any) -> None:
        if request.failure == "csp":  # stopped inside the page by its policy
            seen["requests"].remove(request.url)

    def asked(request: Any) -> None:
        if request.url not in asked_for:
            seen["requests"].append(request.url)

    def broken(error: Any) -> None:
        seen["errors"].append(str(error))

    listeners: dict[Any, Any]
    listeners = {
        "dialog": dismissed,
        "request": asked,
        "requestfailed": failed,
        "pageerror": broken,
    }

    def open_page(
        path: Path = made_up_page, width: int = 1280, height: int = 900, **options: Any
    ) -> Page:
        key = repr(sorted(options.items()))
        if key not in pages:
            context = browser.new_context(**options)
            context.add_init_script(WATCH)
            pages[key] = context.new_page()
        page = pages[key]
        if page in used:
            assert page.evaluate("window.hacked") is None
        else:
            used.append(page)
            for event, listener in listeners.items():
                page.on(event, listener)
        page.set_viewport_size({"width": width, "height": height})
        page.set_default_timeout(60_000)
        asked_for.append(path.as_uri())
        page.goto(path.as_uri())
        return page

    yield open_page
    for page in used:
        assert page.evaluate("window.hacked") is None
        page.emulate_media(media="null")
        page.mouse.move(0, 0)
        for event, listener in listeners.items():
            page.remove_listener(event, listener)
        page.goto("about:blank")
    assert seen == {"dialogs": [], "requests": [], "errors": []}


def shown(page: Page) -> list[str]:
    ids: list[str] = page.locator("#list > details:not([hidden]) > summary .id").all_text_contents()
    return ids


def focused(page: Page) -> str:
    element = "document.activeElement"
    name: str = page.evaluate(f"{element}.id || {element}.querySelector?.('.id')?.textContent")
    return name


def open_everything(page: Page) -> None:
    page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")


# Safety


def test_hostile_texts_do_nothing(opened: Opened) -> None:
    page = opened()
    open_everything(page)
    page.mouse.move(600, 500)
    page.wait_for_timeout(200)
    assert page.evaluate("window.violations") == []
    assert page.locator("img, iframe, base, object, form").count() == 0
    assert page.locator("script").count() == 1


def test_hostile_texts_of_an_attack_do_nothing(opened: Opened, tmp_path: Path) -> None:
    points = [AscentPoint(0, 0, "".join(HOSTILE), HOSTILE[0], 0.1, 6, kept=True, calls=11)]
    for place, text in enumerate(HOSTILE):
        points += [
            AscentPoint(place + 1, 1, points[0].prompt + text, text, 0.2, 12, kept=True, calls=99),
            AscentPoint(place + 1, 2, text, text, 0.1, 6, calls=99),
            AscentPoint(place + 1, 3, text, error=text, calls=99),
        ]
    facts = {text: text for text in HOSTILE}
    path = tmp_path / "ascent.html"
    write_ascent_page(AscentPage(facts, HOSTILE[0], HOSTILE, points), path)
    for width, scheme in ((1280, "light"), (390, "dark")):
        page = opened(path, width=width, color_scheme=scheme)
        open_everything(page)
        for dot in page.locator("svg.ascent g").all()[:3]:
            dot.hover()
        assert page.evaluate("window.violations") == []
        assert page.locator("script, img, iframe, base, object, form, a").count() == 0
        assert page.locator("svg.ascent .dot").count() == 1 + 2 * len(HOSTILE)
        assert page.locator("svg.ascent .failed").count() == len(HOSTILE)
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= width


def test_policy_stops_foreign_scripts_styles_and_images(opened: Opened) -> None:
    page = opened()
    page.evaluate(
        """() => {
          const script = document.createElement("script");
          script.textContent = "window.hacked = 9";
          const image = document.createElement("img");
          image.src = "http://localhost:9/x.png";
          const style = document.createElement("style");
          style.textContent = "body { display: none }";
          document.body.append(script, image, style);
        }"""
    )
    page.wait_for_timeout(200)
    assert len(page.evaluate("window.violations")) == 3
    assert page.locator("h1").is_visible()


# Reading


def test_complete_without_scripts(opened: Opened) -> None:
    page = opened(java_script_enabled=False)
    assert page.locator("h1").inner_text() == "Elephants, a made-up run"
    assert page.locator("#tools").is_hidden()
    answer = page.locator("#a1")
    assert answer.locator(".passage").first.is_hidden()
    answer.locator("summary").first.click()
    assert answer.locator(".passage").first.is_visible()
    answer.locator("a.chip", has_text="[3] redundant").click()
    assert page.url.endswith("#a1-d3")
    assert page.locator("#a1-d3:target").count() == 1


def test_long_text_opens(opened: Opened) -> None:
    page = opened()
    page.locator("details", has_text="many-words").first.locator("summary").first.click()
    more = page.locator("details.answer[open] details.more").first
    assert "46,000 more characters" in more.inner_text()
    assert more.locator("bdi").is_hidden()
    more.locator("summary").click()
    assert more.locator("bdi").is_visible()


@pytest.mark.parametrize("width", [320, 400, 1280])
def test_nothing_scrolls_sideways(opened: Opened, width: int) -> None:
    page = opened(width=width)
    open_everything(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    wide = page.evaluate(
        """() => Array.from(document.querySelectorAll("details, .body, .passage, li, td, dd"))
          .filter((e) => e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 0)
          .map((e) => `${e.className} ${e.textContent.slice(0, 60)}`)"""
    )
    assert wide == []


# Search, order, filter


def test_search_narrows_and_counts(opened: Opened) -> None:
    page = opened()
    assert page.locator("#found").inner_text() == "All 32 listed answers shown."
    page.locator("#search").fill("FAILED elephants")
    assert shown(page) == ["failed"]
    assert page.locator("#found").inner_text() == "1 of 32 listed answers shown."
    page.locator("#search").fill("no such words")
    assert shown(page) == []
    assert page.locator("#nothing").is_visible()


def test_order_by_score_and_id(opened: Opened) -> None:
    page = opened()
    listed = shown(page)
    page.locator("#order").select_option("0:up")
    scores: list[float | None] = page.evaluate(
        """() => Array.from(document.querySelectorAll("#list > details"), (d) => {
          const badge = d.querySelector("[data-metric='0'][data-score]");
          return badge ? Number(badge.dataset.score) : null;
        })"""
    )
    known = [score for score in scores if score is not None]
    assert known == sorted(known)
    assert scores == known + [None] * 3
    page.locator("#order").select_option("0:down")
    assert shown(page)[0] in {"refused", "plain-17"}
    assert set(shown(page)[-3:]) == {"failed", "unscored", "other-metric"}
    page.locator("#order").select_option("id")
    plain = [name for name in shown(page) if name.startswith("plain")]
    assert plain[:3] == ["plain-0", "plain-1", "plain-2"]
    page.locator("#order").select_option("position")
    assert shown(page) == listed


def test_choices_of_several_metrics_begin_with_what_tells_them_apart(
    opened: Opened, tmp_path: Path
) -> None:
    metrics, out = ["harmonicity", "semantic_harmonicity"], tmp_path / "run"
    rows = list(many(each=1))
    score(rows, metrics=metrics, embedder=HashedWords(), entailer="lexical", out=out, report=True)
    page = opened(out / "report.html", width=390)
    assert page.locator("#order option").all_inner_texts()[2:5] == [
        "lowest harmonicity first",
        "highest harmonicity first",
        "lowest semantic_harmonicity first",
    ]
    verdicts = page.locator("#verdict option").all_inner_texts()
    assert any(name.startswith("unstable, harmonicity (") for name in verdicts)
    for name in page.locator(".badges .of").all()[:2]:
        assert name.evaluate("e => e.firstChild.getClientRects().length") == 1  # on one line


def rated_page(tmp_path: Path) -> Path:
    rows = [
        {"id": f"q{i}", "question": "Q?", "response": f"Answer {i}.", "answers": [["Answer 1."]]}
        for i in range(6)
    ]
    run = score(rows, metrics="judge:by=entailer", entailer="lexical", out=tmp_path / "run")
    given = [("q1", "ann", 2, ""), ("q1", HOSTILE[1], 5, "".join(HOSTILE)), ("q3", "ann", 5, "")]
    given += [("q4", "bo", 1, HOSTILE[0]), (HOSTILE[0], "bo", 1, "")]
    ratings = [Rating(item, rater, value, note=note) for item, rater, value, note in given]
    folder = RunFolder(run.path)
    write_report(folder, rated=RunRatings(folder, Ratings(ratings), f"{HOSTILE[0]}.csv"))
    return run.path / "report.html"


def test_ratings_are_ordered_filtered_and_only_text(opened: Opened, tmp_path: Path) -> None:
    page = opened(rated_page(tmp_path))
    page.locator("#order").select_option("rating:up")
    assert shown(page)[:3] == ["q4", "q1", "q3"]
    assert sorted(shown(page)[3:]) == ["q0", "q2", "q5"]
    page.locator("#order").select_option("rating:down")
    assert shown(page)[:3] == ["q3", "q1", "q4"]
    page.locator("#rated").check()
    assert shown(page) == ["q3", "q1", "q4"]
    page.locator("#order").select_option("0:down")
    assert sorted(shown(page)) == ["q1", "q3", "q4"]
    open_everything(page)
    said = page.locator(".raters").filter(has_text="onerror").text_content() or ""
    said = " ".join(said.split())
    assert "2 raters, mean 3.50, standard deviation 2.12" in said
    assert "window.hacked = 1" in said
    assert page.locator("svg.ratings").count() == 1
    assert page.evaluate("window.violations") == []
    assert page.locator("img, iframe, base, object, form").count() == 0


def test_all_figures_of_a_table_are_in_sight_on_a_narrow_page(
    opened: Opened, tmp_path: Path
) -> None:
    columns = ["Qwen2.5-Coder-1.5B-Instruct", "model-a", "Output"]
    cells = ["100.0 (92.2 to 100.0)", "87.5", "The answer of a model. " * 9]
    rows = [DocumentRow("answered_citation_prec", cells)]
    section = Section("", [Table("Key", columns, rows, texts=["Output"]), ListBlock(["One."])])
    path = tmp_path / "document.html"
    PageDocument("papers reproduce", "A paper", {}, "One answer.", [], [section]).write(path)
    page = opened(path, width=390)
    ends = "nodes => nodes.map(node => [node.scrollWidth, node.clientWidth])"
    for content, room in page.locator(".scroll, .scroll td").evaluate_all(ends):
        assert content <= room
    # Hidden behind the edge of the scroller, a figure would be beyond the window.
    right = "nodes => Math.max(...nodes.map(node => node.getBoundingClientRect().right))"
    assert page.locator("td").evaluate_all(right) <= 390
    assert page.locator("ul.lines > li").count() == 1


@pytest.mark.parametrize("width", [390, 1280])
def test_a_document_holds_only_text_and_fits(opened: Opened, tmp_path: Path, width: int) -> None:
    shares = [25.0, 0.0, 75.0]
    pieces = [
        (f"{place} {text}", share)
        for place, (text, share) in enumerate(zip(HOSTILE, shares, strict=False))
    ]
    names = [name for name, _ in pieces]
    bars = [Bar(text, "1.0", stacked_svg(pieces, names, text), 3, "", "2 →") for text in HOSTILE]
    columns = ["value", "interval"]
    rows = [DocumentRow(text, ["1.0", "0 to 100"], text) for text in HOSTILE]
    estimates = [(text, place / 10, (0.0, 1.0)) for place, text in enumerate(HOSTILE)]
    plot = Plot(
        HOSTILE[0], HOSTILE[1], HOSTILE[2], HOSTILE[3], [NamedCurve(HOSTILE[0], [(0, 0)], 0)]
    )
    heat = heat_svg([RescueCount(one, HOSTILE[0], 1, 2) for one in HOSTILE])
    changed = ChangedAnswer(HOSTILE[0], HOSTILE[1], HOSTILE[2], ("", HOSTILE[0]), ("", HOSTILE[1]))
    parts: list[Block] = [
        *(Text(text, "note") for text in HOSTILE),
        Table("Part", columns, rows, HOSTILE[1], HOSTILE[2]),
        Chart(HOSTILE[0], HOSTILE[1], [Bars(bars, ("0", "1")), interval_bars(estimates)]),
        Panels([Chart(text, text, [DrawingBlock(plot.drawing)]) for text in HOSTILE]),
        DrawingBlock(heat, "scroll"),
        ListBlock(HOSTILE),
        Legend(HOSTILE),
        Legend(HOSTILE, lines=True),
        FoldedBlock(HOSTILE[0], [LinkItem(text, "", text) for text in HOSTILE]),
        ChangedAnswers(HOSTILE[0], [changed], 2, folded=False),
        ChangedAnswers(HOSTILE[0], [changed], 1),
    ]
    facts = {text: text for text in HOSTILE}
    sections = [Section(HOSTILE[0], parts), Section("", parts)]
    page = PageDocument("agree", HOSTILE[0], facts, HOSTILE[1], HOSTILE, sections)
    page.write(tmp_path / "v.html")
    shown_page = opened(tmp_path / "v.html", width=width)
    assert shown_page.evaluate("window.violations") == []
    assert shown_page.locator("script, img, iframe, base, object, form").count() == 0
    assert shown_page.locator("svg.stack").count() == 2 * len(HOSTILE)
    widths = (
        shown_page.locator("svg.stack")
        .first.locator("rect")
        .evaluate_all("pieces => pieces.map((piece) => piece.width.baseVal.value)")
    )
    assert widths == [100, 0, 300]
    assert shown_page.evaluate("document.documentElement.scrollWidth") <= width


def test_filters(opened: Opened) -> None:
    page = opened()
    page.locator("#verdict").select_option(label="blank (1)")
    assert shown(page) == ["no-response"]
    page.locator("#verdict").select_option("")
    page.locator("#problems").check()
    found = shown(page)
    assert found[:2] == ["every-kind", "failed"]
    # Of the plain ones just the wrong refusal: a refusal with a score of 0.
    assert [name for name in found if name.startswith("plain")] == ["plain-0"]


ATTACKS = [
    *HOSTILE,
    "[a](javascript:window.hacked=6) ![b](http://127.0.0.1:9/x.png) <http://127.0.0.1:9>",
    "# <img src=x onerror='window.hacked = 7'>\n\n|a|<b>|\n|-|-|\n|`<script>`|" + "w" * 4000 + "|",
    "> " * 40 + "deep **" + "x" * 300 + "**\n\n" + "- " * 30 + "list",
    "**mill** 1920 " * 14_000,
    "[the tariff](https://127.0.0.1:9/a?b=1&c=<b>) **is** \u202e[x](https://127.0.0.1:9/b)",
]


def columned_page(folder: Path) -> Path:
    """Return the report of a run whose input has columns, and hostile texts in Markdown."""
    rows: list[dict[str, Any]] = [
        {
            "id": f"m{n}",
            "question": f"When was mill {n} built?",
            "response": "" if n % 4 == 0 else f"Mill {n} was built in **190{n % 3}** by Anna.",
            "documents": [{"title": f"Mill {n}", "text": f"Mill {n} was built in 1901 by Anna."}],
            "thumbs": "up" if n % 2 else "down",
            "latency_ms": 10 * n,
            "<b>'&": "a&b=c" if n % 5 else '"><script>',
        }
        for n in range(40)
    ]
    for row, text in zip(rows[1::2], ATTACKS, strict=False):
        row["response"] = f"{text}\n\nIt was built in 1920 by Otto."
        row["documents"].append({"title": text, "text": f"{text}\n\nIt was built in 1902 by Otto."})
    run = score(rows, metrics="faithfulness", entailer="lexical", out=folder / "run", report=True)
    return run.path / "report.html"


@pytest.fixture(scope="module")
def columned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return columned_page(tmp_path_factory.mktemp("columned"))


def test_columns_are_filters_that_the_address_keeps(opened: Opened, columned: Path) -> None:
    page = opened(columned)
    thumbs = page.locator("#filters select[data-name=thumbs]")
    assert thumbs.locator("option").all_inner_texts() == ["all", "down (20)", "up (20)"]
    assert page.locator("#clear").is_hidden()
    thumbs.select_option(label="down (20)")
    latency = page.locator("#filters select[data-name=latency_ms]")
    assert latency.locator("option").all_inner_texts()[1] == "0 to 90 (10)"
    latency.select_option("0")
    assert sorted(shown(page)) == ["m0", "m2", "m4", "m6", "m8"]
    result = page.locator("#found").inner_text()
    # Those that were not answered are among them.
    assert result.startswith("5 of 40 listed answers shown: ")
    assert "3 not answered" in result
    page.locator("#search").fill("mill 4")
    assert shown(page) == ["m4"]
    odd = page.locator("#filters select").nth(2)
    odd.select_option(label="a&b=c (32)")
    address = page.evaluate("location.hash")
    page.locator("#clear").click()
    assert len(shown(page)) == 40
    assert page.evaluate("location.hash") == ""
    # A link to it, also by a page that is open already, and after a reload.
    page.evaluate("hash => { location.hash = hash }", address)
    eventually(page, "document.querySelectorAll('#list > details:not([hidden])').length === 1")
    page.reload()
    assert shown(page) == ["m4"]
    assert odd.locator("option:checked").inner_text() == "a&b=c (32)"
    # An answer that is opened is in the address beside the filters, and goes out of it.
    page.locator("#list > details:not([hidden]) > summary").click()
    eventually(page, "location.hash.startsWith('#id=m4&q=mill')")
    page.locator("#list > details:not([hidden]) > summary").click()
    eventually(page, f"location.hash === {address!r}")


def test_an_address_with_what_this_page_lacks_filters_nothing(
    opened: Opened, columned: Path
) -> None:
    page = opened(columned)
    lacking = "#verdict=9:none&order=7:up&column.thumbs=sideways&column.gone=x&by=gone&q="
    page.evaluate("hash => { location.hash = hash }", lacking)
    page.reload()
    assert len(shown(page)) == 40
    assert page.locator("#verdict").input_value() == ""
    assert page.locator("#order").input_value() == "need"


def test_groups_are_of_one_column_and_lead_to_its_answers(opened: Opened, columned: Path) -> None:
    page = opened(columned)
    page.locator("#columns > summary").click()
    eventually(page, "location.hash === '#by=thumbs'")
    assert page.locator("section.column:visible").count() == 1
    page.locator("#by").select_option(label="latency_ms")
    rows = page.locator("section.column:visible tbody tr")
    assert rows.count() == 4
    assert rows.first.locator("td").last.inner_text() == "10"
    eventually(page, "location.hash === '#by=latency_ms'")
    rows.first.locator("button").click()
    assert sorted(shown(page), key=lambda name: int(name[1:])) == [f"m{n}" for n in range(10)]
    eventually(page, "document.activeElement.id === 'answers'")
    page.reload()
    assert page.locator("#by option:checked").inner_text() == "latency_ms"


def test_columns_without_scripts_are_all_readable(opened: Opened, columned: Path) -> None:
    page = opened(columned, java_script_enabled=False)
    page.locator("#columns > summary").click()
    assert page.locator("section.column h3:visible").count() == 3
    assert page.locator("#filters").is_hidden()
    assert page.locator("#columns button, #columns select:visible").count() == 0


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (420, "dark"), (320, "light")])
def test_hostile_markdown_is_text_and_fits(
    opened: Opened, columned: Path, width: int, scheme: str
) -> None:
    page = opened(columned, width=width, color_scheme=scheme)
    open_everything(page)
    page.wait_for_timeout(200)
    assert page.evaluate("window.violations") == []
    assert page.locator("img, iframe, base, object, form").count() == 0
    assert page.locator("script").count() == 1
    links: list[str] = page.eval_on_selector_all(
        "#list a[href]:not([href^='#'])", "links => links.map((link) => link.href)"
    )
    assert set(links) == {"https://127.0.0.1:9/b"}
    assert page.locator(".rendered td code", has_text="<script>").count() == 2
    assert page.locator(".comparison mark.other").count() > 10
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(CONTRASTS) == []


def test_the_page_opens_with_the_worst_answers_and_their_bad_sentences(opened: Opened) -> None:
    for width in (1280, 420):
        page = opened(width=width)
        sentence = page.locator(".opening .look")
        assert " of 32 answers need a look" in sentence.inner_text()
        first = page.locator(".worst > li").first
        assert first.bounding_box()["y"] < 700  # type: ignore[index]  # on the first screen
        assert page.locator("#figures > summary").is_visible()
        assert page.locator(".cards").first.is_hidden()  # folded
        assert page.locator("#line").inner_text().startswith("An answer needs a look if")
    page.locator(".worst > li h2 a").first.click()
    page.locator("#a1[open]").wait_for()


def test_the_bad_sentence_is_marked_in_the_response(
    opened: Opened,
    make_run: Callable[..., ReportRun],
    make_sample: Callable[..., ReportSample],
    tmp_path: Path,
) -> None:
    bad = sentence(f"The moon is {HOSTILE[1]}.", supported=False)
    rows = [make_sample("low", 0.0, evidence=[bad], response=f"It is far. {bad['text']} Yes.")]
    write_page(make_run(rows), tmp_path / "report.html")
    for width, scheme in ((1280, "light"), (420, "dark")):
        page = opened(tmp_path / "report.html", width=width, color_scheme=scheme)
        assert page.locator(".worst mark").all_inner_texts() == [bad["text"]]
        assert page.locator(".worst .said").inner_text() == f"It is far. {bad['text']} Yes."
        assert page.locator(".worst .mark.bad").inner_text() == "✕ not supported"
        assert page.evaluate(CONTRASTS) == []


def test_the_filter_leaves_exactly_what_needs_a_look(opened: Opened) -> None:
    page = opened()
    page.locator("#problems").check()
    said = page.locator(".opening .look").inner_text()
    assert said.startswith(f"{len(shown(page))} of 32 answers")


def test_the_filter_is_no_all_clear_where_answers_were_not_judged(
    opened: Opened, tmp_path: Path
) -> None:
    refusal = "I cannot find that in the documents."
    texts = {"judged": ["It is red."] * 2, "refused": ["It is red.", refusal]}
    for name, responses in texts.items():
        rows = [
            {"question": f"{n}?", "response": response, "documents": ["It is red."]}
            for n, response in enumerate(responses)
        ]
        score(rows, metrics="faithfulness", entailer="lexical", out=tmp_path / name)
    for name, words in (
        ("judged", "No listed answer needs a look."),
        ("refused", "No listed answer is flagged; some records were not judged."),
    ):
        page = opened(tmp_path / name / "report.html")
        page.locator("#problems").check()
        assert page.locator("#nothing").inner_text() == words


# Links


def test_a_link_by_id_holds(
    opened: Opened,
    make_run: Callable[..., ReportRun],
    make_sample: Callable[..., ReportSample],
    tmp_path: Path,
) -> None:
    """It survives sorting, searching and reloading, opens the answer and ends below the bar."""
    names = [*(f"plain-{n}" for n in range(60)), "an id/with ü?&#%41 & 'quotes'", *HOSTILE[:6]]
    path = tmp_path / "report.html"
    write_page(make_run([make_sample(name, 0.5) for name in names]), path)
    page = opened(path, height=600)
    for name in (names[60], HOSTILE[1], "plain-30"):
        page.evaluate("id => { location.hash = `#id=${encodeURIComponent(id)}` }", name)
        row = page.locator("#list > details[open]").filter(has_text=name).last
        row.wait_for(state="visible")
    row = page.locator("#a31")
    page.locator("#order").select_option("id")
    page.locator("#search").fill("plain-1")
    page.locator("#search").fill("")
    assert page.evaluate("decodeURIComponent(location.hash)") == "#id=plain-30&order=id"
    page.reload()
    eventually(page, "document.getElementById('a31').open")
    page.wait_for_timeout(200)
    bar = page.locator("#tools").bounding_box()
    answer = row.bounding_box()
    assert bar
    assert answer
    assert bar["y"] == 0  # it sticks
    assert bar["height"] <= answer["y"] < bar["height"] + 40
    row.locator("> summary").click()
    page.locator("#a33 > summary").click()
    eventually(page, "location.hash === '#id=plain-32&order=id'")
    page.evaluate("location.hash = '#id=nowhere'")
    eventually(page, "document.getElementById('found').textContent.includes('not listed')")


# Print

SEEN = "(e) => e.checkVisibility()"


@pytest.mark.parametrize("scripts", [True, False])
def test_on_paper_all_problems_are_open(opened: Opened, scripts: bool) -> None:
    page = opened(java_script_enabled=scripts)
    page.emulate_media(media="print")
    for place in ("#a1", "#a2"):  # a problem and a failure
        assert page.locator(f"{place} .body").evaluate(SEEN)
    assert not page.locator("#a3 .body").evaluate(SEEN)
    assert page.locator("#figures .cards").evaluate(SEEN)
    assert page.locator("#tools").is_hidden()
    if scripts:
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert page.locator("#list > details[data-problem]:not([open])").count() == 0
        page.evaluate("dispatchEvent(new Event('afterprint'))")
        assert page.locator("#list > details[open]").count() == 0


# Keys


def test_keys(opened: Opened) -> None:
    page = opened()
    page.keyboard.press("j")
    assert focused(page) == "every-kind"
    page.keyboard.press("j")
    assert focused(page) == "failed"
    page.keyboard.press("k")
    page.keyboard.press("k")
    assert focused(page) == "every-kind"
    page.keyboard.press("Enter")
    assert page.locator("#a1").get_attribute("open") is not None
    page.keyboard.press("/")
    page.keyboard.type("plain-/jk")
    assert page.locator("#search").input_value() == "plain-/jk"
    page.keyboard.press("Escape")
    assert page.locator("#search").input_value() == ""
    assert len(shown(page)) == 32


def test_tab_reaches_the_answers_through_the_skip_link(opened: Opened) -> None:
    page = opened()
    page.keyboard.press("Tab")
    assert page.locator(".skip").evaluate("(e) => e.getBoundingClientRect().left") >= 0
    page.keyboard.press("Enter")
    eventually(page, "document.activeElement.id === 'answers'")


def test_citation_moves_to_the_passage_and_back(opened: Opened) -> None:
    page = opened()
    page.locator("#a1 > summary").click()
    page.locator("#a1 .chips a", has_text="[3] redundant").click()
    eventually(page, "document.activeElement.id === 'a1-d3'")
    assert page.locator("#a1-d3").evaluate("(e) => getComputedStyle(e).outlineStyle") == "solid"
    page.locator("#a1-d3 a", has_text="sentence 3").click()
    eventually(page, "document.activeElement.id === 'a1-r0-s3'")


def test_a_citation_says_why_on_focus(opened: Opened) -> None:
    page = opened()
    page.locator("#a1 > summary").click()
    chip = page.locator("#a1 .chips span.chip", has_text="[9] invalid")
    assert chip.locator(".tip").is_hidden()
    chip.focus()
    assert chip.locator(".tip").is_visible()


def test_a_link_opens_its_answer(opened: Opened) -> None:
    page = opened()
    page.evaluate("location.hash = '#a3-d2'")
    page.locator("#a3-d2").wait_for(state="visible")


# Themes

CONTRASTS = """() => {
  const channels = (c) => c.match(/[\\d.]+/g).map(Number);
  const light = (c) => channels(c).slice(0, 3)
    .map((v) => v / 255).map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = (e) => {
    for (; e; e = e.parentElement) {
      const c = getComputedStyle(e).backgroundColor;
      if (channels(c)[3] !== 0) return c;
    }
  };
  const found = new Map();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const e = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !e.checkVisibility() || e.closest("option")) continue;
    const [a, b] = [light(getComputedStyle(e).color), light(ground(e))];
    found.set(`${e.className} in ${e.parentElement.className}`,
      (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05));
  }
  return Array.from(found).filter(([, ratio]) => ratio < 4.5);
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast(opened: Opened, scheme: str) -> None:
    page = opened(color_scheme=scheme)
    open_everything(page)
    page.wait_for_timeout(200)
    assert page.evaluate(CONTRASTS) == []


def test_themes_differ_and_toggle(opened: Opened) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    light, dark = (opened(color_scheme=scheme) for scheme in ("light", "dark"))
    assert light.evaluate(ground) != dark.evaluate(ground)
    assert light.locator("#theme").inner_text() == "Dark theme"
    light.locator("#theme").click()
    assert light.evaluate(ground) == dark.evaluate(ground)
    assert light.locator("#theme").inner_text() == "Light theme"


# Size


def eventually(page: Page, truth: str) -> None:
    """Wait until an expression is true; the page's own policy stops what Playwright waits with."""
    deadline = time.monotonic() + 30
    while not page.evaluate(truth):
        assert time.monotonic() < deadline, truth
        page.wait_for_timeout(50)


def search(page: Page, words: str) -> None:
    """Search as typing does, and wait for what is found."""
    page.locator("#search").fill(words)
    eventually(page, "!document.getElementById('found').textContent.startsWith('Searching')")


def test_a_thousand_answers_stay_usable(
    opened: Opened,
    make_run: Callable[..., ReportRun],
    make_sample: Callable[..., ReportSample],
    tmp_path: Path,
) -> None:
    path = tmp_path / "report.html"
    write_page(make_run([make_sample(f"plain-{n}", 0.5) for n in range(1000)]), path)
    page = opened(path)
    search(page, "plain-77")
    assert shown(page)[0] == "plain-77"
    assert len(shown(page)) == 11
    search(page, "")
    assert len(shown(page)) == 1000


def test_a_search_in_long_evidence_takes_no_time(
    opened: Opened,
    make_run: Callable[..., ReportRun],
    make_sample: Callable[..., ReportSample],
    tmp_path: Path,
) -> None:
    """The texts of 500 long answers are read before anybody searches, or piece by piece."""
    words = "word " * 40
    found = [
        make_sample(
            f"long-{n}",
            0.5,
            evidence=[sentence(f"Sentence {i} {words}", supported=False) for i in range(20)],
            documents=[{"title": "A title", "text": f"Passage {i} {words}"} for i in range(20)],
            answers=[],
        )
        for n in range(500)
    ]
    path = tmp_path / "report.html"
    write_page(make_run(found), path)
    assert any(longest_input(opened(path)) < 200 for _ in range(5))


def longest_input(page: Page) -> float:
    """Return the most milliseconds that the page took for what was typed; others may work, too."""
    page.evaluate(LONGEST_INPUT)
    search(page, "passage long-77")  # may come before all texts are read: then in pieces
    for terms, count in (("long-7 passage", 11), ("nowhere", 0), ("sentence", 500)):
        search(page, terms)
        assert len(shown(page)) == count
    return float(page.evaluate("window.longestInput()"))


LONGEST_INPUT = """() => {
  const field = document.getElementById("search");
  let longest = 0;
  let start = 0;
  addEventListener("input", () => { start = performance.now(); }, { capture: true });
  addEventListener("input", () => { longest = Math.max(longest, performance.now() - start); });
  window.longestInput = () => longest;
}"""


# Pages beside the report


def test_many_groups_and_the_pages_beside_the_report(opened: Opened, tmp_path: Path) -> None:
    rows = list(many(each=3))
    rows[0] |= {"model": "<img src=x onerror='window.hacked = 1'>" * 9, "domain": "w" * 300}
    for name in ("one", "<b>two"):
        score(rows, metrics="harmonicity", embedder=HashedWords(), out=tmp_path / name, report=True)
    found = compare(tmp_path / "one", tmp_path / "<b>two")
    build_document(found).write(tmp_path / "compare.html")
    for path in (tmp_path / "one" / "report.html", tmp_path / "compare.html"):
        for width in (1280, 360):
            page = opened(path, width=width)
            open_everything(page)
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            assert page.evaluate("window.violations") == []
            assert page.locator("img").count() == 0
    page = opened(tmp_path / "one" / "report.html")
    open_everything(page)
    # 13 groups; the margins over models of three domains, over domains of five models, and of all.
    assert page.locator(".ridges > li").count() == 13 + 3 + 5 + 1
    assert page.locator(".ridges > .margin").count() == 3 + 1
    heights = page.evaluate(
        "Array.from(document.querySelectorAll('.ridge'), (e) => e.getBoundingClientRect().height)"
    )
    assert all(40 < height < 60 for height in heights)


def test_many_runs_on_one_page(opened: Opened, tmp_path: Path) -> None:
    """All groups with their margins, and hostile texts in every place."""
    paths = []
    for run, name in enumerate(("one", "<b>two", "three")):
        rows = [row | {"model": f"{name} {row['model']}"} for row in many(each=1, seed=run)]
        rows[0] |= {"question": HOSTILE[1], "response": HOSTILE[1], "domain": HOSTILE[0]}
        paths.append(tmp_path / name)
        score(rows, metrics="harmonicity", embedder=HashedWords(), out=paths[-1])
    write_pooled(paths, tmp_path / "pooled.html")
    for width, scheme in ((1280, "light"), (420, "dark")):
        page = opened(tmp_path / "pooled.html", width=width, color_scheme=scheme)
        open_everything(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate("window.violations") == []
        assert page.locator("img, script").count() == 0
        assert page.evaluate(CONTRASTS) == []
        groups = page.locator(".ridges > li:not(.margin)").count()
        assert groups == 12 * 3 + 12  # models in domains, and over all domains
        assert "12 models in 4 domains" in page.locator(".opening").inner_text()
        assert "answers need a look." in page.locator(".headline").inner_text()
        asked = page.locator(".asked").filter(has_text="onerror")
        assert asked.locator(".side > li").count() == 3
