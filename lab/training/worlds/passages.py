"""Told facts as a text: prose, news, a message, a dialogue, a list, a table."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

import numpy as np

from lab.training.worlds.amounts import number, pick
from lab.training.worlds.facts import Measure
from lab.training.worlds.words import Names

__all__ = ["FORMS", "passage", "table"]

Form = Callable[[Sequence[str], np.random.Generator], str]


def prose(sentences: Sequence[str], rng: np.random.Generator) -> str:
    """Return the sentences one after another, some with a word that joins them."""
    joins = ("", "", "", "Moreover, ", "Meanwhile, ", "In addition, ", "It is also known that ")
    made = [sentences[0]]
    for sentence in sentences[1:]:
        join = pick(rng, joins)
        made.append(
            join + (sentence[:1].lower() + sentence[1:] if _plain(join, sentence) else sentence)
        )
    return " ".join(made)


def _plain(join: str, sentence: str) -> bool:
    """Return whether the sentence begins with a small word that a joining word makes lower case."""
    return bool(join) and sentence.split(maxsplit=1)[0] in {
        "The",
        "If",
        "Since",
        "She",
        "He",
        "After",
        "Before",
    }


def news(sentences: Sequence[str], rng: np.random.Generator) -> str:
    """Return the sentences after a place, as agencies write."""
    town = Names(rng).town()
    return f"{town.upper() if rng.random() < 0.5 else town} - {' '.join(sentences)}"


def message(sentences: Sequence[str], rng: np.random.Generator) -> str:
    """Return an e-mail or a note."""
    start = pick(
        rng, ["Hi all, ", "Dear colleagues,\n", "Just a short note. ", "Subject: news\n\n", "FYI: "]
    )
    end = pick(rng, ["", " Best wishes", " Thanks!", "\n\nSee you on Monday."])
    return start + " ".join(sentences) + end


def dialogue(sentences: Sequence[str], rng: np.random.Generator) -> str:
    """Return turns of two speakers; the questions say nothing."""
    one, two = pick(
        rng, ["A:/B:", "Host:/Guest:", "Agent:/Customer:", "Q:/A:", "Interviewer:/Witness:"]
    ).split("/")
    asks = [
        "What else do you know?",
        "Go on.",
        "And then?",
        "Could you tell me more?",
        "What happened?",
        "Anything else?",
        "I see.",
    ]
    gap = pick(rng, ["\n", " "])
    return gap.join(f"{one} {pick(rng, asks)}{gap}{two} {sentence}" for sentence in sentences)


def points(sentences: Sequence[str], rng: np.random.Generator) -> str:
    """Return a list with signs or numbers."""
    sign = pick(rng, ["-", "*", "•", "1"])
    heads = [f"{n}." if sign == "1" else sign for n in range(1, len(sentences) + 1)]
    return "\n".join(f"{head} {sentence}" for head, sentence in zip(heads, sentences, strict=True))


def titled(sentences: Sequence[str], rng: np.random.Generator) -> str:
    """Return prose below a line with a title, as retrieved passages have it."""
    return f"Title: {Names(rng).town()}\n{prose(sentences, rng)}"


FORMS: dict[str, tuple[Form, float]] = {
    "prose": (prose, 0.45),
    "news": (news, 0.12),
    "message": (message, 0.12),
    "dialogue": (dialogue, 0.12),
    "points": (points, 0.12),
    "titled": (titled, 0.07),
}
"""Each form and its share."""


def passage(sentences: Sequence[str], rng: np.random.Generator) -> str:
    """Return the sentences in one of the forms."""
    names = list(FORMS)
    shares = np.array([share for _, share in FORMS.values()])
    form, _ = FORMS[names[int(rng.choice(len(names), p=shares / shares.sum()))]]
    return form(sentences, rng)


def table(measures: Sequence[Measure], rng: np.random.Generator) -> str:
    """Return rows of things with a column for each quantity, in one of five layouts."""
    things = list(dict.fromkeys(m.thing for m in measures))
    columns = list(dict.fromkeys((m.quantity, m.unit) for m in measures))
    cells = {(m.thing, m.quantity): number(m.amount, rng) for m in measures}
    called = {"time": "running time", "money": "price", "mass": "weight", "volume": "capacity"}
    heads = [f"{called.get(q, q)} ({unit})" for q, unit in columns]
    rows = [[cells[thing, q] for q, _ in columns] for thing in things]
    names = [thing.removeprefix("the ") for thing in things]
    way = pick(rng, ["pipes", "csv", "lines", "json", "tabs"])
    if way == "json":
        made = [
            {"item": n} | dict(zip(heads, row, strict=True))
            for n, row in zip(names, rows, strict=True)
        ]
        return json.dumps(made)
    if way == "lines":
        return "\n".join(
            f"{n}: " + ", ".join(f"{h} {c}" for h, c in zip(heads, row, strict=True))
            for n, row in zip(names, rows, strict=True)
        )
    sign = {"pipes": " | ", "csv": ";", "tabs": "\t"}[way]
    lines = [["item", *heads], *([n, *row] for n, row in zip(names, rows, strict=True))]
    return "\n".join(sign.join(line) for line in lines)
