"""A made-up run that holds every kind of evidence, every kind of failure and hostile texts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from trustassay.core.metric import Assessment, Figure, Summary
from trustassay.core.sample import Sample
from trustassay.judging.entailer_quality import find_entailer_quality
from trustassay.metrics.grounding import Grounding
from trustassay.report.distributions import Histogram
from trustassay.report.page import ReportMetric, ReportRun, ReportSample, write_page
from trustassay.report.review import (
    AnswerKind,
    AnswerPriority,
    KindCount,
    ReviewCounts,
    Selection,
    lines_of,
    problem_of,
)

Evidence = dict[str, Any]

HOSTILE = [
    "<script>window.hacked = 1; alert(1)</script>",
    "\"><img src=x onerror='window.hacked = 2'>",
    "' onmouseover='window.hacked = 3' autofocus onfocus='window.hacked = 3",
    '<a href="javascript:window.hacked = 4" id=found>javascript:window.hacked = 4</a>',
    "</style></script></title><svg onload='window.hacked = 5'>",
    "{{ 7 * 7 }} {% raw %} <!-- ]]> <base href='http://localhost:9/'>",
    "user\u202egnp.exe \u2066isolated\u2069 \x07bell \x00 zero\u200bwidth \ufeff mark",
]
LONG_WORD = "x" * 4000
MANY_WORDS = "word " * 10_000

DOCUMENTS = [
    {
        "id": "p1",
        "title": "Asian elephant",
        "text": "The Asian elephant is found in forests across South and Southeast Asia.",
        "supports": [1, 0],
    },
    {
        "id": "p2",
        "title": "African elephant",
        "text": "African elephants live in savannas south of the Sahara.",
        "supports": [0, 1],
    },
    {
        "id": "p3",
        "title": "Sumatra",
        "text": "Sumatra is an island of western Indonesia.",
        "supports": [0, 0],
    },
]

FIGURES = {
    figure.key: figure
    for figure in (
        Figure("trust_score", "mean of the three F1 figures below", group="trust", headline=True),
        Figure("macro_f1", "how well answering and refusing is told apart", group="refusal"),
        Figure("answered_num", "answers that are no refusal", unit="", group="refusal"),
        Figure("regular_length", "mean length", unit="words", group="refusal"),
        Figure("qampari_presence", "wrong items that stand in a passage", group="lists"),
        Figure("never_computed", "a figure that this run does not have", group="lists"),
    )
}


def citation(document: int, verdict: str, entailment: float | None = 0.97) -> Evidence:
    return {
        "document": document,
        "verdict": verdict,
        "entailment": entailment,
        "why": f"why it is {verdict}",
    }


def sentence(text: str, supported: bool | None, *citations: Evidence) -> Evidence:
    return {
        "kind": "sentence",
        "text": text,
        "supported": supported,
        "entailment": None if supported is None else 0.97 if supported else 0.02,
        "why": "the cited passages together entail the sentence",
        "citations": list(citations),
    }


GOOD = sentence("Asian elephants live in Asia [1].", True, citation(1, "supports alone"))
EVERY_KIND: list[Evidence] = [
    GOOD,
    sentence(
        "They also live in Africa [1][2][3].",
        True,
        citation(1, "needed"),
        citation(2, "covered"),
        citation(3, "redundant", 0.12),
        citation(2, "duplicate", None),
        citation(9, "invalid", None),
        citation(0, "invalid", None),
        citation(1, "beyond limit", None),
    ),
    sentence("Some live on the moon [3].", False, citation(3, "unsupported", 0.01)),
    sentence("Nobody cites this.", False),
    sentence("This was not judged.", None),
    {**GOOD, "kind": "list item", "text": "Asia [1]"},
    {"kind": "gold", "text": "Asia", "aliases": ["Asia", "South Asia"], "correct": True,
     "supported": True, "entailment": None},
    {"kind": "gold", "text": "Africa", "aliases": [], "correct": False, "supported": None,
     "entailment": 0.4},
    {"kind": "coverage", "document": 1, "supports": [1, 0], "computed": True},
    {"kind": "refusal", "text": "could not find", "detector": "phrases"},
    {"kind": "something new", "text": "from a later version"},
]  # fmt: skip


def shown(
    name: str,
    score: float | None,
    verdict: str = "answered",
    evidence: Sequence[Any] = (GOOD,),
    metric: str = "grounding",
    error: str | None = None,
    reason: str = "the reason",
    **fields: Any,
) -> ReportSample:
    raw = {
        "id": name,
        "question": f"Where do elephants live ({name})?",
        "response": "Asian elephants live in Asia [1].",
        "documents": DOCUMENTS,
        "answers": [["Asia"], ["Africa"]],
        "model": "maker/model-1",
        "label": 4,
    }
    parts = {} if error else {"citation_recall": 0.75, "citations": 3, "precise_citations": 3}
    parts |= _counts(evidence)
    assessment = Assessment(
        id=name,
        metric=metric,
        score=score,
        verdict=None if error else verdict,
        reason=reason,
        parts=parts,
        evidence=list(evidence),
        error=error,
    )
    return ReportSample(Sample.parse({**raw, **fields}), [assessment])


def _counts(evidence: Iterable[Any]) -> dict[str, float]:
    """Return the parts that grounding counts, by its evidence."""
    judged = [one["supported"] for one in evidence if isinstance(one, dict) and "supported" in one]
    statements = [one for one in judged if isinstance(one, bool)]
    return {"statements": len(statements), "supported_statements": sum(statements)}


def samples() -> list[ReportSample]:
    """Return 32 samples: ordinary ones, every evidence kind, failures and hostile ones."""
    found = [
        shown("every-kind", 0.5, evidence=EVERY_KIND),
        shown("failed", None, error="the model could not be reached", evidence=()),
        shown("refused", 1.0, "refused", evidence=[EVERY_KIND[-2]]),
        shown("long-word", 0.31, question=LONG_WORD, response=LONG_WORD, model=LONG_WORD),
        shown("many-words", 0.32, response=MANY_WORDS, evidence=[sentence(MANY_WORDS, True)]),
        shown("no-response", 0.0, "blank", evidence=(), response=None, documents=None),
        shown("unscored", None, "answered", reason="nothing to say of one sample alone"),
        shown("other-metric", 0.4, metric="harmonicity", evidence=[{"gamma": 0.25, "n": [1]}]),
    ]
    found += [hostile(text, number) for number, text in enumerate(HOSTILE)]
    found += [
        shown(f"plain-{number}", number / 18, "answered" if number % 3 else "refused")
        for number in range(32 - len(found))
    ]
    return found


def hostile(text: str, number: int) -> ReportSample:
    """Return a sample and an assessment that carry ``text`` wherever a text can stand."""
    evidence: list[Any] = [
        sentence(text, True, {**citation(1, text), "why": text}),
        {**GOOD, "why": text, "citations": "not a list"},
        {"kind": "gold", "text": text, "aliases": [text], "correct": True, "supported": False},
        {"kind": "refusal", "text": text, "detector": text},
        {"kind": text, text: {text: [text]}},
        text,
    ]
    report = shown(
        f"{number} {text}",
        0.9,
        text,
        evidence,
        question=text,
        response=text,
        model=text,
        label=text,
        documents=[{"id": text, "title": text, "text": text, "excerpt": text}],
        answers=[[text, text]],
    )
    other = Assessment(text, text, 0.1, text, text, {text: 1.0}, evidence)
    failed = Assessment.for_failure(text, text, text)
    return ReportSample(report.sample, [*report.assessments, other, failed])


def summary(**changes: Any) -> Summary:
    values: dict[str, Any] = {
        "trust_score": 61.128,
        "macro_f1": 40.0,
        "answered_num": 1234567,
        "regular_length": 17.5,
        "qampari_presence": None,
        "not_defined": 0.5,
    }
    fields: dict[str, Any] = {
        "values": values,
        "n": 31,
        "failed": 1,
        "intervals": {"trust_score": (55.21, 66.94)},
        "without_interval": {"macro_f1": "too few answers"},
        "support": {"trust_score": 31, "macro_f1": 30},
        "not_applicable": {"qampari_presence": "no answer is a list"},
        "settings": {"profile": "default", "limit": 3, "odd": HOSTILE[0]},
    }
    return Summary(**{**fields, **changes})


def report_run(found: Iterable[ReportSample], **changes: Any) -> ReportRun:
    found = list(found)
    histogram = Histogram()
    for report in found:
        histogram.add(report.assessments[0].score, report.assessments[0].verdict)
    metric = Grounding()
    looked = ReviewCounts()
    for report in found:
        flags = [problem_of(metric, one) is not None for one in report.assessments]
        outcomes = [metric.outcome(one) for one in report.assessments]
        failed = any(one.error is not None for one in report.assessments)
        looked.add(flags, outcomes, failed=failed)
    fields: dict[str, Any] = {
        "title": "Elephants, a made-up run",
        "facts": {"input": "elephants.jsonl", "entailer": "embedded", "made": "2025-11-21"},
        "metrics": [
            ReportMetric("grounding", "Grounding", summary(), FIGURES, histogram, metric=metric)
        ],
        "total": len(found),
        "samples": iter(found),
        "looked": looked,
        "lines": lines_of({"grounding": "Grounding"}, {"grounding": metric}),
        "judge": find_entailer_quality("embedded:3", ["grounding"]),
    }
    return ReportRun(**{**fields, **changes})


def selection() -> Selection:
    """Return kinds of all levels, hostile ones among them."""
    failures = [AnswerKind(AnswerPriority.FAILURE, "grounding", "failed", text) for text in HOSTILE]
    problems = [AnswerKind(AnswerPriority.PROBLEM, text, text, text) for text in HOSTILE]
    others = [AnswerKind(AnswerPriority.REST, "grounding", "refused")]
    kinds = [*failures, *problems, *others]
    return Selection(32, [KindCount(kind, 1000, 3, (0.0, 0.25)) for kind in kinds])


@pytest.fixture(scope="session")
def make_run() -> Callable[..., ReportRun]:
    return report_run


@pytest.fixture(scope="session")
def make_sample() -> Callable[..., ReportSample]:
    return shown


@pytest.fixture(scope="session")
def make_hostile() -> Callable[..., list[ReportSample]]:
    return lambda: [hostile(text, number) for number, text in enumerate(HOSTILE)]


@pytest.fixture(scope="session")
def made_up_page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_page(report_run(samples(), total=1000, selection=selection()), path)
    yield path
