"""Precision and recall of the refusal detectors on responses that the project wrote.

    python -m lab.benchmarks.refusals                # the lot on which no pattern was chosen
    python -m lab.benchmarks.refusals --half fresh --show

Each of the responses of ``tests/text/refusals.jsonl`` is a refusal, an answer that
looks like one, or a partial answer: it declines one thing and answers another. For ``faithfulness``
partial answers are answers; a detector of ``grounding`` may take them for refusals where they cite
nothing, so they are counted apart.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from trustassay.judging.claims import build_claims
from trustassay.judging.refusal import find_refusal_in_words
from trustassay.metrics import Faithfulness
from trustassay.text.refusals import find_refusal_as_in_paper

HALVES = ("choice", "held out", "fresh", "last")
"""Lots in the order in which they were written; see lab/results/refusals.md."""
FILE = Path(__file__).parents[2] / "tests/text/refusals.jsonl"


def rows(half: str) -> list[dict[str, str]]:
    """Return the labelled responses of one lot, one of ``HALVES``."""
    found = [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]
    return [row for row in found if row["half"] == half]


def in_faithfulness(text: str) -> str | None:
    """Decide as ``faithfulness`` does with its defaults."""
    options = Faithfulness()
    return options.refusal_in(text, build_claims("", text, options.split))


DETECTORS: dict[str, tuple[Callable[[str], str | None], Sequence[str]]] = {
    "paper": (find_refusal_as_in_paper, ("answer",)),
    "phrases": (find_refusal_in_words, ("answer",)),
    "faithfulness": (in_faithfulness, ("answer", "partial")),
}
"""By name: the detector, and the kinds of responses that it must not take for refusals."""


class Measured(NamedTuple):
    """What a detector finds in a lot.

    hits: the refusals that it finds, of ``refusals``. detected: what it takes for one.
    wrong: the responses that are misjudged, each with its kind.
    """

    hits: int
    detected: int
    refusals: int
    wrong: list[str]

    @property
    def figures(self) -> str:
        """Precision and recall, as they stand in the results."""
        return (
            f"{self.precision:.2f} ({self.hits} of {self.detected}) | "
            f"{self.recall:.2f} ({self.hits} of {self.refusals})"
        )

    @property
    def precision(self) -> float:
        return self.hits / max(1, self.detected)

    @property
    def recall(self) -> float:
        return self.hits / self.refusals


def measured(name: str, half: str) -> Measured:
    """Return what a detector finds in a lot."""
    detector, negatives = DETECTORS[name]
    results = [(row["kind"], bool(detector(row["text"])), row["text"]) for row in rows(half)]
    hits = sum(refuses for kind, refuses, _ in results if kind == "refusal")
    false = sum(refuses for kind, refuses, _ in results if kind in negatives)
    wrong = [
        f"{kind}: {text}"
        for kind, refuses, text in results
        if refuses != (kind == "refusal") and kind in ("refusal", *negatives)
    ]
    refusals = sum(kind == "refusal" for kind, _, _ in results)
    return Measured(hits, hits + false, refusals, wrong)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--half", choices=HALVES, default="last")
    parser.add_argument("--show", action="store_true", help="print what is misjudged")
    given = parser.parse_args()
    kinds = [row["kind"] for row in rows(given.half)]
    print(", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds)))
    for name in DETECTORS:
        result = measured(name, given.half)
        print(f"{name:14} precision | recall: {result.figures}")
        if given.show:
            for line in result.wrong:
                print(f"    {line}")


if __name__ == "__main__":
    main()
