"""Evidence of harmonicity: answers gathered, words marked, anything survived."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trustassay.core.evidence import MAX_WORDS_COMPARED, Piece
from trustassay.core.metric import Summary
from trustassay.metrics.harmonicity import Harmonicity, SemanticHarmonicity
from trustassay.metrics.harmonicity.asking import HarmonicityTrace
from trustassay.report.page import ReportMetric, ReportRun, ReportSample, write_page

METRICS = [
    ReportMetric(metric.name, metric.title, Summary({}, 0, 0), {}, metric=metric)
    for metric in (Harmonicity(), SemanticHarmonicity())
]
KEEPER = "The keeper of the lighthouse was a retired sailor."


def test_equal_answers_are_one() -> None:
    found = HarmonicityTrace.read(
        [
            {"original": KEEPER},
            {"answer": KEEPER, "change": "\\x05"},
            {"answer": "A sailor.", "change": "\\x01"},
            {"answer": "A sailor.", "change": "\\x02", "unseen": True},
            {"answer": KEEPER + "\n"},
            {"refused": "\\x00"},
            {"empty": "\\x07"},
        ]
    )
    assert found.original == KEEPER
    assert found.same
    assert (found.same.times, found.answers) == (2, 4)
    (variant,) = found.variants
    assert variant.times == 2
    assert [(c.text, c.reached_model, c.pieces) for c in variant.changes] == [
        ("\\x01", True, ()),
        ("\\x02", False, ()),
    ]
    assert found.refused == ["\\x00"]
    assert found.empty == ["\\x07"]
    assert not found.other_items


def test_words_that_differ_are_marked() -> None:
    answer = "The keeper of the lighthouse was retired sailor, they say."
    (variant,) = HarmonicityTrace.read([{"original": KEEPER}, {"answer": answer}]).variants
    assert variant.pieces == [
        Piece("same", "The keeper of the lighthouse was"),
        Piece("same", " "),
        Piece("gone", "a"),
        Piece("same", " retired"),
        Piece("same", " "),
        Piece("gone", "sailor."),
        Piece("same", " "),
        Piece("new", "sailor, they say."),
    ]
    assert "".join(p.text for p in variant.pieces if p.kind == "new") == "sailor, they say."


def test_a_whole_changed_prompt_is_held_against_the_question() -> None:
    evidence = [{"answer": "a", "change": c} for c in ("whta is it", "\\x1b\\n\\x00", " ꔀꔁ")]
    (variant,) = HarmonicityTrace.read(evidence, "what is it").variants
    assert [change.pieces for change in variant.changes] == [
        [Piece("gone", "what"), Piece("new", "whta"), Piece("same", " is it")],
        (),
        (),
    ]


@pytest.mark.parametrize(("before", "after"), [("", "a b"), ("a b", ""), ("  a", "a  \n b\n")])
def test_blank_answers_and_spaces(before: str, after: str) -> None:
    (variant,) = HarmonicityTrace.read([{"original": before}, {"answer": after}]).variants
    kept = "".join(p.text for p in variant.pieces if p.kind != "gone")
    assert kept.split() == after.split()


def test_long_answers_are_not_compared() -> None:
    long = "word " * (MAX_WORDS_COMPARED + 1)
    (variant,) = HarmonicityTrace.read([{"original": "word"}, {"answer": long}]).variants
    assert not variant.compared
    assert variant.pieces == [Piece("same", long)]


@pytest.mark.parametrize(
    "evidence", [[None], ["text"], [{"original": 3}], [{"answer": None}, {"answer": "a"}], [{}]]
)
def test_any_evidence_is_read(evidence: list[Any]) -> None:
    found = HarmonicityTrace.read(evidence)
    assert found.original is None
    assert len(found.other_items) + len(found.variants) == len(evidence)


def test_answers_that_two_metrics_read_are_shown_once(
    tmp_path: Path,
    make_run: Callable[..., ReportRun],
    make_sample: Callable[..., ReportSample],
) -> None:
    evidence = [{"original": KEEPER}, {"answer": "No.", "change": "\\x01"}]
    one = make_sample("q1", 0.3, "unstable", evidence, metric="harmonicity")
    for other, times in ((evidence, 1), ([*evidence[:1], {"answer": "Yes."}], 2), ([], 1)):
        two = make_sample("q1", 0.4, "stable", other, metric="semantic_harmonicity")
        both = ReportSample(one.sample, [*one.assessments, *two.assessments])
        write_page(make_run([both], metrics=METRICS), tmp_path / "report.html")
        page = (tmp_path / "report.html").read_text(encoding="utf-8")
        assert page.count("to perturbed prompts</h4>") == times
        assert ("The answers are those above" in page) == (other is evidence)


def test_the_page_shows_them_escaped(
    tmp_path: Path,
    make_run: Callable[..., ReportRun],
    make_sample: Callable[..., ReportSample],
    make_hostile: Callable[..., list[ReportSample]],
) -> None:
    hostile = [sample.sample.question for sample in make_hostile()]
    samples = []
    for number, text in enumerate(hostile):
        evidence = [
            {"original": f"An answer {text} here"},
            {"answer": f"An answer {text} there", "change": text},
            {"answer": text, "change": text, "unseen": True},
            {"refused": text},
            {text: text},
        ]
        samples.append(make_sample(f"s{number}", 0.3, "unstable", evidence, metric="harmonicity"))
    path = tmp_path / "report.html"
    write_page(make_run(samples, metrics=METRICS), path)
    page = path.read_text(encoding="utf-8")
    assert page.count("<script>") == 1
    assert "<img" not in page
    assert "<del>here</del>" in page
    assert "<ins>there</ins>" in page
    assert "it may have stripped this" in page
    assert "refused by the endpoint and replaced" in page
