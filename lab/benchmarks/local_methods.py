"""Every method that asks a model, on answers of models that can be asked: are doubtful ones wrong?

    python -m lab.benchmarks.local_models
    python -m lab.benchmarks.local_methods --out FOLDER --n 3 --plan     # calls and tokens alone
    python -m lab.benchmarks.local_methods --out FOLDER --n 3            # 21 questions
    python -m lab.benchmarks.local_methods --out FOLDER --n 20           # goes on: asks for the
    rest

``--n`` questions each of TruthfulQA, of TrustScore's five sets and of HaluEval's QA (of the shared
data, found by TRUSTASSAY_SHARED) are answered by a local model at temperature 0. Truth is what the
gold answers say: two thirds of the words of one (``reference``), or, for TruthfulQA, entailment.
``local_labels.csv`` has what was read by eye; where it has all answers, the same figures against
that are given, too. Then each method asks the model that answered. Every reply
is in ``FOLDER/cache``, so that a start with the same or a larger ``--n`` repeats no call; those of
finished starts are also in ``local_replies.jsonl.gz``, and nobody has to ask for them again.

Writes ``results/local-methods-MODEL-N.json``: AUROC and PRR with intervals over questions, and what
each method cost.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lab.benchmarks.local_models import MODELS, path_of
from lab.benchmarks.local_replies import keep, restore
from lab.benchmarks.which_metric.sets import shared
from lab.results import write_result
from trustassay import plan, score, study
from trustassay.calls.client import CallOptions
from trustassay.cli.demo import MAX_ANSWER_TOKENS, PROMPT
from trustassay.runs.answering import Answering
from trustassay.runs.folder import RunFolder
from trustassay.runs.generate import GenerateOptions, generate
from trustassay.statistics.resampling import generator

Record = dict[str, Any]
LABELS = Path(__file__).with_name("local_labels.csv")
"""Answers of both models, read by eye with the gold answers beside them."""
SAMPLES, PERTURBATIONS = 10, 5
ALTERNATIVES = 5
"""Of each token of an answer, whose probabilities are asked for."""
WORDS_RIGHT, SAYS_SAME = 2 / 3, 0.6
"""From which score on an answer counts as right, by words of a gold answer and by entailment. Best
on answers of other models that people rated: balanced accuracy .86 on TrustScore's questions, .74
on TruthfulQA's."""


class Way(NamedTuple):
    """How a column is scored.

    needs: fields that its questions must have. replies: how many answers drawn at 1.0 it reads.
    """

    metrics: Sequence[str]
    backends: Sequence[str] = ()
    needs: Sequence[str] = ()
    replies: int = 0


ASKED = (
    f"perturbations={PERTURBATIONS},prompt={PROMPT},max_tokens={MAX_ANSWER_TOKENS},"
    "original=response"
)
PARTS = "parts=auto+pairs+words"
WAYS: Mapping[str, Way] = {
    "consistency": Way(["consistency:checks=5,stop=no"], ["model"]),
    "written": Way(["consistency:checks=5,stop=no,sources=llm"], ["model", "generator"]),
    "harmonicity": Way([f"harmonicity:{ASKED}", f"semantic_harmonicity:{ASKED}"], ["model"]),
    "samples": Way(["semantic_harmonicity"], replies=SAMPLES),
    "uncertainty": Way([f"uncertainty:{PARTS}"], replies=SAMPLES),
    **{f"uncertainty-{k}": Way([f"uncertainty:{PARTS}"], replies=k) for k in (2, 3, 5, 20)},
    "fewl": Way(["fewl:form=agreement"]),
    "judge": Way(["judge"], ["judge"]),
    "trustscore": Way(["trustscore:checks=5,stop=no"], ["model"], needs=["documents"]),
    "faithfulness": Way(["faithfulness"], needs=["documents"]),
}


def truthfulqa() -> Iterator[Record]:
    path = shared() / "truthfulqa" / "TruthfulQA_817_original.csv"
    with path.open(newline="", encoding="utf-8-sig") as file:
        for row in csv.DictReader(file):
            golds = [text.strip() for text in row["Correct Answers"].split(";") if text.strip()]
            yield {"question": row["Question"], "answers": [golds]}


def trustscore(source: str) -> Callable[[], Iterator[Record]]:
    def rows() -> Iterator[Record]:
        path = shared() / "trustscore" / "qa_human_check.json"
        for row in json.loads(path.read_text("utf-8")):
            if row["source"] == source:
                yield {"question": row["question"], "answers": [row["answers"]]}

    return rows


def halueval() -> Iterator[Record]:
    path = shared() / "halueval" / "qa_data_first1000.json"
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        golds, passages = [[row["right_answer"]]], [row["knowledge"]]
        yield {"question": row["question"], "answers": golds, "documents": passages}


