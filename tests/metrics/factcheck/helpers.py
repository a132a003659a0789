"""Judges and a corpus that answer as told."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from trustassay.core.capabilities import ChatRequest, Passage, Reply
from trustassay.errors import BackendError

NEUTRAL = (0.0, 1.0, 0.0)


def words_of(probabilities: Mapping[str, Sequence[float]]) -> Callable[[str, str], Sequence[float]]:
    """Return an entailer by the first of these words that stands in the premise."""

    def judge(premise: str, hypothesis: str) -> Sequence[float]:
        return next((row for word, row in probabilities.items() if word in premise), NEUTRAL)

    return judge


class Corpus:
    """A retriever of fixed passages; notes the queries."""

    name = "corpus"

    def __init__(self, *texts: str, titles: Sequence[str] = ()) -> None:
        self.texts, self.titles = texts, titles
        self.queries: list[tuple[str, int]] = []

    def search(self, queries: Sequence[str], k: int) -> list[list[Passage]]:
        self.queries += [(query, k) for query in queries]
        titles = [*self.titles, *[""] * len(self.texts)]
        found = [Passage(f"p{i}", text, titles[i], 1.0) for i, text in enumerate(self.texts[:k])]
        return [found for _ in queries]


class Broken(Corpus):
    """A retriever that fails."""

    def search(self, queries: Sequence[str], k: int) -> list[list[Passage]]:
        raise BackendError("the corpus is on fire")


class Judge:
    """A chat model that replies by a function of its prompt."""

    name = "judge"
    shared = False

    def __init__(self, reply: Callable[[str], str] | str) -> None:
        self.answer = reply
        self.requests: list[ChatRequest] = []

    @property
    def prompts(self) -> list[str]:
        return [request.messages[-1].content for request in self.requests]

    async def reply(self, request: ChatRequest) -> Reply:
        self.requests.append(request)
        text = request.messages[-1].content
        return Reply(self.answer if isinstance(self.answer, str) else self.answer(text), "stop", 9)


def sample(i: int = 0, **others: Any) -> dict[str, Any]:
    return {
        "id": f"q{i}",
        "question": f"Where does lamp {i} stand?",
        "response": "In the red house.",
        **others,
    }
