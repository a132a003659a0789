"""Reference inference with numpy, onnxruntime and tokenizers: what the shipped files compute.

Both graphs take rows of one shared word-embedding table (int8, a scale for each row), so the table
is shipped once. ``Models.entail`` is windows -> encoder -> combination with the lexical features.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from tokenizers import Tokenizer

from trustassay.backends.embedded import UNMATCHED, letter_features, windows
from trustassay.backends.encoder import softmax

__all__ = ["Encoder", "Models", "Reading", "lexical_features", "load", "softmax", "windows"]

Floats = NDArray[np.float64]
BATCH = 32
EMBEDDER_TOKENS = 256


def lexical_features(premise: str, hypothesis: str) -> dict[str, float]:
    """Return what the letters tell: containment and what the premise lacks."""
    return letter_features(premise, hypothesis)


@dataclass(frozen=True)
class Reading:
    """What the encoder says of one pair: logits of each window, shape (windows, 3)."""

    logits: Floats

    def features(self) -> dict[str, float]:
        """Return the pair's log-odds of entailment in its best window, and contradiction."""
        chances = softmax(self.logits)
        odds = self.logits[:, 0] - np.logaddexp(self.logits[:, 1], self.logits[:, 2])
        best = int(odds.argmax())
        return {
            "entailment": float(np.clip(odds[best], -8, 8)),
            "contradiction": float(chances[best, 2]),
            "contradiction_anywhere": float(chances[:, 2].max()),
            "contradiction_share": float(chances[best, 2] / max(chances[best, 1:].sum(), 1e-9)),
        }


class Encoder:
    """The two graphs and the table they share."""

    def __init__(self, folder: Path, threads: int = 1) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        table = np.load(folder / "embeddings.npz")
        self.rows, self.scales = table["rows"], table["scales"]
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tokenizer.no_padding()
        self.sessions = {
            name: onnxruntime.InferenceSession(folder / f"{name}.onnx", options)
            for name in ("entailer", "embedder")
            if (folder / f"{name}.onnx").exists()
        }

    def words(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return rows of the word-embedding table, shape (n, tokens, 384)."""
        rows = self.rows[ids].astype(np.float32) * self.scales[ids][..., None]
        return np.asarray(rows, dtype=np.float32)

    def logits(self, pairs: Sequence[tuple[str, str]], tokens: int) -> Floats:
        """Return shape (n, 3), each pair read in one pass and cut at ``tokens``."""
        self.tokenizer.enable_truncation(tokens, strategy="longest_first")
        found = [
            (e.ids, _kinds(e.ids, e.type_ids)) for e in self.tokenizer.encode_batch(list(pairs))
        ]
        return self._run("entailer", found)

    def embed(self, texts: Sequence[str]) -> Floats:
        """Return unit vectors, shape (n, 384); a text is cut at 256 tokens, as the original."""
        self.tokenizer.enable_truncation(EMBEDDER_TOKENS)
        found = [(e.ids, e.type_ids) for e in self.tokenizer.encode_batch(list(texts))]
        return self._run("embedder", found)

    def _run(self, name: str, found: list[tuple[list[int], list[int]]]) -> Floats:
        session = self.sessions[name]
        order = sorted(range(len(found)), key=lambda i: len(found[i][0]))
        made = np.zeros((len(found), 3 if name == "entailer" else self.rows.shape[1]))
        for start in range(0, len(order), BATCH):
            picks = order[start : start + BATCH]
            longest = -(-len(found[picks[-1]][0]) // 8) * 8
            ids, kinds, mask = np.zeros((3, len(picks), longest), dtype=np.int64)
            for row, (i, k) in enumerate(found[pick] for pick in picks):
                ids[row, : len(i)], kinds[row, : len(i)], mask[row, : len(i)] = i, k, 1
            inputs = {"words": self.words(ids), "mask": mask}
            if name == "entailer":
                inputs["kinds"] = kinds
            made[picks] = session.run(None, inputs)[0]
        return made


def _kinds(ids: list[int], segments: list[int]) -> list[int]:
    seen = {i for i, segment in zip(ids, segments, strict=True) if segment == 0}
    return [
        UNMATCHED if segment and i not in seen else segment
        for i, segment in zip(ids, segments, strict=True)
    ]


class Models:
    """Entailment and embeddings as shipped."""

    def __init__(self, folder: Path, threads: int = 1) -> None:
        self.encoder = Encoder(folder, threads)
        self.card: dict[str, Any] = json.loads((folder / "entailer.json").read_text())

    def read(self, pairs: Sequence[tuple[str, str]]) -> list[Reading]:
        """Return the encoder's logits of each pair's windows."""
        size, step = self.card["windows"]["words"], self.card["windows"]["step"]
        cut = [windows(premise, size, step) for premise, _ in pairs]
        flat = [(w, h) for ws, (_, h) in zip(cut, pairs, strict=True) for w in ws]
        logits = self.encoder.logits(flat, self.card["max_tokens"])
        ends = np.cumsum([len(ws) for ws in cut])
        return [Reading(part) for part in np.split(logits, ends[:-1])]

    def entail(self, pairs: Sequence[tuple[str, str]]) -> Floats:
        """Return shape (n, 3): calibrated entailment, neutral, contradiction."""
        rows = [
            probabilities(reading, premise, hypothesis, self.card["combination"])
            for reading, (premise, hypothesis) in zip(self.read(pairs), pairs, strict=True)
        ]
        return np.array(rows).reshape(len(pairs), 3)

    def embed(self, texts: Sequence[str]) -> Floats:
        """Return unit vectors, shape (n, 384)."""
        return self.encoder.embed(texts)


def probabilities(
    reading: Reading, premise: str, hypothesis: str, combination: dict[str, Any]
) -> tuple[float, float, float]:
    """Return entailment by the logistic combination; the rest is split as the encoder does."""
    features = reading.features() | lexical_features(premise, hypothesis)
    z = combination["bias"] + sum(w * features[n] for n, w in combination["weights"].items())
    entailment = 1 / (1 + np.exp(-z))
    contradiction = (1 - entailment) * features["contradiction_share"]
    return entailment, 1 - entailment - contradiction, contradiction


def load(folder: Path | str, threads: int = 1) -> Models:
    """Return the shipped models."""
    return Models(Path(folder), threads)
