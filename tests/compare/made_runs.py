"""Runs whose outcomes are given, made without scoring anything."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from trustassay import score

TRUE, FALSE, REFUSAL = (
    "The tower of town {i} was built in 19{i:03d}.",
    "The tower of town {i} is purple and sings at night.",
    "I cannot answer this from the documents.",
)
TEXTS = {"p": TRUE, "f": FALSE, "n": REFUSAL, "b": ""}
"""Answers by their outcome: passed, failed, not answered (refused), blank."""


def rows(outcomes: Iterable[str], **fields: Any) -> list[dict[str, Any]]:
    """Return a sample for each letter of ``outcomes``, each a question of its own."""
    return [
        {
            "id": f"q{i}",
            "question": f"When was the tower of town {i} built?",
            "response": TEXTS[letter].format(i=i),
            "documents": [TRUE.format(i=i)],
            **fields,
        }
        for i, letter in enumerate(outcomes)
    ]


def made_run(out: Path, samples: Sequence[dict[str, Any]], metrics: Any = "faithfulness") -> Path:
    """Score samples into a folder, by an entailer that compares words."""
    score(list(samples), metrics=metrics, entailer="lexical", out=out, report=False, cache=None)
    return out


def shuffled(seed: int, **counts: int) -> str:
    """Return letters of outcomes, so many of each, in random order."""
    letters = [letter for letter, count in counts.items() for _ in range(count)]
    random.Random(seed).shuffle(letters)
    return "".join(letters)
