"""Evidence of consistency, read into views: what each choice offered, and what was taken.

Every reader is total: what has the wrong type counts as absent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from trustassay.metrics.consistency.checks import NONE_OF_THEM
from trustassay.metrics.consistency.maths import LETTERS
from trustassay.views import Mark, Piece, as_data, word_differences

_KEPT = Mark("good", "✓", "took its own answer")
_OTHER = Mark("bad", "✕", "took another option")
_NEITHER = Mark("bad", "✕", "took none of the above")
_UNPARSED = Mark("none", "○", "the reply names no option")


class Option(NamedTuple):
    """An option as it was offered; ``pieces`` tell where it differs from the model's answer."""

    letter: str
    pieces: Sequence[Piece]
    right: bool
    chosen: bool
    source: str = ""
    probability: float | None = None


@dataclass(slots=True)
class Shown:
    """One choice; ``first`` marks the first in which the model did not take its answer.

    unread: the reply that named no option, where it was asked for again.
    """

    number: int
    options: Sequence[Option]
    mark: Mark
    reply: str | None
    unread: str | None = None
    first: bool = False


@dataclass(slots=True)
class Choices:
    """All choices of a sample; ``rest`` is evidence of any other kind."""

    shown: Sequence[Shown]
    rest: Sequence[Mapping[str, Any]] = ()

    @classmethod
    def read(cls, evidence: Iterable[Any], *, unparsed_counts: bool = False) -> Choices:
        """Sort the evidence; ``unparsed_counts``: a reply without an option is inconsistent."""
        shown: list[Shown] = []
        rest: list[Mapping[str, Any]] = []
        for item in evidence:
            match item:
                case {"options": [*_], "right": "A" | "B" | "C" | "D"}:
                    shown.append(_shown(len(shown) + 1, item))
                case _:
                    rest.append(as_data(item))
        wrong = (_OTHER, _NEITHER, _UNPARSED) if unparsed_counts else (_OTHER, _NEITHER)
        failed = next((one for one in shown if one.mark in wrong), None)
        if failed:
            failed.first = True
        return cls(shown, rest)


def _shown(number: int, row: Mapping[str, Any]) -> Shown:
    right, chosen = row["right"], row.get("chosen")
    texts = [_text(option) for option in row["options"]][: len(LETTERS) - 1]
    place = LETTERS.index(right)
    answer = texts[place] if place < len(texts) else ""
    sources = [
        str(option.get("source", "")) if isinstance(option, Mapping) else ""
        for option in row["options"]
    ]
    told = row.get("probabilities")
    probabilities = told if isinstance(told, list | tuple) else []
    options = []
    for i, text in enumerate([*texts, NONE_OF_THEM]):
        letter = LETTERS[-1] if i == len(texts) else LETTERS[i]
        pieces = word_differences(answer, text) if letter not in (right, LETTERS[-1]) else None
        options.append(
            Option(
                letter,
                pieces or [Piece("same", text)],
                letter == right,
                letter == chosen,
                sources[i] if i < len(texts) else "",
                _number(probabilities, i),
            )
        )
    mark = _KEPT if chosen == right else _NEITHER if chosen == LETTERS[-1] else _OTHER
    if not isinstance(chosen, str) or chosen not in LETTERS:
        mark = _UNPARSED
    replies = (row.get(name) for name in ("reply", "first_reply"))
    reply, unread = (one if isinstance(one, str) else None for one in replies)
    return Shown(number, options, mark, reply, unread)


def _text(option: Any) -> str:
    text = option.get("text") if isinstance(option, Mapping) else None
    return text if isinstance(text, str) else ""


def _number(values: Sequence[Any], i: int) -> float | None:
    value = values[i] if i < len(values) else None
    return float(value) if isinstance(value, int | float) else None
