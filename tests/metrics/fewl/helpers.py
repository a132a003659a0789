"""References and a generator that answer by rules, and a similarity whose values are known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from trustassay.core.capabilities import ChatRequest, Reply
from trustassay.errors import CallError

Rule = Callable[[str], str]


class Speaker:
    """A chat model that answers the question of a prompt by a rule; ``asked`` counts prompts."""

    shared = False

    def __init__(self, name: str, rule: Rule) -> None:
        self.name, self.rule = name, rule
        self.asked: Counter[str] = Counter()

    async def reply(self, request: ChatRequest) -> Reply:
        text = request.messages[-1].content
        self.asked[text] += 1
        return Reply(self.rule(question_in(text)), "stop", 10, 5)


def question_in(prompt: str) -> str:
    """Return the last question of a prompt."""
    return prompt.rsplit("Question: ", 1)[1].splitlines()[0].strip()


def broken(question: str) -> str:
    """Fail to answer."""
    raise CallError("out of order", "refused")


class Known:
    """A similarity by a table of (text, reference); everything else is ``other``."""

    name = "known"

    def __init__(self, table: Mapping[tuple[str, str], float], other: float = 0.0) -> None:
        self.table, self.other = table, other
        self.asked: Counter[tuple[str, str]] = Counter()

    def scores(self, pairs: Sequence[tuple[str, str]]) -> Any:
        self.asked.update(pairs)
        return np.array([self.table.get(pair, self.other) for pair in pairs])


class Angles:
    """Embeds a question that ends with a number of degrees at that angle."""

    name = "angles"

    def vectors(self, texts: Sequence[str]) -> Any:
        radians = np.radians([float(text.split()[-1].rstrip("?")) for text in texts])
        return np.stack([np.cos(radians), np.sin(radians)], axis=1).astype(np.float32)
