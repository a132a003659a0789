"""Labelled statements written for the training: ``python -m lab.training.written`` counts them.

A file of ``lab/training/written`` holds groups with a blank line between them: ``#>`` and a kind,
``P>`` and a passage of one line or more, then a statement on each line, which the passage supports
(``+>``), contradicts (``->``) or does not tell (``?>``). True statements there are said in other
words more often than false ones are; ``near_copies`` are true ones in the passage's own words.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np

from lab.training.data import LABELS, Pair

__all__ = ["FOLDER", "every", "held_out", "near_copies", "parse", "rows"]

FOLDER = Path(__file__).parent / "written"
HELD_OUT_PERCENT = 4
FEWEST_WORDS = 5
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_ALONE = re.compile(
    r"(?!(?:He|She|It|They|This|That|These|Those|His|Her|Its|Their|Both|Neither|Either|There|"
    r"Then|Here|Such|So|But|And|Or|Otherwise|However|Instead|One|Another|Others?|We|You|I|If)\b)"
    r"[A-Z][^\n]*\.$"
)
_UNFIT = re.compile(
    r"[:\"“”‘|?]|\b(?:I|we|you|my|our|your|that one|the other|the former|the latter)\b"
)
_LAST = re.compile(
    r"(?:, (?:which|who|whose|where|while|as|because|since|although)\b|;| because\b).*\.$"
)
MARKS = {"+>": "entailment", "->": "contradiction", "?>": "neutral"}


def parse(text: str, name: str) -> list[Pair]:
    """Return the pairs of a file; ValueError names the file and the group that is not like that."""
    made: list[Pair] = []
    for number, group in enumerate(re.split(r"\n\s*\n", text.strip()), 1):
        kind, passage, statements = "", [], []
        for line in group.splitlines():
            mark, rest = line[:2], line[2:].strip()
            if mark == "#>":
                kind = rest
            elif mark in MARKS:
                statements.append((rest, LABELS.index(MARKS[mark])))
            elif statements:
                raise ValueError(f"{name}, group {number}: {line!r} after a statement has no mark")
            else:
                passage.append(rest if mark == "P>" else line)
        premise = "\n".join(passage).strip()
        if not kind or not premise or not all(said for said, _ in statements):
            raise ValueError(f"{name}, group {number}: kind, passage and statements are needed")
        made += [Pair(premise, said, label, f"written:{kind}") for said, label in statements]
    return made


@cache
def every(folder: Path = FOLDER, pattern: str = "*.txt") -> tuple[Pair, ...]:
    """Return all pairs of the files with such a name, file by file, each once."""
    found = [
        pair
        for path in sorted(folder.glob(pattern))
        for pair in parse(path.read_text(encoding="utf-8"), path.name)
    ]
    return tuple(dict.fromkeys(found))


def _held_out(pair: Pair) -> bool:
    digest = hashlib.sha256(pair.premise.encode()).digest()
    return int.from_bytes(digest[:4], "big") % 100 < HELD_OUT_PERCENT


def rows(pattern: str = "*.txt") -> list[Pair]:
    """Return the pairs to train on, of the files with such a name."""
    return [pair for pair in every(FOLDER, pattern) if not _held_out(pair)]


def held_out() -> list[Pair]:
    """Return the pairs left for development: ``HELD_OUT_PERCENT`` of the passages."""
    return [pair for pair in every() if _held_out(pair)]


def near_copies(pairs: Sequence[Pair], seed: int) -> list[Pair]:
    """Return a sentence of each passage, in drawn order, half of them without a last clause.

    Passages of which no sentence stands by itself (pronouns, speech, tables) are left out.
    """
    rng = np.random.default_rng([seed, 10])
    passages = list(dict.fromkeys(pair.premise for pair in pairs))
    made = []
    for number in rng.permutation(len(passages)):
        passage = passages[number]
        found = [s.strip() for s in _SENTENCE.split(passage) if _ALONE.match(s.strip())]
        found = [s for s in found if len(s.split()) >= FEWEST_WORDS and not _UNFIT.search(s)]
        if found:
            text = found[int(rng.integers(len(found)))]
            cut = _LAST.sub(".", text) if rng.random() < 0.5 else text
            kept = cut if len(cut.split()) >= FEWEST_WORDS else text
            made.append(Pair(passage, kept, LABELS.index("entailment"), "written:near"))
    return made


def main() -> None:
    """Count labels by kind."""
    found = every(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
    counts = Counter((row.source.partition(":")[2], LABELS[row.label]) for row in found)
    for kind in sorted({kind for kind, _ in counts}):
        print(kind, *(f"{label} {counts[kind, label]}" for label in LABELS))
    print(len(found), "pairs,", len({row.premise for row in found}), "passages")


if __name__ == "__main__":
    main()
