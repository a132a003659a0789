"""Time and peak memory of scoring and of ending: files of growing size, the lexical entailer.

    python -m lab.benchmarks.memory                        # 10,000, 50,000 and 200,000 samples
    python -m lab.benchmarks.memory --sizes 1000000

The samples are the bundled answers, again and again. Each size runs in a process of its own through
the command line, report and Parquet included; ending is all that comes after the last score. The
peaks are what Linux says that the process needed at most. Files go to a temporary folder (about
5 kB a sample).
"""

from __future__ import annotations

import argparse
import itertools
import json
import subprocess
import sys
import tempfile
import time
from importlib.resources import files
from pathlib import Path
from typing import Any

FIGURES = ("scoring_s", "scoring_mb", "ending_s", "ending_cpu_s", "ending_mb")


def write(path: Path, n: int) -> None:
    """Write ``n`` samples: the bundled ones under new ids, each response with a text of its own."""
    text = files("trustassay.input").joinpath("example/citations.jsonl").read_text(encoding="utf-8")
    rows = [json.loads(line) for line in text.splitlines()]
    with path.open("w") as file:
        for index, row in zip(range(n), itertools.cycle(rows), strict=False):
            own = {"id": f"s{index}"}
            if row["response"]:
                own["response"] = f"{row['response']} This is answer {index}."
            file.write(json.dumps(row | own) + "\n")


def measure(source: Path | str, out: Path) -> dict[str, float]:
    """Return the figures of ``trustassay score``, measured in a process of its own."""
    command = [sys.executable, "-m", "lab.benchmarks.memory", "--child", str(source), str(out)]
    result = subprocess.run(command, check=False, capture_output=True, text=True)
    if result.returncode:
        raise SystemExit(result.stderr)
    found: dict[str, float] = json.loads(result.stdout)
    return found


def score(source: str, out: str) -> None:
    """Score in this process, and print the figures."""
    from trustassay.cli.main import app
    from trustassay.runs import execute, results

    found: dict[str, float] = {}
    write_results = results.write_results
    started = time.perf_counter()

    def watched(*arguments: Any) -> None:
        found.update(scoring_s=time.perf_counter() - started, scoring_mb=peak_mb())
        Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
        began, cpu = time.perf_counter(), time.process_time()
        write_results(*arguments)
        found["ending_s"] = time.perf_counter() - began
        found["ending_cpu_s"] = time.process_time() - cpu
        found["ending_mb"] = peak_mb()

    execute.write_results = watched  # type: ignore[assignment, attr-defined]
    app(["score", source, "--entailer", "lexical", "--out", out], standalone_mode=False)
    print(json.dumps(found))


def peak_mb() -> float:
    """Return the peak resident memory."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("the system does not say how much memory was needed")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 50_000, 200_000])
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        score(*options.child)
        return
    print("| samples | scoring, s | peak, MB | end, s | of that CPU, s | peak, MB |")
    print("| --- | --- | --- | --- | --- | --- |")
    for size in options.sizes:
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder) / "answers.jsonl"
            write(source, size)
            found = measure(source, Path(folder) / "run")
        cells = " | ".join(f"{found[name]:.0f}" for name in FIGURES)
        print(f"| {size:,} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
