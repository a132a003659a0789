"""The places of citations in an answer: pure functions on text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from trustassay.metrics.grounding.sentences import Splitter, statements
from trustassay.metrics.grounding.text import citation_markers

__all__ = ["Uncited", "uncited", "with_citations"]

_END = re.compile(r"[.!?:;…。！？]+[\"'”’»)\]*_]*$")


class Uncited(NamedTuple):
    """A sentence ``text[start:end]`` without citations, and what it claims."""

    start: int
    end: int
    hypothesis: str


def uncited(text: str, split: Splitter) -> list[Uncited]:
    """Return the sentences that cite nothing, as the grounding metric reads sentences.

    One that ends like code, in ``=``, is left out: what is in brackets behind it is no citation.
    """
    markers = citation_markers(text)
    found, position = [], 0
    for statement in statements(text, split, trailing=True, lines=True):
        # A statement is a part of the text but for white space, which reading may have changed.
        words = r"\s*".join(map(re.escape, statement.text.split()))
        match = re.compile(words).search(text, position)
        if match is None:
            continue
        position = match.end()
        start, end = match.span()
        # A marker may reach over the end of a paragraph, where reading takes it for text.
        if any(m.start < end and start < m.end for m in markers):
            continue
        reads_back = citation_markers(f"{text[start : _place(text, start, end)]} [1]")
        if not statement.numbers and reads_back:
            found.append(Uncited(start, end, statement.hypothesis))
    return found


def with_citations(text: str, numbers: Mapping[Uncited, int]) -> str:
    """Return the text with ``[n]`` before the final punctuation of each of the sentences.

    ``numbers`` gives for sentences of :func:`uncited` the document to cite, counted from one.
    Closing quotes and brackets after the punctuation stay after it. Apart from the citations the
    text does not change.
    """
    pieces, position = [], 0
    for sentence in sorted(numbers):
        stop = _place(text, sentence.start, sentence.end)
        pieces += [text[position:stop], f" [{numbers[sentence]}]"]
        position = stop
    return "".join([*pieces, text[position:]])


def _place(text: str, start: int, end: int) -> int:
    """Return where a citation of the sentence goes: before its final punctuation."""
    sentence = text[start:end]
    final = _END.search(sentence)
    return start + len(sentence[: final and final.start()].rstrip())
