"""The page of an ascent: what changed, what was kept, and what hostile text may do to it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from trustassay.papers.harmonicity.ascent import AscentPoint
from trustassay.papers.harmonicity.ascent_page import AscentPage, write_ascent_page

START = AscentPoint(0, 0, "Say it.", "It.", 0.1, 5.7, kept=True)


def page_of(*points: AscentPoint) -> AscentPage:
    return AscentPage({"model": "m"}, "headline", [], [START, *points])


def written(page: AscentPage, tmp_path: Path) -> str:
    write_ascent_page(page, tmp_path / "page.html")
    return (tmp_path / "page.html").read_text("utf-8")


def dots(page: AscentPage) -> list[tuple[str, float, float]]:
    found = re.findall(r'<circle class="([^"]+)" cx="([\d.]+)" cy="([\d.]+)"', page.drawing)
    return [(kind, float(x), float(y)) for kind, x, y in found]


def test_a_change_is_told_from_the_prompt_it_was_made_from() -> None:
    first = AscentPoint(1, 1, "Say it. ab", "x", 0.3, 17, kept=True)
    second = AscentPoint(2, 1, "Say it. ab cd", "x", 0.2, 11)
    page = page_of(first, second)
    assert page.change(first) == [("new", " ab")]
    assert page.change(second) == [("same", " ab"), ("new", " cd")]
    assert (
        page.spell_characters(second),
        page.spell_characters(AscentPoint(1, 2, "Say it. \u168d")),
    ) == ("", "U+168D")


def test_a_change_inside_the_prompt_shows_the_whole() -> None:
    page = page_of(AscentPoint(1, 1, "Sya it.", "x", 0.3, 17))
    assert page.change(page.points[1]) == [("gone", "Say"), ("new", "Sya"), ("same", " it.")]


def test_each_measured_prompt_is_a_dot_at_its_gamma() -> None:
    page = page_of(
        AscentPoint(1, 1, "Say it. a", "x", 0.5, 30, kept=True),
        AscentPoint(1, 2, "Say it. b", "x", 1.0, 90),
        AscentPoint(2, 1, "Say it. c", error="refused"),
        AscentPoint(2, 2, "Say it. d", "x", 0.1, 5.7),
    )
    found = dots(page)
    assert sorted(kind for kind, _, _ in found) == ["dot", "dot", "dot single", "dot single"]
    at = {(round(x), y) for _, x, y in found}
    assert len(at) == 4
    highest = min(found, key=lambda dot: dot[2])
    lowest = [y for _, _, y in found if y == max(y for _, _, y in found)]
    assert highest[0] == "dot single"
    assert len(lowest) == 2  # the start and the last candidate have the same gamma


@pytest.mark.parametrize(
    ("later", "expected"),
    [
        ([(1, True)], "ML"),
        ([(1, False), (2, False)], "MH"),
        ([(1, True), (2, False), (3, True)], "MLHL"),
        ([(1, False), (2, True), (3, False)], "MHLH"),
    ],
)
def test_the_way_stays_level_until_the_next_rise(
    later: list[tuple[int, bool]], expected: str
) -> None:
    points = [
        AscentPoint(step, 1, f"Say it. {step}", "x", 0.1 * step, 6.0 * step, kept=kept)
        for step, kept in later
    ]
    way = re.search(r'<path class="fit" d="([^"]+)"', page_of(*points).drawing)
    assert way
    assert re.sub(r"[^MLH]", "", way[1]) == expected


def test_a_search_that_ended_at_its_start(tmp_path: Path) -> None:
    html = written(page_of(), tmp_path)
    assert "Say it." in html
    assert html.count("<circle") == 1


def test_only_an_angle_beyond_90_is_spoken_of(tmp_path: Path) -> None:
    words = "Beyond an angle of 90"
    assert words not in written(page_of(AscentPoint(1, 1, "Say it. a", "x", 0.9, 80)), tmp_path)
    assert words in written(page_of(AscentPoint(1, 1, "Say it. a", "x", 0.9, 100)), tmp_path)


def test_hostile_text_stays_text(tmp_path: Path) -> None:
    evil = "<script>alert(1)</script>\u202e\x00"
    html = written(
        page_of(
            AscentPoint(1, 1, "Say it." + evil, evil, 0.5, 30, kept=True),
            AscentPoint(1, 2, evil, evil, 0.4, 24),
            AscentPoint(1, 3, evil, error=evil),
        ),
        tmp_path,
    )
    assert "<script" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    assert not re.search("[\x00\u202e]", html)


# what is shown


def text_of(html: str) -> str:
    body = html[html.index("<main>") :]
    return " ".join(re.sub("<[^>]+>", " ", body).split())


def test_calls_stand_below_the_steps_and_above_the_rows(tmp_path: Path) -> None:
    page = AscentPage(
        {},
        "headline",
        [],
        [
            AscentPoint(0, 0, "Say it.", "It.", 0.1, 5.7, kept=True, calls=11),
            AscentPoint(1, 1, "Say it. a", "x", 0.5, 30, kept=True, calls=1033),
            AscentPoint(2, 1, "Say it. a b", "x", 0.4, 24, calls=2044),
        ],
    )
    words = re.findall("<text[^>]*>([^<]+)</text>", page.drawing)
    assert [word for word in words if word.replace(",", "").isdigit() and word != "0"][-5:] == [
        "11", "1", "1,033", "2", "2,044",
    ]  # fmt: skip
    text = text_of(written(page, tmp_path))
    assert "Start 11 calls so far" in text
    assert "Step 1 1,033 calls so far" in text
    assert "Step 2 2,044 calls so far" in text


def test_what_failed_is_a_cross_at_the_foot_with_its_reason(tmp_path: Path) -> None:
    page = page_of(
        AscentPoint(1, 1, "Say it. a", "x", 0.5, 30, kept=True),
        AscentPoint(1, 2, "Say it. \x07", error="400: <b>no</b>"),
    )
    assert page.drawing.count('class="failed"') == 1
    assert "failed: 400: &lt;b&gt;no&lt;/b&gt;" in page.drawing
    assert "1 of them failed" in page.drawing
    html = written(page, tmp_path)
    assert "failed, no gamma" in html
    assert text_of(html).count("400: &lt;b&gt;no&lt;/b&gt;") == 2  # its row, and its cross
    assert "failed, no gamma" not in written(page_of(), tmp_path)


@pytest.mark.parametrize(
    ("tail", "spelled"),
    [
        (" ab", ""),
        (" ê \u168d", "U+00EA U+168D"),
        ("\t\u2003 ", "U+0009 U+2003 U+0020"),
        ("\r\n", "U+000D U+000A"),  # of these the page shows one line end
        ("\x01\x1b", ""),  # chips where they stand
        (" \u0301", "U+0301"),
    ],
)
def test_what_no_reader_sees_is_spelled(tail: str, spelled: str, tmp_path: Path) -> None:
    point = AscentPoint(1, 1, "Say it." + tail, "x", 0.5, 30, kept=True)
    page = page_of(point)
    assert page.spell_characters(point) == spelled
    html = written(page, tmp_path)
    for character in tail:
        if not character.isprintable() and character != "\t":
            assert f"U+{ord(character):04X}" in html


def test_only_what_is_new_is_spelled() -> None:
    first = AscentPoint(1, 1, "Say it. \u168d", "x", 0.3, 17, kept=True)
    second = AscentPoint(2, 1, "Say it. \u168d \ua120", "x", 0.2, 11)
    page = page_of(first, second)
    assert page.spell_characters(second) == "U+A120"
    assert page.name_characters(second) == "yi syllable tiep"


def test_a_change_of_white_space_inside_is_told() -> None:
    page = page_of(AscentPoint(1, 1, "Say  it.", "x", 0.3, 17))
    assert page.spell_characters(page.points[1]) == "differs in white space"


def test_a_descent_is_drawn_downwards() -> None:
    page = page_of(
        AscentPoint(1, 1, "Say it. a", "x", 0.05, 3, kept=True),
        AscentPoint(1, 2, "Say it. b", "x", 0.4, 24),
    )
    kept = [y for kind, _, y in dots(page) if kind == "dot"]
    assert len(kept) == 2
    assert kept[1] > kept[0]  # downwards on the page
