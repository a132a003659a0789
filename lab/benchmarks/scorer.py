"""What a sample costs in a resident scorer, beside ``score`` of the same samples in one batch.

    python -m lab.benchmarks.scorer [--samples 400] [--entailer lexical]

Samples of two cited sentences and two passages, all different, scored by faithfulness: one `score`
of all; `ascore` of one sample after the other, as without a scorer; a scorer with 1, 8 and 64
callers, each of which sends its next sample when it has the answer to the last, without a folder
and with one. Milliseconds a sample by the clock and of the processor (the one to look at if other
work runs), the best of three rounds, each with fresh samples, and the time that a caller waits, at
the median and the 99th percentile.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import trustassay
from trustassay import ascore, scorer

ROUNDS = 3
Round = tuple[float, float, list[float]]
"""Seconds by the clock, seconds of the processor, and those that each caller waited."""
METRIC = "faithfulness"


def samples(n: int, start: int) -> list[dict[str, Any]]:
    return [
        {
            "question": f"What is known of station {i}?",
            "response": f"Station {i} was built in {i}. It is painted red and white [1][2].",
            "documents": [f"Station {i} was built in {i}.", f"Station {i} is painted red."],
        }
        for i in range(start, start + n)
    ]


class Stopwatch:
    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    def read(self) -> tuple[float, float]:
        return time.perf_counter() - self._wall, time.process_time() - self._cpu


async def one_by_one(n: int, start: int, entailer: str) -> list[float]:
    waits = []
    for one in samples(n, start):
        began = time.perf_counter()
        await ascore([one], metrics=METRIC, entailer=entailer)
        waits.append(time.perf_counter() - began)
    return waits


async def resident(n: int, start: int, entailer: str, callers: int, out: Path | None) -> Round:
    waits: list[float] = []

    async def caller(found: trustassay.Scorer, mine: Iterator[dict[str, Any]]) -> None:
        for one in mine:
            began = time.perf_counter()
            assay = await found.score(one)
            assert not assay.errors
            waits.append(time.perf_counter() - began)

    async with scorer(metrics=METRIC, entailer=entailer, out=out) as found:
        await found.score(samples(1, 10**6)[0])  # loads the model
        waiting = iter(samples(n, start))
        watch = Stopwatch()
        await asyncio.gather(*(caller(found, waiting) for _ in range(callers)))
        wall, cpu = watch.read()
    return wall, cpu, waits


def row(what: str, rounds: list[Round], n: int) -> None:
    wall, _, waits = min(rounds, key=lambda one: one[0])
    cpu = min(one[1] for one in rounds)
    middle, late = np.percentile(waits, [50, 99]) * 1000 if waits else (np.nan, np.nan)
    cells = ["", ""] if not waits else [f"{middle:.1f}", f"{late:.1f}"]
    print(
        f"| {what} | {wall / n * 1000:.2f} | {cpu / n * 1000:.2f} | {' | '.join(cells)} |",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--samples", type=int, default=400)
    parser.add_argument("--entailer", default="lexical")
    options = parser.parse_args()
    n, entailer = options.samples, options.entailer
    print(f"{n} samples, faithfulness, entailer {entailer}\n")
    print("| how | ms a sample | CPU ms a sample | a caller waits, ms: median | 99 % |")
    print("| --- | --- | --- | --- | --- |")
    rounds: list[Round] = []
    for r in range(ROUNDS):
        watch = Stopwatch()
        asyncio.run(ascore(samples(n, r * n), metrics=METRIC, entailer=entailer))
        rounds.append((*watch.read(), list[float]()))
    row("`score` of all in one batch", rounds, n)
    few = min(n, 40)
    rounds = []
    for r in range(ROUNDS):
        watch = Stopwatch()
        waits = asyncio.run(one_by_one(few, 10**5 + r * n, entailer))
        wall, cpu = watch.read()
        rounds.append((wall * n / few, cpu * n / few, waits))
    row("`ascore` of one sample at a time", rounds, n)
    for kept in (False, True):
        for callers in (1, 8, 64):
            rounds = []
            for r in range(ROUNDS):
                with tempfile.TemporaryDirectory() as folder:
                    out = Path(folder) / "run" if kept else None
                    start = 2 * 10**5 + (callers * 10 + r) * n
                    rounds.append(asyncio.run(resident(n, start, entailer, callers, out)))
            word = "caller" if callers == 1 else "callers"
            row(f"scorer{' with a folder' if kept else ''}, {callers} {word}", rounds, n)


if __name__ == "__main__":
    main()
