"""A run in a notebook and at a prompt: a table, a picture, nothing that a browser would run."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import dataclass
from typing import ClassVar

import pytest

from tests.support import Recorder, records
from trustassay import Assessment, Metric, Run, score
from trustassay.core.metric import Context, Need

HOSTILE = "<script>alert(1)</script>\x1b[2J\"' onload=x"


@pytest.fixture(scope="module")
def run() -> Run:
    rows = [*records(3), {**records(1)[0], "id": HOSTILE, "question": HOSTILE, "response": "No."}]
    return score(rows, metrics="grounding", entailer=Recorder())


def test_every_text_is_escaped_and_the_tags_are_balanced(run: Run) -> None:
    html = run._repr_html_()
    assert "<script" not in html and "\x1b" not in html
    assert "&lt;script&gt;" in html
    tree = ET.fromstring(html.replace("<br>", "<br/>"))
    assert {"table", "svg", "ol"} <= {element.tag for element in tree.iter()}


def test_the_outcomes_come_first_with_why_answers_were_not_judged(run: Run) -> None:
    rows = [*records(2), {**records(1)[0], "id": "blank", "response": " "}]
    with_blank = score(rows, metrics="faithfulness", entailer=Recorder())
    outcomes = with_blank.outcomes["faithfulness"]
    assert repr(with_blank).splitlines()[:3] == [
        outcomes.sentence,
        "not answered: blank (1)",
        f"{with_blank.looks(0).sentence()}.",
    ]
    html = with_blank._repr_html_()
    assert outcomes.sentence in html and "not answered: blank (1)" in html
    assert html.index(outcomes.sentence) < html.index("a look") < html.index("<svg")
    assert run.outcomes["grounding"].sentence in run._repr_html_()


def test_the_picture_has_the_notebooks_own_colour_of_text(run: Run) -> None:
    svg = run._repr_html_().split("<svg", 1)[1].split("</svg>")[0]
    assert 'fill="currentColor"' in svg
    assert svg.count("<rect") >= 2
    assert "script" not in svg


@dataclass(frozen=True)
class Length(Metric):
    """Scores alone, without verdicts."""

    name: ClassVar[str] = "length"
    title: ClassVar[str] = "Length"

    def needs(self) -> list[Need]:
        return []

    async def assess(self, context: Context) -> Assessment:
        return Assessment(context.sample.id, self.name, len(context.sample.id) / 10)


def test_the_picture_of_a_metric_without_verdicts_is_one_of_scores() -> None:
    rows = [{"id": "q" * n, "question": "?", "response": "."} for n in (1, 2, 9)]
    shown = score(rows, metrics=Length())
    found = shown.looks(0)
    assert [place for place, count in enumerate(found.scores["length"]) if count] == [2, 4, 18]
    assert "number of answers by score" in shown._repr_html_()


def test_the_text_at_a_prompt(run: Run) -> None:
    text = repr(run)
    outcomes = run.outcomes["grounding"]
    assert text.splitlines()[0] == outcomes.sentence
    assert text.splitlines()[-1] == f"Run in {run.path}"
    assert "need a look" in text or "needs a look" in text
    assert "trust_score" in text
    assert "\x1b" not in text
