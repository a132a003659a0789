"""The second reader of claims: its options, and which statements it reads.

The second reader is a better and slower entailment model than the first. It does not read whole
passages but the windows that share most words with a claim
(:func:`trustassay.judging.passages.choose_windows`): the choice of the text matters more than the
choice of the model, and a local model takes seconds for each hundred tokens.
"""

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from trustassay.core.capabilities import Entailment, Models
from trustassay.core.event_loop import gather_all
from trustassay.errors import UsageError
from trustassay.judging.passages import PassageWindow, ask_reader
from trustassay.judging.readings import combine_readers

ROLE = "second"
"""The role of the second reader among the entailment models."""
PART_READ_BY_SECOND = "second"
"""The part of an assessment that counts the statements the second reader has read."""
REASON_READ_ALONE = "only the second reader read it: the first does not read its language"
REASON_UNMEASURED = "the quality of the second was not measured"
# "300" (answers), "25%" (of the answers), "600s" (seconds)
_BUDGET = re.compile(r"(\d+(?:\.\d+)?)\s*(%|s|)")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SecondReader:
    """The second reader as a metric uses it, for an answer that both readers read."""

    decides_alone: bool = False
    """Whether its probabilities count alone, and not those of both readers together."""

    async def judge(
        self, models: Models, windows: Sequence[PassageWindow], statement: str, first: Entailment
    ) -> Entailment:
        """Return the probabilities for a statement.

        Args:
            models: the models of the run.
            windows: the text to judge it by (:func:`trustassay.judging.passages.choose_windows`).
            statement: the statement.
            first: the first reader's probabilities.
        """
        premise = "\n".join(window.text for window in windows)
        second = await ask_reader(models, premise, statement, ROLE)
        return second if self.decides_alone else combine_readers(first, second)


@dataclass(frozen=True)
class SecondReaderOptions:
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
        # Parses the budget, so that a wrong one is reported before a run begins.
        _ = self.max_answers(1), self.seconds

    @property
    def _parsed_budget(self) -> tuple[float, str]:
        if self.second_budget is None:
            return 0.0, ""
        result = _BUDGET.fullmatch(self.second_budget.strip())
        number = float(result[1]) if result else 0.0
        if not result or not number or (result[2] == "%" and number > 100):
            message = "a number of answers, a share (25%) or seconds (600s)"
            raise UsageError(f"second_budget: expected {message}, got {self.second_budget!r}")
        return number, result[2]

    def max_answers(self, answers: int, other_answers: int = 0) -> int | None:
        """Return how many of some answers may be read; ``None`` without a limit in answers.

        Args:
            answers: the number of answers.
            other_answers: the number of other answers that share the budget. A budget that is a
                number of answers is divided in proportion.
        """
        number, unit = self._parsed_budget
        if unit == "%":
            return round(number / 100 * answers)
        # The budget is for all answers of a run, also those of other groups.
        of_all = answers / (answers + other_answers) if other_answers else 1
        return round(number * of_all) if number and not unit else None

    @property
    def seconds(self) -> float | None:
        """Seconds that reading may take; ``None`` without a limit in seconds."""
        number, unit = self._parsed_budget
        return number if unit == "s" else None

    def settings(self) -> dict[str, Any]:
        """Return the settings that are stored in ``run.json``."""
        return vars(self) | {}


async def read_deciding_statements(
    findings: Sequence[T],
    claims: Sequence[int],
    is_bad: Callable[[T], bool],
    judge_again: Callable[[int], Awaitable[T]],
) -> tuple[list[T], int]:
    """Let the second reader read the statements that decide whether an answer is flagged.

    It reads the bad statements first. If none of them stays bad, it reads all others as well. The
    answer is then good, or bad, by the verdict of both readers.

    Args:
        findings: the first reader's finding for each statement.
        claims: the indices of the statements that claim something.
        is_bad: whether a finding is a reason to flag the answer.
        judge_again: reads a statement by its index and returns the finding of both readers.

    Returns:
        The finding for each statement, and how many statements were read again.
    """
    result, read = list(findings), 0
    for places in (
        [place for place in claims if is_bad(findings[place])],
        [place for place in claims if not is_bad(findings[place])],
    ):
        for place, finding in zip(places, await gather_all(map(judge_again, places)), strict=True):
            result[place] = finding
        read += len(places)
        # One bad statement decides; the others need no second reading.
        if any(is_bad(result[place]) for place in claims):
            break
    return result, read
