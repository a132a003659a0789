"""Ratings on the pages of ``view``: what is hidden, what is stored, and who can read it then."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from starlette.testclient import TestClient

from tests.people.towns import town_run, towns
from tests.report.conftest import HOSTILE
from tests.support import lines
from trustassay import label, score, study
from trustassay.input.ratings import read_ratings
from trustassay.input.records import InputError
from trustassay.metrics.judge import read_rubric
from trustassay.people.agree import measure_agreement
from trustassay.people.annotate.items import RatingInputOptions
from trustassay.people.annotate.project import AnnotateOptions, open_project
from trustassay.people.annotate.session import AnnotationSession, RatingsFile
from trustassay.people.calibrate.command import calibrate
from trustassay.people.label.calibration_work import CalibrationPlanOptions, CalibrationWork
from trustassay.people.label.command import default_plan
from trustassay.people.label.plan import read_plan
from trustassay.people.study.labels import LabelSource
from trustassay.report.serving import AccessLinks, AllowedHosts
from trustassay.view import next as next_page
from trustassay.view import rating
from trustassay.view.index import Index
from trustassay.view.pages import Site
from trustassay.view.server import application

ANSWERS = 60
HIDDEN = ("badge", "refusal", "supported", "Numbers behind the score")
"""What the page of an answer says of its scores."""


class Visitor:
    """A person at the pages of a folder."""

    def __init__(
        self, root: Path, cache: Path, rater: str = "anna", rubric: str = "answer", **options: Any
    ) -> None:
        index = Index(root, cache)
        index.refresh()
        self.root, self.links, self.said = root, AccessLinks(cache, ["viewer"]), list[str]()
        self.base = f"/{self.links.tokens['viewer']}"
        self.site = Site(root.resolve(), self.base, rater, read_rubric(rubric), **options)
        hosts = AllowedHosts("127.0.0.1")
        served = application(self.site, index, self.links, self.said.append, hosts)
        self.client = TestClient(
            served, base_url="http://127.0.0.1:80", raise_server_exceptions=False
        )

    def get(self, page: str, **asked: Any) -> Any:
        return self.client.get(f"{self.base}/{page}?{urlencode({'run': 'one', **asked})}")

    def post(self, page: str, at: int = 0, asked: Any = (), **fields: Any) -> Any:
        query = urlencode({"run": "one", "at": at, **dict(asked)})
        return self.client.post(f"{self.base}/{page}?{query}", data=fields)

    def next_place(self) -> int:
        """Return the place of the answer that the page asks for."""
        return int(self.get("next").text.split("/rate?at=")[1].split("&")[0])


@pytest.fixture
def root(tmp_path: Path) -> Path:
    town_run(tmp_path / "runs" / "one", towns(ANSWERS, junk=True), metrics="faithfulness")
    return tmp_path / "runs"


@pytest.fixture
def visit(root: Path, tmp_path: Path) -> Callable[..., Visitor]:
    return lambda rater="anna", **options: Visitor(root, tmp_path / "i.sqlite", rater, **options)


def stored(root: Path, name: str = "ratings-answer.jsonl") -> list[dict[str, Any]]:
    return lines(root / "one" / name)[1:]


def test_scores_are_hidden_until_the_answer_is_rated(visit: Callable[..., Visitor]) -> None:
    anna = visit()
    before = anna.get("answer", at=1)
    assert before.status_code == 200
    assert "Town 1 lies on the river Arve" in before.text
    assert not [word for word in HIDDEN if word in before.text]
    assert '"id">t1' not in before.text
    after = anna.post("rate", 1, choice=4, note="why <b>")
    assert after.url.path == f"{anna.base}/answer"
    assert "badge" in after.text and "Numbers behind the score" in after.text
    assert "You rated <b><bdi>4</bdi></b>" in after.text and "why &lt;b&gt;" in after.text
    assert "badge" not in anna.get("answer", at=2).text
    assert "badge" in visit(blind=False).get("answer", at=2).text
    assert "badge" in visit("").get("answer", at=2).text


def test_the_list_hides_what_its_rater_has_not_rated(visit: Callable[..., Visitor]) -> None:
    anna = visit()
    anna.post("rate", 1, choice=4)
    shown = anna.get("run", order="position").text.split('<li class="')[1:]
    assert ["badge" in one for one in shown[:3]] == [False, True, False]
    assert "data-problem" not in shown[0] and "<mark" not in shown[0]


def test_a_rating_is_one_of_annotate(visit: Callable[..., Visitor], root: Path) -> None:
    anna = visit()
    anna.post("rate", 0, choice=1, note="n")
    anna.post("rate", 3, choice=5)
    (first, _) = stored(root)
    named = {name: first[name] for name in ("item", "rater", "rating", "repeat", "note", "blind")}
    assert named == {
        "item": "t0", "rater": "anna", "rating": 1, "repeat": 0, "note": "n", "blind": True,
    }  # fmt: skip
    run, path = root / "one", root / "one" / "ratings-answer.jsonl"
    options = AnnotateOptions(["anna"], [read_rubric("answer")], reading=RatingInputOptions())
    project = open_project(run, options)
    with closing(RatingsFile(path)) as file:
        session = AnnotationSession(project, file, file.begin(project.start))
        assert session.raters["anna"].rated == 2
        step = session.raters["anna"].current
        assert step is not None
        asyncio.run(session.rate("anna", step, "2"))
    assert len(stored(root)) == 3
    of_annotate = next(row for row in stored(root) if "blind" not in row)
    assert (
        f"You rated <b><bdi>{of_annotate['rating']}"
        in anna.get("answer", id=of_annotate["item"]).text
    )


def test_a_request_that_comes_again_stores_nothing_new(
    visit: Callable[..., Visitor], root: Path
) -> None:
    anna = visit()
    for _ in range(3):
        anna.post("rate", 0, choice=1)
    assert len(stored(root)) == 1
    assert "blind" in anna.post("rate", 0, act="undo").text or True
    anna.post("rate", 0, act="undo")
    assert [row.get("action") for row in stored(root)] == [None, "undo"]
    assert "badge" not in anna.get("answer", at=0).text
    anna.post("rate", 0, act="skip", note="cannot tell")
    assert "badge" not in anna.get("answer", at=0).text
    anna.post("rate", 0, choice=2)
    anna.post("rate", 0, choice=3)
    assert [row["blind"] for row in stored(root)] == [True, False, True, True, False]
    assert [one.value for one in read_ratings(root / "one/ratings-answer.jsonl").ratings] == [3]


def test_people_see_each_other_once_they_have_rated(
    visit: Callable[..., Visitor], root: Path
) -> None:
    anna, bela = visit("anna"), visit("bela")
    anna.post("rate", 0, choice=1, note="a note by anna")
    assert "a note by anna" not in bela.get("answer", at=0).text
    page = bela.post("rate", 0, choice=3).text
    assert "a note by anna" in page and "mean 2" in page
    assert "a note by anna" in visit("").get("answer", at=0).text
    (root / "one" / "ratings-table.jsonl").write_text("{damaged\n")
    assert "ratings-table.jsonl:1: the line is damaged (not JSON)" in bela.get("answer", at=0).text
    (root / "one" / "verdicts.jsonl").write_text("{damaged\n")
    assert "verdicts.jsonl:1: the line is damaged (not JSON)" in bela.get("answer", at=0).text


def test_nobody_rates_where_the_pages_are_only_read(
    visit: Callable[..., Visitor], root: Path
) -> None:
    reader, anna = visit(""), visit()
    for page in ("rate", "verdict", "propose"):
        assert (
            reader.post(page, choice=4, metric="faithfulness", verdict="wrong").status_code == 403
        )
    assert "data-rate" not in reader.get("answer", at=0).text + reader.get("next").text
    wrong = anna.client.post("/0000/rate?run=one&at=0", data={"choice": "4"})
    assert wrong.status_code == 404
    url = f"{anna.base}/rate?run=one&at=0"
    for headers in (
        {"origin": "http://evil.example"},
        {"host": "evil.example"},
        {"sec-fetch-site": "cross-site"},
    ):
        assert anna.client.post(url, data={"choice": "4"}, headers=headers).status_code == 403
    assert anna.client.get(url).status_code == 405
    assert sorted(path.name for path in (root / "one").glob("*.jsonl")) == [
        "assessments.jsonl", "samples.jsonl",
    ]  # fmt: skip
    assert not default_plan(root / "one").exists()


@pytest.mark.parametrize(
    ("page", "at", "fields"),
    [
        ("rate", 0, {"choice": "6"}),
        ("rate", 0, {"choice": ""}),
        ("rate", 0, {"act": "remove"}),
        ("verdict", 1, {"metric": "nothing", "verdict": "wrong"}),
        ("verdict", 1, {"metric": "faithfulness", "verdict": "maybe"}),
        ("verdict", 1, {"metric": "faithfulness", "verdict": "wrong", "statement": "99"}),
        ("verdict", 1, {"metric": "faithfulness", "verdict": "wrong", "statement": "-1"}),
        ("verdict", 2, {"metric": "faithfulness", "verdict": "wrong"}),  # still hidden
    ],
)
def test_what_is_not_on_offer_is_refused(
    visit: Callable[..., Visitor], root: Path, page: str, at: int, fields: dict[str, str]
) -> None:
    anna = visit()
    anna.post("rate", 1, choice=4)
    assert anna.post(page, at, **fields).status_code == 400
    assert len(stored(root)) == 1
    assert not (root / "one" / "verdicts.jsonl").exists()
    assert anna.post("rate", ANSWERS, choice="4").status_code == 404


def test_two_people_at_once_lose_nothing(visit: Callable[..., Visitor], root: Path) -> None:
    people = [visit("anna"), visit("bela")]

    def rate(place: int) -> int:
        return int(people[place % 2].post("rate", place // 2, choice=place % 6).status_code)

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(rate, range(40))) == {200}, [one.said for one in people]
    rows = stored(root)
    assert len({(row["rater"], row["item"]) for row in rows}) == len(rows) == 40
    result = measure_agreement(read_ratings(root / "one" / "ratings-answer.jsonl"))
    assert result.items == 20


def test_a_file_that_annotate_holds_is_waited_for(
    visit: Callable[..., Visitor], root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rating, "BUSY_S", 0.05)
    anna = visit()
    with closing(RatingsFile(root / "one" / "ratings-answer.jsonl")):
        reply = anna.post("rate", 0, choice=4)
        assert reply.status_code == 503
        assert "another process is writing to this file" in reply.text
    assert anna.post("rate", 0, choice=4).status_code == 200


def test_a_full_disk_is_said_and_leaves_no_half_line(
    visit: Callable[..., Visitor], root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    anna = visit()
    anna.post("rate", 0, choice=4)
    write = os.write
    monkeypatch.setattr(os, "write", lambda file, data: write(file, data[:10]))
    reply = anna.post("rate", 1, choice=4)
    assert (reply.status_code, reply.text) == (503, "the disk is full.")
    assert anna.said and "not stored" in anna.said[0]
    monkeypatch.undo()
    assert len(stored(root)) == 1
    assert anna.post("rate", 1, choice=4).status_code == 200
    assert len(stored(root)) == 2


def test_ratings_of_an_earlier_state_are_kept_and_named(
    visit: Callable[..., Visitor], root: Path
) -> None:
    anna = visit()
    anna.post("rate", 0, choice=4)
    path = root / "one" / "ratings-answer.jsonl"
    path.write_text(path.read_text().replace('"input": "', '"input": "0'))
    before = path.read_bytes()
    reply = anna.post("rate", 1, choice=4)
    assert reply.status_code == 503
    assert "ratings-answer.jsonl: holds ratings of another input" in reply.text
    assert path.read_bytes() == before


def test_a_run_with_ratings_is_resumed_as_any(visit: Callable[..., Visitor], root: Path) -> None:
    anna = visit()
    anna.post("rate", 1, choice=4)
    anna.post("verdict", 1, metric="faithfulness", verdict="right")
    before = {path.name: path.read_bytes() for path in (root / "one").glob("*[sg].jsonl")}
    (root / "one" / "summary.json").unlink()
    town_run(root / "one", towns(ANSWERS, junk=True), metrics="faithfulness")
    after = {path.name: path.read_bytes() for path in (root / "one").glob("*[sg].jsonl")}
    assert before == after and "verdicts.jsonl" in after


def test_an_unfinished_run_is_not_rated(visit: Callable[..., Visitor], root: Path) -> None:
    (root / "one" / "summary.json").unlink()
    anna = visit()
    assert "rate it when it is" in anna.get("answer", at=0).text
    assert anna.post("rate", 0, choice=4).status_code == 409


def test_levels_of_words_and_gold_answers(visit: Callable[..., Visitor], tmp_path: Path) -> None:
    rows = [{**row, "answers": [["Arve", "the Arve"]]} for row in towns(4)]
    town_run(tmp_path / "gold" / "one", iter(rows), metrics="faithfulness")
    anna = Visitor(tmp_path / "gold", tmp_path / "g.sqlite", rubric="verdict")
    page = anna.get("answer", at=0).text
    assert "Gold answer" in page and "the Arve" in page
    assert 'value="yes" data-keys="y"' in page and 'value="no" data-keys="n"' in page
    anna.post("rate", 0, choice="no")
    (row,) = stored(tmp_path / "gold", "ratings-verdict.jsonl")
    assert row["rating"] == "no"


# what is said of verdicts


def mark_all(anna: Visitor, right: Callable[[int], bool]) -> None:
    """Rate each answer, and say of each verdict whether it is right."""
    for at in range(ANSWERS):
        anna.post("rate", at, choice=5 if right(at) else 1)
        said = "right" if right(at) else "wrong"
        assert anna.post("verdict", at, metric="faithfulness", verdict=said).status_code == 200


def test_study_and_calibrate_read_what_is_said_of_verdicts(
    visit: Callable[..., Visitor], root: Path, tmp_path: Path
) -> None:
    mark_all(visit(), lambda at: at % 10 != 0)
    path = root / "one" / "verdicts.jsonl"
    # Every third answer is junk, which the metric flags; every tenth verdict is called wrong.
    by_item = {row["item"]: row["rating"] for row in stored(root, "verdicts.jsonl")}
    junk = {f"t{at}" for at in range(0, ANSWERS, 3)}
    turned = {f"t{at}" for at in range(0, ANSWERS, 10)}
    expected = {f"t{at}" for at in range(ANSWERS)} - junk.symmetric_difference(turned)
    assert {item for item, said in by_item.items() if said == "yes"} == expected
    rated = study(root / "one", ratings=root / "one" / "ratings-answer.jsonl")
    assert rated.labels[0].label.n == ANSWERS
    result = study(root / "one", ratings=path)
    assert result.labels[0].label.n == ANSWERS
    calibrated = calibrate(root / "one", ratings=path)
    assert calibrated.calibrator.labels.n == ANSWERS
    label(root / "one", plan=tmp_path / "p.jsonl")
    assert label(root / "one", ratings=[path], plan=tmp_path / "p.jsonl").rated == 50


def test_several_metrics_have_labels_of_their_own(tmp_path: Path) -> None:
    town_run(tmp_path / "runs" / "one", towns(30, junk=True), ["grounding", "faithfulness"])
    anna = Visitor(tmp_path / "runs", tmp_path / "i.sqlite", blind=False)
    for at in range(30):
        anna.post("verdict", at, metric="grounding", verdict="right")
        anna.post("verdict", at, metric="faithfulness", verdict="wrong")
    path = tmp_path / "runs" / "one" / "verdicts.jsonl"
    with pytest.raises(InputError, match="rating=RUBRIC with one of grounding, faithfulness"):
        study(tmp_path / "runs" / "one", ratings=path)
    for metric in ("grounding", "faithfulness"):
        found = study(tmp_path / "runs" / "one", ratings=path, fields={"rating": metric})
        value = found.labels[0].figures[metric]["auroc"].value
        assert value is not None
        assert value > 0.9 if metric == "grounding" else value < 0.1


def test_marked_statements_decide_where_they_can(visit: Callable[..., Visitor], root: Path) -> None:
    anna = visit(blind=False)
    page = anna.get("answer", at=1).text  # two statements, both supported
    assert page.count('name="statement"') == 2

    def mark(at: int, number: int, verdict: str) -> str | None:
        anna.post("verdict", at, metric="faithfulness", statement=number, verdict=verdict)
        last = stored(root, "verdicts.jsonl")[-1]
        assert last["statement"] == number
        return None if last["rating"] is None else str(last["rating"])

    assert mark(1, 1, "wrong") == "no"
    assert 'aria-pressed="true">Wrong' in anna.get("answer", at=1).text
    assert mark(1, 1, "open") is None
    assert mark(0, 1, "wrong") == "yes"  # its one statement, junk, was flagged
    assert mark(1, 0, "right") == "yes"
    assert mark(1, 2, "wrong") == "yes"  # what is said of the whole answer counts first


# what to rate next


def test_the_plan_is_that_of_label(visit: Callable[..., Visitor], root: Path) -> None:
    anna = visit(blind=False)
    assert "No answers have been drawn yet" in anna.get("next").text
    page = anna.post("propose", asked={"page": "next"})
    assert page.url.path == f"{anna.base}/next"
    path = default_plan(root / "one")
    plan = read_plan(path)
    assert len(plan.draws) == 50
    anna.post("propose", asked={"page": "next"})  # nothing of it is rated yet
    assert len(read_plan(path).draws) == 50
    first = plan.draws[0].answers[0][0]
    assert "badge" not in anna.get("next").text  # without scores, whatever the mode
    assert "0 of 50 done" in anna.get("next").text
    page = anna.post("rate", anna.next_place(), {"page": "next"}, choice=5)
    assert "1 of 50 done" in page.text and "Back to the last answer" in page.text
    (row,) = stored(root, "ratings-answer-plan.jsonl")
    assert row["item"] == first
    assert not (root / "one" / "ratings-answer.jsonl").exists()
    anna.post("rate", anna.next_place(), {"page": "next"}, act="skip")
    page = anna.get("next")
    assert "2 of 50 done" in page.text
    with pytest.raises(InputError, match="unequal probabilities"):
        study(root / "one", ratings=root / "one" / "ratings-answer-plan.jsonl")


def test_a_plan_for_calibrate_grows_and_says_what_is_promised(
    visit: Callable[..., Visitor], root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Result:
        text = "Accept answers with <b>"

    def promised(*_: Any, **__: Any) -> Result:
        return Result()

    monkeypatch.setattr("trustassay.people.calibrate.command.calibrate", promised)
    run = root / "one"
    options = CalibrationPlanOptions("faithfulness", number=40)
    CalibrationWork(run, default_plan(run), LabelSource(weighted=True), options)
    anna = visit()
    page = anna.get("next").text
    assert "40 labels missing until the promise is tested" in page and "Nothing yet." in page
    before = len(read_plan(default_plan(run)).draws)
    for _ in range(before):
        page = anna.post("rate", anna.next_place(), {"page": "next"}, choice=5).text
    # All of the upper part were right, so the rest is drawn from all.
    assert len(read_plan(default_plan(run)).draws) == 40
    for _ in range(40 - before):
        page = anna.post("rate", anna.next_place(), {"page": "next"}, choice=5).text
    assert "Accept answers with &lt;b&gt;" in page
    assert "All answers of the plan are labelled" in page
    assert "Draw 50" not in page
    with pytest.raises(InputError, match="unequal probabilities"):
        study(run, ratings=run / "ratings-answer-plan.jsonl")
    reply = anna.post("propose", asked={"page": "next"})
    assert reply.status_code == 503 and "was made with --for calibrate" in reply.text


def test_the_share_is_that_of_label_and_shrinks(visit: Callable[..., Visitor], root: Path) -> None:
    anna = visit()
    anna.post("propose", asked={"page": "next"})
    plan = read_plan(default_plan(root / "one"))
    drawn = {name for draw in plan.draws for name, _ in draw.answers}
    free = next(at for at in range(ANSWERS) if f"t{at}" not in drawn)
    anna.post("rate", free, choice=1)  # one that is chosen freely goes to a file of its own
    assert [row["item"] for row in stored(root)] == [f"t{free}"]
    widths = []
    for number in range(50):
        place = anna.next_place()
        anna.post("rate", place, {"page": "next"}, choice=0 if place % 3 == 0 else 5)
        if number in (29, 49):
            promise = next_page.progress_of(anna.site, root.resolve() / "one")
            promise.wait(10)
            assert promise.ready and promise.result
            share = promise.result.figures[0]
            assert share.interval
            widths.append(share.interval[1] - share.interval[0])
            files = sorted((root / "one").glob("ratings-*.jsonl"))
            told = label(root / "one", ratings=files, at_least=4)
            assert told.figures[0].to_dict() == share.to_dict()
            assert told.used == promise.result.used
    assert widths[1] < widths[0]
    page = anna.get("next").text
    low, high = (100 - 100 * end for end in reversed(told.figures[0].interval or ()))
    assert f"{low:.1f} to {high:.1f} %".replace(".0 ", " ") in page
    assert "All drawn answers are rated" in anna.get("next").text
    assert "Draw 50 more" in anna.get("next").text
    anna.post("propose", asked={"page": "next"})
    again = [key for draw in read_plan(default_plan(root / "one")).draws for key in draw.answers]
    assert len(again) == len(set(again)) == ANSWERS - 1
    assert f"t{free}" not in dict(again)


def test_a_plan_of_other_answers_is_named(visit: Callable[..., Visitor], root: Path) -> None:
    path = default_plan(root / "one")
    path.write_text(
        json.dumps(
            {
                "action": "start", "kind": "label plan", "version": 1, "runs": [], "input": "0",
                "unit": "question", "chances": "unequal", "scores": [], "models": [], "seed": 0,
            }
        )
        + "\n"
    )  # fmt: skip
    anna = visit()
    assert "the plan was made for other answers" in anna.get("next").text
    assert "the plan was made for other answers" in anna.post("propose").text
    path.write_text("damaged\n")
    assert "the line is damaged (not JSON)" in anna.get("next").text
    assert "the line is damaged (not JSON)" in anna.post("rate", 0, choice=4).text


def test_hostile_texts_stay_texts(tmp_path: Path) -> None:
    rows = [
        {
            "id": f"{number} {text}",
            "question": f"{number} {text}",
            "response": text,
            "model": text,
            "answers": [[text]],
            "documents": [{"title": text, "text": text}],
        }
        for number, text in enumerate(HOSTILE)
    ]
    score(rows, metrics="faithfulness", entailer="lexical", out=tmp_path / "runs/one", report=False)
    anna = Visitor(tmp_path / "runs", tmp_path / "i.sqlite")
    pages = [anna.get("next").text, anna.post("propose", asked={"page": "next"}).text]
    for at, text in enumerate(HOSTILE):
        pages += [anna.get("answer", at=at).text, anna.post("rate", at, choice=2, note=text).text]
        pages.append(anna.post("verdict", at, metric="faithfulness", verdict="wrong").text)
    pages.append(anna.get("run").text)
    for page in pages:
        assert "</html>" in page
        for found in ("<img", "<svg onload", "<script>window", '<a href="javascript', "<base"):
            assert found not in page
        assert not [one for one in ("\u202e", "\u2066", "\x07", "\u200b", "\ufeff") if one in page]


@pytest.mark.parametrize(
    "name", ["ratings-answer.jsonl", "verdicts.jsonl", "ratings-answer-plan.jsonl"]
)
def test_no_rating_is_written_through_a_link(root: Path, tmp_path: Path, name: str) -> None:
    if "plan" in name:
        label(root / "one")
    outside, inside = tmp_path / "outside", root / "one" / "inside"
    visitor = Visitor(root, tmp_path / "cache.sqlite", blind=False)
    place = visitor.next_place() if "plan" in name else 0
    fields = {"metric": "faithfulness", "verdict": "wrong"} if "verdicts" in name else {}
    page = "verdict" if fields else "rate"
    for target in (outside, inside):
        (root / "one" / name).unlink(missing_ok=True)
        (root / "one" / name).symlink_to(target)
        reply = visitor.post(page, place, **(fields or {"choice": "3"}))
        assert reply.status_code in (404, 409, 503)
        assert not target.exists()
    (root / "one" / name).unlink()
    assert visitor.post(page, place, **(fields or {"choice": "3"})).status_code == 200
    assert (root / "one" / name).stat().st_mode & 0o777 == 0o600


def test_a_plan_that_is_a_link_is_neither_read_nor_written(root: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("BEGIN PRIVATE KEY\n")
    default_plan(root.resolve() / "one").symlink_to(secret)
    visitor = Visitor(root, tmp_path / "cache.sqlite")
    replies = [visitor.get("next"), visitor.post("propose"), visitor.post("rate", choice="3")]
    assert [reply.status_code for reply in replies] == [409, 503, 503]
    assert all("PRIVATE" not in reply.text for reply in replies)
    assert secret.read_text() == "BEGIN PRIVATE KEY\n"
    assert not list((root / "one").glob("ratings*"))


def test_a_run_of_another_user_is_only_read_until_its_rater_says_otherwise(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    visitor = Visitor(root, tmp_path / "cache.sqlite")
    page = visitor.get("answer", at=0).text
    assert "belongs to another user. --write-others allows rating it." in page
    # Who may not rate has nothing to be blind for.
    assert '<button name="choice"' not in page and "supported" in page
    for act in ("rate", "verdict", "propose"):
        reply = visitor.post(act, choice="3")
        assert reply.status_code == 409 and "belongs to another user" in reply.text
    assert "belongs to another user" in visitor.get("next").text
    assert not list((root / "one").glob("ratings*"))
    allowed = Visitor(root, tmp_path / "cache.sqlite", write_others=True)
    assert allowed.post("rate", choice="3").status_code == 200
    assert len(lines(root / "one" / "ratings-answer.jsonl")) == 2


def test_a_file_of_another_user_in_our_run_is_not_written(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    visitor = Visitor(root, tmp_path / "cache.sqlite")
    assert visitor.post("rate", choice="3").status_code == 200
    monkeypatch.setattr(Site, "explain_read_only", lambda *_: "")
    user = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    reply = visitor.post("rate", 1, choice="3")
    assert reply.status_code == 503 and "belongs to another user; add --write-others" in reply.text
    assert len(lines(root / "one" / "ratings-answer.jsonl")) == 2
