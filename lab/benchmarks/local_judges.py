"""What a local model of half or one and a half billion weights judges better than ``embedded``.

    python -m lab.benchmarks.local_models
    python -m lab.benchmarks.local_judges --n 150            # goes on where it was stopped

Each entailer judges the same pairs: a seeded sample of the probes (lab/training/probes, 300 minimal
pairs by kind) and of test files of docs/models/embedded.md, half supported and half not where
there are enough. A premise is read whole, without windows. Told are the AUC with its interval over
premises, the balanced accuracy at 0.5, and seconds a pair. Writes ``results/local-judges.json``,
after each of them; what is there for the same ``--n`` is not measured again.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lab.benchmarks.local_models import MODELS, path_of
from lab.results import FOLDER, write_result
from trustassay.backends.resolve import entailer
from trustassay.input.labelled_pairs import LabelledPair, read_pairs
from trustassay.people.entailers import measure_entailers
from trustassay.statistics.resampling import generator

SHARED = Path(os.environ.get("TRUSTASSAY_SHARED", "../shared")) / "data"
PROBES = "probes"
SETS = {
    "BEGIN-WoW": "attribution/begin_wow_test",
    "WiCE, oracle packs": "attribution/wice_oracle_test",
    "HealthVer": "attribution/healthver_test",
    "FIB": "fib/test",
    "Q2, Wizard of Wikipedia": "dialogue-grounding/q2_wow_test",
    "Fool Me Twice": "fool-me-twice/test",
}
NAME = "local-judges"
TRUE = (1, "entailment", "supported")
"""Labels of what is supported."""


def pairs_of(name: str, n: int) -> list[LabelledPair]:
    """Return ``n`` pairs of a set, seeded; of the probes both of each minimal pair."""
    if name == PROBES:
        probes = read_pairs(Path("lab/training/probes/pairs.jsonl"))
        order = generator(0, "local judges", name).permutation(len(probes) // 2)[: n // 2]
        return [probes[2 * place + side] for place in sorted(order) for side in (0, 1)]
    with gzip.open(SHARED / f"{SETS[name]}.jsonl.gz", "rt") as file:
        rows = [json.loads(line) for line in file]
    order = generator(0, "local judges", name).permutation(len(rows))
    chosen: list[LabelledPair] = []
    for label in (True, False):
        found = [rows[i] for i in order if (rows[i]["label"] in TRUE) == label]
        chosen += [LabelledPair(r["premise"], r["hypothesis"], label) for r in found[: n // 2]]
    return chosen


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--n", type=int, default=150, help="pairs of each test file")
    parser.add_argument("--models", nargs="*", default=["embedded", *MODELS])
    parser.add_argument("--threads", type=int, help="of the local models")
    parser.add_argument("--sets", nargs="*", default=[PROBES, *SETS])
    options = parser.parse_args()
    figures: list[dict[str, Any]] = []
    if (FOLDER / f"{NAME}.json").exists():
        found = json.loads((FOLDER / f"{NAME}.json").read_text("utf-8"))["figures"]
        figures = [row for row in found if row["asked_for"] == options.n]
    done = {(row["set"], row["entailer"]) for row in figures}
    for model in options.models:
        uri = model if model not in MODELS else f"gguf:{path_of(model)}?context=4096"
        if model in MODELS and options.threads:
            uri += f"&threads={options.threads}"
        judge = None
        for name in options.sets:
            if (name, model) in done:
                continue
            judge = judge or entailer(uri)
            (measured,) = measure_entailers(pairs_of(name, options.n), {model: judge})
            figures.append(row(name, model, options.n, measured.to_dict()))
            print(json.dumps(figures[-1]), flush=True)
            command = f"python -m lab.benchmarks.local_judges --n {options.n}"
            write_result(
                NAME, command, "probes, and test files of docs/models/embedded.md", figures
            )


def row(name: str, model: str, n: int, measured: Mapping[str, Any]) -> dict[str, Any]:
    """Return the figures of one entailer on one set."""
    count = measured["n"]
    return {
        "set": name,
        "entailer": model,
        "asked_for": n,
        "n": count,
        "failed": measured["failed"],
        "auc": measured["auc"],
        "balanced_accuracy": measured["balanced_accuracy"],
        "calibration_error": measured["calibration_error"]["value"],
        "seconds_a_pair": round(measured["seconds"] / max(1, count), 3),
        "kinds": measured["kinds"],
        "load_after": round(os.getloadavg()[0], 1),
    }


if __name__ == "__main__":
    main()
