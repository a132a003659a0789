"""Lines over time: the runs on them, and which places are marked as what."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.report.conftest import HOSTILE
from tests.view.conftest import Visited
from tests.view.test_answers import tags
from trustassay.runs.units import sketch_questions
from trustassay.view import trend
from trustassay.view.index import ALL

Visit = Callable[[Path], Visited]
DAY = 86_400.0
HIGH, LOW = (0.91, 0.88, 0.94), (0.78, 0.73, 0.82)


def add(root: Path, day: int, figure: tuple[float, ...] = HIGH, **run: Any) -> str:
    """Add a run of a day, with a mean and its interval; it is a copy with other figures."""
    key = f"day-{day:04}"
    (root / key).mkdir()
    settings = json.loads((root / "one" / "run.json").read_text())
    summary = json.loads((root / "one" / "summary.json").read_text())
    told = summary["metrics"]["faithfulness"]
    told["values"]["mean"], told["support"]["mean"] = figure[0], 300
    told["intervals"] = {"mean": list(figure[1:])} if len(figure) > 1 else {}
    model, asked = run.pop("model", ""), run.pop("asked", "")
    mean = {"mean": 0.5, "error": 0.02, "n": 30}
    groups = [{"model": model or "bee", "domain": None, "n": 30, "score": mean}]
    summary["groups"] = {"faithfulness": {"groups": groups}}
    if asked:
        summary["questions"] = sketch_questions(f"{asked} {i}?" for i in range(30))
    started = datetime.fromtimestamp(DAY * (day + 20_000), UTC).isoformat()
    (root / key / "run.json").write_text(json.dumps({**settings, "started": started, **run}))
    (root / key / "summary.json").write_text(json.dumps(summary))
    return key


@pytest.fixture
def days(root: Path) -> Path:
    """Twenty runs with a fall after the tenth; the run that they are copies of is away."""
    for day in range(20):
        add(root, day, HIGH if day < 10 else LOW)
    shutil.move(root / "one", root.parent / "one")
    return root


def line(visited: Visited, **asked: str) -> trend.TrendLine:
    return trend.line_of(visited.index, ("faithfulness", "mean", ALL), asked, 300)


def test_the_fall_is_named_and_leads_to_both_runs(days: Path, visit: Visit) -> None:
    visited = visit(days)
    (change,) = line(visited).clear
    assert (change.before.figure.key, change.after.figure.key) == ("day-0009", "day-0010")
    assert change.kind == "worse"
    for page in (visited.page(), visited.page("trend")):
        text = re.sub(r"<[^>]+>", "", page)
        assert "fell here" in text
        assert "0.910 (0.90 to 0.92) → 0.780 (0.76 to 0.80)" in text
        assert "compare?first=day-0009&amp;second=day-0010&amp;metric=faithfulness" in page
    page = visited.page("trend")
    assert page.count("<circle") == 20
    assert len(set(re.findall(r'<a href="(/[^"]+/run\?run=day-\d+)" tabindex', page))) == 20


def test_a_lower_figure_of_which_less_is_better_is_a_rise_for_the_good(
    days: Path, visit: Visit
) -> None:
    visited = visit(days)
    (change,) = line(visited).clear
    assert change.after.figure.better == "higher"
    worse = change.after._replace(figure=change.after.figure._replace(better="lower"))
    open_ = change.after._replace(figure=change.after.figure._replace(better=""))
    of = (change.at, change.before)
    assert trend.TrendChange(*of, worse, (), change.step).kind == "better"
    assert trend.TrendChange(*of, open_, (), change.step).kind == "changed"


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"backends": {"entailer": "openai:judge-2"}}, "entailer changed: lexical → "),
        ({"trustassay": "9.9"}, "→ 9.9"),
        (
            {"metrics": {"faithfulness": {"threshold": 0.9}}},
            "faithfulness: threshold changed: 0.5 → 0.9",
        ),
    ],
)
def test_another_judge_is_no_change(
    root: Path, visit: Visit, settings: dict[str, Any], why: str
) -> None:
    for day in range(20):
        add(root, day, HIGH if day < 10 else LOW, **(settings if day >= 10 else {}))
    shutil.move(root / "one", root.parent / "one")
    visited = visit(root)
    found = line(visited)
    assert not found.clear
    (change,) = found.changes
    assert (change.kind, change.at) == ("judge", 10)
    assert any(why in one for one in change.settings)
    page = re.sub(r"<[^>]+>", "", visited.page("trend"))
    assert "No clear change in 20 runs" in page and "judge changed" in page and why in page


def test_runs_of_other_questions_are_not_joined_nor_compared(root: Path, visit: Visit) -> None:
    for day in range(20):
        add(root, day, HIGH if day < 10 else LOW, asked="easy" if day < 10 else "hard")
    shutil.move(root / "one", root.parent / "one")
    visited = visit(root)
    assert len(line(visited).points) == 20
    assert not line(visited).changes
    page = visited.page("trend")
    (path,) = re.findall(r'class="line" d="([^"]+)"', page)
    assert path.count("M") == 2 and path.count("L") == 18
    assert "No clear change in 20 runs" in page


def test_two_sets_of_questions_in_turns_are_two_lines(root: Path, visit: Visit) -> None:
    for day in range(24):
        hard = day % 2
        add(root, day, LOW if hard or day >= 12 else HIGH, asked="hard" if hard else "easy")
    shutil.move(root / "one", root.parent / "one")
    visited = visit(root)
    (change,) = line(visited).clear
    assert (change.before.run, change.after.run) == ("day-0010", "day-0012")
    page = visited.page("trend")
    (path,) = re.findall(r'class="line" d="([^"]+)"', page)
    across = [float(x) for x in re.findall(r"[ML]([\d.]+) ", path)]
    assert path.count("M") == 2 and len(across) == 24
    assert across == [*sorted(across[:12]), *sorted(across[12:])], "each line goes on in time"
    first, second = (44 + (960 - 56) * place / 23 for place in (10, 12))
    assert f'class="place worse" d="M{(first + second) / 2:.1f} ' in page


def test_a_run_without_a_date_is_left_out_with_a_word(days: Path, visit: Visit) -> None:
    for name in ("day-0003", "day-0004"):
        path = days / name / "run.json"
        run = json.loads(path.read_text())
        del run["started"]
        path.write_text(json.dumps(run))
    visited = visit(days)
    assert len(line(visited).points) == 18
    page = visited.page("trend")
    assert "2 runs without a date, written by an earlier version, are left out" in page
    assert page.count("<circle") == 18
    assert visited.page().count("no date") == 2


def test_another_model_that_answered_is_told_beside_the_change(root: Path, visit: Visit) -> None:
    for day in range(12):
        add(root, day, HIGH if day < 6 else LOW, model="bee" if day < 6 else HOSTILE[0])
    shutil.move(root / "one", root.parent / "one")
    visited = visit(root)
    (change,) = line(visited).clear
    assert change.settings == [f"answering model changed: bee → {HOSTILE[0]}"]
    assert not line(visited, model="bee").clear
    page = visited.page("trend", model="bee")
    assert "No clear change in 6 runs" in page
    assert "script /view.js" in tags(page)
    assert not {one for one in tags(page) if one.startswith(("img", "a on", "svg on"))}


def test_a_domain_is_followed_across_models(root: Path, visit: Visit) -> None:
    for day in range(12):
        key = add(root, day)
        path = root / key / "summary.json"
        summary = json.loads(path.read_text())
        model, mean = ("ant", 0.95) if day < 6 else ("bee", 0.7)
        groups = [
            {
                "model": model,
                "domain": domain,
                "n": 100,
                "score": {"mean": own, "error": 0.02, "n": 100},
            }
            for domain, own in (("numbers", mean), ("rivers", 1.0))
        ]
        summary["groups"] = {"faithfulness": {"groups": groups}}
        path.write_text(json.dumps(summary))
    shutil.move(root / "one", root.parent / "one")
    visited = visit(root)
    of = ("faithfulness", "mean score")
    numbers = trend.line_of(visited.index, (*of, "numbers"), {}, 300)
    assert [one.kind for one in numbers.clear] == ["worse"] and len(numbers.points) == 12
    assert not trend.line_of(visited.index, (*of, "rivers"), {}, 300).changes
    (first, *_) = trend.line_of(visited.index, (*of, "ant"), {}, 300).points
    assert first.figure.value == pytest.approx(0.975) and first.figure.n == 200
    assert first.figure.high is not None and first.figure.high <= 1
    page = visited.page("trend", group="numbers")
    for group in ("numbers", "rivers", "ant", "ant / numbers"):
        assert f'<option value="{group}"' in page


def test_runs_without_an_interval_are_drawn_and_not_tested(root: Path, visit: Visit) -> None:
    for day in range(12):
        add(root, day, HIGH if day < 6 else (0.2,))
    shutil.move(root / "one", root.parent / "one")
    visited = visit(root)
    found = line(visited)
    assert len(found.points) == 12 and not found.changes
    assert visited.page("trend").count('class="whisker"') == 6


def test_thousands_of_runs_are_told_and_paged(
    days: Path, visit: Visit, monkeypatch: pytest.MonkeyPatch
) -> None:
    visited = visit(days)
    found = trend.line_of(visited.index, ("faithfulness", "mean", ALL), {}, 6)
    assert [one.figure.key for one in found.points] == [f"day-{day:04}" for day in range(14, 20)]
    rest = trend.line_of(visited.index, ("faithfulness", "mean", ALL), {}, 6, 18)
    assert [one.figure.key for one in rest.points] == ["day-0000", "day-0001"]
    monkeypatch.setattr(trend, "MAX_RUNS", 6)
    page = visited.page("trend")
    assert "6 of 20 runs are drawn" in page and "page 1 of 4" in page
    assert visited.page("trend", page="4").count("<circle") == 2
    assert "No finished run has this figure" in visited.page("trend", page="9")


def test_what_is_asked_for_stays_in_the_form(days: Path, visit: Visit) -> None:
    visited = visit(days)
    page = visited.page("trend", metric="faithfulness", group="bee", q="day-000")
    assert '<option value="bee" selected>' in page
    assert 'value="day-000"' in page
    assert page.count("<circle") == 10
    assert "mean score" in page
    strange: list[dict[str, Any]] = [{"metric": "no"}, {"figure": HOSTILE[0]}, {"page": "x"}]
    for query in [*strange, {"group": HOSTILE[1]}]:
        assert visited.page("trend", **query).count("<circle") == 20


def test_the_names_of_runs_are_text(root: Path, visit: Visit) -> None:
    for place, text in enumerate(HOSTILE):
        key = add(root, place)
        (root / key).rename(root / f"{place}{text.replace('/', '∕').replace(chr(0), '')}")
    shutil.move(root / "one", root.parent / "one")
    visited = visit(root)
    for page in (visited.page(), visited.page("trend")):
        assert page.count("<circle") >= 1
        found = tags(page)
        assert not found & {"img", "iframe", "base", "object"}
        assert not {one for one in found if " on" in one or one.startswith("script ")} - {
            "script /view.js"
        }


def test_a_folder_without_runs_has_an_empty_page(root: Path, visit: Visit) -> None:
    shutil.rmtree(root / "one")
    assert "No finished run has this figure" in visit(root).page("trend")
