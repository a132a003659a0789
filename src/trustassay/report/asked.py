"""Who was asked and did not answer, as sentences and as the rows of a table."""

from collections.abc import Sequence

from trustassay.core.asked import AskedModel
from trustassay.text.numbers import amount

MAX_ROWS_IN_SENTENCES = 3
"""Models that the closing lines of a run name, those that missed most first."""

ROLES_IN_SINGULAR = {"references": "reference", "distractors": "source of distractors"}
"""What one model of a role is called, where the role is in the plural."""


def describe_unanswered(rows: Sequence[AskedModel]) -> list[str]:
    """Return a sentence for each model that missed most, three at most; none if all answered.

    Args:
        rows: those with most missing replies first.
    """
    missing = [row for row in rows if row.unanswered]
    sentences = [_describe_row(row) for row in missing[:MAX_ROWS_IN_SENTENCES]]
    if others := missing[MAX_ROWS_IN_SENTENCES:]:
        count = sum(row.unanswered for row in others)
        bound = "at least " if any(row.at_least for row in others) else ""
        sentences[-1] += f"; {amount(len(others), 'other')} did not answer {bound}{count:,} more"
    return sentences


def _describe_row(row: AskedModel) -> str:
    label = row.name if row.name == row.backend else f"{row.name} ({row.backend})"
    role = ROLES_IN_SINGULAR.get(row.role, row.role)
    samples = amount(row.samples, "sample")
    if row.at_least:
        return f"{role} {label} did not answer in {samples} ({row.kinds})"
    return (
        f"{role} {label} did not answer {row.unanswered:,} of {amount(row.asked, 'request')} "
        f"({row.kinds}), in {samples}"
    )
