"""The weighted mean of a trunk's weights and of the run that went on from it, or of two such runs.

``python -m lab.training.average TRUNK RUN OUT --share 0.75``. The trunk knows dialogue answers
better, the run edited facts and long passages; between both most of either is kept. Two runs of two
seeds have their common part in their mean. Means only make sense between runs that share their
beginning.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors.torch import load_file, save_file

__all__ = ["average"]


def beginnings(note: Mapping[str, Any]) -> set[str]:
    """Return the names of the runs that a run, or a mean of runs, goes back to."""
    found = {Path(note["options"].get("start", "")).name} - {""}
    for one in (*note.get("mean of", ()), *filter(None, [note.get("began with")])):
        found |= beginnings(one)
    return found


def average(trunk: Path, run: Path, out: Path, share: float) -> None:
    """Write (1 - share) trunk + share run.

    ValueError when the run neither goes back to the trunk nor to where the trunk itself began.
    """
    notes = [json.loads((folder / "run.json").read_text()) for folder in (trunk, run)]
    if not beginnings(notes[1]) & ({trunk.name} | beginnings(notes[0])):
        raise ValueError(f"{run} goes back neither to {trunk} nor to where that began")
    first, second = (load_file(folder / "model.safetensors") for folder in (trunk, run))
    out.mkdir(parents=True, exist_ok=True)
    # lerp leaves what is equal in both (the frozen word embeddings) as it is, to the bit.
    mean = {name: first[name].lerp(second[name], share).contiguous() for name in first}
    save_file(mean, out / "model.safetensors")
    if notes[0].get("began with") == notes[1].get("began with"):
        notes[1].pop("began with", None)  # said once
    note = {"mean of": notes, "share of the second": share, "options": notes[1]["options"]}
    (out / "run.json").write_text(json.dumps(note, indent=1) + "\n")


def main() -> None:
    """Average two runs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("trunk", "run", "out"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--share", type=float, default=0.5, help="weight of the run")
    args = parser.parse_args()
    average(args.trunk, args.run, args.out, args.share)


if __name__ == "__main__":
    main()
