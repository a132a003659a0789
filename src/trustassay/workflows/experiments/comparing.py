"""What all variants of a score make of the same comparisons, beside length and chance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from trustassay.sample import Sample
from trustassay.workflows.experiments.measuring import Measured, Setup
from trustassay.workflows.experiments.results import Cell, Result, Row, shares
from trustassay.workflows.experiments.variants import scores_of, variants_of

__all__ = ["INTERVALS", "LENGTH", "Scored", "Unit", "outcome_rows", "result_of", "scored_variants"]

Floats = NDArray[np.float64]
LENGTH = "length: the shorter"
INTERVALS = "95 % intervals over questions. A tie is no win."


@dataclass(frozen=True)
class Unit:
    """A question with comparisons of its answers, by their places.

    first, second: which answer should score higher than which. together: whether all comparisons
    have to hold; else the share of them counts. number: of the question, where a column has several
    units of it.
    """

    first: NDArray[np.int64]
    second: NDArray[np.int64]
    together: bool = False
    number: int = -1

    @classmethod
    def pairs(cls, right: Sequence[int], wrong: Sequence[int], number: int = -1) -> Self:
        """Every right answer against every wrong one."""
        grid = np.array([(i, j) for i in right for j in wrong], dtype=np.int64)
        return cls(grid[:, 0], grid[:, 1], number=number)

    @classmethod
    def highest(cls, best: int, others: Sequence[int]) -> Self:
        """One answer against all others at once."""
        return cls(np.full(len(others), best), np.array(others), together=True)

    def outcome(self, scores: Floats) -> tuple[float, float]:
        """Return what is won and what is tied, from 0 to 1."""
        apart = scores[self.first] - scores[self.second]
        if self.together:
            least = apart.min()
            return float(least > 0), float(least == 0)
        return float((apart > 0).mean()), float((apart == 0).mean())


@dataclass(frozen=True)
class Scored:
    """The scores of the kept answers, shape (n,), under one rule, and what it is."""

    name: str
    scores: Floats
    about: Mapping[str, Any]
    tables: tuple[int, ...] = ()


def scored_variants(
    measured: Measured, samples: Sequence[Sample], tables: Sequence[int]
) -> list[Scored]:
    """Return length as a rule, and every variant by every similarity.

    tables: those of the paper that the experiment belongs to.
    """
    lengths = np.array([-float(len(one.response or "")) for one in samples])
    found = [Scored(LENGTH, lengths, {"rule": "length"})]
    several = len(measured.numbers) > 1
    for similarity, numbers in measured.numbers.items():
        place_of = {name: place for place, name in enumerate(numbers.ids)}
        places = [place_of[one.id] for one in samples]
        for variant in variants_of(numbers):
            name = f"{similarity}: {variant.name}" if several else variant.name
            about = {"similarity": similarity, **variant._asdict()}
            own = tuple(one for one in variant.tables if one in tables)
            scores = scores_of(variant, numbers)[places]
            found.append(Scored(name, scores, about, own))
    return found


def outcome_rows(
    measured: Measured,
    samples: Sequence[Sample],
    columns: Mapping[str, Sequence[Unit]],
    tables: Sequence[int],
    chance: Sequence[Cell],
    *,
    count: bool = False,
) -> list[Row]:
    """Return a row for each rule: the share of each column's units that it wins."""
    rules = scored_variants(measured, samples, tables)
    cells: list[list[Cell]] = []
    for units in columns.values():
        outcomes = np.array([[unit.outcome(one.scores) for unit in units] for one in rules])
        numbers = np.array([unit.number for unit in units], dtype=np.int64)
        cells.append(shares(outcomes[..., 0], outcomes[..., 1], numbers, count=count))
    rows = [Row("chance", chance, {"rule": "chance"})]
    for place, one in enumerate(rules):
        rows.append(Row(one.name, [column[place] for column in cells], one.about, one.tables))
    return rows


def result_of(
    experiment: str,
    title: str,
    columns: Sequence[str],
    rows: Sequence[Row],
    measured: Measured,
    setup: Setup,
    notes: Sequence[str],
) -> Result:
    """Return the result with what all experiments of the metric say."""
    first = next(iter(measured.numbers.values()))
    names = ", ".join(first.names[:10]) + (" ..." if len(first.names) > 10 else "")
    said = [
        *notes,
        f"References: {names}. `single` is {setup.single or 'the first that answered'}.",
        *measured.missing,
    ]
    if measured.left_out:
        reason = next(iter(measured.left_out.values()))
        said.append(f"{len(measured.left_out):,} answers are left out; the first: {reason}")
    settings = {
        "similarities": list(setup.similarities),
        "single": setup.single,
        "seed": setup.options.seed,
        **{
            name: getattr(setup.metric, name)
            for name in ("temperature", "neighbours", "max_similarity", "pairs", "answers")
        },
    }
    return Result(experiment, title, columns, rows, said, measured.left_out, settings)
