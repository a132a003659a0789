"""Models that say what a test wants, and note what they were asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from trustassay.core.capabilities import Entailment, Entity, Reply
from trustassay.errors import BackendError


class Scripted:
    """Substitutes by source and words; a list under ``*`` serves all words."""

    def __init__(
        self,
        substitutes: Mapping[str, Mapping[str, Sequence[str]]],
        linked: Sequence[Entity] | None = None,
        reply: str | None = None,
        entails: Callable[[str, str], bool] | None = None,
    ) -> None:
        self._substitutes, self._linked, self._reply = substitutes, linked, reply
        self._entails = entails
        self.judged: list[tuple[str, str]] = []
        self.asked: list[tuple[str, str, str, tuple[str, ...]]] = []
        self.prompts: list[str] = []

    def names(self, role: str) -> tuple[str, ...]:
        there = {
            "distractors": tuple(self._substitutes),
            "linker": () if self._linked is None else ("",),
            "generator": () if self._reply is None else ("",),
            "entailer": () if self._entails is None else ("",),
        }
        return there[role]

    async def substitutes(
        self, words: str, *, k: int, source: str, tag: str = "", types: Sequence[str] = ()
    ) -> tuple[str, ...]:
        self.asked.append((source, words, tag, tuple(types)))
        own = self._substitutes[source]
        if "fails" in own:
            raise BackendError(f"{source} is not there")
        key = "+".join(types) if source == "dbpedia" else words
        return tuple(own.get(key, own.get("*", ())))[:k]

    async def entail(self, premise: str, hypothesis: str) -> Entailment:
        assert self._entails
        self.judged.append((premise, hypothesis))
        entailed = self._entails(premise, hypothesis)
        return Entailment(0.5, 0.3, 0.2) if entailed else Entailment(0.49, 0.51, 0.0)

    async def link(self, text: str) -> tuple[Entity, ...]:
        return tuple(self._linked or ())

    async def chat(self, text: str, /, **parameters: Any) -> Reply:
        self.prompts.append(text)
        assert parameters["role"] == "generator" and parameters["prompt"] == "distractors/2"
        return Reply(self._reply or "")


def names(n: int) -> list[str]:
    """Return n made-up names, none part of another."""
    letters = "abcdefghij"
    return [f"Xu{letters[i // 10]}{letters[i % 10]}ra" for i in range(n)]
