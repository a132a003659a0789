"""The pages of runs and answers, as a browser without scripts sees them."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from tests.report.conftest import HOSTILE
from tests.support import lines
from trustassay import score
from trustassay.calls.store import CallStore, StoredCall
from trustassay.report.review import ReviewCounts, need_of
from trustassay.report.serving import AllowedHosts
from trustassay.runs.counts import read_judged_rows
from trustassay.runs.folder import RunFolder
from trustassay.view.listing import AnswerQuery, Listing

from .conftest import PORT, Visited, rows

Visit = Callable[[Path], Visited]


def ids(page: str) -> list[str]:
    """The answers that a list shows, in its order."""
    return [unescape(one) for one in re.findall(r'<span class="id"><bdi>(.*?)</bdi>', page)]


class Tags(HTMLParser):
    """Collects the tags of a page, and the attributes that a script would be in."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            leads = name in ("href", "src", "action", "formaction")
            if name.startswith("on") or (leads and not re.match(r"[/#]|data:,$", value or "")):
                self.found.add(f"{tag} {name}")
            if tag in ("script", "base", "link") and name in ("src", "href"):
                self.found.add(f"{tag} {value}")
        self.found.add(tag)


def tags(page: str) -> set[str]:
    parser = Tags()
    parser.feed(page)
    return {one for one in parser.found if one not in HARMLESS}


ALLOWED = {"script", "script /view.js", "link", "link /view.css", "link data:,", "svg", "rect"}
HARMLESS = set(
    "a article b bdi blockquote body button code dd del details div dl dt footer form h1 h2 h3 h4 "
    "head header html input ins kbd label li main mark meta nav ol option p q section select span "
    "summary table tbody td th thead title tr ul".split()
)


def test_the_list_of_runs_shows_what_each_found(visit: Visit, root: Path) -> None:
    shutil.copytree(root / "one", root / "two")
    (root / "two" / "run.json").write_text("[")
    page = visit(root).page()
    assert "2 runs, 1 damaged" in page
    assert 'run?run=one"' in page
    assert re.search(r"two/run.json: damaged \(is not JSON|two/run.json: damaged", page)
    assert re.search(r'<b class="number">\d', page)
    assert "1 run" in visit(root).page(q="tw")
    assert "No run matches" in visit(root).page(q="100%")
    assert "1 run" in visit(root).page(metric="faithfulness")


def test_the_outcomes_come_first_in_the_list_on_a_run_and_before_rating(
    visit: Visit, root: Path
) -> None:
    visited = visit(root)
    line = r"faithfulness: \d+.% supported.* of 19 questions"
    assert re.search(line, visited.page())
    page = visited.page("run", run="one")
    first, look = re.search(line, page), re.search(r"\d+ of 19 answers needs? a look", page)
    assert first and look and first.start() < look.start()
    rate = visited.page("next", run="one")
    assert re.search(line, rate.split('<section id="promise"')[0])


def test_nothing_judged_is_no_all_clear_on_the_page_of_a_run(visit: Visit, root: Path) -> None:
    refusal = "I am sorry, but I cannot find that in the documents."
    rows = [
        {"question": f"{n}?", "response": refusal, "documents": ["It rains."]} for n in range(4)
    ]
    score(rows, metrics="faithfulness", entailer="lexical", out=root / "two", report=False)
    visited = visit(root)
    page = visited.page("run", run="two")
    assert "0 of 4 answers could be judged: refused (4)." in page
    assert "need a look." not in page
    # In the list of runs, too: 0 would look like the best of all runs.
    assert 'data-label="need a look">–</td>' in visited.page()


def test_two_thousand_runs_are_on_pages(visit: Visit, root: Path) -> None:
    for number in range(120):
        (root / f"n{number:03}").mkdir()
        for name in ("run.json", "summary.json"):
            shutil.copy(root / "one" / name, root / f"n{number:03}" / name)
    visited = visit(root)
    page = visited.page(order="name")
    assert "121 runs" in page and "page 1 of 3" in page and "n049" in page and "n050" not in page
    assert "n100" in visited.page(order="name", page=3)
    assert 'rel="next"' not in visited.page(order="name", page=3)


def test_answers_stand_as_in_the_report(root: Path) -> None:
    folder = RunFolder(root / "one")
    listing = Listing(folder)
    listing.wait(30)
    metrics = [listing.infos["faithfulness"]]
    looked = ReviewCounts()
    told = list(read_judged_rows(folder, metrics, list(listing.here.values()), looked))
    expected = sorted(range(len(told)), key=lambda place: (need_of(told[place].findings), place))
    assert listing.places(AnswerQuery()).tolist() == expected
    assert listing.looked == looked and looked.flagged > 0
    assert listing.read == listing.total == len(listing) == 19


