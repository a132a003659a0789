"""Probabilities of being right beside the answers, where a calibrator was applied."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["AnswerChance", "ChancesTold"]


@dataclass(frozen=True, slots=True)
class AnswerChance:
    """The probability that an answer is right, ``None`` where there is none; ``accepted``: whether
    the first promise that has a threshold accepts it, ``None`` where none has."""

    probability: float | None
    accepted: bool | None

    @property
    def in_words(self) -> str:
        """Say it in short."""
        if self.probability is None:
            return "no probability"
        words = f"right with probability {self.probability:.2f}"
        if self.accepted is None:
            return words
        return f"{words}, {'accepted' if self.accepted else 'not accepted'}"


@dataclass(frozen=True, slots=True)
class ChancesTold:
    """What a calibrator says of a run: sentences, and warnings that it may not be for this run."""

    sentences: Sequence[str]
    warnings: Sequence[str] = ()
