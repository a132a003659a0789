"""Embeddings and similarities through the engine."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from trustassay import score
from trustassay.capabilities import Models, Vectors
from trustassay.metric import Assessment, Figure, Metric, Summary
from trustassay.sample import Sample


@dataclass(frozen=True)
class Likeness(Metric):
    """Length of the response's vector along the question's, and how alike they are."""

    name: ClassVar[str] = "likeness"
    title: ClassVar[str] = "Likeness"
    needs: ClassVar[frozenset[str]] = frozenset({"embedder", "similarity"})
    figures: ClassVar[Mapping[str, Figure]] = {}

    async def assess(self, sample: Sample, models: Models) -> Assessment:
        text = sample.response or ""
        one, other = await models.embed(sample.question), await models.embed(text)
        alike = await models.compare(text, sample.question)
        parts = {"dot": float(one @ other), "alike": alike}
        return Assessment(sample.id, self.name, alike, parts=parts)

    def summarise(self, assessments: Collection[Assessment], *, seed: int = 0) -> Summary:
        failed = sum(a.error is not None for a in assessments)
        return Summary({}, n=len(assessments), failed=failed)


class Counting:
    """Embeds a text as its length and 1; says how alike texts are by their lengths."""

    name = "counting"

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.pairs: list[tuple[str, str]] = []

    def vectors(self, texts: Sequence[str]) -> Vectors:
        self.texts += texts
        return np.array([[len(text), 1] for text in texts], dtype=np.float32)

    def scores(self, pairs: Sequence[tuple[str, str]]) -> Any:
        self.pairs += pairs
        return np.array([1 / (1 + abs(len(a) - len(b))) for a, b in pairs])


SAMPLES = [
    {"id": "a", "question": "four", "response": "seven77"},
    {"id": "b", "question": "four", "response": "four"},
]


def test_metrics_embed_and_compare_and_each_request_is_asked_once(tmp_path: Path) -> None:
    backend = Counting()
    out = tmp_path / "run"
    run = score(SAMPLES, metrics=Likeness(), embedder=backend, similarity=backend, out=out)
    # (4, 1) . (7, 1) = 29 and (4, 1) . (4, 1) = 17; 1 / (1 + 3) and 1 / (1 + 0).
    assert [dict(a.parts) for a in run.assessments] == [
        {"dot": 29, "alike": 0.25},
        {"dot": 17, "alike": 1},
    ]
    assert sorted(backend.texts) == ["four", "seven77"]
    assert sorted(backend.pairs) == [("four", "four"), ("seven77", "four")]
    assert run.assessments[0].calls == {"embedding": 2, "similarity": 1}
    with sqlite3.connect(out / "calls.sqlite") as calls:
        rows = calls.execute("SELECT capability, request, reply FROM calls ORDER BY 1, 2")
        stored = [(kind, json.loads(request), json.loads(reply)) for kind, request, reply in rows]
    assert stored == [
        ("embedding", ["four"], [4, 1]),
        ("embedding", ["seven77"], [7, 1]),
        ("similarity", ["four", "four"], [1]),
        ("similarity", ["seven77", "four"], [0.25]),
    ]
    settings = json.loads((out / "run.json").read_text())
    assert settings["backends"] == {"embedder": "counting", "similarity": "counting"}


class Wrong(Counting):
    def __init__(self, answer: Any) -> None:
        super().__init__()
        self.answer = answer

    def vectors(self, texts: Sequence[str]) -> Vectors:
        return np.array(self.answer)

    def scores(self, pairs: Sequence[tuple[str, str]]) -> Any:
        return self.answer


@pytest.mark.parametrize("answer", [[1.0, 2.0], [[float("nan"), 1.0]], [], [[1.0], [2.0]]])
def test_what_is_no_vector_is_a_failed_sample(answer: Any) -> None:
    run = score(SAMPLES[:1], metrics=Likeness(), embedder=Wrong(answer), similarity=Counting())
    assert run.assessments[0].error == "counting did not return a vector for each text"


@pytest.mark.parametrize("answer", [[float("nan")], [1.0, 2.0], 1.0, [[1.0]]])
def test_what_is_no_number_is_a_failed_sample(answer: Any) -> None:
    run = score(SAMPLES[:1], metrics=Likeness(), embedder=Counting(), similarity=Wrong(answer))
    assert run.assessments[0].error == "counting did not return a number for each pair"
