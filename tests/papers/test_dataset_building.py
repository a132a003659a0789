from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support import Recorder, jsonl, lines
from trustassay.backends.bm25 import Bm25
from trustassay.calls.client import CallOptions
from trustassay.core.capabilities import ChatRequest, Passage, Reply
from trustassay.core.sample import Sample
from trustassay.errors import BackendError, CallError, UnknownNameError
from trustassay.metrics.grounding import Grounding
from trustassay.papers import dataset
from trustassay.papers.dataset import BuildOptions, build
from trustassay.runs.generate import UnfinishedError
from trustassay.runs.intake import BadInputError

PASSAGES = [
    Passage("p0", "Number zero is even.", "Zero"),
    Passage("p1", "Number one is odd."),
    Passage("p2", "Number two is even. It is prime."),
    Passage("p3", "Number two is small."),
]
QUESTIONS: list[dict[str, Any]] = [
    {"id": "a", "question": "Is number one odd?", "claims": ["Number one is odd."], "extra": 1},
    {"id": "b", "question": "Number two?", "claims": ["Number two is small.", "It is prime."]},
    {"id": "c", "question": "Number nine?", "answers": ["nine"]},
]


def contains(premise: str, hypothesis: str) -> Sequence[float]:
    return (1.0, 0.0, 0.0) if hypothesis.lower() in premise.lower() else (0.0, 1.0, 0.0)


def quiet(**options: Any) -> BuildOptions:
    return BuildOptions(
        **{"calls": CallOptions(cache=None), "documents": 2, "candidates": 4, **options}
    )


@pytest.fixture
def retriever() -> Bm25:
    return Bm25.of(PASSAGES)


def test_the_documents_cover_the_claims(tmp_path: Path, retriever: Bm25) -> None:
    out = tmp_path / "out.jsonl"
    built = build(QUESTIONS, out, retriever, Recorder(contains), options=quiet())
    assert (built.written, built.counts["answerable"], built.failed) == (3, 2, {})
    a, b, c = lines(out)
    assert next((d["id"], d["supports"]) for d in a["documents"]) == ("p1", [1])
    assert {(d["id"], *d["supports"]) for d in b["documents"]} == {("p2", 0, 1), ("p3", 1, 0)}
    assert [a["answerable"], b["answerable"], c["answerable"]] == [True, True, False]
    assert a["extra"] == 1
    assert all(d["supports"] == [0] for d in c["documents"])
    for row in (a, b, c):
        sample = Sample.parse(row | {"response": "x"})
        assert sample.supports_known
        assert not Grounding().problems(sample)


def test_sentences_become_claims(tmp_path: Path, retriever: Bm25) -> None:
    row = {"id": "a", "question": "Two?", "answers": ["Number two is even. It is prime."]}
    out = tmp_path / "out.jsonl"
    options = quiet(claims="sentences")
    build([row], out, retriever, Recorder(contains), options=options)
    (found,) = lines(out)
    assert found["claims"] == ["Number two is even.", "It is prime."]
    assert found["documents"][0]["id"] == "p2"
    assert found["documents"][0]["supports"] == [1, 1]


class Chat:
    """Replies with the answer as its only claim; refuses what speaks of trouble."""

    name = "openai:test"
    endpoint = "test"

    async def reply(self, request: ChatRequest) -> Reply:
        assert (request.prompt, request.seed) == ("claims/1", 7)
        text = request.messages[-1].content
        answer = text.rsplit("Answer: ", 1)[1].removesuffix("\nFacts:")
        return Reply("I cannot say." if "trouble" in answer else f"1. {answer}")


def test_claims_of_a_model_and_its_failures(tmp_path: Path, retriever: Bm25) -> None:
    rows = [
        {"id": "a", "question": "One?", "answers": ["Number one is odd."]},
        {"id": "b", "question": "Two?", "answers": ["trouble"]},
    ]
    out = tmp_path / "out.jsonl"
    options = quiet(claims="model", seed=7)
    built = build(rows, out, retriever, Recorder(contains), Chat(), options)
    assert built.failed == {"b": "the model's reply has no numbered claims: 'I cannot say.'"}
    (found,) = lines(out)
    assert found["claims"] == ["Number one is odd."]
    assert found["documents"][0]["supports"] == [1]


class Silent(Chat):
    """Says nothing of trouble, and never comes to the end of what is long."""

    async def reply(self, request: ChatRequest) -> Reply:
        text = request.messages[-1].content
        if "long" in text:
            return Reply("1. Half a", "length")
        return Reply("") if "trouble" in text else await super().reply(request)


def test_silence_and_claims_cut_short_fail_their_question(tmp_path: Path, retriever: Bm25) -> None:
    rows = [
        {"id": "a", "question": "One?", "answers": ["Number one is odd."]},
        {"id": "b", "question": "Two?", "answers": ["trouble"]},
        {"id": "c", "question": "Two?", "answers": ["long"]},
    ]
    out = tmp_path / "out.jsonl"
    options = quiet(claims="model", seed=7)
    built = build(rows, out, retriever, Recorder(contains), Silent(), options)
    assert built.failed == {
        "b": "openai:test: the reply is empty (after 2 tries)",
        "c": "the model's reply was cut before its claims were complete",
    }
    assert [found["id"] for found in lines(out)] == ["a"]


class Closed(Chat):
    """Takes so many requests and then no more."""

    def __init__(self, left: int) -> None:
        self.left = left

    async def reply(self, request: ChatRequest) -> Reply:
        self.left -= 1
        if self.left < 0:
            raise CallError("the key is refused", "closed")
        return await super().reply(request)


