"""Peak memory of scoring files of growing size with the lexical entailer.

    python -m benchmarks.memory                       # 10,000, 100,000 and 1,000,000 samples
    python -m benchmarks.memory --sizes 10000 100000

Each size runs in a process of its own through the command line, report and Parquet included; the
operating system says what the process needed at most. Files go to a temporary folder (about
3 GB for a million samples).
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks import answers


def write(path: Path, n: int) -> None:
    """Write ``n`` short answers over two passages each, from a pool of 1,000 made ones."""
    rng = np.random.default_rng(0)
    pool = []
    for _ in range(1000):
        texts = [answers.sentence(rng, 25), answers.sentence(rng, 25)]
        gold = texts[0].split()[3]
        pool.append(
            {
                "question": answers.sentence(rng, 8)[:-1] + "?",
                "response": f"{texts[0][:-1]} [1]. {answers.sentence(rng, 10)[:-1]} [2].",
                "answers": [[gold]],
                "documents": [{"text": t, "supports": [int(gold in t)]} for t in texts],
            }
        )
    with path.open("w") as file:
        for index in range(n):
            file.write(json.dumps({"id": f"s{index}"} | pool[index % len(pool)]) + "\n")


def measure(source: Path, out: Path) -> tuple[float, float]:
    """Return peak resident megabytes and seconds of ``trustassay score``."""
    command = [sys.executable, "-m", "trustassay", "score", str(source), "--out", str(out)]
    started = time.perf_counter()
    pid = os.posix_spawn(sys.executable, command, os.environ)
    _, status, usage = os.wait4(pid, 0)
    if status:
        raise SystemExit(f"trustassay score ended with {os.waitstatus_to_exitcode(status)}")
    return usage.ru_maxrss / 1024, time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    print("| samples | peak memory, MB | seconds | ms a sample |")
    print("| --- | --- | --- | --- |")
    for size in parser.parse_args().sizes:
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder) / "answers.jsonl"
            write(source, size)
            peak, seconds = measure(source, Path(folder) / "run")
        cells = f"{size:,} | {peak:.0f} | {seconds:.0f} | {1000 * seconds / size:.2f}"
        print(f"| {cells} |", flush=True)


if __name__ == "__main__":
    main()
