"""Which document supports which gold answer or claim: entailment, as at scoring."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from trustassay.capabilities import Models
from trustassay.metric import Inventory
from trustassay.metrics.grounding.correctness import mentions
from trustassay.metrics.grounding.options import Rules
from trustassay.sample import Document, Sample

__all__ = ["labelled", "premise"]

_RULES = Rules()


async def labelled(
    sample: Sample, documents: Sequence[Document], models: Models, threshold: float
) -> list[tuple[int, ...]]:
    """Return for each document its flags, one for each claim, or else for each gold answer.

    A claim, or an answer that is a whole sentence, is supported by a passage that entails it. For
    a short answer an alias must be in the passage, and the passage must entail the question
    followed by that alias (Song et al. 2025, data construction). Premises are written as the
    grounding metric writes them.

    Raises:
        BackendError: the entailer failed.
    """
    golds: Sequence[Sequence[str]] = [(claim,) for claim in sample.claims] or sample.answers
    whole = bool(sample.claims) or _whole_sentences(sample)
    pairs = {
        (d, g): (premise(document), hypothesis)
        for d, document in enumerate(documents)
        for g, gold in enumerate(golds)
        if (hypothesis := _hypothesis(sample.question, premise(document), gold, whole=whole))
    }
    replies = await asyncio.gather(*(models.entail(*pair) for pair in pairs.values()))
    entailed = {place for place, reply in zip(pairs, replies, strict=True) if reply[0] >= threshold}
    return [
        tuple(int((d, g) in entailed) for g in range(len(golds))) for d in range(len(documents))
    ]


def premise(document: Document) -> str:
    """Return a passage as entailment reads it, in the default profile of the grounding metric."""
    return f"Title: {document.title}\n{document.text}" if document.title else document.text


def _hypothesis(question: str, passage: str, gold: Sequence[str], *, whole: bool) -> str | None:
    if whole:
        return gold[0]
    alias = mentions(passage, gold, _RULES)
    return None if alias is None else f"{question} {alias}"


def _whole_sentences(sample: Sample) -> bool:
    """Whether the gold answers mostly are sentences, by the rule that the grounding metric uses."""
    inventory = Inventory()
    inventory.add(sample)
    return bool(inventory.sentence_answers)
