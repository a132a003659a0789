"""Post-hoc citation: add to each sentence the number of the document that supports it best."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trustassay.backends.bm25 import Bm25
from trustassay.calls.backends import Backends
from trustassay.core.capabilities import Models, Passage
from trustassay.core.event_loop import run_anywhere
from trustassay.core.sample import Document, Sample
from trustassay.errors import BackendError, UnknownNameError, UsageError, did_you_mean
from trustassay.judging.claims import build_claims
from trustassay.judging.passages import build_premise
from trustassay.metrics.grounding import Grounding
from trustassay.papers.resumable import FileOptions, FileResult, FileWork, write_each
from trustassay.runs.execute import describe_unread_language
from trustassay.runs.intake import Source
from trustassay.text.citations import find_citations
from trustassay.text.sentences import Splitter

Scores = NDArray[np.float64]
Support = Callable[[Sequence[Document], Sequence[str], Models], Awaitable[Scores]]
"""Takes an answer's documents and sentences; returns scores, shape (sentences, documents)."""
THRESHOLDS = {"entailment": 0.5, "embedding": 0.5, "bm25": 0.0}
"""A document is cited if its score is at least this, and above 0."""
_METRIC = Grounding()
"""Used to check answers, and to find their sentences and refusals, as the metric does."""
# The end of a sentence: `.`, `?"`, `!)**`.
_FINAL_PUNCTUATION = re.compile(r"[.!?:;…。！？]+[\"'”’»)\]*_]*$")


class UncitedSentence(NamedTuple):
    """A sentence ``text[start:end]`` without citations, and the claim that it makes."""

    start: int
    end: int
    hypothesis: str


def find_uncited(text: str, split: Splitter) -> list[UncitedSentence]:
    """Return the sentences that cite nothing, as the grounding metric reads sentences.

    A sentence that ends like code, as in ``=``, is left out: brackets behind it are not read as a
    citation.
    """
    result = []
    for claim in build_claims("", text, split):
        # No claim (a heading, a greeting), already cited, or empty.
        if claim.hypothesis is None or claim.citations or claim.end <= claim.start:
            continue
        position = _find_citation_position(text, claim.start, claim.end)
        # Try it: the marker must be read as a citation at this position.
        if find_citations(f"{text[claim.start : position]} [1]"):
            result.append(UncitedSentence(claim.start, claim.end, claim.hypothesis))
    return result


def insert_citations(text: str, numbers: Mapping[UncitedSentence, int]) -> str:
    """Return the text with ``[n]`` before the final punctuation of each of the sentences.

    ``numbers`` gives for sentences of :func:`find_uncited` the document to cite, counted from one.
    Closing quotes and brackets after the punctuation stay after it. Apart from the citations the
    text does not change.
    """
    pieces, position = [], 0
    # From left to right; positions refer to the original text.
    for sentence in sorted(numbers):
        stop = _find_citation_position(text, sentence.start, sentence.end)
        pieces += [text[position:stop], f" [{numbers[sentence]}]"]
        position = stop
    return "".join([*pieces, text[position:]])


def _find_citation_position(text: str, start: int, end: int) -> int:
    """Return the position of a citation in the text: before the sentence's final punctuation."""
    sentence = text[start:end]
    final = _FINAL_PUNCTUATION.search(sentence)
    return start + len(sentence[: final and final.start()].rstrip())


async def score_by_entailment(
    documents: Sequence[Document], sentences: Sequence[str], models: Models
) -> Scores:
    """Return the probabilities that the documents entail the sentences."""
    premises = [build_premise(document) for document in documents]
    replies = await asyncio.gather(*(models.entail(p, s) for s in sentences for p in premises))
    shape = len(sentences), len(documents)
    return np.array([reply.entailment for reply in replies], dtype=float).reshape(shape)


async def score_by_embedding(
    documents: Sequence[Document], sentences: Sequence[str], models: Models
) -> Scores:
    """Return the cosines of the vectors of sentences and documents."""
    texts = [*sentences, *map(build_premise, documents)]
    vectors = np.array(await asyncio.gather(*map(models.embed, texts)), dtype=float)
    # Vectors have length 1, so products are cosines.
    products: Scores = vectors[: len(sentences)] @ vectors[len(sentences) :].T
    return products


