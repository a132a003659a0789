"""The rules of a gate, how they are decided, and their results.

A rule fails if its figure is on the wrong side of the line by more than chance explains. All rules
of one gate call are tested together: their p-values are corrected for their number (Holm 1979), so
a run that is no worse fails in at most 2.5 of 100 cases, however many rules there are.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import NormalDist
from typing import Any, Literal

from trustassay.compare.changes import ONE_SIDED_LEVEL, AnswerChanges, FigureChange, OutcomeChange
from trustassay.core.json_form import as_json, fields_as_json
from trustassay.core.outcome import Outcomes
from trustassay.errors import UsageError
from trustassay.statistics.intervals import Interval
from trustassay.statistics.resampling import holm
from trustassay.text.numbers import amount, p_equation

MAX_TIMES_MORE = 100
"""Advice names a number of further questions up to this multiple of the present number."""
CheckResult = Literal["pass", "fail", "undecided", "untestable"]
CHECK_RESULTS: Sequence[CheckResult] = ("fail", "untestable", "undecided", "pass")
"""The results of a rule, the worst first."""


@dataclass(frozen=True)
class Bound:
    """A lower or an upper limit for a figure."""

    name: str
    """The dotted name of the figure, or of an outcome without its metric."""
    value: float
    """The limit, in the unit in which the user wrote it."""
    at_least: bool
    """Whether it is a lower limit (``--min``)."""
    percent: bool = False
    """Whether the user wrote the value with a per cent sign."""

    @property
    def option(self) -> str:
        """The option that sets this bound, for messages."""
        return "--min" if self.at_least else "--max"


@dataclass(frozen=True)
class Allowance:
    """A tolerated number of answers, absolute or as a percentage."""

    value: float = 0.0
    percent: bool = False
    """Whether ``value`` is a percentage of all answers."""

    def of(self, total: int) -> float:
        """Return the tolerated number out of ``total`` answers."""
        return self.value / 100 * total if self.percent else self.value

    def __str__(self) -> str:
        return f"{self.value:g}{' %' if self.percent else ''}"


@dataclass(frozen=True)
class EarlierRun:
    """An earlier run that this run must not be worse than, and how it is compared."""

    path: Path
    figures: Sequence[str] = ()
    """Dotted names, METRIC.FIGURE, that must not get worse, besides the shares of all questions."""
    margin: float = 0.0
    """How much worse is tolerated: points of a share, or per cent of a figure's range; 0 to <
    100."""
    missing: Allowance = Allowance()
    """How many answers of the earlier run may lack a partner in this run."""
    other_judge: bool = False
    """Whether the options and models of a metric may differ between the runs."""

    def __post_init__(self) -> None:
        if not 0 <= self.margin < 100:
            # At 100 points every run would be good enough.
            raise UsageError(
                f"--margin: expected a number from 0 to below 100, got {self.margin:g}"
            )


@dataclass(frozen=True)
class GateCheck:
    """One rule of a gate and its result."""

    name: str
    """The dotted name of the figure, or ``missing``."""
    rule: str
    """The requirement, in words."""
    value: float | None
    """The figure, or its change since the earlier run; ``None`` where there is none."""
    interval: Interval | None
    """The 95 % interval of ``value``."""
    line: float
    """The limit that ``value`` is compared with."""
    result: CheckResult
    why: str
    """The reason for the result, in words."""
    unit: str = ""
    before_after: tuple[float, float] | None = None
    """The figure in the earlier run and in this one, where ``value`` is their difference."""
    n: int = 0
    """Independent questions or labels behind ``value``; 0 where more of them decide nothing."""
    unit_of_n: str = "question"
    """The thing that ``n`` counts."""
    advice: str = ""
    """How many more questions would decide an undecided rule."""
    fail_p: float | None = None
    """One-sided p-value of the hypothesis that the figure is on the right side of the line;
    ``None`` where no chance is involved."""
    corrected_p: float | None = None
    """``fail_p`` corrected for all rules of the gate call."""

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        # Keys that say nothing for this check are left out: p-values of counts, pairs of bounds.
        names = ("name", "rule", "value", "line", "result", "why", "advice", "unit", "interval")
        tested = () if self.fail_p is None else ("fail_p", "corrected_p")
        pair = () if self.before_after is None else ("before_after",)
        return fields_as_json(self, *names, *pair, *tested)


@dataclass(frozen=True)
class ChangesSinceRun:
    """The changes since an earlier run, by metric."""

    path: Path
    outcomes: Mapping[str, Sequence[OutcomeChange]]
    figures: Mapping[str, Mapping[str, FigureChange]]
    answers: Mapping[str, AnswerChanges]

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form, in which the outcomes of a metric are keyed by their kind."""
        outcomes = {
            name: {change.kind: change.to_dict() for change in changes}
            for name, changes in self.outcomes.items()
        }
        figures_and_answers = fields_as_json(self, "figures", "answers")
        return {"run": str(self.path), "outcomes": outcomes, **figures_and_answers}


