"""Seeded generators, the bootstrap (Efron 1979), and the bootstrap of clusters.

The samples of a cluster are drawn together, such as all answers to a question. A resample is a row
of weights: how often each sample was drawn. All resamples of a figure are computed at once from a
matrix of such rows (:mod:`trustassay.statistics.correlation`); figures that are computed from the
same rows are paired.
"""

import hashlib
import math
from collections.abc import Iterator, Sequence
from statistics import NormalDist
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from trustassay.statistics import Floats, Places
from trustassay.statistics.distributions import incomplete_beta, student_t_quantile
from trustassay.statistics.intervals import MIN_UNITS, Interval, reason_too_few


def generator(seed: int, *purpose: str) -> np.random.Generator:
    """Return a random generator for (seed, purpose...), such as (0, sample id, "bootstrap").

    Different purposes give independent streams; the same purpose gives the same stream everywhere.
    """
    # A control character separates the parts, so that ("a", "bc") and ("ab", "c") differ.
    text = "\x1f".join(purpose).encode("utf-8", "surrogatepass")
    digest = hashlib.blake2b(text, digest_size=16).digest()
    return np.random.default_rng([seed, int.from_bytes(digest, "big")])


MAX_DRAWS_AT_ONCE = 4_000_000
"""Entries of the largest matrix of draws that is held in memory."""
REPLICATES, MIN_REPLICATES = 2000, 200
"""Replicates of a bootstrap: the usual number, and the least for very many units."""
MAX_TOTAL_DRAWS = 20_000_000
"""The most units that are drawn in total; beyond this there are fewer replicates."""


