"""From the data to the shipped files in one command: ``python -m lab.training.build``.

For each seed: a trunk on the rows as they are, the rows it has not seen with augmented ones, the
weighted mean of both (version 3 ends here); then the sets of hard kinds, then all of it with
made-up worlds, and the mean of these two (version 4); then the stages, of two runs each, of which
the mean goes on: more worlds, the written pairs, the rows again, more written pairs; the mean of
version 4, of the rows read again and of the last stage; export, fit, figures. What is finished is
not done again, and a run that was stopped goes on from its last save; ``--work`` names the folder
for all of that. ``--scale 0.01`` tries the whole way out with a hundredth of the pairs and 100 rows
of each development set.
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

from lab.training import data, mixture

__all__ = ["ARMS", "MIX_PAIRS", "TRUNK_PAIRS", "main"]


@dataclass(frozen=True)
class Stage:
    """A mixture that some runs read, each with a seed of its own; the mean of them goes on.

    order: weight of the loss of wrong order within a premise. weight: of the stage in its mean
    with what it went on from.
    """

    mixture: str
    runs: int = 2
    order: float = 0.0
    weight: float = 1.0


TRUNK_PAIRS = 60_000
MIX_PAIRS = 66_000
MIX = ("--kinds", "long,extract,merge,title,chat", "--share", 0.3333, "--rate", 8e-5,
       "--head-rate", 3e-4)  # fmt: skip
MIX_WEIGHT = 0.75
"""Weight of the second run in the mean."""
SETS = ("rows=4000,augmented=1000,gap=1400,conjnli=1800,hans=1200,med=1200,megaveridicality=1000,"
        "negation=700,fm2=700,faithdial=240,fib=900,xsum=90")  # fmt: skip
SETS_RATES = ("--rate", 6e-5, "--head-rate", 2e-4, "--frozen", 2)
"""What goes on from the mean: old rows and the sets of hard kinds; two layers stay as they are."""
ALL = ("rows=8000,augmented=2500,worlds=14000,gap=3000,conjnli=4000,hans=2500,med=2500,"
       "megaveridicality=2000,negation=900,fm2=880,faithdial=400,fib=1500,xsum=90,"
       "diasumfact=250")  # fmt: skip
ALL_RATES = ("--rate", 1e-4, "--head-rate", 3e-4)
"""What goes on from that: the same with made-up worlds, every layer."""
ALL_WEIGHT = 0.6
"""Weight of the last run in the mean with the one it went on from."""
STAGES = {
    "worlds": Stage(
        "worlds=20000,rows=17000,augmented=3000,gap=2000,conjnli=4000,hans=1500,med=1500,"
        "megaveridicality=1500,negation=900,fm2=880,faithdial=400,fib=1200,xsum=90,diasumfact=250"
    ),
    "written": Stage(
        "written=22000,rows=8000,worlds=4000,gap=800,conjnli=1500,hans=500,med=500,"
        "megaveridicality=500,negation=400,fm2=400,faithdial=400,fib=700,xsum=90,diasumfact=120"
    ),
    "more": Stage("written=12000,near=3000,rows=2000"),
    "last": Stage(
        "written=25000,near=3000,rows=5500,augmented=700,worlds=600,gap=400,conjnli=700,hans=250,"
        "med=250,megaveridicality=300,negation=300,fm2=400,faithdial=400,fib=700,xsum=90,"
        "diasumfact=150"
    ),
    "again": Stage(
        "rows=22000,worlds=3500,written=10000,near=1000,conjnli=1000,gap=700,fm2=700,faithdial=400,"
        "fib=600,hans=300,med=300,megaveridicality=300,negation=400,xsum=90,diasumfact=150",
        runs=1, order=0.3, weight=0.5,
    ),
    "twins": Stage(
        "twins=22000,written=6000,rows=8000,near=1000,worlds=1500,conjnli=700,gap=500,fm2=500,"
        "faithdial=400,fib=500,hans=200,med=200,megaveridicality=200,negation=300,xsum=90,"
        "diasumfact=100",
        order=0.3,
    ),
    "texts": Stage(
        "texts=7500,twins=1500,rows=2000,near=300,conjnli=150,gap=150,fm2=200,faithdial=250,"
        "fib=300,diasumfact=100,xsum=60,negation=60",
        order=0.3,
    ),
}  # fmt: skip
"""What goes on from version 4, one after another. Version 5 is made of the first four."""
KEPT = "again"
"""The stage with which the last one is averaged, half and half."""
LAST_WEIGHT = 0.8
"""Weight of that mean in its mean with version 4."""
STAGE_RATES = ("--rate", 1.2e-4, "--head-rate", 3e-4)
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

    def mixture(self, text: str) -> str:
        """Return a mixture at this scale."""
        counts = mixture.parse(text).items()
        return ",".join(f"{name}={max(2, round(n * self.scale))}" for name, n in counts)

    def seed(self, seed: int) -> None:
        """Train the runs of a seed; export the last and fit its combination."""
        trunk = self.train(f"plain-{seed}", TRUNK_PAIRS, "--kinds", "", "--seed", seed)
        order = ("--row-seed", seed, "--skip", self.pairs(TRUNK_PAIRS))
        more = ("--start", trunk, "--seed", seed + 10, *order)
        mix = self.train(f"mix-{seed}", MIX_PAIRS, *more, *MIX)
        mean = self.mean(trunk, mix, f"mean-{seed}", MIX_WEIGHT)
        kinds = self.train(f"sets-{seed}", 0, "--start", mean, "--seed", seed + 40,
                           "--mixture", self.mixture(SETS), *SETS_RATES)  # fmt: skip
        last = self.train(f"all-{seed}", 0, "--start", kinds, "--seed", seed + 42,
                          "--mixture", self.mixture(ALL), *ALL_RATES)  # fmt: skip
        four = begin = self.mean(kinds, last, f"four-{seed}", ALL_WEIGHT)
        ends = {}
        for number, (name, stage) in enumerate(STAGES.items()):
            begin = self.stage(f"{name}-{seed}", begin, seed + 61 + 10 * number, stage)
            ends[name] = begin
        last = self.mean(ends[KEPT], begin, f"stages-{seed}")
        shipped = self.mean(four, last, f"shipped-{seed}", LAST_WEIGHT)
        for part in (trunk, shipped) if seed == 0 else (shipped,):
            target = self.exported(part)
            if not (target / "entailer.json").exists():
                self.module("export", part, target)
                self.module("combine", part, target)

    def stage(self, name: str, begin: Path, seed: int, stage: Stage) -> Path:
        """Train the runs of a stage from the same weights; return the folder of what goes on."""
        options = ("--start", begin, "--mixture", self.mixture(stage.mixture), *STAGE_RATES,
                   "--order", stage.order)  # fmt: skip
        runs = [
            self.train(f"{name}-{i}", 0, "--seed", seed + i, *options) for i in range(stage.runs)
        ]
        mean = runs[0] if stage.runs == 1 else self.mean(*runs, name)
        return mean if stage.weight == 1 else self.mean(begin, mean, f"{name}-mean", stage.weight)

    def mean(self, first: Path, second: Path, name: str, share: float = 0.5) -> Path:
        """Return the folder of the mean of two runs' weights, made unless it is there."""
        folder = self.work / name
        if not (folder / "run.json").exists():
            self.module("average", first, second, folder, "--share", share)
        return folder

    def exported(self, run: Path) -> Path:
        """Return where a run's files go: the first seed's into ``out``."""
        return self.out if run.name == "shipped-0" else self.work / f"export-{run.name}"

    def arm(self, kind: str) -> None:
        """Train the first trunk a little further with one kind of augmentation (or none)."""
        more = ("--start", self.work / "plain-0", "--seed", 20, "--kinds", kind)
        self.train(f"arm-{kind or 'none'}", ARM_PAIRS, *more, "--share", 0.5, "--rate", ARM_RATE)

    def figures(self) -> None:
        """Score everything; the test files stay closed in a build on a smaller scale."""
        others = [self.work / f"export-shipped-{seed}" for seed in range(1, self.seeds)]
        closed = ("--dev",) if self.scale < 1 else ()
        plain = self.work / "export-plain-0"
        self.module("evaluate", self.out, "--plain", plain, *closed, "--seeds", *others)
        self.module("verify", self.work / "shipped-0", self.out)


def main() -> None:
    """Build everything that is not there yet."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--work", type=Path, default=Path("lab/training/work"))
    parser.add_argument("--out", type=Path, default=Path("lab/training/out"))
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
