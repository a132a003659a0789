"""``judge`` by a local model, on answers of GPT-3 to TruthfulQA that a person rated.

    python -m lab.benchmarks.local_models
    python -m lab.benchmarks.local_judge --out FOLDER --n 10 --repeats 3    # goes on where it
    stopped

The judge sees the question, gold answers and the answer, and is asked ``--repeats`` times at
temperature 1. Told are how often its replies can be read, how its scores order answers that the
person called true and false (AUROC, with an interval over questions), how many of both pass, and
how much its votes differ: what of their variance is answers and what is asking again. Writes
``results/local-judge-MODEL.json``; each reply is in ``FOLDER/cache``.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from lab.benchmarks.local_methods import cost, uri
from lab.benchmarks.local_models import MODELS
from lab.benchmarks.local_replies import keep, restore
from lab.benchmarks.which_metric.sets import drawn, truthfulqa
from lab.results import write_result
from trustassay import score, study
from trustassay.runs.folder import RunFolder


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True, help="folder of runs and replies")
    parser.add_argument("--n", type=int, default=100, help="answers")
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--model", choices=[*MODELS], default="1.5b")
    given = parser.parse_args()
    samples = drawn(list(truthfulqa()), given.n, "local judge")
    samples = [{k: v for k, v in one.items() if k != "references"} for one in samples]
    restore(given.out / "cache")
    folder = given.out / f"{given.model}-{given.n}-{given.repeats}"
    run = score(
        samples,
        metrics=[f"judge:repeats={given.repeats},temperature=1.0"],
        judge=uri(given.model),
        out=folder,
        cache=given.out / "cache",
        progress=True,
    )
    keep(given.out / "cache")
    columns = study([folder], labels="label").labels[0].figures
    labels = {one["id"]: one["label"] for one in samples}
    passes = {0: [0, 0], 1: [0, 0]}
    for one in run.assessments:
        if one.error is None:
            counts = passes[labels[one.id]]
            counts[0] += one.verdict == "passes"
            counts[1] += 1
    _, told = RunFolder(folder).read_finished()
    deviations = [one.parts["sd"] for one in run.assessments if "sd" in one.parts]
    asked = [sys.executable, "-m", "trustassay", "agree", "--run", str(folder), "--json"]
    agreed = json.loads(subprocess.run(asked, capture_output=True, check=True, text=True).stdout)
    components = agreed["variance"]["groups"]["judges"]["components"]
    figures: dict[str, Any] = {
        "answers": len(samples),
        "true": sum(labels.values()),
        "failed": sum(one.error is not None for one in run.assessments),
        "true_that_pass": passes[1],
        "false_that_pass": passes[0],
        "mean_sd_of_votes": round(float(np.mean(deviations)), 3) if deviations else None,
        "share_of_variance": {one["name"]: round(one["share"], 1) for one in components},
        "summary": told["metrics"]["judge"]["values"],
        "auroc": {
            column: {"value": one["auroc"].value, "interval": one["auroc"].interval}
            for column, one in columns.items()
            if "auroc" in one
        },
        "cost": cost(folder),
        "load_after": round(os.getloadavg()[0], 1),
    }
    command = (
        f"python -m lab.benchmarks.local_judge --n {given.n} --repeats {given.repeats} "
        f"--model {given.model}"
    )
    data = "answers of GPT-3 to TruthfulQA with a person's ratings"
    write_result(f"local-judge-{given.model}", command, data, figures)


if __name__ == "__main__":
    main()