def draw_counts(
    units: int, rng: np.random.Generator, replicates: int | None = None
) -> Iterator[Floats]:
    """Yield how often each unit is drawn, in bootstrap samples of as many units (Efron 1979).

    Args:
        units: 1 or more.
        rng: draws the counts.
        replicates: by default 2,000; with more than 10,000 units fewer, but at least 200.

    Yields:
        Arrays of shape (b, units) in several pieces, which together are the replicates.
    """
    # The work grows with units times replicates, so many units get fewer replicates.
    if replicates is None:
        replicates = max(MIN_REPLICATES, min(REPLICATES, MAX_TOTAL_DRAWS // units))
    at_once = max(1, MAX_DRAWS_AT_ONCE // units)
    for start in range(0, replicates, at_once):
        size = min(at_once, replicates - start)
        yield rng.multinomial(units, np.full(units, 1 / units), size=size).astype(np.float64)


def percentile_interval(values: ArrayLike, level: float = 0.95) -> tuple[float, float] | None:
    """Return the percentile interval of bootstrap replicates, shape (B,).

    It is too narrow for few samples: for 20 samples it contains the true mean 79 to 90 times in a
    hundred. So the figures of data sets use :mod:`trustassay.statistics.intervals` instead.

    Replicates in which the figure is undefined are NaN and left out; ``None`` if all are NaN.
    """
    defined = np.asarray(values, dtype=float)
    defined = defined[~np.isnan(defined)]
    if not defined.size:
        return None
    low, high = np.quantile(defined, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def student_percentile_interval(
    values: ArrayLike, n: int, level: float = 0.95
) -> tuple[float, float]:
    """Return the expanded percentile interval (Hesterberg 2015, section 4.4).

    Plain percentiles are too narrow by the factor sqrt((n - 1) / n), and because they ignore the
    uncertainty of the standard error. The percentiles taken here lie farther out, by Student's t.

    Args:
        values: the figure of each resample, shape (B,).
        n: how many things each resample draws, 2 or more.
        level: of the interval.
    """
    t = student_t_quantile((1 + level) / 2, n - 1)
    # the normal tail that corresponds to Student's quantile, widened by the factor of the docstring
    tail = NormalDist().cdf(-t * math.sqrt(n / (n - 1)))
    low, high = np.quantile(np.asarray(values, dtype=float), (tail, 1 - tail))
    return float(low), float(high)


MAX_WEIGHTS_AT_ONCE = 1 << 18
"""Entries of one matrix of weights: small enough for a processor's cache."""
MIN_CLUSTERS_IF_BIASED = 1000
"""Clusters that the interval of a biased figure needs."""
MIN_SAMPLES_OF_CLASS = 10
"""Samples of the rarer class that a figure of two classes needs."""
MAX_UNDEFINED_SHARE = 0.1
"""The share of undefined resamples from which a figure has no interval."""


def cluster_numbers(names: Sequence[str | int]) -> Places:
    """Number the clusters in order of appearance, from 0; return each sample's, shape (n,)."""
    numbers: dict[str | int, int] = {}
    return np.array([numbers.setdefault(name, len(numbers)) for name in names], dtype=np.int64)


def cluster_weights(
    clusters: ArrayLike, rng: np.random.Generator, replicates: int
) -> Iterator[Floats]:
    """Yield weights of samples in pieces of shape (b, n), with ``replicates`` rows in total.

    As many clusters are drawn with replacement as there are, each with all its samples (Davison and
    Hinkley 1997, section 3.8). So the number of samples varies where clusters differ in size.
    Nothing is yielded for n = 0.

    Args:
        clusters: the cluster of each sample, from 0 without gaps, shape (n,).
        rng: draws the clusters.
        replicates: the number of resamples.
    """
    cluster_of_sample = np.asarray(clusters, dtype=np.int64)
    if not len(cluster_of_sample):
        return
    count = int(cluster_of_sample.max()) + 1
    at_once = max(1, MAX_WEIGHTS_AT_ONCE // len(cluster_of_sample))
    for start in range(0, replicates, at_once):
        size = min(at_once, replicates - start)
        # Each row gets its own range of numbers, so that one bincount counts the draws of all rows.
        drawn = rng.integers(0, count, (size, count)) + count * np.arange(size)[:, None]
        times = np.bincount(drawn.ravel(), minlength=size * count).reshape(size, count)
        yield times[:, cluster_of_sample].astype(np.float64)


def resample_interval(
    drawn: ArrayLike, clusters: int, *, biased: float | None = None, rarer: int | None = None
) -> Interval | str:
    """Return the interval of a figure from its resamples, or the reason why there is none.

    It is the percentile interval with the tails of Student's t, see
    :func:`student_percentile_interval`.

    Args:
        drawn: the figure of each resample, shape (B,); NaN, where it is not defined, is left out.
        clusters: how many clusters were drawn from.
        biased: the figure itself, if it lies above the truth as resamples lie above the figure (a
            calibration error). The interval is then shifted down by twice that distance, not below
            0. It needs 1,000 clusters: with fewer it is still too high.
        rarer: samples of the rarer class, if the figure depends on two classes; with fewer than 10
            its percentiles contain the truth only 84 times in a hundred.
    """
    if rarer is not None and (
        reason := reason_too_few("answers of one kind", rarer, MIN_SAMPLES_OF_CLASS)
    ):
        return reason
    if reason := reason_too_few(
        "questions", clusters, MIN_UNITS if biased is None else MIN_CLUSTERS_IF_BIASED
    ):
        return reason
    values = np.asarray(drawn, dtype=np.float64)
    defined = values[~np.isnan(values)]
    if len(defined) < (1 - MAX_UNDEFINED_SHARE) * len(values) or not len(defined):
        return "undefined in more than a tenth of the resamples"
    if defined.min() == defined.max():
        return "the same in every resample, so its uncertainty is unknown"
    low, high = student_percentile_interval(defined, clusters)
    if biased is None:
        return low, high
    # Once for the bias of the figure, once more for that of the resamples around it.
    shift = 2 * (float(defined.mean()) - biased)
    return max(0.0, low - shift), max(0.0, high - shift)


class PairedTest(NamedTuple):
    """A tested difference of two figures of the same samples."""

    value: float
    """The difference."""
    interval: Interval | None
    """Its interval; ``None`` where there is none."""
    p: float | None
    """The two-sided p-value; ``None`` where there is none."""
    without: str = ""
    """Why there is no interval and no p-value."""


def bootstrap_test(
    value: float, drawn: ArrayLike, clusters: int, level: float = 0.95
) -> PairedTest:
    """Test whether a difference is 0 by the paired bootstrap of clusters.

    t is the difference over the standard deviation of its resamples, with clusters - 1 degrees of
    freedom, and the interval is that of the same t (Efron and Tibshirani 1993, chapters 12 and 16).
    Unlike a share of resamples, p has no lower bound, so it can be corrected for many tests.

    Args:
        value: the difference.
        drawn: its resamples, shape (B,); both figures of a row come from the same weights.
        clusters: how many clusters were drawn from.
        level: of the interval.
    """
    if reason := reason_too_few("questions", clusters, MIN_UNITS):
        return PairedTest(value, None, None, reason)
    values = np.asarray(drawn, dtype=np.float64)
    defined = values[~np.isnan(values)]
    # two values at least, for a standard deviation
    if len(defined) < max(2.0, (1 - MAX_UNDEFINED_SHARE) * len(values)):
        message = "undefined in more than a tenth of the resamples"
        return PairedTest(value, None, None, message)
    if defined.min() == defined.max():
        # Two scores with the same order agree in every resample: a difference of exactly 0.
        if value == 0 == defined[0]:
            return PairedTest(0.0, (0.0, 0.0), 1.0)
        return PairedTest(
            value,
            None,
            None,
            "the same difference in every resample, so its uncertainty is unknown",
        )
    error = float(defined.std(ddof=1))
    freedom = clusters - 1
    p = incomplete_beta(freedom / 2, 0.5, freedom / (freedom + (value / error) ** 2))
    reach = student_t_quantile((1 + level) / 2, freedom) * error
    return PairedTest(value, (value - reach, value + reach), p)


Tested = TypeVar("Tested", float, float | None)
"""A p-value, or ``None`` where there is no test."""


def holm(p_values: Sequence[Tested]) -> list[Tested]:
    """Return p-values corrected for their number, in the same order (Holm 1979).

    ``None`` stays ``None`` and does not count.

    The k-th smallest of m (k from 0) is multiplied by m - k; none becomes smaller than the one
    before it, and none exceeds 1. The probability of any false alarm stays below the level,
    whatever the dependence of the tests.
    """
    ranked = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    result = list(p_values)
    largest = 0.0
    for rank, (p, place) in enumerate(ranked):
        # the running maximum keeps the corrected values in the order of the p-values
        largest = max(largest, min(1.0, (len(ranked) - rank) * p))
        result[place] = largest
    return result
