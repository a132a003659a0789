"""Reads pairs and texts with exported files by the shipped code, one at a time as it does.

Unlike it, a pair or text that is too long is cut, so that one pass over a long premise can be
measured, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from trustassay.backends import encoder as shipped
from trustassay.backends.embedded import UNMATCHED, inputs, windows
from trustassay.backends.encoder import softmax

__all__ = ["Encoder", "Reading", "softmax", "windows"]

Floats = NDArray[np.float64]
EMBEDDER_TOKENS = 256


@dataclass(frozen=True)
class Reading:
    """What the encoder says of one pair: logits of each window, shape (windows, 3)."""

    logits: Floats

    def inputs(self, premise: str, hypothesis: str) -> dict[str, float]:
        """Return what the combination may weigh."""
        return inputs(self.logits, premise, hypothesis)

    def odds(self) -> float:
        """Return the largest log-odds of entailment over the windows."""
        return float((self.logits[:, 0] - np.logaddexp(*self.logits[:, 1:].T)).max())


class Encoder:
    """The two graphs of a folder and the table they share."""

    def __init__(self, folder: Path, threads: int = 1) -> None:
        self.graphs = {
            name: shipped.Encoder(name, folder, threads) for name in ("entailer", "embedder")
        }

    def logits(self, pairs: Sequence[tuple[str, str]], tokens: int) -> Floats:
        """Return shape (n, 3), each pair read in one pass and cut at ``tokens``."""
        graph = self.graphs["entailer"]
        graph.tokenizer.enable_truncation(tokens, strategy="longest_first")
        found = graph.tokenizer.encode_batch(list(pairs))
        pieces = [shipped.Tokens(e.ids, _kinds(e.ids, e.type_ids)) for e in found]
        return graph.run(pieces).astype(np.float64)

    def embed(self, texts: Sequence[str]) -> Floats:
        """Return unit vectors, shape (n, 384); a text is cut at 256 tokens, as the original."""
        graph = self.graphs["embedder"]
        graph.tokenizer.enable_truncation(EMBEDDER_TOKENS)
        found = graph.tokenizer.encode_batch(list(texts))
        return graph.run([shipped.Tokens(e.ids, e.type_ids) for e in found]).astype(np.float64)


def _kinds(ids: list[int], segments: list[int]) -> list[int]:
    seen = {i for i, segment in zip(ids, segments, strict=True) if segment == 0}
    return [
        UNMATCHED if segment and i not in seen else segment
        for i, segment in zip(ids, segments, strict=True)
    ]
