"""The evidence in the report: escaped, complete, and total against foreign evidence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.metrics.factcheck.helpers import Corpus, Judge, sample, words_of
from tests.support import Recorder
from trustassay import score
from trustassay.core.metric import Assessment
from trustassay.metrics import FactCheck
from trustassay.metrics.factcheck.metric import Facts

HOSTILE = "<script>alert(1)</script> {{ 7*7 }} \u202e"
TELLS = words_of({"red": (0.8, 0.1, 0.1), "blue": (0.1, 0.1, 0.8)})


def page(folder: Path, record: dict[str, Any], metric: FactCheck | None = None, **who: Any) -> str:
    score([record], metrics=metric or FactCheck(), out=folder / "run", cache=None, **who)
    return (folder / "run" / "report.html").read_text(encoding="utf-8")


def test_passages_and_what_each_says_are_shown(tmp_path: Path) -> None:
    corpus = Corpus("It is blue.", "Nothing.", HOSTILE, titles=["Lamps", "Other"])
    shown = page(tmp_path, sample(response=HOSTILE), retriever=corpus, entailer=Recorder(TELLS))
    assert "contradicts the answer" in shown
    assert "does not decide" in shown
    assert "Searched for" in shown
    assert "Lamps" in shown
    assert 'id="a1" data-problem>' in shown
    assert "alert(1)" in shown
    assert "<script>alert" not in shown
    assert " 49 " not in shown


def test_own_documents_are_linked_and_not_repeated(tmp_path: Path) -> None:
    record = sample(documents=["It is red, as every lamp of this town is."])
    shown = page(tmp_path, record, entailer=Recorder(TELLS))
    assert 'href="#a1-d1">document [1]</a>' in shown
    assert shown.count("as every lamp of this town is.") == 1


def test_a_judges_reply_is_shown(tmp_path: Path) -> None:
    judge = Judge(f"SUPPORTS\n{HOSTILE}")
    shown = page(tmp_path, sample(documents=["x"]), FactCheck(by="model"), judge=judge)
    assert "the judge&#39;s reply" in shown or "the judge's reply" in shown
    assert "shown to the judge" in shown
    assert "<script>alert" not in shown


def test_what_is_worth_a_look() -> None:
    metric = FactCheck()

    def problem(score: float | None, verdict: str | None = None) -> str | None:
        return metric.problem(Assessment("q", "factcheck", score, verdict=verdict))

    assert problem(0.0, "contradict") == "the evidence contradicts the answer"
    assert problem(None) == "there is no evidence to check the answer against"
    assert problem(0.5, "neutral") is None
    assert problem(1.0, "support") is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)
ROW = st.fixed_dictionaries(
    {"kind": st.sampled_from(["statement", "passage", "reply", "other"])},
    optional=dict.fromkeys(
        ("text", "number", "title", "entailment", "decides", "error", "verdict"), JSON
    ),
)


@given(st.lists(ROW | JSON, max_size=4))
def test_foreign_evidence_is_shown_as_it_is(evidence: list[Any]) -> None:
    found = Facts.read(evidence)
    shown = len(found.passages) + len(found.other_items)
    assert shown <= len(evidence)
    assert all(isinstance(one, dict) for one in found.other_items)


@pytest.mark.parametrize("row", [{"kind": "passage", "number": "1"}, 7, {"kind": "reply"}])
def test_what_fits_no_kind_stands_as_data(row: Any) -> None:
    assert len(Facts.read([row]).other_items) == 1
