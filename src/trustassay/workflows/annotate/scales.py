"""What a rater chooses from: the levels of a rubric, or the sides of a pair."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from trustassay.metrics.judge.rubric import Rubric
from trustassay.workflows.annotate.plan import Step

__all__ = ["Choice", "Scale"]

KEYS = "1234567890qwertyiopd"
"""Keys of levels that are not single digits: none is the key of another action."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What a rater can choose: the ``value`` that is stored, and the keys that choose it."""

    value: str
    label: str
    keys: tuple[str, ...]
    name: str = ""
    means: str = ""


@dataclass(frozen=True)
class Scale:
    """One thing that is rated. rubric: what its levels mean; of pairs a guide, or none."""

    rubric: Rubric | None
    pairs: bool = False

    @property
    def name(self) -> str:
        """The rubric's name; empty where there is none."""
        return self.rubric.name if self.rubric else ""

    @cached_property
    def choices(self) -> tuple[Choice, ...]:
        """The levels, the highest first; of a pair the sides."""
        if self.pairs or self.rubric is None:
            return (
                Choice("first", "First", ("ArrowLeft", "1"), means="the first is better"),
                Choice("tie", "Tie", ("t", "0"), means="neither is better"),
                Choice("second", "Second", ("ArrowRight", "2"), means="the second is better"),
            )
        levels = list(self.rubric.levels)
        if self.rubric.ordinal:
            levels.sort(key=lambda level: -level.value)
        digits = all(level.label.isdigit() and len(level.label) == 1 for level in levels)
        return tuple(
            Choice(
                level.label,
                level.label,
                (level.label if digits else KEYS[place],),
                level.name,
                level.means,
            )
            for place, level in enumerate(levels)
        )

    @property
    def facts(self) -> Mapping[str, Any]:
        """What the first line of the file of ratings says of it."""
        rubric = self.rubric
        facts: dict[str, Any] = {
            "rubric": f"{rubric.name}/{rubric.version}" if rubric else None,
            "choices": [choice.value for choice in self.choices],
        }
        if rubric is not None and not self.pairs and rubric.ordinal and not rubric.numeric:
            facts["levels"] = sorted(rubric.values, key=rubric.values.__getitem__)
        return facts

    def stored(self, step: Step, choice: str) -> str | int:
        """Return how a choice is stored: a number, a word, or of a pair ``a``, ``b``, ``tie``."""
        if self.pairs:
            if choice == "tie":
                return choice
            return "a" if (choice == "first") != step.swapped else "b"
        return int(choice) if self.rubric is not None and self.rubric.numeric else choice

    def choice_of(self, step: Step, stored: object) -> str | None:
        """Return the choice that is stored as ``stored``; ``None`` where none is."""
        return next(
            (one.value for one in self.choices if self.stored(step, one.value) == stored), None
        )

    def choice_named(self, text: str) -> str | None:
        """Return the choice that a cell of a sheet names: a level, its name, a number as 4.0."""
        if self.pairs or self.rubric is None:
            values = [one.value for one in self.choices]
            return text.lower() if text.lower() in values else None
        return self.rubric.label_of(text)
