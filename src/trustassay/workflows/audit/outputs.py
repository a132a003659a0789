"""An audit in a sentence, as a table, and as a page."""

from collections.abc import Iterator

from trustassay.show import document
from trustassay.show.text import ends_text, number, p_text
from trustassay.workflows.audit.experiment import Audited, Experiment

COLUMNS = ("shift of the score", "95 % interval", "flips, %", "95 % interval ", "p", "of error")


def headline(found: Audited) -> str:
    """Return a sentence on how far what must not matter moves the judge, against an error."""
    by = ", ".join(found.moved_by) or "nothing that was tried"
    if found.ratio is None or found.ratio.value is None:
        return (
            "A planted error does not make this judge's scores significantly worse, so that the "
            f"other movements have no measure. It is moved by {by}."
        )
    most = max(found.experiments, key=lambda one: (one.ratio and one.ratio.value) or 0.0)
    ends = ends_text(found.ratio.interval, digits=2) or found.ratio.without
    return (
        f"What must not matter moves this judge {number(found.ratio.value, 2)} times as far as a "
        f"planted error does (95 % interval {ends}); most does {most.name}, "
        f"{number((most.ratio and most.ratio.value) or 0.0, 2)} times. "
        f"It is significantly moved by {by}."
    )


def notes(found: Audited) -> Iterator[str]:
    """Yield what was left out, and what the control is made of."""
    if found.control:
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in found.control.kinds.items())
        yield f"planted errors: {kinds}"
    for one in found.experiments:
        if one.n < found.answers:
            yield f"{one.name}: possible in {one.n:,} of {found.answers:,} answers"
        if 0 < one.shift.n < one.n:
            yield f"{one.name}: {one.n - one.shift.n:,} without both scores, in no shift"
    if found.blank:
        yield f"left out: {found.blank:,} samples without a response"


def table(found: Audited) -> document.Table:
    """Return the table of all experiments, the error first, then by p."""

    def row(one: Experiment) -> document.Row:
        shift = "–" if one.shift.value is None else f"{one.shift.value:+.3f}".replace("-", "−")
        low, high = one.flips.interval or (0.0, 0.0)
        flips = one.flips.interval and (100 * low, 100 * high)
        ratio = "" if one.ratio is None or one.ratio.value is None else f"{one.ratio.value:.2f}"
        cells = [shift, ends_text(one.shift.interval, "+") or "too few"]
        cells += [number(100 * (one.flips.value or 0.0)), ends_text(flips, digits=1) or "too few"]
        return document.Row(one.name, [*cells, p_text(one.p), ratio], one.says)

    control = [] if found.control is None else [found.control]
    rows = [row(one) for one in (*control, *found.experiments)]
    return document.Table("Changed", COLUMNS, rows)


def document_of(found: Audited) -> document.Document:
    """Return the page of an audit."""
    ratios = [
        (one.name, one.ratio.value, one.ratio.interval)
        for one in found.experiments
        if one.ratio and one.ratio.value is not None
    ]
    parts: list[document.Block] = [table(found), *map(document.Text, notes(found))]
    if ratios:
        note = "1: as far as a planted error. Bar: 95 % interval over questions."
        chart = document.Chart("Movement", note, [document.interval_bars(ratios)])
        parts.insert(0, chart)
    facts = {"judge": found.judge, "metric": found.metric, "run": str(found.run)}
    facts |= {"answers": f"{found.answers:,} to {found.questions:,} questions"}
    section = document.Section("What was changed, and what it did", parts)
    return document.Document(
        "audit", "What moves this judge", facts, headline(found), [], [section]
    )