def told(assessment: dict[str, str]) -> str:
    """The verdict on a town; empty for other answers."""
    return assessment["verdict"] if assessment["id"].startswith("town") else ""


def test_answers_are_filtered_and_ordered(visit: Visit, root: Path) -> None:
    visited = visit(root)
    every = visited.page("run", run="one")
    assert len(ids(every)) == 19
    assert ids(visited.page("run", run="one", order="position"))[:3] == [
        "town-0",
        "town-1",
        "town-2",
    ]
    assert ids(visited.page("run", run="one", q="TOWN 7 BUILT")) == ["town-7"]
    assert len(ids(visited.page("run", run="one", model="ant"))) == 6
    look = ids(visited.page("run", run="one", look=1))
    flagged = json.loads((root / "one" / "summary.json").read_text())["looked"]["flagged"]
    assert len(look) == flagged and look == ids(every)[:flagged]
    verdict = "faithfulness=supported"
    chosen = ids(visited.page("run", run="one", verdict=verdict, q="town", order="position"))
    stored = lines(root / "one" / "assessments.jsonl")
    assert chosen == [one["id"] for one in stored if told(one) == "supported"]
    scores = {one["id"]: one["score"] for one in stored}
    ups = ids(visited.page("run", run="one", order="faithfulness:up", q="town"))
    assert [scores[one] for one in ups] == sorted(scores[one] for one in ups)
    assert "No answer matches" in visited.page("run", run="one", q="nowhere at all")


def test_an_answer_leads_to_those_beside_it_in_its_list(visit: Visit, root: Path) -> None:
    visited = visit(root)
    page = visited.page("answer", run="one", at=1, order="position", model="ant")
    assert "When was the hall of town 1 built?" in page
    assert "1 of 6" in page
    assert 'rel="prev"' not in page
    following = unescape(re.findall(r'rel="next" href="(.*?)"', page)[0])
    assert "at=3" in following and "model=ant" in following and "order=position" in following
    assert "no such answer" in visited.page("answer", 404, run="one", at=99)
    by_id = visited.page("answer", run="one", id="town-1")
    assert "When was the hall of town 1 built?" in by_id
    assert "The hall of town 1 was built in 1850. It has a tower." in by_id


def test_the_same_question_is_found_in_other_runs(visit: Visit, root: Path) -> None:
    changed = rows(3, response="The hall was built in 1900, they say.")
    score(changed, out=root / "two", metrics="faithfulness", entailer="lexical", report=False)
    part = visit(root).page("elsewhere", run="one", at=2)
    assert "run=two" in part and "at=2" in part
    assert "<ins>1900, they say.</ins>" in part
    assert "faithfulness" in part
    assert "No other answer" in visit(root).page("elsewhere", run="one", at=9)


def test_the_calls_behind_an_answer_are_those_that_quote_it(visit: Visit, root: Path) -> None:
    store = CallStore(root / "one" / "calls.sqlite")
    said = json.dumps(["About it: The hall of town 3 was built in 1923.\n<b>"])
    row = (b"k" * 16, "chat", "openai:gpt-4o-mini", said, '"No.<i>"', 1.25, 1000, 20)
    store.add([StoredCall(*row)])
    store.close()
    visited = visit(root)
    part = visited.page("calls", run="one", at=3)
    assert "1.25 s, 1,000 + 20 tokens, 0.000162 USD" in part
    assert "&lt;b&gt;" in part and "No.&lt;i&gt;" in part
    assert "No stored call" in visited.page("calls", run="one", at=4)


def test_a_run_is_not_compared_with_itself(visit: Visit, root: Path) -> None:
    page = visit(root).page("compare", 404, first="one", second="one")
    assert "Choose two runs" in page and "pass" not in page


def test_a_damaged_line_is_named(visit: Visit, root: Path) -> None:
    path = root / "one" / "assessments.jsonl"
    told = path.read_text().splitlines(keepends=True)
    path.write_text("".join([*told[:4], "{}\n", *told[5:]]))
    page = visit(root).page("run", 409, run="one")
    assert "assessments.jsonl:5: damaged" in page
    assert "No such run" in visit(root).page("run", 404, run="../one")


def test_a_run_that_grows_is_read_on(visit: Visit, root: Path) -> None:
    (root / "one" / "summary.json").unlink()
    path = root / "one" / "assessments.jsonl"
    told = path.read_text().splitlines(keepends=True)
    path.write_text("".join(told[:5]) + told[5][:20])
    visited = visit(root)
    page = visited.page("run", run="one")
    assert "5 of 19 judgements done so far" in page
    assert re.search(r"\d of 5 answers needs? a look.* so far\.", page)
    before = visited.page("state", run="one")
    path.open("a").write(told[5][20:] + "".join(told[6:9]))
    visited.index.refresh()
    assert visited.page("state", run="one") != before
    assert "9 of 19 judgements" in visited.page("run", run="one")
    shutil.copy(path, f"{path}.new")
    Path(f"{path}.new").rename(path)  # as when it is sorted
    assert "9 of 19 judgements" in visited.page("run", run="one")


