"""The rules of a gate: what they ask, how they are decided, and their results.

A rule fails if the figure is on the wrong side of its line beyond chance. All rules of one gate
call are tested together: their p-values are corrected for their number (Holm 1979), so that a run
that is no worse fails in at most 2.5 of 100 cases, however many rules there are.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import NormalDist
from typing import Any, Literal

from trustassay.compare.answer_changes import AnswerChanges
from trustassay.compare.figure_changes import FigureChange
from trustassay.compare.outcome_changes import ONE_SIDED, OutcomeChange
from trustassay.core.outcome import Outcomes
from trustassay.errors import UsageError
from trustassay.statistics.intervals import Interval
from trustassay.statistics.resampling import holm
from trustassay.workflows.json_form import as_json, fields_as_json

MOST_TIMES = 100
"""Times the questions of a run up to which it is said how many more would decide a rule."""
Result = Literal["pass", "fail", "undecided", "untestable"]
RESULTS: Sequence[Result] = ("fail", "untestable", "undecided", "pass")
"""The results of a rule, the worst first."""


@dataclass(frozen=True)
class Bound:
    """A figure by its dotted name, and what it has to be: at least or at most a value.

    percent: the value was given with a per cent sign.
    """

    name: str
    value: float
    at_least: bool
    percent: bool = False

    @property
    def option(self) -> str:
        """The option that gives it, for messages."""
        return "--min" if self.at_least else "--max"


@dataclass(frozen=True)
class Allowance:
    """How many answers: a number, or a percentage of those that there are."""

    value: float = 0.0
    percent: bool = False

    def of(self, total: int) -> float:
        """Return the number of answers out of so many."""
        return self.value / 100 * total if self.percent else self.value

    def __str__(self) -> str:
        return f"{self.value:g}{' %' if self.percent else ''}"


@dataclass(frozen=True)
class Earlier:
    """A run that this one must not be worse than."""

    path: Path
    figures: Sequence[str] = ()
    """Dotted names, METRIC.FIGURE, that must not be worse besides the shares of all questions."""
    margin: float = 0.0
    """How much worse is tolerated: points of a share, per cent of a figure's range; below 100."""
    missing: Allowance = Allowance()
    """Answers of the earlier run that may have no partner."""
    other_judge: bool = False
    """Whether a metric's options and models may differ between the runs."""

    def __post_init__(self) -> None:
        if not 0 <= self.margin < 100:
            raise UsageError(f"--margin: expected 0 to below 100, got {self.margin:g}")


@dataclass(frozen=True)
class Check:
    """One rule and its result."""

    name: str
    """The figure, or what it is of the earlier run that is checked."""
    rule: str
    """What is asked, in words."""
    value: float | None
    """The figure, or its change since the earlier run; ``None`` where it has none."""
    interval: Interval | None
    """The 95 % interval of ``value``."""
    line: float
    """What ``value`` is compared with."""
    result: Result
    why: str
    """The result in words."""
    unit: str = ""
    before_after: tuple[float, float] | None = None
    """The figure of the earlier run and of this one, where ``value`` is their difference."""
    n: int = 0
    """Independent questions, or labels, behind ``value``; 0 where more would not decide it."""
    unit_of_n: str = "question"
    """What ``n`` counts."""
    advice: str = ""
    """What would decide a rule that is undecided."""
    fail_p: float | None = None
    """One-sided, that the figure is on the right side; ``None`` where no chance is involved."""
    corrected_p: float | None = None
    """``fail_p`` corrected for all rules of the gate call."""

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        names = ("name", "rule", "value", "line", "result", "why", "advice", "unit", "interval")
        tested = () if self.fail_p is None else ("fail_p", "corrected_p")
        pair = () if self.before_after is None else ("before_after",)
        return fields_as_json(self, *names, *pair, *tested)


@dataclass(frozen=True)
class Against:
    """What changed since an earlier run: outcomes, figures and answers by metric."""

    path: Path
    outcomes: Mapping[str, Sequence[OutcomeChange]]
    figures: Mapping[str, Mapping[str, FigureChange]]
    answers: Mapping[str, AnswerChanges]

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        outcomes = {
            name: {one.kind: one.to_dict() for one in ones} for name, ones in self.outcomes.items()
        }
        rest = fields_as_json(self, "figures", "answers")
        return {"run": str(self.path), "outcomes": outcomes, **rest}


@dataclass(frozen=True)
class Gate:
    """The result of all rules, the worst of :data:`RESULTS`.

    ``undecided``: chance may explain it. ``untestable``: nothing could decide the rule, as there
    are too few questions. A rule about a figure without a value fails: nothing was measured that
    could pass.
    """

    path: Path
    checks: Sequence[Check]
    outcomes: Mapping[str, Outcomes]
    """What became of all questions of the run, by metric."""
    against: Sequence[Against] = ()
    """The earlier runs."""
    notes: Sequence[str] = field(default=())
    """The pairs, what differs besides the answers, and what was left out."""

    @property
    def result(self) -> Result:
        """The worst result of a rule."""
        results = {check.result for check in self.checks}
        return next(one for one in RESULTS if one in results or one == "pass")

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "run": str(self.path),
            "result": self.result,
            "outcomes": as_json(self.outcomes),
            **fields_as_json(self, "checks", "against", "notes"),
        }


