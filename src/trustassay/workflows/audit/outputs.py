"""An audit in a sentence, as a table, and as a page."""

from collections.abc import Iterator, Sequence

from trustassay.show import document
from trustassay.show.text import ends_text, number, p_text
from trustassay.statistics.matched import Moved
from trustassay.workflows.audit.changes import ERROR, LISTED
from trustassay.workflows.audit.experiment import Audited

COLUMNS = ("shift of the score", "95 % interval", "flips, %", "95 % interval ", "p", "of error")


def headline(found: Audited) -> str:
    """Return a sentence on how far what must not matter moves the judge, against an error."""
    by = f"It is significantly moved by {', '.join(found.moved_by) or 'nothing that was tried'}."
    if found.ratio is None or found.ratio.value is None:
        message = "A planted error does not make this judge's scores significantly worse"
        return f"{message}, so that there is no measure for what else moves it. {by}"
    ends = ends_text(found.ratio.interval, digits=2)
    within = f"95 % interval {ends}" if ends else f"no interval: {found.ratio.without}"
    most, name = max((_ratio(one), name) for name, one in found.experiments.items())
    message = (
        f"What must not matter moves this judge {number(found.ratio.value, 2)} times as far as"
    )
    return f"{message} a planted error ({within}); {name} most, {number(most, 2)} times. {by}"


def _ratio(one: Moved) -> float:
    return (one.ratio and one.ratio.value) or 0.0


def notes(found: Audited) -> Iterator[str]:
    """Yield what the error is made of, and what was left out."""
    errors = ", ".join(f"{count:,} {kind}" for kind, count in sorted(found.errors.items()))
    yield f"planted errors: {errors or 'none is possible in these answers'}"
    lost: dict[int, list[str]] = {}
    for name, one in found.experiments.items():
        if one.flips.n < found.answers:
            yield f"{name}: compared in {one.flips.n:,} of {found.answers:,} answers"
        lost.setdefault(one.flips.n - one.shift.n, []).append(name)
    for count, names in sorted(lost.items()):
        if count:
            yield f"without both scores, in flips alone: {count:,} answers of {', '.join(names)}"
    if found.blank:
        yield f"left out: {found.blank:,} samples without a response"


def table(found: Audited) -> document.Table:
    """Return the table of all experiments, the error first, then by p."""
    rows = ({ERROR: found.control} if found.control else {}) | dict(found.experiments)
    texts = [document.Row(name, _cells(one), LISTED[name]["says"]) for name, one in rows.items()]
    return document.Table("Changed", COLUMNS, texts)


def _cells(one: Moved) -> Sequence[str]:
    shift = "–" if one.shift.value is None else f"{one.shift.value:+.3f}".replace("-", "−")
    ends = one.flips.interval and (100 * one.flips.interval[0], 100 * one.flips.interval[1])
    cells = (shift, ends_text(one.shift.interval, "+") or "too few")
    flips = (number(100 * (one.flips.value or 0.0)), ends_text(ends, digits=1) or "too few")
    return (*cells, *flips, p_text(one.p), f"{_ratio(one):.2f}" if one.ratio else "")


def document_of(found: Audited) -> document.Document:
    """Return the page of an audit."""
    moves = found.experiments.items()
    ratios = [(name, _ratio(one), one.ratio.interval) for name, one in moves if one.ratio]
    parts: list[document.Block] = [table(found), *map(document.Text, notes(found))]
    if ratios:
        note = "1: as far as a planted error. Bar: 95 % interval over questions."
        parts.insert(
            0, document.Chart("Movement", note, [document.interval_bars(ratios, style="thin")])
        )
    facts = {"judge": found.judge, "metric": found.metric, "run": str(found.run)}
    facts |= {"answers": f"{found.answers:,} to {found.questions:,} questions"}
    section = document.Section("What was changed, and what it did", parts)
    return document.Document(
        "audit", "What moves this judge", facts, headline(found), [], [section]
    )
