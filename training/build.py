"""From the data to the shipped files in one command: ``python -m training.build``.

For each seed: a trunk on the rows as they are, the rows it has not seen with augmented ones, and
the weighted mean of both; export, fit, figures. What is finished is
not done again, and a run that was stopped goes on from its last save; ``--work`` names the folder
for all of that. ``--scale 0.01`` tries the whole way out with a hundredth of the pairs and 100
rows of each development set.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from training import data

__all__ = ["ARMS", "MIX_PAIRS", "TRUNK_PAIRS", "main"]

TRUNK_PAIRS = 60_000
MIX_PAIRS = 66_000
MIX = ("--kinds", "long,extract,merge,title,chat", "--share", 0.3333, "--rate", 8e-5,
       "--head-rate", 3e-4)  # fmt: skip
MIX_WEIGHT = 0.75
"""Weight of the second run in the mean."""
ARM_PAIRS = 3_200
ARM_RATE = 5e-5
ARMS = ("", "long", "extract", "change", "merge", "title", "chat")
SCALED_ROWS = 100


@dataclass(frozen=True)
class Build:
    """Where things lie, and how much smaller than in earnest every run is (``scale`` 1: not)."""

    work: Path
    out: Path
    seeds: int
    scale: float

    def module(self, name: str, *arguments: object) -> None:
        """Run one of this folder's modules and wait for it."""
        command = [sys.executable, "-m", f"training.{name}", *map(str, arguments)]
        environment = os.environ | {"OMP_NUM_THREADS": "1"}
        if self.scale < 1:
            environment["TRUSTASSAY_TRAINING_ROWS"] = str(SCALED_ROWS)
        with (self.work / "log.txt").open("a") as file:
            subprocess.run(command, check=True, stdout=file, stderr=file, env=environment)

    def pairs(self, count: int) -> int:
        """Return the number of pairs at this scale."""
        return max(64, round(count * self.scale))

    def train(self, name: str, pairs: int, *arguments: object) -> Path:
        """Train one run unless it is finished; return its folder."""
        folder = self.work / name
        note = folder / "run.json"
        if note.exists():
            state = json.loads(note.read_text())
            if state["step"] == state["steps"]:
                return folder
        self.module("train", folder, "--resume", "--pairs", self.pairs(pairs), *arguments)
        return folder

    def seed(self, seed: int) -> None:
        """Train both runs of a seed; export their mean and fit its combination."""
        trunk = self.train(f"plain-{seed}", TRUNK_PAIRS, "--kinds", "", "--seed", seed)
        order = ("--row-seed", seed, "--skip", self.pairs(TRUNK_PAIRS))
        more = ("--start", trunk, "--seed", seed + 10, *order)
        mix = self.train(f"mix-{seed}", MIX_PAIRS, *more, *MIX)
        mean = self.work / f"mean-{seed}"
        if not (mean / "run.json").exists():
            self.module("average", trunk, mix, mean, "--share", MIX_WEIGHT)
        for part in (trunk, mean) if seed == 0 else (mean,):
            target = self.exported(part)
            if not (target / "entailer.json").exists():
                self.module("export", part, target)
                self.module("combine", part, target)

    def exported(self, run: Path) -> Path:
        """Return where a run's files go: the first seed's into ``out``."""
        return self.out if run.name == "mean-0" else self.work / f"export-{run.name}"

    def arm(self, kind: str) -> None:
        """Train the first trunk a little further with one kind of augmentation (or none)."""
        more = ("--start", self.work / "plain-0", "--seed", 20, "--kinds", kind)
        self.train(f"arm-{kind or 'none'}", ARM_PAIRS, *more, "--share", 0.5, "--rate", ARM_RATE)

    def figures(self) -> None:
        """Score everything; the test files stay closed in a build on a smaller scale."""
        others = [self.work / f"export-mean-{seed}" for seed in range(1, self.seeds)]
        closed = ("--dev",) if self.scale < 1 else ()
        plain = self.work / "export-plain-0"
        self.module("evaluate", self.out, "--plain", plain, *closed, "--seeds", *others)
        self.module("verify", self.work / "mean-0", self.out)


def main() -> None:
    """Build everything that is not there yet."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--work", type=Path, default=Path("training/work"))
    parser.add_argument("--out", type=Path, default=Path("training/out"))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0, help="share of the pairs trained on")
    parser.add_argument("--at-once", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--arms", action="store_true", help="also the ablation's short runs")
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    print(json.dumps(data.check()))
    build = Build(args.work, args.out, args.seeds, args.scale)
    with ThreadPoolExecutor(args.at_once) as pool:
        list(pool.map(build.seed, range(args.seeds)))
        if args.arms:
            list(pool.map(build.arm, ARMS))
    build.figures()


if __name__ == "__main__":
    main()