def test_samples_that_are_gone_are_named_and_a_repaired_run_is_shown(
    visit: Visit, root: Path
) -> None:
    visited, path = visit(root), root / "one" / "samples.jsonl"
    kept = path.read_bytes()
    for content, why in ((kept[: kept.index(b"\n") + 1], "has no sample"), (None, "is missing")):
        path.unlink()
        if content is not None:
            path.write_bytes(content)
        page = visited.page("run", 409, run="one")
        assert "samples.jsonl" in page and why in page
    path.write_bytes(kept)
    assert len(ids(visited.page("run", run="one"))) == 19


def test_a_sample_that_was_written_meanwhile_is_no_damage(root: Path) -> None:
    """Its line and its assessment may be added between the reading of both files."""
    folder = RunFolder(root / "one")
    whole = {path: path.read_bytes() for path in (folder.samples_path, folder.assessments_path)}
    for path, content in whole.items():
        path.write_bytes(content[: content.rindex(b"\n", 0, -1) + 1])
    listing, times = Listing(folder), [0]
    new_lines = listing._new_lines

    def lines_meanwhile(of: Path) -> Any:
        times[0] += of == folder.assessments_path
        if times[0] == 2:  # no new sample was found before
            for path, content in whole.items():
                path.write_bytes(content)
        return new_lines(of)

    listing._new_lines = lines_meanwhile  # type: ignore[method-assign, assignment]
    for _ in range(3):
        listing.wait(30)
    assert (len(listing), listing.read) == (19, 19)


def test_hostile_text_is_text_everywhere(visit: Visit, root: Path) -> None:
    visited = visit(root)
    pages = [
        visited.page(),
        visited.page("run", run="one"),
        visited.page("run", run="one", q=HOSTILE[1]),
    ]
    pages += [visited.page("run", 404, run=HOSTILE[0])]
    for place in range(12, 19):
        for path in ("answer", "elsewhere", "calls"):
            pages.append(visited.page(path, run="one", at=place))
    for page in pages:
        assert tags(page) <= ALLOWED
    assert not visited.said


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"host": "localhost:8766"}, 200),
        ({"host": "evil.example:8766"}, 403),
        ({"host": "127.0.0.1:9"}, 200),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": f"http://127.0.0.1:{PORT}"}, 200),
    ],
)
def test_who_may_ask(visit: Visit, root: Path, headers: dict[str, str], status: int) -> None:
    visited = visit(root)
    reply = visited.client.get(f"{visited.base}/", headers=headers)
    assert reply.status_code == status
    assert reply.headers["content-security-policy"].startswith("default-src 'none'")
    assert "access-control-allow-origin" not in reply.headers
    for path in ("/", "/x/", "/x/run", "/x/state"):
        assert visited.client.get(path).status_code == 404


def test_a_server_that_others_reach_has_other_names() -> None:
    here, anywhere = AllowedHosts("127.0.0.1").accepts_host, AllowedHosts("0.0.0.0").accepts_host
    assert here("localhost") and here("[::1]:80") and here("localhost:9000")  # through a tunnel
    assert not here("10.0.0.7:80") and not here("localhost.evil.example") and not here("")
    assert anywhere("10.0.0.7:8000") and anywhere("[fe80::1]:8000") and anywhere("10.0.0.7")
    assert not anywhere("evil.example:8000")


def test_a_proxy_is_named() -> None:
    hosts = AllowedHosts("127.0.0.1", "runs.example.org")
    assert hosts.accepts_host("runs.example.org") and hosts.accepts_host("127.0.0.1:8766")
    assert not hosts.accepts_host("evil.example")
    for host in ("runs.example.org", "127.0.0.1:8766"):  # kept by the proxy, or its own
        assert hosts.accepts_origin("https://runs.example.org", host)
        assert not hosts.accepts_origin("https://evil.example", host) and not hosts.accepts_origin(
            "null", host
        )
    assert not AllowedHosts("127.0.0.1").accepts_origin("http://localhost:9", "localhost:8766")


def test_who_rates_blind_sees_what_is_behind_an_answer_when_it_is_rated(
    visit: Visit, root: Path
) -> None:
    shutil.copytree(root / "one", root / "two")
    visited = visit(root)
    assert "faithfulness" in visited.page("elsewhere", run="one", at=1)
    visited.site.rater = "anna"
    for path in ("elsewhere", "calls"):
        assert "Hidden until you rate the answer." in visited.page(path, 409, run="one", at=1)
    visited.site.blind = False
    assert "faithfulness" in visited.page("elsewhere", run="one", at=1)
