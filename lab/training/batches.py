"""Which pairs a step of training reads together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from lab.training.data import Pair

__all__ = ["BATCH", "alone", "batches", "groups"]

BATCH = 32
CHUNK = 64
"""Batches sorted by length together."""
LARGEST = 16
"""Pairs of one premise that are kept together, at most."""


def groups(rows: Sequence[Pair]) -> list[list[int]]:
    """Return the indices of each premise's pairs; a pair that is there twice is in two lists."""
    times: Counter[Pair] = Counter()
    made: dict[tuple[str, int], list[int]] = {}
    for index, row in enumerate(rows):
        made.setdefault((row.premise, times[row]), []).append(index)
        times[row] += 1
    return [part[i : i + LARGEST] for part in made.values() for i in range(0, len(part), LARGEST)]


def alone(count: int) -> list[list[int]]:
    """Return lists of one index each."""
    return [[index] for index in range(count)]


def batches(lengths: Sequence[int], seed: int, together: Sequence[list[int]]) -> list[list[int]]:
    """Return batches of indices, the indices in one list of ``together`` in one batch.

    The lists are shuffled, sorted by length within chunks, filled into batches of ``BATCH``
    indices or a few more, and these are shuffled again.
    """
    rng = np.random.default_rng([seed, 2])
    longest = [max(lengths[i] for i in part) for part in together]
    made, chunk, size = [], [], 0
    order = rng.permutation(len(together)).tolist()
    for place, number in enumerate(order):
        chunk.append(number)
        size += len(together[number])
        if size < CHUNK * BATCH and place + 1 < len(order):
            continue
        full: list[list[int]] = [[]]
        for n in sorted(chunk, key=longest.__getitem__):
            if len(full[-1]) >= BATCH:
                full.append([])
            full[-1] += together[n]
        made += [full[i] for i in rng.permutation(len(full))]
        chunk, size = [], 0
    return made
