"""Which rule makes a verdict of ten passages: claims people made up about Wikipedia, true or false.

    TRUSTASSAY_SHARED=... python -m lab.benchmarks.factcheck       # embedded entailer, a few
    minutes python -m lab.benchmarks.factcheck --claims 100 --entailer lexical

The claims are those of FoolMeTwice's test file, drawn by a seed; the corpus is the evidence of all
its claims, test and development. Ten passages are retrieved for each claim by BM25. A rule's score
is 1, 0.5 or 0 by its verdict; the table shows how it goes with whether the claim is true.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import trustassay
from trustassay.backends.bm25 import Bm25
from trustassay.core.capabilities import Entailment, Passage
from trustassay.metrics.factcheck.metric import SCORES, decide_verdict
from trustassay.text.verdict_replies import ENTAILMENT_LABELS, EntailmentLabel

TOP = 10
T = 0.5
Rows = Sequence[Entailment]


def first_ranked(rows: Rows) -> EntailmentLabel:
    """Return what the first passage says that says anything."""
    verdicts = (decide_verdict([row], T).verdict for row in rows)
    return next((verdict for verdict in verdicts if verdict != "neutral"), "neutral")


def least_neutral(rows: Rows) -> EntailmentLabel:
    """Return what the passage says whose probability of neutral is least."""
    return decide_verdict([min(rows, key=lambda row: row.neutral)], T).verdict


RULES = {
    "`support` (the default): support wins": lambda rows: (
        decide_verdict(rows, T, "support").verdict
    ),
    "`stronger`: the larger probability wins": lambda rows: (
        decide_verdict(rows, T, "stronger").verdict
    ),
    "the first passage in rank that says anything": first_ranked,
    "the passage least neutral": least_neutral,
}


def claims(folder: Path, name: str) -> list[dict[str, Any]]:
    with gzip.open(folder / f"{name}.jsonl.gz", "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--claims", type=int, default=400)
    parser.add_argument("--entailer", default="embedded")
    args = parser.parse_args()
    shared = Path(os.environ.get("TRUSTASSAY_SHARED", Path(__file__).parents[3] / "shared"))
    folder = shared / "data" / "fool-me-twice"
    tested = claims(folder, "test")
    known = {one["premise"]: one["page"] for one in [*tested, *claims(folder, "dev")]}
    corpus = Bm25.of(Passage(str(i), text, known[text]) for i, text in enumerate(known))
    drawn = random.Random(0).sample(tested, min(args.claims, len(tested)))
    found = corpus.search([one["hypothesis"] for one in drawn], TOP)
    pairs = [
        (f"Title: {passage.title}\n{passage.text}", one["hypothesis"])
        for one, passages in zip(drawn, found, strict=True)
        for passage in passages
    ]
    scores = iter(trustassay.entailer(args.entailer).scores(pairs))
    rows = [[Entailment(*next(scores)) for _ in passages] for passages in found]
    true = np.array([one["orig_label"] == "SUPPORTS" for one in drawn], dtype=float)
    held = np.mean([o["premise"] in {p.text for p in f} for o, f in zip(drawn, found, strict=True)])
    print(f"{len(drawn)} claims ({true.mean():.0%} true), {len(known):,} passages; the claim's own")
    print(f"evidence is among the ten for {held:.0%}\n")
    print("| rule | Pearson's r | true: support, neutral, contradict | false: the same |")
    print("| --- | --- | --- | --- |")
    for name, rule in RULES.items():
        verdicts = [rule(one) for one in rows]
        r = np.corrcoef([SCORES[verdict] for verdict in verdicts], true)[0, 1]
        counts = Counter(zip(verdicts, true, strict=True))
        cells = (
            ", ".join(str(counts[v, truth]) for v in ENTAILMENT_LABELS) for truth in (1.0, 0.0)
        )
        print(f"| {name} | {r:.3f} | {' | '.join(cells)} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
