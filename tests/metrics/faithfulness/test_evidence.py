"""The evidence in the report: escaped, linked, and total against foreign evidence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.metrics.faithfulness.test_metric import tells
from tests.support import Recorder
from trustassay import score
from trustassay.core.metric import Assessment
from trustassay.core.sample import Sample
from trustassay.judging.evidence import ClaimVerdict
from trustassay.metrics import Faithfulness
from trustassay.metrics.faithfulness.metric import FaithfulnessTrace, worst_verdict

HOSTILE = "<script>alert(1)</script> {{ 7*7 }} \u202e"


def page(folder: Path, response: str, *documents: str) -> str:
    record = {"question": "Where?", "response": response, "documents": list(documents)}
    out = folder / "run"
    score([record], metrics=Faithfulness(), out=out, entailer=Recorder(tells), cache=None)
    return (out / "report.html").read_text(encoding="utf-8")


def test_sentences_verdicts_and_passages_are_shown(tmp_path: Path) -> None:
    shown = page(
        tmp_path,
        f"The lamp is red. The house by the lake is green. {HOSTILE} is old.",
        "The lamp is red.",
        "The house by the lake is not green.",
    )
    for words in ("not found in the passages", "contradicted", "supported", "used by"):
        assert words in shown
    assert 'href="#a1-d2"' in shown
    assert 'id="a1" data-problem>' in shown
    assert "<script>alert" not in shown
    assert " 49 " not in shown


def test_what_is_worth_a_look() -> None:
    metric = Faithfulness()

    def problem(*verdicts: ClaimVerdict) -> str | None:
        judged = [one for one in verdicts if one != "no claim"]
        parts = {name: float(verdicts.count(name)) for name in ("supported", "contradicted")}
        parts["statements"] = float(len(judged))
        verdict = worst_verdict(verdicts)
        return metric.problem(Assessment("q", "faithfulness", 0.5, verdict=verdict, parts=parts))

    assert problem("supported", "no claim") is None
    assert problem("supported", "not found") == "1 of 2 sentences not found in the passages"
    both = problem("contradicted", "not found", "not found", "no claim")
    assert both == (
        "1 of 3 sentences contradicted by a passage; 2 of 3 sentences not found in the passages"
    )


anything: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)
rows = st.fixed_dictionaries(
    {"kind": st.sampled_from(["statement", "refusal", "other"])},
    optional=dict.fromkeys(("text", "verdict", "passages", "quote", "why", "entailment"), anything),
)


@given(st.lists(rows | anything, max_size=4))
def test_foreign_evidence_never_breaks_the_view(evidence: list[Any]) -> None:
    trace = FaithfulnessTrace.read(evidence, 2)
    assert len(trace.statements) + len(trace.other_items) + bool(trace.refusal) <= len(evidence) + 1
    found = Assessment("q", "faithfulness", 0.5, evidence=evidence)
    sample = Sample("q", "Where?", response="x")
    Faithfulness().view(sample, found)
    Faithfulness().problem(found)
