"""Scores by model and domain: counted right, bounded, drawn, and escaped."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from tests.many import HashedWords, many
from trustassay import score
from trustassay.report.charts import (
    beyond,
    line_text,
    rating_svg,
    ratings_of,
    ridge_svg,
    ridges_of,
    ticks,
)
from trustassay.report.distributions import (
    FINE_BINS,
    MAX_COUNTED_GROUPS,
    MAX_DRAWN_GROUPS,
    Name,
    ScoreGroups,
)
from trustassay.runs.folder import RunFolder
from trustassay.runs.report import write_report
from trustassay.statistics.regression import RegressionLine
from trustassay.text.numbers import figure, with_error


@pytest.mark.parametrize(
    ("value", "error", "digits", "written"),
    [
        (0.063, 0.004, 3, "0.063(4)"),
        (0.150, 0.066, 3, "0.150(66)"),
        (4.63, 0.11, 2, "4.63(11)"),
        (4.6749, 0.0601, 2, "4.67(6)"),
        (0.25, None, 3, "0.250"),  # one value has no standard error
        (0.25, 0.0, 3, "0.250(0)"),
        (0.0, 0.0, 3, "0.000(0)"),
        (0.00123, 0.00004, 3, "0.00123(4)"),  # an error above 0 is not written as 0
        (12.3, 1.5, 2, "12.30(150)"),
        (-0.0001, 0.01, 3, "0.000(10)"),
        (1234.5, 2.0, 1, "1,234.5(20)"),
        (float("nan"), 0.1, 3, "–"),
        (0.5, float("inf"), 3, "0.500"),
        (0.5, 1e-30, 3, "0.5000000000(0)"),
    ],
)
def test_the_notation_of_the_paper(
    value: float, error: float | None, digits: int, written: str
) -> None:
    assert with_error(value, error, digits) == written


def test_a_small_figure_keeps_its_digits() -> None:
    assert figure(0.0634, "") == "0.063"
    assert figure(17.52, "") == "17.5"
    assert figure(3, "") == "3"
    assert figure(0.4, "%", 2) == "0.40\N{NARROW NO-BREAK SPACE}%"


def filled(**options: float | bool) -> ScoreGroups:
    groups = ScoreGroups(lower_is_better=True, stable_below=0.05, **options)  # type: ignore[arg-type]
    rng = np.random.default_rng(0)
    for model, scale, n in (("a", 0.05, 60), ("b", 0.1, 90)):
        for domain in ("x", "y"):
            for gamma in np.minimum(rng.gamma(1, scale, n), 1):
                groups.add(model, domain, float(gamma), float(5 - 6 * gamma))
    return groups


def test_groups_by_hand() -> None:
    groups = ScoreGroups(stable_below=0.05, lower_is_better=True)
    for value, rating in ((0.01, 5.0), (0.03, 4.0), (0.5, None), (0.1, 2.0)):
        groups.add("m", "d", value, rating)
    group = groups.cells[Name("m", "d")]
    assert (group.n, group.stable.n, group.ratings.n, group.stable_ratings.n) == (4, 2, 3, 2)
    assert group.stable.mean == pytest.approx(0.02)
    assert group.stable_ratings.mean == pytest.approx(4.5)
    assert group.counts.sum() == 4
    assert group.counts[4] == 1  # 0.01 lies in the fifth bin of 0.0025
    told = groups.to_dict()
    assert told["groups"][0]["model"] == "m"
    assert told["groups"][0]["stable_score"]["error"] == pytest.approx(0.01)
    assert told["all"]["rating"]["n"] == 3
    assert not groups.several
    assert groups.worth_showing  # there are ratings


def test_without_labels_and_groups_there_is_nothing_to_show() -> None:
    groups = ScoreGroups()
    assert not groups.worth_showing
    groups.add(None, None, 0.5, None)
    assert not groups.worth_showing
    assert groups.to_dict()["groups"] == [
        {"model": None, "domain": None, "score": {"n": 1, "mean": 0.5, "error": None}}
    ]


def test_groups_add_up() -> None:
    groups = filled()
    whole = groups.whole
    assert whole.n == 300
    assert groups.model("a").n == 120
    assert whole.counts.sum() == 300
    assert whole.line
    assert whole.line.slope == pytest.approx(-6)
    assert whole.line.intercept == pytest.approx(5)
    assert sum(one.n for one in groups.rated_bins(whole)) == 300
    assert list(groups.models()) == [Name("a", None), Name("b", None)]  # the lower mean first
    assert list(groups.by_domain()) == ["x", "y"]


def test_all_groups_of_ten_models_in_three_domains_have_their_margins() -> None:
    """Figure 1 of the paper: all models in the first row, all domains in the last column."""
    groups = ScoreGroups(lower_is_better=True)
    for model in range(10):
        for domain in range(3):
            for _ in range(domain + 1):
                groups.add(f"m{model}", f"d{domain}", model / 10, None)
    columns = groups.columns()
    assert [column.domain for column in columns] == ["d2", "d1", "d0", None]
    assert [len(column.rows) for column in columns] == [11] * 4
    assert sum(not row.margin for column in columns[:3] for row in column.rows) == 30
    assert [column.rows[0].group.n for column in columns] == [30, 20, 10, 60]
    assert [row.group.n for row in columns[-1].rows[1:]] == [6] * 10
    assert [row.model for row in columns[0].rows] == [None, *(f"m{n}" for n in range(10))]


def test_a_margin_of_one_group_is_left_out() -> None:
    groups = ScoreGroups()
    groups.add("m", "x", 0.5, None)
    groups.add("m", "y", 0.5, None)
    assert [len(column.rows) for column in groups.columns()] == [1, 1, 1]


@pytest.mark.slow
def test_however_many_groups_there_are_memory_is_bounded_and_nothing_is_lost() -> None:
    groups = ScoreGroups()
    for number in range(5000):
        groups.add("m", f"domain {number}", 0.5, 1.0)
        groups.add("m", "large", 0.25, None)
    assert len(groups.cells) == MAX_COUNTED_GROUPS
    shown = groups.shown()
    assert len(shown) == MAX_DRAWN_GROUPS
    assert Name("m", "large") in shown
    count, more, rest = groups.rest()
    assert (count, more) == (MAX_COUNTED_GROUPS - MAX_DRAWN_GROUPS, True)
    assert rest.n + sum(group.n for group in shown.values()) == groups.whole.n == 10_000
    assert groups.to_dict()["others"]["score"]["n"] == 5000 - MAX_COUNTED_GROUPS + 1
    assert max(len(name.domain or "") for name in groups.cells) <= 200


@pytest.mark.parametrize("value", [-1.0, 0.0, 1.0, 7.0, 0.049999999999999996])
def test_a_score_at_an_end_or_beyond_has_a_bin(value: float) -> None:
    groups = ScoreGroups()
    groups.add(None, None, value, None)
    assert groups.whole.counts.sum() == 1


def test_the_axis_ends_where_the_scores_do() -> None:
    groups = filled()
    ridges = ridges_of(groups)
    assert ridges.axis < FINE_BINS
    past = sum(beyond(ridges, group) for group in groups.shown().values())
    assert past <= 3  # 1 % of 300
    assert ScoreGroups().axis() == FINE_BINS


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0, 5, [0, 1, 2, 3, 4, 5]),
        (3.2, 4.7, [3, 3.5, 4, 4.5, 5]),
        (2, 2, [2, 2.5]),
        (0, 0, [0, 0.2]),
    ],
)
def test_ticks(low: float, high: float, expected: list[float]) -> None:
    assert ticks(low, high) == pytest.approx(expected)


def test_drawings_hold_numbers_alone() -> None:
    groups = filled()
    drawing = ridge_svg(groups, groups.whole, ridges_of(groups))
    assert 'role="img"' in drawing
    assert "300 scores, mean 0.0" in drawing
    assert 'class="bound"' in drawing
    rated = rating_svg(groups, groups.whole, ratings_of(groups))
    assert "m = −6.00 (−6.00 to −6.00)" in rated
    assert ">rating</text>" in rated
    assert ">score</text>" in rated
    assert ">gamma</text>" in rating_svg(groups, groups.whole, ratings_of(groups), "gamma")
    for number in re.findall(r' [xyr]="(.*?)"', drawing + rated):
        assert np.isfinite(float(number))


def test_a_group_of_one_does_not_flatten_the_others() -> None:
    groups = ScoreGroups(lower_is_better=True)
    for place in range(200):
        groups.add("many", None, place / 200, None)
    wide = ridges_of(groups)
    groups.add("one", None, 0.5, None)
    found = ridges_of(groups)
    assert found.peak == wide.peak < 0.1
    assert (wide.cut, found.cut) == (False, True)
    heights = re.findall(
        r'height="(.*?)"', ridge_svg(groups, groups.cells[Name("one", None)], found)
    )
    assert heights == ["100.00"]
    alone = ScoreGroups()
    alone.add("one", None, 0.5, None)
    assert ridges_of(alone).peak == 1.0


def test_ratings_that_are_all_alike_can_be_drawn() -> None:
    for rating in (0.0, -3.0, 1e9):
        groups = ScoreGroups()
        groups.add("m", None, 0.5, rating)
        assert "nan" not in rating_svg(groups, groups.whole, ratings_of(groups))


def test_a_label_that_can_be_no_rating_is_left_out() -> None:
    groups = ScoreGroups()
    groups.add("m", None, 0.5, 1e308)
    groups.add("m", None, 0.5, -1e99)
    assert groups.whole.ratings.n == 1
    json.dumps(groups.to_dict(), allow_nan=False)
    rating_svg(groups, groups.whole, ratings_of(groups))


def test_a_line_in_words() -> None:
    assert line_text(RegressionLine(2, -1.0, 4.5, None, None)) == "m = −1.00, b = 4.50"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a run of many models, with hostile names among them."""
    rows = list(many(each=6))
    names = ["<script>window.hacked = 1</script>", "\"><img src=x onerror='x'>", "a\u202eb\nc\x07"]
    for row, name in zip(rows, names, strict=False):
        row |= {"model": name, "domain": name}
    out = tmp_path_factory.mktemp("many") / "run"
    score(rows, metrics="harmonicity", embedder=HashedWords(), out=out, report=True)
    return out


