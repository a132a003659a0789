"""Reads pairs and texts with exported files by the shipped code, one at a time as it does.

Windows, their tokens and the parts of long statements are the shipped ones. Only for measuring
what windows are worth, one pass over a whole premise is cut at a number of tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from trustassay.backends import embedded as shipped
from trustassay.backends.embedded import (
    compute_features,
    compute_log_odds,
    compute_window_logits,
    cut_windows,
    pair_tokens,
    softmax,
)

__all__ = ["Encoder", "Reading", "cut_windows", "softmax"]

Floats = NDArray[np.float64]
EMBEDDER_TOKENS = 256


@dataclass(frozen=True)
class Reading:
    """What the encoder says of one pair: logits of each window, shape (windows, 3)."""

    logits: Floats

    def inputs(self, premise: str, hypothesis: str) -> dict[str, float]:
        """Return what the combination may weigh."""
        return compute_features(self.logits, premise, hypothesis)

    def odds(self) -> float:
        """Return the largest log-odds of entailment over the windows."""
        return float(compute_log_odds(self.logits).max())


class Encoder:
    """The two graphs of a folder and the table they share."""

    def __init__(self, folder: Path, threads: int = 1) -> None:
        self.graphs = {
            name: shipped.Encoder(name, folder, threads) for name in ("entailer", "embedder")
        }

    def windowed(self, pairs: Sequence[tuple[str, str]], size: int, step: int) -> list[Floats]:
        """Return the logits of each pair's windows, as the shipped code reads them."""
        return compute_window_logits(self.graphs["entailer"], pairs, size, step)

    def logits(self, pairs: Sequence[tuple[str, str]], tokens: int) -> Floats:
        """Return shape (n, 3), each pair read in one pass and cut at ``tokens``."""
        graph = self.graphs["entailer"]
        graph.tokenizer.enable_truncation(tokens, strategy="longest_first")
        found = graph.tokenizer.encode_batch(list(pairs))
        graph.tokenizer.no_truncation()
        return graph.run([pair_tokens(e.ids, e.type_ids) for e in found]).astype(np.float64)

    def embed(self, texts: Sequence[str]) -> Floats:
        """Return unit vectors, shape (n, 384); a text is cut at 256 tokens, as the original."""
        graph = self.graphs["embedder"]
        graph.tokenizer.enable_truncation(EMBEDDER_TOKENS)
        found = graph.tokenizer.encode_batch(list(texts))
        return graph.run([shipped.EncodedText(e.ids, e.type_ids) for e in found]).astype(np.float64)
