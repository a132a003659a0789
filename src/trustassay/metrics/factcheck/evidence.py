"""Evidence of the fact check, read into views: the statement, and what each passage says of it.

Every reader is total: what has the wrong type counts as absent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trustassay.views import Mark, as_data, number_in, text_in

_DECIDES = {
    "support": Mark("good", "✓", "supports the answer"),
    "contradict": Mark("bad", "✕", "contradicts the answer"),
}
_SHOWN = Mark("none", "○", "shown to the judge")
_FAILED = Mark("none", "○", "not judged")
_JUDGED = Mark("none", "○", "does not decide")
_REPLIES = {**_DECIDES, "neutral": Mark("none", "○", "leaves the answer open")}


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage; ``own`` says that its text is among the sample's documents."""

    number: int
    title: str
    text: str
    own: bool
    mark: Mark
    entailment: float | None
    contradiction: float | None
    error: str


@dataclass(slots=True)
class Facts:
    """All evidence of a fact check; ``rest`` is evidence of any other kind."""

    statement: str = ""
    hypothesis: str = ""
    retrieved: bool = False
    reply: str | None = None
    reply_mark: Mark = _REPLIES["neutral"]
    passages: Sequence[Passage] = ()
    rest: Sequence[Mapping[str, Any]] = ()

    @classmethod
    def read(cls, evidence: Iterable[Any], documents: int = 0) -> Facts:
        """Sort the evidence of a sample that has so many documents."""
        found = cls()
        passages: list[Passage] = []
        rest: list[Mapping[str, Any]] = []
        for item in evidence:
            match item:
                case {"kind": "statement", "text": str(text)}:
                    found.statement, found.hypothesis = text, text_in(item, "hypothesis")
                    found.retrieved = item.get("retrieved") is True
                case {"kind": "reply", "text": str(text)}:
                    verdict = text_in(item, "verdict")
                    found.reply = text
                    found.reply_mark = _REPLIES.get(verdict, _REPLIES["neutral"])
                case {"kind": "passage", "number": int(number)}:
                    passages.append(_passage(item, number, documents))
                case _:
                    rest.append(as_data(item))
        found.passages, found.rest = passages, rest
        return found


def _passage(item: Mapping[str, Any], number: int, documents: int) -> Passage:
    error = text_in(item, "error")
    entailment = number_in(item, "entailment")
    usual = _FAILED if error else _SHOWN if entailment is None else _JUDGED
    return Passage(
        number,
        text_in(item, "title"),
        text_in(item, "text"),
        "text" not in item and 1 <= number <= documents,
        _DECIDES.get(text_in(item, "decides"), usual),
        entailment,
        number_in(item, "contradiction"),
        error,
    )
