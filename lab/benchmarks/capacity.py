"""Answers a second that one core, or one GPU, scores: the first table of docs/big-runs.md.

    python -m lab.benchmarks.capacity                                   # embedded, one core
    python -m lab.benchmarks.capacity --entailer hf:MODEL --cores 0     # all cores, the GPU

Answers of 8 sentences and 5 passages of 150 words, ``faithfulness``, no cache. Half of the
sentences are in a passage in other words, half are not. Writes ``lab/results/capacity.json``
unless ``--dry``. Run it on a machine without other work; three runs, all are reported.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

import trustassay
from lab.results import write_result

SENTENCES, PASSAGES, WORDS = 8, 5, 150
PLACES = (
    "Ashford Belmont Carrow Denby Elstow Farley Gorsey Halden Ilkley Jarrow Kelso Ludlow".split()
)
THINGS = "bridge harbour school library mill station museum theatre chapel market".split()
DEEDS = "opened closed rebuilt extended painted sold inspected visited".split()
PEOPLE = "Anna Weber,Tom Marsh,Ines Costa,Paul Nyman,Rosa Lind,Omar Haddad".split(",")


def sentence(generator: np.random.Generator) -> tuple[str, str]:
    """Return a sentence of a passage, and what an answer makes of it."""
    place, thing, deed, person = (
        str(generator.choice(words)) for words in (PLACES, THINGS, DEEDS, PEOPLE)
    )
    year, size = generator.integers(1800, 2020), generator.integers(10, 900)
    told = f"The old {thing} of {place} was {deed} in {year} by {person}, who found it"
    told = f"{told} {size} metres wide."
    return told, f"{person} {deed} the {thing} in {place} in {year}."


def answers(n: int, seed: int = 0) -> Iterator[dict[str, Any]]:
    """Yield samples of the shape."""
    generator = np.random.default_rng(seed)
    for i in range(n):
        told = [[sentence(generator) for _ in range(WORDS // 18)] for _ in range(PASSAGES)]
        pool = [short for passage in told for _, short in passage]
        known = generator.choice(pool, SENTENCES // 2, replace=False)
        unknown = [sentence(generator)[1] for _ in range(SENTENCES - len(known))]
        yield {
            "id": f"q{i}",
            "question": f"What is known of the places in report {i}?",
            "response": " ".join([*map(str, known), *unknown]),
            "documents": [" ".join(long for long, _ in passage) for passage in told],
        }


def seconds(n: int, entailer: str) -> float:
    """Score n answers after a first one, which loads the model; return the seconds."""
    options: dict[str, Any] = {"metrics": "faithfulness", "entailer": entailer, "cache": None}
    trustassay.score(list(answers(1, seed=1)), **options)
    began = time.perf_counter()
    trustassay.score(list(answers(n)), **options, progress=False)
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=200)
    parser.add_argument("--entailer", default="embedded")
    parser.add_argument("--cores", type=int, default=1, help="0: all")
    parser.add_argument("--dry", action="store_true", help="print, write nothing")
    given = parser.parse_args()
    if given.cores:
        os.sched_setaffinity(0, set(sorted(os.sched_getaffinity(0))[: given.cores]))
    before = os.getloadavg()[0]
    rates = [given.samples / seconds(given.samples, given.entailer) for _ in range(3)]
    figures = {
        "entailer": given.entailer,
        "cores": given.cores or len(os.sched_getaffinity(0)),
        "answers_a_second": [round(rate, 2) for rate in rates],
        "load_before": round(before, 1),
        "version_of_entailer": trustassay.entailer(given.entailer).name,
    }
    print(json.dumps(figures, indent=1))
    if not given.dry:
        name = "capacity" if given.entailer == "embedded" else "capacity-gpu"
        command = (
            f"python -m lab.benchmarks.capacity --entailer {given.entailer} --cores {given.cores}"
        )
        data = f"made: {SENTENCES} sentences, {PASSAGES} passages of {WORDS} words"
        print(write_result(name, command, data, figures))


if __name__ == "__main__":
    main()
