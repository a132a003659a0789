"""``embedded``: entailment and embeddings from weights in the package.

The entailer reads a premise in overlapping windows of whole sentences with a small cross-encoder
and uses the window with the strongest entailment. A logistic combination, whose inputs and
weights are in ``entailer.json``, adds the words that the statement shares with the whole premise.
``docs/embedded-models.md`` reports the agreement with people; ``training/`` builds the weights.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from trustassay.backends import lexical
from trustassay.backends.checking import check_labels
from trustassay.backends.encoder import Encoder, Tokens, card, encoder, softmax
from trustassay.backends.windows import cut_pairs, is_copied
from trustassay.capabilities import BatchLimits, Probabilities, Vectors

__all__ = [
    "EmbeddedEmbedder",
    "EmbeddedEntailer",
    "encoder_features",
    "inputs",
    "log_odds",
    "window_logits",
]

COPIED = 0.98
"""Least probability that a premise entails its own sentence, as it is for most of them."""
EMBEDDED_AT_ONCE = 256
"""Tokens of one window of a text to embed, as the original encoder reads them."""


class EmbeddedEntailer:
    """The built-in entailer; ``threads=None`` uses all cores.

    ``folder`` names other weights of the same form, as ``training/`` makes them.

    Raises:
        BackendError: the weights or the packages that run them are missing or damaged.
    """

    limits = BatchLimits(items=32, tokens=16_384)
    stored = True
    languages = ("en",)

    def __init__(self, threads: int | None = None, folder: Path | None = None) -> None:
        self._card = card(folder)
        self.name = f"embedded:{self._card['version']}"
        self._encoder = encoder("entailer", threads, folder)
        check_labels(self)

    def scores(self, pairs: Sequence[tuple[str, str]]) -> Probabilities:
        """Return shape (n, 3): entailment, neutral, contradiction of n (premise, hypothesis)."""
        rows = [
            self._combined(read, *pair)
            for read, pair in zip(self.logits(pairs), pairs, strict=True)
        ]
        return np.array(rows, dtype=float).reshape(len(pairs), 3)

    def logits(self, pairs: Sequence[tuple[str, str]]) -> list[Probabilities]:
        """Return the encoder's logits of each pair's windows, shape (windows, 3)."""
        cut = self._card["windows"]
        return window_logits(self._encoder, pairs, cut["words"], cut["step"])

    def _combined(
        self, logits: Probabilities, premise: str, hypothesis: str
    ) -> tuple[float, float, float]:
        """Return calibrated probabilities, each split by its own logistic combination.

        The first is of entailment, the second of contradiction among what is not entailed. What
        stands in the premise word for word is entailed.
        """
        features = inputs(logits, premise, hypothesis)
        entailment = _chance(self._card["combination"], features)
        if is_copied(premise, hypothesis):
            entailment = max(entailment, COPIED)
        contradiction = (1 - entailment) * _chance(self._card["contradiction"], features)
        return entailment, 1 - entailment - contradiction, contradiction


class EmbeddedEmbedder:
    """all-MiniLM-L6-v2 as int8: unit vectors of 384 numbers; ``threads=None`` uses all cores.

    A text beyond 256 tokens is read in consecutive pieces of that length, and the mean of their
    vectors, weighted by length, is its direction: nothing is cut off.

    Raises:
        BackendError: the weights or the packages that run them are missing or damaged.
    """

    def __init__(self, threads: int | None = None) -> None:
        self.name = f"embedded:{card()['version']}"
        self._encoder = encoder("embedder", threads)

    def vectors(self, texts: Sequence[str]) -> Vectors:
        """Return unit vectors, shape (n, 384), for n texts; an empty text has one as well."""
        encoded = self._encoder.tokenizer.encode_batch(list(texts), add_special_tokens=False)
        pieces = [[tuple(p) for p in _pieces(one.ids, EMBEDDED_AT_ONCE - 2)] for one in encoded]
        first, last = self._encoder.tokenizer.encode("").ids
        # Texts that the tokenizer takes for the same are computed once.
        place: dict[tuple[int, ...], int] = {}
        places = [place.setdefault(ids, len(place)) for group in pieces for ids in group]
        tokens = [Tokens([first, *ids, last], [0] * (len(ids) + 2)) for ids in place]
        made = self._encoder.run(tokens)[places]
        weights = np.array([len(one.ids) for one in tokens], dtype=np.float32)[places]
        starts = np.cumsum([0, *(len(group) for group in pieces)])[:-1]
        sums = np.add.reduceat(made * weights[:, None], starts) if len(made) else made
        norms = np.linalg.norm(sums, axis=1, keepdims=True)
        return np.asarray(sums / np.maximum(norms, 1e-12), dtype=np.float32)


def window_logits(
    reader: Encoder, pairs: Sequence[tuple[str, str]], size: int, step: int
) -> list[Probabilities]:
    """Return a graph's logits of each pair's windows, shape (windows, 3).

    Of a statement that is read in parts, those of the part with the weakest support.
    """
    cut = cut_pairs(reader.tokenizer, pairs, size, step)
    flat = [tokens for parts in cut for part in parts for tokens in part]
    made = reader.run(flat).astype(float)
    ends = np.cumsum([len(part) for parts in cut for part in parts])
    read = iter(np.split(made, ends[:-1]))
    return [
        min((next(read) for _ in parts), key=lambda part: float(log_odds(part).max()))
        for parts in cut
    ]


def _pieces(ids: list[int], length: int) -> list[list[int]]:
    return [ids[i : i + length] for i in range(0, len(ids), length)] or [[]]


def _chance(combination: Mapping[str, Any], features: Mapping[str, float]) -> float:
    """Return the probability of a logistic combination of features."""
    weights = combination["weights"]
    z = combination["bias"] + sum(weight * features[name] for name, weight in weights.items())
    return float(1 / (1 + np.exp(-z)))


def log_odds(logits: Probabilities) -> Probabilities:
    """Return the log-odds of entailment, shape (n,), of logits of shape (n, 3)."""
    return np.asarray(logits[:, 0] - np.logaddexp(logits[:, 1], logits[:, 2]))


def encoder_features(logits: Probabilities) -> dict[str, float]:
    """Return the encoder's result for a pair, from the logits of its windows, shape (windows, 3).

    entailment: log-odds in the window where they are largest, within -8..8.
    contradiction: its probability in that window.
    contradiction_odds: its log-odds among what is not entailed there, within -8..8.
    """
    odds = log_odds(logits)
    best = int(odds.argmax())
    chances = softmax(logits[best])
    return {
        "entailment": float(np.clip(odds[best], -8, 8)),
        "contradiction": float(chances[2]),
        "contradiction_odds": float(np.clip(logits[best, 2] - logits[best, 1], -8, 8)),
    }


def inputs(logits: Probabilities, premise: str, hypothesis: str) -> dict[str, float]:
    """Return all possible inputs of a combination, from the logits of a pair's windows.

    containment: share of the hypothesis's content words that are in the whole premise.
    several_windows: 1 when the premise was read in several windows, else 0.
    containment_across: containment when it was, else 0: no window contains the whole premise.
    containment_unless_contradicted: containment times the probability of no contradiction.
    negation_differs: 1 when hypothesis and nearest sentence differ in negation.
    """
    seen = encoder_features(logits)
    found = lexical.overlap(premise, hypothesis)
    several = float(len(logits) > 1)
    return seen | {
        "containment": found.containment,
        "several_windows": several,
        "containment_across": found.containment * several,
        "containment_unless_contradicted": found.containment * (1 - seen["contradiction"]),
        "negation_differs": float(found.negation_differs),
    }
