"""A file of answers, with a citation for each sentence that a document supports."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from trustassay.calls.backends import Backends
from trustassay.capabilities import Models
from trustassay.errors import BackendError, UnknownNameError, UsageError, did_you_mean
from trustassay.event_loop import run_anywhere
from trustassay.metrics.grounding import Grounding
from trustassay.metrics.grounding.text import citation_markers
from trustassay.runs.assess import unread_by
from trustassay.runs.intake import Source
from trustassay.sample import Sample
from trustassay.workflows.cite.placing import Uncited, uncited, with_citations
from trustassay.workflows.cite.support import SUPPORTS, THRESHOLDS, Scores
from trustassay.workflows.resumable import FileOptions, FileWork, write_each

__all__ = ["CiteOptions", "Cited", "cite", "cited_answer"]

_METRIC = Grounding()
"""Reads answers: checks them, finds their sentences and refusals."""


@dataclass(frozen=True)
class CiteOptions(FileOptions):
    """How answers are cited; as :class:`~trustassay.workflows.resumable.FileOptions`, and:

    by: ``entailment``, ``embedding`` or ``bm25``.
    threshold: a document is cited if its support is at least this, and above 0; ``None``: 0.5,
        and 0 for bm25.
    only_uncited: leave answers unchanged that have a citation anywhere.
    """

    by: str = "entailment"
    threshold: float | None = None
    only_uncited: bool = False

    def __post_init__(self) -> None:
        if self.by not in SUPPORTS:
            raise UnknownNameError(did_you_mean("kind of support", self.by, SUPPORTS))
        if self.by != "bm25" and not 0 <= self.lowest <= 1:
            raise UsageError(f"threshold: expected 0 to 1, got {self.lowest:g}")

    @property
    def lowest(self) -> float:
        """The support from which a document is cited."""
        return THRESHOLDS[self.by] if self.threshold is None else self.threshold

    def settings(self) -> dict[str, Any]:
        """Return the options that determine the results, as JSON values."""
        return {"by": self.by, "threshold": self.lowest, "only_uncited": self.only_uncited}


@dataclass(slots=True)
class Cited:
    """What was done: answers written, citations added, sentences that nothing supports.

    ``resumed`` counts the answers done by an earlier call that was interrupted; ``stopped`` says
    why this one was.
    """

    answers: int = 0
    citations: int = 0
    unsupported: int = 0
    resumed: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    stopped: str | None = None


def cite(
    source: Source,
    out: str | os.PathLike[str],
    backends: Backends,
    options: CiteOptions | None = None,
) -> Cited:
    """Write the answers of ``source`` to ``out`` with citations, in full or not at all.

    ``backends`` holds the entailer or embedder that the options name. An answer whose support
    could not be judged is left out. The same call continues an interrupted one, and tries the
    failed answers again.

    Raises:
        BadInputError, InputError: the input has faults; nothing was started.
        UnfinishedError: other work on ``out`` is unfinished.
        BackendError: a key is needed and not set.
    """
    return run_anywhere(lambda: _cite(source, Path(out), backends, options or CiteOptions()))


async def _cite(source: Source, out: Path, backends: Backends, options: CiteOptions) -> Cited:
    async def work(sample: Sample, models: Models) -> tuple[dict[str, Any], dict[str, int]]:
        answer, counts = await cited_answer(sample, models, options)
        return answer.to_dict(), counts

    citing = FileWork("citing", _METRIC.problems, options.settings(), lambda _: work)
    done = await write_each(source, out, backends, options, citing)
    return Cited(
        done.written, **done.counts, resumed=done.resumed, failed=done.failed, stopped=done.stopped
    )


async def cited_answer(
    sample: Sample, models: Models, options: CiteOptions
) -> tuple[Sample, dict[str, int]]:
    """Return the answer with citations, and how many sentences got one or are ``unsupported``.

    Each sentence without a citation gets one to the document that supports it most, the first
    of equal ones, or none if no document reaches the threshold. Sentences with citations,
    refusals, and answers without documents are not changed.

    Raises:
        BackendError: the model that judges support failed, or does not read the answer's language.
    """
    sentences = _sentences(sample, options)
    if not sentences:
        return sample, {}
    if options.by == "entailment" and (words := unread_by("entail", sample, models)):
        raise BackendError(words)
    hypotheses = [sentence.hypothesis for sentence in sentences]
    scores = await SUPPORTS[options.by](sample.documents or (), hypotheses, models)
    numbers = _numbers(sentences, scores, options.lowest)
    counts = {"citations": len(numbers), "unsupported": len(sentences) - len(numbers)}
    return replace(sample, response=with_citations(sample.response or "", numbers)), counts


def _sentences(sample: Sample, options: CiteOptions) -> list[Uncited]:
    text = sample.response or ""
    if not sample.documents or _METRIC.refusal_words(text):
        return []
    if options.only_uncited and citation_markers(text):
        return []
    return uncited(text, _METRIC.split)


def _numbers(sentences: Sequence[Uncited], scores: Scores, lowest: float) -> dict[Uncited, int]:
    numbers = {}
    for sentence, row in zip(sentences, scores, strict=True):
        best = int(row.argmax())
        if row[best] >= lowest and row[best] > 0:
            numbers[sentence] = best + 1
    return numbers
