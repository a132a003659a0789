"""How much faster the engine scores cited answers than one pair at a time, and what it costs.

    python -m lab.benchmarks.grounding                          # 2,000 answers, five documents each
    python -m lab.benchmarks.grounding --answers 300 --layers 4 --width 256

Builds a small NLI model (random weights, a classifier shifted so that about half of the pairs
entail; two layers of width 64 unless told otherwise), writes generated answers, and scores the
same file in a plain loop that asks the model for one pair after the other, as most evaluation code
does, and through the engine with each of its measures switched on in turn. Then the engine alone,
with a model that answers at once.
Needs pip install '.[hf]'.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab.benchmarks import answers
from trustassay import score
from trustassay.backends.hf_entailer import HuggingFaceEntailer
from trustassay.calls.batching import BatchingPolicy
from trustassay.core.capabilities import BatchLimits

Pairs = Sequence[tuple[str, str]]


def build_model(path: Path, texts: Sequence[str], layers: int, width: int) -> None:
    """Save a BERT with a WordPiece tokenizer made from ``texts``."""
    import torch
    import transformers
    from tokenizers import BertWordPieceTokenizer

    torch.manual_seed(0)
    tokenizer = BertWordPieceTokenizer()
    tokenizer.train_from_iterator(texts, vocab_size=10_000, show_progress=False)
    fast = transformers.BertTokenizerFast(tokenizer_object=tokenizer._tokenizer)
    config = transformers.BertConfig(
        vocab_size=10_000,
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=width // 32,
        intermediate_size=4 * width,
        max_position_embeddings=2048,
        id2label={0: "entailment", 1: "neutral", 2: "contradiction"},
        label2id={"entailment": 0, "neutral": 1, "contradiction": 2},
    )
    model = transformers.BertForSequenceClassification(config)
    with torch.no_grad():
        model.classifier.weight.mul_(50)
    fast.model_max_length = 2048
    fast.save_pretrained(path)
    model.save_pretrained(path)


def shift(path: Path, pairs: Pairs) -> None:
    """Move the bias of entailment so that half of ``pairs`` are entailed."""
    import torch
    import transformers

    scores = HuggingFaceEntailer(str(path), check=False).scores(pairs)
    logits = np.log(scores[:, 0] / (1 - scores[:, 0]))
    model = transformers.BertForSequenceClassification.from_pretrained(path)
    with torch.no_grad():
        model.classifier.bias[0] -= float(np.median(logits))
    model.save_pretrained(path)


class Recording:
    """Passes pairs on to an entailer and keeps them."""

    stored = False

    def __init__(self, entailer: HuggingFaceEntailer) -> None:
        self.name, self.limits, self._entailer = "recording", entailer.limits, entailer
        self.pairs: list[tuple[str, str]] = []

    def scores(self, pairs: Pairs) -> NDArray[np.float64]:
        self.pairs += pairs
        return self._entailer.scores(pairs)


class Instant:
    """Answers at once: what is left is the engine and the metric."""

    name, stored, limits = "instant", False, BatchLimits(4096, None)

    def scores(self, pairs: Pairs) -> NDArray[np.float64]:
        return np.tile([1.0, 0.0, 0.0], (len(pairs), 1))


def timed(source: Path, entailer: Any, policy: BatchingPolicy) -> tuple[float, int]:
    started = time.perf_counter()
    run = score(source, metrics=["grounding"], entailer=entailer, policy=policy)
    return time.perf_counter() - started, run.outcome.counts["entailment"].computed


def compare(what: str, source: Path, entailer: HuggingFaceEntailer) -> None:
    """Print how long the plain loop takes, and the engine with its measures switched on in turn."""
    everything = Recording(entailer)
    timed(source, everything, BatchingPolicy(deduplicate=False))
    asked = everything.pairs
    started = time.perf_counter()
    for pair in asked:
        entailer.scores([pair])
    plain = time.perf_counter() - started
    print(f"\n{what}: {len(asked)} pairs requested\n")
    print("| how | pairs computed | seconds | pairs a second | times faster |")
    print("| --- | --- | --- | --- | --- |")
    print(row("one pair at a time, plain loop", len(asked), len(asked), plain, plain))
    for name, policy in (
        ("engine, asked once", BatchingPolicy(collect=False, sort=False)),
        ("engine, asked once, batched", BatchingPolicy(sort=False)),
        ("engine, asked once, batched, sorted by length", BatchingPolicy()),
    ):
        seconds, computed = timed(source, entailer, policy)
        print(row(name, computed, len(asked), seconds, plain))


def row(name: str, computed: int, asked: int, seconds: float, plain: float) -> str:
    cells = (name, computed, f"{seconds:.1f}", f"{asked / seconds:.0f}", f"{plain / seconds:.1f}")
    return f"| {' | '.join(map(str, cells))} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--answers", type=int, default=2000)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--width", type=int, default=64)
    args = parser.parse_args()
    count = args.answers
    with tempfile.TemporaryDirectory() as folder:
        distinct, shared = Path(folder) / "distinct.jsonl", Path(folder) / "shared.jsonl"
        answers.write(distinct, count)
        answers.write_comparison(shared, count)
        model = Path(folder) / "model"
        lines = distinct.read_text().splitlines()
        build_model(model, lines, args.layers, args.width)
        shift(model, [(f"{i} " + line[:800], line[900:1000]) for i, line in enumerate(lines[:200])])
        entailer = HuggingFaceEntailer(str(model), check=False)
        print(
            f"{count} answers, {os.cpu_count()} cores, BERT of {args.layers} layers of width "
            f"{args.width}"
        )
        compare("five models answer the same questions, supports computed", shared, entailer)
        compare("every answer to its own question, supports given", distinct, entailer)
        seconds, _ = timed(distinct, Instant(), BatchingPolicy())
        print(
            "\nengine and metric with a model that answers at once: "
            f"{1000 * seconds / count:.2f} ms per sample"
        )


if __name__ == "__main__":
    main()
