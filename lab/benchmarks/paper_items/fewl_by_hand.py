"""FEWL computed again from its definitions, and the small world that its items measure."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

ALPHABET = "abcdefghijklmnopqrstuvwxyz"
WORDS = tuple(
    "amber birch cedar dune ember fjord grove "
    "harbour inlet juniper kelp larch meadow nettle".split()
)
THINGS = tuple(
    f"{colour} {kind}"
    for kind in ("bridge", "tower", "mill", "church", "granary", "jetty")
    for colour in ("old", "round", "glass", "wooden")
)
"""What the questions are about: 24 things."""


def question_of(thing: str) -> str:
    return f"Who built the {thing}?"


def sentences(rng: np.random.Generator, count: int, words: int = 6) -> list[str]:
    """Return sentences of words drawn at random."""
    return [" ".join(rng.choice(WORDS, size=words, replace=False)) for _ in range(count)]


class Thing(NamedTuple):
    """A question with all that the score reads."""

    question: str
    references: Mapping[str, Sequence[str]]
    """Answers of each reference."""
    wrong: Sequence[str]
    corrected: Sequence[str]
    answers: Sequence[str]
    """A right answer, a half right and a wrong one."""


def make_world(references: Mapping[str, int], seed: int = 5) -> list[Thing]:
    """Return 24 questions; answers share words with references by chance and by kind."""
    rng = np.random.default_rng(seed)
    world = []
    for thing in THINGS:
        truth = sentences(rng, 1, 9)[0].split()
        texts = {
            name: [" ".join(rng.choice(truth, 4, replace=False)) + " " + extra for extra in extras]
            for name, count in references.items()
            for extras in [sentences(rng, count, 3)]
        }
        right = " ".join(truth[:5]) + " " + sentences(rng, 1, 2)[0]
        half = " ".join(truth[:3]) + " " + sentences(rng, 1, 4)[0]
        wrong = " ".join(truth[:2]) + " " + sentences(rng, 1, 5)[0]
        world.append(
            Thing(
                question_of(thing),
                texts,
                sentences(rng, 3),
                sentences(rng, 3),
                (right, half, wrong),
            )
        )
    return world


def alike(first: str, second: str) -> float:
    """Return words in common over all words."""
    one, two = set(re.findall(r"\w+", first.lower())), set(re.findall(r"\w+", second.lower()))
    return len(one & two) / len(one | two) if one | two else 0.0


def letters(text: str) -> np.ndarray:
    counts = np.array([text.lower().count(letter) for letter in ALPHABET]) + 0.01
    return np.asarray(counts / np.linalg.norm(counts))


def nearest(questions: Sequence[str], place: int, k: int, most: float) -> list[int]:
    """Return the places of the k questions that are nearest and not nearer than ``most``."""
    cosines = [float(letters(questions[place]) @ letters(other)) for other in questions]
    allowed = [
        (-cosine, other)
        for other, cosine in enumerate(cosines)
        if other != place and cosine <= most + 1e-6
    ]
    return [other for _, other in sorted(allowed)[:k]]


def expertise(reference: str, corrected: Sequence[str], wrong: Sequence[str]) -> float:
    """Return r of a reference's answer (Algorithm 1, step 2.2)."""
    to_corrected = max(alike(reference, text) for text in corrected)
    return to_corrected - max(alike(reference, text) for text in wrong)


def softmax(values: Sequence[float], temperature: float = 1.0) -> list[float]:
    raised = [math.exp(value / temperature) for value in values]
    return [value / sum(raised) for value in raised]


def gain(value: float, divergence: str) -> float:
    """Return g."""
    if divergence == "tv":
        return 0.5 * math.tanh(value)
    return math.log(2 / (1 + math.exp(-value))) if divergence == "js" else value


def cost(value: float, divergence: str) -> float:
    """Return f of g: f is u, -log(2 - exp(u)) or exp(u - 1)."""
    inner = gain(value, divergence)
    if divergence == "tv":
        return inner
    return -math.log(2 - math.exp(inner)) if divergence == "js" else math.exp(inner - 1)


def equation_1(
    likenesses: Sequence[float],
    weights: Sequence[float],
    penalties: Sequence[float] | None,
    divergence: str = "tv",
    form: str = "eq1",
) -> float:
    """Return FEWL of an answer; ``theory`` is section 3.1, with the weights before both terms."""
    total = 0.0
    for place, (likeness, weight) in enumerate(zip(likenesses, weights, strict=True)):
        penalty = 0.0 if penalties is None else cost(penalties[place], divergence)
        if form == "eq1":
            total += (gain(weight * likeness, divergence) - penalty) / len(weights)
        else:
            total += weight * (gain(likeness, divergence) - penalty)
    return total


class Measure:
    """All scores of a world's answers.

    References count one answer each, in the order of their names and numbers.
    """

    def __init__(self, world: Sequence[Thing], k: int = 3, most: float = 1.0) -> None:
        self.world = world
        questions = [thing.question for thing in world]
        self.near = [nearest(questions, place, k, most) for place in range(len(world))]

    def texts(self, place: int) -> list[str]:
        return [text for texts in self.world[place].references.values() for text in texts]

    def weights(self, place: int, rule: str, temperature: float = 1.0) -> list[float]:
        thing, texts = self.world[place], self.texts(place)
        if rule == "uniform":
            return [1 / len(texts)] * len(texts)
        corrected, wrong = thing.corrected, thing.wrong
        if rule.startswith("ideal"):
            corrected, wrong = thing.answers[:1], thing.answers[2:]
        if rule == "ideal, half":
            # Half hallucinated answers may count as hallucinated ones.
            wrong = thing.answers[1:]
        values = [expertise(text, corrected, wrong) for text in texts]
        return softmax(values, temperature)

    def penalties(self, place: int, answer: str) -> list[float]:
        """Return for each reference the mean likeness to its answers to the neighbours."""
        others = [self.texts(near) for near in self.near[place]]
        return [
            float(np.mean([alike(answer, texts[number]) for texts in others]))
            for number in range(len(self.texts(place)))
        ]

    def score(
        self, place: int, answer: str, rule: str = "ours", *, penalised: bool = True, **form: Any
    ) -> float:
        texts = self.texts(place)
        likenesses = [alike(answer, text) for text in texts]
        penalties = self.penalties(place, answer) if penalised else None
        temperature = form.pop("temperature", 1.0)
        if rule == "single":
            return equation_1(likenesses[:1], [1.0], penalties and penalties[:1], **form)
        if rule == "single-best":
            thing = self.world[place]
            values = [expertise(text, thing.corrected, thing.wrong) for text in texts]
            best = values.index(max(values))
            chosen = penalties and penalties[best : best + 1]
            return equation_1(likenesses[best : best + 1], [1.0], chosen, **form)
        return equation_1(likenesses, self.weights(place, rule, temperature), penalties, **form)

    def won(self, first: int, second: int, rule: str, *, penalised: bool, **form: Any) -> float:
        """Return in per cent how often an answer of one kind scores higher than that of another."""
        wins = [
            self.score(place, thing.answers[first], rule, penalised=penalised, **form)
            > self.score(place, thing.answers[second], rule, penalised=penalised, **form) + 1e-12
            for place, thing in enumerate(self.world)
        ]
        return 100 * float(np.mean(wins))
