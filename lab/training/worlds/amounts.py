"""Amounts, rules and groups in words, each in several ways."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lab.training.worlds.facts import Compared, Group, Measure, Member, Quantified, Rule
from lab.training.worlds.words import ACTS

__all__ = [
    "capital",
    "compared",
    "ended",
    "group",
    "listed",
    "measure",
    "member",
    "number",
    "pick",
    "quantified",
    "rule",
]

_GERUND = dict(ACTS)
_UNIT = {
    "metres": "m",
    "kilometres": "km",
    "centimetres": "cm",
    "millimetres": "mm",
    "grams": "g",
    "kilograms": "kg",
    "litres": "l",
    "millilitres": "ml",
    "minutes": "min",
    "hours": "h",
}


def pick(rng: np.random.Generator, options: Sequence[str]) -> str:
    """Return one of the options."""
    return options[int(rng.integers(len(options)))]


def capital(text: str) -> str:
    """Return the text with a capital letter at its start."""
    return text[:1].upper() + text[1:]


def ended(text: str) -> str:
    """Return the text as a sentence."""
    return capital(text) + "."


def listed(names: Sequence[str], word: str = "and") -> str:
    """Return "A, B and C"."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {word} {names[-1]}"


def number(amount: float, rng: np.random.Generator) -> str:
    """Return digits without needless zeros, half of the time with a comma for thousands."""
    text = f"{amount:,.6f}" if rng.random() < 0.5 else f"{amount:.6f}"
    return text.rstrip("0").rstrip(".")


def _quantity(f: Measure, rng: np.random.Generator) -> str:
    short = _UNIT.get(f.unit)
    shown = short if short and rng.random() < 0.4 else f.unit
    return f"{number(f.amount, rng)} {shown}"


_MEASURES = {
    "length": [
        "{t} is {q} long",
        "{t} has a length of {q}",
        "the length of {t} is {q}",
        "{t} measures {q}",
    ],
    "mass": ["{t} weighs {q}", "{t} has a weight of {q}", "the weight of {t} is {q}"],
    "volume": ["{t} holds {q}", "{t} has room for {q}", "the capacity of {t} is {q}"],
    "time": ["{t} runs for {q}", "{t} has a running time of {q}", "the running time of {t} is {q}"],
    "money": ["{t} costs {q}", "{t} is sold for {q}", "the price of {t} is {q}"],
}
_MORE = {
    "length": ["{m} is longer than {l}", "{l} is shorter than {m}"],
    "mass": ["{m} is heavier than {l}", "{l} is lighter than {m}", "{m} weighs more than {l}"],
    "volume": ["{m} holds more than {l}", "{l} has less room than {m}"],
    "time": ["{m} runs longer than {l}", "{l} has a shorter running time than {m}"],
    "money": [
        "{m} is more expensive than {l}",
        "{l} is cheaper than {m}",
        "{m} costs more than {l}",
    ],
}


def measure(f: Measure, rng: np.random.Generator) -> str:
    """Return that a thing has an amount."""
    return ended(pick(rng, _MEASURES[f.quantity]).format(t=f.thing, q=_quantity(f, rng)))


def compared(f: Compared, rng: np.random.Generator) -> str:
    """Return which of two things has more."""
    return ended(pick(rng, _MORE[f.quantity]).format(m=f.more, l=f.less))


def rule(f: Rule, rng: np.random.Generator) -> str:
    """Return a rule with its exceptions."""
    who, noun = listed(f.exceptions), _GERUND[f.act]
    word = pick(rng, ["except", "apart from", "with the exception of", "other than", "but not"])
    if f.allowed:
        return ended(
            pick(
                rng,
                [
                    f"everyone may {f.act}, {word} {who}",
                    f"all may {f.act} {word} {who}",
                    f"{noun} is open to all, {word} {who}",
                    f"you may {f.act} unless you are one of the {who}",
                    f"anyone can {f.act}. {capital(who)} cannot",
                ],
            )
        )
    word = word if word != "but not" else "save for"
    return ended(
        pick(
            rng,
            [
                f"nobody may {f.act}, {word} {who}",
                f"{noun} is forbidden to all {word} {who}",
                f"only {who} may {f.act}",
                f"{noun} is not allowed. {capital(who)} are exempt",
                f"no one but {who} can {f.act}",
            ],
        )
    )


def member(f: Member, rng: np.random.Generator) -> str:
    """Return what is allowed in one case."""
    if f.allowed:
        return ended(
            pick(
                rng,
                [
                    f"{f.case} may {f.act}",
                    f"{f.case} are allowed to {f.act}",
                    f"{_GERUND[f.act]} is allowed for {f.case}",
                    f"{f.case} can {f.act}",
                ],
            )
        )
    return ended(
        pick(
            rng,
            [
                f"{f.case} may not {f.act}",
                f"{f.case} are not allowed to {f.act}",
                f"{_GERUND[f.act]} is forbidden for {f.case}",
                f"{f.case} cannot {f.act}",
            ],
        )
    )


def group(f: Group, rng: np.random.Generator) -> str:
    """Return how many of a group have a property."""
    if f.count in (0, f.total):
        word = pick(
            rng, ["all", f"all {f.total}"] if f.count else ["none", f"none of the {f.total}"]
        )
        head = f"{word} {'' if 'of the' in word else 'of the '}{f.group}"
        return ended(f"{head} {f.has}")
    return ended(
        pick(
            rng,
            [
                f"{f.count} of the {f.total} {f.group} {f.has}",
                f"of the {f.total} {f.group}, {f.count} {f.has}",
                f"there are {f.total} {f.group}, and {f.count} of them {f.has}",
            ],
        )
    )


def quantified(f: Quantified, rng: np.random.Generator) -> str:
    """Return the same with a quantifier."""
    options = {
        "all": [
            "all {g} {h}",
            "every one of the {g} counts: all {h}",
            "the {g} {h} without exception",
        ],
        "not all": ["not all {g} {h}", "some of the {g} are not among those that {h}"],
        "some": ["some of the {g} {h}", "at least one of the {g} is among those that {h}"],
        "none": ["none of the {g} {h}", "not a single one of the {g} is among those that {h}"],
        "most": ["most of the {g} {h}", "more than half of the {g} {h}"],
        "fewer than half": ["fewer than half of the {g} {h}", "only a minority of the {g} {h}"],
        "more than": ["more than {n} of the {g} {h}"],
        "exactly": [
            "{n} of the {g} {h}",
            "exactly {n} of the {g} {h}",
            "the number of {g} that {h} is {n}",
        ],
        "lacking": ["{n} of the {g} are not among those that {h}", "all but {n} of the {g} {h}"],
    }[f.quantifier]
    return ended(pick(rng, options).format(g=f.group, h=f.has, n=f.number))
