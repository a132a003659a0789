"""Generated answers for benchmarks: plausible in shape, meaningless in content."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

SYLLABLES = "ba ce di fo gu la me ni po ru sa te vi xo zu kra ple sto tri gan".split()


def words(rng: np.random.Generator, n: int) -> list[str]:
    picks = rng.integers(0, len(SYLLABLES), (n, 3))
    return ["".join(SYLLABLES[i] for i in row[: 1 + row[2] % 3]) for row in picks]


def sentence(rng: np.random.Generator, n: int) -> str:
    return " ".join(words(rng, n)).capitalize() + "."


def answer(index: int, rng: np.random.Generator, documents: int = 5) -> dict[str, Any]:
    """Return one answer of two to five sentences with zero to three citations each.

    Passages are 20 to 150 words; sentences repeat parts of the passages that they cite.
    """
    passages = [
        " ".join(sentence(rng, int(rng.integers(8, 16))) for _ in range(int(rng.integers(2, 12))))
        for _ in range(documents)
    ]
    sentences = []
    for _ in range(int(rng.integers(2, 6))):
        cited = rng.permutation(documents)[: rng.integers(0, 4)]
        source = passages[int(cited[0])] if len(cited) else sentence(rng, 12)
        said = source.split(".")[0] if rng.random() < 0.7 else sentence(rng, 10)[:-1]
        sentences.append(said + " " + "".join(f"[{i + 1}]" for i in cited) + ".")
    golds = [[" ".join(words(rng, 2))] for _ in range(2)]
    return {
        "id": f"a{index}",
        "question": sentence(rng, 8)[:-1] + "?",
        "response": " ".join(sentences),
        "answers": golds,
        "documents": [
            {"title": f"T{i}", "text": text, "supports": rng.integers(0, 2, 2).tolist()}
            for i, text in enumerate(passages)
        ],
    }


def write(path: Path, n: int, seed: int = 0) -> None:
    rng = np.random.default_rng(seed)
    with path.open("w") as file:
        for index in range(n):
            file.write(json.dumps(answer(index, rng)) + "\n")
