"""Algorithm 1 over a DBpedia and a Spotlight of this machine."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from tests.papers.knowledge_base import knowledge_base
from trustassay.calls.client import CallOptions, SampleModels, open_calls
from trustassay.core.capabilities import Models
from trustassay.errors import BackendError
from trustassay.metrics.consistency.distractors import find_distractors
from trustassay.metrics.consistency.tokens import Distractor
from trustassay.papers.distractors import load_backends


def find(answer: str, fate: str = "ok", limit: int = 2) -> list[Distractor]:
    """Return the distractors of an answer; all that DBpedia is asked meets ``fate``."""

    async def run() -> list[Distractor]:
        async with knowledge_base() as linked, knowledge_base() as base:
            base.fate = fate
            backends, names = load_backends(
                f"dbpedia:{base.url}/sparql?tries=1,embedding,pos", f"spotlight:{linked.url}"
            )
            async with open_calls(backends, CallOptions(cache=None)) as gatherers:
                models = cast(Models, SampleModels(gatherers))
                return await find_distractors(
                    "who", answer, models, sources=names, limit=limit, algorithm="paper"
                )

    return asyncio.run(run())


def test_entities_of_all_types_come_first_and_suffice() -> None:
    distractors = find("Jane Austen wrote it.")
    assert [(one.source, one.replacement) for one in distractors] == [
        ("dbpedia", "Leo Tolstoy"),
        ("dbpedia", "Mary Shelley"),
    ]


def test_embedding_fills_up_what_dbpedia_lacks() -> None:
    sources = [one.source for one in find("Marie Curie wrote it.", limit=12)]
    assert len(sources) == 12
    of_dbpedia = sources.count("dbpedia")
    assert of_dbpedia and sources == ["dbpedia"] * of_dbpedia + ["embedding"] * (12 - of_dbpedia)


@pytest.mark.parametrize("fate", ["500", "not-json", "garbage"])
def test_a_dbpedia_that_does_not_answer_is_a_fault_and_is_not_passed_over(fate: str) -> None:
    with pytest.raises(BackendError, match="DBpedia"):
        find("Jane Austen wrote it.", fate)
