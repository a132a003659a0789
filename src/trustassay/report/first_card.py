"""The first card: which answers of a run need a look, by which rule, and their bad passages."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from trustassay.core.evidence import JudgedPiece
from trustassay.core.metric import Assessment, Metric
from trustassay.core.outcome import (
    MAX_REASONS,
    NOT_ASSESSABLE,
    OTHER_REASONS,
    Outcome,
    format_counts,
)
from trustassay.text.words import amount


def problem_of(metric: Metric | None, assessment: Assessment) -> str | None:
    """Return why an answer needs a look: its error, or the metric's problem; else ``None``.

    If a metric of another package raises here, its answer is flagged, so that no error hides one.
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
class ReviewCounts:
    """Counts of the answers of a run that need a look, and of those that no metric judged."""

    lines: bool = True
    """Whether any metric has a rule for answers that need a look."""
    answers: int = 0
    """All answers."""
    flagged: int = 0
    """Answers that need a look."""
    failed: int = 0
    """Flagged answers for which a metric failed."""
    judged: int = 0
    """Answers that at least one metric judged."""
    not_judged: int = 0
    """Answers that no metric judged, and that are not flagged."""
    reasons: Counter[str] = field(default_factory=Counter)
    """Answers that no metric judged, failed ones included, by the first metric's reason."""

    def add(self, flagged: Sequence[bool], outcomes: Sequence[Outcome], *, failed: bool) -> None:
        """Count one answer.

        Args:
            flagged: for each metric, whether it flags the answer.
            outcomes: for each metric, the outcome.
            failed: whether any metric failed.
        """
        self.answers += 1
        self.failed += failed
        self.flagged += failed or any(flagged)
        if any(outcome.is_judged for outcome in outcomes):
            self.judged += 1
            return
        self.not_judged += not (failed or any(flagged))
        reason = outcomes[0].reason if outcomes else NOT_ASSESSABLE
        # Reasons of other packages' metrics are open-ended: bound the number of different ones.
        if reason not in self.reasons and len(self.reasons) >= MAX_REASONS:
            reason = OTHER_REASONS
        self.reasons[reason] += 1

    def to_dict(self) -> dict[str, int]:
        """Return the JSON form: the counts; without a rule none is flagged."""
        # These keys are part of summary.json.
        names = ("answers", "flagged", "failed", "judged")
        return {name: getattr(self, name) for name in names}

    @property
    def sentence(self) -> str:
        """The sentence below the outcomes: how many answers need a look, and how many were not
        judged, so that nobody takes these for good ones.
        """
        n = self.answers
        if not n:
            return "There are no answers"
        if not self.judged:
            reasons = format_counts(dict(self.reasons.most_common()))
            return f"0 of {amount(n, 'answer')} could be judged: {reasons}"
        if self.flagged:
            verb = "needs" if self.flagged == 1 else "need"
            sentence = f"{self.flagged:,} of {amount(n, 'answer')} {verb} a look"
            if self.failed:
                pronoun = "it" if self.failed == 1 else "they"
                sentence += f", {self.failed:,} because {pronoun} could not be scored"
        elif not self.lines:
            # No metric has a rule, so "none needs a look" would be no finding.
            sentence = f"{amount(n, 'answer')}, the worst scores first"
        elif n == 1:
            sentence = "No answer needs a look"
        else:
            judged = "judged " if self.not_judged else ""
            sentence = f"None of the {n - self.not_judged:,} {judged}answers needs a look"
        if self.not_judged:
            is_one = self.not_judged == 1
            noun = (" other" if is_one else " others") if self.flagged else ""
            sentence += f"; {self.not_judged:,}{noun} {'was' if is_one else 'were'} not judged"
        return sentence


@dataclass(frozen=True)
class FlagRule:
    """The rule by which answers need a look, of one metric."""

    title: str
    """The title of the metric."""
    rule: str
    """The rule; empty if the metric has none."""
    is_installed: bool = True
    """Whether the metric is installed here; else its rule is not known."""

    @property
    def sentence(self) -> str:
        """The rule as a sentence."""
        if self.rule:
            return f"An answer needs a look if {self.rule}."
        if not self.is_installed:
            return "The metric is not installed here, so its line is not known; sorted by score."
        return "The method draws no line between good and bad answers; sorted by score."


