"""The page of an ascent: what changed, what was kept, and what hostile text may do to it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from trustassay.metrics.harmonicity.ascent import Point
from trustassay.report.ascent import AscentPage, write_ascent_page

START = Point(0, 0, "Say it.", "It.", 0.1, 5.7, kept=True)


def page_of(*points: Point) -> AscentPage:
    return AscentPage({"model": "m"}, "headline", [], [START, *points])


def written(page: AscentPage, tmp_path: Path) -> str:
    write_ascent_page(page, tmp_path / "page.html")
    return (tmp_path / "page.html").read_text("utf-8")


def dots(page: AscentPage) -> list[tuple[str, float, float]]:
    found = re.findall(r'<circle class="([^"]+)" cx="([\d.]+)" cy="([\d.]+)"', page.drawing)
    return [(kind, float(x), float(y)) for kind, x, y in found]


def test_a_change_is_told_from_the_prompt_it_was_made_from() -> None:
    first = Point(1, 1, "Say it. ab", "x", 0.3, 17, kept=True)
    second = Point(2, 1, "Say it. ab cd", "x", 0.2, 11)
    page = page_of(first, second)
    assert page.change(first) == [("new", " ab")]
    assert page.change(second) == [("same", " ab"), ("new", " cd")]
    assert (page.spelled(second), page.spelled(Point(1, 2, "Say it. \u168d"))) == ("", "U+168D")


def test_a_change_inside_the_prompt_shows_the_whole() -> None:
    page = page_of(Point(1, 1, "Sya it.", "x", 0.3, 17))
    assert page.change(page.points[1]) == [("gone", "Say"), ("new", "Sya"), ("same", " it.")]


def test_each_measured_prompt_is_a_dot_at_its_gamma() -> None:
    page = page_of(
        Point(1, 1, "Say it. a", "x", 0.5, 30, kept=True),
        Point(1, 2, "Say it. b", "x", 1.0, 90),
        Point(2, 1, "Say it. c", error="refused"),
        Point(2, 2, "Say it. d", "x", 0.1, 5.7),
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
        Point(step, 1, f"Say it. {step}", "x", 0.1 * step, 6.0 * step, kept=kept)
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
    assert words not in written(page_of(Point(1, 1, "Say it. a", "x", 0.9, 80)), tmp_path)
    assert words in written(page_of(Point(1, 1, "Say it. a", "x", 0.9, 100)), tmp_path)


def test_hostile_text_stays_text(tmp_path: Path) -> None:
    evil = "<script>alert(1)</script>\u202e\x00"
    html = written(
        page_of(
            Point(1, 1, "Say it." + evil, evil, 0.5, 30, kept=True),
            Point(1, 2, evil, evil, 0.4, 24),
            Point(1, 3, evil, error=evil),
        ),
        tmp_path,
    )
    assert "<script" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    assert not re.search("[\x00\u202e]", html)
