"""The mean of a trunk's weights and of the run that went on from it.

``python -m training.average TRUNK RUN OUT``. Augmentation gains on edited facts and loses on
dialogue; halfway between both keeps most of either (``figures.md`` has the three side by side).
Means only make sense between runs that share their beginning.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from safetensors.torch import load_file, save_file

__all__ = ["average"]


def average(trunk: Path, run: Path, out: Path) -> None:
    """Write the mean of two runs; ValueError when the second did not start at the first."""
    notes = [json.loads((folder / "run.json").read_text()) for folder in (trunk, run)]
    if Path(notes[1]["options"]["start"]).name != trunk.name:
        raise ValueError(f"{run} did not start at {trunk}")
    first, second = (load_file(folder / "model.safetensors") for folder in (trunk, run))
    out.mkdir(parents=True, exist_ok=True)
    mean = {name: ((first[name] + second[name]) / 2).contiguous() for name in first}
    save_file(mean, out / "model.safetensors")
    note = {"mean of": notes, "options": notes[1]["options"]}
    (out / "run.json").write_text(json.dumps(note, indent=1) + "\n")


def main() -> None:
    """Average two runs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("trunk", "run", "out"):
        parser.add_argument(name, type=Path)
    args = parser.parse_args()
    average(args.trunk, args.run, args.out)


if __name__ == "__main__":
    main()
