"""A judge's choice between two answers: asked, read, and asked once more if it cannot be read."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import as_file, files
from typing import Any

from trustassay.capabilities import Choice, Message, Models, repair_turns
from trustassay.errors import CallError
from trustassay.metrics.pairwise.maths import CHOICES
from trustassay.prompts import Prompt, fence
from trustassay.sample import Sample

__all__ = ["Asking", "Verdict", "shipped"]

OPTIONS = ("reply a", "reply b", "not sure")
"""What the letters stand for, where a judge repeats this in their place."""
KEPT = 4000
"""Characters of a reply that are kept as evidence; the whole one is among the calls."""
NAMES_NONE = "Your reply names no letter, or more than one."
EMPTY = "Your reply was empty."


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a judge chose in one order: the letter, ``None`` if no reply could be read.

    tries: replies that were asked for, 2 where the first was unreadable.
    """

    order: str
    choice: str | None
    reply: str
    tries: int = 1

    def to_dict(self) -> dict[str, Any]:
        """Return the row of evidence."""
        row = {"order": self.order, "choice": self.choice, "reply": self.reply[:KEPT]}
        return row | ({"repaired": self.choice is not None} if self.tries > 1 else {})


@dataclass(frozen=True)
class Asking:
    """Asks the judge about two answers, ``temperature`` and ``max_tokens`` as of every call."""

    models: Models
    template: Prompt
    temperature: float | None
    max_tokens: int

    async def both(self, sample: Sample, answer: str, other: str) -> tuple[Verdict, Verdict]:
        """Return the verdicts with the answer read first, and with the other one read first.

        Raises:
            BackendError: a call failed; an empty reply is unreadable instead.
            PromptError: the template uses a name that does not exist.
        """
        first, swapped = await asyncio.gather(
            self._verdict(sample, "answer first", (answer, other), 0),
            self._verdict(sample, "other first", (other, answer), 1),
            return_exceptions=True,
        )
        for one in (first, swapped):
            if isinstance(one, BaseException):
                raise one
        assert isinstance(first, Verdict) and isinstance(swapped, Verdict)
        return first, swapped

    async def _verdict(
        self, sample: Sample, order: str, texts: tuple[str, str], expected: int
    ) -> Verdict:
        prompt = self.template.filled(
            question=sample.question,
            first=texts[0],
            second=texts[1],
            fence=fence((sample.question, *texts)),
            sample=sample,
        )
        found = await self._reply([Message("user", prompt)], self.template.name, expected)
        if found is not None and found.index is not None:
            return Verdict(order, CHOICES[found.index], found.reply)
        said = found.reply if found else ""
        repair = shipped("repair")
        words = repair.filled(problem=NAMES_NONE if said.strip() else EMPTY)
        turns = repair_turns(prompt, said, words)
        again = await self._reply(turns, f"pairwise-{repair.name}", expected)
        if again is None or again.index is None:  # the first reply says more of what is wrong
            return Verdict(order, None, said or (again.reply if again else ""), 2)
        return Verdict(order, CHOICES[again.index], again.reply, 2)

    async def _reply(self, turns: Sequence[Message], name: str, expected: int) -> Choice | None:
        """Return the judge's choice; ``None`` for an empty reply."""
        try:
            return await self.models.choose(
                turns,
                OPTIONS,
                by="letter",
                expected=expected,
                role="judge",
                temperature=self.temperature,
                max_tokens=self.max_tokens,
                prompt=name,
                stand_in="AB"[expected],
            )
        except CallError as error:
            if error.kind != "empty":
                raise
            return None


@cache
def shipped(name: str) -> Prompt:
    """Return a prompt of this package."""
    with as_file(files(__package__) / "prompts" / f"{name}.jinja") as path:
        return Prompt.read(path)
