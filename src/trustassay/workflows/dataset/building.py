"""From questions with gold answers to a data set that the grounding metric scores.

For each question: retrieve, take its gold claims, label which passage supports which, keep the
documents that cover them (Song et al. 2025, data construction).
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args

from trustassay.backends import resolve
from trustassay.calls.backends import Backends
from trustassay.calls.limits import Endpoint
from trustassay.capabilities import Models, Retriever
from trustassay.errors import UnknownNameError, UsageError, did_you_mean
from trustassay.event_loop import run_anywhere
from trustassay.runs.intake import Source
from trustassay.sample import Document, Problem, Sample
from trustassay.workflows.dataset.choosing import chosen
from trustassay.workflows.dataset.claims import (
    ClaimError,
    asked_claims,
    claims_prompt,
    sentence_claims,
)
from trustassay.workflows.dataset.supports import labelled
from trustassay.workflows.resumable import FileOptions, FileWork, write_each

__all__ = ["BuildOptions", "Built", "Claims", "build"]

Claims = Literal["given", "sentences", "model"]


@dataclass(frozen=True)
class BuildOptions(FileOptions):
    """How a data set is built.

    claims: ``given`` takes a question's claims, or else its gold answers; ``sentences`` splits the
        gold answers; ``model`` asks a chat model what they claim.
    candidates: passages retrieved for a question. documents: how many of them are kept.
    threshold: probability of entailment from which a passage supports.
    seed: goes to the chat model. The others: as in
        :class:`~trustassay.workflows.resumable.FileOptions`.
    """

    claims: Claims = "given"
    candidates: int = 100
    documents: int = 5
    threshold: float = 0.5
    seed: int | None = None
    concurrency: int = field(default=16, kw_only=True)

    def __post_init__(self) -> None:
        if self.claims not in get_args(Claims):
            raise UnknownNameError(did_you_mean("kind of claims", self.claims, get_args(Claims)))
        if not 1 <= self.documents <= self.candidates:
            raise UsageError("documents: expected 1 or more, and not more than candidates")
        if not 0 < self.threshold < 1:
            raise UsageError("threshold: expected a probability between 0 and 1")

    def settings(self) -> dict[str, Any]:
        """Return what decides the results, as JSON values."""
        names = ("claims", "candidates", "documents", "threshold")
        settings = {name: getattr(self, name) for name in names}
        if self.claims == "model":
            settings |= {"seed": self.seed, "prompt": claims_prompt().name}
        return settings


@dataclass(slots=True)
class Built:
    """What was written: questions, how many of them can be answered, and why some are missing.

    ``stopped`` says why the model replies no more; the work is unfinished then, and can be resumed.
    """

    written: int = 0
    answerable: int = 0
    resumed: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    stopped: str | None = None
    endpoints: Mapping[str, Endpoint] = field(default_factory=dict)


def build(
    source: Source,
    out: str | os.PathLike[str],
    retriever: Retriever,
    entailer: resolve.EntailerChoice = resolve.DEFAULT_ENTAILER,
    model: resolve.ChatChoice | None = None,
    options: BuildOptions | None = None,
) -> Built:
    """Build a data set and write it to ``out`` in canonical JSON Lines, whole or not at all.

    Every question needs gold ``answers`` or ``claims``. It gets ``documents`` whose ``supports``
    are parallel to its claims, or else to its answers, and ``answerable``: whether any document
    supports any of them. Its own documents are replaced. The same call continues an interrupted
    one, and gives the same bytes.

    Raises:
        BadInputError, InputError: the input has faults; nothing was started.
        UnfinishedError: other work on ``out`` is unfinished.
        BackendError, UnknownNameError: no such entailer or model.
        ValueError: claims are to be asked of a model, and there is none.
    """
    options = options or BuildOptions()
    if (options.claims == "model") != (model is not None):
        raise UsageError("claims=model needs a model, and other claims take none")
    return run_anywhere(lambda: _build(source, Path(out), retriever, entailer, model, options))


async def _build(
    source: Source,
    out: Path,
    retriever: Retriever,
    entailer: resolve.EntailerChoice,
    model: resolve.ChatChoice | None,
    options: BuildOptions,
) -> Built:
    backends = Backends.of(
        entail=await asyncio.to_thread(resolve.entailer, entailer),
        search=retriever,
        chat=None if model is None else {"model": await asyncio.to_thread(resolve.chat, model)},
    )

    async def work(sample: Sample, models: Models) -> tuple[dict[str, Any], dict[str, int]]:
        built = await _grounded(sample, models, options)
        return built.to_dict(), {"answerable": int(built.metadata["answerable"])}

    check = partial(_problems, options.claims)
    building = FileWork("building", check, options.settings(), lambda _: work)
    done = await write_each(source, out, backends, options, building)
    return Built(
        0 if done.stopped else done.written,
        0 if done.stopped else done.counts["answerable"],
        done.resumed,
        done.failed,
        done.stopped,
        done.endpoints,
    )


async def _grounded(sample: Sample, models: Models, options: BuildOptions) -> Sample:
    """Return the question with the documents that cover its gold claims.

    Raises:
        BackendError: passages were not found, or not judged; or the model named no claims.
    """

    async def ask(prompt: str) -> str:
        name = claims_prompt().name
        reply = await models.chat(prompt, seed=options.seed, prompt=name)
        if reply.finish == "length":
            raise ClaimError("the model's reply was cut before its claims were complete")
        return reply.text

    passages = await models.search(sample.question, options.candidates)
    if options.claims == "sentences":
        sample = replace(sample, claims=sentence_claims(sample))
    elif options.claims == "model":
        sample = replace(sample, claims=await asked_claims(sample, ask))
    documents = [Document(p.id, p.text, p.title) for p in passages]
    flags = await labelled(sample, documents, models, options.threshold)
    kept = chosen(flags, options.documents)
    return replace(
        sample,
        documents=tuple(replace(documents[d], supports=flags[d]) for d in kept),
        metadata={**sample.metadata, "answerable": any(any(flags[d]) for d in kept)},
    )


def _problems(claims: Claims, sample: Sample) -> list[Problem]:
    """Return what a question lacks: its gold."""
    if sample.answers or (sample.claims and claims == "given"):
        return []
    expected = "gold answers" if claims != "given" else "gold answers, or claims"
    return [Problem("answers", f"is missing (expected {expected})")]
