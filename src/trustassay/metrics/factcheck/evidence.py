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
    """A passage, and what it says of the answer.

    number: counts from 1. own: its text is among the sample's documents, and not repeated here.
    entailment, neutral, contradiction: ``None`` where it was not judged by itself. decides: the
    verdict that it decides. error: why it could not be judged.
    """

    number: int
    id: str
    title: str = ""
    text: str = ""
    own: bool = False
    entailment: float | None = None
    neutral: float | None = None
    contradiction: float | None = None
    decides: str = ""
    error: str = ""

    @property
    def mark(self) -> Mark:
        """What it says, for the report."""
        usual = _FAILED if self.error else _SHOWN if self.entailment is None else _JUDGED
        return _DECIDES.get(self.decides, usual)

    def to_json(self) -> dict[str, Any]:
        """Return the row of the evidence."""
        row: dict[str, Any] = {"kind": "passage", "number": self.number, "id": self.id}
        if not self.own:
            row |= {"title": self.title, "text": self.text}
        if self.error:
            row["error"] = self.error
        for name in ("entailment", "neutral", "contradiction"):
            if (value := getattr(self, name)) is not None:
                row[name] = round(value, 4)
        return row | ({"decides": self.decides} if self.decides else {})

    @classmethod
    def read(cls, item: Mapping[str, Any], number: int, documents: int) -> Passage:
        """Read the row of a sample that has so many documents."""
        return cls(
            number,
            text_in(item, "id"),
            text_in(item, "title"),
            text_in(item, "text"),
            "text" not in item and 1 <= number <= documents,
            number_in(item, "entailment"),
            number_in(item, "neutral"),
            number_in(item, "contradiction"),
            text_in(item, "decides"),
            text_in(item, "error"),
        )


@dataclass(frozen=True, slots=True)
class Facts:
    """All evidence of a fact check: the statement, the judge's reply if one was asked for, and the
    passages; ``rest`` is evidence of any other kind.
    """

    statement: str = ""
    hypothesis: str = ""
    retrieved: bool = False
    reply: str | None = None
    verdict: str = ""
    passages: Sequence[Passage] = ()
    rest: Sequence[Mapping[str, Any]] = ()

    @property
    def reply_mark(self) -> Mark:
        """What the judge's reply says."""
        return _REPLIES.get(self.verdict, _REPLIES["neutral"])

    def to_json(self) -> list[dict[str, Any]]:
        """Return the evidence as it is stored."""
        first: dict[str, Any] = {"kind": "statement", "text": self.statement}
        first["retrieved"] = self.retrieved
        rows = [first | ({"hypothesis": self.hypothesis} if self.hypothesis else {})]
        if self.reply is not None:
            rows.append({"kind": "reply", "text": self.reply, "verdict": self.verdict})
        return rows + [passage.to_json() for passage in self.passages]

    @classmethod
    def read(cls, evidence: Iterable[Any], documents: int = 0) -> Facts:
        """Read the evidence of a sample that has so many documents."""
        found: dict[str, Any] = {}
        passages: list[Passage] = []
        rest: list[Mapping[str, Any]] = []
        for item in evidence:
            match item:
                case {"kind": "statement", "text": str(text)}:
                    found |= {"statement": text, "hypothesis": text_in(item, "hypothesis")}
                    found["retrieved"] = item.get("retrieved") is True
                case {"kind": "reply", "text": str(text)}:
                    found |= {"reply": text, "verdict": text_in(item, "verdict")}
                case {"kind": "passage", "number": int(number)}:
                    passages.append(Passage.read(item, number, documents))
                case _:
                    rest.append(as_data(item))
        return cls(**found, passages=passages, rest=rest)