async def score_by_bm25(
    documents: Sequence[Document], sentences: Sequence[str], _: Models
) -> Scores:
    """Return BM25 scores among the answer's documents, 0 where they share no word."""
    # Small indexes of one answer's documents: words are weighted among these only.
    index = Bm25.of(Passage(str(i), d.text, d.title) for i, d in enumerate(documents))
    scores = np.zeros((len(sentences), len(documents)))
    for row, result in zip(scores, index.search(sentences, len(documents)), strict=True):
        for passage in result:
            row[int(passage.id)] = passage.score
    return scores


SUPPORTS: dict[str, Support] = {
    "entailment": score_by_entailment,
    "embedding": score_by_embedding,
    "bm25": score_by_bm25,
}


@dataclass(frozen=True)
class CiteOptions(FileOptions):
    """How answers are cited: the options of ``papers cite``."""

    by: str = "entailment"
    threshold: float | None = None
    only_uncited: bool = False

    def __post_init__(self) -> None:
        if self.by not in SUPPORTS:
            raise UnknownNameError(did_you_mean("kind of support", self.by, SUPPORTS))
        # BM25 scores have no upper bound.
        if self.by != "bm25" and not 0 <= self.min_support <= 1:
            raise UsageError(f"threshold: expected 0 to 1, got {self.min_support:g}")

    @property
    def min_support(self) -> float:
        """The support from which a document is cited."""
        return THRESHOLDS[self.by] if self.threshold is None else self.threshold

    def settings(self) -> dict[str, Any]:
        """Return the options that determine the results, as JSON values."""
        return {"by": self.by, "threshold": self.min_support, "only_uncited": self.only_uncited}


def cite(
    source: Source,
    out: str | os.PathLike[str],
    backends: Backends,
    options: CiteOptions | None = None,
) -> FileResult:
    """Write the answers of ``source`` to ``out`` with citations, in full or not at all.

    The result counts ``citations`` and ``unsupported`` sentences. ``backends`` holds the entailer
    or embedder that the options name. An answer whose support could not be judged is left out. The
    same call continues an interrupted one, and tries the failed answers again.

    Raises:
        As :func:`~trustassay.papers.resumable.write_each`.
    """
    cite_options = options or CiteOptions()

    async def work(sample: Sample, models: Models) -> tuple[dict[str, Any], dict[str, int]]:
        answer, counts = await cite_answer(sample, models, cite_options)
        return answer.to_dict(), counts

    citing = FileWork("citing", _METRIC.problems, cite_options.settings(), lambda _: work)
    return run_anywhere(lambda: write_each(source, Path(out), backends, cite_options, citing))


async def cite_answer(
    sample: Sample, models: Models, options: CiteOptions
) -> tuple[Sample, dict[str, int]]:
    """Return the answer with citations, and how many sentences got one or are ``unsupported``.

    Each sentence without a citation gets one to the document that supports it most, the first
    of equal ones, or none if no document reaches the threshold. Sentences with citations,
    refusals, and answers without documents are not changed.

    Raises:
        BackendError: the model that judges support failed, or does not read the answer's language.
    """
    text = sample.response or ""
    # Refusals need no citations.
    if not sample.documents or _METRIC.refusal_words(text):
        return sample, {}
    # The option leaves partly cited answers as they are.
    if options.only_uncited and find_citations(text):
        return sample, {}
    sentences = find_uncited(text, _METRIC.split)
    if not sentences:
        return sample, {}
    # An entailer that does not read the language would support nothing.
    if options.by == "entailment" and (
        message := describe_unread_language("entail", sample, models)
    ):
        raise BackendError(message)
    hypotheses = [sentence.hypothesis for sentence in sentences]
    scores = await SUPPORTS[options.by](sample.documents, hypotheses, models)
    numbers = {
        # `argmax` returns the first of equal documents; citations count from 1.
        sentence: int(row.argmax()) + 1
        for sentence, row in zip(sentences, scores, strict=True)
        # A BM25 score of 0 means no common word, also with a threshold of 0.
        if row.max() >= options.min_support and row.max() > 0
    }
    counts = {"citations": len(numbers), "unsupported": len(sentences) - len(numbers)}
    return replace(sample, response=insert_citations(text, numbers)), counts
