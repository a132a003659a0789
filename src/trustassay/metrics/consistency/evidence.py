"""Evidence of consistency, and its view: what each choice offered, and what was taken."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from trustassay.metrics.consistency.maths import LETTERS, PLACES
from trustassay.views import EvidenceRow, Mark, Piece, Rows, word_differences

NONE_OF_THEM = "None of the above."
_KEPT = Mark("good", "✓", "took its own answer")
_OTHER = Mark("bad", "✕", "took another option")
_NEITHER = Mark("bad", "✕", "took none of the above")
_UNPARSED = Mark("none", "○", "the reply names no option")


@dataclass(frozen=True, slots=True)
class Option(EvidenceRow):
    """A text that was offered, and the source of a distractor."""

    text: str
    source: str | None = None
    level: int | None = None


@dataclass(frozen=True, slots=True)
class Row(EvidenceRow, told_by=("options", "right")):
    """One choice: the options but for the last one, the letters of the answer and of what was
    chosen, and the last reply or the probabilities of the letters.

    first_reply: the reply that named no option, where it was asked for again.
    """

    options: Sequence[Option]
    right: str
    chosen: str | None
    way: str
    probabilities: Sequence[float] | None = None
    reply: str | None = None
    first_reply: str | None = None

    @property
    def mark(self) -> Mark:
        """What was taken, for the report."""
        if self.chosen not in tuple(LETTERS):
            return _UNPARSED
        if self.chosen == self.right:
            return _KEPT
        return _NEITHER if self.chosen == LETTERS[-1] else _OTHER

    @property
    def offered(self) -> list[Offered]:
        """All options with what became of them."""
        own, place = self.options[:PLACES], LETTERS.find(self.right)
        answer = own[place].text if 0 <= place < len(own) else ""
        letters = [*LETTERS[: len(own)], LETTERS[-1]]
        chances = dict(enumerate(self.probabilities or ()))
        found = []
        for i, (letter, one) in enumerate(zip(letters, [*own, Option(NONE_OF_THEM)], strict=True)):
            other = i < len(own) and letter != self.right
            found.append(
                Offered(
                    letter,
                    (word_differences(answer, one.text) if other else None)
                    or [Piece("same", one.text)],
                    letter == self.right,
                    letter == self.chosen,
                    one.source or "",
                    chances.get(i),
                )
            )
        return found


class Offered(NamedTuple):
    """An option as it was offered; ``pieces`` tell where it differs from the model's answer."""

    letter: str
    pieces: Sequence[Piece]
    right: bool
    chosen: bool
    source: str = ""
    probability: float | None = None


@dataclass(frozen=True, slots=True)
class Choices:
    """All choices of a sample; ``first`` is the place of the first in which the model did not take
    its answer, and ``rest`` evidence of any other kind.
    """

    shown: Sequence[Row]
    first: int | None
    rest: Sequence[Mapping[str, Any]]

    @classmethod
    def read(cls, evidence: Iterable[Any], *, unparsed_counts: bool = False) -> Choices:
        """Sort the evidence; ``unparsed_counts``: a reply without an option is inconsistent."""
        rows = Rows(evidence, Row)
        shown = rows.of(Row)
        wrong = (_OTHER, _NEITHER, _UNPARSED) if unparsed_counts else (_OTHER, _NEITHER)
        failed = (place for place, one in enumerate(shown) if one.mark in wrong)
        return cls(shown, next(failed, None), rows.rest)
