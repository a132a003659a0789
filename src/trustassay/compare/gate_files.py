"""The result of a gate as lines, as Markdown and as JUnit XML."""

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from importlib.resources import files

from jinja2 import Environment

from trustassay.compare.gate_rules import Check, Gate, Result
from trustassay.compare.outcome_changes import outcomes_in_words
from trustassay.show.text import rounded

LISTED = 20
"""Answers that got worse which are written out; the JSON has more."""
MAX_CODE = 300
"""Characters of a text in the Markdown."""
_SIGNS: dict[Result, str] = {"pass": "✅", "fail": "❌", "undecided": "❔", "untestable": "⚠️"}
_NOT_XML = re.compile(r"[^\t\n\r\u0020-\uD7FF\uE000-\uFFFD\U00010000-\U0010FFFF]")
"""Characters that XML 1.0 does not allow (section 2.2)."""


def _value(value: float | None, unit: str) -> str:
    """Write a figure: percentages with one decimal, plain numbers with three."""
    if value is None:
        return "none"
    return rounded(value, unit) + (f" {unit}" if unit else "")


_UNITS_OF_CHANGES = {"%": "points"}
"""By a figure's unit the unit of its change, where that is another one."""


def _change(value: float | None, unit: str) -> str:
    """Write a change of a figure."""
    if value is None:
        return "none"
    number = rounded(value, unit, "+").replace("-", "−")
    return f"{number} {_UNITS_OF_CHANGES.get(unit, unit)}".rstrip()


def value_of(check: Check) -> str:
    """Write the figure of a check, and its change where an earlier run is compared with."""
    if check.before_after is None:
        return _value(check.value, check.unit)
    change = _change(check.value, check.unit)
    both = (_value(one, check.unit) for one in check.before_after)
    return f"{' → '.join(both)} ({change})"


def reason_of(check: Check) -> str:
    """Return why a rule has its result, and what would decide it."""
    return f"{check.why}; {check.advice}" if check.advice else check.why


def interval_in_words(check: Check) -> str:
    """Write the interval of a check, "" where it has none."""
    if check.interval is None:
        return ""
    sign = "" if check.before_after is None else "+"
    low, high = (rounded(end, check.unit, sign).replace("-", "−") for end in check.interval)
    unit = _UNITS_OF_CHANGES.get(check.unit, check.unit) if sign else check.unit
    return f"{low} to {high} {unit}".rstrip()


def markdown(gate: Gate) -> str:
    """Return GitHub's Markdown; foreign text is in code spans, where nothing is markup."""
    environment = Environment(trim_blocks=True, keep_trailing_newline=True)
    environment.filters["code"] = _code
    environment.globals |= {
        **{"signs": _SIGNS, "listed": LISTED, "outcomes_in_words": outcomes_in_words},
        **{"value_of": value_of, "interval_in_words": interval_in_words, "reason_of": reason_of},
    }
    text = files(__package__).joinpath("gate.md.jinja").read_text(encoding="utf-8")
    return environment.from_string(text).render(gate=gate)


def _code(text: str, *, table: bool = False) -> str:
    """Return text as a code span of one line, whatever it holds."""
    line = _on_one_line(_xml_text(text)) or "–"
    line = f"{line[:MAX_CODE]}…" if len(line) > MAX_CODE else line
    if table:  # a backslash before an escaped bar would end the cell
        line = re.sub(r"\\*\|", r"\\|", line)
    longest = max(map(len, re.findall("`+", line)), default=0)
    fence = "`" * (longest + 1)
    space = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{space}{line}{space}{fence}"


def junit(gate: Gate, undecided: Result) -> bytes:
    """Return JUnit XML with a test case for each rule.

    Args:
        undecided: what an undecided rule counts as; ``undecided`` makes it a skipped test. One that
            nothing could decide is an error.
    """
    results = [undecided if one.result == "undecided" else one.result for one in gate.checks]
    if undecided == "fail":
        results = ["fail" if one == "untestable" else one for one in results]
    counts = {
        "tests": str(len(results)),
        "failures": str(results.count("fail")),
        "errors": str(results.count("untestable")),
        "skipped": str(results.count("undecided")),
    }
    root = ET.Element("testsuites", counts)
    suite = ET.SubElement(root, "testsuite", {"name": "trustassay gate", **counts, "time": "0"})
    properties = ET.SubElement(suite, "properties")
    for name, outcomes in gate.outcomes.items():
        ET.SubElement(properties, "property", {"name": name, "value": _xml_text(outcomes.sentence)})
    for check, result in zip(gate.checks, results, strict=True):
        name = _xml_text(f"{check.name} {check.rule}")
        case = ET.SubElement(
            suite, "testcase", {"classname": "trustassay.gate", "name": name, "time": "0"}
        )
        message = "\n".join(_lines_about(gate, check))
        tag = {"fail": "failure", "untestable": "error"}.get(result, "system-out")
        about = {}
        if result == "undecided":
            reason = _xml_text(f"undecided: {reason_of(check)}")
            ET.SubElement(case, "skipped", {"message": reason})
        elif result != "pass":
            why = check.why if result == "fail" else reason_of(check)
            about = {"message": _xml_text(why), "type": check.result}
        ET.SubElement(case, tag, about).text = _xml_text(message)
    ET.indent(root)
    xml: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return xml + b"\n"


def _lines_about(gate: Gate, check: Check) -> Iterator[str]:
    """Yield the lines that give the result of a rule, and which answers got worse."""
    within = interval_in_words(check)
    ends = f", 95 % interval {within}" if within else ""
    yield f"{check.result}: {check.name} {value_of(check)}{ends}"
    yield f"{check.rule}: {reason_of(check)}"
    metric = check.name.split(".")[0]
    if check.before_after is None:
        if metric in gate.outcomes:
            yield gate.outcomes[metric].sentence
        return
    for earlier in gate.against:
        if metric not in earlier.outcomes:
            continue
        yield f"{earlier.path}: {outcomes_in_words(earlier.outcomes[metric])}"
        answers = earlier.answers[metric]
        yield f"answers that got worse: {answers.counts['worse']:,}"
        for change in answers.worse[:LISTED]:
            question, reason = map(_on_one_line, (change.question, change.reasons[1]))
            yield f"- {question} ({change.ids[1]}): {change.in_words()}; {reason}"


def _on_one_line(text: str) -> str:
    return " ".join(text.split())


def _xml_text(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)
