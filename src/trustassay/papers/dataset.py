"""Build a data set for the grounding metric from questions with gold answers.

For each question (Song et al. 2025, data construction):

1. Retrieve passages.
2. Get its gold claims: those of the record, the sentences of the gold answer, or a model's list.
3. Label by entailment which passage supports which claim.
4. Keep the documents that cover most claims.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args

from trustassay.backends import DEFAULT_ENTAILER, resolve
from trustassay.calls.backends import Backends
from trustassay.core.capabilities import Models, Retriever
from trustassay.core.event_loop import run_anywhere
from trustassay.core.metric import Inventory
from trustassay.core.prompts import load_prompt
from trustassay.core.sample import Document, Problem, Sample
from trustassay.errors import UnknownNameError, UnparsedError, UsageError, did_you_mean
from trustassay.judging.claims import build_claims
from trustassay.judging.passages import build_premise
from trustassay.metrics.grounding.maths import find_mention
from trustassay.metrics.grounding.options import Rules
from trustassay.papers.resumable import FileOptions, FileResult, FileWork, write_each
from trustassay.runs.intake import Source
from trustassay.text.replies import find_numbered_lines
from trustassay.text.sentences import load_splitter as sentence_splitter

Ask = Callable[[str], Awaitable[str]]
"""Sends a prompt to a chat model and returns its reply; raises :class:`BackendError`."""
Claims = Literal["given", "sentences", "model"]
"""Where the claims of a question come from, as of :class:`BuildOptions`."""
CLAIMS_PER_ANSWER = 3
"""Claims that a model is asked to write for one gold answer, as in Song et al. 2025."""
_RULES = Rules()
"""How short answers are looked for in a passage: as the grounding metric does by default."""


class ClaimError(UnparsedError):
    """A model's reply holds no claims; the message shows the reply."""


def split_into_claims(sample: Sample) -> tuple[str, ...]:
    """Return the sentences of the gold answers, without citations and numbering, each once."""
    # The splitter of the grounding metric, so that claims are cut as it cuts sentences.
    split = sentence_splitter("sentencex")
    claims = (
        claim.hypothesis
        for aliases in sample.answers
        for claim in build_claims(sample.question, aliases[0], split)
        if claim.hypothesis
    )
    return tuple(dict.fromkeys(" ".join(text.split()) for text in claims))


async def ask_claims(sample: Sample, ask: Ask) -> tuple[str, ...]:
    """Return the claims that a model finds in the gold answers.

    Raises:
        ClaimError: a reply holds none.
        BackendError: the model did not answer.
    """
    prompt = load_prompt("trustassay.papers", "claims")
    prompts = [
        prompt.fill(question=sample.question, answer=aliases[0], count=CLAIMS_PER_ANSWER)
        for aliases in sample.answers
    ]
    replies = await asyncio.gather(*map(ask, prompts))
    claims = [claim for reply in replies for claim in parse_claims(reply)]
    # Answers may repeat a claim.
    return tuple(dict.fromkeys(claims))


def parse_claims(reply: str) -> tuple[str, ...]:
    """Read the lines ``1. ...``, ``2) ...``, ``Claim 3: ...``, numbered from 1; skip others.

    Raises:
        ClaimError: there is no such line.
    """
    # Models print numbers in bold, as `**1.** ...`.
    lines = (line["text"].strip() for line in find_numbered_lines(reply.replace("**", "")))
    claims = tuple(dict.fromkeys(filter(None, lines)))
    if not claims:
        excerpt = " ".join(reply.split())
        raise ClaimError(f"the model's reply has no numbered claims: {excerpt[:80]!r}")
    return claims


async def label_documents(
    sample: Sample, documents: Sequence[Document], models: Models, threshold: float
) -> list[tuple[int, ...]]:
    """Return the flags of each document: which claims, or else gold answers, it supports.

    A claim, or an answer that is a whole sentence, is supported by a passage that entails it. For
    a short answer an alias must be in the passage, and the passage must entail the question
    followed by that alias (Song et al. 2025, data construction). Premises are written as the
    grounding metric writes them.

    Raises:
        BackendError: the entailer failed.
    """
    # Claims win over answers: both may be given.
    golds: Sequence[Sequence[str]] = [(claim,) for claim in sample.claims] or sample.answers
    are_sentences = bool(sample.claims) or _are_sentences(sample)
    pairs = {
        (d, g): (build_premise(document), hypothesis)
        for d, document in enumerate(documents)
        for g, gold in enumerate(golds)
        if (
            hypothesis := _build_hypothesis(
                sample.question, build_premise(document), gold, are_sentences=are_sentences
            )
        )
    }
    # All pairs at once, so that the entailer can batch them.
    replies = await asyncio.gather(*(models.entail(*pair) for pair in pairs.values()))
    entailed = {key for key, reply in zip(pairs, replies, strict=True) if reply[0] >= threshold}
    return [
        tuple(int((d, g) in entailed) for g in range(len(golds))) for d in range(len(documents))
    ]


def _build_hypothesis(
    question: str, passage: str, gold: Sequence[str], *, are_sentences: bool
) -> str | None:
    if are_sentences:
        return gold[0]
    # A short answer alone is no statement: the question and the alias of this passage are one.
    alias = find_mention(passage, gold, _RULES)
    return None if alias is None else f"{question} {alias}"