OF_TRUSTSCORE = ("NaturalQuestions", "WebQuestions", "TriviaQA", "HotpotQA", "PopQA")
SETS: Mapping[str, Callable[[], Iterator[Record]]] = {
    "TruthfulQA": truthfulqa,
    **{name: trustscore(name) for name in OF_TRUSTSCORE},
    "HaluEval": halueval,
}


def questions(n: int) -> list[Record]:
    """Return ``n`` questions of each set, in seeded order; a smaller ``n`` gives some of them."""
    found = []
    for name, rows in SETS.items():
        every = list(rows())
        order = generator(0, "local methods", name).permutation(len(every))[:n]
        found += [{"id": f"{name}-{place}", "set": name, **every[place]} for place in order]
    return found


def answered(asked: Sequence[Record], name: str, out: Path, **how: Any) -> list[Record]:
    """Return the questions with a model's answers, which are in the cache after the first time."""
    repeats = how.pop("repeats", 1)
    options = GenerateOptions(
        answering=Answering(
            style="closed-book", prompt=PROMPT, max_tokens=MAX_ANSWER_TOKENS, **how
        ),
        calls=CallOptions(cache=out / "cache"),
        repeats=repeats,
        progress=True,
    )
    bare = [{k: v for k, v in one.items() if k != "documents"} for one in asked]
    path = out / f"answers-{name}-{len(asked)}-{repeats}.jsonl"
    generate(bare, uri(name), path, options)
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def labelled(samples: Sequence[Record], out: Path) -> list[Record]:
    """Return the samples with ``label``: 1 if the gold answers say that the answer is right."""
    run = score(samples, metrics=["reference", "judge:by=entailer"], report=False, out=out)
    scores: dict[str, dict[str, float]] = {}
    for one in run.assessments:
        scores.setdefault(one.metric, {})[one.id] = one.score or 0.0
    for sample in samples:
        by, bound = ("judge", SAYS_SAME), ("reference", WORDS_RIGHT)
        metric, least = by if sample["set"] == "TruthfulQA" else bound
        sample["label"] = int(scores[metric].get(sample["id"], 0.0) >= least)
    with LABELS.open(newline="", encoding="utf-8") as file:
        read = {(row["id"], row["response"]): int(row["right"]) for row in csv.DictReader(file)}
    for sample in samples:
        if (key := (sample["id"], sample["response"])) in read:
            sample["by_eye"] = read[key]
    return list(samples)


def prepared(name: str, n: int, out: Path, replies: int) -> list[Record]:
    """Return the samples of an experiment: a model's answers, labelled, with all that ways need,
    among that so many replies drawn at temperature 1."""
    asked = questions(n)
    by_id = {one["id"]: one for one in asked}
    own = answered(asked, name, out, logprobs=ALTERNATIVES)
    others = {
        other: {one["id"]: one["response"] for one in answered(asked, other, out)}
        for other in MODELS
        if other != name
    }
    drawn: dict[str, list[Record]] = {}
    for one in answered(asked, name, out, repeats=replies, temperature=1.0, logprobs=0):
        drawn.setdefault(one["id"].rpartition("#")[0], []).append(one)
    samples = [
        {
            **by_id[one["id"]],
            "response": one["response"],
            "model": name,
            "references": {model: said.get(one["id"], "") for model, said in others.items()},
            "token_logprobs": one["token_logprobs"],
            "resamples": [other["response"] for other in drawn.get(one["id"], [])],
            "resample_logprobs": [
                sum(logprob for _, logprob in other["token_logprobs"])
                for other in drawn.get(one["id"], [])
            ],
            "drawn_tokens": [len(other["token_logprobs"]) for other in drawn.get(one["id"], [])],
        }
        for one in own
    ]
    return labelled(samples, out / name / str(n) / "labels")


def uri(name: str) -> str:
    return f"gguf:{path_of(name)}?context=2048&parallel=24"


def scored(
    samples: Sequence[Record], ways: Mapping[str, Way], name: str, folder: Path, cache: Path
) -> list[Path]:
    """Score the columns; a run that is there goes on where it was stopped."""
    folders = []
    for column, way in ways.items():
        chosen = chosen_of(samples, way)
        backends: dict[str, Any] = dict.fromkeys(way.backends, uri(name))
        print(f"{column}: {len(chosen)} answers", flush=True)
        out = folder / column
        score(
            chosen,
            metrics=way.metrics,
            out=out,
            report=False,
            cache=cache,
            progress=True,
            **backends,
        )
        folders.append(out)
    return folders


def chosen_of(samples: Sequence[Record], way: Way) -> list[Record]:
    """Return the samples that a way can score, with as many replies as it is to see."""
    drawn = ("resamples", "resample_logprobs")
    return [
        {
            field: value[: way.replies] if field in drawn else value
            for field, value in one.items()
            if way.replies or field not in drawn
        }
        for one in samples
        if all(one.get(field) for field in way.needs)
    ]


