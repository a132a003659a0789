"""Reads what is rated: answers of a file or a run, or pairs of answers to the same question."""

import asyncio
import hashlib
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trustassay.core.files import is_run_folder
from trustassay.core.sample import Document, Sample
from trustassay.input.records import InputError
from trustassay.runs.folder import RunFolder, find_run_model
from trustassay.runs.intake import InputOptions, open_samples
from trustassay.runs.lines import encode_sample
from trustassay.runs.units import read_domain
from trustassay.text.numbers import amount, verb


@dataclass(frozen=True, slots=True)
class RatingItem:
    """The object of one rating: an answer, or a pair of answers."""

    id: str
    question: str
    answers: tuple[str, ...]
    """One answer, or the answers ``a`` and ``b`` of a pair."""
    model: str = ""
    """The model that wrote the answer; empty if unknown, and for pairs."""
    domain: str = ""
    golds: tuple[tuple[str, ...], ...] = ()
    """The aliases of each gold answer, or each gold claim by itself."""
    documents: tuple[Document, ...] = ()

    @property
    def question_key(self) -> str:
        """The question with normalised white space, by which questions are compared."""
        return " ".join(self.question.split())

    def shown_answers(self, *, swapped: bool) -> tuple[str, ...]:
        """Return the answers in the order in which they are shown."""
        return self.answers[::-1] if swapped else self.answers


@dataclass(frozen=True)
class RatingMaterial:
    """Everything in the input that can be rated."""

    items: Sequence[RatingItem]
    sha256: str
    """The digest of all samples, by which ratings of another input are recognised."""
    remarks: Sequence[str] = ()
    """Messages for the user on what was left out."""


@dataclass(frozen=True, kw_only=True)
class RatingInputOptions(InputOptions):
    """How the samples to be rated are read."""

    domain: str = "domain"
    """The field that holds the domain of a sample."""


def read_single_answers(source: Path, reading: RatingInputOptions) -> RatingMaterial:
    """Read the answers of a file, or of a run's folder.

    Raises:
        BadInputError, InputError, RunFolderError: the input cannot be read, or has no answer.
    """
    samples, model_of_run, faulty = _read_samples(source, reading)
    # An empty response can be rated; only a missing one cannot.
    answered = [sample for sample in samples if sample.response is not None]
    if not answered:
        raise InputError(f"{source}: no sample has a response; there is nothing to rate")
    without_response = len(samples) - len(answered)
    remarks = (
        [f"left out: {amount(without_response, 'sample')} without a response"]
        if without_response
        else []
    )
    remarks += _describe_faulty(faulty)
    # A run that generated its answers names their model only once, in its settings.
    items = [_build_item(sample, reading, sample.model or model_of_run) for sample in answered]
    return RatingMaterial(items, _digest_samples(samples), remarks)


def read_answer_pairs(first: Path, second: Path, reading: RatingInputOptions) -> RatingMaterial:
    """Read two files or runs, and pair their answers by id, or by question if they share no id.

    Raises:
        BadInputError, InputError, RunFolderError: an input cannot be read, the inputs share no
            question, or a question that must identify an answer occurs twice.
    """
    read = [_read_samples(source, reading) for source in (first, second)]
    sides = [samples for samples, _, _ in read]
    answered = [[sample for sample in samples if sample.response is not None] for samples in sides]
    # Ids are preferred: a question may occur several times in a file.
    tables = [{sample.id: sample for sample in samples} for samples in answered]
    if not tables[0].keys() & tables[1].keys():
        tables = [
            _index_by_question(source, samples)
            for source, samples in zip((first, second), answered, strict=True)
        ]
    common = [key for key in tables[0] if key in tables[1]]
    if not common:
        raise InputError(f"{first} and {second}: share no id and no question with a response")
    items = []
    for key in common:
        a, b = tables[0][key], tables[1][key]
        # Files that number their own rows share ids without sharing questions.
        if a.question.split() != b.question.split():
            raise InputError(
                f"{first} and {second}: {a.id!r} has different questions; expected the same "
                "questions under the same ids"
            )
        # No model: raters must not learn which side is which, and no column names one.
        items.append(_build_item(a, reading, "", (a.response or "", b.response or "")))
    left_out = sum(map(len, sides)) - 2 * len(common)
    remarks = (
        [f"left out: {amount(left_out, 'answer')} in only one of the files"] if left_out else []
    )
    remarks += _describe_faulty(sum(faulty for _, _, faulty in read))
    # The order matters: with the two inputs exchanged, a and b mean the opposite.
    digest = hashlib.sha256("".join(map(_digest_samples, sides)).encode()).hexdigest()
    return RatingMaterial(items, digest, remarks)


def _index_by_question(source: Path, samples: Sequence[Sample]) -> dict[str, Sample]:
    keys = [" ".join(sample.question.split()) for sample in samples]
    if repeated := sum(count > 1 for count in Counter(keys).values()):
        raise InputError(
            f"{source}: {amount(repeated, 'question')} {verb(repeated, 'occurs', 'occur')} more "
            "than once, so answers cannot be paired by question; expected the same ids in both "
            "files"
        )
    return dict(zip(keys, samples, strict=True))


def _build_item(
    sample: Sample, reading: RatingInputOptions, model: str, answers: tuple[str, ...] | None = None
) -> RatingItem:
    record = sample.to_dict()
    domain = read_domain(record, reading.domain)
    return RatingItem(
        id=sample.id,
        question=sample.question,
        answers=answers or (sample.response or "",),
        model=model,
        domain="" if domain is None else str(domain),
        golds=sample.answers or tuple((claim,) for claim in sample.claims),
        documents=sample.documents or (),
    )


def _describe_faulty(faulty: int) -> list[str]:
    return [f"skipped: {amount(faulty, 'faulty record')}"] if faulty else []


def _read_samples(source: Path, reading: RatingInputOptions) -> tuple[list[Sample], str, int]:
    """Return the samples, the model that a run asked, and the number of skipped records."""
    if is_run_folder(source):
        # A run stores samples under the canonical names.
        if reading.fields or reading.answer_span:
            flag = "--field" if reading.fields else "--answer-span"
            raise InputError(
                f"{source}: {flag} is for files; a run already has the standard field names"
            )
        folder = RunFolder(source)
        folder.check_entries()
        run: Mapping[str, Any] = folder.read_run() or {}
        max_samples = math.inf if reading.limit is None else reading.limit
        result = [sample for number, sample in enumerate(folder.samples()) if number < max_samples]
        return result, find_run_model(run) or "", 0

    async def read() -> tuple[list[Sample], str, int]:
        async with open_samples(source, reading) as (folder, intake):
            return list(folder.samples()), "", intake.faulty

    # samples_of is an asynchronous context, and no event loop runs here.
    return asyncio.run(read())


def _digest_samples(samples: Sequence[Sample]) -> str:
    digest = hashlib.sha256()
    for sample in samples:
        digest.update(encode_sample(sample))
    return digest.hexdigest()
