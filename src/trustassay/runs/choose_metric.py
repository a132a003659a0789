"""Chooses the metrics of a run where the user names none, by what the samples contain."""

from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import Any, NamedTuple

from trustassay.core.sample import LONGEST_LINE_MIB, Sample
from trustassay.input.reading import paths_of, read_samples
from trustassay.input.records import FieldNames, InputFault
from trustassay.judging.refusal import find_refusal_in_words
from trustassay.runs.intake import Source
from trustassay.text.citations import cites_document
from trustassay.text.limits import MAX_ANSWER_CHARACTERS
from trustassay.text.numbers import amount, verb

MAX_RECORDS_READ = 200
"""Records that are read from the beginning of the input, or of each file, to decide."""
GROUNDING_OF_CITED = "grounding:cited_only=yes"


class MetricChoice(NamedTuple):
    """The metrics that were chosen for an input."""

    metrics: list[str]
    """Their names, with options."""
    reason: str
    """The reason, for the user."""
    source: Source
    """The whole input; an iterator is rebuilt so that the records read here are not lost."""


def choose_metric(
    source: Source,
    fields: FieldNames | None = None,
    *,
    sheet: str | int | None = None,
    answer_span: str | None = None,
    longest_line: int = LONGEST_LINE_MIB,
    retrieves: bool = False,
) -> MetricChoice:
    """Choose the metrics for samples by what most of their answers look like.

    1. Most answers with documents cite them: ``grounding``.
    2. Otherwise ``faithfulness``, with ``grounding`` for the answers that cite, if there are any.
       Refusals need no citation and do not count.
    3. Most records have gold answers, and none has documents: an entailer compares the answer with
       the gold answers, unless the run ``retrieves`` documents.
    4. Without documents ``faithfulness``, which says that there are none; ``grounding`` where
       answers or documents are still to come.
    """
    unread_source = source
    if isinstance(source, Iterator):
        records = source
        first_records = list(islice(records, MAX_RECORDS_READ))
        # An iterator can be read once: put the records back in front of the others.
        source, unread_source = first_records, chain(first_records, records)
        # The first records may be a part of a trace, without the span of this name.
        answer_span = None
    options = {"sheet": sheet, "answer_span": answer_span, "longest_line": longest_line}
    samples = list(_read_first_samples(source, fields or {}, **options))
    metrics, reason = _choose_for_samples(samples, retrieves=retrieves)
    return MetricChoice(metrics, reason, unread_source)


def describe_metrics(metrics: Sequence[str]) -> str:
    """Write the chosen metrics for a message: ``metrics faithfulness and grounding``."""
    return f"{verb(len(metrics), 'metric', 'metrics')} {' and '.join(metrics)}"


def _choose_for_samples(samples: Sequence[Sample], *, retrieves: bool) -> tuple[list[str], str]:
    with_documents = [sample for sample in samples if sample.answered and sample.documents]
    if with_documents:
        return _choose_by_citations(with_documents)
    golds = sum(bool(sample.answers or sample.claims) for sample in samples)
    if (
        # A majority decides, so that a few stray fields do not change the metric.
        2 * golds > len(samples)
        and not retrieves
        and not any(sample.documents for sample in samples)
    ):
        reason = f"{golds} of {len(samples)} records have gold answers, none has documents"
        return ["judge:by=entailer"], f"{reason}; alternative: --metric reference"
    if not samples:
        return ["grounding"], "no record can be read"
    # Nothing to decide by: answers that are still to be asked for can cite, others have nothing to
    # cite.
    if retrieves or not any(sample.answered for sample in samples):
        return ["grounding"], "no record has both an answer and documents"
    return ["faithfulness"], "no answer has documents"


def _choose_by_citations(with_documents: Sequence[Sample]) -> tuple[list[str], str]:
    # The run refuses answers that are too long, but later: 100 MB took over ten minutes here.
    beginnings = [(sample.response or "")[:MAX_ANSWER_CHARACTERS] for sample in with_documents]
    answering = [
        (beginning, sample)
        for beginning, sample in zip(beginnings, with_documents, strict=True)
        if not find_refusal_in_words(beginning)
    ]
    citing = sum(
        cites_document(beginning, len(sample.documents or ())) for beginning, sample in answering
    )
    message = f"{citing} of {amount(len(answering), 'answer')} cite their documents"
    refusals = len(with_documents) - len(answering)
    if refusals:
        message += f", {amount(refusals, 'other')} {verb(refusals, 'is a refusal', 'are refusals')}"
    # Citing answers are the majority of those that answer at all.
    if 2 * citing > len(answering):
        return ["grounding"], f"{message}; alternative: --metric faithfulness"
    metrics = ["faithfulness", GROUNDING_OF_CITED] if citing else ["faithfulness"]
    return metrics, f"{message}; alternative: --metric grounding"


def has_unanswered(
    source: Source,
    fields: FieldNames | None = None,
    sheet: str | int | None = None,
    longest_line: int = LONGEST_LINE_MIB,
) -> bool:
    """Whether one of the first samples has no response; ``False`` for an iterator, which is not
    read.
    """
    if isinstance(source, Iterator):
        return False
    samples = _read_first_samples(
        source, fields or {}, sheet=sheet, unanswered=True, longest_line=longest_line
    )
    return any(not sample.answered for sample in samples)


def _read_first_samples(source: Source, fields: FieldNames, **options: Any) -> Iterator[Sample]:
    """Yield the first samples of the input; of several files, the first of each."""
    # Each file may have another layout, so each is sampled.
    sources: Sequence[Source] = paths_of(source) or [source]
    for single_source in sources:
        records = read_samples(single_source, fields=fields, **options)
        for record in islice(records, MAX_RECORDS_READ):
            if not isinstance(record, InputFault):
                yield record.sample
