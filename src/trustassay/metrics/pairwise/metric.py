"""The metric ``pairwise``: which of two answers a judge prefers, asked in both orders.

Wei et al. 2024 (FEWL), appendix C.10 and tables 6 and 7. A judge reads two answers as A and B and
chooses A, B, or C, not sure; a second time the answers have changed places.

All figures are functions of one table of counts, shape (4, 4): row, the choice in the first
order; column, the choice with the places changed; both in the order of :data:`CHOICES`.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from trustassay.assessment import units_of
from trustassay.capabilities import Message
from trustassay.core.outcome import NOT_ANSWERED, Outcome
from trustassay.errors import AssessmentError, check_least
from trustassay.event_loop import all_of
from trustassay.metric import (
    Assessment,
    Context,
    Figure,
    Metric,
    Need,
    Summary,
    Unread,
    asked_twice,
    directions,
    read_figures,
    unless_empty,
)
from trustassay.prompts import fence, shipped, shipped_for
from trustassay.sample import Problem, Sample
from trustassay.statistics import Floats
from trustassay.statistics.intervals import FEWEST, Interval, RowSums, mean_interval, too_few
from trustassay.views import EvidenceRow, Rows, View

PairVerdict = Literal["win", "loss", "unsure", "inconsistent", "unreadable"]
OPTIONS = ("reply a", "reply b", "not sure")
"""What the letters stand for, where a judge repeats this in their place."""
KEPT = 4000
"""Characters of a reply that are kept as evidence; the whole one is among the calls."""


@dataclass(frozen=True, slots=True)
class Verdict(EvidenceRow, told_by=("order", "reply")):
    """What a judge chose in one order: the letter, ``None`` if no reply could be read.

    repaired: whether the second reply could be read, where one was asked for.
    """

    order: str
    choice: str | None
    reply: str
    repaired: bool | None = None

    @property
    def preferred(self) -> str:
        """Which answer was chosen, for the report."""
        if self.choice not in ("A", "B"):
            return "not sure" if self.choice == "C" else "unreadable"
        own = (self.choice == "A") == (self.order == "answer first")
        return "this answer" if own else "the other answer"


@dataclass(frozen=True, slots=True)
class Other(EvidenceRow, told_by=("other",)):
    """The answer that was compared with, and the model that gave it, if it is known."""

    other: str
    by: Any


def _unread(read: tuple[int | None, str]) -> Unread | None:
    index, said = read
    if index is not None:
        return None
    repair = shipped(__package__, "repair")
    wrong = "names no letter, or more than one" if said.strip() else "was empty"
    words = repair.filled(problem=f"Your reply {wrong}.")
    return Unread(said, words, f"pairwise-{repair.name}")


CHOICES: tuple[str | None, ...] = ("A", "B", "C", None)
"""The answer that is read first, the second one, not sure, and a reply that names none of them."""
OUTCOMES: tuple[PairVerdict, ...] = ("win", "loss", "unsure", "inconsistent", "unreadable")


def outcome(first: str | None, swapped: str | None) -> PairVerdict:
    """Return what the choices in both orders say of the answer that was A in the first order.

    It wins or loses only if both choices are for the same answer. ``unsure``: a choice is C;
    ``inconsistent``: both choices are for the same place; ``unreadable``: one is ``None``. A choice
    that does not exist raises ValueError.
    """
    for choice in (first, swapped):
        if choice not in CHOICES:
            raise ValueError(f"expected a choice of A, B, C or None, got {choice!r}")
    if first is None or swapped is None:
        return "unreadable"
    if "C" in (first, swapped):
        return "unsure"
    if first == swapped:
        return "inconsistent"
    return "win" if first == "A" else "loss"


def _cells(*marked: tuple[int, int]) -> Floats:
    result = np.zeros((4, 4))
    for row, column in marked:
        result[row, column] += 1
    return result


_WON, _LOST = _cells((0, 1)), _cells((1, 0))
_READ = _cells(*((i, j) for i in range(3) for j in range(3)))
_FIRST, _SECOND = (_cells(*((k, j) for j in range(4)), *((i, k) for i in range(4))) for k in (0, 1))
RATES: Mapping[str, tuple[Floats, Floats]] = {
    "win_rate": (_WON, _WON + _LOST),
    "win_share": (_WON, _READ),
    "loss_share": (_LOST, _READ),
    "tie_share": (_READ - _WON - _LOST, _READ),
    "first_chosen": (_FIRST, _FIRST + _SECOND),
}
"""Rates by name, as ratios of two sums over the table: how often each cell counts above and below,
shape (4, 4) each.

