"""Two runs on a page: what became of which answers, the decision of `gate`, and its export."""

from __future__ import annotations

import json
import re
import shutil
import threading
import time
from collections.abc import Callable
from functools import partial
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from tests.report.conftest import HOSTILE
from tests.view.conftest import Visited, rows
from tests.view.test_answers import tags
from trustassay import score
from trustassay.compare import gate_files
from trustassay.compare.gate import gate
from trustassay.compare.gate_rules import EarlierRun
from trustassay.compare.two_runs import compare
from trustassay.view import two
from trustassay.view.pages import ResultCache, Site

Visit = Callable[[Path], Visited]
HOW: dict[str, Any] = {"metrics": "faithfulness", "entailer": "lexical", "report": False}


def later() -> list[dict[str, Any]]:
    """The answers of a later run: two are worse, one is better, one is refused, two are gone."""
    result = {one["id"]: dict(one) for one in rows(24)}
    for name in ("town-1", "town-2"):
        result[name]["response"] = result[name]["response"].replace("1850", "1777")
    result["town-0"]["response"] = result["town-0"]["response"].replace("1923", "1850")
    result["town-4"]["response"] = "I do not know."
    del result["town-5"], result["town-7"]
    return [*result.values(), {**rows(1)[0], "id": "extra", "question": "Is this new?"}]


