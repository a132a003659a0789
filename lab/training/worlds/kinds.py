"""Minimal pairs: for each kind of failure what is told, a supported claim and its near copy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from lab.training.worlds.facts import (
    Cause,
    Compared,
    Condition,
    Dated,
    Event,
    Fact,
    Measure,
    Member,
    Not,
    Order,
    Quantified,
    Report,
    Several,
    Stated,
    Wish,
)
from lab.training.worlds.making import World
from lab.training.worlds.sentences import event as clause
from lab.training.worlds.truth import FACTORS
from lab.training.worlds.words import CASES, CONDITIONS, DEGREES, MEASURES, PLACES

__all__ = ["KINDS", "Case"]


@dataclass(frozen=True)
class Case:
    """Told facts, a claim they support, and one they do not.

    sentences: words for some of the told facts, where the kind depends on them (pronouns).
    table: the told facts are measures to be shown in rows.
    """

    told: tuple[Fact, ...]
    supported: Fact
    other: Fact
    sentences: dict[int, str] = field(default_factory=dict)
    table: bool = False


def _bare(e: Event) -> Event:
    return replace(e, day=None, place="")


def roles(w: World) -> Case:
    """A did it to B; not B to A."""
    e = w.event()
    other = replace(_bare(e), agent=e.patient, patient=e.agent)
    return Case((Stated(e),), Stated(_bare(e)), Stated(other))


def exceptions(w: World) -> Case:
    """What a rule says for those it excepts, and for others."""
    rule = w.rule()
    excepted = w.chance(0.6)
    case = (
        w.one(rule.exceptions)
        if excepted
        else w.one([c for c in CASES if c not in rule.exceptions])
    )
    member = Member(rule.act, case, rule.allowed != excepted)
    return Case((rule,), member, replace(member, allowed=not member.allowed))


def coreference(w: World) -> Case:
    """Whom a pronoun, "the former" or a job stands for."""
    woman, man = w.person("f"), w.person("m")
    pair = [woman, man] if w.chance(0.5) else [man, woman]
    one, two = pair
    way = w.one(["pronoun", "order", "job", "same"])
    if way == "same":
        two = w.person(one.gender)
    first = Event(w.verb(), one, two)
    doer, idle = (one, two) if w.chance(0.5) else (two, one)
    second = Event(w.verb(), doer, w.person(), place=w.one(PLACES) if w.chance(0.5) else "")
    if way == "pronoun":
        word = "She" if doer.gender == "f" else "He"
    elif way == "job" and one.job != two.job:
        word = f"The {doer.job}"
    else:
        word = "The former" if doer is one else "The latter"
    introduced = f"{one.name}, a {one.job}, {first.verb.past} {two.name}, a {two.job}."
    sentences = {1: clause(second, w.rng, agent=word) + "."}
    if word.startswith("The ") or w.chance(0.3):
        sentences[0] = introduced
    told = (Stated(first), Stated(second))
    claimed = _bare(second)
    return Case(told, Stated(claimed), Stated(replace(claimed, agent=idle)), sentences)


def swapped(w: World) -> Case:
    """Of two like facts each is told of one of them."""
    if w.chance(0.4):
        one = w.measure()
        two = replace(w.measure(one.quantity), unit=one.unit)
        if one.amount == two.amount:
            two = replace(two, amount=two.amount + 3)
        return Case((one, two), two, replace(two, amount=one.amount))
    e = w.event(day=0.1)
    f = replace(e, agent=w.actor(), patient=w.actor(), place=w.one(PLACES) if e.place else "")
    told = (Stated(e), Stated(f))
    return Case(told, Stated(_bare(f)), Stated(replace(_bare(f), agent=e.agent)))


_CLOSE = {
    "metres": ["centimetres", "kilometres", "millimetres"],
    "kilograms": ["grams", "tonnes"],
    "litres": ["millilitres"],
    "minutes": ["hours", "seconds"],
    "euros": ["cents"],
}


def units(w: World) -> Case:
    """The same quantity in another unit, and a wrong one."""
    told = w.measure()
    unit = w.one(_CLOSE[told.unit])
    amount = told.amount * FACTORS[told.unit][1] / FACTORS[unit][1]
    right = replace(told, amount=float(f"{amount:.6g}"), unit=unit)
    if unit == "hours" or right.amount * FACTORS[unit][1] != told.amount * FACTORS[told.unit][1]:
        minutes = w.one([30.0, 60.0, 90.0, 120.0, 180.0, 210.0])
        if unit == "hours":
            told = replace(told, amount=minutes)
            right = replace(told, amount=minutes / 60, unit="hours")
    wrong = w.one(
        [
            replace(right, amount=right.amount * w.one([10.0, 0.1, 100.0, 2.0])),
            replace(right, unit=told.unit),
        ]
    )
    return Case((told,), right, wrong)


def conditionals(w: World) -> Case:
    """What would follow, what followed, and what would have followed."""
    e = w.event(day=0.0, place=0.2)
    met = w.one(["open", "open", "no", "yes"])
    told = Condition(w.one(CONDITIONS)[0], e, met)
    if met == "open":
        return Case((told,), told, Stated(e))
    claims: tuple[Fact, Fact] = (Not(e), Stated(e)) if met == "no" else (Stated(e), Not(e))
    return Case((told,), *claims)


def attribution(w: World) -> Case:
    """Who said it; that somebody said it does not make it so, that somebody knew it does."""
    told = Report(w.person(), w.event(day=0.1, place=0.2), factive=w.chance(0.35))
    if told.factive:
        return Case((told,), Stated(told.event), Not(told.event))
    if w.chance(0.6):
        return Case((told,), told, Stated(told.event))
    second = Report(w.person(), w.event(day=0.0, place=0.2))
    return Case((told, second), second, replace(second, speaker=told.speaker))


def comparison(w: World) -> Case:
    """Which of two things has more."""
    one = w.measure()
    two = w.measure(one.quantity)
    if one.amount == two.amount:
        two = replace(two, amount=two.amount + 2)
    more, less = (one, two) if one.amount > two.amount else (two, one)
    right = Compared(more.thing, less.thing, one.quantity)
    return Case((one, two), right, Compared(less.thing, more.thing, one.quantity))


def added(w: World) -> Case:
    """A day or a place that was told, and one that was not."""
    whole = w.event(day=1.0, place=1.0)
    told = replace(whole, day=None) if w.chance(0.5) else replace(whole, place="")
    return Case((Stated(told),), Stated(told if w.chance(0.5) else _bare(told)), Stated(whole))


def tables(w: World) -> Case:
    """A cell, and the same cell of another row."""
    quantities = w.some(sorted(MEASURES), 2)
    told: list[Measure] = []
    for _ in range(int(w.rng.integers(2, 6))):
        first = w.measure(quantities[0])
        told += [first, replace(w.measure(quantities[1]), thing=first.thing)]
    place = int(w.rng.integers(2))
    column = told[place::2]
    right, wrong = w.some(column, 2)
    if right.amount == wrong.amount:
        wrong = replace(wrong, amount=wrong.amount + 7)
    return Case(tuple(told), right, replace(right, amount=wrong.amount), table=True)


def dates(w: World) -> Case:
    """In, before or after a year, month or day."""
    e = w.event(day=1.0, place=0.2)
    day = e.day or w.day()
    parts = int(w.rng.integers(1, 4))
    if w.chance(0.5):
        right = Dated(_bare(e), "in", *(day.year, day.month, day.day)[:parts])
        shift = int(w.rng.integers(1, 12)) * (1 if w.chance(0.5) else -1)
        wrong = replace(right, year=right.year + shift)
        if right.month and w.chance(0.5):
            wrong = replace(right, month=right.month % 12 + 1, day=min(right.day, 28))
        return Case((Stated(e),), right, wrong)
    year = day.year + int(w.rng.integers(1, 15)) * (1 if w.chance(0.5) else -1)
    right = Dated(_bare(e), "before" if day.year < year else "after", year)
    return Case(
        (Stated(e),), right, replace(right, relation="after" if day.year < year else "before")
    )


def order(w: World) -> Case:
    """Which of two came first, told by words or by days."""
    e, f = w.event(day=0.0, place=0.2), w.event(day=0.0, place=0.2)
    claims = (Order(_bare(e), _bare(f)), Order(_bare(f), _bare(e)))
    if w.chance(0.5):
        return Case((Order(_bare(e), _bare(f)),), *claims)
    first, second = sorted([w.day(), w.day()])
    if first == second:
        return Case((Order(_bare(e), _bare(f)),), *claims)
    told = [Stated(replace(e, day=first)), Stated(replace(f, day=second))]
    if w.chance(0.5):
        told.reverse()
    return Case(tuple(told), *claims)


def quantifiers(w: World) -> Case:
    """All, some, none, most."""
    group = w.group()
    if w.chance(0.4):
        group = w.group(count=w.one([0, group.total])) if group.total else group
        group = replace(group, count=min(group.count, group.total))
    true = {
        "all": group.count == group.total,
        "none": group.count == 0,
        "some": group.count > 0,
        "not all": group.count < group.total,
        "most": 2 * group.count > group.total,
        "fewer than half": 2 * group.count < group.total,
    }
    right = w.one([q for q, holds in true.items() if holds])
    wrong = w.one([q for q, holds in true.items() if not holds])
    make = (group.group, group.has)
    return Case((group,), Quantified(*make, right), Quantified(*make, wrong))


def numbers(w: World) -> Case:
    """How many have it, how many lack it, more than how many."""
    group = w.group()
    make = (group.group, group.has)
    off = group.count + w.one([-2, -1, 1, 2, 10])
    exact = (Quantified(*make, "exactly", group.count), Quantified(*make, "exactly", max(0, off)))
    lack = group.total - group.count
    rest = (
        Quantified(*make, "lacking", lack),
        Quantified(*make, "lacking", lack + w.one([1, 3, 10])),
    )
    low, high = int(w.rng.integers(0, group.count)), group.count + int(w.rng.integers(0, 9))
    more = (Quantified(*make, "more than", low), Quantified(*make, "more than", high))
    return Case((group,), *w.one([exact, rest, more]))


def negation(w: World) -> Case:
    """It happened, or it did not."""
    e = w.event(place=0.2)
    claims: list[Fact] = [Stated(e), Not(e)]
    if w.chance(0.5):
        claims.reverse()
    return Case((claims[0],), claims[0], claims[1])


def conjunctions(w: World) -> Case:
    """Each of several, and one who was not among them."""
    people = [w.person() for _ in range(int(w.rng.integers(2, 5)))]
    extra = w.person()
    told = Several(w.verb(), w.person(), tuple(people), (extra,) if w.chance(0.5) else ())
    part = tuple(w.some(people, int(w.rng.integers(1, len(people)))))
    right = Several(told.verb, told.agent, part)
    return Case((told,), right, replace(right, patients=(*part, extra)))


def modality(w: World) -> Case:
    """Planned, possible, tried or ordered is not done; and the other way round."""
    told = Wish(w.one(DEGREES), w.event(day=0.0, place=0.2))
    return Case((told,), told, Stated(told.event))


def causes(w: World) -> Case:
    """Which of two was the reason for the other, and a reason that is none."""
    one, two = (_bare(w.event()) for _ in range(2))
    told = Cause(one, two)
    if w.chance(0.5):
        return Case((told,), told, Cause(two, one))
    third = _bare(w.event())
    return Case((told, Stated(third)), told, Cause(third, two))


KINDS: dict[str, Callable[[World], Case]] = {
    "roles": roles,
    "exceptions": exceptions,
    "coreference": coreference,
    "swapped_entity": swapped,
    "units": units,
    "conditionals": conditionals,
    "attribution": attribution,
    "comparison": comparison,
    "added_facts": added,
    "tables": tables,
    "dates": dates,
    "temporal_order": order,
    "quantifiers": quantifiers,
    "numbers": numbers,
    "negation": negation,
    "conjunctions": conjunctions,
    "modality": modality,
    "causes": causes,
}
