"""Time and peak memory of a run whose input is a partitioned folder of Parquet files, read by URL.

    python -m lab.benchmarks.lake                             # 100,000 and 1,000,000 rows
    python -m lab.benchmarks.lake --sizes 10000

The rows are short: a question, an answer of a sentence and a passage, in 20 folders of days and
files of 25,000 rows. Each size is scored by the lexical entailer in a process of its own through
the command line, from ``file://`` by fsspec and :mod:`trustassay.input.lakes`; report and table
included. Memory is what Linux says that the process needed at most: until the last score, and
after. Files go to a temporary folder (about 2 kB a row).
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from arro3.core import Array, DataType, Field, RecordBatch, Schema
from arro3.io import write_parquet

from lab.benchmarks.memory import measure
from lab.results import write_result

DAYS, ROWS = 20, 25_000
TOWNS = ("Lisbon", "Porto", "Braga", "Faro", "Evora", "Aveiro", "Coimbra")
TEXT = DataType.string()
SCHEMA = Schema([Field(name, TEXT) for name in ("id", "question", "response", "context")])


def rows(start: int, stop: int) -> Iterator[tuple[str, str, str, str]]:
    """Yield short rows; every third answer says another town than its passage."""
    for number in range(start, stop):
        town = TOWNS[number % len(TOWNS)]
        said = town if number % 3 else TOWNS[(number + 1) % len(TOWNS)]
        question = f"Where is house {number}?"
        passage = f"House {number} is in {town}, near the river."
        yield f"r{number}", question, f"House {number} is in {said}.", passage


def write(folder: Path, size: int) -> None:
    """Write ``size`` rows as files of days."""
    each = -(-size // DAYS)
    for day in range(DAYS):
        target = folder / f"day={day + 1}"
        target.mkdir(parents=True)
        stop = min(size, (day + 1) * each)
        for start in range(day * each, stop, ROWS):
            columns = zip(*rows(start, min(stop, start + ROWS)), strict=True)
            arrays = [Array(list(values), TEXT) for values in columns]
            batch = RecordBatch.from_arrays(arrays, schema=SCHEMA)
            write_parquet(batch, target / f"part-{start}.parquet", max_row_group_size=5_000)


def figures(size: int) -> dict[str, Any]:
    """Return what a run of ``size`` rows takes."""
    with tempfile.TemporaryDirectory() as place:
        lake = Path(place) / "lake"
        write(lake, size)
        found = measure(f"file://{lake}", Path(place) / "run")
    seconds = found["scoring_s"] + found["ending_s"]
    result = {name: round(value, 1) for name, value in found.items()}
    return {"rows": size, **result, "rows_a_second": round(size / seconds, 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[100_000, 1_000_000])
    options = parser.parse_args()
    command = f"python -m lab.benchmarks.lake --sizes {' '.join(map(str, options.sizes))}"
    data = "rows of a question, an answer of a sentence and a passage, Parquet in folders of days"
    result = {}
    for size in options.sizes:
        result[str(size)] = found = figures(size)
        print(found, flush=True)
    write_result("lake", command, data, {"sizes": result, "cores": os.cpu_count()})


if __name__ == "__main__":
    main()
