"""Facts in words, each in several ways: ``tell`` for passages, ``claim`` for statements."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Any

import numpy as np

from lab.training.worlds import amounts
from lab.training.worlds.amounts import capital, ended, listed, pick
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
from lab.training.worlds.words import CONDITIONS, SAYING

__all__ = ["MONTHS", "claim", "event", "tell"]

MONTHS = (
    "January February March April May June July August September October November December"
).split()
_HAD = dict(CONDITIONS)


def _date(day: date, rng: np.random.Generator) -> str:
    month = MONTHS[day.month - 1]
    return pick(
        rng,
        [
            f"on {day.day} {month} {day.year}",
            f"on {month} {day.day}, {day.year}",
            f"on {day.isoformat()}",
            f"on {day.day:02}.{day.month:02}.{day.year}",
        ],
    )


def _adjuncts(e: Event, rng: np.random.Generator) -> str:
    parts = [_date(e.day, rng)] if e.day else []
    parts += [e.place] if e.place else []
    if rng.random() < 0.5:
        parts.reverse()
    return "".join(f" {part}" for part in parts)


def event(e: Event, rng: np.random.Generator, agent: str = "", plain: bool = False) -> str:
    """Return a clause for what happened; ``agent`` stands for the agent's name if given."""
    a, b, v, rest = agent or e.agent.name, e.patient.name, e.verb, _adjuncts(e, rng)
    if agent or plain or rng.random() < 0.45:
        return f"{a} {v.past if rng.random() < 0.8 else v.other} {b}{rest}"
    return pick(
        rng,
        [
            f"{b} was {v.participle} {a}{rest}",
            f"{b} {v.reverse} {a}{rest}",
            f"{b} was {v.participle} {a}{rest}",
            f"{a} {v.other} {b}{rest}",
        ],
    )


def _stated(f: Stated, rng: np.random.Generator) -> str:
    return ended(event(f.event, rng))


def _dated(f: Dated, rng: np.random.Generator) -> str:
    when = str(f.year)
    if f.month:
        when = f"{MONTHS[f.month - 1]} {f.year}"
    if f.day:
        when = f"{f.day} {when}"
    word = {"in": "on" if f.day else "in"}.get(f.relation, f.relation)
    clause = event(f.event, rng)
    return ended(pick(rng, [f"{clause} {word} {when}", f"{word} {when}, {clause}"]))


def _not(f: Not, rng: np.random.Generator) -> str:
    e, rest = f.event, _adjuncts(f.event, rng)
    a, b, v = e.agent.name, e.patient.name, e.verb
    return ended(
        pick(
            rng,
            [
                f"{a} did not {v.base} {b}{rest}",
                f"{b} was not {v.participle} {a}{rest}",
                f"{a} never {v.past} {b}{rest}",
                f"it is not true that {a} {v.past} {b}{rest}",
                f"{a} refused to {v.base} {b}{rest}",
            ],
        )
    )


def _several(f: Several, rng: np.random.Generator) -> str:
    names = listed([p.name for p in f.patients])
    text = f"{f.agent.name} {f.verb.past} {names}"
    if f.without:
        others = listed([p.name for p in f.without], "or")
        text += pick(
            rng, [f", but not {others}", f"; {f.agent.name} did not {f.verb.base} {others}"]
        )
    return ended(text)


def _report(f: Report, rng: np.random.Generator) -> str:
    word = pick(rng, SAYING[f.factive])
    clause = event(f.event, rng)
    if f.factive or rng.random() < 0.6:
        return ended(f"{f.speaker.name} {word} that {clause}")
    return ended(
        pick(
            rng,
            [
                f"according to {f.speaker.name}, {clause}",
                f"{clause}, {f.speaker.name} said",
                f'"{capital(clause)}," said {f.speaker.name}',
                f"in the view of {f.speaker.name}, {clause}",
            ],
        )
    )


