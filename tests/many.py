"""Made-up runs of many answers: models, domains, recorded answers to perturbed prompts, ratings.

``python -m tests.many FOLDER`` writes the records of two runs, to look at what is made of them.
"""

from __future__ import annotations

import itertools
import sys
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from trustassay.core.capabilities import Vectors

MODELS = {"larch-70b": 0.05, "birch-8b": 0.14, "alder-2": 0.09, "maple-mini": 0.24}
DOMAINS = {"trivia": 1.0, "programming": 1.3, "common sense": 0.8}
WORDS = (
    "the river rises in high mountains and flows through nine old towns before it meets a wide sea "
    "where ships from many countries wait for grain copper and timber while children watch gulls "
    "circle over markets that open early close late and smell of bread salt smoke and rain"
).split()


class HashedWords:
    """Turns texts into vectors of hashed words and pairs: quick, and the same everywhere."""

    name = "hashed-words"
    width = 256

    def vectors(self, texts: Sequence[str]) -> Vectors:
        found = np.zeros((len(texts), self.width), dtype=np.float32)
        for row, text in zip(found, texts, strict=True):
            words = text.lower().split()
            for part in [*words, *map(" ".join, itertools.pairwise(words))]:
                row[zlib.crc32(part.encode()) % self.width] += 1.0
        found /= np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-9)
        found[:, 0] += 1.5  # as with real embedders, all texts have something in common
        found /= np.linalg.norm(found, axis=1, keepdims=True)
        return found


def many(
    each: int = 40, seed: int = 0, shift: float = 1.0, perturbations: int = 6
) -> Iterator[dict[str, Any]]:
    """Yield records, so many of each model in each domain; ``shift`` makes all less stable.

    The less stable an answer is, the worse it is rated.
    """
    number = 0
    for domain, hard in DOMAINS.items():
        for model, unsteady in MODELS.items():
            for _ in range(each):
                rng = np.random.default_rng([seed, number])
                rate = 0.0 if rng.random() < 0.18 else min(0.9, rng.gamma(1.6, unsteady * hard))
                answer = [str(rng.choice(WORDS)) for _ in range(rng.integers(8, 30))]
                rating = np.clip(round(4.8 - 3.5 * rate + rng.normal(0, 0.9)), 0, 5)
                yield {
                    "id": f"q{number}",
                    "question": f"What is told of place {number}?",
                    "response": " ".join(answer).capitalize() + ".",
                    "model": model,
                    "domain": domain,
                    "label": float(rating),
                    "resamples": [
                        _changed(answer, rate * shift, rng) for _ in range(perturbations)
                    ],
                }
                number += 1


def _changed(answer: Sequence[str], rate: float, rng: np.random.Generator) -> str:
    words = [str(rng.choice(WORDS)) if rng.random() < rate else word for word in answer]
    return " ".join(words).capitalize() + "."


if __name__ == "__main__":
    from trustassay import score

    home = Path(sys.argv[1])
    for name, shift in (("before", 1.0), ("after", 1.35)):
        rows = list(many(shift=shift, seed=0))
        score(rows, metrics="harmonicity", embedder=HashedWords(), out=home / name, report=True)
