"""Chat models that choose as told, and samples that bring their own distractors."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from trustassay.core.capabilities import ChatRequest, Message, Reply

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
    """What the last question of a prompt offers; ``number`` counts the checks of a question.

    again: it is asked once more, since the first reply could not be read.
    """

    question: str
    options: tuple[str, ...]
    number: int
    again: bool = False

    @property
    def right(self) -> str:
        """The letter of the model's own answer."""
        return "ABCDE"[self.options.index(RIGHT)]

    @property
    def wrong(self) -> str:
        """A letter of another."""
        return "B" if self.right == "A" else "A"


AGAIN = "Your reply names none of the options, or more than one. Reply once more"


def read(prompt: str) -> tuple[str, tuple[str, ...]]:
    """Return the last question of a prompt, and its options."""
    last = prompt.rsplit("Question: ", 1)[1].split(f"\n\n{AGAIN}", maxsplit=1)[0]
    question, *lines = last.splitlines()
    assert lines.pop() == "Answer:"
    assert [line[:3] for line in lines] == ["A) ", "B) ", "C) ", "D) ", "E) "]
    return question, tuple(line[3:] for line in lines)


def asked_again(messages: Sequence[Message]) -> bool:
    """Whether the turns ask once more after a reply that names no option."""
    return AGAIN in messages[-1].content


class Scripted:
    """Chooses by a function of what is offered, and notes each request."""

    def __init__(self, choose: Callable[[Asked], str] = lambda asked: asked.right) -> None:
        self.choose = choose
        self.requests: list[ChatRequest] = []
        self.checks: Counter[str] = Counter()

    @property
    def prompts(self) -> list[str]:
        """The prompts of the requests, in the order in which they came; no repairs."""
        return [one.messages[-1].content for one in self.requests if not asked_again(one.messages)]

    @property
    def repairs(self) -> list[ChatRequest]:
        """The requests that ask once more."""
        return [one for one in self.requests if asked_again(one.messages)]

    def chosen(self, messages: Sequence[Message]) -> str:
        """Return what is chosen of what a prompt offers."""
        question, options = read(messages[0].content)
        again = asked_again(messages)
        self.checks[question] += not again
        return self.choose(Asked(question, options, self.checks[question], again))


class Chooser(Scripted):
    """An endpoint that replies what is chosen."""

    shared = False
    name = "chooser"

    async def reply(self, request: ChatRequest) -> Reply:
        self.requests.append(request)
        return Reply(self.chosen(request.messages), "stop", 100, 1)


class Likely(Scripted):
    """A local model that finds the letter likeliest that is chosen, with a space before it."""

    name = "likely"

    def replies(self, requests: Sequence[ChatRequest]) -> list[Reply]:
        self.requests += requests
        return [Reply(f"({self.chosen(one.messages)})") for one in requests]

    def token_loglikelihoods(
        self, prompt: str | Sequence[Message], options: Sequence[str]
    ) -> list[list[float]]:
        assert not isinstance(prompt, str)
        letter = self.chosen(prompt)
        return [[math.log(0.6 if option == f" {letter}" else 0.1)] for option in options]


def letters_of_examples(prompt: str) -> list[str]:
    return re.findall(r"^Answer: (.*)$", prompt, re.MULTILINE)
