"""What int8 costs: ``python -m lab.training.verify RUN OUT`` writes OUT/drift.json.

Entailer: shipped graph against the run in torch fp32 (label agreement, AUC, one pass). Embedder:
cosine of the shipped vectors to the original encoder's, on 1,000 sentences of development data.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from lab.training.agreement import auc
from lab.training.combine import items
from lab.training.export import load_run, original
from lab.training.infer import EMBEDDER_TOKENS, Encoder, softmax
from lab.training.model import collate, encode, tokenizer

__all__ = ["embedding_drift", "entailer_drift"]

Floats = NDArray[np.float64]
SETS = ("snli", "mnli", "vitaminc", "fever_symmetric", "begin_wow_dev", "healthver_dev")
ROWS = 600
SENTENCES = 1000
BATCH = 32
TOKENS = 192


@torch.inference_mode()  # type: ignore[untyped-decorator]
def torch_logits(run: Path, pairs: Sequence[tuple[str, str]]) -> Floats:
    """Return fp32 logits of a run."""
    model = load_run(run)
    found = encode(list(pairs))
    order = sorted(range(len(found)), key=lambda i: len(found[i][0]))
    made = np.zeros((len(found), 3))
    for start in range(0, len(order), BATCH):
        picks = order[start : start + BATCH]
        made[picks] = model(*collate([found[i] for i in picks])).numpy()
    return made


def entailer_drift(run: Path, shipped: Encoder, name: str) -> dict[str, float]:
    """Compare fp32 and int8 on the first rows of a set."""
    rows = items(name)
    pairs, truth = rows.pairs[:ROWS], rows.supported[:ROWS]
    before, after = torch_logits(run, pairs), shipped.logits(pairs, TOKENS)
    p, q = softmax(before), softmax(after)
    return {
        "n": len(pairs),
        "label agreement": round(float((p.argmax(1) == q.argmax(1)).mean()), 4),
        "mean change of P(entailment)": round(float(np.abs(p[:, 0] - q[:, 0]).mean()), 4),
        "auc fp32": round(auc(p[:, 0], truth), 4),
        "auc int8": round(auc(q[:, 0], truth), 4),
    }


def sentences() -> list[str]:
    """Return 1,000 texts: premises and hypotheses of six sets."""
    rng = np.random.default_rng([0, 6])
    texts = sorted({t for name in SETS for pair in items(name).pairs for t in pair})
    return [texts[i] for i in rng.permutation(len(texts))[:SENTENCES]]


@torch.inference_mode()  # type: ignore[untyped-decorator]
def original_vectors(texts: Sequence[str]) -> Floats:
    """Return the original's vectors: mean over tokens, normalised, fp32."""
    model, split = original(), tokenizer()
    split.enable_truncation(EMBEDDER_TOKENS)
    made = []
    for text in texts:
        ids = torch.tensor([split.encode(text).ids])
        mean = model(input_ids=ids).last_hidden_state[0].mean(0)
        made.append((mean / mean.norm()).numpy())
    split.enable_truncation(TOKENS, strategy="longest_first")
    return np.array(made, dtype=float)


def embedding_drift(shipped: Encoder) -> dict[str, float]:
    """Return the cosine of shipped and original vectors."""
    texts = sentences()
    cosines = (shipped.embed(texts) * original_vectors(texts)).sum(1)
    values = {"n": len(texts), "mean": cosines.mean(), "minimum": cosines.min()}
    return {name: round(float(value), 5) for name, value in values.items()}


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("out", type=Path)
    args = parser.parse_args()
    torch.set_num_threads(1)
    shipped = Encoder(args.out)
    made: dict[str, Any] = {n: entailer_drift(args.run, shipped, n) for n in SETS}
    made["embedder, cosine to the original"] = embedding_drift(shipped)
    text = json.dumps(made, indent=1)
    (args.out / "drift.json").write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