def cost(folder: Path) -> dict[str, float]:
    """Return what a run's replies of models took, on the average over its answers."""
    answers = sum(1 for _ in RunFolder(folder).samples())
    query = (
        "SELECT COUNT(*), COALESCE(SUM(prompt_tokens), 0), COALESCE(SUM(reply_tokens), 0), "
        "COALESCE(SUM(seconds), 0) FROM calls WHERE capability = 'chat'"
    )
    with sqlite3.connect(RunFolder(folder).calls_path) as calls:
        row = calls.execute(query).fetchone()
    names = ("calls", "prompt_tokens", "reply_tokens", "seconds")
    return {key: round(value / answers, 2) for key, value in zip(names, row, strict=True)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True, help="folder of runs and replies")
    parser.add_argument("--n", type=int, default=200, help="questions of each set")
    parser.add_argument("--model", choices=[*MODELS], default="1.5b", help="the one that answers")
    usual = [name for name, way in WAYS.items() if way.replies <= SAMPLES]
    parser.add_argument("--ways", nargs="*", choices=[*WAYS], default=usual, help="columns")
    parser.add_argument("--plan", action="store_true", help="say what it takes, and ask nothing")
    given = parser.parse_args()
    ways = {column: WAYS[column] for column in given.ways}
    if given.plan:
        told(given.n, ways, given.model)
        return
    restore(given.out / "cache")
    replies = max(SAMPLES, *(way.replies for way in ways.values()))
    samples = prepared(given.model, given.n, given.out, replies)
    folder = given.out / given.model / str(given.n)
    folders = scored(samples, ways, given.model, folder, given.out / "cache")
    keep(given.out / "cache")
    command = f"python -m lab.benchmarks.local_methods --n {given.n} --model {given.model}"
    command += "" if given.ways == usual else f" --ways {' '.join(given.ways)}"
    sets = f"{given.n} questions each of {', '.join(SETS)}"
    name = f"local-methods-{given.model}-{given.n}"
    name += "" if replies == SAMPLES else f"-{replies}"
    write_result(name, command, sets, figures(samples, folders))


def told(n: int, ways: Mapping[str, Way], name: str) -> None:
    """Print what each column asks, for answers that are not there yet."""
    made = {"resamples": ["?", "!"], "references": {"other": "?"}}
    samples = [{**one, "response": one["answers"][0][0], **made} for one in questions(n)]
    for column, way in ways.items():
        backends: dict[str, Any] = dict.fromkeys(way.backends, uri(name))
        for one in plan(chosen_of(samples, way), metrics=way.metrics, **backends).parts:
            if one.capability == "chat":
                tokens = one.prompt_tokens + one.reply_tokens
                print(f"{column}, {one.metric}: {one.calls} calls, about {tokens:,} tokens", end="")
                print(f", {one.seconds / 60:.0f} minutes by {one.basis}")


def figures(samples: Sequence[Record], folders: Sequence[Path]) -> dict[str, Any]:
    """Return the share of right answers, and the figures of every score and of every part."""
    read = [one for one in samples if "by_eye" in one]
    labels = ["label", "by_eye"] if len(read) == len(samples) else ["label"]
    rows = {
        label: {
            column: {
                measure: {"value": one.value, "interval": one.interval, "n": one.n}
                for measure, one in measured.items()
                if measure in ("auroc", "prr")
            }
            for column, measured in found.figures.items()
        }
        for label, found in zip(labels, study(list(folders), labels=labels).labels, strict=True)
    }
    lengths = {
        "answer": [len(one["token_logprobs"]) for one in samples],
        "drawn answer": [length for one in samples for length in one["drawn_tokens"]],
    }
    by_set: dict[str, list[int]] = {}
    for one in samples:
        by_set.setdefault(one["set"], []).append(one["label"])
    return {
        "answers": len(samples),
        "right": {name: float(np.mean(labels)) for name, labels in by_set.items()},
        "scores": rows["label"],
        "scores by eye": rows.get("by_eye"),
        "read by eye": agreement(read),
        "cost": {folder.name: cost(folder) for folder in folders},
        "tokens": {name: round(float(np.mean(some)), 1) for name, some in lengths.items()},
        "load_after": round(os.getloadavg()[0], 1),
    }


def agreement(read: Sequence[Record]) -> dict[str, int]:
    """Return how many answers were read by eye, and how the gold answers call the right ones."""
    pairs = Counter((one["by_eye"], one["label"]) for one in read)
    return {
        "answers": len(read),
        "right": pairs[1, 1] + pairs[1, 0],
        "right, and so by gold answers": pairs[1, 1],
        "wrong": pairs[0, 0] + pairs[0, 1],
        "wrong, but right by gold answers": pairs[0, 1],
    }


if __name__ == "__main__":
    main()
