"""Plans for ``calibrate``: which answers to rate so that few labels promise much.

Labels are counted at looks, whose sizes are fixed beforehand, and all answers are shuffled once.
The first n answers in that order are the random sample of a look at n labels:

1. Those of the sample in the upper part, the answers with the best scores, are rated first.
2. Then the errors decide. If they are few, the others of the sample follow, and so at all later
   looks.
3. Else upper answers follow in the same order until there are n, and nothing below may be accepted.

Two walks are possible at each look, one over the random sample and one over the upper answers. Both
sets are fixed before any label, and each has its share of delta, so that the promise holds however
the decision is made. From :data:`UNSTEERED_FROM` on, the order is random over all answers, and a
look has one walk.
"""

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, NamedTuple

import numpy as np

from trustassay.input.records import InputError
from trustassay.people.label.plan import AnswerKey, LabelPlan, PlannedDraw
from trustassay.people.study.answers import StudyAnswers
from trustassay.statistics import Bools, Floats
from trustassay.statistics.resampling import generator
from trustassay.statistics.warranty import passes_upper_half

CALIBRATE = "calibrate"
"""The purpose of these plans in the first line of their files."""
UPPER, LOWER = "upper", "lower"
UNSTEERED_FROM = 0.2
"""The share of wrong answers from which the upper part is not rated first: it would not pay."""


@dataclass(frozen=True)
class CalibrationDesign:
    """The settings of a plan, in the first line of its file."""

    at_most: float
    """The share of accepted answers that may be wrong, between 0 and 1."""
    confidence: float
    """How surely all promises of the plan hold, between 0 and 1."""
    hope: float
    """The share of the answers that is rated first, if no scores are equal."""
    is_lower_better: bool
    """Whether lower scores are better; ``above`` is then of mirrored scores."""
    looks: tuple[int, ...]
    """The number of labels at each look, rising."""
    sample_upper: tuple[int, ...]
    """How many answers of the random sample of each look are in the upper part."""
    upper_answers: int
    """The answers of the upper part that can be drawn: one a question."""
    lower_answers: int
    """The same for the lower part."""
    above: float | None
    """All scores of the upper part are higher; ``None`` where it has all answers."""

    @classmethod
    def of(cls, plan: LabelPlan) -> "CalibrationDesign":
        """Read the settings of a plan; raises InputError if it has another purpose or is
        damaged."""
        start = plan.start
        if plan.purpose != CALIBRATE:
            raise InputError(
                f"{plan.path}: the plan is for estimates; expected a plan of `trustassay label "
                "SOURCE --for calibrate`"
            )
        values = {field.name: start.get(field.name) for field in fields(cls)}
        numbers = (values["at_most"], values["confidence"], values["hope"])
        counts = (values["upper_answers"], values["lower_answers"])
        looks, upper, above = values["looks"], values["sample_upper"], values["above"]
        is_sound = (
            all(isinstance(number, int | float) and 0 < number <= 1 for number in numbers)
            and all(type(count) is int and count >= 0 for count in counts)
            and (above is None or isinstance(above, int | float))
            and isinstance(looks, list)
            and len(looks) > 0
            and all(type(labels) is int and labels > 0 for labels in looks)
            and isinstance(upper, list)
            and len(upper) == len(looks)
            and all(type(n) is int and 0 <= n <= of for n, of in zip(upper, looks, strict=True))
        )
        if not is_sound:
            raise InputError(
                f"{plan.path}:1: the settings of the plan are damaged; make another plan"
            )
        lists = {"looks": tuple(looks or ()), "sample_upper": tuple(upper or ())}
        return cls(**{**values, **lists})  # type: ignore[arg-type]

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        lists = {"looks": list(self.looks), "sample_upper": list(self.sample_upper)}
        return {**asdict(self), **lists}

    @property
    def delta_of_look(self) -> float:
        """How often the promise of one look may fail."""
        return (1 - self.confidence) / len(self.looks)

    @property
    def delta_of_walk(self) -> float:
        """How often one of the walks of a look may fail."""
        return self.delta_of_look / (1 if self.above is None else 2)

    def is_even(self, draws: Sequence[PlannedDraw], look: int) -> bool:
        """Whether the labels of a look are its random sample, as the draws record it."""
        return self.above is None or any(d.part == LOWER and d.look <= look for d in draws)

    def sizes(self, look: int, *, even: bool) -> tuple[int, int]:
        """Return how many answers of each part a look has; fewer where the upper one is exhausted.

        Args:
            look: its number, from 1. even: whether its labels are the random sample.
        """
        labels, of_upper = self.looks[look - 1], self.sample_upper[look - 1]
        return (of_upper, labels - of_upper) if even else (min(labels, self.upper_answers), 0)


