"""What a second reader adds to the first, and how their verdicts are put together.

    python -m lab.benchmarks.local_models
    python -m lab.benchmarks.second_reader read --out FOLDER --part dev --n 40 --second 1.5b
    python -m lab.benchmarks.second_reader tell --out FOLDER --part dev --second 1.5b

``read`` judges a seeded sample of pairs of a passage and a statement, half of them supported, by
``embedded`` (the whole passage) and by a local model (the windows that share most words with the
statement, :func:`trustassay.judging.passages.choose_windows`). What was judged stays in the folder,
so that it goes on where it stopped. ``tell`` gives AUC and balanced accuracy at 0.5 of each reader,
and of the mean of their log-odds, on each set and as means over the sets; and the weights that a
logistic regression gives both log-odds. It writes ``results/second-reader-PART.json``.

``embedded`` was chosen by its figures on some of the development parts, the local model by none.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lab.benchmarks.local_models import path_of
from lab.results import write_result
from trustassay.backends.resolve import entailer
from trustassay.judging.passages import choose_windows
from trustassay.judging.readings import PROBABILITY_MARGIN
from trustassay.statistics.correlation import auroc
from trustassay.statistics.resampling import generator
from trustassay.text.sentences import load_splitter

Floats = NDArray[np.float64]
SHARED = Path(os.environ.get("TRUSTASSAY_SHARED", "../shared")) / "data"
SETS = {
    "BEGIN": "attribution/begin_wow_{}",
    "WiCE, oracle packs": "attribution/wice_oracle_{}",
    "WiCE, whole pages": "attribution/wice_{}",
    "HealthVer": "attribution/healthver_{}",
    "ExpertQA": "expertqa/{}",
    "FIB": "fib/{}",
    "Fool Me Twice": "fool-me-twice/{}",
    "SummEdits": "summedits/{}",
}
SUPPORTED = (1, True, "entailment", "supported")
CHUNK = 8


class Row(NamedTuple):
    """A statement, its passage as sentences, and whether people say that it is supported."""

    name: str
    premise: str
    sentences: list[str]
    statement: str
    label: bool


def rows(part: str, n: int) -> Iterator[Row]:
    """Yield ``n`` rows of each set, the sets in turn, so that a stopped reading has all of them."""
    split = load_splitter("sentencex")
    found = []
    for name, file in SETS.items():
        with gzip.open(SHARED / f"{file.format(part)}.jsonl.gz", "rt") as lines:
            read = [json.loads(line) for line in lines]
        order = generator(0, "second reader", name, part).permutation(len(read))
        own: list[Row] = []
        for label in (True, False):
            of_label = [read[i] for i in order if (read[i]["label"] in SUPPORTED) == label]
            for one in of_label[: n // 2]:
                cut = one.get("premise_sentences")
                premise = one["premise"] if cut is None else " ".join(cut)
                sentences = cut or [s.strip() for s in split(premise) if s.strip()]
                own.append(Row(name, premise, sentences, one["hypothesis"], label))
        half = len(own) // 2
        found.append([row for pair in zip(own[:half], own[half:], strict=False) for row in pair])
    for place in range(max(map(len, found))):
        yield from (own[place] for own in found if place < len(own))


def read(options: argparse.Namespace) -> None:
    """Judge what is not judged yet."""
    second = options.second
    path = path_of_reads(options)
    done = set()
    if path.exists():
        done = {tuple(json.loads(line)["of"]) for line in path.open()}
    todo = [
        row for row in rows(options.part, options.n) if (row.premise, row.statement) not in done
    ]
    print(f"{len(done)} read, {len(todo)} to read", flush=True)
    slow = entailer(f"gguf:{path_of(second)}?context=4096")
    fast = entailer("embedded")
    with path.open("a") as file:
        for start in range(0, len(todo), CHUNK):
            chunk = todo[start : start + CHUNK]
            cut = [
                choose_windows(row.statement, [row.sentences], options.windows, options.words)
                for row in chunk
            ]
            first = fast.scores([(row.premise, row.statement) for row in chunk])
            began = time.monotonic()
            shown = ["\n".join(window.text for window in one) for one in cut]
            other = slow.scores(list(zip(shown, [row.statement for row in chunk], strict=True)))
            seconds = (time.monotonic() - began) / len(chunk)
            for row, one, two, text in zip(chunk, first, other, shown, strict=True):
                line = {
                    "set": row.name,
                    "label": row.label,
                    "first": [round(float(p), 6) for p in one],
                    "second": [round(float(p), 6) for p in two],
                    "words": [len(row.premise.split()), len(text.split())],
                    "length": len(row.statement.split()),
                    "seconds": round(seconds, 2),
                    "of": [row.premise, row.statement],
                }
                file.write(json.dumps(line) + "\n")
            file.flush()
            print(start + len(chunk), round(seconds, 1), flush=True)


def odds(probabilities: Sequence[float]) -> Floats:
    """Return log-odds, of probabilities kept from 0 and 1."""
    p = np.clip(np.array(probabilities), PROBABILITY_MARGIN, 1 - PROBABILITY_MARGIN)
    return np.asarray(np.log(p / (1 - p)))


def tell(options: argparse.Namespace) -> dict[str, Any]:
    """Return the figures of what was judged."""
    found = [json.loads(line) for line in path_of_reads(options).open()]
    labels = np.array([row["label"] for row in found])
    sets = np.array([row["set"] for row in found])
    readers = {name: odds([row[name][0] for row in found]) for name in ("first", "second")}
    readers["both"] = (readers["first"] + readers["second"]) / 2
    table: dict[str, dict[str, Any]] = {}
    for name in dict.fromkeys(sets.tolist()):
        own, right = sets == name, labels[sets == name]
        table[name] = {"n": int(own.sum())} | {
            reader: {
                "auc": round(float(auroc(x[own], right) or 0), 3),
                "balanced_accuracy": round(
                    float(np.mean([np.mean((x[own] >= 0)[right == k] == k) for k in (0, 1)])), 3
                ),
            }
            for reader, x in readers.items()
        }
    means = {
        reader: {
            what: round(float(np.mean([row[reader][what] for row in table.values()])), 3)
            for what in ("auc", "balanced_accuracy")
        }
        for reader in readers
    }
    weights = logistic(np.column_stack([readers["first"], readers["second"]]), labels)
    return {
        "sets": table,
        "means over sets": means,
        "weights": [round(float(one), 2) for one in weights],
        "median words": [int(np.median([row["words"][i] for row in found])) for i in (0, 1)],
        "median seconds": float(np.median([row["seconds"] for row in found])),
    }


def logistic(x: Floats, labels: Floats) -> Floats:
    """Return intercept and weights of a logistic regression, by Newton's steps."""
    x = np.column_stack([np.ones(len(x)), x])
    b = np.zeros(x.shape[1])
    for _ in range(25):
        p = 1 / (1 + np.exp(-x @ b))
        b = b + np.linalg.solve((x.T * (p * (1 - p))) @ x, x.T @ (labels - p))
    return b


def path_of_reads(options: argparse.Namespace) -> Path:
    """Return the file of what was judged."""
    name = f"{options.part}-{options.second}-{options.windows}x{options.words}.jsonl"
    return Path(options.out) / name


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("command", choices=["read", "tell"])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--part", choices=["dev", "test"], default="dev")
    parser.add_argument("--n", type=int, default=40, help="pairs of each set")
    parser.add_argument("--second", default="1.5b")
    parser.add_argument("--windows", type=int, default=3)
    parser.add_argument("--words", type=int, default=60)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    if options.command == "read":
        read(options)
        return
    command = f"python -m lab.benchmarks.second_reader tell --out FOLDER --part {options.part}"
    figures = tell(options)
    name = f"second-reader-{options.part}"
    write_result(name, command, f"{options.part} parts of public sets", figures)
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
