"""The embedded encoders: int8 ONNX graphs over one shared table of word embeddings.

Both graphs begin behind the word embeddings, so that the table, a third of all weights, is shipped
once: int8 rows with a scale each. Needs onnxruntime and tokenizers, and nothing from a network.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trustassay.backends import telemetry
from trustassay.errors import BackendError

__all__ = ["Encoder", "Tokens", "card", "encoder", "softmax", "weights_folder"]

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]


class Tokens(NamedTuple):
    """A text, or a pair, as the encoder reads it; ``kinds`` has a kind for each id."""

    ids: list[int]
    kinds: list[int]


class Encoder:
    """One of the two graphs (``entailer`` or ``embedder``) with its tokenizer and the table.

    Raises:
        BackendError: onnxruntime or tokenizers is missing, or the files are damaged.
    """

    def __init__(self, name: str, folder: Path, threads: int) -> None:
        try:
            import tokenizers

            onnxruntime = telemetry.import_onnxruntime()
        except ImportError as error:
            raise BackendError(
                f"a package that the embedded models need cannot be imported ({error}); "
                "install trustassay again"
            ) from error
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.log_severity_level = 3
        try:
            # Its fused layer norm takes longer than the addition and the norm it replaces.
            self.session = onnxruntime.InferenceSession(
                folder / f"{name}.onnx",
                options,
                providers=["CPUExecutionProvider"],
                disabled_optimizers=["SkipLayerNormFusion"],
            )
            self.tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
            self.rows, self.scales = _table(folder)
        except Exception as error:
            raise BackendError(f"the embedded {name} cannot be loaded: {error}") from error
        self.tokenizer.no_padding()
        self.tokenizer.no_truncation()
        self._workers = ThreadPoolExecutor(threads, thread_name_prefix=f"trustassay-{name}")
        self._inputs = {node.name for node in self.session.get_inputs()}
        self.width: int = self.session.get_outputs()[0].shape[1]

    def run(self, tokens: Sequence[Tokens]) -> Floats:
        """Return the graph's output, shape (n, width), in the order of ``tokens``.

        Every item runs by itself, several at a time: int8 activations are scaled over a batch, so
        that in a batch a result would depend on the other items.
        """
        rows = list(self._workers.map(self._one, tokens))
        return np.concatenate(rows) if rows else np.zeros((0, self.width), dtype=np.float32)

    def _one(self, tokens: Tokens) -> Floats:
        ids = np.array([tokens.ids], dtype=np.int64)
        inputs = {
            "words": self._words(ids),
            "kinds": np.array([tokens.kinds], dtype=np.int64),
            "mask": np.ones_like(ids),
        }
        feed = {name: value for name, value in inputs.items() if name in self._inputs}
        output: Floats = self.session.run(None, feed)[0]
        return output

    def _words(self, ids: Ints) -> Floats:
        """Return rows of the word-embedding table, shape (n, tokens, width)."""
        return self.rows[ids].astype(np.float32) * self.scales[ids][..., None]


@cache
def _table(folder: Path) -> tuple[NDArray[np.int8], Floats]:
    """Return the table of word embeddings, int8 rows and their scales; both encoders share it."""
    with np.load(folder / "embeddings.npz", allow_pickle=False) as table:
        return table["rows"], table["scales"]


def softmax(logits: NDArray[Any]) -> NDArray[np.float64]:
    """Return exp(x) / sum exp(x) along the last axis."""
    shifted = np.exp(logits - logits.max(axis=-1, keepdims=True), dtype=np.float64)
    return np.asarray(shifted / shifted.sum(axis=-1, keepdims=True))


@cache
def weights_folder() -> Path:
    """Return the folder of the shipped files."""
    with as_file(files("trustassay.backends") / "weights") as folder:
        return folder


@cache
def card(folder: Path | None = None) -> dict[str, Any]:
    """Return the content of ``entailer.json``: labels, windows, combination, checksums etc."""
    path = (folder or weights_folder()) / "entailer.json"
    try:
        content: dict[str, Any] = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise BackendError(f"the embedded models are damaged: {error}") from error
    return content


@cache
def encoder(name: str, threads: int | None = None, folder: Path | None = None) -> Encoder:
    """Return the encoder of that name, loaded once for each number of threads (``None``: all)."""
    return Encoder(name, folder or weights_folder(), threads or os.cpu_count() or 1)
