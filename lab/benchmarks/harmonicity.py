"""Gamma of many samples: vectorised, against a plain loop over samples.

    python -m lab.benchmarks.harmonicity                  # 100,000 samples x 11 vectors x 384

The vectors (float32, 1.7 GB) lie in a file in a temporary folder and are mapped into memory. The
two take turns on one block of 1,000 samples after the other, so that what else the machine does
meets both. The loop takes the paper's formula, ``sqrt(1 - cos^2)`` with numpy for each sample, in
double precision. Of the samples a share has answers that are all equal, as stable ones do.

Peak memory is that of everything Python allocates during a call, by ``tracemalloc``, in a pass of
its own over all samples at once; the mapped file is not allocated.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
import tracemalloc
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from trustassay.metrics.harmonicity.maths import angles

BLOCK = 1000
Vectors = NDArray[np.float32]
Floats = NDArray[np.float64]


def write(path: Path, shape: tuple[int, int, int], equal: float) -> None:
    """Write unit vectors block by block: the answers to a prompt lie near each other."""
    samples, vectors, width = shape
    mapped = np.memmap(path, dtype=np.float32, mode="w+", shape=shape)
    rng = np.random.default_rng(0)
    for start in range(0, samples, BLOCK):
        n = min(BLOCK, samples - start)
        spread = np.where(rng.random((n, 1, 1)) < equal, 0.0, 0.3)
        found = rng.normal(size=(n, 1, width)) + spread * rng.normal(size=(n, vectors, width))
        mapped[start : start + n] = found / np.linalg.norm(found, axis=2, keepdims=True)
    mapped.flush()


def plain(vectors: Vectors) -> Floats:
    """Return gamma of each sample by the paper's formula, one sample after the other."""
    found = []
    for sample in vectors:
        o, total = sample[0].astype(np.float64), sample[1:].sum(axis=0, dtype=np.float64)
        cosine = o @ total / (np.linalg.norm(o) * np.linalg.norm(total))
        found.append(np.sqrt(max(0.0, 1.0 - cosine**2)))
    return np.array(found)


def vectorised(vectors: Vectors) -> Floats:
    return angles(vectors[:, 0], vectors[:, 1:]).gamma


def compare(file: Path, shape: tuple[int, int, int], equal: float) -> str:
    """Return a row of the table."""
    write(file, shape, equal)
    vectors = np.memmap(file, dtype=np.float32, mode="r", shape=shape)
    seconds, cpu, difference = [0.0, 0.0], [0.0, 0.0], 0.0
    for start in range(0, len(vectors), BLOCK):
        block = np.array(vectors[start : start + BLOCK])
        results = []
        for i, compute in enumerate((plain, vectorised)):
            began, began_cpu = time.perf_counter(), time.process_time()
            results.append(compute(block))
            seconds[i] += time.perf_counter() - began
            cpu[i] += time.process_time() - began_cpu
        difference = max(difference, float(np.abs(results[0] - results[1]).max()))
    tracemalloc.start()
    vectorised(vectors)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    ratios = (seconds[0] / seconds[1], cpu[0] / cpu[1])
    cells = (f"{equal:.0%}", *(f"{s:.2f}" for s in (*seconds, *ratios)), f"{peak / 1e6:.1f} MB")
    return f"| {' | '.join(cells)} | {difference:.0e} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--samples", type=int, default=100_000)
    parser.add_argument("--vectors", type=int, default=11)
    parser.add_argument("--width", type=int, default=384)
    args = parser.parse_args()
    shape = (args.samples, args.vectors, args.width)
    print(f"{' x '.join(map(str, shape))}, {os.cpu_count()} cores\n")
    print(
        "| equal answers | loop, s | vectorised, s | ratio | of CPU | peak | largest difference |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        for equal in (0.0, 0.5):
            print(compare(Path(folder) / "vectors", shape, equal), flush=True)


if __name__ == "__main__":
    main()
