"""Table 3 of the paper, value by value."""

from __future__ import annotations

import itertools
import os
import re
from pathlib import Path

import pytest

from tests.support import ROOT
from trustassay.metrics.trustscore.metric import TABLE, find_weakest, mean, trust_ov
from trustassay.text.verdict_replies import ENTAILMENT_LABELS, EntailmentLabel


@pytest.mark.parametrize(
    ("verdict", "consistent", "value"),
    [
        ("support", True, 1),
        ("support", False, 0.8),
        ("neutral", True, 0.6),
        ("neutral", False, 0.4),
        ("contradict", True, 0.2),
        ("contradict", False, 0),
    ],
)
def test_table_3(verdict: EntailmentLabel, consistent: bool, value: float) -> None:
    assert trust_ov(verdict, consistent=consistent) == value


def test_table_3_as_the_paper_prints_it() -> None:
    shared = Path(os.environ.get("TRUSTASSAY_SHARED", ROOT.parent / "shared"))
    papers = sorted(shared.glob("seeds/000_*.txt"))
    if not papers:
        pytest.skip("the paper's text is not here (TRUSTASSAY_SHARED)")
    rows = re.findall(
        r"^(Consistent|Inconsistent)\t(Support|Neutral|Contradict)\t([\d.]+)",
        papers[0].read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    printed = {(v.lower(), kept == "Consistent"): float(value) for kept, v, value in rows}
    assert printed == dict(TABLE)


def test_the_papers_three_principles() -> None:
    """Section 2.2: facts before consistency, and more of either is never worth less."""
    for kept in (True, False):
        assert trust_ov("support", consistent=kept) > trust_ov("contradict", consistent=kept)
    for verdict in ENTAILMENT_LABELS:
        assert trust_ov(verdict, consistent=True) > trust_ov(verdict, consistent=False)
    for better, worse in itertools.combinations(ENTAILMENT_LABELS, 2):
        assert trust_ov(better, consistent=False) > trust_ov(worse, consistent=True)


def test_claims_count_alike_and_the_first_weakest_is_named() -> None:
    assert mean([1.0, 0.6, 0.2]) == pytest.approx(0.6)
    assert mean([0.4]) == 0.4
    assert mean([]) is None
    assert find_weakest([1.0, 0.2, None, 0.2]) == 1
    assert find_weakest([None, None]) is None
