"""The public sets, read as records of the library, with stand-ins where a set lacks something."""

from __future__ import annotations

import csv
import gzip
import json
import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trustassay.backends.embedded import EmbeddedEmbedder
from trustassay.metrics.fewl.references import find_nearest
from trustassay.statistics.resampling import generator

SHARED = Path(os.environ.get("TRUSTASSAY_SHARED", "../shared")) / "data"
SYSTEMS = ("flan", "llama", "gpt")
CHALE_ROWS = 940
CHALE_KINDS = ("non-halu", "mid-halu", "halu")
MIXED = (0.1, 0.3, 0.5, 0.7, 0.9)
PAIRS = 5
"""Wrong answers that stand in for those of a generator: the right ones of so many neighbours."""
Record = dict[str, Any]
Places = NDArray[np.int64]


def trustscore(limit: int | None = None) -> list[Record]:
    """Return the answers of three systems; the references of each are the other two."""
    rows = json.loads((SHARED / "trustscore" / "qa_human_check.json").read_text())[:limit]
    return [
        {
            "id": f"{number}-{one}",
            "question": row["question"],
            "response": row[one]["pred"],
            "model": one,
            "label": int(row[one]["human_eval"]),
            "references": {other: row[other]["pred"] for other in SYSTEMS if other != one},
            "source": row["source"],
            "number": number,
            "kind": one,
        }
        for number, row in enumerate(rows)
        for one in SYSTEMS
    ]


def chale_columns(limit: int | None = None) -> Mapping[str, Sequence[str]]:
    """Return the columns of CHALE's first 940 rows."""
    path = SHARED / "chale" / "hallucinated_ans_final_filtered.json.gz"
    columns = json.loads(gzip.decompress(path.read_bytes()))
    return {name: column[: limit or CHALE_ROWS] for name, column in columns.items()}


@cache
def neighbours_of(questions: tuple[str, ...], k: int) -> Places:
    """Return the places of the k nearest other questions, shape (n, k); -1 where there are less."""
    vectors = EmbeddedEmbedder().vectors(questions)
    itself = np.arange(len(questions))
    return find_nearest(vectors, vectors, k, max_similarity=0.8, itself=itself).places


def shown(accuracies: Sequence[float], near: Places, rng: np.random.Generator) -> Places:
    """Return whose right answer each stand-in for a reference gives, shape (n, references).

    One of accuracy p gives the question's own with that probability, else that of one of the
    question's neighbours in ``near``, shape (n, k), drawn at random; its own where it has none.
    """
    n = len(near)
    found = np.empty((n, len(accuracies)), dtype=np.int64)
    for number in range(n):
        for place, accuracy in enumerate(accuracies):
            own = rng.random() < accuracy
            others = near[number][near[number] >= 0]
            if own or not len(others):
                found[number, place] = number
            else:
                found[number, place] = others[rng.integers(len(others)) if len(others) > 1 else 0]
    return found


def chale(limit: int | None = None) -> list[Record]:
    """Return three answers to each question; five stand-ins for references of mixed accuracy.

    Stand-ins for the pairs of a generator: as wrong answers the right ones of the five nearest
    questions, as corrected ones their denials. Labelled answers, for the weights ``ideal``, are
    the answers under assessment.
    """
    columns = chale_columns(limit)
    questions, right = columns["Question"], columns["Short_ans"]
    near = neighbours_of(tuple(questions), PAIRS)
    given = shown(MIXED, near[:, :1], generator(0, "chale", "mixed"))
    found = []
    for number, question in enumerate(questions):
        wrong = [right[place] for place in near[number] if place >= 0]
        common = {
            "question": question,
            "references": {
                f"{accuracy:.1f} right": right[place]
                for accuracy, place in zip(MIXED, given[number], strict=True)
            },
            "answers": [[columns["non-halu"][number]]],
            "incorrect_answers": [columns["mid-halu"][number], columns["halu"][number]],
            "wrong_answers": wrong,
            "corrected_answers": [f"It is not {text}." for text in wrong],
            "number": number,
        }
        found += [
            common
            | {
                "id": f"{number}-{kind}",
                "response": columns[kind][number],
                "label": int(kind == "non-halu"),
                "kind": kind,
            }
            for kind in CHALE_KINDS
        ]
    return found


def gpt3_answers() -> Mapping[int, Mapping[str, str]]:
    """Return what four GPT-3 models answered to each row of TruthfulQA."""
    answers: dict[int, dict[str, str]] = defaultdict(dict)
    path = SHARED / "truthfulqa-gpt3-answers" / "gpt3_base_answers_annotated.csv"
    with path.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            text = row["model_answer"].strip().removeprefix("A:").strip()
            answers[int(row["row"])][row["model"]] = text
    return answers


def truthfulqa_rows(limit: int | None = None) -> list[dict[str, str]]:
    """Return the rows of TruthfulQA's 817 questions."""
    path = SHARED / "truthfulqa" / "TruthfulQA_817_original.csv"
    with path.open(newline="", encoding="utf-8-sig") as file:
        return list(csv.DictReader(file))[:limit]


def answers_in(cell: str) -> list[str]:
    """Return the answers of a cell, which are joined by semicolons."""
    return [text.strip() for text in cell.split(";") if text.strip()]


def truthfulqa(limit: int | None = None) -> list[Record]:
    """Return the best and the first incorrect answer; the references are four GPT-3 models."""
    answers = gpt3_answers()
    found = []
    for number, row in enumerate(truthfulqa_rows(limit)):
        incorrect = answers_in(row["Incorrect Answers"])
        for kind, text in (("best", row["Best Answer"].strip()), ("incorrect", incorrect[0])):
            found.append(
                {
                    "id": f"{number}-{kind}",
                    "question": row["Question"],
                    "response": text,
                    "label": int(kind == "best"),
                    "references": answers[number],
                    "answers": [answers_in(row["Correct Answers"])],
                    "incorrect_answers": incorrect,
                    "number": number,
                    "kind": kind,
                }
            )
    return found


def halueval_rows(limit: int | None = None) -> list[dict[str, str]]:
    """Return the 1,000 rows of HaluEval's questions with a passage."""
    text = (SHARED / "halueval" / "qa_data_first1000.json").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()[:limit]]


def halueval(limit: int | None = None) -> list[Record]:
    """Return the right and the hallucinated answer; the passage stands in for one reference."""
    return [
        {
            "id": f"{number}-{kind}",
            "question": row["question"],
            "response": row[f"{kind}_answer"],
            "label": int(kind == "right"),
            "references": {"knowledge": row["knowledge"]},
            "number": number,
            "kind": kind,
        }
        for number, row in enumerate(halueval_rows(limit))
        for kind in ("right", "hallucinated")
    ]


SETS = {"trustscore": trustscore, "chale": chale, "truthfulqa": truthfulqa, "halueval": halueval}
WEIGHTINGS = {
    "trustscore": ("agreement",),
    "chale": ("agreement", "ours", "single-best", "ideal"),
    "truthfulqa": ("agreement", "ideal"),
    "halueval": (),
}
"""Weights that a set allows beside the uniform ones; one reference has no need of any."""
