"""The result of a gate as lines, as Markdown and as JUnit XML."""

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from importlib.resources import files

from jinja2 import Environment

from trustassay.compare.changes import describe_outcome_changes
from trustassay.compare.gate_rules import CheckResult, Gate, GateCheck
from trustassay.text.numbers import format_figure

MAX_LISTED_ANSWERS = 20
"""How many of the answers that got worse are written out; the JSON has more."""
MAX_CODE_CHARS = 300
"""Longest text in the Markdown, in characters."""
_SIGNS: dict[CheckResult, str] = {"pass": "✅", "fail": "❌", "undecided": "❔", "untestable": "⚠️"}
_NOT_XML = re.compile(r"[^\t\n\r\u0020-\uD7FF\uE000-\uFFFD\U00010000-\U0010FFFF]")
"""Characters that XML 1.0 does not allow (section 2.2)."""


def _format_value(value: float | None, unit: str) -> str:
    """Write a figure: percentages with one decimal, plain numbers with three."""
    if value is None:
        return "none"
    return format_figure(value, unit) + (f" {unit}" if unit else "")


_UNITS_OF_CHANGES = {"%": "points"}
"""The unit of a change, by the unit of the figure, where the two differ."""


def _format_change(value: float | None, unit: str) -> str:
    """Write the change of a figure, with its sign."""
    if value is None:
        return "none"
    number = format_figure(value, unit, "+").replace("-", "−")
    return f"{number} {_UNITS_OF_CHANGES.get(unit, unit)}".rstrip()


def value_of(check: GateCheck) -> str:
    """Write the value of a check; of a comparison both values and the change."""
    if check.before_after is None:
        return _format_value(check.value, check.unit)
    change = _format_change(check.value, check.unit)
    both = (_format_value(side_value, check.unit) for side_value in check.before_after)
    return f"{' → '.join(both)} ({change})"


def reason_of(check: GateCheck) -> str:
    """Write why a check has its result, and what would decide it."""
    return f"{check.why}; {check.advice}" if check.advice else check.why


def interval_in_words(check: GateCheck) -> str:
    """Write the interval of a check; "" where it has none."""
    if check.interval is None:
        return ""
    sign = "" if check.before_after is None else "+"
    low, high = (format_figure(end, check.unit, sign).replace("-", "−") for end in check.interval)
    unit = _UNITS_OF_CHANGES.get(check.unit, check.unit) if sign else check.unit
    return f"{low} to {high} {unit}".rstrip()


def render_markdown(gate: Gate) -> str:
    """Render GitHub's Markdown; text from the data is in code spans, where nothing is markup."""
    # No autoescape: the output is Markdown, and the filter "code" quotes every text from the data.
    environment = Environment(trim_blocks=True, keep_trailing_newline=True)
    environment.filters["code"] = _format_code_span
    environment.globals |= {
        **{
            "signs": _SIGNS,
            "listed": MAX_LISTED_ANSWERS,
            "outcomes_in_words": describe_outcome_changes,
        },
        **{"value_of": value_of, "interval_in_words": interval_in_words, "reason_of": reason_of},
    }
    text = files(__package__).joinpath("gate.md.jinja").read_text(encoding="utf-8")
    return environment.from_string(text).render(gate=gate)


def _format_code_span(text: str, *, table: bool = False) -> str:
    """Write any text as a code span of one line."""
    line = _join_lines(_replace_invalid_xml(text)) or "–"
    line = f"{line[:MAX_CODE_CHARS]}…" if len(line) > MAX_CODE_CHARS else line
    if table:  # a backslash before an escaped bar would end the cell
        line = re.sub(r"\\*\|", r"\\|", line)
    # A code span ends at the first run of as many backticks as opened it, so open with one more.
    longest = max(map(len, re.findall("`+", line)), default=0)
    fence = "`" * (longest + 1)
    # A backtick at either end would join the fence; CommonMark strips one space on each side.
    space = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{space}{line}{space}{fence}"


def render_junit(gate: Gate, undecided: CheckResult) -> bytes:
    """Render JUnit XML with a test case for each check.

    Args:
        gate: the result of all checks.
        undecided: the result that an undecided check counts as; ``undecided`` makes it a skipped
            test. A check that nothing could decide is an error.
    """
    results = [undecided if check.result == "undecided" else check.result for check in gate.checks]
    # Who wants undecided checks to fail must not be passed by one that cannot be decided at all.
    if undecided == "fail":
        results = ["fail" if result == "untestable" else result for result in results]
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
        ET.SubElement(
            properties, "property", {"name": name, "value": _replace_invalid_xml(outcomes.sentence)}
        )
    for check, result in zip(gate.checks, results, strict=True):
        name = _replace_invalid_xml(f"{check.name} {check.rule}")
        case = ET.SubElement(
            suite, "testcase", {"classname": "trustassay.gate", "name": name, "time": "0"}
        )
        message = "\n".join(_describe_check(gate, check))
        # A test case has one child: failure or error, else its text goes to system-out.
        tag = {"fail": "failure", "untestable": "error"}.get(result, "system-out")
        about = {}
        if result == "undecided":
            reason = _replace_invalid_xml(f"undecided: {reason_of(check)}")
            ET.SubElement(case, "skipped", {"message": reason})
        elif result != "pass":
            message_of_case = check.why if result == "fail" else reason_of(check)
            about = {"message": _replace_invalid_xml(message_of_case), "type": check.result}
        ET.SubElement(case, tag, about).text = _replace_invalid_xml(message)
    ET.indent(root)
    xml: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return xml + b"\n"


def _describe_check(gate: Gate, check: GateCheck) -> Iterator[str]:
    """Yield the lines that describe the result of a check, and the answers that got worse."""
    within = interval_in_words(check)
    ends = f", 95 % interval {within}" if within else ""
    yield f"{check.result}: {check.name} {value_of(check)}{ends}"
    yield f"{check.rule}: {reason_of(check)}"
    # The name of a check is METRIC.FIGURE.
    metric = check.name.split(".")[0]
    if check.before_after is None:
        if metric in gate.outcomes:
            yield gate.outcomes[metric].sentence
        return
    for earlier in gate.against:
        if metric not in earlier.outcomes:
            continue
        yield f"{earlier.path}: {describe_outcome_changes(earlier.outcomes[metric])}"
        answers = earlier.answers[metric]
        yield f"answers that got worse: {answers.counts['worse']:,}"
        for change in answers.worse[:MAX_LISTED_ANSWERS]:
            question, reason = map(_join_lines, (change.question, change.reasons[1]))
            yield f"- {question} ({change.ids[1]}): {change.in_words()}; {reason}"


def _join_lines(text: str) -> str:
    return " ".join(text.split())


def _replace_invalid_xml(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)
