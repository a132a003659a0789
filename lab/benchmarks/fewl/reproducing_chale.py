"""CHALE's figures that were calculated apart, by random stand-ins for references."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from lab.benchmarks.fewl.cosines import (
    FORMS,
    NAMES,
    Embed,
    Figure,
    Floats,
    likeness,
    neighbours_in,
    won,
)
from lab.benchmarks.fewl.sets import CHALE_KINDS, MIXED, PAIRS, Places, chale_columns, shown
from trustassay.metrics.fewl import maths
from trustassay.statistics.resampling import generator

DRAWS = 10


class _Chale:
    """Answers, stand-ins for references, and what each kind of answer scores by them."""

    def __init__(self, embed: Embed) -> None:
        columns = chale_columns()
        self.near = neighbours_in(columns["Question"], embed)
        self.n = len(self.near)
        self.texts = {name: embed(columns[name]) for name in ("Short_ans", "Long_ans")}
        self.right = self.texts["Short_ans"]
        self.denied = embed([f"It is not {text}." for text in columns["Short_ans"]])
        self.answers = {kind: embed(columns[kind]) for kind in CHALE_KINDS}
        self.rows = np.arange(self.n)[:, None]
        self.alike = {
            (kind, name): (answers @ said.T).astype(float)
            for kind, answers in self.answers.items()
            for name, said in self.texts.items()
        }

    def scores(
        self,
        given: Places,
        weights: Floats | None = None,
        *,
        form: maths.Form | None,
        divergence: maths.Divergence = "tv",
        said: str = "Short_ans",
        counting: NDArray[np.bool_] | None = None,
    ) -> tuple[float, float]:
        """Return how often the right answer is above the half and the wholly wrong one, in %.

        ``form`` ``None`` is equation 1 without a penalty.
        """
        weights = maths.uniform_weights(np.ones(given.shape)) if weights is None else weights
        found = []
        for kind in CHALE_KINDS:
            alike = self.alike[kind, said]
            penalty = None
            if form is not None:
                penalty = likeness(partial(self._at, alike, given), self.near)
            found.append(
                maths.score(
                    alike[self.rows, given],
                    weights,
                    penalty,
                    divergence=divergence,
                    form=form or "eq1",
                    present=counting,
                )
            )
        return won(found[0], found[1]), won(found[0], found[2])

    def _at(self, alike: Floats, given: Places, places: Places) -> Floats:
        return np.asarray(alike[self.rows, given[places]])

    def ours(self, given: Places) -> Floats:
        """Return the expertise by the stand-ins for pairs of a generator."""
        near = self.near[:, :PAIRS]
        there = (near >= 0)[:, None, :]
        said = self.right[given]
        to_denied = np.einsum("nrd,nkd->nrk", said, self.denied[near])
        to_wrong = np.einsum("nrd,nkd->nrk", said, self.right[near])
        best = [np.where(there, one, -np.inf).max(axis=2) for one in (to_denied, to_wrong)]
        return np.where(there.any(axis=2), best[0] - best[1], 0.0).astype(float)

    def ideal(self, given: Places) -> Floats:
        """Return the expertise by the labelled answers."""
        said = self.right[given]
        right, half, whole = (
            np.einsum("nrd,nd->nr", said, self.answers[kind]) for kind in CHALE_KINDS
        )
        return np.asarray(right - np.maximum(half, whole), dtype=float)


def chale(embed: Embed) -> Iterator[Figure]:
    """Yield CHALE's figures: first 940 rows, K = 10, total variation."""
    data = _Chale(embed)
    own = np.arange(data.n)[:, None]
    lazy = np.where(data.near[:, :1] >= 0, data.near[:, :1], own)

    def both(
        name: str, specified: tuple[float, float], found: Sequence[tuple[float, float]]
    ) -> Iterator[Figure]:
        values = np.array(found)
        for column, other in enumerate(("half", "whole")):
            deviation = float(values[:, column].std(ddof=1)) if len(values) > 1 else 0.0
            mean = float(values[:, column].mean())
            yield Figure(f"CHALE, {name}; {other}", specified[column], mean, deviation)

    def forms(
        name: str,
        given: Sequence[Places],
        *specified: tuple[float, float],
        weigh: Callable[[Places], Floats] | None = None,
    ) -> Iterator[Figure]:
        weights = [weigh(one) if weigh else None for one in given]
        for shown_as, form, expected in zip(NAMES, FORMS, specified, strict=False):
            found = [data.scores(g, w, form=form) for g, w in zip(given, weights, strict=True)]
            yield from both(f"{name}, {shown_as}", expected, found)

    for said, name, *specified in (
        ("Short_ans", "short answer", (98.40, 97.34), (98.94, 97.77)),
        ("Long_ans", "long answer", (97.02, 97.45), (97.55, 97.98)),
    ):
        for shown_as, form, expected in zip(NAMES, FORMS, specified, strict=False):
            found = data.scores(own, form=form, said=said)
            yield from both(f"{name}, {shown_as}", expected, [found])
    yield from forms(
        "5 lazy", [np.repeat(lazy, 5, axis=1)], (55.96, 53.40), (28.94, 27.55), (41.28, 40.53)
    )
    for accuracy, *specified in (
        (0.25, (79.36, 77.34), (42.66, 42.34), (69.68, 70.53)),
        (0.50, (91.06, 89.89), (58.51, 58.72), (89.36, 87.45)),
        (0.75, (96.91, 95.96), (76.28, 76.17), (97.34, 95.64)),
    ):
        yield from forms(f"5 of accuracy {accuracy}", _draws([accuracy] * 5, lazy), *specified)
    mixed = _draws(MIXED, lazy)
    one = [given[:, 2:3] for given in mixed]
    yield from forms("mixed, one of .5", one, (76.60, 74.26), (72.13, 70.53))
    yield from forms("mixed, uniform", mixed, (92.23, 90.43), (59.26, 59.68), (90.53, 88.72))
    others: Sequence[tuple[maths.Divergence, tuple[float, float]]] = (
        ("kl", (84.26, 83.40)),
        ("js", (55.96, 56.06)),
    )
    for divergence, expected in others:
        values = [data.scores(given, form="eq1", divergence=divergence) for given in mixed]
        yield from both(f"mixed, uniform, eq1 {divergence}", expected, values)
    yield from forms(
        "mixed, ours",
        mixed,
        (93.40, 91.06),
        (60.53, 60.85),
        (91.60, 89.57),
        weigh=lambda given: maths.softmax_weights(data.ours(given)),
    )
    best = [maths.find_best_reference(data.ours(given)) for given in mixed]
    values = [
        data.scores(given, b.astype(float), form=None, counting=b)
        for given, b in zip(mixed, best, strict=True)
    ]
    yield from both("mixed, single best, no penalty", (94.79, 92.34), values)
    yield from forms(
        "mixed, ideal",
        mixed,
        (95.21, 93.83),
        (65.85, 66.28),
        (94.36, 93.30),
        weigh=lambda given: maths.softmax_weights(data.ideal(given)),
    )
    yield from forms(
        "mixed, ideal, temperature .1",
        mixed,
        (97.23, 96.70),
        (78.83, 80.21),
        weigh=lambda given: maths.softmax_weights(data.ideal(given), 0.1),
    )
    yield from forms(
        "5 of accuracy .5, wrong of 10 neighbours",
        _draws([0.5] * 5, data.near),
        (95.21, 94.26),
        (64.04, 64.26),
        (95.11, 94.79),
    )


def _draws(accuracies: Sequence[float], near: Places) -> list[Places]:
    rngs = (generator(draw, "stand-ins", str(accuracies)) for draw in range(DRAWS))
    return [shown(accuracies, near, rng) for rng in rngs]
