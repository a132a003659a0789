"""How far ``faithfulness`` agrees with people, beside word containment and cosine.

    TRUSTASSAY_SHARED=... python -m lab.benchmarks.faithfulness                  # the test files
    TRUSTASSAY_SHARED=... python -m lab.benchmarks.faithfulness --dev --limit 400
    TRUSTASSAY_SHARED=... python -m lab.benchmarks.faithfulness --metric faithfulness:joined=no

WiCE's claims against the whole cited page, cut into passages of about 100 words; answers of
dialogue models (BEGIN) against the snippet they were given; claims about health against a sentence
of an abstract (HealthVer); HaluEval's right and hallucinated answers against the passage that they
were written from, as published. AUROC with 95 % bootstrap intervals over questions of the mean
support, of the share of the answer's content words in the nearest passage, and of the largest
cosine with a passage; balanced accuracy of "every sentence is supported".
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from trustassay import score
from trustassay.backends.embedded import EmbeddedEmbedder
from trustassay.statistics.resampling import generator
from trustassay.text.words import content_words

REPLICATES = 1000
PASSAGE = 100
"""Words of a passage that a page is cut into."""
DEV = ("wice_dev", "begin_wow_dev", "begin_cmu_dev", "begin_tc_dev", "healthver_dev")
TEST = ("wice_test", "begin_wow_test", "healthver_test", "halueval")


class Labelled(NamedTuple):
    """An answer, its passages, whether they support it, and the question it belongs to."""

    question: str
    answer: str
    passages: Sequence[str]
    supported: bool
    group: str


def shared() -> Path:
    return Path(os.environ.get("TRUSTASSAY_SHARED", "../shared")) / "data"


def rows_of(name: str) -> Iterator[Labelled]:
    if name == "halueval":
        path = shared() / "halueval" / "qa_data_first1000.json"
        with path.open(encoding="utf-8") as file:
            for line in file:
                row = json.loads(line)
                for kind in ("right_answer", "hallucinated_answer"):
                    right = kind == "right_answer"
                    question = row["question"]
                    yield Labelled(question, row[kind], [row["knowledge"]], right, question)
        return
    with gzip.open(shared() / "attribution" / f"{name}.jsonl.gz", "rt") as file:
        for line in file:
            row = json.loads(line)
            if "premise_sentences" in row:
                passages = cut(row["premise_sentences"])
                group = " ".join(row["premise_sentences"])[:2000]
            else:
                passages, group = [row["premise"]], row["premise"]
            question = row.get("message") or "What does the source say?"
            yield Labelled(question, row["hypothesis"], passages, row["label"] == 1, group)


def cut(sentences: Sequence[str]) -> list[str]:
    """Join sentences to passages of about 100 words."""
    made: list[list[str]] = [[]]
    for sentence in sentences:
        if sum(len(one.split()) for one in made[-1]) >= PASSAGE:
            made.append([])
        made[-1].append(sentence)
    return [" ".join(one) for one in made if one]


def assessed(rows: Sequence[Labelled], metric: str) -> list[Mapping[str, Any]]:
    samples = [
        {"id": str(n), "question": r.question, "response": r.answer, "documents": list(r.passages)}
        for n, r in enumerate(rows)
    ]
    run = score(samples, metrics=metric)
    found = {a.id: a for a in run.assessments}
    return [{"parts": found[str(n)].parts, "score": found[str(n)].score} for n in range(len(rows))]


def containment(row: Labelled) -> float:
    wanted = set(content_words(row.answer))
    held = [len(wanted & set(content_words(p))) / max(1, len(wanted)) for p in row.passages]
    return max(held, default=0.0)


def cosines(rows: Sequence[Labelled]) -> list[float]:
    model = EmbeddedEmbedder()
    found = []
    for row in rows:
        vectors = model.vectors([row.answer, *row.passages])
        found.append(float((vectors[1:] @ vectors[0]).max()))
    return found


def interval(scores: Sequence[float], labels: Sequence[bool], groups: Sequence[str]) -> str:
    """Return AUROC with its interval; whole questions are drawn anew."""
    from sklearn.metrics import roc_auc_score

    values, truth = np.array(scores), np.array(labels)
    places: dict[str, list[int]] = {}
    for place, group in enumerate(groups):
        places.setdefault(group, []).append(place)
    blocks = [np.array(one) for one in places.values()]
    rng = generator(0, "lab.benchmarks.faithfulness")
    drawn = []
    for _ in range(REPLICATES):
        picks = np.concatenate([blocks[i] for i in rng.integers(0, len(blocks), len(blocks))])
        if 0 < truth[picks].sum() < len(picks):
            drawn.append(roc_auc_score(truth[picks], values[picks]))
    low, high = np.quantile(drawn, (0.025, 0.975))
    return f"{roc_auc_score(truth, values):.3f} ({low:.3f} to {high:.3f})"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--metric", default="faithfulness")
    parser.add_argument("--dev", action="store_true", help="the development files")
    parser.add_argument("--only", default="", help="names of sets, with commas")
    parser.add_argument("--limit", type=int, help="rows of each set")
    args = parser.parse_args()
    if not (shared() / "attribution").exists():
        print(f"no data at {shared()}; set TRUSTASSAY_SHARED", file=sys.stderr)
        return 2
    names = args.only.split(",") if args.only else DEV if args.dev else TEST
    print("| set | answers (supported) | faithfulness | words | cosine | right at 0.5 | no score |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name in names:
        rows = list(rows_of(name))[: args.limit]
        began = time.perf_counter()
        found = assessed(rows, args.metric)
        seconds = time.perf_counter() - began
        kept = [n for n, one in enumerate(found) if one["score"] is not None]
        labels = [rows[n].supported for n in kept]
        groups = [rows[n].group for n in kept]
        cells = [
            interval([found[n]["parts"]["support"] for n in kept], labels, groups),
            interval([containment(rows[n]) for n in kept], labels, groups),
            interval(cosines([rows[n] for n in kept]), labels, groups),
        ]
        said = np.array([found[n]["score"] == 1 for n in kept])
        truth = np.array(labels)
        balanced = (said[truth].mean() + (~said[~truth]).mean()) / 2
        counts = f"{len(kept)} ({truth.sum()})"
        left = len(rows) - len(kept)
        print(f"| {name} | {counts} | {' | '.join(cells)} | {balanced:.3f} | {left} |", flush=True)
        print(f"{name}: {seconds:.0f} s", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
