"""Exports the two encoders to int8 ONNX without their word-embedding table, which they share.

``python -m lab.training.export RUN OUT`` writes embedder.onnx, entailer.onnx, embeddings.npz and
tokenizer.json. Opset 17; weights int8 per channel with reduced range (safe on CPUs without VNNI).
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import tempfile
from pathlib import Path

import numpy as np
import torch
from onnxruntime.quantization import QuantType, quantize_dynamic
from onnxruntime.quantization.shape_inference import quant_pre_process
from torch import Tensor, nn
from transformers import BertModel

from lab.training.model import CrossEncoder, folder, load, pooled

__all__ = ["export", "load_run"]

OPSET = 17


class Graph(nn.Module):  # type: ignore[misc]
    """The encoder written out in plain operations, for a graph without surprises."""

    def __init__(self, bert: BertModel) -> None:
        super().__init__()
        self.bert = bert
        self.heads = bert.config.num_attention_heads

    def states(self, words: Tensor, kinds: Tensor, mask: Tensor) -> Tensor:
        """Return the last layer's states, shape (n, tokens, width)."""
        below = self.bert.embeddings
        places = below.position_embeddings.weight[: words.shape[1]]
        states = below.LayerNorm(words + below.token_type_embeddings(kinds) + places)
        hidden = (1.0 - mask[:, None, None, :].to(words.dtype)) * -1e4
        for layer in self.bert.encoder.layer:
            states = self._layer(layer, states, hidden)
        return states

    def _layer(self, layer: nn.Module, states: Tensor, hidden: Tensor) -> Tensor:
        inner = layer.attention.self
        query, key, value = (
            self._split(part(states)) for part in (inner.query, inner.key, inner.value)
        )
        scores = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1]) + hidden
        mixed = (torch.softmax(scores, -1) @ value).transpose(1, 2).flatten(2)
        out = layer.attention.output
        states = out.LayerNorm(out.dense(mixed) + states)
        wide = nn.functional.gelu(layer.intermediate.dense(states))
        return layer.output.LayerNorm(layer.output.dense(wide) + states)

    def _split(self, x: Tensor) -> Tensor:
        return x.view(x.shape[0], x.shape[1], self.heads, -1).transpose(1, 2)


class EntailerGraph(Graph):
    """(words, kinds, mask) -> logits."""

    def __init__(self, model: CrossEncoder) -> None:
        super().__init__(model.bert)
        self.head = model.head

    def forward(self, words: Tensor, kinds: Tensor, mask: Tensor) -> Tensor:
        """Return shape (n, 3)."""
        return self.head(pooled(self.states(words, kinds, mask), kinds, mask))


class EmbedderGraph(Graph):
    """(words, mask) -> unit vectors: the mean over tokens, normalised, as the original."""

    def forward(self, words: Tensor, mask: Tensor) -> Tensor:
        """Return shape (n, width)."""
        states = self.states(words, torch.zeros_like(mask), mask)
        weight = mask[:, :, None].to(states.dtype)
        mean = (states * weight).sum(1) / weight.sum(1).clamp(min=1e-9)
        return nn.functional.normalize(mean, dim=1)


def load_run(run: Path) -> CrossEncoder:
    """Return a trained cross-encoder."""
    options = json.loads((run / "run.json").read_text())["options"]
    return load(run, options["head"]).eval()


def write(graph: Graph, inputs: dict[str, Tensor], target: Path, quantise: bool = True) -> None:
    """Write a graph with free batch and length, its matrices as int8."""
    with tempfile.TemporaryDirectory() as place:
        plain, ready = Path(place) / "plain.onnx", Path(place) / "ready.onnx"
        torch.onnx.export(
            graph.eval(),
            tuple(inputs.values()),
            str(plain),
            input_names=list(inputs),
            output_names=["out"],
            dynamic_axes={name: {0: "n", 1: "tokens"} for name in inputs} | {"out": {0: "n"}},
            opset_version=OPSET,
            dynamo=False,
        )
        if not quantise:
            shutil.copy(plain, target)
            return
        quant_pre_process(str(plain), str(ready), skip_symbolic_shape=True)
        quantize_dynamic(
            ready, target, per_channel=True, reduce_range=True, weight_type=QuantType.QInt8
        )


def table(weight: Tensor) -> tuple[np.ndarray, np.ndarray]:
    """Return int8 rows and their scales: row = rows * scale, with the largest value at 127."""
    values = weight.detach().numpy()
    scales = np.maximum(np.abs(values).max(1), 1e-12) / 127
    rows = np.clip(np.round(values / scales[:, None]), -127, 127).astype(np.int8)
    return rows, scales.astype(np.float32)


def original() -> BertModel:
    """Return the sentence encoder as its package carries it."""
    return BertModel.from_pretrained(
        folder(), attn_implementation="eager", add_pooling_layer=False
    ).eval()


def export(run: Path, out: Path, quantise: bool = True) -> None:
    """Write both graphs, the table and the tokenizer."""
    out.mkdir(parents=True, exist_ok=True)
    base, model = original(), load_run(run)
    shared = base.embeddings.word_embeddings.weight
    if not torch.equal(shared, model.bert.embeddings.word_embeddings.weight):
        raise ValueError("the run changed the word embeddings, which both graphs share")
    rows, scales = table(shared)
    np.savez(out / "embeddings.npz", rows=rows, scales=scales)
    shutil.copyfile(folder() / "tokenizer.json", out / "tokenizer.json")
    words = torch.randn(2, 16, rows.shape[1])
    kinds = torch.tensor([[0] * 8 + [1] * 6 + [2] * 2] * 2)
    mask = torch.ones(2, 16, dtype=torch.long)
    inputs = {"words": words, "kinds": kinds, "mask": mask}
    with torch.inference_mode():
        write(EntailerGraph(model), inputs, out / "entailer.onnx", quantise)
        del inputs["kinds"]
        write(EmbedderGraph(base), inputs, out / "embedder.onnx", quantise)


def main() -> None:
    """Export one run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--fp32", action="store_true", help="leave the weights as they are")
    args = parser.parse_args()
    export(args.run, args.out, not args.fp32)


if __name__ == "__main__":
    main()
