"""Two baselines that cost next to nothing, as metrics, so that a run and a study hold them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from trustassay.core.metric import Assessment, Context, Figure, Mean, Metric, Need
from trustassay.text.words import content_words

FIGURES = {"mean": Figure("mean", "mean score", headline=True, statistic=Mean())}


@dataclass(frozen=True)
class Words(Metric):
    """The share of the answer's content words in the passage that holds most of them."""

    name: ClassVar[str] = "words"
    title: ClassVar[str] = "Words in the nearest passage"
    figures: ClassVar[Mapping[str, Figure]] = FIGURES

    def needs(self) -> Sequence[Need]:
        return []

    async def assess(self, context: Context) -> Assessment:
        sample = context.sample
        wanted = set(content_words(sample.response or ""))
        held = [len(wanted & set(content_words(one.text))) for one in sample.documents or ()]
        return Assessment(sample.id, self.name, max(held, default=0) / max(1, len(wanted)))


@dataclass(frozen=True)
class Cosine(Metric):
    """The largest cosine of the answer with a passage, from 0; negative ones count as 0."""

    name: ClassVar[str] = "cosine"
    title: ClassVar[str] = "Cosine with the nearest passage"
    figures: ClassVar[Mapping[str, Figure]] = FIGURES

    def needs(self) -> Sequence[Need]:
        return [Need("embed")]

    async def assess(self, context: Context) -> Assessment:
        sample = context.sample
        texts = [sample.response or "", *(one.text for one in sample.documents or ())]
        answer, *passages = await asyncio.gather(*map(context.models.embed, texts))
        largest = max((float(one @ answer) for one in passages), default=0.0)
        return Assessment(sample.id, self.name, min(1.0, max(0.0, largest)))
