"""The first card: which answers of a run need a look, why, and what is bad in them."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from trustassay.core.outcome import (
    MAX_REASONS,
    NOT_ASSESSABLE,
    OTHER_REASONS,
    Outcome,
    counts_in_words,
)
from trustassay.metric import Assessment, Metric
from trustassay.text.words import amount
from trustassay.views import Judged


def problem_of(metric: Metric | None, assessment: Assessment) -> str | None:
    """Return why an answer needs a look: its failure, or what the metric says of it; else ``None``.

    A metric of another package that fails here flags the answer: nothing is hidden by an error.
    """
    if assessment.error is not None:
        return assessment.error
    if metric is None:
        return None
    try:
        return metric.problem(assessment)
    except Exception as error:  # of another package's metric
        return f"{assessment.metric} cannot say what is wrong: {type(error).__name__}: {error}"


@dataclass
class Looked:
    """How many answers of a run need a look, and how many no metric judged, and why.

    An answer for which a metric failed needs a look; ``failed`` counts these among ``flagged``.
    ``lines`` tells whether any metric draws a line. ``judged`` counts the answers that at least one
    metric judged; ``not_judged`` those that none judged, and that are not ``flagged`` either.
    """

    lines: bool = True
    answers: int = 0
    flagged: int = 0
    failed: int = 0
    judged: int = 0
    not_judged: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    """Answers that no metric judged by the first metric's reason, failed ones included."""

    def add(self, flagged: Sequence[bool], outcomes: Sequence[Outcome], *, failed: bool) -> None:
        """Count one answer, by what each metric says of it; ``failed``: whether one has failed."""
        self.answers += 1
        self.failed += failed
        self.flagged += failed or any(flagged)
        if any(outcome.is_judged for outcome in outcomes):
            self.judged += 1
            return
        self.not_judged += not (failed or any(flagged))
        reason = outcomes[0].reason if outcomes else NOT_ASSESSABLE
        if reason not in self.reasons and len(self.reasons) >= MAX_REASONS:
            reason = OTHER_REASONS
        self.reasons[reason] += 1

    def to_dict(self) -> dict[str, int]:
        """Return the JSON form: the counts; none is flagged where no metric draws a line."""
        names = ("answers", "flagged", "failed", "judged")
        return {name: getattr(self, name) for name in names}

    @property
    def sentence(self) -> str:
        """What stands below the outcomes: how many answers need a look, and how many were not
        judged, so that nobody takes silence on them for a good sign.
        """
        n = self.answers
        if not n:
            return "There are no answers"
        if not self.judged:
            reasons = counts_in_words(dict(self.reasons.most_common()))
            return f"0 of {amount(n, 'answer')} could be judged: {reasons}"
        if self.flagged:
            verb = "needs" if self.flagged == 1 else "need"
            sentence = f"{self.flagged:,} of {amount(n, 'answer')} {verb} a look"
            if self.failed:
                pronoun = "it" if self.failed == 1 else "they"
                sentence += f", {self.failed:,} because {pronoun} could not be scored"
        elif not self.lines:
            sentence = f"{amount(n, 'answer')}, the worst scores first"
        elif n == 1:
            sentence = "No answer needs a look"
        else:
            judged = "judged " if self.not_judged else ""
            sentence = f"None of the {n - self.not_judged:,} {judged}answers needs a look"
        if self.not_judged:
            one = self.not_judged == 1
            others = (" other" if one else " others") if self.flagged else ""
            sentence += f"; {self.not_judged:,}{others} {'was' if one else 'were'} not judged"
        return sentence


@dataclass(frozen=True)
class Line:
    """What needs a look by one metric; ``rule`` is empty if it draws no line."""

    title: str
    rule: str
    here: bool = True

    @property
    def sentence(self) -> str:
        """The rule as a sentence."""
        if self.rule:
            return f"An answer needs a look if {self.rule}."
        if not self.here:
            return "The metric is not installed here, so its line is not known; sorted by score."
        return "The method draws no line between good and bad answers; sorted by score."


def lines_of(titles: Mapping[str, str], metrics: Mapping[str, Metric]) -> list[Line]:
    """Return the line of each metric of a run, by name and title; ``metrics`` are those here."""
    return [
        Line(title, metrics[name].line if name in metrics else "", name in metrics)
        for name, title in titles.items()
    ]


MOST = 420
"""Characters of the response that an excerpt shows; a bad piece is shown up to this length."""
AROUND = 110
"""Characters shown before and after a bad piece of a longer response."""
LEFT_OUT = " … "


class Piece(NamedTuple):
    """A piece of the response; ``word`` says what is wrong with it, empty if nothing is."""

    text: str
    word: str = ""


class Excerpt(NamedTuple):
    """Pieces in the order of the response; ``marked`` tells whether any is bad."""

    pieces: Sequence[Piece]
    marked: bool


def excerpt_of(response: str, judged: Sequence[Judged]) -> Excerpt:
    """Return the response with its bad pieces; of a long one what stands around these alone.

    A judged text that is not in the response word for word, as a claim that a model splits off, is
    not marked.
    """
    pieces = list(_pieces(response, judged))
    marked = any(piece.word for piece in pieces)
    if len(response) <= MOST:
        return Excerpt(pieces, marked)
    if not marked:
        return Excerpt([Piece(_head(response, MOST))], marked=False)
    return Excerpt(list(_shortened(pieces)), marked)


def _pieces(response: str, judged: Sequence[Judged]) -> Iterator[Piece]:
    at = 0
    for one in judged:
        text = one.text.strip()
        start = response.find(text, at) if text else -1
        if one.mark.tone != "bad" or start < 0:
            continue
        if start > at:
            yield Piece(response[at:start])
        at = start + len(text)
        yield Piece(text, one.mark.word)
    if at < len(response):
        yield Piece(response[at:])


def _shortened(pieces: Sequence[Piece]) -> Iterator[Piece]:
    """Cut what is between bad pieces, and end when enough is shown."""
    shown = 0
    for place, piece in enumerate(pieces):
        if shown >= MOST:
            yield Piece(LEFT_OUT)
            return
        text = piece.text
        if piece.word:
            text = _head(text, MOST)
        else:
            first, last = place == 0, place == len(pieces) - 1
            text = _middle(text, 0 if first else AROUND, 0 if last else AROUND)
        shown += len(text)
        yield Piece(text, piece.word)


def _middle(text: str, head: int, tail: int) -> str:
    """Leave ``head`` characters at the beginning and ``tail`` at the end."""
    if len(text) <= head + tail + len(LEFT_OUT):
        return text
    before = _head(text, head)[:-1] if head else ""
    after = text[-tail:].partition(" ")[2] or text[-tail:] if tail else ""
    return f"{before}{LEFT_OUT}{after}"


def _head(text: str, most: int) -> str:
    """Return the beginning of a text, cut between words, with an ellipsis if anything is left."""
    if len(text) <= most:
        return text
    cut = text[:most]
    return f"{cut.rpartition(' ')[0] or cut}…"
