"""What is found: a wrong answer, and what was replaced in it; and what can be replaced."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Distractor", "Kind", "Slot"]

Kind = Literal["entity", "date", "number", "word"]


@dataclass(frozen=True, slots=True)
class Distractor:
    """A whole answer in which one word or entity is replaced.

    source: ``dbpedia``, ``embedding``, ``pos``, ``number``, ``date``, ``pool``, ``llm``, or the
    name that another source was given.
    level: of the words that were replaced, 1 (they tell most) to 4.
    """

    text: str
    source: str
    level: int
    replaced: str
    replacement: str


@dataclass(frozen=True, slots=True)
class Slot:
    """Words of an answer that can be replaced, ``answer[start:end]``.

    level: 1 to 4. tag: part of speech (Penn Treebank) of a word, or of an entity's last one.
    types: of an entity in a knowledge base, as a linker told them.
    """

    text: str
    start: int
    end: int
    kind: Kind
    level: int
    tag: str = ""
    types: tuple[str, ...] = ()