def test_an_endpoint_that_closes_stops_the_work_and_it_goes_on_later(
    tmp_path: Path, retriever: Bm25
) -> None:
    rows = [{"id": f"q{i}", "question": "?", "answers": [f"Number {i} it is."]} for i in range(9)]
    out, options = tmp_path / "out.jsonl", quiet(claims="model", seed=7, samples_at_once=1)
    built = build(rows, out, retriever, Recorder(contains), Closed(4), options)
    assert "the key is refused" in str(built.stopped)
    assert not out.exists()
    built = build(rows, out, retriever, Recorder(contains), Closed(9), options)
    assert (built.stopped, built.written, built.failed) == (None, 9, {})
    assert built.resumed >= 3


def test_a_model_goes_with_its_kind_of_claims_alone(tmp_path: Path, retriever: Bm25) -> None:
    with pytest.raises(ValueError, match="needs a model"):
        build(QUESTIONS, tmp_path / "o", retriever, options=quiet(claims="model"))
    with pytest.raises(ValueError, match="claims=model needs a model"):
        build(QUESTIONS, tmp_path / "o", retriever, model=Chat(), options=quiet())


def test_faults_are_told_before_anything_starts(tmp_path: Path, retriever: Bm25) -> None:
    rows = [QUESTIONS[0], {"id": "x", "question": "Who?"}, {"id": "y", "answers": ["z"]}]
    source = jsonl(tmp_path / "q.jsonl", rows)
    entailer = Recorder(contains)
    with pytest.raises(BadInputError) as error:
        build(source, tmp_path / "o.jsonl", retriever, entailer, options=quiet())
    assert [str(f) for f in error.value.faults] == [
        f"{source}:2: answers: is missing (expected gold answers, or claims)",
        f"{source}:3: question: is missing (expected text)",
    ]
    assert not entailer.batches
    assert not (tmp_path / "o.jsonl").exists()
    built = build(source, tmp_path / "o.jsonl", retriever, entailer, options=quiet(skip_bad=True))
    assert built.written == 1


class StoppedError(BaseException):
    """Stands for the end of the process."""


def stopping(monkeypatch: pytest.MonkeyPatch, after: int) -> list[str]:
    """Let the work end at its n-th question; return the ids that it comes to."""
    begun: list[str] = []
    grounded = dataset._add_documents

    async def counted(sample: Sample, *others: Any) -> Sample:
        if len(begun) >= after:
            raise StoppedError
        begun.append(sample.id)
        return await grounded(sample, *others)

    monkeypatch.setattr(dataset, "_add_documents", counted)
    return begun


@pytest.mark.parametrize("after", [0, 2, 5, 7])
def test_it_goes_on_where_it_stopped_and_gives_the_same_bytes(
    tmp_path: Path, retriever: Bm25, after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [q | {"id": f"{q['id']}{i}"} for i in range(3) for q in QUESTIONS]
    whole, out = tmp_path / "whole.jsonl", tmp_path / "out.jsonl"
    build(rows, whole, retriever, Recorder(contains), options=quiet())
    with monkeypatch.context() as patch:
        stopping(patch, after)
        with pytest.raises(StoppedError):
            build(rows, out, retriever, Recorder(contains), options=quiet(samples_at_once=1))
    assert not out.exists()
    begun = stopping(monkeypatch, 100)
    built = build(rows, out, retriever, Recorder(contains), options=quiet())
    assert out.read_bytes() == whole.read_bytes()
    assert len(begun) == 9 - built.resumed
    assert built.resumed >= after - 1
    assert {p.name for p in tmp_path.iterdir()} == {"whole.jsonl", "out.jsonl"}


def test_unfinished_work_with_other_settings_is_refused(
    tmp_path: Path, retriever: Bm25, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out.jsonl"
    with monkeypatch.context() as patch:
        stopping(patch, 0)
        with pytest.raises(StoppedError):
            build(QUESTIONS, out, retriever, Recorder(contains), options=quiet())
    with pytest.raises(UnfinishedError):
        build(QUESTIONS, out, retriever, Recorder(contains), options=quiet(documents=1))


def test_a_failing_entailer_fails_its_question_alone(tmp_path: Path, retriever: Bm25) -> None:
    def judge(premise: str, hypothesis: str) -> Sequence[float]:
        if "small" in hypothesis:
            raise BackendError("too small")
        return contains(premise, hypothesis)

    built = build(QUESTIONS, tmp_path / "o", retriever, Recorder(judge), options=quiet())
    assert built.written == 2
    assert built.failed == {"b": "too small"}


def test_order_and_company_change_nothing(tmp_path: Path, retriever: Bm25) -> None:
    for concurrency in (1, 2, 16):
        options = quiet(samples_at_once=concurrency)
        build(
            QUESTIONS, tmp_path / f"{concurrency}", retriever, Recorder(contains), options=options
        )
    assert len({(tmp_path / str(c)).read_bytes() for c in (1, 2, 16)}) == 1


@pytest.mark.parametrize(
    "options", [{"documents": 0}, {"documents": 9, "candidates": 5}, {"threshold": 0}]
)
def test_bad_options(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="expected"):
        BuildOptions(**options)


def test_an_unknown_kind_of_claims() -> None:
    with pytest.raises(UnknownNameError, match="sentences"):
        BuildOptions(claims="sentence")  # type: ignore[arg-type]


def test_no_passage_at_all_is_unanswerable(tmp_path: Path, retriever: Bm25) -> None:
    rows = [{"id": "a", "question": "?!", "answers": ["x"]}]
    build(rows, tmp_path / "o", retriever, Recorder(contains), options=quiet())
    (found,) = lines(tmp_path / "o")
    assert json.loads(json.dumps(found["documents"])) == []
    assert found["answerable"] is False