@pytest.fixture(scope="session")
def both(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two runs."""
    folder = tmp_path_factory.mktemp("both")
    score(rows(24), out=folder / "one", **HOW)
    score(later(), out=folder / "two", **HOW)
    return folder


@pytest.fixture
def pair(both: Path, tmp_path: Path) -> Path:
    """A copy of them, which a test may change."""
    shutil.copytree(both, tmp_path / "pair")
    return tmp_path / "pair"


def words(page: str) -> str:
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", "", page)))


def ids(page: str) -> list[str]:
    """The answers that are listed, by their ids after the change."""
    found = re.findall(r"after <a [^>]*><bdi>(.*?)</bdi></a>", page)
    return [unescape(one) for one in found]


def asked(visited: Visited, **query: Any) -> str:
    return visited.page("compare", **{"first": "one", "second": "two", **query})


def test_each_kind_has_its_answers(both: Path, visit: Visit) -> None:
    visited = visit(both)
    assert sorted(ids(asked(visited))) == ["town-1", "town-2"]
    assert ids(asked(visited, show="better")) == ["town-0"]
    assert ids(asked(visited, show="not answered")) == ["town-4"]
    assert ids(asked(visited, show="new")) == ["extra"]
    gone = asked(visited, show="gone")
    assert "town-5" in gone and "town-7" in gone and "No answer in this run." in gone
    page = asked(visited, show="all")
    assert len(re.findall('<div class="beside">', page)) == 24 + len(HOSTILE) + 1
    assert 'show=worse" aria-current="true">2</a>' in asked(visited)


def test_the_counts_are_those_of_compare(both: Path, visit: Visit) -> None:
    found = compare(both / "one", both / "two", metric="faithfulness")
    query = {"first": "one", "second": "two"}
    visited = visit(both)
    one = two.TwoRunsQuery.of(visited.index, query)
    assert one is not None
    read = two.TwoRuns.read((both / "one", both / "two"), one)
    counts = read.counts()[""]
    # The page lists an answer that became a refusal apart; `compare` counts it as worse.
    assert counts["worse"] + counts["not answered"] == found.answers.counts["worse"] == 3
    assert counts["better"] == found.answers.counts["better"]
    assert counts["gone"] == found.pairing.only_first
    assert counts["new"] == found.pairing.only_second
    assert counts.total() == found.pairing.only_second + len(found.scores[0].scores)
    by_group = read.counts()
    assert by_group.keys() >= {"", "ant", "bee"}
    for kind, count in counts.items():
        assert sum(own[kind] for group, own in by_group.items() if group) == count


def test_a_group_alone_is_shown(both: Path, visit: Visit) -> None:
    visited = visit(both)
    assert ids(asked(visited, group="ant")) == ["town-1"]
    assert ids(asked(visited, group="bee")) == ["town-2"]
    assert not ids(asked(visited, group="no such"))


def test_texts_are_searched_in_both_runs(both: Path, visit: Visit) -> None:
    visited = visit(both)
    assert ids(asked(visited, q="TOWN 2 was")) == ["town-2"]
    assert sorted(ids(asked(visited, q="1777"))) == ["town-1", "town-2"]
    assert ids(asked(visited, q="1923", show="better")) == ["town-0"]  # of the first run alone
    page = asked(visited, q="no such text")
    assert not ids(page) and 'value="no such text"' in page and "q=no+such+text" in page


def test_words_that_differ_are_marked_on_their_side(both: Path, visit: Visit) -> None:
    page = asked(visit(both), group="ant")
    assert page.count("<del>1850.</del>") == 1
    assert page.count("<ins>1777.</ins>") == 1
    assert page.index("<del>1850.") < page.index("<ins>1777.")
    unchanged = asked(visit(both), show="same")
    assert "The same response." in unchanged


def test_the_decision_is_that_of_gate_and_so_is_the_markdown(both: Path, visit: Visit) -> None:
    visited = visit(both)
    decided = gate(both / "two", (), EarlierRun(both / "one"))
    text = words(asked(visited))
    assert f"gate: {decided.result}" in text
    for check in decided.checks:
        assert gate_files.value_of(check) in text
        assert check.why.replace(f"{both}/", "") in text
    reply = visited.client.get(
        f"{visited.base}/compare.md", params={"first": "one", "second": "two"}
    )
    assert reply.headers["content-type"].startswith("text/markdown")
    assert reply.headers["content-disposition"] == 'attachment; filename="gate.md"'
    assert reply.text == gate_files.render_markdown(decided).replace(f"{both}/", "")
    assert str(both) not in reply.text


def test_a_margin_is_in_the_rule_and_the_address(both: Path, visit: Visit) -> None:
    page = asked(visit(both), margin="60")
    assert "margin 60 points" in words(page)
    assert 'name="margin" inputmode="decimal" size="5" value="60"' in page
    assert "margin=60" in page
    for strange in ("x", "nan", "-4"):
        assert "gate:" in words(asked(visit(both), margin=strange))


def test_how_to_decide_is_said(labelled: Path, tmp_path: Path, visit: Visit) -> None:
    root = tmp_path / "runs"
    shutil.copytree(labelled, root)
    changed = [dict(one) for one in rows(240)[:240]]
    for one in changed[1:5]:
        one["response"] = one["response"].replace("1850", "1777")
    score(changed, out=root / "two", **HOW)
    decided = gate(root / "two", (), EarlierRun(root / "one", margin=1))
    (check,) = (one for one in decided.checks if one.advice)
    text = words(asked(visit(root), margin="1"))
    assert "gate: undecided" in text
    assert f"{check.name}: {check.advice}.".replace(f"{root}/", "") in text


def test_another_judge_is_said_and_can_be_accepted(pair: Path, visit: Visit) -> None:
    settings = json.loads((pair / "two" / "run.json").read_text())
    settings["backends"] = {"entailer": "openai:other"}
    (pair / "two" / "run.json").write_text(json.dumps(settings))
    visited = visit(pair)
    page = asked(visited)
    assert "judged differently" in page and "gate:" not in words(page)
    reply = visited.client.get(
        f"{visited.base}/compare.md", params={"first": "one", "second": "two"}
    )
    assert reply.status_code == 409
    assert "gate:" in words(asked(visited, other="1"))


def test_runs_that_cannot_be_compared_are_named(pair: Path, visit: Visit) -> None:
    shutil.copytree(pair / "one", pair / "open")
    (pair / "open" / "summary.json").unlink()
    shutil.copytree(pair / "one", pair / "other")
    for name in ("run", "summary"):
        path = pair / "other" / f"{name}.json"
        path.write_text(path.read_text().replace('"faithfulness"', '"grounding"'))
    visited = visit(pair)
    assert "not finished" in asked(visited, second="open", status=409)
    assert "no metric in common" in asked(visited, second="other", status=409)
    for strange in ("", "nowhere", "../one", HOSTILE[0]):
        assert "Choose two runs" in asked(visited, second=strange, status=404)
        assert "Choose two runs" in visited.page("compare.md", 404, first="one", second=strange)


def test_runs_that_are_not_read_yet_are_waited_for(both: Path, visit: Visit) -> None:
    visited = visit(both)
    visited.index.waiting = 3
    assert "being read" in asked(visited, second="later")
    visited.index.waiting = 0
    assert "Choose two runs" in asked(visited, second="later", status=404)


def test_what_takes_longer_is_followed_and_computed_once(
    both: Path, visit: Visit, monkeypatch: pytest.MonkeyPatch
) -> None:
    go, calls = threading.Event(), list[object]()
    read = two.TwoRuns.read

    def slow(*given: Any) -> two.TwoRuns:
        calls.append(given)
        go.wait(20)
        return read(*given)

    monkeypatch.setattr(two.TwoRuns, "read", slow)
    monkeypatch.setattr(two, "PATIENCE_S", 0.01)
    monkeypatch.setattr(two.TwoRunsQuery.find_comparison, "__defaults__", (0.01,))
    visited = visit(both)
    reply = visited.client.get(f"{visited.base}/compare", params={"first": "one", "second": "two"})
    assert reply.headers["refresh"] == "1"
    assert "Comparing one and two" in reply.text
    go.set()
    deadline = time.monotonic() + 20
    while "Comparing one" in asked(visited) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert ids(asked(visited))
    assert len(calls) == 1


def test_what_failed_is_tried_again() -> None:
    kept, calls = ResultCache(), list[int]()

    def make() -> int:
        calls.append(1)
        if len(calls) == 1:
            raise ValueError("not yet")
        return 7

    with pytest.raises(ValueError, match="not yet"):
        kept.get("a", make, 5)
    assert [kept.get("a", make, 5), kept.get("a", make, 5)] == [7, 7]
    assert len(calls) == 2


def test_hostile_text_is_text(both: Path, visit: Visit) -> None:
    visited = visit(both)
    for show in ("all", "worse", HOSTILE[0]):
        for extra in ({}, {"group": HOSTILE[1]}, {"metric": HOSTILE[2]}):
            page = asked(visited, show=show, **extra)
            found = tags(page)
            assert not found & {"img", "iframe", "base", "object"}
            scripts = {one for one in found if " on" in one or one.startswith("script ")}
            assert scripts == {"script /view.js"}


def test_who_rates_blind_sees_no_verdict(both: Path, visit: Visit) -> None:
    visited = visit(both)
    visited.site.rater = "anna"
    page = words(asked(visited))
    assert page.count("not yet rated by you") == 2
    assert "1777" in page and "no passage says this" not in page and "not found 0" not in page
    visited.site.blind = False
    page = words(asked(visited))
    assert "no passage says this" in page and "→ not found 0" in page


def test_two_runs_are_chosen_in_the_list(both: Path, visit: Visit) -> None:
    page = visit(both).page()
    for side in ("first", "second"):
        assert page.count(f'type="radio" form="two" name="{side}"') == 2
    assert re.search(r'<form id="two"[^>]* action="/[^"]+/compare">', page)


# study, calibrate and gate


@pytest.fixture(scope="session")
def labelled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run whose answers have labels."""
    folder = tmp_path_factory.mktemp("labelled")
    given = [one | {"label": int(place % 3 > 0)} for place, one in enumerate(rows(240)[:240])]
    score(given, out=folder / "one", **HOW)
    return folder


def test_documents_are_those_of_the_commands(labelled: Path, visit: Visit) -> None:
    visited = visit(labelled)
    page = words(visited.page("study", run="one"))
    assert "Scores compared with labels: one" in page and "AUROC" in page
    page = words(visited.page("calibrate", run="one"))
    assert "Calibration of faithfulness" in page and "Accepted answers" in page
    page = words(visited.page("gate", run="one", min="faithfulness.mean=0.99"))
    assert "gate: fail" in page and "at least 0.99" in page
    page = words(
        visited.page("gate", run="one", min="faithfulness.mean=0.1", max="faithfulness.errors=0")
    )
    assert "gate: pass" in page


def test_ratings_in_the_folder_are_labels(labelled: Path, tmp_path: Path, visit: Visit) -> None:
    shutil.copytree(labelled, tmp_path / "runs")
    ratings = tmp_path / "runs" / "one" / "ratings-anna.jsonl"
    with ratings.open("w") as file:
        for place in range(60):
            row = {"item": f"town-{place}", "rater": "anna", "rating": int(place % 3 > 0)}
            file.write(json.dumps(row) + "\n")
    visited = visit(tmp_path / "runs")
    page = visited.page("study", run="one")
    assert '<option value="ratings-anna.jsonl">' in page
    page = visited.page("study", run="one", ratings="ratings-anna.jsonl", label="")
    assert '<option value="ratings-anna.jsonl" selected>' in page
    assert "AUROC" in page
    outside = words(visited.page("study", run="one", ratings="../one/samples.jsonl"))
    assert "AUROC" in outside  # no such file is listed: the field of the answers is taken


def test_what_a_document_lacks_is_said(both: Path, visit: Visit) -> None:
    visited = visit(both)
    assert "use --label FIELD" in words(visited.page("study", run="one"))
    assert "no rule" in words(visited.page("gate", run="one"))
    assert "expected FIGURE=NUMBER" in words(visited.page("gate", run="one", min=HOSTILE[0]))
    assert "No such run" in words(visited.page("study", 404, run=HOSTILE[0]))
    for command in ("study", "calibrate", "gate"):
        page = visited.page(
            command, run="one", label=HOSTILE[0], min=HOSTILE[1], ratings=HOSTILE[2]
        )
        assert "script /view.js" in tags(page) and "img" not in tags(page)


def test_the_site_keeps_what_it_computed(tmp_path: Path) -> None:
    site = Site(tmp_path, "/t")
    assert [site.results.get(n, partial(int, n)) for n in range(9)] == list(range(9))
    assert len(site.results._futures) == 6
