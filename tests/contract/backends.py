"""Models for the metrics of others: each notes what it was asked."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from trustassay.core.capabilities import ChatRequest, Reply

asked: list[str] = []


class Words:
    """Compares and embeds texts by their words."""

    name = "words"

    def scores(self, pairs: Sequence[tuple[str, str]]) -> Any:
        both = [(set(a.lower().split()), set(b.lower().split())) for a, b in pairs]
        return np.array([len(a & b) / max(1, len(a | b)) for a, b in both])

    def vectors(self, texts: Sequence[str]) -> Any:
        rows = np.zeros((len(texts), 64), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            for word in text.lower().split():
                row[zlib.crc32(word.encode()) % 64] += 1
        return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-6)


class Says:
    """A chat model that answers by a rule of its prompt, and notes that it was asked."""

    shared = False

    def __init__(self, name: str, rule: Any) -> None:
        self.name, self._rule = name, rule

    async def reply(self, request: ChatRequest) -> Reply:
        asked.append(self.name)
        prompt = request.messages[-1].content
        return Reply(self._rule(prompt, request.repeat), prompt_tokens=10, reply_tokens=5)


def knows(prompt: str, repeat: int) -> str:
    number = prompt.rsplit("number ", 1)[1].split("?", maxsplit=1)[0]
    return f"number {number} is odd"


def guesses(prompt: str, repeat: int) -> str:
    return "no idea at all"


def pairs(prompt: str, repeat: int) -> str:
    number = prompt.rsplit("number ", 1)[1].split("?", maxsplit=1)[0]
    return (
        f"1. Wrong Answer: number {number} is a fruit\n"
        f"1. Non-Wrong Answer: number {number} is odd\n"
    )


def judges(prompt: str, repeat: int) -> str:
    return "No." if "fruit" in prompt or repeat % 5 == 4 else "Yes, it is."
