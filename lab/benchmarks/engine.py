"""What the engine itself costs: models that answer at once, and calls that only wait.

    python -m lab.benchmarks.engine               # CPU milliseconds a sample; 2,000 calls of 100 ms

The first part scores 8,000 samples into a run's folder by a metric that makes one call a sample,
and by ``harmonicity`` with two recorded answers a sample, with models in this process that answer
at once. What is left is the engine: the input is checked and written, calls are gathered, stored
and counted, figures, table and report are written. The second part asks a function that sleeps for
100 ms, 50 calls at a time, beside a loop with a semaphore.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from trustassay import score
from trustassay.core.metric import Assessment, Context, Figure, Mean, Metric, Need
from trustassay.metrics import Harmonicity

SAMPLES = 8_000
CALLS, AT_ONCE, CALL_S = 2_000, 50, 0.1


@dataclass(frozen=True)
class OneCall(Metric):
    """One call a sample: of the entailer, or of the model."""

    name: ClassVar[str] = "one_call"
    title: ClassVar[str] = "One call a sample"
    figures: ClassVar[Mapping[str, Figure]] = {
        "mean": Figure("mean", "mean", "", headline=True, statistic=Mean())
    }

    capability: str = "entail"

    def needs(self) -> Sequence[Need]:
        return [Need(self.capability)]

    async def assess(self, context: Context) -> Assessment:
        sample, models = context.sample, context.models
        if self.capability == "chat":
            found = float((await models.chat(sample.question)).text == "yes")
        else:
            found = (await models.entail(sample.question, sample.response or "")).entailment
        return Assessment(sample.id, self.name, found)


class InstantEntailer:
    name = "instant"

    def scores(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float64]:
        return np.tile([0.9, 0.05, 0.05], (len(pairs), 1))


class InstantEmbedder:
    name = "instant"

    def vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.array([[1.0, len(text)] for text in texts], np.float32)


def instant(_: str) -> str:
    return "yes"


async def slow(_: str) -> str:
    await asyncio.sleep(CALL_S)
    return "yes"


def rows(count: int) -> list[dict[str, Any]]:
    return [
        {
            "question": f"Question number {i}?",
            "response": f"Answer number {i}.",
            "resamples": ["a b c", "d e f"],
        }
        for i in range(count)
    ]


def measured(samples: int, metric: Metric, **options: Any) -> tuple[float, float]:
    """Return seconds on the clock and of CPU; what is imported late was imported before."""
    with tempfile.TemporaryDirectory() as folder:
        score(rows(50), metrics=metric, out=Path(folder) / "before", **options)
        wall, cpu = time.perf_counter(), time.process_time()
        score(rows(samples), metrics=metric, out=Path(folder) / "run", **options)
        return time.perf_counter() - wall, time.process_time() - cpu


async def bare(function: Callable[[str], Any], prompts: Sequence[str]) -> None:
    places = asyncio.Semaphore(AT_ONCE)

    async def one(prompt: str) -> str:
        async with places:
            return str(await function(prompt))

    await asyncio.gather(*map(one, prompts))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=SAMPLES)
    parser.add_argument("--repeats", type=int, default=3, help="the least of so many is told")
    options = parser.parse_args()
    kinds: list[tuple[str, Metric, dict[str, Any]]] = [
        ("one entailment a sample", OneCall(), {"entailer": InstantEntailer()}),
        ("one chat call a sample", OneCall("chat"), {"model": instant}),
        ("harmonicity, two answers given", Harmonicity(), {"embedder": InstantEmbedder()}),
    ]
    print("| what is scored | CPU ms per sample |\n| --- | --- |")
    for what, metric, models in kinds:
        cpu = min(measured(options.samples, metric, **models)[1] for _ in range(options.repeats))
        print(f"| {what} | {cpu / options.samples * 1000:.2f} |", flush=True)
    prompts = [row["question"] for row in rows(CALLS)]
    ours, loop = [], []
    for _ in range(options.repeats):
        begun = time.perf_counter()
        asyncio.run(bare(slow, prompts))
        loop.append(time.perf_counter() - begun)
        ours.append(measured(CALLS, OneCall("chat"), model=slow, samples_at_once=AT_ONCE)[0])
    print(
        f"{CALLS:,} calls of {CALL_S} s, {AT_ONCE} at a time: {min(ours):.2f} s as a whole run,"
        f" {min(loop):.2f} s by a bare loop ({min(ours) / min(loop):.2f} times)"
    )


if __name__ == "__main__":
    main()
