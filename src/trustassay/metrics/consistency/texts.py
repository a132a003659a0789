"""Texts as they are offered: in one line, without the marks of citations."""

from __future__ import annotations

from trustassay.metrics.grounding.text import without_citations
from trustassay.sample import Sample, is_blank

__all__ = ["answer_of", "one_line"]


def one_line(text: str) -> str:
    """Return a text with single spaces: an option is one line, so none can look like another."""
    return " ".join(text.split())


def answer_of(sample: Sample) -> str:
    """Return the answer as the model is offered it.

    Citations, as ``[1]`` and ``[2, 3]``, are left out: they are no part of what is said, and
    another number would make a distractor that says the same.
    """
    text = one_line(sample.response or "")
    bare = one_line(without_citations(text))
    return text if is_blank(bare) else bare
