"""The examples that the paper prints (Kersting et al. 2024, Tables 1-4), as recorded resamples."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

from trustassay import Run, score

SHARED = Path(os.environ.get("TRUSTASSAY_SHARED", "../shared")).resolve()
PAPER = next(iter(sorted(SHARED.glob("seeds/002_*.txt"))), None)
ROW = re.compile(r'(Orig|P\d+): .*\t"(.*)"')

pytestmark = pytest.mark.skipif(
    PAPER is None, reason=f"no paper in {SHARED}/seeds; set TRUSTASSAY_SHARED"
)


def tables(text: str) -> list[dict[str, Any]]:
    """Return the tables of perturbed prompts; Tables 3 and 4 leave parts of the answers out."""
    found: list[dict[str, Any]] = []
    for kind, answer in ROW.findall(text):
        if kind == "Orig":
            name = str(len(found) + 1)
            found.append({"id": name, "question": name, "response": answer, "resamples": []})
        else:
            found[-1]["resamples"].append(answer)
    return found[:4]


@pytest.fixture(scope="module")
def run() -> Run:
    assert PAPER
    samples = tables(PAPER.read_text("utf-8"))
    assert [len(sample["resamples"]) for sample in samples] == [10] * 4
    return score(samples, metrics=["harmonicity", "semantic_harmonicity"])


def test_gamma_of_the_tables(run: Run) -> None:
    gammas = [a.score for a in run.assessments if a.metric == "harmonicity"]
    # ada-002 gave the paper 0, 0.044, 0.151 and 0.268: the scale belongs to the embedder.
    assert gammas[0] == 0.0
    assert gammas == pytest.approx([0, 0.117, 0.438, 0.899], abs=0.01)


def test_meaning_tells_the_rephrased_answer_from_the_changed_ones(run: Run) -> None:
    divergences = [a.score for a in run.assessments if a.metric == "semantic_harmonicity"]
    assert divergences[0] == 0.0
    assert divergences[1] is not None
    assert divergences[1] < 0.1
    assert all(d is not None and d > 0.5 for d in divergences[2:])
