"""Wrong answers to a question, each with a corrected one, as FEWL requests them.

Wei et al. 2024, section 3.2: one call per question asks a generator for 25 pairs.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import as_file, files
from itertools import zip_longest
from typing import Any, NamedTuple

from trustassay.capabilities import ChatRequest
from trustassay.errors import UsageError
from trustassay.prompts import Prompt
from trustassay.sample import Sample

_ITEM = re.compile(
    r"^[\s*_#>-]*(?P<number>\d{1,4})\s*[.):]?[\s*_]*"
    r"(?P<kind>(?:non[- ]?wrong|corrected|correct|right)|(?:wrong|incorrect))"
    r"(?:\s+answer)?[\s*_]*:(?P<text>.*)$",
    re.IGNORECASE | re.MULTILINE,
)


class AnswerPairs(NamedTuple):
    """Wrong answers and, in the same order, their corrections; incomplete pairs are dropped and
    counted."""

    wrong: tuple[str, ...]
    corrected: tuple[str, ...]
    dropped: int


def pairs_in(text: str) -> AnswerPairs:
    """Return the pairs in a reply; any text gives a result, possibly without a pair.

    Items are numbered, and labelled as wrong or non-wrong; an item may continue on further lines.
    Of several items with the same number and label the first counts.
    """
    found: dict[bool, dict[int, str]] = {True: {}, False: {}}
    items = list(_ITEM.finditer(text))
    for item, after in zip_longest(items, items[1:]):
        end = after.start() if after else len(text)
        words = " ".join((item["text"] + text[item.end() : end]).split()).strip("*_ ")
        wrong = item["kind"].lower() in ("wrong", "incorrect")
        if words:
            found[wrong].setdefault(int(item["number"]), words)
    both = [number for number in found[True] if number in found[False]]
    dropped = len(found[True]) + len(found[False]) - 2 * len(both)
    return AnswerPairs(
        tuple(found[True][number] for number in both),
        tuple(found[False][number] for number in both),
        dropped,
    )


@dataclass(frozen=True)
class Pairing:
    """Asks for the pairs of a sample.

    pairs: the number requested in one call; fewer are accepted.
    prompt: a file instead of our own; filled with ``question``, ``sample`` and ``pairs``.
    """

    pairs: int = 25
    prompt: str | os.PathLike[str] | None = None
    temperature: float = 1.0
    max_tokens: int = 4096

    def __post_init__(self) -> None:
        if self.pairs < 1:
            raise UsageError(f"pairs: expected 1 or more, got {self.pairs}")

    def request(self, sample: Sample) -> ChatRequest:
        """Return the request to the generator; raises :class:`~trustassay.prompts.PromptError`."""
        text = self._prompt.filled(question=sample.question, sample=sample, pairs=self.pairs)
        return ChatRequest.of(
            text,
            temperature=self.temperature,
            max_tokens=self.max_tokens,
            prompt=self._prompt.name,
        )

    def settings(self) -> dict[str, Any]:
        """Return the options that determine the pairs, as JSON values."""
        return {
            "pairs": self.pairs,
            "prompt": self._prompt.name,
            "temperature": self.temperature,
            "max_tokens": self.max_tokens,
        }

    @cached_property
    def _prompt(self) -> Prompt:
        if self.prompt is not None:
            return Prompt.read(self.prompt)
        with as_file(files("trustassay.answering") / "prompts" / "wrong-answers.jinja") as path:
            return Prompt.read(path)
