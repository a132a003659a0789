"""What a reader can check on the page: the response, and each doubted claim by its passage."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.report.conftest import citation, sentence
from tests.report.test_page import Outline, written
from trustassay.core.metric import Assessment, Metric
from trustassay.core.sample import Sample
from trustassay.judging.evidence import JudgedClaim
from trustassay.metrics import Faithfulness
from trustassay.metrics.grounding import Grounding
from trustassay.report.distributions import Histogram
from trustassay.report.page import ReportMetric, ReportRun, ReportSample

MakeRun = Callable[..., ReportRun]

MILL = {
    "id": "mill",
    "question": "When was the mill built?",
    "response": "# The mill\n\nIt was built in **1920** by Anna Keller. It has 3 wheels.",
    "documents": [
        {"title": "Ferry", "text": "The ferry runs every day."},
        {"title": "The mill", "text": "It was built in 1902 by Ernst Keller. It had three wheels."},
    ],
    "model": "m",
    "session": "s-1",
    "latency_ms": 902,
    "note": "x" * 300,
    "tags": ["a", "b"],
}
CONTRADICTED = JudgedClaim(
    "It was built in **1920** by Anna Keller.",
    "contradicted",
    "The mill was built in 1920 by Anna Keller.",
    0.01,
    0.97,
    why="passage [2] says otherwise (contradiction 0.97)",
    passages=[2],
    quote="It was built in 1902 by Ernst Keller.",
)
SUPPORTED = JudgedClaim(
    "It has 3 wheels.", "supported", None, 0.98, 0.0,
    "passage [2] supports it (entailment 0.98)", [2], "It had three wheels.",
)  # fmt: skip


def page_of(
    make_run: MakeRun,
    folder: Path,
    evidence: Sequence[Any],
    metric: Metric | None = None,
    **fields: Any,
) -> str:
    metric = metric or Faithfulness()
    rows = [row.to_json() if isinstance(row, JudgedClaim) else row for row in evidence]
    parts = {"statements": 2.0, "supported": 1.0, "contradicted": 1.0}
    verdict = "contradicted" if isinstance(metric, Faithfulness) else "answered"
    assessment = Assessment("mill", metric.name, 0.5, verdict, "the reason", parts, evidence=rows)
    drawn = ReportMetric(
        metric.name, metric.title, make_run([]).metrics[0].summary, {}, Histogram(), metric=metric
    )
    sample = ReportSample(Sample.parse({**MILL, **fields}), [assessment])
    page = written(make_run([sample], metrics=[drawn]), folder)
    return page.split('<div id="list">')[1]


def comparisons(page: str) -> list[list[str]]:
    """Return for each claim the text and the marked words of both sides."""
    return [
        [
            re.sub(r"<mark( class=\"other\")?>", "[", cell).replace("</mark>", "]")
            for cell in re.findall(r"<dd><bdi>(.*?)</bdi></dd>", block)
        ]
        for block in re.findall(r'<dl class="comparison">(.*?)</dl>', page, re.DOTALL)
    ]


def test_a_doubted_claim_stands_beside_its_passage_with_the_words_that_differ(
    make_run: MakeRun, tmp_path: Path
) -> None:
    page = page_of(make_run, tmp_path, [CONTRADICTED, SUPPORTED])
    assert comparisons(page) == [
        ["The mill was built in [1920] by [Anna] Keller.",
         "It was built in [1902] by [Ernst] Keller."],
    ]  # fmt: skip
    text = " ".join(Outline(page).text.split())
    assert (
        "✕ contradicted entailment 0.01 passage [2] says otherwise (contradiction 0.97) claim"
        in text
    )
    assert "passage [2] The mill It was built in" in text
    assert 'href="#a1-d2"' in page.split('class="comparison"')[1]
    # The claim that nobody doubts is folded.
    folded = page.split("1 other claim</summary>")[1].split("</details>")[0]
    assert "It had three wheels." in folded
    assert 'id="a1-r0-s2"' in folded


def test_words_that_no_passage_has_are_marked_as_such(make_run: MakeRun, tmp_path: Path) -> None:
    claim = JudgedClaim(
        "It was built by Anna.", "not found", None, 0.1, 0.1, "no passage says this", [2],
        "It was built in 1902 by Ernst Keller.", ["Anna"],
    )  # fmt: skip
    page = page_of(make_run, tmp_path, [claim])
    assert "It was built by <mark>Anna</mark>." in page
    assert "<mark>in no passage</mark>" in page


@pytest.mark.parametrize(
    ("quote", "passages", "line"),
    [
        (None, None, "No passage is similar to this claim."),
        ("It runs.", [99], "No passage is similar to this claim."),
        ("The ferry runs every day.", [1], "it shares few words with the claim."),
        ("By Anna Keller the mill was built in 1920.", [2], "The words do not differ."),
    ],
)
def test_where_no_word_is_marked_a_line_says_why(
    make_run: MakeRun, tmp_path: Path, quote: str | None, passages: list[int] | None, line: str
) -> None:
    claim = JudgedClaim(
        "x", "contradicted", "The mill was built in 1920 by Anna Keller.", passages=passages,
        quote=quote,
    )  # fmt: skip
    assert line in page_of(make_run, tmp_path, [claim])


def test_an_unsupported_sentence_stands_beside_the_nearest_of_what_it_cites(
    make_run: MakeRun, tmp_path: Path
) -> None:
    evidence = [
        sentence("The mill was built in 1920 [2].", False, citation(2, "unsupported", 0.01)),
        sentence("The mill was built in 1920.", False),
        sentence("The mill was built in 1920 [1].", False, citation(1, "unsupported", 0.01)),
        sentence("The mill was built in 1920 [7].", False, citation(7, "invalid", None)),
        sentence("It had three wheels [2].", True, citation(2, "supports alone")),
    ]
    page = page_of(make_run, tmp_path, evidence, Grounding())
    near = ["The mill was built in [1920].", "It was built in [1902] by Ernst Keller."]
    claims = comparisons(page)
    assert claims[0] == claims[1] == claims[3] == near
    assert claims[2][1] == "The ferry runs every day."
    assert len(claims) == 4
    assert "1 other sentence</summary>" in page


def test_the_response_is_drawn_with_its_markdown_and_its_doubts(
    make_run: MakeRun, tmp_path: Path
) -> None:
    page = page_of(make_run, tmp_path, [CONTRADICTED, SUPPORTED])
    response = page.split("<h3>Response</h3>")[1].split("<section")[0]
    mark = '<mark class="bad" title="contradicted">'
    assert f"<p>{mark}It was built in </mark><strong>{mark}1920</mark></strong>{mark}" in response
    assert "<h3>The mill</h3>" in response
    assert Outline(response).text.split("It has")[0].count("Keller") == 1


def test_the_list_shows_the_beginning_of_each_response(make_run: MakeRun, tmp_path: Path) -> None:
    def line_of(response: str | None) -> str:
        page = page_of(make_run, tmp_path, [], response=response)
        return " ".join(Outline(page.split("</summary>")[0]).text.split())

    whole = (
        "When was the mill built? The mill It was built in 1920 by Anna Keller. It has 3 wheels."
    )
    assert whole in line_of(MILL["response"])  # type: ignore[arg-type]
    assert "There is no response." in line_of(None)
    assert "The response is blank." in line_of(" \n")
    long = line_of("**Bold** " + "word " * 200)
    assert "? Bold word word" in long
    assert "word… " in long
    # One beginning for a wide page, one for a phone.
    assert long.count("word") == (170 - 5) // 5 + (72 - 5) // 5


def test_short_fields_of_the_file_stand_below_an_answer(make_run: MakeRun, tmp_path: Path) -> None:
    facts = page_of(make_run, tmp_path, []).split('<dl class="facts small">')[1]
    names = re.findall(r"<dt>(?:<bdi>)?(.*?)(?:</bdi>)?</dt>", facts)
    assert names == ["id", "model", "position", "link", "session", "latency_ms"]
    assert "902" in facts
