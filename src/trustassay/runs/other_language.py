"""Answers in a language that a run's models do not read: not scored, and counted by language."""

from __future__ import annotations

import re

from trustassay.calls.kinds import capability
from trustassay.capabilities import Models
from trustassay.languages import OTHER_LANGUAGE, language_of
from trustassay.metric import Assessment, Metric
from trustassay.sample import Sample, is_blank

__all__ = ["in_other_language", "language_in", "unread_by"]

PASSAGES = 3
"""Passages whose language is looked at, where the answer does not tell its own."""
PASSAGE_READ = 200
_REASON = re.compile(r"in another language \((\w+)\) .* give another (--\w+)")


def in_other_language(metric: Metric, sample: Sample, models: Models) -> Assessment | None:
    """Return the assessment of an answer that a model of a metric does not read; else ``None``."""
    for need in metric.needs():
        words = None if need.role else unread_by(need.capability, sample, models)
        if words:
            reason, parts = f"not assessable: {words}", {OTHER_LANGUAGE: 1.0}
            return Assessment(sample.id, metric.name, None, reason=reason, parts=parts)
    return None


def unread_by(kind: str, sample: Sample, models: Models) -> str | None:
    """Return in words that an answer is in a language that the backend of a capability does not
    read; ``None`` if it is not, or nothing is written.
    """
    response, reads = sample.response, models.languages(kind)
    if not reads or (response is not None and is_blank(response)):
        return None
    passages = (one.text[:PASSAGE_READ] for one in (sample.documents or ())[:PASSAGES])
    language = language_of(response or "", (sample.question, *passages))
    if language in (*reads, None):
        return None
    one = capability(kind)
    return (
        f"the answer is in another language ({language}) than the {one.backend} reads "
        f"({', '.join(reads)}); give another {one.option}"
    )


def language_in(reason: str) -> tuple[str, str]:
    """Return the language that the reason of such an assessment names, and the option."""
    found = _REASON.search(reason)
    return (found[1], found[2]) if found else ("unknown", "--entailer")
