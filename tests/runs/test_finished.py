"""Which answers need a look: how many, which first, and why."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest

from trustassay import Assessment, Metric, Run, score
from trustassay.cli.results import show_worst
from trustassay.compare.gate import gate
from trustassay.compare.gate_rules import EarlierRun
from trustassay.core import registry
from trustassay.core.evidence import JudgedPiece, Mark, View
from trustassay.core.metric import Context, Figure, Mean
from trustassay.core.sample import Sample
from trustassay.runs.finished import describe_first_verdict, shorten_text


@dataclass(frozen=True)
class Told(Metric):
    """Says what the response says: ``VERDICT SCORE``; fails at ``fail``."""

    name: ClassVar[str] = "told"
    title: ClassVar[str] = "Told"
    verdicts: ClassVar[tuple[str, ...]] = ("good", "bad")

    def problem(self, assessment: Assessment) -> str | None:
        return "is bad" if assessment.verdict == "bad" or (assessment.score or 1) < 0.5 else None

    def needs(self) -> list[object]:  # type: ignore[override]
        return []

    async def assess(self, context: Context) -> Assessment:
        verdict, _, score = (context.sample.response or "").partition(" ")
        if verdict == "fail":
            raise ValueError("nothing to read")
        value = float(score) if score else None
        said = f"is {score}"
        return Assessment(context.sample.id, self.name, value, verdict=verdict, reason=said)


@dataclass(frozen=True)
class Again(Told):
    name: ClassVar[str] = "again"

    async def assess(self, context: Context) -> Assessment:
        found = await super().assess(context)
        return Assessment(found.id, self.name, 1 - (found.score or 0), verdict="good")


@dataclass(frozen=True)
class Parted(Metric):
    """Scores 0.5 or 1; its part ``least`` is what the response says, and orders the answers."""

    name: ClassVar[str] = "parted"
    title: ClassVar[str] = "Parted"
    ordered_by: ClassVar[str] = "least"
    figures: ClassVar[dict[str, Figure]] = {"mean": Figure("mean", "the mean", statistic=Mean())}

    def needs(self) -> list[object]:  # type: ignore[override]
        return []

    def problem(self, assessment: Assessment) -> str | None:
        return "is bad" if assessment.parts["least"] < 0.5 else None

    async def assess(self, context: Context) -> Assessment:
        least = float(context.sample.response or "")
        half = 0.5 if least < 0.5 else 1.0
        return Assessment(context.sample.id, self.name, half, parts={"least": least})


def run_of(*responses: str, metrics: object = Told()) -> Run:
    rows = [{"id": f"q{n}", "question": f"{n}?", "response": r} for n, r in enumerate(responses)]
    return score(rows, metrics=metrics)  # type: ignore[arg-type]


def test_the_worst_come_first_and_failures_last() -> None:
    run = run_of("good 1", "bad 0.4", "fail", "bad 0.1", "good 0.6", "bad 0.4", "bad 1", "good 0.2")
    assert [a.id for a in run.worst(9)] == ["q3", "q7", "q1", "q5", "q6", "q2"]
    assert [a.id for a in run.worst(2)] == ["q3", "q7"]
    assert run.worst(0) == []
    worst, *_, failed = run.worst(9)
    assert (worst.verdict, worst.reason, worst.badness) == ("bad", "is 0.1", 0.9)
    assert (worst.question, worst.response) == ("3?", "bad 0.1")
    assert failed.verdict == "failed" and "nothing to read" in failed.reason
    assert run.looks(0).sentence() == (
        "6 of 8 answers need a look, 1 because it could not be scored"
    )


def test_every_list_has_equal_scores_in_the_order_that_the_metric_declares(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "_read_entry_points", lambda: {"parted": lambda: Parted})
    told = {"before": ["0.9"] * 6, "after": ["0.3", "0.9", "0.05", "0.2", "0.6", "0.4"]}
    for name, responses in told.items():
        rows = [
            {"id": f"q{n}", "question": f"{n}?", "response": r} for n, r in enumerate(responses)
        ]
        run = score(rows, metrics=Parted(), out=tmp_path / name)
    worst = ["q2", "q3", "q0", "q5"]
    assert [answer.id for answer in run.worst(9)] == worst
    assert run.worst(1)[0].badness == pytest.approx(0.95)
    page = run.report().read_text()
    assert re.findall(r'<details class="answer" id="a(\d)"', page) == ["3", "4", "1", "6", "5", "2"]
    earlier = EarlierRun(tmp_path / "before", ["parted.mean"])
    changes = gate(tmp_path / "after", [], earlier).against[0].answers["parted"]
    assert [change.ids[1] for change in changes.worse] == worst


@pytest.mark.parametrize(
    ("responses", "words"),
    [
        (["good 1", "good 1"], "None of the 2 answers needs a look"),
        (["bad 0", "good 1"], "1 of 2 answers needs a look"),
        (["fail", "good 1"], "1 of 2 answers needs a look, 1 because it could not be scored"),
        (["fail"], "0 of 1 answer could be judged: error (1)"),
        (["refused"], "0 of 1 answer could be judged: refused (1)"),
        (["good 1", "refused"], "1 of 2 answers was judged: 0 need a look; 1 was not judged"),
    ],
)
def test_the_sentence(responses: list[str], words: str) -> None:
    assert run_of(*responses).looks(0).sentence() == words


def test_of_several_metrics_the_one_that_finds_an_answer_worst_speaks() -> None:
    run = run_of("bad 0.2", "good 0.9", metrics=[Told(), Again()])
    assert [(a.id, a.assessment.metric, round(a.badness, 2)) for a in run.worst()] == [
        ("q1", "again", 0.9),
        ("q0", "told", 0.8),
    ]


def test_the_line_of_the_first_verdict_is_one_line_without_what_a_terminal_obeys() -> None:
    run = run_of("bad 0.4")
    sample = run.worst()[0].sample
    hostile = Assessment("q0", "told", 0.4, verdict="bad", reason="a\nforged\x1b[2J line " * 20)
    line = describe_first_verdict(Told(), sample, hostile, 40)
    assert re.match(r"first result of 40: 0\? – bad: a forged", line)
    assert line.isprintable() and line.endswith("…")


def test_texts_are_cut_between_words() -> None:
    assert shorten_text("one two three", 13) == "one two three"
    assert shorten_text("one two three", 12) == "one two…"
    assert shorten_text("x" * 30, 10) == "x" * 9 + "…"


@dataclass(frozen=True)
class Marking(Told):
    """Marks one sentence that decides nothing, then one that has the answer's verdict."""

    name: ClassVar[str] = "marking"
    decides: str = "bad"

    def view(self, sample: Sample, assessment: Assessment) -> View:
        if self.decides == "fail":
            raise ValueError("no view")
        mark = Mark("bad", "✕", "not good")
        first = JudgedPiece("First\n sentence. ", mark, "it is short")
        return View(judged=[first, JudgedPiece("Second.", mark, "it is long", self.decides)])


@pytest.mark.parametrize(
    ("decides", "expected"),
    [
        ("bad", ["    bad: “Second.”", "    it is long"]),
        ("worse", ["    bad: is 0.1", "    “First sentence.”: it is short"]),
        ("fail", ["    bad: is 0.1"]),
    ],
)
def test_the_sentence_that_decides_is_shown(
    decides: str, expected: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    run = run_of("bad 0.1", metrics=Marking(decides=decides))
    show_worst(run.looks(1))
    _, *listed = capsys.readouterr().err.splitlines()
    assert listed == ["  0? (q0)", *expected]
