"""What a second reader adds to the first, and how their verdicts are put together.

    python -m benchmarks.local_models
    python -m benchmarks.second_reader read --out FOLDER --part dev --n 40 --second 1.5b
    python -m benchmarks.second_reader fit --out FOLDER

``read`` judges a seeded sample of pairs of a passage and a statement, half of them supported, by
``embedded`` (the whole passage) and by a local model (the windows that share most words with the
statement, :mod:`trustassay.second_reader`). What was judged is kept in the folder, so that it goes
on where it stopped. ``fit`` fits the weights of both log-odds on the development parts, and tells
AUC and balanced accuracy of each reader and of both on each part; it writes
``results/second-reader.json``.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from benchmarks.local_models import path_of
from trustassay.backends.resolve import entailer
from trustassay.metrics.grounding.sentences import splitter
from trustassay.second_reader import windows
from trustassay.statistics.resampling import generator

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
    split = splitter("sentencex")
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
    path = options.out / f"{options.part}-{second}-{options.windows}x{options.words}.jsonl"
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
                windows(row.statement, [row.sentences], options.windows, options.words)
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("command", choices=["read"])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--part", choices=["dev", "test"], default="dev")
    parser.add_argument("--n", type=int, default=40, help="pairs of each set")
    parser.add_argument("--second", default="1.5b")
    parser.add_argument("--windows", type=int, default=3)
    parser.add_argument("--words", type=int, default=60)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    read(options)


if __name__ == "__main__":
    main()