@dataclass(frozen=True)
class Gate:
    """The results of all rules of one gate call.

    ``undecided`` means that chance may explain the figure, ``untestable`` that no result could
    decide the rule since there are too few questions. A rule about a figure without a value fails:
    nothing was measured that could pass.
    """

    path: Path
    checks: Sequence[GateCheck]
    outcomes: Mapping[str, Outcomes]
    """The outcomes of all questions of the run, by metric."""
    against: Sequence[ChangesSinceRun] = ()
    """The changes since each earlier run."""
    notes: Sequence[str] = field(default=())
    """How answers were paired, what differs besides the answers, and what was left out."""

    @property
    def result(self) -> CheckResult:
        """The worst result of any rule; ``pass`` without rules."""
        results = {check.result for check in self.checks}
        # RESULTS is ordered from the worst, so the first match decides.
        return next(result for result in CHECK_RESULTS if result in results or result == "pass")

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "run": str(self.path),
            "result": self.result,
            "outcomes": as_json(self.outcomes),
            **fields_as_json(self, "checks", "against", "notes"),
        }


def parse_bound(text: str, *, at_least: bool) -> Bound:
    """Read ``NAME=VALUE`` or ``NAME=VALUE%``; raises UsageError without a name or finite number."""
    name, _, number = text.rpartition("=")
    value, percent = _parse_number(number)
    if not name.strip() or value is None:
        option = "--min" if at_least else "--max"
        raise UsageError(
            f"{option}: expected FIGURE=NUMBER, such as failed=10% or faithfulness.mean=90%, got "
            f"{text!r}"
        )
    return Bound(name.strip(), value, at_least, percent)


def parse_allowance(text: str) -> Allowance:
    """Read ``N`` or ``N%``; raises UsageError if it is neither, below 0, or above 100 %."""
    value, percent = _parse_number(text)
    if value is None or value < 0 or (percent and value > 100):
        raise UsageError(
            f"--allow-missing: expected a number of answers (3) or a percentage (2%), got {text!r}"
        )
    return Allowance(value, percent)


def _parse_number(text: str) -> tuple[float | None, bool]:
    """Read a number and whether a per cent sign follows it; ``None`` unless it is finite."""
    # "10 %" and "10%" are the same; float() accepts the space that is left.
    plain = text.strip()
    percent = plain.endswith("%")
    try:
        value = float(plain.removesuffix("%"))
    except ValueError:
        return None, percent
    return (value if math.isfinite(value) else None), percent


def is_right_side(interval: Interval, line: float, *, at_least: bool) -> bool:
    """Whether the whole interval is on the right side of the line, or touches it."""
    return interval[0] >= line if at_least else interval[1] <= line


