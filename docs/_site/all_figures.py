"""The page of all figures of the built-in metrics, made from their declarations by the build."""

from __future__ import annotations

from collections.abc import Iterator

from trustassay.core.registry import metric_from_text
from trustassay.metrics.grounding.summary import FIGURES as OF_GROUNDING

METRICS = (
    "faithfulness",
    "harmonicity",
    "semantic_harmonicity",
    "consistency",
    "factcheck",
    "trustscore",
    "fewl",
    "judge",
    "judge:by=entailer",
    "pairwise",
    "rag",
    "reference",
    "tool_use",
    "uncertainty:parts=all,samples=auto",
)
"""Every built-in metric but ``grounding``, whose figures depend on the kind of correctness."""
_HEAD = """\
# Figures

All figures of `summary.json`, by metric. A figure that cannot be computed is `null`;
`not_applicable` gives the reason.
"""


def page() -> str:
    """Return the page as Markdown."""
    return "\n".join([_HEAD, *_sections()])


def _sections() -> Iterator[str]:
    yield "## grounding\n"
    yield from _table((one.key, one.unit, one.explanation) for one in OF_GROUNDING.values())
    for name in METRICS:
        yield f"## {name}\n"
        figures = metric_from_text(name).figures.values()
        yield from _table((one.key, one.unit, one.explanation) for one in figures)


def _table(rows: Iterator[tuple[str, str, str]]) -> Iterator[str]:
    yield "| key | unit | meaning |\n| --- | --- | --- |"
    for key, unit, meaning in rows:
        yield f"| `{key}` | {unit} | {meaning} |"
    yield ""