class PlanLook(NamedTuple):
    """A look whose labels are complete."""

    number: int
    """Its number, from 1 on."""
    of: int
    """The number of looks that the plan has."""
    answers: Sequence[AnswerKey]
    """The answers whose labels count, and no others."""
    delta: float
    """How often the walk may fail."""
    above: float
    """Only answers with a higher score may be accepted, whatever the walk says; minus infinity
    where they are a random sample of all. Of mirrored scores where lower ones are better."""


class PlanStage(NamedTuple):
    """What has to be rated next."""

    look: int
    """The next look, from 1 on."""
    upper: int
    """How many of the first answers of the upper part have to be rated now."""
    lower: int
    """The same for the lower part."""
    missing: int
    """Labels that are missing to the look."""


class PlanOrder(NamedTuple):
    """The fixed order in which answers are drawn."""

    upper: Sequence[AnswerKey]
    lower: Sequence[AnswerKey]
    sides: Sequence[bool]
    """Whether each answer in the order is in the upper part."""
    above: float | None
    """All scores of the upper part are higher; ``None`` where it has all answers."""

    def count_upper(self, labels: int) -> int:
        """Return how many of the first answers in the order are in the upper part."""
        return sum(self.sides[:labels])


def keys_of(answers: StudyAnswers) -> list[AnswerKey]:
    """Return the key of each answer in plans."""
    return [(row.id, row.model) for row in answers.rows]


