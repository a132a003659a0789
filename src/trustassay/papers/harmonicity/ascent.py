"""Stochastic search along gamma for prompts at which a model's answers are unstable, or stable.

After Section 5 of the paper:

1. Measure gamma of the start.
2. Make random candidates of the current prompt that change its meaning a little.
3. Measure gamma of each, move to the best, and repeat.

The paper does not say whether the search moves if no candidate is better than the current prompt.
The authors' program does (``extremum``); ``uphill`` does not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import degrees
from typing import Literal, get_args

import numpy as np

from trustassay.core.capabilities import Models
from trustassay.core.event_loop import gather_all
from trustassay.errors import (
    AssessmentError,
    BackendError,
    UnknownNameError,
    UsageError,
    check_least,
    did_you_mean,
)
from trustassay.metrics.harmonicity import maths
from trustassay.metrics.harmonicity.asking import embed_texts
from trustassay.metrics.harmonicity.perturbations import (
    LAST_CONTROL,
    MAX_CHANGES,
    Family,
    NoPerturbationError,
    perturb,
    synonym_words,
)
from trustassay.papers.harmonicity.perturbed import resolve_families
from trustassay.statistics.resampling import generator
from trustassay.text.numbers import amount

StepRule = Literal["uphill", "extremum"]
STEP_RULES: tuple[StepRule, ...] = get_args(StepRule)


@dataclass(frozen=True, slots=True)
class AscentPoint:
    """A prompt that a search tried, and how far its answer moves when the prompt is perturbed."""

    step: int
    """The round; 0 is the start."""
    candidate: int
    """The number of the candidate in its round, from 1."""
    prompt: str
    answer: str = ""
    """The answer to the unperturbed prompt."""
    gamma: float | None = None
    """The sine of the angle; ``None`` if it could not be measured."""
    angle_degrees: float | None = None
    """The angle between the answer and the mean of the answers to perturbed prompts."""
    kept: bool = False
    """Whether the search continued from here."""
    error: str | None = None
    """Why there is no gamma."""
    calls: int = 0
    """Requests of the search until the end of this round."""


@dataclass(frozen=True)
class AscentOptions:
    """How the search goes.

    Args:
        steps: rounds of candidates. candidates: of each round.
        perturbations: nudged prompts behind each gamma, N.
        perturbation: their family; by default ``unicode``, since control characters would keep
            gamma near its start (Section 5). The authors' is ``codes``.
        candidate: what makes candidates: ``unicode``, ``words`` (appended), another family, or
            ``ball``: the first of the nudged prompts behind gamma of where the search stands, as
            in the authors' program.
        descend: search for small gamma instead of large: prompts that are hard to move.
        max_calls: the most requests to the chat model, failed ones too; ``None`` for no such
            limit.
        temperature, max_tokens: of every call. seed: of candidates and perturbations.
        step_rule: ``uphill`` moves only to a candidate that is better than where the search
            stands, ``extremum`` always to the best of a round (the authors').
        length: characters that are added or mistyped, or words that are added or replaced, at
            most. range: the last code that ``codes`` draws.
    """

    steps: int = 5
    candidates: int = 8
    perturbations: int = 10
    perturbation: str = "unicode"
    candidate: str = "unicode"
    descend: bool = False
    max_calls: int | None = None
    temperature: float = 0.0
    max_tokens: int = 512
    seed: int = 0
    step_rule: StepRule = "uphill"
    length: int = MAX_CHANGES
    range: int = LAST_CONTROL

    def __post_init__(self) -> None:
        check_least(self, steps=1, candidates=1, perturbations=1, max_tokens=1)
        if self.max_calls is not None and self.max_calls < self.calls_per_gamma:
            raise UsageError(
                f"max_calls: expected at least {self.calls_per_gamma}, the calls for one gamma"
            )
        if self.step_rule not in STEP_RULES:
            raise UnknownNameError(did_you_mean("step rule", self.step_rule, STEP_RULES))
        if self.candidate == "ball" and self.candidates > self.perturbations:
            raise UsageError(
                f"candidates: ball has only {amount(self.perturbations, 'prompt')} "
                f"(perturbations), fewer than {self.candidates}"
            )
        _ = self._resolved_families  # an unknown name must fail here

    @property
    def calls_per_gamma(self) -> int:
        """Requests to the chat model behind one gamma."""
        return self.perturbations + 1

    @cached_property
    def _resolved_families(self) -> tuple[Family, Family]:
        """The family of the perturbations behind each gamma, and that of the candidates."""
        names = [self.perturbation]
        # These two are no families: words are appended, and the ball is that of gamma.
        if self.candidate not in ("words", "ball"):
            names.append(self.candidate)
        resolved = resolve_families(names, self.length, self.range)
        if self.candidate == "words":
            return resolved[0], Family("words", self._append_words, appends=True)
        return resolved[0], resolved[-1]

    def _append_words(self, text: str, rng: np.random.Generator) -> str:
        words = synonym_words()
        # One to `length` words, each with the same probability.
        picks = rng.integers(0, len(words), rng.integers(1, self.length + 1))
        return " ".join([text, *(words[i] for i in picks)])

    def ball_of(self, prompt: str) -> list[str]:
        """Return the perturbed prompts behind the gamma of ``prompt``."""
        # Seeded by the prompt: a resumed search perturbs it in the same way and finds the stored
        # replies.
        rng = generator(self.seed, prompt, "ball")
        family = self._resolved_families[0]
        return [perturb(prompt, family, rng) for _ in range(self.perturbations)]

    def candidates_of(self, prompt: str, step: int, n: int) -> list[str]:
        """Return ``n`` candidates for a step from ``prompt``; distinct where that is possible."""
        if self.candidate == "ball":
            # Equal candidates would only cost requests.
            return list(dict.fromkeys(self.ball_of(prompt)))[:n]
        candidates: dict[str, None] = {}
        rng = generator(self.seed, prompt, "candidates", str(step))
        # Short prompts may have fewer than n distinct candidates; stop trying at some point.
        for _ in range(n * 4):
            if len(candidates) == n:
                break
            candidates.setdefault(perturb(prompt, self._resolved_families[1], rng))
        return list(candidates)

    def is_better(self, point: AscentPoint, other: AscentPoint) -> bool:
        """Whether ``point`` lies further in the direction of the search than ``other``.

        Compared by the angle, since its sine, gamma, falls again beyond 90 degrees. A point without
        an angle is never better.
        """
        if point.angle_degrees is None or other.angle_degrees is None:
            return other.angle_degrees is None and point.angle_degrees is not None
        # Towards stable answers: the smaller angle is better.
        if self.descend:
            return point.angle_degrees < other.angle_degrees
        return point.angle_degrees > other.angle_degrees


async def climb(
    prompt: str,
    models: Models,
    ascent: AscentOptions,
    note: Callable[[AscentPoint], None],
    count_calls: Callable[[], int] | None = None,
) -> list[AscentPoint]:
    """Search from ``prompt``; ``note`` gets every point as soon as its round is complete.

    The candidates of a round are measured together. The same prompt, options and replies give the
    same points. The search ends after the last step, when the remaining calls are too few for a
    candidate, or when it does not move and its candidates are the ball, which would be the same in
    the next round.

    Args:
        count_calls: returns the requests so far; without it every prompt counts as one gamma.

    Raises:
        BackendError, AssessmentError, NoPerturbationError: the start cannot be measured.
    """
    # The start must have a gamma; everything later may fail.
    start = await _measure(prompt, models, ascent, 0, 0)
    if start.gamma is None:
        raise AssessmentError(start.error or "the prompt cannot be measured")
    # Counted by the session if possible, since stored replies cost nothing.
    spent = count_calls() if count_calls else ascent.calls_per_gamma
    current = replace(start, kept=True, calls=spent)
    points = [current]
    note(current)
    for step in range(1, ascent.steps + 1):
        n = ascent.candidates
        # The last round may have fewer candidates.
        if ascent.max_calls is not None:
            n = min(n, (ascent.max_calls - spent) // ascent.calls_per_gamma)
        if n < 1:
            break
        prompts = ascent.candidates_of(current.prompt, step, n)
        round_points = await asyncio.gather(
            *(_measure(text, models, ascent, step, i) for i, text in enumerate(prompts, 1))
        )
        spent = count_calls() if count_calls else spent + ascent.calls_per_gamma * len(prompts)
        best = find_best(round_points, ascent)
        # `uphill` compares with the current prompt, `extremum` only within the round.
        uphill = ascent.step_rule == "uphill"
        moves = ascent.is_better(best, current) if uphill else best.gamma is not None
        # Noted only now: which one is kept depends on the whole round.
        for point in round_points:
            is_kept = moves and point is best
            final_point = replace(point, kept=is_kept, calls=spent)
            points.append(final_point)
            note(final_point)
            current = final_point if is_kept else current
        if not moves and ascent.candidate == "ball":
            break
    return points


def find_best(points: Sequence[AscentPoint], ascent: AscentOptions) -> AscentPoint:
    """Return the point that lies furthest in the direction of the search; of equal ones the first.

    With the rule ``extremum`` the search may end at another point.
    """
    best = points[0]
    for point in points[1:]:
        best = point if ascent.is_better(point, best) else best
    return best


async def _measure(
    prompt: str, models: Models, ascent: AscentOptions, step: int, number: int
) -> AscentPoint:
    """Return the point of a prompt; a failure gives a point without gamma, except at the start."""
    try:
        ask = partial(models.chat, temperature=ascent.temperature, max_tokens=ascent.max_tokens)
        # If one fails, wait for the others, so that all requests are counted.
        replies = await gather_all(map(ask, [prompt, *ascent.ball_of(prompt)]))
        texts = [reply.text for reply in replies]
        # Gamma is measured between vectors of answers, not of prompts.
        vectors = await embed_texts(texts, models)
    except (BackendError, NoPerturbationError) as error:
        if step == 0:
            raise
        return AscentPoint(step, number, prompt, error=str(error))
    result = maths.angles(vectors[0], vectors[1:])
    # The mean vector of the answers is zero, so it has no angle.
    if not result.defined:
        return AscentPoint(step, number, prompt, texts[0], error="the answers' vectors cancel out")
    angle = degrees(float(result.radians))
    return AscentPoint(step, number, prompt, texts[0], float(result.gamma), angle)
