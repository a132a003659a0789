"""Judges of known character: they answer by a rule, and note what they were asked."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from trustassay.core.capabilities import ChatRequest, Reply, TokenLogprob
from trustassay.errors import CallError

Rule = Callable[[str, ChatRequest], str | Reply]


class Scripted:
    """A judge that answers by a rule of the prompt; it shares no replies."""

    shared = False

    def __init__(self, rule: Rule, name: str = "judge") -> None:
        self.name, self._rule = name, rule
        self.requests: list[ChatRequest] = []

    async def reply(self, request: ChatRequest) -> Reply:
        self.requests.append(request)
        found = self._rule(request.messages[0].content, request)
        if isinstance(found, Reply):
            return found
        if not found:
            raise CallError(f"{self.name}: the reply is empty", "empty")
        return Reply(found, prompt_tokens=100, reply_tokens=10)


def true_level(prompt: str) -> int:
    """Return the level that the answer states of itself: ``(level 4)``."""
    answer = prompt.split("===== Answer to rate =====")[1]
    return int(answer.split("(level ")[1][0])


def said(level: object) -> str:
    return f"Score: {level}\nReason: because of its 3 facts."


def steady(prompt: str, request: ChatRequest) -> str:
    return said(true_level(prompt))


def lenient(prompt: str, request: ChatRequest) -> str:
    return said(min(5, true_level(prompt) + 1))


def draw(*what: object) -> float:
    """Return a number from 0 to 1 that is fixed by what it is for."""
    digest = hashlib.blake2b(repr(what).encode(), digest_size=4).digest()
    return int.from_bytes(digest, "big") / 2**32


def noisy(chance: float) -> Rule:
    """Return a judge that is one level off in this share of its votes, as often up as down."""

    def rule(prompt: str, request: ChatRequest) -> str:
        level, drawn = true_level(prompt), draw(prompt, request.repeat)
        if drawn < chance:
            level += 1 if drawn < chance / 2 else -1
        return said(min(5, max(1, level)))

    return rule


def gold_first(prompt: str) -> bool:
    return prompt.index("===== Gold answer =====") < prompt.index("===== Answer to rate =====")


def biased(prompt: str, request: ChatRequest) -> str:
    """A judge that favours what it reads first by one level."""
    return said(min(5, true_level(prompt) + (not gold_first(prompt))))


def never_parses(prompt: str, request: ChatRequest) -> str:
    return "I would rather not say, but 3 of the facts are right."


def with_logprobs(shares: dict[str, float]) -> Rule:
    """Return a judge that tells the probabilities of its levels."""
    import math

    best = max(shares, key=shares.__getitem__)
    tokens = (
        TokenLogprob("Score", -0.01),
        TokenLogprob(":", -0.01),
        TokenLogprob(
            f" {best}",
            math.log(shares[best]),
            tuple((f" {label}", math.log(share)) for label, share in shares.items()),
        ),
        TokenLogprob("\n", -0.01),
        TokenLogprob(best, -3.0, (("9", -0.1),)),
    )
    text = "".join(token.token for token in tokens)
    return lambda prompt, request: Reply(text, logprobs=tokens)


def answers(levels: list[int], **more: object) -> list[dict[str, object]]:
    """Return samples whose answers state the level that they deserve."""
    return [
        {
            "id": f"a{i}",
            "question": f"What are the eras? ({i})",
            "response": f"They are three (level {level}).",
            "answers": [["the Palaeozoic, the Mesozoic and the Cenozoic"]],
            **more,
        }
        for i, level in enumerate(levels)
    ]
