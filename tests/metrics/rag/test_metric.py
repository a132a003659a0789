"""Whose fault it is, what decides it, and how it is shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.metrics.faithfulness.test_evidence import rows
from tests.support import Recorder
from trustassay import score
from trustassay.core.metric import Assessment
from trustassay.core.sample import Sample
from trustassay.errors import UsageError
from trustassay.metrics import Rag

YES, OPEN, NO = (0.8, 0.1, 0.1), (0.1, 0.8, 0.1), (0.1, 0.1, 0.8)
PARIS = "Paris is the capital of France."
ROME = "Rome is the capital of Italy."
LYON = "Lyon is the capital of France."
GAUL = "The capital of France was once called Lutetia."


def reads(premise: str, hypothesis: str) -> tuple[float, float, float]:
    """A premise with the same words entails; Lyon contradicts Paris."""
    if hypothesis.rstrip(".") in premise:
        return YES
    return NO if {premise, hypothesis} == {LYON, PARIS} else OPEN


def assessed(
    response: str,
    *documents: str,
    answers: Any = (("Paris",),),
    metric: Rag | None = None,
    **more: Any,
) -> Assessment:
    record = {
        "question": "What is the capital of France?",
        "response": response,
        "documents": list(documents),
        "answers": [list(one) for one in answers],
        **more.pop("record", {}),
    }
    given = {"entailer": Recorder(reads), "cache": None, **more}
    return score([record], metrics=metric or Rag(), **given).assessments[0]


STATED = "The capital of France is Paris."
"""What "Paris" says with its question."""


@pytest.mark.parametrize(
    ("response", "documents", "verdict"),
    [
        (STATED, [STATED], "right"),
        (STATED, [ROME], "right"),  # the model knew it by itself
        ("Paris", [ROME], "right"),
        (ROME, [ROME], "retriever"),
        ("The documents do not mention it.", [ROME], "retriever"),
        ("The documents do not mention it.", [], "retriever"),
        (ROME, [STATED, ROME], "generator: not used"),
        ("The documents do not mention it.", [ROME, STATED], "generator: not used"),
        (LYON, [STATED], "generator: used wrongly"),  # nothing says it
        (LYON, [ROME], "both"),
        ("Hello!", [STATED], "generator: not used"),
    ],
)
def test_whose_fault_it_is(response: str, documents: list[str], verdict: str) -> None:
    found = assessed(response, *documents)
    assert found.error is None
    assert (found.verdict, found.score) == (verdict, float(verdict == "right"))
    problem = Rag().problem(found)
    assert (problem is None) == (verdict == "right")
    assert problem is None or problem.startswith(f"{verdict}: it has 0 % of")


def test_a_fact_that_is_contradicted_is_used_wrongly_though_a_passage_says_so() -> None:
    whole = [[PARIS]]
    assert assessed(LYON, PARIS, LYON, answers=whole).verdict == "generator: used wrongly"
    assert assessed(LYON, LYON, answers=whole).verdict == "both"


def test_the_sentence_and_the_passage_that_decide_are_the_evidence() -> None:
    gold = [[f"{PARIS} {GAUL}"]]
    found = assessed(f"{GAUL} {LYON} {ROME}", ROME, PARIS, answers=gold)
    first, second, *said = found.evidence
    assert (first["text"], first["verdict"]) == (PARIS, "generator: used wrongly")
    assert (first["passages"], first["quote"]) == ([2], PARIS)
    assert (
        first["why"]
        == f"passage [2] supports it (entailment 0.80); the answer says “{LYON}” (entailment 0.10)"
    )
    assert (
        found.reason
        == f"the answer lacks 1 of 2 facts of the gold answer: “{PARIS}” {first['why']}"
    )
    assert (second["text"].strip(), second["verdict"]) == (GAUL, "in the answer")
    assert [one["verdict"] for one in said] == ["in the gold answer", "hallucination", "noise"]
    assert found.verdict == "generator: used wrongly"
    assert {name: round(value, 3) for name, value in found.parts.items()} == {
        "claim_recall": 0.5,
        "claim_precision": 0.333,
        "f1": 0.4,
        "context_recall": 0.5,
        "context_precision": 0.5,
        "context_utilization": 0.0,
        "faithfulness": 0.333,
        "noise_sensitivity_relevant": 0.0,
        "noise_sensitivity_irrelevant": 0.333,
        "hallucination": 0.333,
        "self_knowledge": 0.333,
        "facts": 2.0,
        "statements": 3.0,
        # (5 / 91 + 80 / 91) / 2: no sentence of the answer has the name Paris
        "order": 0.467,
    }


def test_enough_facts_make_an_answer_right_and_most_causes_the_verdict() -> None:
    gold = [[f"{PARIS} {GAUL} {ROME}"]]
    assert assessed(GAUL, PARIS, answers=gold).verdict == "retriever"  # of equally many the first
    assert assessed(GAUL, PARIS, ROME, answers=gold).verdict == "generator: not used"
    assert assessed(GAUL, PARIS, answers=gold, metric=Rag(enough=0.3)).verdict == "right"
    for wrong in (0.0, 1.5):
        with pytest.raises(UsageError, match=r"^enough: expected"):
            Rag(enough=wrong)


def test_aliases_are_one_fact_and_claims_come_first() -> None:
    found = assessed("Lutetia", STATED, answers=[["Paris", "Lutetia"]])
    assert (found.verdict, found.parts["facts"]) == ("right", 1)
    assert found.parts["context_recall"] == 1
    claimed = assessed(GAUL, record={"claims": [GAUL, ROME]})
    assert [one["verdict"] for one in claimed.evidence[:2]] == ["retriever", "in the answer"]


def test_a_model_lists_facts_and_claims() -> None:
    def lists(prompt: str) -> str:
        return f"1. {PARIS}" if "A long answer." in prompt else f"1. {PARIS}\n2. {ROME}"

    found = assessed(
        "A short one.", ROME, answers=[["A long answer."]], metric=Rag(claims="model"), judge=lists
    )
    assert (found.verdict, found.parts["facts"], found.parts["statements"]) == ("right", 1, 2)


def test_what_cannot_be_judged_has_no_score_or_is_refused() -> None:
    nothing = assessed(PARIS, PARIS, answers=[["Hello!"]])
    assert (nothing.score, nothing.error, nothing.reason) == (
        None,
        None,
        "the gold answer claims nothing",
    )
    assert assessed(" ", PARIS).error is not None
    bare = Sample.parse({"question": "?", "response": "x"})
    assert [one.field for one in Rag().problems(bare)] == ["documents", "answers"]


def test_the_page_shows_facts_statements_and_passages(tmp_path: Path) -> None:
    hostile = "<script>alert(1)</script> {{ 7*7 }} is old."
    assessed(f"{LYON} {hostile}", PARIS, out=tmp_path / "run", answers=[[PARIS], [hostile]])
    shown = (tmp_path / "run/report.html").read_text(encoding="utf-8")
    for words in ("Facts of the gold answer", "generator: used wrongly", "in the gold answer"):
        assert words in shown
    assert 'href="#a1-d1"' in shown
    assert "<script>alert" not in shown
    assert " 49 " not in shown


@settings(max_examples=30)
@given(st.lists(rows, max_size=3))
def test_foreign_evidence_never_breaks_the_view(evidence: list[Any]) -> None:
    found = Assessment("q", "rag", 0.5, evidence=evidence)
    Rag().view(Sample("q", "Where?", response="x"), found)
