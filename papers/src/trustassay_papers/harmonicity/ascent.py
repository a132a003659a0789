"""Stochastic search along gamma: prompts at which a model's answers are unstable, or stable.

After Section 5 of the paper: from a prompt, random candidates that carry a little meaning, gamma of
each, on to the best of them, and again from there. The paper does not say whether the search also
moves where no candidate is better than where it stands. The authors' program does (``extremum``);
``uphill`` stays.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import degrees
from typing import Literal, get_args

import numpy as np

from trustassay.capabilities import Models
from trustassay.errors import (
    AssessmentError,
    BackendError,
    UnknownNameError,
    UsageError,
    check_least,
    did_you_mean,
)
from trustassay.event_loop import all_of
from trustassay.metrics.harmonicity import maths
from trustassay.metrics.harmonicity.asking import vectors_of
from trustassay.metrics.harmonicity.perturbations import (
    LAST_CONTROL,
    MOST,
    Family,
    NoPerturbationError,
    perturb,
    synonym_words,
)
from trustassay.statistics.resampling import generator
from trustassay_papers.harmonicity.perturbed import families

StepRule = Literal["uphill", "extremum"]
STEP_RULES: tuple[StepRule, ...] = get_args(StepRule)


@dataclass(frozen=True, slots=True)
class Point:
    """A prompt that a search tried: its answer, and how far that moves when the prompt is nudged.

    ``step`` 0 is the start; ``kept`` marks where the search went on from. ``error`` says why there
    is not a gamma. ``calls`` are the requests that the search had taken at the end of its step.
    """

    step: int
    candidate: int
    prompt: str
    answer: str = ""
    gamma: float | None = None
    angle_degrees: float | None = None
    kept: bool = False
    error: str | None = None
    calls: int = 0


@dataclass(frozen=True)
class Ascent:
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
    length: int = MOST
    range: int = LAST_CONTROL

    def __post_init__(self) -> None:
        check_least(self, steps=1, candidates=1, perturbations=1, max_tokens=1)
        if self.max_calls is not None and self.max_calls < self.price:
            raise UsageError(f"max_calls: one gamma needs {self.price} calls")
        if self.step_rule not in STEP_RULES:
            raise UnknownNameError(did_you_mean("step rule", self.step_rule, STEP_RULES))
        if self.candidate == "ball" and self.candidates > self.perturbations:
            raise UsageError(
                f"candidates: ball has only {self.perturbations} prompts (perturbations), "
                f"expected at least {self.candidates}"
            )
        _ = self._families  # an unknown name is to fail here

    @property
    def price(self) -> int:
        """Requests to the chat model behind one gamma."""
        return self.perturbations + 1

    @cached_property
    def _families(self) -> tuple[Family, Family]:
        """The families of the perturbations behind each gamma, and of what makes candidates."""
        names = [self.perturbation]
        if self.candidate not in ("words", "ball"):
            names.append(self.candidate)
        found = families(names, self.length, self.range)
        if self.candidate == "words":
            return found[0], Family("words", self._with_words, appends=True)
        return found[0], found[-1]

    def _with_words(self, text: str, rng: np.random.Generator) -> str:
        words = synonym_words()
        picks = rng.integers(0, len(words), rng.integers(1, self.length + 1))
        return " ".join([text, *(words[i] for i in picks)])

    def ball_of(self, prompt: str) -> list[str]:
        """Return the nudged prompts behind the gamma of ``prompt``."""
        rng = generator(self.seed, prompt, "ball")
        family = self._families[0]
        return [perturb(prompt, family, rng) for _ in range(self.perturbations)]

    def candidates_of(self, prompt: str, step: int, n: int) -> list[str]:
        """Return ``n`` candidates for a step from ``prompt``; distinct where that is possible."""
        if self.candidate == "ball":
            return list(dict.fromkeys(self.ball_of(prompt)))[:n]
        found: dict[str, None] = {}
        rng = generator(self.seed, prompt, "candidates", str(step))
        for _ in range(n * 4):
            if len(found) == n:
                break
            found.setdefault(perturb(prompt, self._families[1], rng))
        return list(found)

    def better(self, one: Point, other: Point) -> bool:
        """Whether ``one`` lies further in the direction of the search.

        By the angle: its sine, gamma, falls again beyond 90 degrees. No angle is never better.
        """
        if one.angle_degrees is None or other.angle_degrees is None:
            return other.angle_degrees is None and one.angle_degrees is not None
        if self.descend:
            return one.angle_degrees < other.angle_degrees
        return one.angle_degrees > other.angle_degrees


async def climb(
    prompt: str,
    models: Models,
    how: Ascent,
    note: Callable[[Point], None],
    used: Callable[[], int] | None = None,
) -> list[Point]:
    """Search from ``prompt``; every point is told to ``note`` as soon as its round is known.

    The candidates of a round are asked about together. The same prompt, options and replies give
    the same points. Ends after the steps, when the calls left are too few for a candidate, or
    when it stays and its candidates are the ball, which would be the same again.
    ``used`` tells the calls that the search has taken so far; without it every prompt counts with
    the most that it can take when none fails. Raises BackendError, AssessmentError or
    NoPerturbationError if the start cannot be measured.
    """
    start = await _measured(prompt, models, how, 0, 0)
    if start.gamma is None:
        raise AssessmentError(start.error or "the prompt cannot be measured")
    spent = used() if used else how.price
    current = replace(start, kept=True, calls=spent)
    points = [current]
    note(current)
    for step in range(1, how.steps + 1):
        n = how.candidates
        if how.max_calls is not None:
            n = min(n, (how.max_calls - spent) // how.price)
        if n < 1:
            break
        prompts = how.candidates_of(current.prompt, step, n)
        found = await asyncio.gather(
            *(_measured(text, models, how, step, i) for i, text in enumerate(prompts, 1))
        )
        spent = used() if used else spent + how.price * len(prompts)
        best = best_seen(found, how)
        uphill = how.step_rule == "uphill"
        moves = how.better(best, current) if uphill else best.gamma is not None
        for point in found:
            kept = moves and point is best
            told = replace(point, kept=kept, calls=spent)
            points.append(told)
            note(told)
            current = told if kept else current
        if not moves and how.candidate == "ball":
            break
    return points


def best_seen(points: Sequence[Point], how: Ascent) -> Point:
    """Return the point that lies furthest in the direction of the search, the first of equals.

    With the rule ``extremum`` that need not be where the search ends.
    """
    best = points[0]
    for point in points[1:]:
        best = point if how.better(point, best) else best
    return best


async def _measured(prompt: str, models: Models, how: Ascent, step: int, number: int) -> Point:
    """Return the gamma of a prompt; a failure is a point without one, except at the start."""
    try:
        ask = partial(models.chat, temperature=how.temperature, max_tokens=how.max_tokens)
        # Where one fails, the others are waited for, so that all are counted.
        replies = await all_of(map(ask, [prompt, *how.ball_of(prompt)]))
        texts = [reply.text for reply in replies]
        vectors = await vectors_of(texts, models)
    except (BackendError, NoPerturbationError) as error:
        if step == 0:
            raise
        return Point(step, number, prompt, error=str(error))
    found = maths.angles(vectors[0], vectors[1:])
    if not found.defined:
        return Point(step, number, prompt, texts[0], error="the answers' vectors cancel out")
    angle = degrees(float(found.radians))
    return Point(step, number, prompt, texts[0], float(found.gamma), angle)
