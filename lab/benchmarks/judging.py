"""How well entailment judges truthfulness against gold answers, where people labelled the answers.

    TRUSTASSAY_SHARED=... python -m lab.benchmarks.judging [--answers N] [--skip N] [--entailer URI]

Answers of four GPT-3 models to TruthfulQA, labelled by a person, against the set's correct answers;
and HaluEval's right and hallucinated answers against the knowledge that they were written from.
AUROC with 95 % bootstrap intervals over questions: of ``judge:by=entailer`` ("alone: both ways")
and of its alternatives, and of the share of an answer's new words, those that are not the
question's, that stand in the gold answer. The way was chosen on the first 200 answers of each set;
``--skip 300`` measures on others.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics import roc_auc_score

from trustassay import entailer
from trustassay.statistics.resampling import generator

REPLICATES = 500
GOLDS = 4
"""Gold answers of a question that are looked at, the first ones."""


class Labelled(NamedTuple):
    """An answer, the gold answers to its question, and whether it is true."""

    question: str
    answer: str
    golds: Sequence[str]
    true: bool


def shared() -> Path:
    return Path(os.environ.get("TRUSTASSAY_SHARED", "../shared")) / "data"


def truthfulqa() -> Iterator[Labelled]:
    with (shared() / "truthfulqa/TruthfulQA_817_original.csv").open(encoding="utf-8") as file:
        golds = [row["Correct Answers"].split(";") for row in csv.DictReader(file)]
    path = shared() / "truthfulqa-gpt3-answers/gpt3_base_answers_annotated.csv"
    with path.open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            label = row["Truthfulness"].strip().lower()
            answer = row["model_answer"].strip().removeprefix("A:").strip()
            true = label.startswith(("true", "mostly true"))
            if answer and (true or label.startswith(("false", "mostly untrue"))):
                texts = [one.strip() for one in golds[int(row["row"])] if one.strip()]
                yield Labelled(row["question"], answer, texts[:GOLDS], true)


def halueval() -> Iterator[Labelled]:
    with (shared() / "halueval/qa_data_first1000.json").open(encoding="utf-8") as file:
        for line in file:
            row = json.loads(line)
            for key, true in (("right_answer", True), ("hallucinated_answer", False)):
                yield Labelled(row["question"], row[key], [row["knowledge"]], true)


def drawn(rows: Sequence[Labelled], n: int, skip: int) -> list[Labelled]:
    """Return all answers to questions drawn at random, up to n answers after the first ``skip``."""
    questions = list(dict.fromkeys(row.question for row in rows))
    order = generator(0, "judging").permutation(len(questions))
    found: list[Labelled] = []
    for place in order:
        if len(found) >= n + skip:
            break
        found += [row for row in rows if row.question == questions[place]]
    seen = {row.question for row in found[:skip]}
    return [row for row in found if row.question not in seen]


def words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


def new_words(row: Labelled) -> float:
    new = words(row.answer) - words(row.question)
    shares = [len(new & words(gold)) / len(new) if new else 0.0 for gold in row.golds]
    return max(shares)


def scores(rows: Sequence[Labelled], uri: str) -> dict[str, list[float]]:
    """Return the scores of each way, one a row; of several gold answers the best."""
    judge = entailer(uri)
    with_question = [
        (f"{r.question} {g}", f"{r.question} {r.answer}") for r in rows for g in r.golds
    ]
    plain = [(g, r.answer) for r in rows for g in r.golds]
    columns: dict[str, np.ndarray[Any, np.dtype[np.float64]]] = {}
    for name, forwards in (("with the question", with_question), ("alone", plain)):
        forth = judge.scores(forwards)
        back = judge.scores([(hypothesis, premise) for premise, hypothesis in forwards])
        both = (forth + back) / 2
        columns |= {
            f"{name}: entailed": forth[:, 0],
            f"{name}: less contradicted": (1 + forth[:, 0] - forth[:, 2]) / 2,
            f"{name}: both ways": (1 + both[:, 0] - both[:, 2]) / 2,
        }
    ends = np.cumsum([len(row.golds) for row in rows])[:-1]
    found = {
        name: [float(part.max()) for part in np.split(column, ends)]
        for name, column in columns.items()
    }
    return found | {"new words in the gold answer": [new_words(row) for row in rows]}


def intervals(rows: Sequence[Labelled], found: dict[str, list[float]]) -> None:
    """Print the AUROC of each way; questions are drawn, with all their answers."""
    labels = np.array([row.true for row in rows])
    of: dict[str, list[int]] = {}
    for place, row in enumerate(rows):
        of.setdefault(row.question, []).append(place)
    groups = [np.array(places) for places in of.values()]
    rng = generator(0, "judging", "bootstrap")
    draws = [
        np.concatenate([groups[i] for i in rng.integers(0, len(groups), len(groups))])
        for _ in range(REPLICATES)
    ]
    for name, column in found.items():
        values = np.array(column)
        auroc = roc_auc_score(labels, values)
        low, high = np.quantile(
            [roc_auc_score(labels[d], values[d]) for d in draws], [0.025, 0.975]
        )
        passes = values >= 0.5
        right = 100 * np.mean(passes == labels)
        print(
            f"  {name:36} {auroc:.3f} ({low:.3f} to {high:.3f}); from .5 on: "
            f"{right:.0f} % right, {100 * passes.mean():.0f} % pass"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--answers", type=int, default=600)
    parser.add_argument("--skip", type=int, default=0)
    parser.add_argument("--entailer", default="embedded")
    options = parser.parse_args()
    for name, read in (("TruthfulQA", truthfulqa), ("HaluEval", halueval)):
        rows = drawn(list(read()), options.answers, options.skip)
        true = sum(row.true for row in rows)
        print(f"{name}: {len(rows)} answers, {true} of them true, {options.entailer}", flush=True)
        intervals(rows, scores(rows, options.entailer))


if __name__ == "__main__":
    main()