def parse_bound(text: str, *, at_least: bool) -> Bound:
    """Read ``NAME=VALUE`` or ``NAME=VALUE%``; UsageError: it is no such finite number."""
    name, _, number = text.rpartition("=")
    value, percent = _parse_number(number)
    if not name.strip() or value is None:
        option = "--min" if at_least else "--max"
        raise UsageError(
            f"{option}: expected FIGURE=NUMBER, as in --max failed=10% or "
            f"{option} faithfulness.mean=90%, got {text!r}"
        )
    return Bound(name.strip(), value, at_least, percent)


def parse_allowance(text: str) -> Allowance:
    """Read ``N`` or ``N%``; UsageError: it is neither, below 0, or above 100 %."""
    value, percent = _parse_number(text)
    if value is None or value < 0 or (percent and value > 100):
        raise UsageError(
            f"--allow-missing: expected a number of answers or a percentage, as in 3 or 2%, got "
            f"{text!r}"
        )
    return Allowance(value, percent)


def _parse_number(text: str) -> tuple[float | None, bool]:
    """Read a finite number, and whether a per cent sign follows it; ``None`` if it is none."""
    plain = text.strip()
    percent = plain.endswith("%")
    try:
        value = float(plain.removesuffix("%"))
    except ValueError:
        return None, percent
    return (value if math.isfinite(value) else None), percent


def is_right_side(interval: Interval, line: float, *, at_least: bool) -> bool:
    """Whether the whole interval is on the right side of the line, the line included."""
    return interval[0] >= line if at_least else interval[1] <= line


def p_of_side(value: float, interval: Interval, line: float, *, at_least: bool) -> float:
    """Return the one-sided p-value that a figure is on the right side of the line.

    Its scatter is taken from the 95 % interval, on the side where the line is: p is below 0.025
    where the whole interval is on the wrong side.
    """
    if not at_least:
        value, interval, line = -value, (-interval[1], -interval[0]), -line
    reach = interval[1] - value if value < line else value - interval[0]
    if reach <= 0:
        return 0.0 if value < line else 1.0
    z95 = NormalDist().inv_cdf(1 - ONE_SIDED)
    return 1 - NormalDist().cdf((line - value) / reach * z95)


def more_questions(times: float, n: int) -> int | None:
    """Return how many more questions make ``times`` as many as n, at least 1; ``None`` where that
    is more than :data:`MOST_TIMES` as many."""
    return max(1, math.ceil(n * times) - n) if times <= MOST_TIMES else None


def decided(checks: Sequence[Check]) -> list[Check]:
    """Return the checks with the results of those that are tested, all together (Holm 1979)."""
    tested = [check for check in checks if check.fail_p is not None]
    ordered = sorted(check.fail_p for check in tested if check.fail_p is not None)
    corrected = iter(holm([check.fail_p for check in tested if check.fail_p is not None]))
    result = []
    for check in checks:
        if check.fail_p is None:
            result.append(check)
            continue
        p = next(corrected)
        if p < ONE_SIDED:
            why = check.why or "the figure is on the wrong side of the line"
            why = f"{why}, {_p_in_words(p, len(tested))}"
            result.append(replace(check, result="fail", why=why, corrected_p=p))
            continue
        one = replace(check, corrected_p=p)
        if one.result == "undecided":
            # The level that this rule has to reach, if those with smaller p-values fail.
            level = ONE_SIDED / (len(tested) - ordered.index(check.fail_p))
            one = replace(one, advice=_advice(one, check.fail_p, level))
            if check.fail_p < ONE_SIDED or _is_clear(one):
                one = replace(one, why=f"it may be chance, {_p_in_words(p, len(tested))}")
        result.append(one)
    return result


def _is_clear(check: Check) -> bool:
    """Whether the whole interval is on one side of the line."""
    return check.interval is not None and not check.interval[0] <= check.line <= check.interval[1]


def _advice(check: Check, fail_p: float, level: float) -> str:
    """Return how many more questions would decide a rule, if the value stays as it is.

    On the wrong side z, which grows as sqrt(n), has to reach the level that is corrected for all
    rules. On the right side the interval, which narrows as 1 / sqrt(n), has to reach the line.
    """
    if check.value is None or check.interval is None or not check.n:
        return ""
    if fail_p < 0.5:
        z = NormalDist().inv_cdf
        side, times = "fail", (z(1 - level) / z(1 - fail_p)) ** 2
    else:
        apart = abs(check.value - check.line)
        end = check.interval[1] if check.line > check.value else check.interval[0]
        side, times = "pass", ((end - check.value) / apart) ** 2 if apart else math.inf
    more = more_questions(times, check.n)
    if more is None:
        return ""
    number = f"about {more:,} more {check.unit_of_n}{'s decide' if more > 1 else ' decides'} it"
    if check.before_after is None:
        return f"{number} ({side}, at the same value)"
    change = f"{check.value:+.1f} points" if check.unit == "%" else f"{check.value:+.3g}"
    return f"{number} ({side}, if the difference stays {change})"


def _p_in_words(p: float, rules: int) -> str:
    corrected = f", corrected for {rules} rules" if rules > 1 else ""
    # The p-value of an interval is 1 less a number near 1, so it may round to 0.
    return f"p = {p:.2g}{corrected}" if p else f"p < 1e-15{corrected}"
