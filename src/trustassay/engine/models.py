"""What a metric holds while it assesses one sample: the facade over the gatherers."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from dataclasses import dataclass

import numpy as np

from trustassay.capabilities import BackendError, BatchLimits, Entailer, Entailment
from trustassay.engine.batch import Codec, Counts, Gatherer, Policy
from trustassay.engine.cache import CallStore

__all__ = ["Backends", "Gatherers", "SampleModels"]

Pair = tuple[str, str]
DIGITS = 6
"""Digits of a probability that are kept; what a batch's padding changes lies beyond them."""


@dataclass(frozen=True, slots=True)
class Backends:
    """The backends of a run; one that no metric needs may be ``None``."""

    entailer: Entailer | None = None

    def names(self) -> dict[str, str]:
        """Return the backend's name for each capability at hand."""
        return {"entailer": self.entailer.name} if self.entailer else {}


class Gatherers:
    """One gatherer for each capability of a run; made inside the event loop."""

    def __init__(self, backends: Backends, store: CallStore | None, policy: Policy) -> None:
        self.entailment = (
            _entailment_gatherer(backends.entailer, store, policy) if backends.entailer else None
        )

    def counts(self) -> dict[str, Counts]:
        """Return what was asked of each capability in this process."""
        return {"entailment": self.entailment.counts} if self.entailment else {}

    async def close(self) -> None:
        """Stop all."""
        if self.entailment:
            await self.entailment.close()


class SampleModels:
    """The models as one sample's assessment sees them; counts what it asks for."""

    def __init__(self, gatherers: Gatherers) -> None:
        self._gatherers = gatherers
        self.calls: Counter[str] = Counter()

    def entail(self, premise: str, hypothesis: str) -> asyncio.Future[Entailment]:
        """Ask whether ``premise`` entails ``hypothesis``."""
        if self._gatherers.entailment is None:
            raise BackendError("this run has no entailer")
        self.calls["entailment"] += 1
        return self._gatherers.entailment.ask((premise, hypothesis))


def _entailment_gatherer(
    entailer: Entailer, store: CallStore | None, policy: Policy
) -> Gatherer[Pair, Entailment]:
    def compute(pairs: list[Pair]) -> list[Entailment]:
        scores = np.asarray(entailer.scores(pairs), dtype=float)
        if scores.shape != (len(pairs), 3) or not np.all((scores >= 0) & (scores <= 1)):
            raise BackendError(f"{entailer.name} did not return three probabilities for each pair")
        return [Entailment(*row) for row in scores.tolist()]

    codec: Codec[Pair, Entailment] = Codec(
        parts=lambda pair: pair,
        reply_to_json=lambda reply: json.dumps([round(p, DIGITS) for p in reply]),
        reply_from_json=lambda text: Entailment(*json.loads(text)),
    )
    return Gatherer(
        "entailment",
        entailer.name,
        compute,
        codec,
        limits=getattr(entailer, "limits", BatchLimits()),
        store=store if getattr(entailer, "stored", True) else None,
        policy=policy,
    )
