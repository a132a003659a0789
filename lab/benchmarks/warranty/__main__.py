"""What the promises of ``calibrate`` accept, and how often they are broken.

    python -m lab.benchmarks.warranty simulate [--write]           # 2 minutes of one core
    python -m lab.benchmarks.warranty sets --out FOLDER [--write]  # 10 minutes; no key
    python -m lab.benchmarks.warranty page                         # the page alone

``sets`` reads public sets (TRUSTASSAY_SHARED, else ../shared); FOLDER keeps the scores of our
readers, so that it continues where it was stopped. ``--write`` writes
``results/warranty-simulated.json`` or ``results/warranty-sets.json``, and ``results/warranty.md``.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from lab.benchmarks.warranty.measuring import measure_sets, time_command
from lab.benchmarks.warranty.sets import SETS
from lab.benchmarks.warranty.simulation import simulate
from lab.benchmarks.warranty.tables import add_summaries, build_page
from lab.results import FOLDER, read_result, write_result

SIMULATED, OF_SETS = "warranty-simulated", "warranty-sets"
LABELLED_TIMED = (500, 10_000)


def read_options() -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m lab.benchmarks.warranty",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("command", choices=["simulate", "sets", "page"])
    parser.add_argument("--out", type=Path, help="folder of the scores; needed by sets")
    parser.add_argument("--draws", type=int, help="samples a cell; default: 2,000, of sets 1,000")
    parser.add_argument("--write", action="store_true", help="write the files in results/")
    options = parser.parse_args()
    if options.command == "sets" and options.out is None:
        parser.error("sets: --out FOLDER is needed")
    return options


def _read_stored(name: str) -> Any:
    try:
        return read_result(name)
    except FileNotFoundError:
        return None


def main() -> None:
    """Simulate, measure, or write the page of what is stored."""
    options = read_options()
    draws = {"draws": options.draws} if options.draws else {}
    figures: dict[str, Any] = {name: _read_stored(name) for name in (SIMULATED, OF_SETS)}
    command = f"python -m lab.benchmarks.warranty {options.command} --write"
    if options.command == "simulate":
        figures[SIMULATED] = add_summaries(simulate(**draws))
        data = "six generators and six hostile curves, simulated"
        if options.write:
            write_result(SIMULATED, command, data, figures[SIMULATED])
    elif options.command == "sets":
        measured = measure_sets(options.out, **draws)
        measured["time"] = [time_command(labelled=labelled) for labelled in LABELLED_TIMED]
        figures[OF_SETS] = add_summaries(measured)
        data = "development files of " + ", ".join(SETS)
        if options.write:
            write_result(OF_SETS, f"{command} --out FOLDER", data, figures[OF_SETS])
    page = build_page(figures[SIMULATED], figures[OF_SETS])
    if options.write or options.command == "page":
        (FOLDER / "warranty.md").write_text(page, encoding="utf-8")
    else:
        json.dump(figures, sys.stdout, indent=1)


if __name__ == "__main__":
    main()
