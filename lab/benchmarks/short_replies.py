"""Right and wrong short replies: are they told apart by the statement that they make?

    python -m lab.benchmarks.short_replies            # seconds
    python -m lab.benchmarks.short_replies --write    # into lab/results/

100 questions about made-up passages, each with a right and a wrong reply of a few words
(short_replies.txt). Each reply is read in two ways: behind its question, and as ``faithfulness``
reads it.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lab.results import write_result
from trustassay.backends.embedded import EmbeddedEntailer
from trustassay.judging.claims import build_claims
from trustassay.metrics import Faithfulness
from trustassay.statistics.correlation import auroc


class Reply(NamedTuple):
    """A reply to a question about a passage, and whether it is right."""

    passage: str
    question: str
    text: str
    right: bool

    @property
    def agrees(self) -> bool:
        """Whether it says yes or no."""
        return self.text.rstrip(".").split(",")[0].casefold() in ("yes", "no")


def replies() -> list[Reply]:
    """Read the pairs."""
    found, passage = [], ""
    for line in Path(__file__).with_suffix(".txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("="):
            passage = line[1:].strip()
        elif line and not line.startswith("#"):
            question, right, wrong = (part.strip() for part in line.split("|"))
            found += [Reply(passage, question, right, True), Reply(passage, question, wrong, False)]
    return found


def behind(reply: Reply) -> str:
    """Return the reply behind its question."""
    return f"{reply.question} {reply.text}"


def as_stated(reply: Reply) -> str:
    """Return what faithfulness judges."""
    claims = build_claims(reply.question, reply.text, Faithfulness().split)
    return next(one.hypothesis for one in claims if one.hypothesis)


def measured(rows: Sequence[Reply], read: Callable[[Reply], str]) -> dict[str, Any]:
    """Return the AUROC of the support, and how often each verdict comes."""
    made = EmbeddedEntailer(threads=1).scores([(row.passage, read(row)) for row in rows])
    right, agrees = (np.array([getattr(row, of) for row in rows]) for of in ("right", "agrees"))
    verdicts = np.where(
        made[:, 0] >= 0.5,
        "supported",
        np.where(made[:, 2] >= 0.5, "contradicted", "not found"),
    )
    parts = {"all": right >= 0, "yes or no": agrees, "others": ~agrees}
    return {
        name: {
            "n": int(mask.sum()),
            "auroc": round(auroc(made[mask, 0], right[mask]) or 0.0, 3),
            "right": dict(Counter(verdicts[mask & right].tolist())),
            "wrong": dict(Counter(verdicts[mask & ~right].tolist())),
        }
        for name, mask in parts.items()
    }


def main() -> None:
    """Measure, print, and with --write keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    write = parser.parse_args().write
    rows = replies()
    figures = {name: measured(rows, f) for name, f in (("behind", behind), ("stated", as_stated))}
    for name, found in figures.items():
        for part, values in found.items():
            print(f"{name:8} {part:10} {values}")
    if write:
        words = f"{len(rows)} replies to questions about made-up passages (short_replies.txt)"
        write_result("short_replies", "python -m lab.benchmarks.short_replies", words, figures)


if __name__ == "__main__":
    main()
