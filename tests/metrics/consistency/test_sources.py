"""Distractors from the sources that the package brings, from other samples, from the generator."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from tests.metrics.consistency.helpers import Scripted, read
from trustassay import score
from trustassay.api import plan, rescore
from trustassay.core.capabilities import ChatRequest, Reply
from trustassay.core.metric import Assessment
from trustassay.core.sample import Sample
from trustassay.metrics import Consistency
from trustassay.metrics.consistency.checks import MAX_POOL_SAMPLES, read_pool_samples

ANSWERS = {
    "Who built the first temple?": "King Solomon built the first temple.",
    "When did the song come out?": "The song came out in March 1983.",
    "Which animal is the tallest?": "The giraffe is the tallest animal.",
}
ROWS = [{"id": q[:4], "question": q, "response": a} for q, a in ANSWERS.items()]


class Keeper(Scripted):
    """An endpoint that takes its own answer wherever it stands."""

    shared = False
    name = "keeper"

    async def reply(self, request: ChatRequest) -> Reply:
        self.requests.append(request)
        question, options = read(request.messages[-1].content)
        return Reply("ABCDE"[options.index(ANSWERS[question])])


def offered(found: Assessment) -> list[dict[str, Any]]:
    return [option for row in found.evidence for option in row["options"] if "source" in option]


@pytest.mark.slow
def test_words_of_the_package_stand_in_for_those_of_the_answer(tmp_path: Path) -> None:
    model = Keeper()
    run = score(ROWS, metrics="consistency", model=model, out=tmp_path / "run")
    assert [(a.error, a.score) for a in run.assessments] == [(None, 1.0)] * 3
    for found, answer in zip(run.assessments, ANSWERS.values(), strict=True):
        texts = [option["text"] for option in offered(found)]
        assert len(texts) == 30
        assert answer not in texts
    assert {option["source"] for option in offered(run.assessments[1])} == {"date"}
    page = (run.path / "report.html").read_text(encoding="utf-8")
    names = json.loads((run.path / "run.json").read_text())["backends"]["distractors"]
    assert ", ".join(names.values()) in page
    again = rescore(run.path, metrics="consistency:checks=4,stop=no", out=tmp_path / "again")
    assert [(a.error, a.parts["checks"]) for a in again.assessments] == [(None, 4)] * 3
    asked = {name: count.computed for name, count in again.outcome.counts.items()}
    assert not any(asked.values()), asked
    assert len(model.requests) == 30


def test_a_source_that_cannot_be_had_back_by_its_name_is_told(tmp_path: Path) -> None:
    class Birds:
        name = "birds"

        def substitutes(self, requests: Any) -> list[list[str]]:
            return [[f"bird{i}" for i in range(request.k)] for request in requests]

    run = score(
        ROWS[2:], metrics="consistency", model=Keeper(), distractors=Birds(), out=tmp_path / "run"
    )
    assert {option["source"] for option in offered(run.assessments[0])} == {"birds"}
    same = rescore(run.path, metrics="consistency:checks=2", out=tmp_path / "same")
    assert [(a.error, a.score) for a in same.assessments] == [(None, 1.0)]
    more = rescore(run.path, metrics="consistency:candidates=60", out=tmp_path / "more")
    (error,) = [a.error for a in more.assessments]
    assert error
    assert "the run's birds cannot be used here" in error
    assert "give --backend distractors=URI" in error


def test_answers_to_other_questions_stand_in(tmp_path: Path) -> None:
    names = ["Ada Lovelace", "Grace Hopper", "Alan Turing", "Emmy Noether", "Kurt Gödel"]
    rows = [
        {
            "id": name,
            "question": f"Who is behind door {i}?",
            "response": f"{name} is behind it.",
            "answers": [
                [names[-1]]
            ],  # not read: a wrong answer is to be held against the right one
        }
        for i, name in enumerate(names)
    ]
    model = Keeper()
    own = {row["question"]: row["response"] for row in rows}

    async def reply(request: ChatRequest) -> Reply:
        question, options = read(request.messages[-1].content)
        return Reply("ABCDE"[options.index(own[question])])

    model.reply = reply  # type: ignore[method-assign]
    run = score(rows, metrics=Consistency(sources="pool"), model=model)
    for found, name in zip(run.assessments, names, strict=True):
        assert found.error is None
        texts = {option["text"] for option in offered(found)}
        assert texts == {f"{other} is behind it." for other in names if other != name}
        assert found.parts["checks"] == 4  # four distractors make four triples


def test_the_generator_is_asked_where_it_is_named() -> None:
    generator = Keeper()

    async def reply(request: ChatRequest) -> Reply:
        animals = ("zebra", "camel", "moose", "bison", "rhino")
        return Reply(
            "\n".join(f"{i}. The {a} is the tallest animal" for i, a in enumerate(animals, 1))
        )

    generator.reply = reply  # type: ignore[method-assign]
    generator.name = "generator"
    metric = Consistency(sources="llm")
    run = score(ROWS[2:], metrics=metric, model=Keeper(), generator=generator)
    (found,) = run.assessments
    assert (found.error, found.score, found.parts["candidates"]) == (None, 1.0, 5)
    assert found.parts["written"] == 1.0
    assert found.reason.endswith("; distractors: 5 llm")
    with pytest.raises(ValueError, match="needs a model that writes wrong and corrected answers"):
        score(ROWS[2:], metrics=metric, model=Keeper())
    with pytest.raises(
        ValueError, match="--backend distractors=URI is given, but consistency does not use it"
    ):
        plan(ROWS[2:], metrics=metric, model=Keeper(), generator=generator, distractors="pos")


class Writer(Keeper):
    """A generator whose wrong answers are two others, and the answer in other words."""

    name = "writer"

    async def reply(self, request: ChatRequest) -> Reply:
        self.requests.append(request)
        lines = ("The moose is the tallest animal", "The camelopard is the tallest animal", "Zebra")
        return Reply("\n".join(f"{n}. {line}" for n, line in enumerate(lines, 1)))


class Knows:
    """An entailer that knows another word for the giraffe."""

    name = "knows"

    def scores(self, pairs: Any) -> Any:
        same = [{"camelopard" in text or "giraffe" in text for text in pair} for pair in pairs]
        return np.array([[0.9, 0.1, 0.0] if one == {True} else [0.1, 0.9, 0.0] for one in same])


def test_a_generator_comes_first_where_no_source_is_named(tmp_path: Path) -> None:
    writer, out = Writer(), tmp_path / "run"
    backends: Any = {"model": Keeper(), "generator": writer, "entailer": Knows()}
    run = score(ROWS[2:], metrics="consistency", out=out, **backends)
    (found,) = run.assessments
    counts = Counter(option["source"] for option in offered(found))
    texts = {option["text"] for option in offered(found) if option["source"] == "llm"}
    assert texts == {"The moose is the tallest animal.", "The zebra is the tallest animal."}
    assert (found.parts["candidates"], found.parts["written"]) == (10, 0.2)
    assert set(counts) == {"llm", "embedding"} and counts.total() == 30
    assert found.reason.endswith("; distractors: 8 embedding, 2 llm")
    assert run.summary["consistency"]["written"] == 0.2
    assert "that a generator wrote" in (out / "report.html").read_text(encoding="utf-8")
    named = score(ROWS[2:], metrics=Consistency(sources="embedding"), model=Keeper())
    assert named.assessments[0].parts["candidates"] == 40
    assert "written" not in named.assessments[0].parts
    asked = len(writer.requests)
    again = rescore(out, metrics="consistency:checks=3", out=tmp_path / "again", **backends)
    assert again.assessments[0].parts["written"] == 0.2
    assert len(writer.requests) == asked == 1
    with pytest.raises(ValueError, match="--entailer is given, but consistency does not use it"):
        plan(ROWS[2:], metrics="consistency", model=Keeper(), entailer=Knows())


def test_the_entailer_of_a_generator_is_the_embedded_one() -> None:
    run = score(ROWS[2:], metrics="consistency", model=Keeper(), generator=Writer())
    assert run.assessments[0].parts["written"] >= 0.2
    assert run.outcome.counts["entailment"].computed


def test_an_unknown_source_is_named() -> None:
    run = score(ROWS[:1], metrics=Consistency(sources="pos+wordnet"), model=Keeper())
    (error,) = [a.error for a in run.assessments]
    assert error
    assert "'wordnet'" in error


def test_of_a_large_pool_some_samples_are_drawn() -> None:
    def drawn(samples: list[Sample]) -> list[Sample]:
        return asyncio.run(read_pool_samples(cast(Any, samples), cast(Any, None)))

    pool = [Sample(str(i), "Who?", f"answer {i}") for i in range(MAX_POOL_SAMPLES + 500)]
    found = drawn(pool)
    assert len({one.id for one in found}) == MAX_POOL_SAMPLES
    assert found == drawn(pool)
    assert max(int(one.id) for one in found) > MAX_POOL_SAMPLES
    assert drawn(pool[:7]) == pool[:7]