def test_the_page_shows_groups_ratings_and_the_table(run: Path) -> None:
    page = (run / "report.html").read_text(encoding="utf-8")
    for words in (
        "Scores by model and domain",
        "Human ratings by score",
        "least-squares line",
        "all domains",
        "larch-70b",
    ):
        assert words in page
    assert "<img src=x" not in page
    assert "window.hacked = 1</script>" not in page
    assert "\u202e" not in page


def test_the_summary_holds_every_group(run: Path) -> None:
    found = (RunFolder(run).read_summary() or {})["groups"]["harmonicity"]
    assert len(found["groups"]) == 15
    assert found["stable_below"] == 0.05
    assert sum(group["score"]["n"] for group in found["groups"]) == found["all"]["score"]["n"] == 72
    assert {"slope", "intercept_interval"} <= set(found["all"]["line"])


def test_the_domain_can_stand_elsewhere(tmp_path: Path) -> None:
    rows = [row | {"domain": None, "about": {"topic": "t" + row["id"][-1]}} for row in many(each=2)]
    out = tmp_path / "run"
    score(rows, metrics="harmonicity", embedder=HashedWords(), out=out, report=True)
    assert "Scores by model and domain" not in (out / "report.html").read_text()
    write_report(RunFolder(out), domain_field="about.topic")
    assert "Scores by model and domain" in (out / "report.html").read_text()


def test_a_run_of_one_group_has_no_groups(tmp_path: Path) -> None:
    rows = [row | {"domain": "", "model": "m", "label": None} for row in many(each=1)]
    out = tmp_path / "run"
    score(rows, metrics="harmonicity", embedder=HashedWords(), out=out, report=True)
    assert "groups" not in (RunFolder(out).read_summary() or {})
    assert 'class="groups"' not in (out / "report.html").read_text()
