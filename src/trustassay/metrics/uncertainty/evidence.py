"""Evidence of ``uncertainty``, and its view: sentences, other replies, doubtful tokens."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trustassay.core.evidence import (
    EvidenceRow,
    EvidenceRows,
    JudgedPiece,
    Mark,
    View,
)
from trustassay.core.metric import Assessment

LEAST_SURE = 0.5
"""Probability below which a token is stored as evidence."""
MAX_STORED_TOKENS = 40
"""Most tokens that are stored as evidence."""


@dataclass(frozen=True, slots=True)
class DoubtfulSentence(EvidenceRow, row_kind="sentence", required=("text",)):
    """A sentence of the answer."""

    text: str
    """The sentence."""
    selfcheck_nli: float | None = None
    """Its doubt by SelfCheckGPT-NLI, 0 to 1; ``None`` for a sentence that claims nothing."""
    disagreement: float | None = None
    """1 minus the mean probability that a reply entails it."""
    unlike: int | None = None
    """The number of the reply that agrees least, from 1."""
    doubtful: bool = False
    """Whether ``selfcheck_nli`` is ``doubtful_from`` or more."""

    @property
    def mark(self) -> Mark:
        """The verdict of the other replies on it."""
        if self.selfcheck_nli is None:
            return Mark("none", "○", "claims nothing")
        if self.doubtful:
            return Mark("bad", "✕", "other replies contradict it")
        return Mark("good", "✓", "other replies do not contradict it")


@dataclass(frozen=True, slots=True)
class OtherReply(EvidenceRow, row_kind="reply", required=("text",)):
    """Another reply to the question; equal replies are one row."""

    text: str
    """The reply."""
    times: int = 1
    """How often it was given."""
    meaning: int | None = None
    """The number of its meaning, from 1; 0 for the meaning of the answer."""


@dataclass(frozen=True, slots=True)
class DoubtfulToken(EvidenceRow, row_kind="token", required=("text", "probability")):
    """A token of which the model was not sure."""

    text: str
    """The token."""
    probability: float
    """Its probability, below :data:`LEAST_SURE`."""
    place: int = 0
    """Its number among the tokens, from 0."""
    start: int | None = None
    """Its first character in the response, from 0; ``None`` for white space."""


@dataclass(frozen=True, slots=True)
class StoppingRow(EvidenceRow, row_kind="stop", required=("asked", "most", "why")):
    """When and why no more replies were asked for."""

    asked: int
    """The number of replies that were asked for."""
    most: int
    """The most that could be asked for."""
    why: str
    """``certain``: further replies cannot change the verdict. ``confident``: they do not, with the
    confidence of the options. ``most``: there are none left. ``no claim``: the answer has nothing
    to compare them with."""


@dataclass(frozen=True, slots=True)
class UncertaintyTrace:
    """All evidence of one assessment, sorted by kind."""

    sentences: Sequence[DoubtfulSentence]
    """The sentences of the answer."""
    replies: Sequence[OtherReply]
    """The different replies, in the order in which they came first."""
    tokens: Sequence[DoubtfulToken]
    """The tokens of low probability."""
    stops: Sequence[StoppingRow]
    """With ``samples=auto``, when the asking stopped."""
    other_items: Sequence[Mapping[str, Any]]
    """Evidence of any other kind, as it is stored."""

    @classmethod
    def read(cls, evidence: Iterable[Any]) -> "UncertaintyTrace":
        """Sort the evidence."""
        rows = EvidenceRows(evidence, DoubtfulSentence, OtherReply, DoubtfulToken, StoppingRow)
        kinds = (
            rows.select(DoubtfulSentence),
            rows.select(OtherReply),
            rows.select(DoubtfulToken),
            rows.select(StoppingRow),
        )
        return cls(*kinds, rows.other_items)


def view_of(assessment: Assessment) -> View:
    """Build the view of one answer's evidence for the report."""
    trace = UncertaintyTrace.read(assessment.evidence)
    judged = []
    for sentence in trace.sentences:
        place = (sentence.unlike or 0) - 1
        # The evidence may come from an edited file, so the number may be out of range.
        other = trace.replies[place].text.strip() if 0 <= place < len(trace.replies) else ""
        reason = f"Another reply of the model: “{other}”" if sentence.doubtful and other else ""
        judged.append(JudgedPiece(sentence.text, sentence.mark, reason))
    return View(
        data=trace,
        judged=judged,
    )