``win_rate``: wins among wins and losses; what is inconsistent or not sure is dropped (section 5.2,
table 7). ``win_share``, ``loss_share``, ``tie_share``: ties are kept, and whatever is neither won
nor lost is one; questions with an unreadable reply do not count, and the three sum to 1 (table 6).
``first_chosen``: of the choices for an answer, those for the one that is read first; 1/2 for a
judge to whom the place is no matter, since each answer stands first once.
"""


def rate(name: str, table: ArrayLike) -> float:
    """Return one of :data:`RATES` in percent; NaN where the sum below is 0."""
    above, below = RATES[name]
    t = np.asarray(table, dtype=float)
    whole = float((below * t).sum())
    return 100 * float((above * t).sum()) / whole if whole else float("nan")


def outcomes(table: ArrayLike) -> dict[PairVerdict, int]:
    """Return how many questions had each outcome; shape of ``table`` is (4, 4)."""
    t = np.asarray(table, dtype=int)
    result: dict[PairVerdict, int] = dict.fromkeys(OUTCOMES, 0)
    for i, first in enumerate(CHOICES):
        for j, swapped in enumerate(CHOICES):
            result[outcome(first, swapped)] += int(t[i, j])
    return result


_BEHIND = {"win_rate": "questions that were won or lost", "first_chosen": "questions with a choice"}
"""What a rate is of, where not of all questions that were read."""


FIGURES: Mapping[str, Figure] = read_figures(__package__)


class Rate(NamedTuple):
    """A rate in percent, ``None`` if nothing is behind it; its interval, and why it has none.

    support: the questions behind it, or answers to them; units: of these, independent ones.
    """

    value: float | None
    interval: Interval | None
    why: str
    support: int
    units: int


def rates(sums: RowSums) -> dict[str, Rate]:
    """Return :data:`RATES` of the sums of questions' tables."""
    return {key: _rate(key, sums) for key in RATES}


def _rate(key: str, sums: RowSums) -> Rate:
    above, below = (one.ravel() for one in RATES[key])
    behind, what = below > 0, _BEHIND.get(key, "questions")
    support = int(sums.total[behind].sum())
    if not support:
        return Rate(None, None, f"no {what}", 0, 0)
    value = rate(key, sums.total.reshape(4, 4))
    units = int(sums.alone[behind].sum() + (sums.several[:, behind] > 0).any(axis=1).sum())
    mean = sums.ratio(above, below)
    if reason := too_few(what, min(units, math.floor(mean.units + 1e-9)), FEWEST):
        return Rate(value, None, reason, support, units)
    low, high = mean_interval(*mean)
    return Rate(value, (100 * low, 100 * high), "", support, units)


OTHER_RESPONSE = "other_response"
"""Field of a sample with the answer that its response is compared with."""
OTHER_MODEL = "other_model"
"""Field with the name of the model that gave that answer."""
_REASONS: Mapping[PairVerdict, str] = {
    "win": "preferred in both orders",
    "loss": "the other answer is preferred in both orders",
    "unsure": "the judge is not sure, in one order at least",
    "inconsistent": "the judge prefers whichever answer it reads {place}",
    "unreadable": "a reply of the judge names no choice, also when asked once more",
}