def lines_of(titles: Mapping[str, str], metrics: Mapping[str, Metric]) -> list[FlagRule]:
    """Return the rule of each metric of a run; ``metrics`` are those installed here, by name."""
    return [
        FlagRule(title, metrics[name].line if name in metrics else "", name in metrics)
        for name, title in titles.items()
    ]


MAX_EXCERPT_CHARACTERS = 420
"""Characters of the response in an excerpt, and of a single bad piece."""
MAX_CONTEXT = 110
"""Characters before and after a bad piece of a longer response."""
GAP_MARK = " … "
"""The mark of a gap."""


class ExcerptPiece(NamedTuple):
    """A piece of the response."""

    text: str
    """Its text."""
    word: str = ""
    """What is wrong with it; empty if nothing is."""


class ResponseExcerpt(NamedTuple):
    """An excerpt of a response."""

    pieces: Sequence[ExcerptPiece]
    """Its pieces, in the order of the response."""
    marked: bool
    """Whether any piece is bad."""


def excerpt_of(response: str, judged: Sequence[JudgedPiece]) -> ResponseExcerpt:
    """Return the response with its bad pieces marked; a long one is cut to these and their context.

    A judged text that is not in the response word for word, such as a claim that a model wrote, is
    not marked.
    """
    pieces = list(_split_pieces(response, judged))
    marked = any(piece.word for piece in pieces)
    if len(response) <= MAX_EXCERPT_CHARACTERS:
        return ResponseExcerpt(pieces, marked)
    if not marked:
        return ResponseExcerpt(
            [ExcerptPiece(_cut_end(response, MAX_EXCERPT_CHARACTERS))], marked=False
        )
    return ResponseExcerpt(list(_shorten_pieces(pieces)), marked)


def _split_pieces(response: str, judged: Sequence[JudgedPiece]) -> Iterator[ExcerptPiece]:
    position = 0
    for item in judged:
        text = item.text.strip()
        # Searched from the last bad piece on, so that a repeated sentence is found at its own
        # place. Good pieces do not move the start: a model's claims may be out of order.
        start = response.find(text, position) if text else -1
        if item.mark.tone != "bad" or start < 0:
            continue
        if start > position:
            yield ExcerptPiece(response[position:start])
        position = start + len(text)
        yield ExcerptPiece(text, item.mark.word)
    if position < len(response):
        yield ExcerptPiece(response[position:])


def _shorten_pieces(pieces: Sequence[ExcerptPiece]) -> Iterator[ExcerptPiece]:
    """Shorten the text between bad pieces, and stop when the excerpt is long enough."""
    length = 0
    for place, piece in enumerate(pieces):
        if length >= MAX_EXCERPT_CHARACTERS:
            yield ExcerptPiece(GAP_MARK)
            return
        text = piece.text
        # A bad piece is shown up to the same length as a whole excerpt.
        if piece.word:
            text = _cut_end(text, MAX_EXCERPT_CHARACTERS)
        else:
            first, last = place == 0, place == len(pieces) - 1
            # At the ends of the response only the side next to a bad piece matters.
            text = _cut_middle(text, 0 if first else MAX_CONTEXT, 0 if last else MAX_CONTEXT)
        length += len(text)
        yield ExcerptPiece(text, piece.word)


def _cut_middle(text: str, head: int, tail: int) -> str:
    """Cut the middle out, and leave ``head`` characters before it and ``tail`` after it."""
    # Cutting must not make the text longer.
    if len(text) <= head + tail + len(GAP_MARK):
        return text
    before = _cut_end(text, head)[:-1] if head else ""
    # Begin after the first space, so that no word is cut.
    after = text[-tail:].partition(" ")[2] or text[-tail:] if tail else ""
    return f"{before}{GAP_MARK}{after}"


def _cut_end(text: str, most: int) -> str:
    """Return the beginning of a text, cut between words, with an ellipsis if it goes on."""
    if len(text) <= most:
        return text
    beginning = text[:most]
    return f"{beginning.rpartition(' ')[0] or beginning}…"