def _are_sentences(sample: Sample) -> bool:
    """Whether the gold answers mostly are sentences, by the rule that the grounding metric uses."""
    # The metric decides by all samples; here each question stands alone.
    inventory = Inventory()
    inventory.add(sample)
    return bool(inventory.sentence_answers)


def choose_documents(supports: Sequence[Sequence[int]], k: int) -> list[int]:
    """Return the indices of the ``k`` documents to keep (Song et al. 2025, data construction).

    ``supports[d][g]`` says whether document ``d`` supports gold answer ``g``; documents are in
    the order of retrieval. First the ``k`` documents that support most gold answers are selected;
    of equal ones the earlier wins. Then each in turn is replaced by the remaining document that
    increases the number of covered gold answers most, if any does. If there are fewer than ``k``
    documents all are kept; if no flag is set the first ``k`` are.
    """
    # `sorted` is stable, so equal documents stay in the order of retrieval.
    order = sorted(range(len(supports)), key=lambda d: -sum(supports[d]))
    selected, remaining = order[:k], order[k:]
    golds = [frozenset(g for g, flag in enumerate(flags) if flag) for flags in supports]
    for position in range(len(selected)):
        covered_by_others = frozenset().union(
            *(golds[d] for i, d in enumerate(selected) if i != position)
        )
        covered_now = len(covered_by_others | golds[selected[position]])
        best = max(remaining, key=lambda d: len(covered_by_others | golds[d]), default=None)
        # A swap: the replaced document may come back at a later position.
        if best is not None and len(covered_by_others | golds[best]) > covered_now:
            remaining[remaining.index(best)], selected[position] = selected[position], best
    return selected


@dataclass(frozen=True)
class BuildOptions(FileOptions):
    """How a data set is built.

    claims: ``given`` takes a question's claims, or else its gold answers; ``sentences`` splits the
        gold answers; ``model`` asks a chat model what they claim.
    candidates: passages retrieved for a question. documents: how many of them are kept.
    threshold: probability of entailment from which a passage supports.
    seed: goes to the chat model. The others: as in
        :class:`~trustassay.papers.resumable.FileOptions`.
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
            # Only a model depends on seed and prompt.
            prompt = load_prompt("trustassay.papers", "claims")
            settings |= {"seed": self.seed, "prompt": prompt.name}
        return settings


def build(
    source: Source,
    out: str | os.PathLike[str],
    retriever: Retriever,
    entailer: resolve.EntailerChoice = DEFAULT_ENTAILER,
    model: resolve.ChatChoice | None = None,
    options: BuildOptions | None = None,
) -> FileResult:
    """Build a data set and write it to ``out`` in canonical JSON Lines, whole or not at all.

    Every question needs gold ``answers`` or ``claims``. It gets ``documents`` whose ``supports``
    are parallel to its claims, or else to its answers, and ``answerable``: whether any document
    supports any of them. Its own documents are replaced. The result counts the ``answerable``
    ones. The same call continues an interrupted one, and gives the same bytes.

    Raises:
        BadInputError, InputError: the input has faults; nothing was started.
        UnfinishedError: other work on ``out`` is unfinished.
        BackendError, UnknownNameError: no such entailer or model.
        ValueError: claims=model without a model, or a model without it.
    """
    options = options or BuildOptions()
    # A model that is not used would look as if it were.
    if (options.claims == "model") != (model is not None):
        raise UsageError("claims=model needs a model, and other claims take none")

    async def work(sample: Sample, models: Models) -> tuple[dict[str, Any], dict[str, int]]:
        built = await _add_documents(sample, models, options)
        return built.to_dict(), {"answerable": int(built.metadata["answerable"])}

    backends = Backends.of(
        entail=resolve.entailer(entailer),
        search=retriever,
        chat=None if model is None else {"model": resolve.chat(model)},
    )
    check = partial(_find_problems, options.claims)
    building = FileWork("building", check, options.settings(), lambda _: work)
    return run_anywhere(lambda: write_each(source, Path(out), backends, options, building))


async def _add_documents(sample: Sample, models: Models, options: BuildOptions) -> Sample:
    """Return the question with the documents that cover its gold claims.

    Raises:
        BackendError: the retriever or the entailer failed, or the model listed no claims.
    """

    async def ask(prompt: str) -> str:
        name = load_prompt("trustassay.papers", "claims").name
        reply = await models.chat(prompt, seed=options.seed, prompt=name)
        # The last claim would be half a sentence.
        if reply.finish == "length":
            raise ClaimError("the model's reply was cut before its claims were complete")
        return reply.text

    # More candidates than documents: coverage is chosen among them.
    passages = await models.search(sample.question, options.candidates)
    if options.claims == "sentences":
        sample = replace(sample, claims=split_into_claims(sample))
    elif options.claims == "model":
        sample = replace(sample, claims=await ask_claims(sample, ask))
    documents = [Document(p.id, p.text, p.title) for p in passages]
    flags = await label_documents(sample, documents, models, options.threshold)
    indices = choose_documents(flags, options.documents)
    return replace(
        sample,
        documents=tuple(replace(documents[d], supports=flags[d]) for d in indices),
        metadata={**sample.metadata, "answerable": any(any(flags[d]) for d in indices)},
    )


def _find_problems(claims: Claims, sample: Sample) -> list[Problem]:
    """Return the problems of a question: it needs gold answers or claims."""
    if sample.answers or (sample.claims and claims == "given"):
        return []
    expected = "gold answers" if claims != "given" else "gold answers, or claims"
    return [Problem("answers", f"is missing (expected {expected})")]
