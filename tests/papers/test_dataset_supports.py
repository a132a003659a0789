from __future__ import annotations

import asyncio
from typing import Any

from trustassay.core.capabilities import Entailment
from trustassay.core.metric import Context
from trustassay.core.sample import Document, Sample
from trustassay.judging.passages import build_premise
from trustassay.metrics.grounding import Grounding
from trustassay.metrics.grounding.metric import GroundingAssessor
from trustassay.papers.dataset import label_documents

DOCUMENTS = [
    Document("a", "The capital is Paris.", "France"),
    Document("b", "A parisian cafe."),
    Document("c", "Lyon and Paris are cities."),
]


class Asked:
    """Entails unless the premise speaks of Lyon; notes what it is asked."""

    def __init__(self) -> None:
        self.pairs: list[tuple[str, str]] = []

    async def entail(self, premise: str, hypothesis: str) -> Entailment:
        self.pairs.append((premise, hypothesis))
        return Entailment(0.4, 0.6, 0.0) if "Lyon" in premise else Entailment(0.5, 0.5, 0.0)


def labels(threshold: float = 0.5, **fields: Any) -> tuple[list[tuple[int, ...]], Asked]:
    asked: Any = Asked()
    sample = Sample.parse({"id": "q", "question": "Capital?", **fields})
    return asyncio.run(label_documents(sample, DOCUMENTS, asked, threshold)), asked


def test_short_answers_must_stand_there_and_be_entailed_with_the_question() -> None:
    flags, asked = labels(answers=[["Paree", "Paris"], ["Rome"]])
    assert flags == [(1, 0), (0, 0), (0, 0)]
    assert asked.pairs == [
        ("Title: France\nThe capital is Paris.", "Capital? Paris"),
        ("Lyon and Paris are cities.", "Capital? Paris"),
    ]


def test_claims_are_entailed_as_they_stand_and_go_before_answers() -> None:
    flags, asked = labels(answers=["Paris"], claims=["It is Paris.", "It is big."])
    assert flags == [(1, 1), (1, 1), (0, 0)]
    assert asked.pairs[0] == ("Title: France\nThe capital is Paris.", "It is Paris.")


def test_answers_that_are_sentences_count_as_claims() -> None:
    flags, asked = labels(answers=["The capital of France is Paris."])
    assert flags == [(1,), (1,), (0,)]
    assert asked.pairs[1] == ("A parisian cafe.", "The capital of France is Paris.")


def test_the_threshold_moves_the_labels() -> None:
    assert labels(0.51, claims=["x y"])[0] == [(0,), (0,), (0,)]
    assert labels(0.4, claims=["x y"])[0] == [(1,), (1,), (1,)]


def test_premises_are_those_of_the_metric() -> None:
    sample = Sample("q", "?", "x", documents=tuple(DOCUMENTS))
    models: Any = None
    assessing = GroundingAssessor(Grounding(correctness="none"), Context(sample, models))
    assert [build_premise(d) for d in DOCUMENTS] == assessing.blocks
