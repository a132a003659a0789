"""Gamma by perturbed embeddings beside gamma by perturbed characters, at equal numbers of calls.

    python -m lab.benchmarks.local_models 0.5b
    pip install gguf                                        # once, to read the file
    python -m lab.benchmarks.white_box --out FOLDER --n 1       # 7 questions
    python -m lab.benchmarks.white_box --out FOLDER --n 40      # 280; goes on where it stopped

Qwen2.5-Coder-0.5B-Instruct, saved once from its GGUF file as ``FOLDER/model``, answers ``--n``
questions each of the sets of ``local_methods`` at temperature 0; gold answers say which answers are
right. Then ``harmonicity`` and ``semantic_harmonicity`` ask ``--perturbations`` times with
characters, and as often in the ball of each radius. The radius is the one with the best AUROC on a
half of the questions, drawn by a seed, and told is what it gives on the other half.

Writes ``results/white-box-0.5b-N.json``: AUROCs of wrong answers, with intervals over questions,
their difference, and all radii on both halves.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lab.benchmarks.local_methods import SETS, Record, cost, labelled, questions
from lab.benchmarks.local_models import path_of
from lab.results import write_result
from trustassay import Assessment, score
from trustassay.calls.client import CallOptions
from trustassay.cli.demo import MAX_ANSWER_TOKENS, PROMPT
from trustassay.runs.answering import Answering
from trustassay.runs.generate import GenerateOptions, generate
from trustassay.statistics.auroc import auroc_difference, auroc_interval
from trustassay.statistics.correlation import auroc
from trustassay.statistics.resampling import generator

METRICS = ("harmonicity", "semantic_harmonicity")
CHARACTERS = "characters"
RADII = (0.1, 0.2, 0.4, 0.6, 0.8)
Scores = Mapping[str, Mapping[str, float]]
"""Of each column the scores by question."""


def saved(folder: Path) -> str:
    """Return the URI of the model in a folder, made from its GGUF file if it is not there."""
    place = folder.resolve() / "model"
    if not (place / "tokenizer_config.json").exists():  # what is written last
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer

        file = path_of("0.5b")
        model = AutoModelForCausalLM.from_pretrained(
            file.parent, gguf_file=file.name, dtype=torch.float32
        )
        model.hf_quantizer = None  # its weights are plain numbers now
        del model.config.quantization_config
        model.save_pretrained(place)
        AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name).save_pretrained(place)
    return f"hf:{place}"


def answered(asked: Sequence[Record], model: str, folder: Path) -> list[Record]:
    """Return the questions with the model's answers and labels, asked for once."""
    path = folder / "answers.jsonl"
    if not path.exists():
        options = GenerateOptions(
            answering=Answering(style="closed-book", prompt=PROMPT, max_tokens=MAX_ANSWER_TOKENS),
            calls=CallOptions(cache=None),
            progress=True,
        )
        bare = [{k: v for k, v in one.items() if k != "documents"} for one in asked]
        part = path.with_suffix(".part.jsonl")
        generate(bare, model, part, options)
        part.rename(path)
    samples = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    return labelled([one for one in samples if one.get("response")], folder / "labels")


def halves(ids: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return a half of the questions, to choose a radius on, and the other one."""
    order = [sorted(ids)[i] for i in generator(0, "white box").permutation(len(ids))]
    return order[: len(order) // 2], order[len(order) // 2 :]


def area(column: Mapping[str, float], wrong: Mapping[str, int], ids: Sequence[str]) -> float | None:
    """Return the AUROC of wrong answers; ``None`` where all are right, or all are wrong."""
    labels = [wrong[i] for i in ids]
    return auroc([column[i] for i in ids], labels) if 0 < sum(labels) < len(labels) else None


def compared(scores: Scores, wrong: Mapping[str, int]) -> dict[str, Any]:
    """Return what characters and the radius chosen on one half give on the other."""
    ids = [i for i in wrong if all(i in column for column in scores.values())]
    first, second = halves(ids)
    areas = {
        name: [area(column, wrong, first), area(column, wrong, second)]
        for name, column in scores.items()
    }
    balls = [name for name in scores if name != CHARACTERS]
    best = max(balls, key=lambda name: areas[name][0] or 0.0)  # the first of equals
    result: dict[str, Any] = {
        "answers": {"scored by all": len(ids), "to choose": len(first), "told": len(second)},
        "wrong": sum(wrong[i] for i in second),
        "chosen": best,
        "auroc on both halves": areas,
    }
    if areas[best][1] is None:
        return result
    labels = [wrong[i] for i in second]
    x, y = ([scores[name][i] for i in second] for name in (best, CHARACTERS))
    for name, values in (("embeddings", x), (CHARACTERS, y)):
        result[name] = {"auroc": auroc(values, labels), "interval": auroc_interval(values, labels)}
    tested = auroc_difference(x, y, labels)
    return result | {
        "embeddings less characters": {
            "value": tested.value,
            "interval": tested.interval,
            "p": tested.p,
        }
    }


def moved(assessments: Sequence[Assessment]) -> float | None:
    """Return the share of replies to perturbed prompts that differ from the answer."""
    differ = [
        row["answer"].strip() != one.evidence[0]["original"].strip()
        for one in assessments
        for row in one.evidence[1:]
        if "answer" in row
    ]
    return float(np.mean(differ)) if differ else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True, help="folder of model and runs")
    parser.add_argument("--n", type=int, default=40, help="questions of each set")
    parser.add_argument("--perturbations", type=int, default=5, help="calls for each answer")
    parser.add_argument("--radii", type=float, nargs="+", default=RADII)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    model, folder = saved(given.out), given.out / str(given.n)
    folder.mkdir(exist_ok=True)
    samples = answered(questions(given.n), model, folder)
    wrong = {one["id"]: 1 - one["label"] for one in samples}
    how = f"perturbations={given.perturbations},prompt={PROMPT},max_tokens={MAX_ANSWER_TOKENS}"
    how += ",original=response"
    columns = {CHARACTERS: how}
    columns |= {f"{r:g}": f"{how},perturbation=embeddings,radius={r:g}" for r in given.radii}
    scores: dict[str, dict[str, dict[str, float]]] = {name: {} for name in METRICS}
    told: dict[str, Any] = {}
    for column, options in columns.items():
        print(f"{column}: {len(samples)} answers", flush=True)
        out = folder / f"{column}-{given.perturbations}"
        run = score(
            samples,
            metrics=[f"{name}:{options}" for name in METRICS],
            model=model,
            out=out,
            report=False,
            cache=None,
            progress=True,
        )
        for name in METRICS:
            own = [one for one in run.assessments if one.metric == name]
            scores[name][column] = {one.id: one.score for one in own if one.score is not None}
        failed = len(own) - len(scores[name][column])
        told[column] = {"moved": moved(own), "failed": failed, "cost": cost(out)}
    command = f"python -m lab.benchmarks.white_box --out FOLDER --n {given.n}"
    if given.perturbations != 5:
        command += f" --perturbations {given.perturbations}"
    if tuple(given.radii) != RADII:
        command += " --radii " + " ".join(f"{r:g}" for r in given.radii)
    figures = {
        "answers": len(samples),
        "right": len(samples) - sum(wrong.values()),
        "scores": {name: compared(scores[name], wrong) for name in METRICS},
        "columns": told,
        "load_after": round(os.getloadavg()[0], 1),
    }
    data = f"{given.n} questions each of {', '.join(SETS)}"
    path = write_result(f"white-box-0.5b-{given.n}", command, data, figures)
    print(json.dumps(figures["scores"], indent=1), path, sep="\n")


if __name__ == "__main__":
    main()
