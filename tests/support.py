"""What the tests of the engine and of the command line share."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from tests import forking
from trustassay.core.capabilities import BatchLimits, Models, Probabilities
from trustassay.core.metric import Assessment, Context, Figure, Metric, Need, Summary
from trustassay.core.registry import ENTRY_POINT_GROUP
from trustassay.core.sample import Sample

Pair = tuple[str, str]
Verdict = Callable[[str, str], Sequence[float]]

YES = (1.0, 0.0, 0.0)
ROOT = Path(__file__).parent.parent
FULL = bool(os.environ.get("FULL_TESTS"))
"""Whether simulations and random examples are as many as in ``make nightly``."""


def metric_names() -> list[str]:
    """Return the names of all installed metrics."""
    return sorted(entry.name for entry in entry_points(group=ENTRY_POINT_GROUP))


def repeats(full: int) -> int:
    """Return how often a simulation is repeated: so often, or a third of it."""
    return full if FULL else full // 3


def crossed(*choices: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Return all combinations, or every other one, in which any two values of three lists meet."""
    places = itertools.product(*(range(len(values)) for values in choices))
    return [
        tuple(values[i] for values, i in zip(choices, place, strict=True))
        for place in places
        if FULL or sum(place) % 2 == 0
    ]


def record(i: int, **others: Any) -> dict[str, Any]:
    """Return a record with two cited sentences about ``i``: three pairs for an entailer."""
    return {
        "id": f"q{i}",
        "question": f"What is number {i}?",
        "response": f"Number {i} is odd [1]. Number {i} is large and red [1][2].",
        "documents": [f"Number {i} is odd.", f"Number {i} is large, and it is blue."],
        **others,
    }


def records(n: int) -> list[dict[str, Any]]:
    return [record(i) for i in range(n)]


def jsonl(path: Path, rows: Iterable[Mapping[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


class Recorder:
    """An entailer that notes every batch; ``judge`` may return anything or raise."""

    name = "recorder"

    def __init__(
        self,
        judge: Verdict = lambda premise, hypothesis: YES,
        *,
        limits: BatchLimits | None = None,
        stored: bool = True,
    ) -> None:
        self.judge, self.stored = judge, stored
        self.limits = limits or BatchLimits()
        self.batches: list[list[Pair]] = []

    def scores(self, pairs: Sequence[Pair]) -> Probabilities:
        self.batches.append(list(pairs))
        return np.array([self.judge(*pair) for pair in pairs])

    @property
    def asked(self) -> Counter[Pair]:
        return Counter(pair for batch in self.batches for pair in batch)


@dataclass(frozen=True)
class Probe(Metric):
    """Asks for one entailment: does the response entail the question? ``ask`` decides instead."""

    name: ClassVar[str] = "probe"
    title: ClassVar[str] = "Probe"
    figures: ClassVar[Mapping[str, Figure]] = {"mean": Figure("mean", "the mean", headline=True)}

    ask: Callable[[Sample, Models], Any] | None = None

    def needs(self) -> Sequence[Need]:
        return [Need("entail")]

    async def assess(self, context: Context) -> Assessment:
        sample, models = context.sample, context.models
        if self.ask is not None:
            found = await self.ask(sample, models)
            if isinstance(found, Assessment):
                return found
        else:
            found = (await models.entail(sample.response or "", sample.question)).entailment
        return Assessment(sample.id, self.name, found, parts={"value": found})

    def summarise(self, assessments: Collection[Assessment], *, seed: int = 0) -> Summary:
        scores = [a.score for a in assessments if a.score is not None]
        failed = sum(a.error is not None for a in assessments)
        mean = float(np.mean(scores)) if scores else None
        return Summary({"mean": mean}, n=len(assessments), failed=failed)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def summary_of(folder: Path) -> dict[str, Any]:
    """Return the content of ``summary.json`` without the time it took."""
    content: dict[str, Any] = json.loads((folder / "summary.json").read_bytes())
    del content["seconds"]
    return content


def results(folder: Path) -> tuple[bytes, str]:
    """Return what must be the same for the same run, to the byte."""
    return (folder / "assessments.jsonl").read_bytes(), json.dumps(summary_of(folder))


def command(*arguments: str | Path) -> list[str]:
    """Return what runs a command in a process whose imports are done already.

    One that is killed by SIGKILL may work on for a moment, until the next such command: where its
    work is then looked at by other means, take :func:`fresh_command`.
    """
    return forking.command(*map(str, arguments))


def fresh_command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "trustassay", *map(str, arguments)]


QUICK = """
import zlib
import numpy as np

class Quick:
    name = "quick"

    def vectors(self, texts):
        drawn = [np.random.default_rng(zlib.crc32(text.encode())).normal(size=8) for text in texts]
        return np.array([row / np.linalg.norm(row) for row in drawn], dtype=np.float32)

embedder = Quick()
"""


def quick_embedder(folder: Path) -> list[str]:
    """Put an embedder that takes no time beside a command's files; return how to name it."""
    (folder / "quick.py").write_text(QUICK)
    return ["--embedder", "python:quick:embedder"]


def run_command(
    *arguments: str | Path, cwd: Path, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, in a process of its own whose imports are done already."""
    return subprocess.run(
        command(*arguments),
        cwd=cwd,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def killed_at_work(arguments: Sequence[str], part: Path, *, cwd: Path, **environment: str) -> None:
    """Start a command, and end it with SIGKILL as soon as ``part`` holds five lines."""
    with subprocess.Popen(
        arguments, cwd=cwd, env=os.environ | environment, stderr=subprocess.DEVNULL
    ) as process:
        deadline = time.monotonic() + 60
        while not part.exists() or part.read_bytes().count(b"\n") < 5:
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
