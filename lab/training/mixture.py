"""What one run reads: so many pairs of each source, half of them supported where there are enough.

A mixture is written ``rows=4000,augmented=1000,gap=1200``: ``rows`` are the training rows of
version 3, ``augmented`` pairs made from them, ``worlds`` pairs of made-up worlds, ``written`` the
pairs of ``lab/training/written``, several times over when the count is above theirs, ``twins`` and
``texts`` some of its files, ``near`` sentences of their passages as they stand, the rest sources of
``lab.training.sets``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from lab.training import augment, data, sets, written
from lab.training.worlds import pairs as worlds

__all__ = ["draw", "halves", "parse", "repeated"]

PARTS = {"twins": "twin_*.txt", "texts": "text_*.txt"}
"""Names of files of ``lab/training/written``, by the part of a mixture that reads them alone."""
NAMES = ("rows", "augmented", "worlds", "written", *PARTS, "near", *sets.SOURCES)
AUGMENTED = ("long", "extract", "merge", "title", "chat")


def parse(text: str) -> dict[str, int]:
    """Return counts by source of "gap=1200,hans=600"; ValueError when a part is not like that."""
    made: dict[str, int] = {}
    for part in filter(None, text.split(",")):
        name, _, count = part.partition("=")
        if not count.isdigit() or name not in NAMES:
            known = ", ".join(NAMES)
            raise ValueError(f"{part!r} is no part of a mixture; expected NAME=COUNT of {known}")
        made[name] = int(count)
    return made


def halves(rows: Sequence[data.Pair], count: int, rng: np.random.Generator) -> list[data.Pair]:
    """Return up to ``count`` rows, half of them supported; what one half lacks the other fills."""
    order = [rows[i] for i in rng.permutation(len(rows))]
    supported = [row for row in order if row.label == 0]
    others = [row for row in order if row.label != 0]
    first = min(len(supported), max(count // 2, count - len(others)))
    return supported[:first] + others[: count - first]


def repeated(rows: Sequence[data.Pair], count: int, rng: np.random.Generator) -> list[data.Pair]:
    """Return ``count`` rows, premise by premise in a drawn order; when all are read, once more."""
    premises: dict[str, list[data.Pair]] = {}
    for row in rows:
        premises.setdefault(row.premise, []).append(row)
    parts = list(premises.values())
    made: list[data.Pair] = []
    while len(made) < count:
        made += [row for i in rng.permutation(len(parts)) for row in parts[i]]
    return made[:count]


def draw(mixture: Mapping[str, int], seed: int) -> list[data.Pair]:
    """Return the pairs of a mixture; the same seed gives the same pairs."""
    made: list[data.Pair] = []
    for name, count in mixture.items():
        rng = np.random.default_rng([seed, 7, *name.encode()])
        if name == "worlds":
            made += worlds.build(count, seed)
        elif name == "written":
            made += repeated(written.rows(), count, rng)
        elif name in PARTS:
            made += repeated(written.rows(PARTS[name]), count, rng)
        elif name == "near":
            made += repeated(written.near_copies(written.rows(), seed), count, rng)
        elif name in {"rows", "augmented"}:
            train, _ = data.split(data.training_rows())
            made += (
                augment.build(train, AUGMENTED, count, seed)
                if name == "augmented"
                else [train[i] for i in rng.permutation(len(train))[:count]]
            )
        else:
            made += halves(sets.rows(name), count, rng)
    return made
