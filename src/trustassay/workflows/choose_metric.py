"""Which metric to run where none is named: what the samples have decides."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import NamedTuple

from trustassay.data.reading import paths_of, read_samples
from trustassay.data.records import Fault
from trustassay.judging.refusal import refuses_in_words
from trustassay.runs.intake import Source
from trustassay.sample import Sample
from trustassay.text.citations import cites

LOOKED_AT = 200
"""Samples from the beginning of the input, or of each file, that are looked at."""
CITED_ALONE = "grounding:cited_only=yes"


class Chosen(NamedTuple):
    """Names of metrics, why they were chosen, and the input, of which nothing is lost."""

    metrics: list[str]
    why: str
    source: Source


def choose_metric(
    source: Source, fields: Mapping[str, str] | None = None, *, retrieves: bool = False
) -> Chosen:
    """Return the metrics for samples, by what most answers are.

    Where most answers with documents cite them it is ``grounding``, else ``faithfulness``, and
    beside it ``grounding`` of those that cite, if any do. Refusals need no citation and do not
    count. Gold answers without documents are compared with the answer by an entailer, unless the
    run ``retrieves`` documents.
    """
    kept = source
    if isinstance(source, Iterator):
        records = source
        first = list(islice(records, LOOKED_AT))
        source, kept = first, chain(first, records)
    samples = list(_samples(source, fields or {}))
    metrics, why = _chosen(samples, retrieves=retrieves)
    return Chosen(metrics, why, kept)


def naming(metrics: Sequence[str]) -> str:
    """Return what a line says of the chosen metrics."""
    return f"metric{'s' if len(metrics) > 1 else ''} {' and '.join(metrics)}"


def _chosen(samples: Sequence[Sample], *, retrieves: bool) -> tuple[list[str], str]:
    shown = [one for one in samples if one.answered and one.documents]
    if shown:
        return _by_citations(shown)
    golds = sum(bool(one.answers or one.claims) for one in samples)
    if 2 * golds > len(samples) and not retrieves and not any(one.documents for one in samples):
        why = f"{golds} of {len(samples)} records have gold answers, none has documents"
        return ["judge:by=entailer"], f"{why}; the other choice is --metric reference"
    none = "no answer has documents of its own" if samples else "no sample can be read"
    return ["grounding"], none


def _by_citations(shown: Sequence[Sample]) -> tuple[list[str], str]:
    told = [one for one in shown if not refuses_in_words(one.response or "")]
    citing = sum(cites(one.response or "", len(one.documents or ())) for one in told)
    message = f"{citing} of {len(told)} answers cite their documents"
    refusals = len(shown) - len(told)
    if refusals:
        message += f", {refusals} {'refuses' if refusals == 1 else 'refuse'} to answer"
    if 2 * citing > len(told):
        return ["grounding"], f"{message}; the other choice is --metric faithfulness"
    metrics = ["faithfulness", CITED_ALONE] if citing else ["faithfulness"]
    return metrics, f"{message}; the other choice is --metric grounding"


def some_unanswered(source: Source, fields: Mapping[str, str] | None = None) -> bool:
    """Return whether one of the first samples has no response.

    What can be read only once is not looked at.
    """
    if isinstance(source, Iterator):
        return False
    return any(not one.answered for one in _samples(source, fields or {}))


def _samples(source: Source, fields: Mapping[str, str]) -> Iterator[Sample]:
    """Yield the first samples, of several files those of each."""
    sources: Sequence[Source] = paths_of(source) or [source]
    for one in sources:
        for record in islice(read_samples(one, fields=fields), LOOKED_AT):
            if not isinstance(record, Fault):
                yield record.sample
