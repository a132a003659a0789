"""The nonparametric bootstrap: of sums, in one pass and bounded memory."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["BootstrapSums", "percentile_interval", "resampled_means"]

Floats = NDArray[np.float64]

CHUNK = 4096
DRAWN_AT_ONCE = 4_000_000
"""Numbers of the largest matrix of draws that is held."""


class BootstrapSums:
    """Sums of rows over a data set, and over bootstrap resamples of it (Efron 1979).

    Rows arrive in order, in pieces of any size. For each replicate the ``n`` draws with
    replacement are first shared out among blocks of 4,096 rows by sequential binomials (which is
    the multinomial distribution, exactly) and then among the rows of a block, so only one block is
    ever held. The result depends on the order of rows and the generator alone.

    Args:
        n: number of rows that will be added in all.
        width: columns of a row.
        rng: source of randomness.
        replicates: number of resamples, B.

    After :meth:`finish`, ``total`` has shape (width,) and ``resampled`` shape (B, width).
    """

    def __init__(
        self, n: int, width: int, rng: np.random.Generator, replicates: int = 1000
    ) -> None:
        self.total: Floats = np.zeros(width)
        self.resampled: Floats = np.zeros((replicates, width))
        self._rng = rng
        self._rows_left = n
        self._draws_left = np.full(replicates, n, dtype=np.int64)
        self._pieces: list[Floats] = []
        self._held = 0

    def add(self, rows: Floats) -> None:
        """Take a copy of the next rows, shape (m, width).

        Raises:
            ValueError: more rows than were announced.
        """
        if len(rows) + self._held > self._rows_left:
            raise ValueError("more rows than announced")
        self._pieces.append(np.array(rows, dtype=np.float64))
        self._held += len(rows)
        while self._held >= CHUNK:
            held = np.concatenate(self._pieces)
            self._count_in(held[:CHUNK])
            self._pieces = [held[CHUNK:]]
            self._held -= CHUNK

    def finish(self) -> None:
        """Count in what is held back.

        Raises:
            ValueError: fewer rows than were announced.
        """
        if self._held != self._rows_left:
            raise ValueError("fewer rows than announced")
        if self._held:
            self._count_in(np.concatenate(self._pieces))
        self._pieces, self._held = [], 0

    def _count_in(self, block: Floats) -> None:
        size = len(block)
        drawn = self._rng.binomial(self._draws_left, size / self._rows_left)
        self._draws_left -= drawn
        self._rows_left -= size
        counts = np.empty((len(drawn), size))
        for replicate, draws in enumerate(drawn):
            picks = self._rng.integers(0, size, draws)
            counts[replicate] = np.bincount(picks, minlength=size)
        self.total += block.sum(axis=0)
        self.resampled += counts @ block


def resampled_means(
    rows: Floats, rng: np.random.Generator, replicates: int = 1000
) -> Iterator[Floats]:
    """Yield the means of rows over units drawn with replacement, the same units for all rows.

    Args:
        rows: shape (r, n), of n units, at least one.

    Yields arrays of shape (b, r); B, the replicates, are those of all together.
    """
    n = rows.shape[1]
    at_once = max(1, DRAWN_AT_ONCE // n)
    for start in range(0, replicates, at_once):
        size = min(at_once, replicates - start)
        counts = rng.multinomial(n, np.full(n, 1 / n), size=size)
        yield counts @ rows.T / n


def percentile_interval(values: ArrayLike, level: float = 0.95) -> tuple[float, float] | None:
    """Return the percentile interval of bootstrap replicates, shape (B,).

    It is too narrow for few samples: of 20 it holds the true mean 79 to 90 times in a hundred. So
    the figures of data sets have those of :mod:`trustassay.statistics.intervals`.

    Replicates in which the figure is undefined are NaN and left out; ``None`` if all are.
    """
    defined = np.asarray(values, dtype=float)
    defined = defined[~np.isnan(defined)]
    if not defined.size:
        return None
    low, high = np.quantile(defined, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)
