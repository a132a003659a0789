"""How long the pages of `trustassay view` take, and how soon a fall among forty runs is found.

    python -m benchmarks.viewing --make FOLDER     # forty runs of eight weeks: four minutes
    python -m benchmarks.viewing FOLDER            # times; writes results/viewing.json
    python -m benchmarks.viewing FOLDER --walk     # the tried hour in Chromium: clicks and seconds

The runs are real: `score` reads 160 answers about made-up towns, each to the same questions, five
runs a week. In every run some answers are wrong by chance (4 %); from the Tuesday of the sixth
week on a new version of the model writes wrong numbers (25 % of the answers about numbers).
"""

from __future__ import annotations

import datetime
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

RUNS, A_WEEK, ANSWERS, FALL = 40, 5, 160, 26
BEGIN = datetime.datetime(2026, 9, 28, 6, 30)
BY_CHANCE, WRONG_NUMBERS = 0.04, 0.25
MANY, LARGE = 2000, 200_000
LOADS = 7
NAMES = ["Al", "Bren", "Cor", "Dun", "Els", "Far", "Gor", "Hal", "Ist", "Jor"]
ENDS = ["ford", "mouth", "wick", "ham"]
TOWNS = [first + last for last in ENDS for first in NAMES]
RIVERS = ["Aren", "Bela", "Cind", "Dova", "Esk"]
COMMAND = "python -m benchmarks.viewing FOLDER"


def facts(town: int) -> list[tuple[str, str, str, str]]:
    """Return domain, question, sentence and a wrong sentence of what is known of a town."""
    name, rng = TOWNS[town], np.random.default_rng([7, town])
    people, year, bridges = rng.integers(3, 90) * 100, rng.integers(900, 1890), rng.integers(2, 19)
    river = RIVERS[town % len(RIVERS)]
    other = RIVERS[(town + 2) % len(RIVERS)]

    def number(question: str, sentence: str, value: Any) -> tuple[str, str, str, str]:
        wrong = int(value) + int(rng.integers(1, 9)) * (100 if value > 1900 else 1)
        return "numbers", question, sentence.format(value), sentence.format(wrong)

    return [
        number(f"How many people live in {name}?", f"About {{}} people live in {name}.", people),
        number(f"When was {name} founded?", f"{name} was founded in the year {{}}.", year),
        number(f"How many bridges has {name}?", f"{name} has {{}} bridges.", bridges),
        (
            "rivers",
            f"On which river is {name}?",
            f"{name} lies on the river {river}.",
            f"{name} lies on the river {other}.",
        ),
    ]


def samples(run: int) -> list[dict[str, Any]]:
    """Return the answers of one run; ``run`` is its number, from 0."""
    rng, result = np.random.default_rng([11, run]), list[dict[str, Any]]()
    newer = run >= FALL
    for town in range(len(TOWNS)):
        known = facts(town)
        text = " ".join(sentence for _, _, sentence, _ in known)
        for place, (domain, question, right, wrong) in enumerate(known):
            chance = WRONG_NUMBERS if newer and domain == "numbers" else BY_CHANCE
            result.append(
                {
                    "id": f"{TOWNS[town]}-{place}",
                    "question": question,
                    "response": wrong if rng.random() < chance else right,
                    "documents": [{"title": TOWNS[town], "text": text}],
                    "model": "assistant-2026-11" if newer else "assistant-2026-09",
                    "domain": domain,
                }
            )
    return result[:ANSWERS]


def made_at(run: int) -> datetime.datetime:
    """Return when a run is said to be made: Monday to Friday mornings."""
    return BEGIN + datetime.timedelta(days=7 * (run // A_WEEK) + run % A_WEEK)


def make(folder: Path) -> None:
    """Score the answers of all runs, each into its folder; one that is finished stays."""
    from trustassay import score

    for run in range(RUNS):
        at = made_at(run)
        path = folder / f"nightly-{at:%m-%d}"
        if not (path / "summary.json").exists():
            score(samples(run), metrics="faithfulness", out=path)
        os.utime(path / "run.json", (at.timestamp(), at.timestamp()))
        print(path, flush=True)


if __name__ == "__main__":
    make(Path(sys.argv[2]))
