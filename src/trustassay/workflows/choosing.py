"""Which metric to run where none is named: what the samples bring decides."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain, islice
from typing import NamedTuple

from trustassay.data.reading import Fault, read_samples
from trustassay.metrics.grounding.text import citation_markers
from trustassay.runs.intake import Source
from trustassay.sample import Sample

__all__ = ["Chosen", "choose_metric", "some_unanswered"]

LOOKED_AT = 200
"""Samples from the beginning of the input that are looked at."""
CITING = 0.1
"""Share of answers with documents that cite one of them from which the answers are cited ones."""


class Chosen(NamedTuple):
    """A metric's name, why it was chosen, and the input, of which nothing is lost."""

    metric: str
    why: str
    source: Source


def choose_metric(source: Source, fields: Mapping[str, str] | None = None) -> Chosen:
    """Return the metric for samples: ``faithfulness`` for answers with documents that they do not
    cite, else ``grounding``.

    Raises:
        InputError: the input cannot be read at all.
    """
    kept = source
    if isinstance(source, Iterator):
        records = source
        first = list(islice(records, LOOKED_AT))
        source, kept = first, chain(first, records)
    samples = list(_samples(source, fields or {}))
    shown = [one for one in samples if one.answered and one.documents]
    citing = sum(map(_cites, shown))
    if not shown or citing >= CITING * len(shown):
        words = f"{citing} of {len(shown)} answers cite their documents"
        none = "no answer brings documents of its own" if samples else "no sample can be read"
        why = words if shown else none
        return Chosen("grounding", why, kept)
    why = f"{len(shown) - citing} of {len(shown)} answers bring documents and cite none"
    return Chosen("faithfulness", why, kept)


def some_unanswered(source: Source, fields: Mapping[str, str] | None = None) -> bool:
    """Return whether one of the first samples has no response.

    What can be read only once is not looked at.

    Raises:
        InputError: the input cannot be read at all.
    """
    if isinstance(source, Iterator):
        return False
    return any(not one.answered for one in _samples(source, fields or {}))


def _samples(source: Source, fields: Mapping[str, str]) -> Iterator[Sample]:
    for record in islice(read_samples(source, fields=fields), LOOKED_AT):
        if not isinstance(record, Fault):
            yield record.sample


def _cites(sample: Sample) -> bool:
    """Whether a response cites a document that the sample has."""
    there = range(1, len(sample.documents or ()) + 1)
    markers = citation_markers(sample.response or "")
    return any(number in there for marker in markers for number in marker.numbers)
