"""The perturbed versions of texts whose spread in embedding space is to be looked at."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from trustassay.metrics.harmonicity.perturbations import Family, NoPerturbationError, perturb
from trustassay.sample import Sample
from trustassay.statistics.resampling import generator

__all__ = ["Versions", "versions"]


@dataclass(frozen=True, slots=True)
class Versions:
    """Texts, as many perturbed versions of each, and how many texts could not be perturbed."""

    texts: list[str]
    perturbed: list[list[str]]
    left_out: int


def versions(samples: Iterable[Sample], family: Family, n: int, seed: int) -> Versions:
    """Return n perturbed versions of each question; equal questions count once.

    They are those that the metric ``harmonicity`` would ask first, with the same seed.
    """
    texts: dict[str, list[str]] = {}
    left_out = 0
    for sample in samples:
        if sample.question in texts:
            continue
        rng = generator(seed, sample.id, "perturbation")
        try:
            texts[sample.question] = [perturb(sample.question, family, rng) for _ in range(n)]
        except NoPerturbationError:
            left_out += 1
    return Versions(list(texts), list(texts.values()), left_out)
