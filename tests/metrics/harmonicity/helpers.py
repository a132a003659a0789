"""Chat models that answer as told, and an embedder that needs no weights."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from trustassay.core.capabilities import ChatRequest, Reply, Vectors
from trustassay.errors import CallError

Answer = Callable[[str], str]


class Model:
    """Answers the last message by a function; counts tokens as characters, if at all."""

    shared = False

    def __init__(self, answer: Answer = lambda text: "Paris.", *, tokens: bool = True) -> None:
        self.name = "told"
        self.answer, self.tokens = answer, tokens
        self.asked: Counter[str] = Counter()

    async def reply(self, request: ChatRequest) -> Reply:
        text = request.messages[-1].content
        self.asked[text] += 1
        return Reply(self.answer(text), "stop", len(text) if self.tokens else None, 1)


class Stripping(Model):
    """Takes away control characters before it reads or counts."""

    async def reply(self, request: ChatRequest) -> Reply:
        text = request.messages[-1].content
        self.asked[text] += 1
        kept = "".join(c for c in text if c >= " ")
        return Reply(self.answer(kept), "stop", len(kept), 1)


def refusing(words: str = "bad character", where: Callable[[str], bool] = bool) -> Answer:
    """Return a function that refuses prompts, and answers the others."""

    def answer(text: str) -> str:
        if where(text):
            raise CallError(words, "refused")
        return "Paris."

    return answer


class Words:
    """Counts words: the vector has a place for each of 64 classes of words."""

    name = "words"

    def vectors(self, texts: Sequence[str]) -> Vectors:
        found = np.zeros((len(texts), 64), dtype=np.float32)
        for row, text in zip(found, texts, strict=True):
            for word in text.split():
                row[sum(word.encode("utf-8", "surrogatepass")) % 64] += 1
        lengths = np.linalg.norm(found, axis=1, keepdims=True)
        return np.asarray(found / np.where(lengths == 0, 1, lengths), dtype=np.float32)
