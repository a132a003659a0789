"""The rules of a gate, their results, written as Markdown and JUnit XML."""

import math
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from jinja2 import Environment

from trustassay.errors import UsageError
from trustassay.show.text import rounded
from trustassay.statistics.intervals import Interval
from trustassay.workflows.changes import AnswerChanges, FigureChange
from trustassay.workflows.json_form import as_json, fields_as_json
from trustassay.workflows.two_runs import Outcome, outcomes_in_words

MOST_TIMES = 100
"""Times the samples of a run up to which it is said how many more would decide a rule."""
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
    """A run that this one must not be worse than.

    figures: dotted names, METRIC.FIGURE; none: of each metric that both runs have, the first
    headline figure of which it is known whether more is better. margin: how much worse is
    tolerated, in percent of a figure's range; a share of answers without a score may rise by as
    much. missing: answers of the earlier run that may have no partner. other_judge: whether a
    metric's options and models may differ between the runs.
    """

    path: Path
    figures: Sequence[str] = ()
    margin: float = 0.0
    missing: Allowance = Allowance()
    other_judge: bool = False


@dataclass(frozen=True)
class Check:
    """One rule and its result.

    value: the figure, or its change since the earlier run; ``None`` where it has none. interval:
    its 95 % interval. line: what it is compared with. why: the result in words. advice: what would
    decide a rule that is not decided.
    """

    name: str
    rule: str
    value: float | None
    interval: Interval | None
    line: float
    result: Result
    why: str
    unit: str = ""
    change: FigureChange | None = None
    advice: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        names = ("name", "rule", "value", "line", "result", "why", "advice", "unit", "interval")
        return fields_as_json(self, *names, *(["change"] if self.change else []))


@dataclass(frozen=True)
class Gate:
    """The result of all rules, the worst of :data:`RESULTS`.

    ``undecided``: an interval reaches both sides of its line. ``untestable``: nothing could decide
    the rule, as there are too few answers. A rule about a figure without a value fails: nothing was
    measured that could pass.

    outcomes: by metric, what became of the answers of both runs. answers: by metric, the answers
    that changed since the earlier run. notes: the pairs of both runs, settings that differ, and
    samples that failed.
    """

    path: Path
    checks: Sequence[Check]
    outcomes: Mapping[str, Sequence[Outcome]] = field(default_factory=dict)
    answers: Mapping[str, AnswerChanges] = field(default_factory=dict)
    notes: Sequence[str] = ()
    earlier: Path | None = None

    @property
    def result(self) -> Result:
        """The worst result of a rule."""
        results = {check.result for check in self.checks}
        return next(one for one in RESULTS if one in results or one == "pass")

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "run": str(self.path),
            "no_worse_than": None if self.earlier is None else str(self.earlier),
            "result": self.result,
            "checks": as_json(self.checks),
            "outcomes": {
                name: {one.name: one.to_dict() for one in ones}
                for name, ones in self.outcomes.items()
            },
            **fields_as_json(self, "answers", "notes"),
        }


def parse_bound(text: str, *, at_least: bool) -> Bound:
    """Read ``NAME=VALUE`` or ``NAME=VALUE%``; UsageError: it is no such finite number."""
    name, _, number = text.rpartition("=")
    value, percent = _number(number)
    if not name.strip() or value is None:
        option = "--min" if at_least else "--max"
        raise UsageError(
            f"{option}: expected FIGURE=NUMBER, as in {option} grounding.trust_score=60 or "
            f"{option} faithfulness.mean=90%, got {text!r}"
        )
    return Bound(name.strip(), value, at_least, percent)


def parse_allowance(text: str) -> Allowance:
    """Read ``N`` or ``N%``; UsageError: it is neither, below 0, or above 100 %."""
    value, percent = _number(text)
    if value is None or value < 0 or (percent and value > 100):
        raise UsageError(
            f"--allow-missing: expected a number of answers or a percentage, as in 3 or 2%, got "
            f"{text!r}"
        )
    return Allowance(value, percent)


def _number(text: str) -> tuple[float | None, bool]:
    """Read a finite number, and whether a per cent sign follows it; ``None`` if it is none."""
    plain = text.strip()
    percent = plain.endswith("%")
    try:
        value = float(plain.removesuffix("%"))
    except ValueError:
        return None, percent
    return (value if math.isfinite(value) else None), percent


def decide(interval: Interval, line: float, *, at_least: bool) -> Result:
    """Return pass if the whole interval is on the right side of the line, the line included; fail
    if it is on the other; undecided if it reaches both.
    """
    low, high = interval if at_least else (-interval[1], -interval[0])
    line = line if at_least else -line
    return "pass" if low >= line else "fail" if high < line else "undecided"


def more_samples(value: float, interval: Sequence[float], line: float, n: int) -> int | None:
    """Return how many more samples would put the whole interval on one side of the line.

    The value is taken as it is, and the interval narrows as 1 / sqrt(n). ``None`` if it takes more
    than :data:`MOST_TIMES` as many.
    """
    reach = interval[1] - value if line > value else value - interval[0]
    apart = abs(value - line)
    if not apart or (times := (reach / apart) ** 2) > MOST_TIMES:
        return None
    return max(1, math.ceil(n * times) - n)