_WISHES = {
    "planned": [
        "{a} plans to {v} {b}{r}",
        "{a} intends to {v} {b}{r}",
        "{a} wants to {v} {b}{r}",
        "{a} has announced plans to {v} {b}{r}",
    ],
    "possible": [
        "{a} may have {p} {b}{r}",
        "it is possible that {a} {d} {b}{r}",
        "{a} might have {p} {b}{r}",
        "perhaps {a} {d} {b}{r}",
    ],
    "tried": [
        "{a} tried to {v} {b}{r}",
        "{a} attempted to {v} {b}{r}",
        "{a} made an attempt to {v} {b}{r}",
    ],
    "ordered": [
        "{a} must {v} {b}{r}",
        "{a} has to {v} {b}{r}",
        "{a} is required to {v} {b}{r}",
        "{a} was told to {v} {b}{r}",
    ],
}


def _wish(f: Wish, rng: np.random.Generator) -> str:
    e = f.event
    words = pick(rng, _WISHES[f.degree]).format(
        a=e.agent.name,
        b=e.patient.name,
        v=e.verb.base,
        d=e.verb.past,
        p=e.verb.participle.removesuffix(" by"),
        r=_adjuncts(e, rng),
    )
    return ended(words)


def _condition(f: Condition, rng: np.random.Generator) -> str:
    e = f.event
    a, b, v = e.agent.name, e.patient.name, e.verb
    rest = _adjuncts(e, rng)
    had = _HAD[f.condition]
    if f.met == "open":
        return ended(
            pick(
                rng,
                [
                    f"if {f.condition}, {a} will {v.base} {b}{rest}",
                    f"{a} will {v.base} {b}{rest} if {f.condition}",
                    f"provided that {f.condition}, {a} will {v.base} {b}{rest}",
                    f"as soon as {f.condition}, {a} will {v.base} {b}{rest}",
                ],
            )
        )
    done = v.participle.removesuffix(" by")
    if f.met == "no":
        return ended(
            pick(
                rng,
                [
                    f"if {had}, {a} would have {done} {b}{rest}",
                    f"{a} would have {done} {b}{rest} if {had}",
                ],
            )
        )
    return ended(
        pick(rng, [f"since {had}, {a} {v.past} {b}{rest}", f"{a} {v.past} {b}{rest} because {had}"])
    )


def _cause(f: Cause, rng: np.random.Generator) -> str:
    one, two = event(f.cause, rng, plain=True), event(f.effect, rng, plain=True)
    return ended(
        pick(
            rng,
            [
                f"{two} because {one}",
                f"because {one}, {two}",
                f"{one}, and for that reason {two}",
                f"{two}; the reason was that {one}",
                f"{one}. As a result, {two}",
                f"the reason why {two} is that {one}",
            ],
        )
    )


def _order(f: Order, rng: np.random.Generator) -> str:
    one, two = event(f.first, rng), event(f.second, rng)
    return ended(
        pick(
            rng,
            [
                f"{one} before {two}",
                f"{two} after {one}",
                f"after {one}, {two}",
                f"before {two}, {one}",
                f"{one}, and later {two}",
            ],
        )
    )


_WORDS: dict[type, Callable[[Any, np.random.Generator], str]] = {
    Stated: _stated,
    Dated: _dated,
    Not: _not,
    Several: _several,
    Report: _report,
    Wish: _wish,
    Condition: _condition,
    Cause: _cause,
    Order: _order,
    Measure: amounts.measure,
    Compared: amounts.compared,
    Rule: amounts.rule,
    Member: amounts.member,
    Group: amounts.group,
    Quantified: amounts.quantified,
}


def tell(fact: Fact, rng: np.random.Generator) -> str:
    """Return a sentence of a passage."""
    return _WORDS[type(fact)](fact, rng)


def claim(fact: Fact, rng: np.random.Generator) -> str:
    """Return a statement; sometimes in the style of an answer, without its full stop."""
    text = _WORDS[type(fact)](fact, rng)
    return text.removesuffix(".") if rng.random() < 0.15 else text
