"""A second reader of statements: what it is shown, and the verdict of both readers.

The second reader is a better and slower entailer than the first. It is not shown whole passages but
the windows of them that share most words with a statement: what is read matters more than who
reads, and a local model takes seconds for each hundred tokens.
"""

import math
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from trustassay.capabilities import Entailment, Models
from trustassay.errors import UsageError
from trustassay.event_loop import all_of
from trustassay.texts import content_words

ROLE = "second"
"""The role of the second reader among entailers."""
READ = "second"
"""The part of an assessment that counts the statements which the second reader read."""
READ_ALONE = "the second reader alone read it: the first does not read its language"
UNMEASURED = "how well the second does was not measured"
WINDOWS = 3
WORDS = 60
"""Words of a window, unless its one sentence has more."""
SURE = 1e-4
"""Probabilities are kept so far from 0 and 1 where log-odds are taken."""
_BUDGET = re.compile(r"(\d+(?:\.\d+)?)\s*(%|s|)")
T = TypeVar("T")


class Window(NamedTuple):
    """Sentences ``start`` to ``end`` (without it) of a passage, their content words, and their
    text; ``passage`` counts from 0.
    """

    passage: int
    start: int
    end: int
    words: frozenset[str]
    text: str

    def meets(self, other: "Window") -> bool:
        """Whether both have a sentence in common."""
        same = self.passage == other.passage
        return same and self.start < other.end and other.start < self.end


def windows(
    statement: str, passages: Sequence[Sequence[str]], most: int = WINDOWS, longest: int = WORDS
) -> list[Window]:
    """Return up to ``most`` windows of passages to judge a statement by, in reading order.

    A window is one or more sentences in a row of one passage, of up to ``longest`` words together.
    One after another that is taken which adds most content words of the statement to those that
    are held already; of equal ones that which holds most, then the first. No two have a sentence
    in common. Where no window holds any, the first one is taken.

    Args:
        statement: what is judged.
        passages: the sentences of each passage.
    """
    wanted = frozenset(content_words(statement))
    left = [one for number, own in enumerate(passages) for one in _cut(number, own, longest)]
    chosen: list[Window] = []
    held: frozenset[str] = frozenset()
    while left and len(chosen) < most:
        best = max(left, key=lambda one: (len(one.words & wanted - held), len(one.words & wanted)))
        if chosen and not best.words & wanted:
            break
        chosen.append(best)
        held |= best.words & wanted
        left = [one for one in left if not one.meets(best)]
    return sorted(chosen)


def _cut(number: int, sentences: Sequence[str], longest: int) -> Iterable[Window]:
    """Yield the windows of one passage: from each sentence on as many as there is room for."""
    lengths = [len(one.split()) for one in sentences]
    words = [frozenset(content_words(one)) for one in sentences]
    end = 0
    for start in range(len(sentences)):
        end = max(end, start + 1)
        while end < len(sentences) and sum(lengths[start : end + 1]) <= longest:
            end += 1
        held = frozenset().union(*words[start:end])
        yield Window(number, start, end, held, " ".join(sentences[start:end]))
        if end == len(sentences):
            return


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
        self, models: Models, shown: Sequence[Window], statement: str, first: Entailment
    ) -> Entailment:
        """Return the verdict on a statement, given that of the first reader.

        Args:
            shown: what it is judged by (:func:`windows`).
        """
        premise = "\n".join(one.text for one in shown)
        second = await models.entail(premise, statement, role=ROLE)
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
    found: Sequence[T],
    claims: Sequence[int],
    bad: Callable[[T], bool],
    again: Callable[[int], Awaitable[T]],
) -> tuple[list[T], int]:
    """Let the second reader read the statements of an answer that decide on it.

    These are the bad ones, and if none of them stays bad, all others: then the answer is good by
    both readers, or bad by both.

    Args:
        found: what the first reader found of each statement.
        claims: the places of those that claim anything.
        bad: whether it is a reason to look at the answer.
        again: reads a statement by its place, and returns what both found.

    Returns:
        What was found of each statement, and how many of them were read again.
    """
    result, read = list(found), 0
    for places in (
        [place for place in claims if bad(found[place])],
        [place for place in claims if not bad(found[place])],
    ):
        for place, one in zip(places, await all_of(map(again, places)), strict=True):
            result[place] = one
        read += len(places)
        if any(bad(result[place]) for place in claims):
            break
    return result, read
