"""What all statistics of ``uncertainty`` cost beside one matrix of LM-Polygraph.

    python -m lab.benchmarks.local_methods --out FOLDER --n 20 --ways uncertainty   # has the
    replies
    pip install torch lm-polygraph==0.7.0      # in an environment of its own, beside trustassay
    python -m lab.benchmarks.uncertainty_speed --out FOLDER [--questions 60] [--slow 5]

An answer and ten replies of a small model to each question, on two threads:

- ``family``: ``uncertainty:parts=auto+pairs+words`` with the embedded entailer, nothing stored;
- ``lm_polygraph``: its matrix of entailments between the replies, which several of its methods
  need, by a model of the size of its default, DeBERTa-large trained on MNLI. That model's weights
  are random, and its tokens are those of the embedded entailer: it takes the same time, and its
  outcomes are not used;
- ``lm_polygraph_embedded``: the same code with the embedded entailer as its model.

Told are the CPU seconds of all threads, the wall seconds, and the CPU seconds that other programs
took meanwhile; ``alone`` says whether these were few. If not, wall seconds are too many. Ratios are
of CPU seconds, on the same questions. Writes ``results/uncertainty-speed.json``.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from lab.results import write_result
from trustassay import score
from trustassay.backends.embedded import EmbeddedEntailer, load_encoder
from trustassay.metrics.uncertainty import Uncertainty
from trustassay.metrics.uncertainty.options import select_parts
from trustassay.statistics.resampling import generator

Record = dict[str, Any]
PARTS = "auto+pairs+words"
THREADS = 2
SIZE = {
    "vocab_size": 50_265,
    "hidden_size": 1024,
    "intermediate_size": 4096,
    "num_hidden_layers": 24,
    "num_attention_heads": 16,
    "relative_attention": True,
    "pos_att_type": ["c2p", "p2c"],
    "position_biased_input": False,
    "type_vocab_size": 0,
    "label2id": {"CONTRADICTION": 0, "NEUTRAL": 1, "ENTAILMENT": 2},
    "id2label": {0: "CONTRADICTION", 1: "NEUTRAL", 2: "ENTAILMENT"},
}
"""Of microsoft/deberta-large-mnli, which LM-Polygraph loads."""


def samples(folder: Path, most: int) -> list[Record]:
    """Return answers with their tokens and ten replies each, drawn from those of 140 questions."""
    own, drawn = (
        [json.loads(line) for line in (folder / name).read_text("utf-8").splitlines()]
        for name in ("answers-1.5b-140-1.jsonl", "answers-1.5b-140-10.jsonl")
    )
    replies: dict[str, list[Record]] = {}
    for one in drawn:
        replies.setdefault(one["id"].rpartition("#")[0], []).append(one)
    rows = [
        {name: one[name] for name in ("id", "question", "response", "token_logprobs")}
        | {
            "resamples": [reply["response"] for reply in replies[one["id"]]],
            "resample_logprobs": [
                sum(logprob for _, logprob in reply["token_logprobs"])
                for reply in replies[one["id"]]
            ],
            "drawn_tokens": [len(reply["token_logprobs"]) for reply in replies[one["id"]]],
        }
        for one in own
    ]
    return [rows[i] for i in generator(0, "uncertainty speed").permutation(len(rows))[:most]]


def untrained() -> Any:
    """Return what LM-Polygraph takes as its NLI model, with random weights."""
    import torch
    from lm_polygraph.utils.deberta import Deberta
    from transformers import (
        DebertaConfig,
        DebertaForSequenceClassification,
        PreTrainedTokenizerFast,
    )

    torch.manual_seed(0)

    class Untrained(Deberta):  # type: ignore[misc]
        def setup(self) -> None:
            self._deberta = DebertaForSequenceClassification(DebertaConfig(**SIZE)).eval()
            words = load_encoder("entailer", THREADS).tokenizer
            self._deberta_tokenizer = PreTrainedTokenizerFast(
                tokenizer_object=words, pad_token="[PAD]"
            )

    return Untrained(device="cpu")


def embedded(entailer: EmbeddedEntailer, batch_size: int) -> Any:
    """Return the embedded entailer as what LM-Polygraph takes as its NLI model."""
    import torch

    class Pairs(dict[str, Any]):
        def to(self, _: str) -> Pairs:
            return self

    def tokenizer(pairs: Any, **_: Any) -> Pairs:
        return Pairs(pairs=pairs)

    class Model:
        config = SimpleNamespace(label2id={"ENTAILMENT": 0, "CONTRADICTION": 2})

        def __call__(self, pairs: Any) -> Any:
            return SimpleNamespace(logits=torch.tensor(entailer.scores(pairs)).log())

    return SimpleNamespace(
        batch_size=batch_size, device="cpu", deberta=Model(), deberta_tokenizer=tokenizer
    )


def busy() -> float:
    """Return the CPU seconds of all programs since this machine started (Linux)."""
    fields = Path("/proc/stat").read_text("utf-8").split()[1:8]
    user, nice, system, _, _, *interrupts = map(int, fields)  # without the idle ones
    return (user + nice + system + sum(interrupts)) / os.sysconf("SC_CLK_TCK")


def timed(work: Callable[[], Any]) -> tuple[float, float, float]:
    """Return CPU and wall seconds, and the CPU seconds of other programs meanwhile."""
    every, cpu, wall = busy(), time.process_time(), time.monotonic()
    work()
    cpu, wall = time.process_time() - cpu, time.monotonic() - wall
    return cpu, wall, busy() - every - cpu


def summed(times: Sequence[tuple[float, float, float]], questions: int) -> dict[str, Any]:
    cpu, wall, others = map(sum, zip(*times, strict=True))
    return {
        "questions": questions,
        "cpu_seconds": round(cpu, 2),
        "wall_seconds": round(wall, 2),
        "cpu_seconds_a_question": round(cpu / questions, 3),
        "wall_seconds_a_question": round(wall / questions, 3),
        "cpu_seconds_of_others": round(max(0.0, others), 2),
        "alone": others < 0.05 * wall,
    }


def family(asked: Sequence[Record], entailer: EmbeddedEntailer) -> dict[str, Any]:
    metric = Uncertainty(parts=PARTS)

    def work() -> None:
        score(asked, metrics=[metric], entailer=entailer, cache=None, report=False)

    return summed([timed(work)], len(asked))


def matrices(asked: Sequence[Record], model: Any) -> dict[str, Any]:
    from lm_polygraph.stat_calculators.semantic_matrix import SemanticMatrixCalculator

    calculator = SemanticMatrixCalculator(model)

    def matrix(replies: Sequence[str]) -> None:
        calculator({"sample_texts": [replies]}, [""], None)

    matrix(["A reply.", "Another reply."])
    times = []
    for one in asked:
        times.append(timed(partial(matrix, one["resamples"])))
        print(f"{one['id']}: {times[-1][0]:.1f} CPU seconds", flush=True)
    return summed(times, len(asked)) | {"of_each": [round(cpu, 2) for cpu, _, _ in times]}


def lengths(asked: Sequence[Record], tokenizer: Any) -> dict[str, float]:
    """Return how many replies to a question differ, and their words and tokens."""
    texts = [text for one in asked for text in one["resamples"]]
    counts = {
        "different": [len(set(one["resamples"])) for one in asked],
        "words": [len(text.split()) for text in texts],
        "tokens": [len(tokenizer.tokenize(text)) for text in texts],
        "tokens_of_the_model_that_replied": [n for one in asked for n in one["drawn_tokens"]],
    }
    return {name: round(float(np.mean(numbers)), 1) for name, numbers in counts.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True, help="folder of local_methods")
    parser.add_argument("--questions", type=int, default=60)
    parser.add_argument("--slow", type=int, default=5, help="questions of LM-Polygraph's model")
    given = parser.parse_args()
    os.environ["OMP_WAIT_POLICY"] = "passive"  # a thread of torch that waits takes no CPU seconds
    import torch

    torch.set_num_threads(THREADS)
    asked = samples(given.out, given.questions)
    few = asked[: given.slow]
    entailer, large = EmbeddedEntailer(THREADS), untrained()
    family(few[:1], entailer)  # loads what is loaded once
    figures: dict[str, Any] = {
        "threads": THREADS,
        "statistics": len(select_parts(PARTS)),
        "replies": lengths(few, large.deberta_tokenizer),
        "family": family(asked, entailer),
    }
    same = {
        "family": family(few, entailer),
        "lm_polygraph_embedded": matrices(few, embedded(entailer, large.batch_size)),
        "lm_polygraph": matrices(few, large),
    }
    ours = same["family"]["cpu_seconds"]
    figures["same_questions"] = same
    figures["times_the_family"] = {
        name: round(same[name]["cpu_seconds"] / ours, 1)
        for name in ("lm_polygraph_embedded", "lm_polygraph")
    }
    command = f"python -m lab.benchmarks.uncertainty_speed --out FOLDER --slow {len(few)}"
    data = f"ten replies of Qwen2.5-Coder-1.5B-Instruct to each of {len(asked)} questions; "
    data += "the weights of LM-Polygraph's model are random"
    write_result("uncertainty-speed", command, data, figures)
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
