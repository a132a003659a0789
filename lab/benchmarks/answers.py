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


def passages(rng: np.random.Generator, n: int) -> list[str]:
    """Return passages of 20 to 150 words."""
    return [
        " ".join(sentence(rng, int(rng.integers(8, 16))) for _ in range(int(rng.integers(2, 12))))
        for _ in range(n)
    ]


def response(rng: np.random.Generator, texts: list[str]) -> str:
    """Return two to five sentences with zero to three citations each.

    Most sentences repeat a part of a passage that they cite.
    """
    sentences = []
    for _ in range(int(rng.integers(2, 6))):
        cited = rng.permutation(len(texts))[: rng.integers(0, 4)]
        source = texts[int(cited[0])] if len(cited) else sentence(rng, 12)
        said = source.split(".")[0] if rng.random() < 0.7 else sentence(rng, 10)[:-1]
        sentences.append(said + " " + "".join(f"[{i + 1}]" for i in cited) + ".")
    return " ".join(sentences)


def answer(index: int, rng: np.random.Generator) -> dict[str, Any]:
    """Return one answer over five passages of its own that say what they support."""
    texts = passages(rng, 5)
    return {
        "id": f"a{index}",
        "question": sentence(rng, 8)[:-1] + "?",
        "response": response(rng, texts),
        "answers": [[" ".join(words(rng, 2))] for _ in range(2)],
        "documents": [
            {"title": f"T{i}", "text": text, "supports": rng.integers(0, 2, 2).tolist()}
            for i, text in enumerate(texts)
        ],
    }


def write(path: Path, n: int, seed: int = 0) -> None:
    """Write ``n`` answers to as many questions."""
    rng = np.random.default_rng(seed)
    with path.open("w") as file:
        for index in range(n):
            file.write(json.dumps(answer(index, rng)) + "\n")


def write_comparison(path: Path, n: int, models: int = 5, seed: int = 0) -> None:
    """Write ``n`` answers by ``models`` models to the same questions over the same passages.

    Two gold claims a question; which passage supports them is left to entailment.
    """
    rng = np.random.default_rng(seed)
    with path.open("w") as file:
        for question in range(n // models):
            texts = passages(rng, 5)
            shared = {
                "question": sentence(rng, 8)[:-1] + "?",
                "claims": [texts[0].split(".")[0] + ".", sentence(rng, 10)],
                "documents": [{"title": f"T{i}", "text": t} for i, t in enumerate(texts)],
            }
            for model in range(models):
                own = {"id": f"q{question}-{model}", "model": f"m{model}"}
                sample = own | shared | {"response": response(rng, texts)}
                file.write(json.dumps(sample) + "\n")
