"""What metrics need is met by whom the user named, or refused before anything starts."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

from trustassay import score
from trustassay.calls.backends import BackendKey, Backends
from trustassay.core.capabilities import ChatRequest, Reply
from trustassay.core.metric import Assessment, Context, Metric, Need
from trustassay.errors import BackendError, UnknownNameError
from trustassay.runs.needs import choose_backends, name_models


@dataclass(frozen=True)
class Asks(Metric):
    name: ClassVar[str] = "asks"
    title: ClassVar[str] = "Asks"
    reads_response: ClassVar[bool] = False

    wanted: tuple[Need, ...] = ()

    def needs(self) -> Sequence[Need]:
        return self.wanted

    async def assess(self, context: Context) -> Assessment:
        return Assessment(context.sample.id, self.name, 1.0)


class Chat:
    def __init__(self, name: str) -> None:
        self.name = name

    async def reply(self, request: ChatRequest) -> Reply:
        return Reply(self.name)


class Finder:
    name = "finder"

    def search(self, queries: Sequence[str], k: int) -> list[list[Any]]:
        return [[] for _ in queries]


def settled(*needs: Need, **named: Any) -> Backends:
    return asyncio.run(choose_backends([Asks(needs)], named))


def test_a_need_without_a_default_is_refused_with_the_option_that_meets_it() -> None:
    with pytest.raises(ValueError, match=r"asks: needs a judge \(--judge\)"):
        settled(Need("chat", "judge"))
    with pytest.raises(ValueError, match=r"asks: needs a retriever \(--retriever\)"):
        settled(Need("search"))


def test_it_is_refused_before_the_input_is_looked_at() -> None:
    with pytest.raises(ValueError, match="--judge"):
        score("no-such-file.jsonl", metrics=Asks((Need("chat", "judge"),)))


def test_a_default_is_loaded_where_nobody_is_named() -> None:
    assert settled(Need("compare")).names() == {"similarity": "cosine:embedded:9"}


@pytest.mark.parametrize("capability", ["chat", "choose", "likelihood"])
def test_without_a_role_the_model_under_assessment_is_meant(capability: str) -> None:
    with pytest.raises(ValueError, match="--model"):
        settled(Need(capability))


def test_what_is_optional_and_not_named_is_not_there() -> None:
    found = settled(Need("search", optional=True), Need("chat", "references", True, True))
    assert found.by_key == {}
    assert found.names_of_role("references") == ()


def test_who_is_named_takes_the_place() -> None:
    finder, judge = Finder(), Chat("j")
    found = settled(Need("search"), Need("chat", "judge"), retriever=finder, judge=judge)
    assert found.find("search") is finder
    assert found.find("chat", "judge") is judge
    assert found.names() == {"retriever": "finder", "judge": "j"}


def test_several_have_a_role_under_their_names() -> None:
    a, b = Chat("a"), Chat("b")
    found = settled(Need("chat", "references", many=True), references={"first": a, "second": b})
    assert found.names() == {"references": {"first": "a", "second": "b"}}
    assert found.by_key[BackendKey("chat", "references", "second")] is b
    assert found.names_of_role("references") == ("first", "second")


def test_one_named_for_many_has_its_own_name() -> None:
    need = Need("chat", "references", many=True)
    assert settled(need, references=Chat("a")).names_of_role("references") == ("a",)


def test_several_where_there_may_be_one() -> None:
    with pytest.raises(ValueError, match="--judge: expected one model, got 2"):
        settled(Need("chat", "judge"), judge=[Chat("a"), Chat("b")])


def test_whom_nobody_asks_is_refused() -> None:
    with pytest.raises(ValueError, match="--judge is given, but asks does not use it"):
        settled(Need("compare"), judge=Chat("a"))


def test_the_model_answers_and_so_may_always_be_given() -> None:
    assert settled(model=Chat("a")).names() == {"model": "a"}


@pytest.mark.parametrize(
    ("need", "words"),
    [
        (Need("chta", "judge"), "asks needs an unknown capability 'chta'; did you mean chat?"),
        (Need("chat", "juge"), "unknown role of a chat model 'juge'; did you mean judge?"),
    ],
)
def test_a_need_that_does_not_exist_is_refused_once(need: Need, words: str) -> None:
    with pytest.raises(UnknownNameError, match=words.replace("?", r"\?")):
        settled(need)


def test_an_unknown_word_is_answered_with_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match=r"unknown backend 'juge'; did you mean judge\?"):
        settled(juge=Chat("a"))


def test_a_model_that_cannot_do_what_is_needed_is_named() -> None:
    words = "asks: a cannot be used for likelihood; choose another chat model"
    with pytest.raises(BackendError, match=words):
        settled(Need("likelihood", "model"), model=Chat("a"))


def test_names_of_several_models() -> None:
    found = name_models(
        ["small=openai:gpt-4o-mini", "openai:org/big@http://127.0.0.1/v1?rpm=5", "hf:a/big"],
        "references",
        many=True,
    )
    assert found == {
        "small": "openai:gpt-4o-mini",
        "big": "openai:org/big@http://127.0.0.1/v1?rpm=5",
        "big-2": "hf:a/big",
    }


def test_a_need_may_have_a_default_of_its_own() -> None:
    assert settled(Need("compare", default="lexical")).names() == {"similarity": "lexical"}
    named = settled(Need("compare", default="lexical"), similarity="novel")
    assert named.names() == {"similarity": "novel"}


def test_metrics_with_different_defaults_are_not_scored_together_unless_one_is_named() -> None:
    metrics = [Asks((Need("compare"),)), Asks((Need("compare", default="lexical"),))]
    with pytest.raises(ValueError, match="has only one; choose it with --backend similarity=URI"):
        asyncio.run(choose_backends(metrics, {}))
    found = asyncio.run(choose_backends(metrics, {"similarity": "novel"}))
    assert found.names() == {"similarity": "novel"}


def test_metrics_that_want_different_numbers_are_not_scored_together() -> None:
    class One(Asks):
        filling: ClassVar[dict[str, int]] = {"references": 1}
        fills: ClassVar[tuple[str, ...]] = ("references",)

    class Five(One):
        name: ClassVar[str] = "five"
        filling: ClassVar[dict[str, int]] = {"references": 5}

    needs = (Need("chat", "references", many=True),)
    samples = [{"question": "q", "response": "r"}]
    with pytest.raises(ValueError, match="asks needs 1 references per call and five 5"):
        score(samples, metrics=[One(needs), Five(needs)], references=[Chat("a")])
