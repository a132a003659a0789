"""The result of a gate for other programs: Markdown for a pull request, JUnit XML."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator

from trustassay.workflows.changes import AnswerChange
from trustassay.workflows.gate_rules import Check, Gate, Result
from trustassay.workflows.outcomes import in_words

__all__ = [
    "explained",
    "interval_in_words",
    "junit",
    "markdown",
    "value_of",
]

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
    if isinstance(value, int) and not signed:
        return f"{value:,}"
    digits = 1 if unit in ("%", "°") else 3
    return f"{value:{'+' if signed else ''}.{digits}f}" + (f" {unit}" if unit else "")


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
    """Return GitHub's Markdown. Foreign text stands in code spans, where nothing is a link, a
    mention, an image or HTML.
    """
    lines = [
        f"### {_SIGNS[gate.result]} trustassay gate: {gate.result}",
        "",
        "| | figure | rule | value | 95 % interval | |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for check in gate.checks:
        cells = [
            f"{_SIGNS[check.result]} {check.result}",
            _code(check.name, table=True),
            _code(check.rule, table=True),
            value_of(check),
            interval_in_words(check),
            _code(explained(check), table=True),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    lines.append("")
    lines += [f"- {_code(name)}: {in_words(ones)}" for name, ones in gate.outcomes.items()]
    lines += [f"- {_code(note)}" for note in gate.notes]
    for name, answers in gate.answers.items():
        worse = answers.counts["worse"]
        if worse:
            lines += ["", f"<details><summary>{answers.in_words()}</summary>", ""]
            lines += [f"By {_code(name)}, the largest change first:", ""]
            lines += [_item(change) for change in answers.worse[:LISTED]]
            if worse > LISTED:
                lines.append(f"- … and {worse - LISTED:,} more")
            lines += ["", "</details>"]
    return "\n".join(lines) + "\n"


def _item(change: AnswerChange) -> str:
    return (
        f"- {_code(change.question)} ({_code(change.ids[1])}): {_code(change.in_words())}; "
        f"{_code(change.reasons[1] or 'no reason given')}"
    )


def _code(text: str, *, table: bool = False) -> str:
    """Return text as a code span of one line, whatever it holds."""
    line = " ".join(_NOT_XML.sub("\ufffd", text).split()) or "–"
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
        words = "\n".join(_told(gate, check))
        if result == "fail":
            failure = {"message": _xml(check.why), "type": check.result}
            ET.SubElement(case, "failure", failure).text = _xml(words)
        elif result == "untestable":
            error = {"message": _xml(explained(check)), "type": check.result}
            ET.SubElement(case, "error", error).text = _xml(words)
        elif result == "undecided":
            ET.SubElement(case, "skipped", {"message": _xml(f"undecided: {explained(check)}")})
        if result not in ("fail", "untestable"):
            ET.SubElement(case, "system-out").text = _xml(words)
    ET.indent(root)
    found: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return found + b"\n"


def _told(gate: Gate, check: Check) -> Iterator[str]:
    """Yield the lines that say what came of a rule, and which answers got worse."""
    within = interval_in_words(check)
    ends = f", 95 % interval {within}" if within else ""
    yield f"{check.result}: {check.name} {value_of(check)}{ends}"
    yield f"{check.rule}: {explained(check)}"
    metric = check.name.split(".")[0]
    answers = gate.answers.get(metric)
    if check.change is not None and metric in gate.outcomes:
        yield in_words(gate.outcomes[metric])
    if check.change is not None and answers is not None:
        yield f"answers that got worse: {answers.counts['worse']:,}"
        for change in answers.worse[:LISTED]:
            question, reason = (
                " ".join(one.split()) for one in (change.question, change.reasons[1])
            )
            yield f"- {question} ({change.ids[1]}): {change.in_words()}; {reason}"


def _xml(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)
