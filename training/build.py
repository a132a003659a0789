"""From the data to the shipped files in one command: ``python -m training.build``.

For each seed: a trunk on the rows as they are, then the rows with as many augmented ones, then
the mean of both; export, fit, figures. What is finished is not done again, and a run that was
stopped goes on from its last save; ``--work`` names the folder for all of that.
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

__all__ = ["ARMS", "MIX_PAIRS", "MIX_RATE", "MIX_SHARE", "TRUNK_PAIRS", "main"]

TRUNK_PAIRS = 60_000
MIX_PAIRS = 44_000
MIX_SHARE = 0.5
MIX_RATE = 8e-5
ARM_PAIRS = 4_000
ARM_RATE = 5e-5
ARMS = ("", "long", "extract", "change", "merge", "title", "chat")


@dataclass(frozen=True)
class Build:
    """Where things lie."""

    work: Path
    out: Path
    seeds: int

    def module(self, name: str, *arguments: object) -> None:
        """Run one of this folder's modules and wait for it."""
        command = [sys.executable, "-m", f"training.{name}", *map(str, arguments)]
        log = self.work / "log.txt"
        with log.open("a") as file:
            subprocess.run(command, check=True, stdout=file, stderr=file)

    def train(self, name: str, pairs: int, *arguments: object) -> Path:
        """Train one run unless it is finished; return its folder."""
        folder = self.work / name
        note = folder / "run.json"
        if note.exists():
            state = json.loads(note.read_text())
            if state["step"] == state["steps"]:
                return folder
        self.module("train", folder, "--resume", "--pairs", pairs, *arguments)
        return folder

    def seed(self, seed: int) -> None:
        """Train a trunk without augmentation, then go on with it."""
        trunk = self.train(f"plain-{seed}", TRUNK_PAIRS, "--kinds", "", "--seed", seed)
        more = ("--start", trunk, "--seed", seed + 10)
        recipe = ("--share", MIX_SHARE, "--rate", MIX_RATE)
        run = self.train(f"mix-{seed}", MIX_PAIRS, *more, *recipe)
        mean = self.work / f"mean-{seed}"
        if not mean.exists():
            self.module("average", trunk, run, mean)
        for part in (trunk, run, mean):
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


def main() -> None:
    """Build everything that is not there yet."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--work", type=Path, default=Path("training/work"))
    parser.add_argument("--out", type=Path, default=Path("training/out"))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--at-once", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--arms", action="store_true", help="also the ablation's short runs")
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    print(json.dumps(data.check()))
    build = Build(args.work, args.out, args.seeds)
    with ThreadPoolExecutor(args.at_once) as pool:
        list(pool.map(build.seed, range(args.seeds)))
        if args.arms:
            list(pool.map(build.arm, ARMS))
    others = [build.work / f"export-mean-{seed}" for seed in range(1, args.seeds)]
    plain = build.work / "export-plain-0"
    build.module("evaluate", build.out, "--plain", plain, "--seeds", *others)


if __name__ == "__main__":
    main()
