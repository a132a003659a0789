"""Rating a plan for calibrate: it grows as people rate, and the page says what is promised."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.people.annotate.helpers import session
from tests.people.annotate.test_server import Visited
from tests.support import jsonl
from trustassay.metrics.judge import read_rubric
from trustassay.people.annotate.project import AnnotateOptions, open_project
from trustassay.people.annotate.server import build_annotation_application, follow_plan
from trustassay.people.annotate.session import AnnotationSession
from trustassay.people.label.calibration_plan import CalibrationDesign
from trustassay.people.label.calibration_work import (
    CalibrationPlanOptions,
    CalibrationPromise,
    CalibrationWork,
    open_promise,
)
from trustassay.people.label.plan import read_plan
from trustassay.people.study.labels import LabelSource
from trustassay.report.serving import AccessLinks

LABELS = 40


class Page(Visited):
    """The pages of a plan's raters."""

    def __init__(self, found: AnnotationSession, out: Path, promise: CalibrationPromise) -> None:
        from starlette.testclient import TestClient

        self.session, self.out, self.said = found, out, list[str]()
        self.links = AccessLinks(out, list(found.raters))
        served = build_annotation_application(found, self.links, self.said.append, None, promise)
        self.client = TestClient(served)

    def count_upper(self) -> int:
        """Return how many answers of the look's random sample have the better scores."""
        plan = self.session.project.options.plan
        assert plan is not None
        return CalibrationDesign.of(plan).sample_upper[0]

    def rate(self, number: int, rater: str = "anna", choice: int = 5) -> None:
        for _ in range(number):
            step = self.session.raters[rater].current
            assert self.post("rate", rater, step=step, choice=choice).status_code == 303


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Page]:
    rows = [
        {"question": f"What is {n}?", "response": f"It is {n}.", "sure": n / 100}
        for n in range(100)
    ]
    source, out = jsonl(tmp_path / "a.jsonl", rows), tmp_path / "r.jsonl"
    options = CalibrationPlanOptions("sure", number=LABELS)
    CalibrationWork(source, tmp_path / "plan.jsonl", LabelSource(weighted=True), options)
    plan, rubric = read_plan(tmp_path / "plan.jsonl"), read_rubric("answer")

    class Result:
        text = "Accept answers with sure > 0.4\nat most 10 % of those are wrong"

    def calibrate(*_: Any, **__: Any) -> Result:
        return Result()

    monkeypatch.setattr("trustassay.people.calibrate.command.calibrate", calibrate)
    project = open_project(source, AnnotateOptions(["anna", "bela"], [rubric], plan=plan))
    with session(project, out) as opened:
        promise = open_promise(source, plan, [out], rubric)
        asyncio.run(follow_plan(opened, promise))
        yield Page(opened, out, promise)


def test_the_next_batch_comes_when_all_raters_are_at_the_end(page: Page) -> None:
    assert f"{LABELS} labels missing until the promise is tested" in page.page()
    assert "No promise yet." in page.page()
    half = page.count_upper()
    page.rate(half)
    assert "All answers are rated" in page.page()
    # A label counts when everybody has rated the answer.
    assert f"{LABELS} labels missing" in page.page()
    page.rate(half, "bela")
    assert f"{half} of {LABELS} done" in page.page()
    assert len(page.session.project.options.plan.draws) == LABELS  # type: ignore[union-attr]
    # Nobody is at the end of the plan: it has grown.
    assert page.said == [f"anna has finished: {half} rated"]


def test_the_promise_is_on_the_page_at_the_look(page: Page) -> None:
    half = page.count_upper()
    for number in (half, LABELS - half):
        for rater in ("anna", "bela"):
            page.rate(number, rater)
    text = page.page()
    assert "All answers of the plan are labelled" in text
    assert "Accept answers with sure &gt; 0.4\nat most 10 % of those are wrong" in text


def test_a_restart_continues_the_grown_plan(page: Page) -> None:
    for rater in ("anna", "bela"):
        page.rate(page.count_upper(), rater)
    first = [page.session.project.items[s.item].id for s in page.session.raters["anna"].steps]
    options = page.session.project.options
    plan = read_plan(options.plan.path)  # type: ignore[union-attr]
    again = open_project(
        page.out.with_name("a.jsonl"), AnnotateOptions(options.raters, options.rubrics, plan=plan)
    )
    assert [again.items[step.item].id for step in again.steps["anna"]] == first
