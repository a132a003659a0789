"""Whether a premise entails a hypothesis."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from trustassay.backends import DEFAULT_ENTAILER, resolve
from trustassay.calls.capability import Capability, Through, numbers
from trustassay.calls.keeping import Codec
from trustassay.capabilities import Entailer, Entailment
from trustassay.errors import BackendError

__all__ = ["ENTAIL", "chat_behind"]

Pair = tuple[str, str]


def compute(entailer: Entailer, pairs: list[Pair]) -> list[Entailment]:
    """Return the probabilities of pairs of premise and hypothesis.

    Raises:
        BackendError: the entailer returned something else.
    """
    scores = np.asarray(entailer.scores(pairs), dtype=float)
    if scores.shape != (len(pairs), 3) or not np.all((scores >= 0) & (scores <= 1)):
        raise BackendError(f"{entailer.name} did not return three probabilities for each pair")
    if not np.allclose(scores.sum(axis=1), 1, atol=1e-3):
        raise BackendError(f"{entailer.name} returned probabilities that do not sum to 1")
    return [Entailment(*row) for row in scores.tolist()]


def chat_behind(entailer: Any) -> Any | None:
    """Return the chat model that an entailer asks, if it asks one."""
    return getattr(entailer, "chat_model", None)


def through(entailer: Any) -> Through | None:
    """Return how an entailer asks a chat model."""
    model = chat_behind(entailer)
    return None if model is None else Through("chat", model, entailer.aentailment)


ENTAIL: Capability[Pair, Entailment] = Capability(
    name="entail",
    stored_as="entailment",
    backend="entailer",
    item=lambda premise, hypothesis: (premise, hypothesis),
    compute=compute,
    codec=Codec(
        parts=lambda pair: pair,
        reply_to_json=numbers,
        reply_from_json=lambda text: Entailment(*json.loads(text)),
    ),
    stand_in=lambda _: Entailment(0.5, 0.25, 0.25),
    load=resolve.entailer,
    default=DEFAULT_ENTAILER,
    option="--entailer",
    through=through,
)
