"""Evidence of harmonicity, and its view: answers to perturbed prompts next to the original."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from trustassay.views import EvidenceRow, Piece, Rows, word_differences

_TAIL = re.compile(r"(?s:\\x[0-9a-f]+|\\.|.){0,4}")
"""A few characters, unprintable ones spelled out; anything longer is a whole prompt."""


@dataclass(frozen=True, slots=True)
class Answer(EvidenceRow, told_by=("answer",)):
    """An answer to a perturbed prompt; ``change`` shows how the prompt was changed.

    ``unseen``: the endpoint counted no more tokens for the longer prompt, so it may have stripped
    what was added. ``cut`` at ``max_tokens``.
    """

    answer: str
    change: str = ""
    unseen: bool = False
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Original(EvidenceRow, told_by=("original",)):
    """The answer to the original prompt."""

    original: str


@dataclass(frozen=True, slots=True)
class Refused(EvidenceRow, told_by=("refused",)):
    """The change of a prompt that the endpoint refused."""

    refused: str


@dataclass(frozen=True, slots=True)
class Empty(EvidenceRow, told_by=("empty",)):
    """The change of a prompt that was answered with an empty reply."""

    empty: str


class Change(NamedTuple):
    """How a prompt was changed: a tail of a few characters, or the whole prompt in pieces.

    ``seen`` is False where the endpoint may have stripped what was added.
    """

    text: str
    seen: bool
    pieces: Sequence[Piece] = ()


@dataclass(slots=True)
class Variant:
    """One answer, and the changes of the prompt that gave it."""

    text: str
    times: int = 0
    changes: list[Change] = field(default_factory=list)
    pieces: Sequence[Piece] = ()
    compared: bool = True


@dataclass(slots=True)
class Perturbed:
    """The original answer, and the answers to perturbed prompts, equal ones as one.

    ``same`` is the variant that equals the original, if any; ``variants`` are the others, the most
    frequent first. ``rest`` is evidence of any other kind.
    """

    original: str | None = None
    same: Variant | None = None
    variants: Sequence[Variant] = ()
    refused: Sequence[str] = ()
    empty: Sequence[str] = ()
    answers: int = 0
    rest: Sequence[Mapping[str, Any]] = ()

    @classmethod
    def read(cls, evidence: Iterable[Any], question: str = "") -> Perturbed:
        """Sort the evidence; a whole changed prompt is compared with ``question``."""
        rows = Rows(evidence, Original, Answer, Refused, Empty)
        original = next((one.original for one in reversed(rows.of(Original))), None)
        by_text: dict[str, Variant] = {}
        for one in rows.of(Answer):
            variant = by_text.setdefault(one.answer.strip(), Variant(one.answer))
            variant.times += 1
            if one.change:
                pieces: Sequence[Piece] = ()
                if not _TAIL.fullmatch(one.change):
                    whole = word_differences(question, one.change)
                    pieces = whole or [Piece("same", one.change)]
                variant.changes.append(Change(one.change, not one.unseen, pieces))
        same = by_text.pop(original.strip(), None) if original is not None else None
        for variant in by_text.values():
            found = word_differences(original, variant.text) if original is not None else None
            variant.compared = found is not None
            variant.pieces = found or [Piece("same", variant.text)]
        variants = sorted(by_text.values(), key=lambda variant: -variant.times)
        refused = [one.refused for one in rows.of(Refused)]
        empty = [one.empty for one in rows.of(Empty)]
        return cls(original, same, variants, refused, empty, len(rows.of(Answer)), rows.rest)
