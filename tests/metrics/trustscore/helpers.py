"""A model that keeps to its answer or not, and facts as told, for single answers and for claims."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from tests.metrics.consistency.helpers import read
from tests.metrics.factcheck.helpers import words_of
from tests.support import Recorder
from trustassay.core.capabilities import ChatRequest, Reply, SubstitutesRequest

FACTS = words_of({"says yes": (0.9, 0.1, 0.0), "says no": (0.0, 0.1, 0.9)})
PASSAGES = {"support": "It says yes.", "neutral": "It says little.", "contradict": "It says no."}
MARK = "xx"
"""What every distractor has at the end of a word, and no answer."""


class Source:
    """A source of distractors: any word, with a mark and a number."""

    name = "marked"

    def substitutes(self, requests: Sequence[SubstitutesRequest]) -> list[list[str]]:
        return [[f"{one.words}{MARK}{i}" for i in range(one.k)] for one in requests]


class Keeper:
    """Takes the option without a mark, where ``keeps`` says so of it; else none of the above."""

    name = "keeper"
    shared = False

    def __init__(self, keeps: Callable[[str], bool] = lambda _: True) -> None:
        self.keeps = keeps
        self.requests: list[ChatRequest] = []

    async def reply(self, request: ChatRequest) -> Reply:
        self.requests.append(request)
        _, options = read(request.messages[0].content)
        own = next(i for i, option in enumerate(options) if not re.search(rf"{MARK}\d", option))
        return Reply("ABCDE"[own] if self.keeps(options[own]) else "E", "stop", 100, 1)


def who(model: Keeper | None = None, **others: Any) -> dict[str, Any]:
    """Return all backends that a run needs."""
    return {
        "model": model or Keeper(),
        "distractors": Source(),
        "entailer": Recorder(FACTS),
        "cache": None,
        **others,
    }


def sample(i: int = 0, verdict: str = "support", **others: Any) -> dict[str, Any]:
    return {
        "id": f"q{i}",
        "question": f"Where does lamp {i} stand?",
        "response": "Lamps stand inside red houses.",
        "documents": [PASSAGES[verdict]],
        **others,
    }
