"""A small world: people, firms and things that cases take their facts from."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from typing import TypeVar

import numpy as np

from lab.training.worlds.facts import Event, Fact, Group, Measure, Person, Rule, Stated, Verb
from lab.training.worlds.words import ACTS, CASES, GROUPS, MEASURES, PLACES, VERBS, Names, thing

__all__ = ["World"]

T = TypeVar("T")
JOBS = (
    "nurse baker pilot lawyer farmer painter teacher singer carpenter judge reporter cook "
    "sailor tailor botanist gardener dentist translator mechanic librarian goalkeeper potter "
    "surgeon beekeeper "
).split()
FIRST_DAY, DAYS = date(1900, 1, 1), 45_000


class World:
    """Draws people, things and facts by one generator; no name is drawn twice."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.names = Names(rng)
        self.used: set[str] = set()

    def one(self, options: Sequence[T]) -> T:
        """Return one of the options."""
        return options[int(self.rng.integers(len(options)))]

    def some(self, options: Sequence[T], count: int) -> list[T]:
        """Return so many different ones."""
        return [options[i] for i in self.rng.permutation(len(options))[:count]]

    def chance(self, share: float) -> bool:
        """Return True in a share of the calls."""
        return bool(self.rng.random() < share)

    def person(self, gender: str = "") -> Person:
        """Return somebody new; f or m by chance if no gender is given."""
        gender = gender or self.one(["f", "m"])
        while True:
            name = self.names.person(gender)
            if name not in self.used:
                self.used.add(name)
                return Person(name, gender, self.one(JOBS))

    def actor(self) -> Person:
        """Return a person or, now and then, a firm."""
        return Person(self.names.firm()) if self.chance(0.15) else self.person()

    def verb(self) -> Verb:
        """Return a verb."""
        return self.one(VERBS)

    def day(self) -> date:
        """Return a day of the years 1900 to 2023."""
        return FIRST_DAY + timedelta(days=int(self.rng.integers(DAYS)))

    def event(self, *, day: float = 0.3, place: float = 0.3) -> Event:
        """Return something that one does to another, with a day and a place in some of them."""
        return Event(
            self.verb(),
            self.actor(),
            self.actor(),
            self.day() if self.chance(day) else None,
            self.one(PLACES) if self.chance(place) else "",
        )

    def thing(self) -> str:
        """Return a thing that the world does not have yet."""
        while True:
            made = thing(self.rng)
            if made not in self.used:
                self.used.add(made)
                return made

    def measure(self, quantity: str = "") -> Measure:
        """Return a quantity of a new thing, in its usual unit."""
        quantity = quantity or self.one(sorted(MEASURES))
        unit, (low, high), _, _ = MEASURES[quantity]
        amount = float(self.rng.integers(low, high))
        if amount > 60:
            amount = round(amount, -1)
        elif self.chance(0.3):
            amount += 0.5
        return Measure(self.thing(), quantity, amount, unit)

    def rule(self) -> Rule:
        """Return a rule with one to three exceptions."""
        cases = self.some(CASES, int(self.rng.integers(1, 4)))
        return Rule(self.one(ACTS)[0], self.chance(0.5), tuple(cases))

    def group(self, count: int = -1) -> Group:
        """Return how many of a group have a property."""
        name, has = self.one(GROUPS)
        total = int(self.rng.integers(4, 60))
        return Group(name, has, int(self.rng.integers(1, total)) if count < 0 else count, total)

    def other(self) -> Fact:
        """Return a fact that has nothing to do with the rest."""
        draw = self.rng.random()
        if draw < 0.55:
            return Stated(self.event())
        return self.measure() if draw < 0.85 else self.rule()
