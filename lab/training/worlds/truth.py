"""Whether told facts support a claim: supported, contradicted or not stated.

Nothing here knows how facts or claims are worded, or how pairs are made: it reads the facts alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from lab.training.worlds.facts import (
    Cause,
    Compared,
    Condition,
    Dated,
    Event,
    Fact,
    Group,
    Measure,
    Member,
    Not,
    Order,
    Quantified,
    Report,
    Rule,
    Several,
    Stated,
    Wish,
)

__all__ = ["CONTRADICTED", "FACTORS", "NOT_STATED", "SUPPORTED", "judge"]

SUPPORTED, CONTRADICTED, NOT_STATED = "supported", "contradicted", "not stated"

FACTORS: dict[str, tuple[str, float]] = {
    "millimetres": ("length", 0.001),
    "centimetres": ("length", 0.01),
    "metres": ("length", 1.0),
    "kilometres": ("length", 1000.0),
    "grams": ("mass", 1.0),
    "kilograms": ("mass", 1000.0),
    "tonnes": ("mass", 1e6),
    "millilitres": ("volume", 0.001),
    "litres": ("volume", 1.0),
    "seconds": ("time", 1.0),
    "minutes": ("time", 60.0),
    "hours": ("time", 3600.0),
    "days": ("time", 86400.0),
    "weeks": ("time", 604800.0),
    "euros": ("money", 1.0),
    "cents": ("money", 0.01),
}
"""Each unit's dimension, and how many of the dimension's own unit it is."""


def judge(told: Iterable[Fact], claim: Fact) -> str:
    """Return whether the facts support, contradict or do not state the claim."""
    return _RULES[type(claim)](tuple(told), claim)


def _verdict(yes: bool, no: bool) -> str:
    return SUPPORTED if yes else CONTRADICTED if no else NOT_STATED


def _happened(told: tuple[Fact, ...]) -> list[Event]:
    made: list[Event] = []
    for fact in told:
        if (
            isinstance(fact, Stated)
            or (isinstance(fact, Report) and fact.factive)
            or (isinstance(fact, Condition) and fact.met == "yes")
        ):
            made.append(fact.event)
        elif isinstance(fact, Cause):
            made += [fact.cause, fact.effect]
        elif isinstance(fact, Order):
            made += [fact.first, fact.second]
        elif isinstance(fact, Several):
            made += [Event(fact.verb, fact.agent, patient) for patient in fact.patients]
    return made


def _denied(told: tuple[Fact, ...]) -> list[Event]:
    made = [fact.event for fact in told if isinstance(fact, Not)]
    made += [f.event for f in told if isinstance(f, Condition) and f.met == "no"]
    made += [
        Event(f.verb, f.agent, patient)
        for f in told
        if isinstance(f, Several)
        for patient in f.without
    ]
    return made


def _says(known: Event, claimed: Event) -> bool:
    """Return whether the known event is the claimed one, and says all that is claimed of it."""
    same = (known.verb, known.agent, known.patient) == (
        claimed.verb,
        claimed.agent,
        claimed.patient,
    )
    day = claimed.day is None or claimed.day == known.day
    return same and day and claimed.place in {"", known.place}


def _differs(known: Event, claimed: Event) -> bool:
    """Return whether it is the same deed with another day or place than is claimed."""
    same = (known.verb, known.agent, known.patient) == (
        claimed.verb,
        claimed.agent,
        claimed.patient,
    )
    day = None not in (known.day, claimed.day) and known.day != claimed.day
    place = "" not in (known.place, claimed.place) and known.place != claimed.place
    return same and (day or place)


def _stated(told: tuple[Fact, ...], claim: Stated) -> str:
    known = _happened(told)
    yes = any(_says(event, claim.event) for event in known)
    no = any(_says(claim.event, event) for event in _denied(told))
    return _verdict(yes, no or any(_differs(event, claim.event) for event in known))


def _dated(told: tuple[Fact, ...], claim: Dated) -> str:
    for known in _happened(told):
        if known.day is not None and _says(known, claim.event):
            is_ = (known.day.year, known.day.month, known.day.day)
            asked = tuple(part for part in (claim.year, claim.month, claim.day) if part)
            seen = is_[: len(asked)]
            true = {"in": seen == asked, "before": seen < asked, "after": seen > asked}
            return _verdict(true[claim.relation], not true[claim.relation])
    return NOT_STATED


def _not(told: tuple[Fact, ...], claim: Not) -> str:
    swapped = {SUPPORTED: CONTRADICTED, CONTRADICTED: SUPPORTED}
    found = _stated(told, Stated(claim.event))
    return swapped.get(found, found)


def _several(told: tuple[Fact, ...], claim: Several) -> str:
    found = [_stated(told, Stated(Event(claim.verb, claim.agent, p))) for p in claim.patients]
    return _verdict(all(f == SUPPORTED for f in found), CONTRADICTED in found)


def _report(told: tuple[Fact, ...], claim: Report) -> str:
    said = any(
        isinstance(f, Report) and (f.speaker, f.event) == (claim.speaker, claim.event) for f in told
    )
    return _verdict(said, False)


def _wish(told: tuple[Fact, ...], claim: Wish) -> str:
    return _verdict(claim in told, False)


def _condition(told: tuple[Fact, ...], claim: Condition) -> str:
    yes = any(
        isinstance(f, Condition)
        and f.met == "open"
        and (f.condition, f.event) == (claim.condition, claim.event)
        for f in told
    )
    return _verdict(yes, False)


def _cause(told: tuple[Fact, ...], claim: Cause) -> str:
    return _verdict(claim in told, Cause(claim.effect, claim.cause) in told)


def _order(told: tuple[Fact, ...], claim: Order) -> str:
    named = [(f.first, f.second) for f in told if isinstance(f, Order)]
    days = {(e.verb, e.agent, e.patient): e.day for e in _happened(told) if e.day}
    first, second = (days.get((e.verb, e.agent, e.patient)) for e in (claim.first, claim.second))
    yes, no = (claim.first, claim.second) in named, (claim.second, claim.first) in named
    if first is not None and second is not None:
        yes, no = yes or first < second, no or first > second
    return _verdict(yes, no)


def _value(told: tuple[Fact, ...], thing: str, quantity: str) -> float | None:
    """Return a thing's quantity in its dimension's own unit."""
    for fact in told:
        if isinstance(fact, Measure) and (fact.thing, fact.quantity) == (thing, quantity):
            return fact.amount * FACTORS[fact.unit][1]
    return None


def _measure(told: tuple[Fact, ...], claim: Measure) -> str:
    known = _value(told, claim.thing, claim.quantity)
    if known is None:
        return NOT_STATED
    same = abs(known - claim.amount * FACTORS[claim.unit][1]) <= 1e-6 * max(1.0, known)
    return _verdict(same, not same)


def _compared(told: tuple[Fact, ...], claim: Compared) -> str:
    more, less = (_value(told, thing, claim.quantity) for thing in (claim.more, claim.less))
    if more is None or less is None:
        return NOT_STATED
    return _verdict(more > less, more <= less)


def _member(told: tuple[Fact, ...], claim: Member) -> str:
    for fact in told:
        if isinstance(fact, Rule) and fact.act == claim.act:
            allowed = fact.allowed != (claim.case in fact.exceptions)
            return _verdict(allowed == claim.allowed, allowed != claim.allowed)
    return NOT_STATED


def _holds(quantifier: str, count: int, total: int, number: int) -> bool:
    """Return whether so many of a group are all, some, none ... of it."""
    return {
        "all": count == total,
        "not all": count < total,
        "some": count > 0,
        "none": count == 0,
        "most": 2 * count > total,
        "fewer than half": 2 * count < total,
        "more than": count > number,
        "exactly": count == number,
        "lacking": total - count == number,
    }[quantifier]


def _quantified(told: tuple[Fact, ...], claim: Quantified) -> str:
    for fact in told:
        if isinstance(fact, Group) and (fact.group, fact.has) == (claim.group, claim.has):
            true = _holds(claim.quantifier, fact.count, fact.total, claim.number)
            return _verdict(true, not true)
    return NOT_STATED


_RULES: dict[type, Callable[[tuple[Fact, ...], Any], str]] = {
    Stated: _stated,
    Dated: _dated,
    Not: _not,
    Several: _several,
    Report: _report,
    Wish: _wish,
    Condition: _condition,
    Cause: _cause,
    Order: _order,
    Measure: _measure,
    Compared: _compared,
    Member: _member,
    Quantified: _quantified,
}
