"""What all variants of a score make of the same comparisons, beside length and chance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from trustassay.data.records import InputError
from trustassay.sample import Sample
from trustassay_papers.experiments.answers import Answer, Records, answers_of, read_records
from trustassay_papers.experiments.measuring import Measured, Setup, measure, scores_of, variants_of
from trustassay_papers.experiments.results import Cell, Result, Row, shares

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


PAIRS = (1, 2, 8, 10, 11, 12)
BEST = (3, 9)
MOST_KINDS = 6
"""Kinds of wrong answers that have a column of their own."""


async def pairs(source: Path, out: Path, setup: Setup, records: Records) -> Result:
    """Hold the right answers to a question against its wrong ones, kind by kind.

    A question counts once in a column: with several pairs, by the share of them that the right
    answer wins. Of a question without responses the best answer is held against the first wrong
    one.

    Raises:
        InputError, BadInputError: the input cannot be read, or has no right and wrong answers.
        As :func:`~trustassay_papers.experiments.measuring.measure`.
    """
    answers = answers_of(read_records(source, records), records, every=False)
    samples = [one.sample for one in answers]
    with records.placing(samples):
        measured = await measure(samples, setup, out)
    kept = _kept(answers, measured)
    kinds: Sequence[str | None] = list(dict.fromkeys(one.kind for one in kept if not one.right))
    if len(kinds) > MOST_KINDS:
        kinds = [None]
    columns = {
        f"right > {kind or 'wrong'}": _pairs(kept, kind) for kind in kinds if _pairs(kept, kind)
    }
    if not columns:
        raise InputError("no question is left with a right and a wrong answer that have scores")
    chance = [Cell("50.0", {"value": 50.0}) for _ in columns]
    rows = outcome_rows(measured, [one.sample for one in kept], columns, PAIRS, chance)
    title = "Right answers that score strictly higher than wrong ones, in %"
    return result_of("fewl-pairs", title, list(columns), rows, measured, setup, [INTERVALS])


async def best(source: Path, out: Path, setup: Setup, records: Records) -> Result:
    """Count the questions whose best answer scores strictly higher than all their others.

    Raises:
        As :func:`pairs`.
    """
    answers = answers_of(read_records(source, records), records, every=True)
    samples = [one.sample for one in answers]
    with records.placing(samples):
        measured = await measure(samples, setup, out)
    kept = _kept(answers, measured)
    units, chances = [], []
    for places in _by_question(kept):
        first = [place for place in places if kept[place].best]
        others = [place for place in places if not kept[place].best]
        if first and others:
            units.append(Unit.highest(first[0], others))
            chances.append(1 / len(places))
    if not units:
        raise InputError("no question is left whose best answer and another one have scores")
    share = 100 * float(np.mean(chances))
    chance = Cell(
        f"{sum(chances):.1f} of {len(units)} ({share:.1f} %)",
        {"value": share, "count": sum(chances), "n": len(units)},
    )
    columns = {"best answer highest": units}
    rows = outcome_rows(
        measured,
        [one.sample for one in kept],
        columns,
        BEST,
        [chance],
        count=True,
    )
    title = "Questions whose best answer scores strictly highest"
    return result_of("fewl-best", title, list(columns), rows, measured, setup, [INTERVALS])


def _kept(answers: Sequence[Answer], measured: Measured) -> list[Answer]:
    """Return the answers that have numbers by every similarity."""
    return [one for one in answers if one.sample.id not in measured.left_out]


def _by_question(answers: Sequence[Answer]) -> list[list[int]]:
    found: dict[int, list[int]] = {}
    for place, one in enumerate(answers):
        found.setdefault(one.question, []).append(place)
    return list(found.values())


def _pairs(answers: Sequence[Answer], kind: str | None) -> list[Unit]:
    """Return the questions with right answers and wrong ones of a kind; ``None`` for all kinds."""
    units = []
    for places in _by_question(answers):
        right = [place for place in places if answers[place].right]
        wrong = [
            place
            for place in places
            if not answers[place].right and kind in (None, answers[place].kind)
        ]
        if right and wrong:
            units.append(Unit.pairs(right, wrong))
    return units
