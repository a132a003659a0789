"""What is read of the passages for a statement: agreement with people, and the time of it.

    python -m lab.benchmarks.reading accuracy --out NEW.json [--rows 300]
    python -m lab.benchmarks.reading accuracy --out NEW.json --before OLD.json
    python -m lab.benchmarks.reading accuracy --test --out NEW.json --before OLD.json
    python -m lab.benchmarks.reading time

``accuracy`` judges the statements of development sets by their passages as ``faithfulness`` does,
with the built-in entailer: the AUC of the probability that a statement is supported, the shares of
supported and of other statements at 0.5 and above, and the difference to the figures of another
version, with 95 % intervals over documents. The test files are for the chosen version, once.

``time`` scores 60 answers of ExpertQA's development file, put together to eight sentences and five
passages of 128 words each, with one thread; beside a cross-encoder of the same size of
sentence-transformers (random weights) that reads each sentence with each passage. It needs
sentence-transformers.

Data is found by TRUSTASSAY_SHARED, else ../shared.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import Iterator, Sequence
from itertools import cycle, islice
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from lab.benchmarks.faithfulness import rows_of
from lab.benchmarks.public_labels.rows import read_rows
from lab.benchmarks.which_metric.sets import lines
from lab.training.agreement import auc, interval, resamples
from lab.training.measure import items
from trustassay.backends.embedded import EmbeddedEntailer
from trustassay.core.capabilities import Entailment, Models
from trustassay.core.sample import Document
from trustassay.judging.claims import Claim, build_claims
from trustassay.judging.verdict import ClaimVerifier, VerdictOptions
from trustassay.statistics.resampling import generator
from trustassay.text.sentences import load_splitter

Floats = NDArray[np.float64]
PAIRS = (
    *("fib_dev", "xsum_dev", "summedits_dev", "diasumfact_dev", "expertqa_dev", "vitaminc"),
    *("wice_oracle_dev", "begin_wow_dev", "begin_cmu_dev", "begin_tc_dev", "healthver_dev"),
    *("fm2_held", "faithdial_held"),
)
"""Development sets of one passage a statement."""
LABELLED = ("attributionbench-in", "attributionbench-ood", "scitab")
"""Public sets of which the rows that rules are chosen on are read."""
TESTS = ("fib_test", "xsum-hallucination_test", "summedits_test", "expertqa_test",
         "dialogue-grounding_q2_wow_test", "fool-me-twice_test", "wice_oracle_test",
         "begin_wow_test", "healthver_test", "wice_test")  # fmt: skip
ANSWERS, SENTENCES, PASSAGES, WORDS = 60, 8, 5, 128


class Row(NamedTuple):
    """A statement, its passages, whether people say that they support it, and its document."""

    statement: str
    passages: Sequence[str]
    supported: bool
    document: str


def read_set(name: str, rows: int, part: str = "choose") -> list[Row]:
    """Return up to ``rows`` rows of a set, drawn by its name."""
    if name.startswith("wice_") and not name.startswith("wice_oracle"):
        rows_of_set = [Row(r.answer, r.passages, r.supported, r.group) for r in rows_of(name)]
    elif name in LABELLED:
        rows_of_set = [
            Row(row.record["response"], row.record["documents"], row.label == "right", row.cluster)
            for row in read_rows(name)
            if row.part == part and row.label in ("right", "wrong")
        ]
    else:
        # Drawn already.
        drawn = items(name, rows)
        return [Row(i.hypothesis, [i.premise], i.label == 0, i.document) for i in drawn]
    order = generator(0, "reading", name).permutation(len(rows_of_set))
    return [rows_of_set[place] for place in order[:rows]]


class _Reader:
    """The built-in entailer as the models of a run; keeps the pairs that it reads."""

    def __init__(self) -> None:
        self.entailer = EmbeddedEntailer(threads=1)
        self.pairs: list[tuple[str, str]] = []

    async def entail(self, premise: str, hypothesis: str, **_: str) -> Entailment:
        """Return the probabilities, and keep the pair."""
        self.pairs.append((premise, hypothesis))
        (row,) = self.entailer.scores(self.pairs[-1:])
        return Entailment(*map(float, row))


def judge(rows: Sequence[Row]) -> tuple[Floats, dict[str, float]]:
    """Return the support of each statement, and what reading it took for each."""
    reader, split = _Reader(), load_splitter("sentencex")

    async def judge_all() -> list[float]:
        result = []
        for row in rows:
            documents = [Document(str(n), text) for n, text in enumerate(row.passages)]
            models = cast(Models, reader)
            verifier = ClaimVerifier(VerdictOptions(), models, "", documents, split)
            finding = await verifier.judge(Claim(row.statement, row.statement))
            result.append(finding.entailment or 0.0)
        return result

    begun = time.process_time()
    support = np.array(asyncio.run(judge_all()))
    took = (time.process_time() - begun) / len(rows)
    return support, {
        "cpu_seconds": round(took, 4),
        "reads": round(len(reader.pairs) / len(rows), 2),
    }


def describe(name: str, rows: Sequence[Row], before: dict[str, Any] | None) -> dict[str, Any]:
    """Return the figures of a set, with the difference to those of another version."""
    truth = np.array([row.supported for row in rows])
    support, took = judge(rows)
    picks = [
        pick
        for pick in resamples([row.document for row in rows], name)
        if 0 < truth[pick].sum() < len(pick)
    ]
    figures = {
        "n": len(rows),
        "supported": int(truth.sum()),
        "auc": interval(auc, support, truth, picks),
        "true_passed": round(float((support[truth] >= 0.5).mean()), 3),
        "false_passed": round(float((support[~truth] >= 0.5).mean()), 3),
        **took,
        "support": [round(float(value), 4) for value in support],
    }
    if before:
        old = np.array(before["support"])
        gaps = [auc(support[pick], truth[pick]) - auc(old[pick], truth[pick]) for pick in picks]
        change = auc(support, truth) - auc(old, truth)
        figures["change"] = [
            round(float(v), 4) for v in (change, *np.quantile(gaps, (0.025, 0.975)))
        ]
    return figures


def compare(options: argparse.Namespace) -> None:
    """Print a line for each set and write the figures."""
    before = json.loads(options.before.read_text()) if options.before else {}
    names = TESTS if options.test else (*PAIRS, "wice_dev", *LABELLED)
    result = {}
    for name in options.only.split(",") if options.only else names:
        rows = read_set(name, options.rows, "report" if options.test else "choose")
        result[name] = describe(name, rows, before.get(name))
        shown = {key: value for key, value in result[name].items() if key != "support"}
        print(name, json.dumps(shown), flush=True)
        options.out.write_text(json.dumps(result) + "\n")
    changes = [figures["change"][0] for figures in result.values() if "change" in figures]
    if changes:
        print(f"mean change {np.mean(changes):+.4f}")


def build_answers() -> Iterator[dict[str, Any]]:
    """Yield answers of eight sentences with five passages of 128 words, of ExpertQA."""
    rows = list(lines("expertqa/samples_dev"))
    for start in range(ANSWERS):
        following = list(islice(cycle(rows), start, start + 10))
        sentences = [part["text"] for row in following for part in row["sentences"]]
        words = [w for row in following for text in row["documents"] for w in text["text"].split()]
        passages = [words[n * WORDS : (n + 1) * WORDS] for n in range(PASSAGES)]
        yield {
            "id": str(start),
            "question": following[0]["question"],
            "response": " ".join(sentences[:SENTENCES]),
            "documents": [" ".join(passage) for passage in passages],
        }


def list_pairs(answers: Sequence[dict[str, Any]]) -> list[list[tuple[str, str]]]:
    """Return the pairs of a text and a statement that are read of each answer."""
    split, result = load_splitter("sentencex"), []
    for answer in answers:
        reader = _Reader()
        documents = [Document(str(n), text) for n, text in enumerate(answer["documents"])]
        verifier = ClaimVerifier(VerdictOptions(), cast(Models, reader), "", documents, split)
        for claim in build_claims(answer["question"], answer["response"], split):
            asyncio.run(verifier.judge(claim))
        result.append(reader.pairs)
    return result


def measure_time() -> None:
    """Print the CPU seconds of an answer, beside the cross-encoder's."""
    import torch
    import transformers
    from sentence_transformers import CrossEncoder

    from trustassay import score
    from trustassay.backends.embedded import weights_folder
    from trustassay.backends.resolve import entailer

    answers = list(build_answers())
    reader = entailer("embedded?threads=1")
    score(answers[:2], metrics="faithfulness", entailer=reader, cache=None)
    begun = time.process_time()
    run = score(answers, metrics="faithfulness", entailer=reader, cache=None)
    ours = (time.process_time() - begun) / len(answers)
    statements = sum(a.parts.get("statements", 0) for a in run.assessments) / len(answers)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    config = transformers.BertConfig(
        hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536,
        num_labels=3,
    )  # fmt: skip
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_file=str(weights_folder() / "tokenizer.json"), pad_token="[PAD]"
    )
    with tempfile.TemporaryDirectory() as folder:
        transformers.BertForSequenceClassification(config).save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        model = CrossEncoder(folder, max_length=512, device="cpu")
    split = load_splitter("sentencex")
    pairs = [
        [(passage, sentence) for sentence in split(answer["response"]) for passage in documents]
        for answer in answers
        if (documents := answer["documents"])
    ]
    model.predict(pairs[0], batch_size=32, show_progress_bar=False)
    begun = time.process_time()
    for batch in pairs[:20]:
        model.predict(batch, batch_size=32, show_progress_bar=False)
    theirs = (time.process_time() - begun) / 20
    print(f"{len(answers)} answers, {statements:.1f} statements an answer")
    print(f"CPU seconds an answer: trustassay {ours:.3f}, cross-encoder {theirs:.3f}")
    print(f"ratio {theirs / ours:.1f}")


def main() -> None:
    """Read the options and work."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("work", choices=("accuracy", "time"))
    parser.add_argument("--out", type=Path, help="JSON file for the figures and each support")
    parser.add_argument("--before", type=Path, help="such a file of another version")
    parser.add_argument("--rows", type=int, default=300, help="rows of each set")
    parser.add_argument("--only", default="", help="names of sets, with commas")
    parser.add_argument("--test", action="store_true", help="the test files")
    options = parser.parse_args()
    if options.work == "time":
        measure_time()
        return
    if options.out is None:
        parser.error("accuracy needs --out")
    compare(options)


if __name__ == "__main__":
    main()