def digest_of(answers: StudyAnswers, scores: Floats) -> str:
    """Return a digest that changes with the answers and with their scores."""
    rows = sorted(
        (row.id, row.model, row.question, row.words, repr(score))
        for row, score in zip(answers.rows, scores.tolist(), strict=True)
    )
    return hashlib.sha256(repr(rows).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def check_plan(plan: LabelPlan, answers: StudyAnswers, name: str, scores: Floats) -> None:
    """Raise InputError unless a plan was made of these answers and for this score.

    Args:
        plan: of any purpose. answers: all answers of the source.
        name: of the score. scores: as the source has them, not mirrored, shape (n,).
    """
    CalibrationDesign.of(plan)
    if [name] != plan.start["scores"]:
        raise InputError(
            f"{plan.path}: the plan was made for the score {', '.join(plan.start['scores'])}; name "
            "this score, or another --plan"
        )
    if plan.start["input"] != digest_of(answers, scores):
        raise InputError(
            f"{plan.path}: the plan was made for other answers or scores, or for an earlier "
            "version of these; name the source of the plan, or another --plan"
        )


def draw_order(answers: StudyAnswers, scores: Floats, hope: float, seed: int) -> PlanOrder:
    """Draw the order of the answers, one to a question; those without a score are left out.

    Args:
        answers: all answers. scores: higher is better, NaN where there is none, shape (n,).
        hope: the share that the upper part has at least; 1 for one part with all answers.
        seed: of the order.
    """
    has_score = ~np.isnan(scores)
    is_upper, above = _find_upper_part(scores, has_score, hope)
    order = generator(seed, "label", CALIBRATE).permutation(len(scores)).tolist()
    keys, questions = keys_of(answers), answers.questions.tolist()
    parts: dict[bool, list[AnswerKey]] = {True: [], False: []}
    sides: list[bool] = []
    questions_drawn: set[int] = set()
    for place in order:
        # Labels of two answers to a question depend on each other, which no walk allows for.
        if has_score[place] and questions[place] not in questions_drawn:
            questions_drawn.add(questions[place])
            sides.append(bool(is_upper[place]))
            parts[sides[-1]].append(keys[place])
    return PlanOrder(parts[True], parts[False], sides, above)


def _find_upper_part(scores: Floats, has_score: Bools, hope: float) -> tuple[Bools, float | None]:
    """Return the answers with the best scores, and the score that all of them exceed."""
    ranked = np.sort(scores[has_score])[::-1]
    last = ranked[min(math.ceil(hope * len(ranked)), len(ranked)) - 1]
    # Equal scores stay together: a threshold cannot divide them.
    below = ranked[ranked < last]
    above = float(below[0]) if len(below) else None
    return has_score & (scores >= last), above


def find_stage(
    design: CalibrationDesign, draws: Sequence[PlannedDraw], wrong: Mapping[AnswerKey, bool]
) -> PlanStage | None:
    """Return what has to be rated next; ``None`` if all looks are complete.

    Args:
        design: the settings. draws: those of the plan.
        wrong: whether each answer that has a label is wrong.
    """
    upper, lower = _list_drawn(draws, UPPER), _list_drawn(draws, LOWER)
    for number, labels in enumerate(design.looks, 1):
        even = design.is_even(draws, number)
        # A later change of a rating does not reopen a decision that draws have followed.
        if not even and len(upper) < labels:
            first, rest = design.sizes(number, even=True)
            rated = [key for key in upper[:first] if key in wrong]
            if len(rated) < first:
                return PlanStage(number, first, 0, first + rest - len(rated))
            errors = sum(wrong[key] for key in rated)
            even = first > 0 and passes_upper_half(
                errors, first, design.at_most, design.delta_of_walk
            )
        of_upper, of_lower = design.sizes(number, even=even)
        wanted = [*upper[:of_upper], *lower[:of_lower]]
        missing = of_upper + of_lower - sum(key in wrong for key in wanted)
        if missing:
            return PlanStage(number, of_upper, of_lower, missing)
    return None


def draw_next(
    design: CalibrationDesign,
    order: PlanOrder,
    draws: Sequence[PlannedDraw],
    wrong: Mapping[AnswerKey, bool],
) -> list[PlannedDraw]:
    """Return the next batch; empty while drawn answers wait for a label, and at the end.

    The arguments are those of :func:`find_stage`, and the ``order``.
    """
    stage = find_stage(design, draws, wrong)
    if stage is None:
        return []
    batch: list[tuple[float, PlannedDraw]] = []
    sides = ((UPPER, order.upper, stage.upper), (LOWER, order.lower, stage.lower))
    for part, keys, size in sides:
        drawn = _list_drawn(draws, part)
        if any(key not in wrong for key in drawn[:size]):
            return []
        for place in range(len(drawn), size):
            # Among the answers of its part that are left.
            draw = PlannedDraw([keys[place]], 1 / (len(keys) - place), part, stage.look)
            # Both parts in turns: who stops early has rated both.
            batch.append(((place - len(drawn) + 0.5) / (size - len(drawn)), draw))
    return [draw for _, draw in sorted(batch, key=lambda pair: pair[0])]


def last_look(plan: LabelPlan, wrong: Mapping[AnswerKey, bool]) -> PlanLook | None:
    """Return the last look that is complete; ``None`` before the first.

    Args:
        plan: made by ``label --for calibrate``.
        wrong: whether each answer that has a label is wrong; ratings that were skipped, or that say
            "cannot tell", count as wrong.

    Raises:
        InputError: the plan has another purpose.
    """
    design, result = CalibrationDesign.of(plan), None
    draws = plan.draws
    upper, lower = _list_drawn(draws, UPPER), _list_drawn(draws, LOWER)
    for number in range(1, len(design.looks) + 1):
        even = design.is_even(draws, number)
        of_upper, of_lower = design.sizes(number, even=even)
        answers = [*upper[:of_upper], *lower[:of_lower]]
        if len(answers) < of_upper + of_lower or any(key not in wrong for key in answers):
            break
        above = -math.inf if even or design.above is None else design.above
        result = PlanLook(number, len(design.looks), answers, design.delta_of_walk, above)
    return result


def _list_drawn(draws: Sequence[PlannedDraw], part: str) -> list[AnswerKey]:
    return [key for draw in draws if draw.part == part for key in draw.answers]
