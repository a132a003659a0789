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

from tests.llm_server import LlmServer
from trustassay import score
from trustassay.api import plan
from trustassay.core.capabilities import Vectors
from trustassay.core.metric import Assessment, Context, Figure, Metric, Need, Summary
from trustassay.runs.estimates import DEFAULT_LATENCY_S


@dataclass(frozen=True)
class Likeness(Metric):
    """Length of the response's vector along the question's, and how alike they are."""

    name: ClassVar[str] = "likeness"
    title: ClassVar[str] = "Likeness"
    figures: ClassVar[Mapping[str, Figure]] = {}
    score_range: ClassVar[tuple[float, float]] = (-1, 1)

    def needs(self) -> Sequence[Need]:
        return [Need("embed"), Need("compare")]

    async def assess(self, context: Context) -> Assessment:
        sample, models = context.sample, context.models
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
    # (4, 1) . (7, 1) = 29, by lengths of sqrt(17) and sqrt(50); 1 / (1 + 3) and 1 / (1 + 0).
    cosine = 29 / (17 * 50) ** 0.5
    assert [dict(a.parts) for a in run.assessments] == [
        {"dot": pytest.approx(cosine, abs=1e-5), "alike": 0.25},
        {"dot": pytest.approx(1, abs=1e-5), "alike": 1},
    ]
    assert sorted(backend.texts) == ["four", "seven77"]
    assert sorted(backend.pairs) == [("four", "four"), ("seven77", "four")]
    assert run.assessments[0].calls == {"embedding": 2, "similarity": 1}
    with sqlite3.connect(out / "calls.sqlite") as calls:
        rows = calls.execute("SELECT capability, request, reply FROM calls ORDER BY 1, 2")
        stored = [
            (kind, json.loads(request), [round(number, 4) for number in json.loads(reply)])
            for kind, request, reply in rows
        ]
    assert stored == [
        ("embedding", ["four"], [0.9701, 0.2425]),
        ("embedding", ["seven77"], [0.9899, 0.1414]),
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
    assert "counting: expected 1 vector of finite numbers" in (run.assessments[0].error or "")


@pytest.mark.parametrize("answer", [[float("nan")], [1.0, 2.0], 1.0, [[1.0]]])
def test_what_is_no_number_is_a_failed_sample(answer: Any) -> None:
    run = score(SAMPLES[:1], metrics=Likeness(), embedder=Counting(), similarity=Wrong(answer))
    assert run.assessments[0].error == "counting did not return a number for each pair"


@dataclass(frozen=True)
class Alike(Likeness):
    """How alike response and question are."""

    name: ClassVar[str] = "alike"

    def needs(self) -> Sequence[Need]:
        return [Need("compare")]

    async def assess(self, context: Context) -> Assessment:
        sample, models = context.sample, context.models
        return Assessment(
            sample.id, self.name, await models.compare(sample.response or "", sample.question)
        )


def _texts_asked(server: LlmServer) -> list[str]:
    return sorted(text for one in server.requests() for text in one["body"]["input"])


def test_a_similarity_by_an_endpoints_vectors_asks_as_the_embedder_does(tmp_path: Path) -> None:
    """Each text once, tried again, shared with the embedder and, by the cache, between runs."""
    with LlmServer(share_500=0.5, seed=3, keep=1000) as server:
        uri = f"openai:test@{server.base_url}?tries=20"
        both: dict[str, Any] = {"similarity": f"cosine:{uri}", "cache": tmp_path / "cache"}
        run = score(SAMPLES, metrics=Likeness(), embedder=uri, **both)
        assert [a.error for a in run.assessments] == [None, None]
        # Vectors are of unit length, so the metric's own product is the cosine, too.
        assert [a.parts["alike"] for a in run.assessments] == pytest.approx(
            [a.parts["dot"] for a in run.assessments], abs=1e-5
        )
        answered = server.stats()["answered"]
        assert set(_texts_asked(server)) == {"four", "seven77"}
        asked = len(server.requests())
        again = score(SAMPLES, metrics=Alike(), **both)
        assert [a.score for a in again.assessments] == [a.parts["alike"] for a in run.assessments]
        assert (server.stats()["answered"], len(server.requests())) == (answered, asked)


def test_a_similarity_by_an_endpoints_vectors_is_planned_without_asking(tmp_path: Path) -> None:
    with LlmServer() as server:
        similarity = f"cosine:openai:test@{server.base_url}"
        options: dict[str, Any] = {"similarity": similarity, "cache": tmp_path / "cache"}
        (part,) = plan(SAMPLES, metrics=Alike(), **options).parts
        assert (part.capability, part.calls, part.cached) == ("embedding", 2, 0)
        assert (part.seconds, part.measured) == (2 * DEFAULT_LATENCY_S.middle, False)
        assert server.requests() == []
        score(SAMPLES, metrics=Alike(), **options)
        (part,) = plan(SAMPLES, metrics=Alike(), **options).parts
        assert (part.calls, part.cached) == (2, 2)


def test_a_failing_endpoint_behind_a_similarity_fails_the_sample_alone(tmp_path: Path) -> None:
    with LlmServer(require_key="other") as server:
        similarity = f"cosine:openai:test@{server.base_url}"
        run = score(SAMPLES, metrics=Alike(), similarity=similarity, cache=tmp_path / "cache")
        assert all("401" in str(a.error) for a in run.assessments)
