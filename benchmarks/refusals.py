"""Precision and recall of the refusal detectors on responses that the project wrote.

    python -m benchmarks.refusals                # the lot on which no pattern was chosen
    python -m benchmarks.refusals --half fresh --show

Each of the responses of ``tests/metrics/grounding/refusals.jsonl`` is a refusal, an answer that
looks like one, or a partial answer: it declines one thing and answers another. For ``faithfulness``
partial answers are answers; a detector of ``grounding`` may take them for refusals where they cite
nothing, so they are counted apart.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path

from trustassay.metrics import Faithfulness
from trustassay.metrics.faithfulness.claims import refusal_of
from trustassay.metrics.grounding.refusal import refuses_as_in_paper, refuses_in_words

HALVES = ("choice", "held out", "fresh", "last")
"""Lots in the order in which they were written; see benchmarks/results/refusals.md."""
FILE = Path(__file__).parents[1] / "tests/metrics/grounding/refusals.jsonl"


def rows(half: str) -> list[dict[str, str]]:
    """Return the labelled responses of one lot, one of ``HALVES``."""
    found = [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]
    return [row for row in found if row["half"] == half]


def in_faithfulness(text: str) -> str | None:
    """Decide as ``faithfulness`` does with its defaults."""
    options = Faithfulness()
    return refusal_of(text, options.refuses, options.split)


DETECTORS: dict[str, tuple[Callable[[str], str | None], Sequence[str]]] = {
    "paper": (refuses_as_in_paper, ("answer",)),
    "phrases": (refuses_in_words, ("answer",)),
    "faithfulness": (in_faithfulness, ("answer", "partial")),
}
"""By name: the detector, and the kinds of responses that it must not take for refusals."""


def measured(name: str, half: str) -> tuple[float, float, list[str]]:
    """Return precision and recall, 0 to 1, and the responses that are misjudged."""
    detector, negatives = DETECTORS[name]
    found = [(row["kind"], bool(detector(row["text"])), row["text"]) for row in rows(half)]
    hits = sum(said for kind, said, _ in found if kind == "refusal")
    false = sum(said for kind, said, _ in found if kind in negatives)
    total = sum(kind == "refusal" for kind, _, _ in found)
    wrong = [
        f"{kind}: {text}"
        for kind, said, text in found
        if said != (kind == "refusal") and kind in ("refusal", *negatives)
    ]
    return hits / max(1, hits + false), hits / total, wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--half", choices=HALVES, default="last")
    parser.add_argument("--show", action="store_true", help="print what is misjudged")
    given = parser.parse_args()
    kinds = [row["kind"] for row in rows(given.half)]
    print(", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds)))
    for name in DETECTORS:
        precision, recall, wrong = measured(name, given.half)
        print(f"{name:14} precision {precision:.2f}  recall {recall:.2f}")
        if given.show:
            for line in wrong:
                print(f"    {line}")


if __name__ == "__main__":
    main()
