"""Evidence of uncertainty, and its view: the sentences, the other replies, doubtful tokens."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trustassay.metric import Assessment
from trustassay.sample import Sample
from trustassay.views import EvidenceRow, Judged, Mark, Rows, View

LEAST_SURE = 0.5
"""Tokens below this probability are kept as evidence."""
KEPT_TOKENS = 40


@dataclass(frozen=True, slots=True)
class Sentence(EvidenceRow, row_kind="sentence", told_by=("text",)):
    """A sentence of the answer.

    selfcheck_nli: ``None`` for one that claims nothing. unlike: the reply, from 1, that agrees
    least.
    """

    text: str
    selfcheck_nli: float | None = None
    disagreement: float | None = None
    unlike: int | None = None
    doubtful: bool = False

    @property
    def mark(self) -> Mark:
        """What the other replies say of it."""
        if self.selfcheck_nli is None:
            return Mark("none", "○", "claims nothing")
        if self.doubtful:
            return Mark("bad", "✕", "other replies say otherwise")
        return Mark("good", "✓", "other replies do not contradict it")


@dataclass(frozen=True, slots=True)
class OtherReply(EvidenceRow, row_kind="reply", told_by=("text",)):
    """Another reply to the question; equal ones are one row, given ``times`` times.

    meaning: the number of its meaning, from 1; the answer's own is 0, where it has the same.
    """

    text: str
    times: int = 1
    meaning: int | None = None


@dataclass(frozen=True, slots=True)
class Token(EvidenceRow, row_kind="token", told_by=("text", "probability")):
    """A token of which the model was not sure; ``place`` counts tokens, ``start`` characters."""

    text: str
    probability: float
    place: int = 0
    start: int | None = None


@dataclass(frozen=True, slots=True)
class Stop(EvidenceRow, row_kind="stop", told_by=("asked", "most", "why")):
    """After how many replies of ``most`` none was asked for any more, and why: ``certain`` (the
    others cannot change the verdict), ``confident`` (they do not, at the confidence asked for),
    ``most`` (there are no others), or ``no claim`` to compare them with.
    """

    asked: int
    most: int
    why: str


@dataclass(frozen=True, slots=True)
class Trace:
    """All evidence of one assessment; ``rest`` is evidence of any other kind."""

    sentences: Sequence[Sentence]
    replies: Sequence[OtherReply]
    tokens: Sequence[Token]
    stops: Sequence[Stop]
    rest: Sequence[Mapping[str, Any]]

    @classmethod
    def read(cls, evidence: Iterable[Any]) -> "Trace":
        """Sort the evidence."""
        rows = Rows(evidence, Sentence, OtherReply, Token, Stop)
        kinds = rows.of(Sentence), rows.of(OtherReply), rows.of(Token), rows.of(Stop)
        return cls(*kinds, rows.rest)


def view_of(sample: Sample, assessment: Assessment) -> View:
    """Return what the report needs to show the evidence of one answer."""
    trace = Trace.read(assessment.evidence)
    judged = []
    for one in trace.sentences:
        place = (one.unlike or 0) - 1
        other = trace.replies[place].text.strip() if 0 <= place < len(trace.replies) else ""
        why = f"Asked again, it said: “{other}”" if one.doubtful and other else ""
        judged.append(Judged(one.text, one.mark, why))
    message = "".join("".join(one.text for one in trace.sentences).split())
    whole = "".join((sample.response or "").split())
    return View(data=trace, tells_response=bool(message) and message == whole, judged=judged)
