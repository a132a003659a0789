"""Seconds of made-up questions: scored by the metric beside a plain loop, and their neighbours."""

from __future__ import annotations

import resource
import tempfile
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from lab.benchmarks.fewl.sets import Record
from trustassay.api import score
from trustassay.backends.embedded import EmbeddedEmbedder
from trustassay.metrics.fewl import Fewl
from trustassay.metrics.fewl.references import find_nearest

PLAIN = 5
"""Questions of the plain loop."""


def speed(n: int) -> None:
    """Score made-up questions with 5 references, 25 pairs and 10 neighbours; beside a plain loop.

    The loop embeds both texts of every pair anew. The ratio is one of processor seconds, which do
    not depend on what else the machine does.
    """
    records = [_made_up(number) for number in range(n)]
    with tempfile.TemporaryDirectory() as folder:
        seconds, busy = time.perf_counter(), time.process_time()
        run = score(records, metrics=Fewl(max_similarity=1.0), out=folder, report=False)
        seconds, busy = time.perf_counter() - seconds, time.process_time() - busy
        assert all(one.error is None for one in run.assessments)
        calls = sum(one.calls.get("similarity", 0) for one in run.assessments)
    print(f"{n} questions: {seconds:.1f} s, {busy:.1f} s of processors; {calls} similarities")
    near = nearest_questions(records)
    vectors = EmbeddedEmbedder().vectors

    def alike(first: str, second: str) -> float:
        a, b = vectors([first]), vectors([second])
        return float(a[0] @ b[0])

    plain = time.process_time()
    for number, one in enumerate(records[:PLAIN]):
        for name, text in one["references"].items():
            alike(one["response"], text)
            for other in (*one["wrong_answers"], *one["corrected_answers"]):
                alike(text, other)
            for place in near[number]:
                alike(one["response"], records[place]["references"][name])
    plain = (time.process_time() - plain) / PLAIN
    print(f"a plain loop: {plain:.1f} s of processors each, {plain * n / busy:.1f} times as many")


def nearest_questions(records: Sequence[Record]) -> Any:
    """Return the places of ten neighbours of each question."""
    vectors = EmbeddedEmbedder().vectors([one["question"] for one in records])
    return find_nearest(vectors, vectors, 10, itself=np.arange(len(vectors))).places


def _made_up(number: int) -> Record:
    town = f"town {number}"
    return {
        "id": f"q{number}",
        "question": f"When was the observatory of {town} built?",
        "response": f"The observatory of {town} was built in {1800 + number % 200}.",
        "references": {
            f"reference {i}": f"It was in {1800 + (number + i * (number % 3)) % 200}, in {town}."
            for i in range(5)
        },
        "wrong_answers": [f"It was built in {1300 + i} by the king of {town}." for i in range(25)],
        "corrected_answers": [f"No king of {town} built it in {1300 + i}." for i in range(25)],
    }


def neighbours(n: int, queries: int | None = None) -> None:
    """Find the neighbours of made-up vectors of 384 numbers; hold some against a full sort.

    With ``queries`` only the first so many are asked for: blocks are as large, there are fewer.
    """
    queries = min(n, queries or n)
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((n, 384), dtype=np.float32)
    vectors /= np.sqrt(np.einsum("nd,nd->n", vectors, vectors))[:, None]  # without a copy
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    seconds, busy = time.perf_counter(), time.process_time()
    found = find_nearest(
        vectors[:queries], vectors, 10, max_similarity=0.8, itself=np.arange(queries)
    )
    seconds, busy = time.perf_counter() - seconds, time.process_time() - busy
    more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(f"{queries:,} among {n:,} questions: {seconds:.0f} s, {busy:.0f} s of processors")
    print(f"at most {more:.0f} MB beside the vectors, which have {vectors.nbytes >> 20} MB")
    for place in range(0, queries, max(1, queries // 100)):
        alike = vectors @ vectors[place]
        alike[place] = -1
        best = np.sort(alike)[::-1][:10]
        assert np.allclose(found.similarities[place], best, atol=1e-6)