def p_of_side(value: float, interval: Interval, line: float, *, at_least: bool) -> float:
    """Return the one-sided p-value of the hypothesis that a figure is on the right side of its
    line.

    The standard error is taken from that half of the 95 % interval that points towards the line, so
    p is below 0.025 exactly where the whole interval is on the wrong side.
    """
    # Mirror an upper limit, so that the right side is always above the line.
    if not at_least:
        value, interval, line = -value, (-interval[1], -interval[0]), -line
    reach = interval[1] - value if value < line else value - interval[0]
    # An interval of zero width leaves no room for chance.
    if reach <= 0:
        return 0.0 if value < line else 1.0
    # reach is 1.96 standard errors: the interval is two-sided at 95 %.
    z95 = NormalDist().inv_cdf(1 - ONE_SIDED_LEVEL)
    return 1 - NormalDist().cdf((line - value) / reach * z95)


def count_more_questions(times: float, n: int) -> int | None:
    """Return how many questions to add to have ``times`` as many as n, at least 1.

    Returns:
        ``None`` where that is more than :data:`MAX_TIMES_MORE` times as many.
    """
    return max(1, math.ceil(n * times) - n) if times <= MAX_TIMES_MORE else None


def decide_checks(checks: Sequence[GateCheck]) -> list[GateCheck]:
    """Decide all tested checks together, with p-values corrected for their number (Holm 1979)."""
    # Counts are not tests, so they do not make the correction stricter.
    tested = sorted(check.fail_p for check in checks if check.fail_p is not None)
    corrected = holm([check.fail_p for check in checks])
    result = []
    for check, p in zip(checks, corrected, strict=True):
        if check.fail_p is None or p is None:
            result.append(check)
            continue
        if p < ONE_SIDED_LEVEL:
            # An empty reason was left by the caller for the case that only the test decides.
            message = check.why or "the figure breaks the rule"
            message = f"{message}, {_format_p(p, len(tested))}"
            result.append(replace(check, result="fail", why=message, corrected_p=p))
            continue
        undecided_check = replace(check, corrected_p=p)
        if undecided_check.result == "undecided":
            # The level that this rule has to reach, if those with smaller p-values fail.
            level = ONE_SIDED_LEVEL / (len(tested) - tested.index(check.fail_p))
            undecided_check = replace(
                undecided_check, advice=_advise(undecided_check, check.fail_p, level)
            )
            # Significant alone, but not after the correction: say that chance remains possible.
            interval = check.interval
            is_clear = interval is not None and not interval[0] <= check.line <= interval[1]
            if check.fail_p < ONE_SIDED_LEVEL or is_clear:
                why = f"not proven, {_format_p(p, len(tested))}; to fail, p must be below 0.025"
                undecided_check = replace(undecided_check, why=why)
        result.append(undecided_check)
    return result


def _advise(check: GateCheck, fail_p: float, level: float) -> str:
    """Return how many more questions would decide a rule, if its value stays the same.

    On the wrong side of the line, z grows as sqrt(n) and must reach the level that is corrected for
    all rules. On the right side the interval narrows as 1 / sqrt(n) and must shrink to the line.
    """
    if check.value is None or check.interval is None or not check.n:
        return ""
    if fail_p < 0.5:
        # p below 0.5: the value is on the wrong side, so more questions can only make it fail.
        z = NormalDist().inv_cdf
        side, times = "fail", (z(1 - level) / z(1 - fail_p)) ** 2
    else:
        # A value exactly on the line is never decided, whatever n is.
        apart = abs(check.value - check.line)
        end = check.interval[1] if check.line > check.value else check.interval[0]
        side, times = "pass", ((end - check.value) / apart) ** 2 if apart else math.inf
    more = count_more_questions(times, check.n)
    if more is None:
        return ""
    number = f"about {amount(more, f'more {check.unit_of_n}')} would decide it"
    if check.before_after is None:
        return f"{number} ({side}, if the value stays the same)"
    change = f"{check.value:+.1f} points" if check.unit == "%" else f"{check.value:+.3g}"
    change = change.replace("-", "−")
    return f"{number} ({side}, if the difference stays {change})"


def _format_p(p: float, rules: int) -> str:
    corrected = f", corrected for {rules} rules" if rules > 1 else ""
    return f"{p_equation(p)}{corrected}"
