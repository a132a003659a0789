"""Evidence of harmonicity, read into views: answers to perturbed prompts next to the original.

Every reader is total: what has the wrong type counts as absent.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from trustassay.metric import Assessment
from trustassay.sample import Sample
from trustassay.views import Piece, View, as_data, word_differences

_TAIL = re.compile(r"(?s:\\x[0-9a-f]+|\\.|.){0,4}")
"""A few characters, unprintable ones spelled out; anything longer is a whole prompt."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer to a perturbed prompt; ``change`` shows how the prompt was changed.

    ``seen`` is False where the endpoint counted no more tokens for the longer prompt: it may have
    stripped what was added. ``cut`` at ``max_tokens``.
    """

    text: str
    change: str = ""
    seen: bool = True
    cut: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return the row of the evidence."""
        row: dict[str, Any] = {"answer": self.text}
        if self.change:
            row["change"] = self.change
        if not self.seen:
            row["unseen"] = True
        return row | ({"cut": True} if self.cut else {})


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
        original: str | None = None
        by_text: dict[str, Variant] = {}
        refused: list[str] = []
        empty: list[str] = []
        rest: list[Mapping[str, Any]] = []
        answers = 0
        for item in evidence:
            match item:
                case {"original": str(text)}:
                    original = text
                case {"answer": str(text)}:
                    answers += 1
                    variant = by_text.setdefault(text.strip(), Variant(text))
                    variant.times += 1
                    if isinstance(change := item.get("change"), str):
                        seen = item.get("unseen") is not True
                        variant.changes.append(Change(change, seen, _whole(question, change)))
                case {"refused": str(change)}:
                    refused.append(change)
                case {"empty": str(change)}:
                    empty.append(change)
                case _:
                    rest.append(as_data(item))
        same = by_text.pop(original.strip(), None) if original is not None else None
        for variant in by_text.values():
            found = word_differences(original, variant.text) if original is not None else None
            variant.compared = found is not None
            variant.pieces = found or [Piece("same", variant.text)]
        variants = sorted(by_text.values(), key=lambda variant: -variant.times)
        return cls(original, same, variants, refused, empty, answers, rest)


def view_of(sample: Sample, assessment: Assessment) -> View:
    """Return the answers to perturbed prompts for the report."""
    found = Perturbed.read(assessment.evidence, sample.question)
    original = found.original
    told = original is not None and sample.response in (None, original)
    why = f"Asked again, it said: “{found.variants[0].text.strip()}”" if found.variants else ""
    shows = found if found.answers else None
    return View(data=found, tells_response=told, shows=shows, why=why)


def _whole(question: str, change: str) -> Sequence[Piece]:
    """Return a changed prompt in pieces; none where the change is a tail."""
    if _TAIL.fullmatch(change):
        return ()
    return word_differences(question, change) or [Piece("same", change)]
