"""What a metric holds while it assesses one sample: the facade over the gatherers."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from trustassay.capabilities import (
    BackendError,
    BatchLimits,
    Embedder,
    Entailer,
    Entailment,
    Similarity,
)
from trustassay.engine.batch import Codec, Counts, Gatherer, Policy
from trustassay.engine.cache import CallStore

__all__ = ["Backends", "Gatherers", "SampleModels"]

T = TypeVar("T")
Reply = TypeVar("Reply")
Pair = tuple[str, str]
Vector = NDArray[np.float32]
DIGITS = 6
"""Digits of a reply's numbers that are kept; what a batch's padding changes lies beyond them."""


_BACKENDS = {"entailment": "entailer", "embedding": "embedder", "similarity": "similarity"}


@dataclass(frozen=True, slots=True)
class Backends:
    """The backends of a run; one that no metric needs may be ``None``."""

    entailer: Entailer | None = None
    embedder: Embedder | None = None
    similarity: Similarity | None = None

    def names(self) -> dict[str, str]:
        """Return the backend's name for each capability at hand."""
        found = {name: getattr(self, name) for name in self.__slots__}
        return {name: backend.name for name, backend in found.items() if backend}


class Gatherers:
    """One gatherer for each capability of a run; made inside the event loop."""

    def __init__(self, backends: Backends, store: CallStore | None, policy: Policy) -> None:
        make = _Maker(store, policy)
        self.entailment = make.entailment(backends.entailer) if backends.entailer else None
        self.embedding = make.embedding(backends.embedder) if backends.embedder else None
        self.similarity = make.similarity(backends.similarity) if backends.similarity else None

    def _all(self) -> dict[str, Gatherer[Any, Any]]:
        found = vars(self).items()
        return {name: gatherer for name, gatherer in found if isinstance(gatherer, Gatherer)}

    def counts(self) -> dict[str, Counts]:
        """Return what was asked of each capability in this process."""
        return {name: gatherer.counts for name, gatherer in self._all().items()}

    async def close(self) -> None:
        """Stop all."""
        for gatherer in self._all().values():
            await gatherer.close()


class SampleModels:
    """The models as one sample's assessment sees them; counts what it asks for."""

    def __init__(self, gatherers: Gatherers) -> None:
        self._gatherers = gatherers
        self.calls: Counter[str] = Counter()

    def entail(self, premise: str, hypothesis: str) -> asyncio.Future[Entailment]:
        """Ask whether ``premise`` entails ``hypothesis``."""
        return self._ask("entailment", self._gatherers.entailment, (premise, hypothesis))

    def embed(self, text: str) -> asyncio.Future[Vector]:
        """Ask for the vector of a text."""
        return self._ask("embedding", self._gatherers.embedding, text)

    def compare(self, text: str, reference: str) -> asyncio.Future[float]:
        """Ask how much ``text`` says the same as ``reference``."""
        return self._ask("similarity", self._gatherers.similarity, (text, reference))

    def _ask(
        self, capability: str, gatherer: Gatherer[T, Reply] | None, item: T
    ) -> asyncio.Future[Reply]:
        if gatherer is None:
            raise BackendError(f"this run has no {_BACKENDS[capability]}")
        self.calls[capability] += 1
        return gatherer.ask(item)


@dataclass(frozen=True, slots=True)
class _Maker:
    """Makes gatherers that share a store and a policy."""

    store: CallStore | None
    policy: Policy

    def entailment(self, entailer: Entailer) -> Gatherer[Pair, Entailment]:
        def compute(pairs: list[Pair]) -> list[Entailment]:
            scores = np.asarray(entailer.scores(pairs), dtype=float)
            if scores.shape != (len(pairs), 3) or not np.all((scores >= 0) & (scores <= 1)):
                raise BackendError(
                    f"{entailer.name} did not return three probabilities for each pair"
                )
            if not np.allclose(scores.sum(axis=1), 1, atol=1e-3):
                raise BackendError(f"{entailer.name} returned probabilities that do not sum to 1")
            return [Entailment(*row) for row in scores.tolist()]

        codec: Codec[Pair, Entailment] = Codec(
            parts=lambda pair: pair,
            reply_to_json=_numbers,
            reply_from_json=lambda text: Entailment(*json.loads(text)),
        )
        return self._gatherer("entailment", entailer, compute, codec)

    def embedding(self, embedder: Embedder) -> Gatherer[str, Vector]:
        def compute(texts: list[str]) -> list[Vector]:
            vectors = np.asarray(embedder.vectors(texts), dtype=np.float32)
            if vectors.ndim != 2 or len(vectors) != len(texts) or not np.isfinite(vectors).all():
                raise BackendError(f"{embedder.name} did not return a vector for each text")
            return list(vectors)

        codec: Codec[str, Vector] = Codec(
            parts=lambda text: (text,),
            reply_to_json=lambda vector: _numbers(vector.tolist()),
            reply_from_json=lambda text: np.array(json.loads(text), dtype=np.float32),
        )
        return self._gatherer("embedding", embedder, compute, codec)

    def similarity(self, similarity: Similarity) -> Gatherer[Pair, float]:
        def compute(pairs: list[Pair]) -> list[float]:
            scores = np.asarray(similarity.scores(pairs), dtype=float)
            if scores.shape != (len(pairs),) or not np.isfinite(scores).all():
                raise BackendError(f"{similarity.name} did not return a number for each pair")
            found: list[float] = scores.tolist()
            return found

        codec: Codec[Pair, float] = Codec(
            parts=lambda pair: pair,
            reply_to_json=lambda score: _numbers([score]),
            reply_from_json=lambda text: float(json.loads(text)[0]),
        )
        return self._gatherer("similarity", similarity, compute, codec)

    def _gatherer(
        self,
        capability: str,
        backend: Entailer | Embedder | Similarity,
        compute: Callable[[list[T]], list[Reply]],
        codec: Codec[T, Reply],
    ) -> Gatherer[T, Reply]:
        return Gatherer(
            capability,
            backend.name,
            compute,
            codec,
            limits=getattr(backend, "limits", BatchLimits()),
            store=self.store if getattr(backend, "stored", True) else None,
            policy=self.policy,
        )


def _numbers(values: Sequence[float]) -> str:
    return json.dumps([round(value, DIGITS) for value in values])
