"""The picture of docs/which-metric.md: AUROC with its interval, a panel for each set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from lab.benchmarks.which_metric.studying import Studied
from trustassay.report.text import spell_out_hidden
from trustassay.statistics.intervals import Estimate
from trustassay.text.numbers import number

SHOWN = {
    "faithfulness.support": "faithfulness.support",
    "faithfulness-lexical.support": ".support, lexical",
    "factcheck": "factcheck",
    "grounding": "grounding",
    "judge-entailer": "judge:by=entailer",
    "fewl-agreement": "fewl:form=agreement",
    "fewl-eq1": "fewl:weights=uniform",
    "reference": "reference",
    "words": "words",
    "cosine": "cosine",
    "length": "length",
}
BASELINES = ("words", "cosine", "length")
LOW, HIGH = 0.2, 1.0
MARKS = (0.3, 0.5, 0.7, 0.9)
WIDTH, NAMES, FIGURE, ROW, HEAD, ACROSS = 300.0, 128.0, 36.0, 17.0, 26.0, 3
STYLE = (
    "text{font:11px system-ui,sans-serif;fill:#24292f}.head{font-weight:600;font-size:12px}"
    ".end{text-anchor:end}.middle{text-anchor:middle}.tick{fill:#6e7781;font-size:9px}"
    ".grid{stroke:#d8dee4}.chance{stroke:#6e7781;stroke-dasharray:3 3}"
    ".score{stroke:#0b7285;fill:#0b7285}.baseline{stroke:#8c959f;fill:#8c959f}"
    ".bar{stroke-width:3;stroke-linecap:round;stroke-opacity:.45}"
)


def x(value: float) -> float:
    """Return where a figure lies across a panel."""
    share = (min(max(value, LOW), HIGH) - LOW) / (HIGH - LOW)
    return NAMES + (WIDTH - NAMES - FIGURE - 16) * share


def picture(sets: Sequence[Studied]) -> str:
    """Return all panels as one SVG on white."""
    panels = [(title_of(one), rows_of(one)) for one in sets]
    bands = [panels[start : start + ACROSS] for start in range(0, len(panels), ACROSS)]
    content, top = [], 0.0
    for band in bands:
        for place, (title, rows) in enumerate(band):
            content.append(panel(title, rows, place * WIDTH + 8, top))
        top += HEAD + ROW * max(len(rows) for _, rows in band) + 24
    svg = Markup(
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {:.0f} {:.0f}" role="img"'
        ' aria-label="{}"><style>{}</style><rect width="100%" height="100%" fill="#fff"/>{}</svg>'
    ).format(
        ACROSS * WIDTH + 8,
        top,
        "AUROC of each score with its 95 % interval, by set",
        Markup(STYLE),
        Markup("\n").join(content),
    )
    return str(svg) + "\n"


def title_of(one: Studied) -> str:
    return f"{one.public.title}, n = {one.answers:,}"


def rows_of(one: Studied) -> Mapping[str, Estimate]:
    """Return the shown scores of a set that have a figure, by column."""
    figures = {name: one.figures.get(name, {}).get("auroc") for name in SHOWN}
    return {name: e for name, e in figures.items() if e is not None and e.value is not None}


def panel(title: str, rows: Mapping[str, Estimate], left: float, top: float) -> Markup:
    """Return a panel: its title, a row for each score, and the axis."""
    bottom = HEAD + ROW * len(rows)
    content = [Markup('<text class="head" x="0" y="16">{}</text>').format(spell_out_hidden(title))]
    for mark in MARKS:
        kind = "chance" if mark == 0.5 else "grid"
        content.append(
            Markup(
                '<path class="{}" d="M{:.1f} {:.1f}V{:.1f}"/>'
                '<text class="tick middle" x="{:.1f}" y="{:.1f}">{:g}</text>'
            ).format(kind, x(mark), HEAD - 2, bottom, x(mark), bottom + 11, mark)
        )
    for place, (name, estimate) in enumerate(rows.items()):
        content.append(row(name, estimate, HEAD + ROW * (place + 0.5)))
    return Markup('<g transform="translate({:.0f} {:.0f})">{}</g>').format(
        left, top, Markup("").join(content)
    )


def row(name: str, estimate: Estimate, y: float) -> Markup:
    """Return a score's name, its interval as a bar, its figure as a dot and in digits."""
    value = estimate.value or 0.0
    kind = "baseline" if name in BASELINES else "score"
    bar = Markup("")
    if estimate.interval:
        bar = Markup('<path class="{} bar" d="M{:.1f} {:.1f}H{:.1f}"/>').format(
            kind, x(estimate.interval[0]), y, x(estimate.interval[1])
        )
    return Markup(
        '<text class="end" x="{:.1f}" y="{:.1f}">{}</text>{}'
        '<circle class="{}" cx="{:.1f}" cy="{:.1f}" r="3"/>'
        '<text class="end" x="{:.1f}" y="{:.1f}">{}</text>'
    ).format(
        NAMES - 8,
        y + 4,
        spell_out_hidden(SHOWN[name]),
        bar,
        kind,
        x(value),
        y,
        WIDTH - 16,
        y + 4,
        number(value, 3),
    )
