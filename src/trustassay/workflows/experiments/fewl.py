"""The FEWL paper's measurements of single answers: pairs, and the best answer of a question.

Wei et al. 2024: Tables 1, 2, 8, 10, 11 and 12 (pairs), and 3 and 9 (the best answer).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from trustassay.data.records import InputError
from trustassay.workflows.experiments.answers import Answer, Records, answers_of, read_records
from trustassay.workflows.experiments.comparing import INTERVALS, Unit, outcome_rows, result_of
from trustassay.workflows.experiments.measuring import Measured, Setup, measure
from trustassay.workflows.experiments.results import Cell, Result

__all__ = ["best", "pairs"]

Floats = NDArray[np.float64]
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
        As :func:`~trustassay.workflows.experiments.measuring.measure`.
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
