"""The server over HTTP: what a page holds and hides, and who may see it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.people.annotate.helpers import MODELS, answers, project, session, two_files
from tests.report.conftest import HOSTILE
from tests.support import lines
from trustassay.people.annotate.project import AnnotationProject
from trustassay.people.annotate.server import LEASE_S, WritingTabs, build_annotation_application
from trustassay.people.annotate.session import AnnotationSession
from trustassay.report.serving import AccessLinks, is_loopback, open_listener

if TYPE_CHECKING:
    from starlette.testclient import TestClient

Site = Callable[..., "Visited"]


class Visited:
    """A server with the browsers of its raters."""

    def __init__(self, found: AnnotationSession, out: Path) -> None:
        from starlette.testclient import TestClient

        self.session, self.out, self.said = found, out, list[str]()
        self.links = AccessLinks(out, list(found.raters))
        self.client: TestClient = TestClient(
            build_annotation_application(found, self.links, self.said.append),
            raise_server_exceptions=False,
        )

    def page(self, rater: str = "anna") -> str:
        reply = self.client.get(f"/{self.links.tokens[rater]}")
        assert reply.status_code == 200
        return str(reply.text)

    def post(self, action: str, rater: str = "anna", **fields: Any) -> Any:
        token = self.links.tokens[rater]
        return self.client.post(f"/{token}/{action}", data=fields, follow_redirects=False)

    @property
    def rows(self) -> list[dict[str, Any]]:
        return lines(self.out)[1:]


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    opened = []

    def visit(rows: list[dict[str, Any]] | None = None, **options: Any) -> Visited:
        made: AnnotationProject = project(tmp_path, rows, **options)
        opened.append(session(made, tmp_path / "r.jsonl"))
        return Visited(opened[-1].__enter__(), tmp_path / "r.jsonl")

    yield visit
    for one in opened:
        one.__exit__(None, None, None)


def test_a_rating_is_stored_and_the_next_answer_shown(site: Site) -> None:
    visited = site()
    first = visited.page()
    assert "0 of 8 done" in first
    reply = visited.post("rate", step=0, choice=4, note="why")
    assert reply.status_code == 303
    assert reply.headers["location"] == f"/{visited.links.tokens['anna']}"
    second = visited.page()
    assert "1 of 8 done" in second
    assert question(first) != question(second)
    assert "0 of 8 done" in visited.page("bela")
    (row,) = visited.rows
    assert {name: row[name] for name in ("rater", "rating", "repeat", "note")} == {
        "rater": "anna",
        "rating": 4,
        "repeat": 0,
        "note": "why",
    }


def question(page: str) -> str:
    found = re.search(r"Question number \d+\?", page)
    assert found
    return found[0]


def test_undo_brings_back_the_note_and_marks_the_choice(site: Site) -> None:
    visited = site()
    first = visited.page()
    visited.post("rate", step=0, choice=4, note="<why>")
    assert 'name="last" value="0"' in visited.page()
    visited.post("undo", last=0)
    page = visited.page()
    assert question(page) == question(first)
    assert "&lt;why&gt;</textarea>" in page
    assert re.search(r'value="4" data-keys="4" class="former"', page)


def test_skipped_answers_come_again_at_the_end(site: Site) -> None:
    visited = site(answers(1), raters=["anna"])
    visited.post("skip", step=0)
    visited.post("rate", step=1, choice=0)
    end = visited.page()
    assert "Rate 1 skipped answer" in end
    assert "2 of 2 done" in end
    assert visited.said == ["anna has finished: 1 rated, 1 skipped"]
    visited.post("reopen")
    assert "1 of 2 done" in visited.page()
    visited.post("rate", step=0, choice=5)
    assert "All answers are rated" in visited.page()


def test_raters_see_no_model_no_id_and_no_score(site: Site) -> None:
    visited = site(rubric="truthfulness")
    everything = ""
    for step in range(8):
        everything += visited.page()
        visited.post("rate", step=step, choice=1)
    everything += visited.page()
    for hidden in (*MODELS, "hidden-", "secret", "0.123456", "domain", "web"):
        assert hidden not in everything, hidden
    assert "also gold 3" in everything
    assert "not truthful" in everything


def test_gold_answers_and_passages(site: Site) -> None:
    page = site(answers(1)).page()
    assert "Gold answer" not in page
    assert "1 passage " in page
    assert "Passage 0." in page


def test_all_answers_to_a_question_stand_together(site: Site) -> None:
    visited = site(answers(2), together=True, gold=True, raters=["anna"])
    page = visited.page()
    assert page.count("Answer A") == page.count("Answer B") == page.count("· rate this one") == 1
    asked = question(page)
    visited.post("rate", step=0, choice=3)
    page = visited.page()
    assert question(page) == asked
    assert 'Answer A <span class="how">· 3</span>' in page
    assert 'Answer B <span class="how">· rate this one</span>' in page
    visited.post("rate", step=1, choice=3)
    assert question(visited.page()) != asked


def test_pairs(site: Site, tmp_path: Path) -> None:
    visited = site(pairs=two_files(tmp_path), raters=["anna"])
    page = visited.page()
    assert "Which answer is better?" in page
    assert 'data-keys="ArrowLeft 1"' in page
    assert re.search(r"Answer \da\.", page)
    assert re.search(r"Answer \db\.", page)
    visited.post("rate", step=0, choice="first")
    (row,) = visited.rows
    assert row["rating"] == row["first"]
    for hidden in (*MODELS, "a.jsonl"):
        assert hidden not in page


def test_the_list_leads_back_and_a_choice_there_replaces_the_former(site: Site) -> None:
    visited = site(raters=["anna"])
    link = f"/{visited.links.tokens['anna']}"
    first = visited.page()
    visited.post("rate", step=0, choice=4, note="<why>")
    visited.post("skip", step=1)
    listed = visited.client.get(f"{link}/ratings").text
    assert re.findall(r'href="[^"]+\?step=(\d)"', listed) == ["1", "0"]
    assert re.findall("<b>(.+?)</b>", listed) == ["skipped", "4"]
    assert "&lt;why&gt;" in listed
    for hidden in (*MODELS, "hidden-"):
        assert hidden not in listed
    again = visited.client.get(f"{link}?step=0").text
    assert question(again) == question(first)
    assert re.search(r'value="4" data-keys="4" class="given" aria-pressed="true"', again)
    assert "&lt;why&gt;</textarea>" in again
    reply = visited.post("rate", step=0, choice=1, again="", note="<why>")
    assert reply.headers["location"] == link
    assert [row["rating"] for row in visited.rows] == [4, None, 1]
    assert "2 of 8 done" in visited.page()


def test_an_answer_that_was_not_rated_cannot_be_gone_back_to(site: Site) -> None:
    visited = site()
    link = f"/{visited.links.tokens['anna']}"
    visited.post("rate", step=0, choice=4)
    for query in ("step=1", "step=99", "step=-1", "step=" + "9" * 5000, "step=0&scale=1"):
        reply = visited.client.get(f"{link}?{query}", follow_redirects=False)
        assert (reply.status_code, reply.headers["location"]) == (303, link), query


def test_several_rubrics_stand_on_one_page(site: Site) -> None:
    visited = site(rubrics=["truthfulness", "verdict"], raters=["anna"])
    page = visited.page()
    assert 'value="truthfulness/5" data-keys="5"' in page
    assert 'value="verdict/yes">' in page
    visited.post("rate", step=0, choice="truthfulness/5")
    page = visited.page()
    assert "0 of 8 done" in page
    assert 'value="truthfulness/5" class="given"' in page
    assert 'value="verdict/yes" data-keys=' in page
    visited.post("rate", step=0, choice="verdict/no")
    link = f"/{visited.links.tokens['anna']}"
    assert "<b>truthfulness 5, verdict no</b>" in visited.client.get(f"{link}/ratings").text
    replies = [
        visited.post("rate", step=0, choice=choice, again="").headers["location"]
        for choice in ("truthfulness/1", "verdict/yes")
    ]
    assert replies == [f"{link}?step=0&scale=1", link]
    again = visited.client.get(replies[0]).text
    assert re.search(r'value="verdict/yes" data-keys="\w" class="given"', again)


# One tab writes


def test_a_second_tab_is_told_does_not_write_and_can_take_over(site: Site) -> None:
    visited = site()
    assert visited.post("tab", tab="one").status_code == 204
    second = visited.post("tab", tab="two")
    told = (409, "this rater is already rating in another tab.")
    assert (second.status_code, second.text) == told
    for fields in ({"tab": "two"}, {}):
        reply = visited.post("rate", step=0, choice=4, **fields)
        assert (reply.status_code, reply.text) == told
    assert visited.rows == []
    assert visited.post("rate", "bela", step=0, choice=4, tab="two").status_code == 303
    assert visited.post("tab", tab="two", take=1).status_code == 204
    assert visited.post("rate", step=0, choice=4, tab="one").status_code == 409
    assert visited.post("rate", step=0, choice=4, tab="two").status_code == 303
    visited.post("tab", tab="one", leave=1)  # that one has nothing to leave
    assert visited.post("tab", tab="one").status_code == 409
    visited.post("tab", tab="two", leave=1)
    assert visited.post("tab", tab="one").status_code == 204


def test_a_tab_that_gives_no_sign_counts_as_closed() -> None:
    now = [0.0]
    tabs = WritingTabs(lambda: now[0])
    assert tabs.claim("anna", "one")
    now[0] = LEASE_S - 1
    assert not tabs.claim("anna", "two")
    assert tabs.claim("anna", "one")
    now[0] += LEASE_S
    assert tabs.claim("anna", "two")
    assert not tabs.claim("anna", "one")


# Who may see it


def test_a_wrong_link_tells_nothing(site: Site) -> None:
    visited = site()
    token = visited.links.tokens["anna"]
    for path in (
        "/",
        "/anna",
        f"/{token}x",
        f"/{token}/",
        f"/{token}/rate/x",
        f"/{token[:-1]}/ratings",
        "/x/y",
        f"/%00{token}",
    ):
        reply = visited.client.get(path)
        assert (reply.status_code, reply.text) == (404, ""), path
    for action in ("rate", "skip", "undo", "reopen", "tab"):
        wrong = visited.client.post(f"/{token[:-1]}/{action}", data={"step": 0, "choice": 1})
        assert (wrong.status_code, wrong.text) == (404, "")
        assert visited.client.get(f"/{token}/{action}").status_code == 405
    assert visited.rows == []


def test_a_page_can_load_nothing_from_elsewhere(site: Site) -> None:
    visited = site()
    for path in (f"/{visited.links.tokens['anna']}", "/nobody", "/annotate.css"):
        headers = visited.client.get(path).headers
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; style-src 'self'; script-src 'self'")
        assert "unsafe" not in policy
        assert headers["referrer-policy"] == "same-origin"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"
    loaded = re.findall(r"(?:href|src)=\"([^\"]+)\"", visited.page())
    link = f"/{visited.links.tokens['anna']}/ratings"
    assert sorted(loaded) == sorted(["/annotate.css", "/annotate.js", "data:,", link])
    for path in ("/annotate.css", "/annotate.js", link):
        assert visited.client.get(path).status_code == 200
        assert not re.search(r"https?://|@import|url\(", visited.client.get(path).text)


def test_hostile_texts_stay_text(site: Site) -> None:
    text = "\n".join(HOSTILE)
    row = {
        "id": text,
        "question": text,
        "response": text,
        "model": text,
        "domain": text,
        "answers": [[text, text]],
        "documents": [{"title": text, "text": text}],
    }
    visited = site([row], gold=True)
    visited.post("rate", step=0, choice=1, note=text)
    visited.post("undo", last=0)
    page = visited.page()
    assert not re.search(r"<(?:img|svg|base|iframe)", page)
    assert page.count("<a ") == 1
    assert page.count("<script") == 1
    assert "&lt;script&gt;window.hacked = 1" in page
    assert "\u202e" not in page
    assert "{{ 7 * 7 }}" in page
    assert visited.rows[0]["item"] == text


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"step": "0"},
        {"step": "0", "choice": "9"},
        {"step": "99", "choice": "4"},
        {"step": "-1", "choice": "4"},
        {"step": "²", "choice": "4"},
        {"step": "0x0", "choice": "4"},
        {"step": "9" * 5000, "choice": "4"},
        {"choice": "4"},
    ],
)
def test_nonsense_is_refused(site: Site, fields: dict[str, str]) -> None:
    visited = site()
    assert visited.post("rate", **fields).status_code == 400
    assert visited.rows == []


def test_large_and_strange_bodies(site: Site) -> None:
    visited = site()
    assert visited.post("rate", step=0, choice=4, note="x" * 70_000).status_code == 413
    assert visited.rows == []
    assert visited.post("rate", step=0, choice=4, note="x" * 5_000).status_code == 303
    assert visited.rows[0]["note"] == "x" * 2000
    token = visited.links.tokens["anna"]
    raw = visited.client.post(
        f"/{token}/rate",
        content=b"step=1&choice=4&note=%ff%00%ed%a0%80\xff",
        follow_redirects=False,
    )
    assert raw.status_code == 303
    assert visited.rows[1]["note"].startswith("\ufffd\x00")


def test_a_rating_that_cannot_be_stored_is_told(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    visited = site()

    async def fails(_line: object) -> None:
        raise OSError(28, "No space left on device", "r.jsonl")

    monkeypatch.setattr(visited.session._file, "append", fails)
    reply = visited.post("rate", step=0, choice=4)
    assert (reply.status_code, reply.text) == (503, "the disk is full.")
    assert "0 of 8 done" in visited.page()
    assert visited.said == [
        "anna: a rating was not stored: [Errno 28] No space left on device: 'r.jsonl'"
    ]


def test_a_failure_names_no_sample(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    visited = site()
    monkeypatch.setattr(
        "trustassay.people.annotate.server.render_page",
        lambda *_: (_ for _ in ()).throw(ValueError("Answer 0a.")),
    )
    reply = visited.client.get(f"/{visited.links.tokens['anna']}")
    assert (reply.status_code, reply.text) == (500, "the server failed.")
    assert visited.said == ["a request failed: ValueError"]


# Where it listens


def test_loopback() -> None:
    assert all(map(is_loopback, ("127.0.0.1", "127.1.2.3", "::1", "localhost")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "192.168.1.5", "example.org")))


def test_a_port_in_use_is_named() -> None:
    with open_listener("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(
            ValueError, match=rf"cannot listen at 127.0.0.1:{port} \(Address already"
        ):
            open_listener("127.0.0.1", port)
