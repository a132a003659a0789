"""A second reader of claims, how much it reads, and the verdict of both readers.

The second reader is a better and slower entailer than the first. It is not shown whole passages but
their windows that share most words with a claim (:func:`trustassay.judging.passages.windows`): what
is read matters more than who reads, and a local model takes seconds for each hundred tokens.
"""

import math
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from trustassay.capabilities import Entailment, Models
from trustassay.errors import UsageError
from trustassay.event_loop import all_of
from trustassay.judging.passages import Window, read

ROLE = "second"
"""The role of the second reader among entailers."""
READ = "second"
"""The part of an assessment that counts the statements which the second reader read."""
READ_ALONE = "the second reader alone read it: the first does not read its language"
UNMEASURED = "how well the second does was not measured"
SURE = 1e-4
"""Probabilities are kept so far from 0 and 1 where log-odds are taken."""
_BUDGET = re.compile(r"(\d+(?:\.\d+)?)\s*(%|s|)")
T = TypeVar("T")


def combined(first: Entailment, second: Entailment) -> Entailment:
    """Return the probabilities of two readers together.

    The log-odds of entailment are the mean of theirs: weights fitted to judgements of people came
    out nearly equal (``benchmarks/second_reader.py``). What is left is divided between neutral and
    contradiction as the second reader divides it.
    """
    logit = (_logit(first.entailment) + _logit(second.entailment)) / 2
    entailment = 1 / (1 + math.exp(-logit))
    rest = second.neutral + second.contradiction
    against = second.contradiction / rest if rest else 0.0
    return Entailment(entailment, (1 - entailment) * (1 - against), (1 - entailment) * against)


def _logit(probability: float) -> float:
    p = min(max(probability, SURE), 1 - SURE)
    return math.log(p / (1 - p))


@dataclass(frozen=True, slots=True)
class SecondReader:
    """The second reader as a metric has it, for an answer that is read by both.

    alone: its verdict counts, and not that of both together.
    """

    alone: bool = False

    async def verdict(
        self, models: Models, windows: Sequence[Window], statement: str, first: Entailment
    ) -> Entailment:
        """Return the verdict on a statement, given that of the first reader.

        Args:
            windows: what it is judged by (:func:`windows`).
        """
        premise = "\n".join(one.text for one in windows)
        second = await read(models, premise, statement, ROLE)
        return second if self.alone else combined(first, second)


@dataclass(frozen=True)
class SecondOptions:
    """How much the second reader reads.

    second_share: of the answers, drawn at random, 0 to 1; 20 at least. second_budget: of all
    answers that it reads: ``300``, ``25%``, or ``600s`` for seconds; ``None``: what needs a look or
    is near the line, and what is in a language that it alone reads. second_alone: its verdicts
    count, and not those of both readers together.
    """

    second_share: float = 0.1
    second_budget: str | None = None
    second_alone: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.second_share <= 1:
            raise UsageError(f"second_share: expected 0 to 1, got {self.second_share:g}")
        _ = self.most(1), self.seconds

    @property
    def _amount(self) -> tuple[float, str]:
        if self.second_budget is None:
            return 0.0, ""
        result = _BUDGET.fullmatch(self.second_budget.strip())
        number = float(result[1]) if result else 0.0
        if not result or not number or (result[2] == "%" and number > 100):
            message = "a number of answers, a share (25%) or seconds (600s)"
            raise UsageError(f"second_budget: expected {message}, got {self.second_budget!r}")
        return number, result[2]

    def most(self, answers: int, beside: int = 0) -> int | None:
        """Return how many of the answers may be read, with so many others beside them: a number is
        shared out in proportion. ``None`` where it is not said.
        """
        number, unit = self._amount
        if unit == "%":
            return round(number / 100 * answers)
        of_all = answers / (answers + beside) if beside else 1
        return round(number * of_all) if number and not unit else None

    @property
    def seconds(self) -> float | None:
        """Return how long may be read."""
        number, unit = self._amount
        return number if unit == "s" else None

    def settings(self) -> dict[str, Any]:
        """Return what ``run.json`` holds."""
        return vars(self) | {}


async def read_again(
    findings: Sequence[T],
    claims: Sequence[int],
    bad: Callable[[T], bool],
    again: Callable[[int], Awaitable[T]],
) -> tuple[list[T], int]:
    """Let the second reader read the statements of an answer that decide on it.

    These are the bad ones, and if none of them stays bad, all others: then the answer is good by
    both readers, or bad by both.

    Args:
        findings: what the first reader found of each statement.
        claims: the places of those that claim anything.
        bad: whether it is a reason to look at the answer.
        again: reads a statement by its place, and returns what both found.

    Returns:
        What was found of each statement, and how many of them were read again.
    """
    result, read = list(findings), 0
    for places in (
        [place for place in claims if bad(findings[place])],
        [place for place in claims if not bad(findings[place])],
    ):
        for place, one in zip(places, await all_of(map(again, places)), strict=True):
            result[place] = one
        read += len(places)
        if any(bad(result[place]) for place in claims):
            break
    return result, read