@dataclass(frozen=True)
class Pairwise(Metric):
    """Does a judge prefer the answer to another one, in whichever order it reads them?

    1 for a win, 0 for a loss. Where the judge is not sure, prefers a place and not an answer, or
    cannot be read, there is no score, and the verdict says which of these it is. Answers that are
    equal are unsure without a call. ``parts`` hold the places of both choices in
    :data:`CHOICES`, and whether the answers are equal.

    Args:
        prompt: file of a template in place of the one that ships; filled with ``question``,
            ``first``, ``second``, ``fence`` and ``sample``.
        temperature, max_tokens: of every call; a temperature of ``None`` leaves it to the judge.
    """

    name: ClassVar[str] = "pairwise"
    title: ClassVar[str] = "Preferred to another answer (win rate)"
    part_directions = directions(neither="first swapped equal")
    verdicts: ClassVar[Sequence[str]] = ("win", "unsure", "inconsistent", "unreadable", "loss")
    figures: ClassVar[Mapping[str, Figure]] = FIGURES
    evidence_template: ClassVar[str] = "evidence.html.jinja"
    line: ClassVar[str] = (
        "the judge prefers the other answer, chooses by the order of the two, or gives no "
        "choice that can be read"
    )

    prompt: str | None = None
    temperature: float | None = 0.0
    max_tokens: int = 300

    def __post_init__(self) -> None:
        check_least(self, max_tokens=1, temperature=0)
        _ = self.template  # a faulty file is to fail here

    template = shipped_for(__package__, "pairwise")
    """The prompt that the judge is asked with."""

    def needs(self) -> Sequence[Need]:
        """One judge."""
        return (Need("chat", "judge"),)

    def problems(self, sample: Sample) -> list[Problem]:
        """Both answers have to be there."""
        other = sample.metadata.get(OTHER_RESPONSE)
        compared = isinstance(other, str) and other.strip()
        wanted = {
            "response": (sample.answered, "an answer"),
            OTHER_RESPONSE: (compared, "the answer to compare with"),
        }
        return [
            Problem(field, f"is missing or blank (expected {what})")
            for field, (there, what) in wanted.items()
            if not there
        ]

    async def assess(self, context: Context) -> Assessment:
        """Ask in both orders; both replies stand in the evidence."""
        sample = context.sample
        answer, other = sample.response or "", sample.metadata.get(OTHER_RESPONSE)
        if not sample.answered or not isinstance(other, str):
            raise AssessmentError("one of the two answers is missing", "empty")
        if answer.split() == other.split():
            return self._assessed(sample, other)
        first = self._verdict(context, "answer first", (answer, other), 0)
        swapped = self._verdict(context, "other first", (other, answer), 1)
        return self._assessed(sample, other, await all_of([first, swapped]))

    async def _verdict(
        self, context: Context, order: str, texts: tuple[str, str], expected: int
    ) -> Verdict:
        """Ask about two texts, the first of which is read first; an empty reply is unreadable."""
        sample = context.sample
        prompt = self.template.filled(
            question=sample.question,
            first=texts[0],
            second=texts[1],
            fence=fence((sample.question, *texts)),
            sample=sample,
        )

        async def ask(turns: Sequence[Message], name: str) -> tuple[int | None, str]:
            reply = context.models.choose(
                turns,
                OPTIONS,
                by="letter",
                expected=expected,
                role="judge",
                temperature=self.temperature,
                max_tokens=self.max_tokens,
                prompt=name,
                stand_in="AB"[expected],
            )
            choice = await unless_empty(reply)
            return (choice.index, choice.reply) if choice else (None, "")

        (index, said), again = await asked_twice(ask, prompt, self.template.name, _unread)
        if again is None:
            return Verdict(order, None if index is None else CHOICES[index], said[:KEPT])
        if again[0] is None:  # the first reply says more of what is wrong
            return Verdict(order, None, (said or again[1])[:KEPT], repaired=False)
        return Verdict(order, CHOICES[again[0]], again[1][:KEPT], repaired=True)

    def _assessed(self, sample: Sample, other: str, found: Sequence[Verdict] = ()) -> Assessment:
        """Say what two verdicts amount to; none of equal answers."""
        choices = [one.choice for one in found] or ["C", "C"]
        result = outcome(*choices)
        reason = _REASONS[result].format(place="first" if choices[0] == "A" else "second")
        return self.assessed(
            sample,
            {"win": 1.0, "loss": 0.0}.get(result),
            (Other(other, sample.metadata.get(OTHER_MODEL)), *found),
            verdict=result,
            reason=reason if found else "the answers are equal; the judge was not asked",
            parts={
                "first": CHOICES.index(choices[0]),
                "swapped": CHOICES.index(choices[1]),
                "equal": int(not found),
            },
        )

    def summarise(self, assessments: Collection[Assessment], *, seed: int = 0) -> Summary:  # noqa: ARG002
        """Return the win rate in both conventions, and what the order of the answers did."""
        equal = 0
        sums = RowSums(16)  # the table of each question as a row
        for answer in assessments:
            if answer.error is None:
                row = np.zeros((1, 16))
                row[0, 4 * int(answer.parts["first"]) + int(answer.parts["swapped"])] = 1
                sums.add(row, units_of([answer]))
                equal += int(answer.parts["equal"])
        result = Summary({}, len(assessments), len(assessments) - sums.n)
        table, by_key = sums.total.reshape(4, 4), rates(sums)
        counts = outcomes(table)
        totals = {str(name): count for name, count in counts.items()}
        totals |= {"wins": counts["win"], "losses": counts["loss"]}
        totals |= {"equal": equal, "first_both": int(table[0, 0]), "second_both": int(table[1, 1])}
        for key in FIGURES:
            if (one := by_key.get(key)) is None:
                result.put(key, totals[key], sums.n)
            else:
                interval = one.interval or one.why or None
                result.put(key, one.value, one.support, interval, units=one.units, why=one.why)
        return result.with_settings(self.settings(), FIGURES)

    passed_word: ClassVar[str] = "preferred"
    failed_word: ClassVar[str] = "not preferred"

    def outcome(self, assessment: Assessment) -> Outcome:
        """Return what became of a question; without a clear choice it is not judged."""
        if assessment.verdict in ("unsure", "inconsistent", "unreadable"):
            return Outcome(NOT_ANSWERED, f"choice {assessment.verdict}")
        return super().outcome(assessment)

    def problem(self, assessment: Assessment) -> str | None:
        """Say what a reader should look at."""
        return {
            "loss": "the judge prefers the other answer",
            "inconsistent": "the judge's choice changes with the order",
            "unreadable": "the judge's reply could not be read",
        }.get(assessment.verdict or "")

    def view(self, sample: Sample, assessment: Assessment) -> View:  # noqa: ARG002
        """Return the other answer and both choices."""
        rows = Rows(assessment.evidence, Other, Verdict)
        other = next(iter(rows.of(Other)), Other("", ""))
        by = other.by if isinstance(other.by, str) else ""
        result = {"other": other.other, "by": by, "rows": rows.of(Verdict), "rest": rows.rest}
        return View(data=result)
