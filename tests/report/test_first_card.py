"""What the report opens with: how many answers need a look, by which line, and the worst."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest

from tests.report.conftest import HOSTILE, sentence
from tests.support import Probe, metric_names
from trustassay import score
from trustassay.core.capabilities import Models
from trustassay.core.evidence import JudgedPiece, Mark
from trustassay.core.metric import Assessment, MetricInfo
from trustassay.core.registry import load_metric_class
from trustassay.core.sample import Sample
from trustassay.metrics import Faithfulness, Grounding, Judge, Reference
from trustassay.report.answers import MAX_EXCERPT_CHARACTERS, excerpt_of
from trustassay.report.page import ReportRun, ReportSample, write_page
from trustassay.report.review import ReviewCounts, finding_of, lines_of, need_of, problem_of
from trustassay.runs.folder import RunFolder
from trustassay.runs.report import write_report

RED = "The lamp in the hall is red."
BAD, GOOD = Mark("bad", "✕", "contradicted"), Mark("good", "✓", "supported")


@dataclass(frozen=True)
class Flagging(Probe):
    name: ClassVar[str] = "flagging"

    def problem(self, assessment: Assessment) -> str | None:
        return "it is low" if (assessment.score or 0) < 0.3 else None


def assessed(score: float | None, error: str | None = None, verdict: str | None = None):  # type: ignore[no-untyped-def]
    return Assessment("q", "flagging", score, verdict, error=error)


# The sentence

GOOD_ONES = [(assessed(0.9), False)] * 6


def looked(*found: tuple[Assessment, bool], lines: bool = True) -> ReviewCounts:
    counted = ReviewCounts(lines)
    for assessment, flagged in found:
        outcome = Flagging().outcome(assessment)
        counted.add([flagged], [outcome], failed=assessment.error is not None)
    return counted


def test_the_sentence_counts_what_needs_a_look_and_what_failed() -> None:
    found = looked(
        (assessed(0.1), True),
        (assessed(0.9), False),
        (assessed(None, "no reply"), False),
        (assessed(None, verdict="refused"), False),
    )
    assert found.sentence == (
        "2 of 4 answers need a look, 1 because it could not be scored; 1 other was not judged"
    )
    assert found.to_dict() == {"answers": 4, "flagged": 2, "failed": 1, "judged": 2}


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (looked(), "There are no answers"),
        (looked((assessed(0.9), False)), "No answer needs a look"),
        (looked(*[(assessed(0.9), False)] * 3), "None of the 3 answers needs a look"),
        (looked((assessed(0.1), True)), "1 of 1 answer needs a look"),
        (looked((assessed(0.9), False), lines=False), "1 answer, worst scores first"),
        (
            looked(*GOOD_ONES, *[(assessed(None, verdict="refused"), False)] * 4),
            "6 of 10 answers were judged: 0 need a look; 4 were not judged",
        ),
        (
            looked(*GOOD_ONES, (assessed(None, verdict="refused"), False), lines=False),
            "7 answers, worst scores first; 1 was not judged",
        ),
        (
            looked((assessed(0.1), True), *[(assessed(None, verdict="refused"), False)] * 3),
            "1 of 4 answers needs a look; 3 others were not judged",
        ),
        (
            looked(
                *[(assessed(None, verdict="refused"), False)] * 9, (assessed(None, "no"), False)
            ),
            "0 of 10 answers could be judged: refused (9), error (1)",
        ),
    ],
)
def test_the_sentence_of_few(found: ReviewCounts, words: str) -> None:
    assert found.sentence == words


@pytest.mark.parametrize(
    ("skipped", "words"),
    [
        (0, "None of the 2 answers needs a look"),
        (1, "2 answers were judged: 0 need a look; 1 faulty record was skipped"),
        (3, "2 answers were judged: 0 need a look; 3 faulty records were skipped"),
    ],
)
def test_records_that_could_not_be_read_make_no_all_clear(skipped: int, words: str) -> None:
    counts = looked((assessed(0.9), False), (assessed(0.8), False))
    counts.skipped = skipped
    assert counts.sentence == words


# The line


def test_every_metric_that_flags_answers_says_by_which_line() -> None:
    for name in metric_names():
        line = load_metric_class(name)().line
        assert line, name
        assert "finds a problem in it" not in line, f"{name} has the general words alone"
    assert "0.7" in Faithfulness(threshold=0.7).line
    assert "below 3 (threshold)" in Judge(threshold=3).line


def test_a_metric_without_a_line_says_so() -> None:
    assert Reference(parts="bartscore").line == ""
    drawn, none, absent = lines_of(
        {"flagging": "A", "probe": "B", "gone": "C"}, {"flagging": Flagging(), "probe": Probe()}
    )
    assert drawn.sentence == "An answer needs a look if flagging finds a problem in it."
    assert none.sentence.startswith("This metric has no rule")
    assert absent.sentence.startswith("The metric is not installed here")


def test_a_metric_that_fails_to_say_flags_the_answer() -> None:
    class Broken(Flagging):
        def problem(self, assessment: Assessment) -> str | None:
            raise RuntimeError("oh")

    assert problem_of(Broken(), assessed(0.9)) == ("the rule of flagging failed: RuntimeError: oh")
    assert problem_of(None, assessed(0.0)) is None
    assert problem_of(None, assessed(None, "no reply")) == "no reply"


# The order


def test_flagged_answers_come_first_then_failures_then_the_worst_of_the_rest() -> None:
    info = MetricInfo.of(Flagging())
    found = {
        "rest, bad": finding_of(info, assessed(0.4), flagged=False),
        "rest, good": finding_of(info, assessed(1.0), flagged=False),
        "failed": finding_of(info, assessed(None, "no"), flagged=True),
        "flagged, less": finding_of(info, assessed(0.2), flagged=True),
        "flagged": finding_of(info, assessed(0.0), flagged=True),
    }
    ordered = sorted(found, key=lambda name: need_of([found[name]]))
    assert ordered == ["flagged", "flagged, less", "failed", "rest, bad", "rest, good"]
    assert need_of([found["rest, good"], found["flagged"]]) == need_of([found["flagged"]])


def test_of_equal_scores_the_later_verdict_is_worse() -> None:
    info = MetricInfo.of(Faithfulness())
    not_found, contradicted = (
        finding_of(info, Assessment("q", "faithfulness", 0.0, verdict), flagged=True)
        for verdict in ("not found", "contradicted")
    )
    assert need_of([contradicted]) < need_of([not_found])


# The response with what is bad in it


def test_bad_pieces_are_marked_where_they_stand() -> None:
    judged = [
        JudgedPiece("Red is old.", GOOD),
        JudgedPiece(" Blue is new. ", BAD),
        JudgedPiece("No such", BAD),
    ]
    found = excerpt_of("Red is old. Blue is new. Red is old.", judged)
    assert found.marked
    assert [tuple(piece) for piece in found.pieces] == [
        ("Red is old. ", ""),
        ("Blue is new.", "contradicted"),
        (" Red is old.", ""),
    ]


def test_of_a_long_response_the_bad_piece_is_shown_with_what_is_around_it() -> None:
    head, tail = "good words " * 200, "other words " * 200
    found = excerpt_of(f"{head}This is wrong. {tail}", [JudgedPiece("This is wrong.", BAD)])
    text = "".join(piece.text for piece in found.pieces)
    assert ("This is wrong.", "contradicted") in [tuple(piece) for piece in found.pieces]
    assert text.startswith(" … ")
    assert text.endswith("…") or text.endswith("… ")
    assert len(text) < MAX_EXCERPT_CHARACTERS
    unmarked = excerpt_of(head, [])
    assert len(unmarked.pieces[0].text) <= MAX_EXCERPT_CHARACTERS + 1
    assert not unmarked.marked


# The page


def test_the_page_opens_with_the_worst_and_says_the_line(
    make_run: Callable[..., ReportRun], make_sample: Callable[..., ReportSample], tmp_path: Path
) -> None:
    bad = sentence("The moon is cheese.", False)
    rows = [
        make_sample("low", 0.0, evidence=[bad], response="It is far. The moon is cheese."),
        make_sample("fine", 1.0),
    ]
    write_page(make_run(rows), tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    opening = page.split('class="opening"')[1].split("</section>")[0]
    assert "1 of 2 answers needs a look." in opening
    assert Grounding().line.split("(")[0] in opening
    assert "It is far. <mark" in opening
    assert ">The moon is cheese.</mark>" in opening
    assert "not supported" in opening
    assert "low" in opening
    assert "(fine)" not in opening
    assert (
        "Judge embedded:3 picks the true answer in 63 % (claims about health) to 92 % of pairs"
        in opening
    )
    assert "its AUC is .551, hardly better than chance" in page
    assert page.index('class="opening"') < page.index('id="figures"') < page.index('id="list"')
    assert re.search(
        r"<h3><bdi>mean of the three.*?</h3>\s*<p class=\"key\"><bdi>trust_score", page
    )


def test_hostile_ids_are_links_that_hold_nothing_else(
    make_run: Callable[..., ReportRun], make_sample: Callable[..., ReportSample], tmp_path: Path
) -> None:
    rows = [make_sample(text, 0.5) for text in (*HOSTILE[:6], "a b/ü?&#%41")]
    write_page(make_run(rows), tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert 'id="id=a%20b%2F%C3%BC%3F%26%23%2541"' in page
    assert all(re.fullmatch(r"[\w.~%-]*", link) for link in re.findall(r'"#id=(.*?)"', page))


def test_a_run_counts_and_orders_all_its_answers(tmp_path: Path) -> None:
    rows = [
        {"id": f"q{i}", "question": "Which colour?", "response": words, "documents": [RED]}
        for i, words in enumerate([RED, "Trains are late.", RED])
    ]
    run = score(rows, metrics="faithfulness", entailer="lexical", out=tmp_path / "run")
    write_report(RunFolder(run.path))
    page = (run.path / "report.html").read_text(encoding="utf-8")
    assert "1 of 3 answers needs a look." in page
    listed = re.findall(r'<details class="answer" id="(a\d)"( data-problem)?', page)
    assert listed == [("a2", " data-problem"), ("a1", ""), ("a3", "")]
    assert "The judge lexical agrees with human labels" in page


def test_a_metric_without_a_line_has_its_worst_answers_first(tmp_path: Path) -> None:
    async def told(sample: Sample, _: Models) -> float:
        return float(sample.response or 0)

    rows = [{"id": f"q{i}", "question": "Q?", "response": f"{i / 10}"} for i in (7, 1, 9)]
    run = score(rows, metrics=Probe(told), entailer="lexical", out=tmp_path / "run", report=True)
    page = (run.path / "report.html").read_text(encoding="utf-8")
    assert "3 answers, worst scores first." in page
    assert "This metric has no rule for which answers need a look; sorted by score." in page
    assert re.findall(r'<details class="answer" id="(a\d)"( data-problem)?', page) == [
        ("a2", ""),
        ("a1", ""),
        ("a3", ""),
    ]
    assert page.count('<li class="none">') == 3


def test_a_chatbots_log_opens_with_what_no_passage_says(tmp_path: Path) -> None:
    """Forty rows as Ragas lays them out, without citations and gold answers, and no option."""
    log = Path(__file__).parents[1] / "input/chat_log.jsonl"
    run = score(log, entailer="lexical", out=tmp_path / "run", report=True)
    page = (run.path / "report.html").read_text(encoding="utf-8")
    flagged = page.count(" data-problem>")
    assert 10 <= flagged <= 25  # sixteen rows say what their passages do not
    first_lines = re.findall(r'<p class="(outcomes|look)">(?:<bdi>)?(.*?)(?:</bdi>)?\.?</p>', page)
    sentence = run.outcomes["faithfulness"].sentence.replace(" %", "\u00a0%")
    assert first_lines == [("outcomes", sentence), ("look", run.looks(0).sentence())]
    assert run.looks(0).sentence().startswith(f"{flagged} of 40 answers need a look")
    opening = page.split('class="opening"')[1].split("</section>")[0]
    assert opening.count("<mark ") >= opening.count('<li class="bad">') == 5
    assert "not answered: refused (1)" in opening  # another answer denies a topic, which is judged
