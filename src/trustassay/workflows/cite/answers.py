"""A file of answers, with a citation for each sentence that a document supports."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

from trustassay.calls.backends import Backends
from trustassay.calls.keys import check_keys, shared_file
from trustassay.calls.models import SampleModels
from trustassay.calls.opening import CallOptions, open_calls
from trustassay.capabilities import Models
from trustassay.errors import BackendError, UnknownNameError, did_you_mean
from trustassay.event_loop import run_anywhere
from trustassay.metrics.grounding import Grounding
from trustassay.metrics.grounding.text import citation_markers
from trustassay.progress import Progress
from trustassay.runs.folder import RunFolder
from trustassay.runs.intake import Source, take_in
from trustassay.sample import Sample
from trustassay.workflows.cite.placing import Uncited, uncited, with_citations
from trustassay.workflows.cite.support import SUPPORTS, THRESHOLDS, Scores
from trustassay.workflows.unfinished import UnfinishedFile

__all__ = ["CiteOptions", "Cited", "cite", "cited_answer"]

TOGETHER = 64
"""Answers whose sentences are in progress at once."""
_METRIC = Grounding()
"""Reads answers: checks them, finds their sentences and refusals."""


@dataclass(frozen=True)
class CiteOptions:
    """How answers are cited.

    by: ``entailment``, ``embedding`` or ``bm25``.
    threshold: a document is cited if its support is at least this, and above 0; ``None``: 0.5,
        and 0 for bm25.
    only_uncited: leave answers unchanged that have a citation anywhere.
    """

    by: str = "entailment"
    threshold: float | None = None
    only_uncited: bool = False
    fields: Mapping[str, str] = field(default_factory=dict)
    limit: int | None = None
    skip_bad: bool = False
    progress: bool = False
    calls: CallOptions = field(default_factory=CallOptions)

    def __post_init__(self) -> None:
        if self.by not in SUPPORTS:
            raise UnknownNameError(did_you_mean("kind of support", self.by, SUPPORTS))
        if self.by != "bm25" and not 0 <= self.lowest <= 1:
            raise ValueError(f"threshold: expected 0 to 1, got {self.lowest:g}")

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

    ``resumed`` counts the answers done by an earlier call that was interrupted.
    """

    answers: int = 0
    citations: int = 0
    unsupported: int = 0
    resumed: int = 0
    failed: dict[str, str] = field(default_factory=dict)


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
    async with AsyncExitStack() as stack:
        folder = RunFolder(Path(stack.enter_context(TemporaryDirectory(prefix="trustassay-"))))
        with Progress("checking the input", shown=options.progress) as progress:
            intake = await take_in(
                source,
                folder.samples_path,
                _METRIC.problems,
                fields=options.fields,
                limit=options.limit,
                skip_bad=options.skip_bad,
                step=progress.step,
            )
        check_keys(backends.endpoints(), [shared_file(options.calls.cache)])
        settings = {
            **options.settings(),
            "answers": intake.sha256,
            "backends": backends.names(),
        }
        unfinished = stack.enter_context(UnfinishedFile(out, settings))
        resumed = unfinished.written
        total = intake.inventory.samples
        progress = stack.enter_context(Progress("citing", total, shown=options.progress))
        progress.step(resumed)
        samples = unfinished.todo(folder.samples())
        gatherers = await stack.enter_async_context(open_calls(backends, options.calls))
        models = cast(Models, SampleModels(gatherers))
        while block := list(islice(samples, TOGETHER)):
            work = (cited_answer(sample, models, options) for _, sample in block)
            results = await asyncio.gather(*work, return_exceptions=True)
            for (place, sample), result in zip(block, results, strict=True):
                if isinstance(result, BackendError):
                    unfinished.fail(place, sample.id, str(result))
                elif isinstance(result, BaseException):
                    raise result
                else:
                    answer, counts = result
                    unfinished.add(place, answer.to_dict(), **counts)
                progress.step()
        unfinished.finish()
        failed = dict(unfinished.failed.values())
        return Cited(unfinished.written, **unfinished.counts, resumed=resumed, failed=failed)


async def cited_answer(
    sample: Sample, models: Models, options: CiteOptions
) -> tuple[Sample, dict[str, int]]:
    """Return the answer with citations, and how many sentences got one or are ``unsupported``.

    Each sentence without a citation gets one to the document that supports it most, the first
    of equal ones, or none if no document reaches the threshold. Sentences with citations,
    refusals, and answers without documents are not changed.

    Raises:
        BackendError: the model that judges support failed.
    """
    sentences = _sentences(sample, options)
    if not sentences:
        return sample, {}
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
