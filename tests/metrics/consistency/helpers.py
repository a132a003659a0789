"""Chat models that choose as told, and samples that bring their own distractors."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from trustassay.capabilities import ChatRequest, Message, Reply

RIGHT = "The lamp stands in the red house."
COLOURS = [f"colour{i}" for i in range(40)]


def sample(i: int = 0, distractors: int = 40, **others: Any) -> dict[str, Any]:
    """Return a record with so many distractors, no two of which say the same."""
    wrong = [f"The lamp stands in the {colour} house." for colour in COLOURS[:distractors]]
    return {
        "id": f"q{i}",
        "question": f"Where does lamp {i} stand?",
        "response": RIGHT,
        "wrong_answers": wrong,
        **others,
    }


@dataclass(frozen=True)
class Asked:
    """What the last question of a prompt offers; ``number`` counts the checks of a question."""

    question: str
    options: tuple[str, ...]
    number: int

    @property
    def right(self) -> str:
        """The letter of the model's own answer."""
        return "ABCDE"[self.options.index(RIGHT)]

    @property
    def wrong(self) -> str:
        """A letter of another."""
        return "B" if self.right == "A" else "A"


def read(prompt: str) -> tuple[str, tuple[str, ...]]:
    """Return the last question of a prompt, and its options."""
    last = prompt.rsplit("Question: ", 1)[1]
    question, *lines = last.splitlines()
    assert lines.pop() == "Answer:"
    assert [line[:3] for line in lines] == ["A) ", "B) ", "C) ", "D) ", "E) "]
    return question, tuple(line[3:] for line in lines)


class Chooser:
    """Replies by a function of what is offered, and notes each request."""

    shared = False
    name = "chooser"

    def __init__(self, choose: Callable[[Asked], str] = lambda asked: asked.right) -> None:
        self.choose = choose
        self.requests: list[ChatRequest] = []
        self.checks: Counter[str] = Counter()

    @property
    def prompts(self) -> list[str]:
        """The prompts, in the order in which they came."""
        return [request.messages[-1].content for request in self.requests]

    async def reply(self, request: ChatRequest) -> Reply:
        self.requests.append(request)
        question, options = read(request.messages[-1].content)
        self.checks[question] += 1
        return Reply(self.choose(Asked(question, options, self.checks[question])), "stop", 100, 1)


class Likely(Chooser):
    """A local model that finds the letter likeliest that it would choose."""

    name = "likely"

    def replies(self, requests: Sequence[ChatRequest]) -> list[Reply]:
        found = []
        for request in requests:
            self.requests.append(request)
            question, options = read(request.messages[-1].content)
            found.append(Reply(f"({self.choose(Asked(question, options, 0))})"))
        return found

    reply = None  # type: ignore[assignment] - it is no endpoint

    def token_loglikelihoods(
        self, prompt: str | Sequence[Message], options: Sequence[str]
    ) -> list[list[float]]:
        assert not isinstance(prompt, str)
        question, offered = read(prompt[-1].content)
        self.checks[question] += 1
        letter = self.choose(Asked(question, offered, self.checks[question]))
        return [[math.log(0.6 if option == f" {letter}" else 0.1)] for option in options]


def letters_of_examples(prompt: str) -> list[str]:
    return re.findall(r"^Answer: (.*)$", prompt, re.MULTILINE)
