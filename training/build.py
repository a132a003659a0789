"""From the data to the shipped files in one command: ``python -m training.build``.

For each seed: a trunk on the rows as they are, the rows it has not seen with augmented ones, the
weighted mean of both (version 3 ends here); then the sets of hard kinds, then all of it with
made-up worlds, and the mean of these two (version 4); then four stages of two runs each, of which
the mean goes on: more worlds, then the written pairs; the mean of version 4 and the last; export,
fit, figures. What is finished is not done again, and a run that was stopped goes on from its last
save; ``--work`` names the folder for all of that. ``--scale 0.01`` tries the whole way out with a
hundredth of the pairs and 100 rows of each development set.
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

from training import data, mixture

__all__ = ["ARMS", "MIX_PAIRS", "TRUNK_PAIRS", "main"]

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
    "worlds": (
        "worlds=20000,rows=17000,augmented=3000,gap=2000,conjnli=4000,hans=1500,med=1500,"
        "megaveridicality=1500,negation=900,fm2=880,faithdial=400,fib=1200,xsum=90,diasumfact=250"
    ),
    "written": (
        "written=22000,rows=8000,worlds=4000,gap=800,conjnli=1500,hans=500,med=500,"
        "megaveridicality=500,negation=400,fm2=400,faithdial=400,fib=700,xsum=90,diasumfact=120"
    ),
    "more": "written=12000,near=3000,rows=2000",
    "last": (
        "written=25000,near=3000,rows=5500,augmented=700,worlds=600,gap=400,conjnli=700,hans=250,"
        "med=250,megaveridicality=300,negation=300,fm2=400,faithdial=400,fib=700,xsum=90,"
        "diasumfact=150"
    ),
}
"""What goes on from version 4, one after another: the mixture that two runs of two seeds read."""
LAST_WEIGHT = 0.75
"""Weight of the last stage in its mean with version 4."""
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
        mean = self.work / f"mean-{seed}"
        if not (mean / "run.json").exists():
            self.module("average", trunk, mix, mean, "--share", MIX_WEIGHT)
        kinds = self.train(f"sets-{seed}", 0, "--start", mean, "--seed", seed + 40,
                           "--mixture", self.mixture(SETS), *SETS_RATES)  # fmt: skip
        last = self.train(f"all-{seed}", 0, "--start", kinds, "--seed", seed + 42,
                          "--mixture", self.mixture(ALL), *ALL_RATES)  # fmt: skip
        four = begin = self.work / f"four-{seed}"
        if not (four / "run.json").exists():
            self.module("average", kinds, last, four, "--share", ALL_WEIGHT)
        for number, (name, text) in enumerate(STAGES.items()):
            begin = self.stage(f"{name}-{seed}", begin, seed + 61 + 10 * number, text)
        shipped = self.work / f"shipped-{seed}"
        if not (shipped / "run.json").exists():
            self.module("average", four, begin, shipped, "--share", LAST_WEIGHT)
        for part in (trunk, shipped) if seed == 0 else (shipped,):
            target = self.exported(part)
            if not (target / "entailer.json").exists():
                self.module("export", part, target)
                self.module("combine", part, target)

    def stage(self, name: str, begin: Path, seed: int, text: str) -> Path:
        """Train two runs from the same weights; return the folder of their mean."""
        options = ("--start", begin, "--mixture", self.mixture(text), *STAGE_RATES)
        runs = [self.train(f"{name}-{i}", 0, "--seed", seed + i, *options) for i in (0, 1)]
        mean = self.work / name
        if not (mean / "run.json").exists():
            self.module("average", *runs, mean)
        return mean

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