SIDES: Mapping[Result, str] = {
    "pass": "the whole interval is on the right side of the line",
    "fail": "the whole interval is on the wrong side of the line",
    "undecided": "the interval reaches both sides of the line",
}


LISTED = 20
"""Answers that got worse which are written out; the JSON has more."""
LONGEST = 300
_SIGNS: dict[Result, str] = {"pass": "✅", "fail": "❌", "undecided": "❔", "untestable": "⚠️"}
_NOT_XML = re.compile(r"[^\t\n\r\u0020-\uD7FF\uE000-\uFFFD\U00010000-\U0010FFFF]")
"""Characters that XML 1.0 does not allow (section 2.2)."""


def _value(value: float | None, unit: str, *, signed: bool = False) -> str:
    """Write a figure or a change of one: percentages with one decimal, plain numbers with three."""
    if value is None:
        return "none"
    return rounded(value, unit, "+" if signed else "") + (f" {unit}" if unit else "")


def value_of(check: Check) -> str:
    """Write the figure of a check, and its change where an earlier run is compared with."""
    if check.change is None:
        return _value(check.value, check.unit)
    change = _value(check.value, check.unit, signed=True)
    both = (_value(one, check.unit) for one in (check.change.first, check.change.second))
    return f"{' → '.join(both)} ({change})"


def explained(check: Check) -> str:
    """Return why a rule has its result, and what would decide it."""
    return f"{check.why}; {check.advice}" if check.advice else check.why


def interval_in_words(check: Check) -> str:
    """Write the interval of a check, "" where it has none."""
    if check.interval is None:
        return ""
    signed = check.change is not None
    return " to ".join(_value(one, check.unit, signed=signed) for one in check.interval)


# Markdown


def markdown(gate: Gate) -> str:
    """Return GitHub's Markdown; foreign text is in code spans, where nothing is markup."""
    environment = Environment(trim_blocks=True, keep_trailing_newline=True)
    environment.filters["code"] = _code
    environment.globals |= {
        **{"signs": _SIGNS, "listed": LISTED, "outcomes_in_words": outcomes_in_words},
        **{"value_of": value_of, "interval_in_words": interval_in_words, "explained": explained},
    }
    text = files(__package__).joinpath("gate.md.jinja").read_text(encoding="utf-8")
    return environment.from_string(text).render(gate=gate)


def _code(text: str, *, table: bool = False) -> str:
    """Return text as a code span of one line, whatever it holds."""
    line = _flat(_xml(text)) or "–"
    line = f"{line[:LONGEST]}…" if len(line) > LONGEST else line
    if table:  # a backslash before an escaped bar would end the cell
        line = re.sub(r"\\*\|", r"\\|", line)
    longest = max(map(len, re.findall("`+", line)), default=0)
    fence = "`" * (longest + 1)
    space = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{space}{line}{space}{fence}"


# JUnit


def junit(gate: Gate, undecided: Result) -> bytes:
    """Return JUnit XML with a test case for each rule.

    Args:
        undecided: what an undecided rule counts as; ``undecided`` makes it a skipped test. One that
            nothing could decide is an error.
    """
    counted = [undecided if one.result == "undecided" else one.result for one in gate.checks]
    if undecided == "fail":
        counted = ["fail" if one == "untestable" else one for one in counted]
    counts = {
        "tests": str(len(counted)),
        "failures": str(counted.count("fail")),
        "errors": str(counted.count("untestable")),
        "skipped": str(counted.count("undecided")),
    }
    root = ET.Element("testsuites", counts)
    suite = ET.SubElement(root, "testsuite", {"name": "trustassay gate", **counts, "time": "0"})
    for check, result in zip(gate.checks, counted, strict=True):
        name = _xml(f"{check.name} {check.rule}")
        case = ET.SubElement(
            suite, "testcase", {"classname": "trustassay.gate", "name": name, "time": "0"}
        )
        message = "\n".join(_told(gate, check))
        tag = {"fail": "failure", "untestable": "error"}.get(result, "system-out")
        about = {}
        if result == "undecided":
            ET.SubElement(case, "skipped", {"message": _xml(f"undecided: {explained(check)}")})
        elif result != "pass":
            why = check.why if result == "fail" else explained(check)
            about = {"message": _xml(why), "type": check.result}
        ET.SubElement(case, tag, about).text = _xml(message)
    ET.indent(root)
    found: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return found + b"\n"


def _told(gate: Gate, check: Check) -> Iterator[str]:
    """Yield the lines that give the result of a rule, and which answers got worse."""
    within = interval_in_words(check)
    ends = f", 95 % interval {within}" if within else ""
    yield f"{check.result}: {check.name} {value_of(check)}{ends}"
    yield f"{check.rule}: {explained(check)}"
    metric = check.name.split(".")[0]
    answers = gate.answers.get(metric)
    if check.change is not None and metric in gate.outcomes:
        yield outcomes_in_words(gate.outcomes[metric])
    if check.change is not None and answers is not None:
        yield f"answers that got worse: {answers.counts['worse']:,}"
        for change in answers.worse[:LISTED]:
            question, reason = map(_flat, (change.question, change.reasons[1]))
            yield f"- {question} ({change.ids[1]}): {change.in_words()}; {reason}"


def _flat(text: str) -> str:
    return " ".join(text.split())


def _xml(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)
