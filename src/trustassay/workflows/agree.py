"""How far raters agree: each pair, all of them, each with themselves, and where they part."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trustassay.data.ratings import Ratings
from trustassay.progress import Progress
from trustassay.runs.folder import RunFolder
from trustassay.runs.outputs import SHOWN
from trustassay.statistics.agreement import (
    Scale,
    Weights,
    cohen_kappa,
    counts_of,
    fleiss_kappa,
    item_interval,
    krippendorff_alpha,
    mean_absolute_difference,
    percent_agreement,
)
from trustassay.statistics.randomness import generator
from trustassay.workflows.variance import Variances, variances

__all__ = ["Agreement", "Dispute", "Estimate", "agreement", "links_into"]

Floats = NDArray[np.float64]
Coefficient = Callable[[Floats, Floats], float | None]
"""A coefficient of ratings of shape (raters, items), and of how often each item counts."""

PAIRWISE: Mapping[str, Coefficient] = {
    "percent": lambda table, times: percent_agreement(table[0], table[1], times),
    "mean_absolute_difference": lambda table, times: mean_absolute_difference(
        table[0], table[1], times
    ),
}
MOST_RATERS = 40
"""Raters whose pairs are told."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A coefficient, ``None`` where it is not defined, with its interval, or why it has none."""

    value: float | None
    n: int
    interval: tuple[float, float] | None = None
    without: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class Dispute:
    """An item on which raters part: how far, and what each said."""

    item: str
    model: str
    distance: float
    ratings: Mapping[str, str]
    link: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True)
class Agreement:
    """What there is to say of a table of ratings; each group maps coefficients to estimates.

    overall: of all raters. pairs: of each pair of raters. models: as overall, for each model.
    intra: of each rater with the repeats of their own. disputes: the farthest apart first.
    variance: where it comes from, of ratings that have an order.
    """

    items: int
    raters: Mapping[str, int]
    missing: int
    ordered: bool
    categories: Sequence[str]
    overall: Mapping[str, Estimate]
    pairs: Mapping[tuple[str, str], Mapping[str, Estimate]]
    models: Mapping[str, Mapping[str, Estimate]] = field(default_factory=dict)
    intra: Mapping[str, Mapping[str, Estimate]] = field(default_factory=dict)
    disputes: Sequence[Dispute] = ()
    variance: Variances | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""

        def told(group: Mapping[str, Estimate]) -> dict[str, Any]:
            return {name: one.to_dict() for name, one in group.items()}

        return {
            "items": self.items,
            "raters": dict(self.raters),
            "missing": self.missing,
            "ordered": self.ordered,
            "categories": list(self.categories),
            "overall": told(self.overall),
            "pairs": [
                {"first": one, "second": other, **told(group)}
                for (one, other), group in self.pairs.items()
            ],
            "models": {name: told(group) for name, group in self.models.items()},
            "intra": {name: told(group) for name, group in self.intra.items()},
            "variance": self.variance and self.variance.to_dict(),
            "disputes": [dispute.to_dict() for dispute in self.disputes],
        }


def agreement(
    ratings: Ratings,
    *,
    machines: Collection[str] = (),
    seed: int = 0,
    replicates: int = 1000,
    progress: bool = False,
) -> Agreement:
    """Return how far the raters agree, with bootstrap intervals over items.

    Raters are compared by the first rating that each gave to an item. Without an order of
    categories only coefficients of nominal data are told. ``machines`` are the raters that are
    judges, whose variance is told beside that of people. With ``progress`` that of the
    coefficients is shown where they take longer than a second.

    Raises:
        ValueError: there are too many raters to compare each pair, or nothing to compare.
    """
    units = list(dict.fromkeys((one.item, one.model) for one in ratings.ratings))
    raters = list(dict.fromkeys(one.rater for one in ratings.ratings))
    if len(raters) > MOST_RATERS:
        raise ValueError(f"expected at most {MOST_RATERS} raters, got {len(raters):,}")
    cube = _cube(ratings, units, raters)
    first = cube[:, :, 0]
    if len(raters) < 2 and cube.shape[2] < 2:
        raise ValueError(f"nothing to compare: all ratings are by {raters[0]!r}, each item once")

    every, two, again = (
        _of_all(ratings.ordered),
        _of_two(first, ratings),
        _of_repeats(ratings.ordered),
    )
    models = sorted({model for _, model in units if model})
    models = models if len(models) > 1 and len(raters) > 1 else []
    pairs = list(itertools.combinations(range(len(raters)), 2))
    repeated = [p for p in range(len(raters)) if (~np.isnan(cube[p, :, 1:])).any()]
    total = len(every) * (len(models) + (len(raters) > 1))
    total += len(two) * len(pairs) + len(again) * len(repeated)
    shown = Progress("coefficients", total, shown=progress, after_s=1.0)

    def estimates(table: Floats, coefficients: Mapping[str, Coefficient], *what: str) -> Any:
        found = {}
        for name, coefficient in coefficients.items():
            found[name] = _estimate(table, coefficient, (seed, replicates), name, *what)
            shown.step()
        return found

    with shown:
        by_model = {
            model: estimates(first[:, [u[1] == model for u in units]], every, "model", model)
            for model in models
        }
        overall = estimates(first, every, "overall") if len(raters) > 1 else {}
        by_pair = {
            (raters[i], raters[j]): estimates(first[[i, j]], two, raters[i], raters[j])
            for i, j in pairs
        }
        intra = {
            raters[place]: estimates(cube[place].T, again, "intra", raters[place])
            for place in repeated
        }
    variance = None
    if ratings.ordered:
        variance = variances(ratings.ratings, machines, seed=seed, replicates=replicates)
    return Agreement(
        len(units),
        {rater: int((~np.isnan(first[place])).sum()) for place, rater in enumerate(raters)},
        ratings.missing,
        ratings.ordered,
        ratings.categories,
        overall,
        by_pair,
        by_model,
        intra,
        _disputes(ratings, units, raters, first),
        variance,
    )


def _cube(ratings: Ratings, units: Sequence[tuple[str, str]], raters: Sequence[str]) -> Floats:
    """Return all ratings, shape (raters, items, repeats); NaN where there is none."""
    item_at = {unit: place for place, unit in enumerate(units)}
    rater_at = {rater: place for place, rater in enumerate(raters)}
    most = 1 + max(one.repeat for one in ratings.ratings)
    cube = np.full((len(raters), len(units), most), math.nan)
    for one in ratings.ratings:
        cube[rater_at[one.rater], item_at[one.item, one.model], one.repeat] = one.value
    return cube


def _of_two(table: Floats, ratings: Ratings) -> dict[str, Coefficient]:
    """Return the coefficients of two raters; kappas on all categories, those of all raters where
    the numbers alone are given.
    """
    places = np.arange(float(len(ratings.categories)))
    known = (places if len(places) else np.unique(table[~np.isnan(table)])).tolist()

    def kappa(weights: Weights) -> Coefficient:
        return lambda pair, times: cohen_kappa(pair[0], pair[1], weights, known, times)

    found: dict[str, Coefficient] = {"percent": PAIRWISE["percent"], "kappa": kappa("none")}
    if ratings.ordered:
        found |= {
            "kappa_linear": kappa("linear"),
            "kappa_quadratic": kappa("quadratic"),
            "mean_absolute_difference": PAIRWISE["mean_absolute_difference"],
        }
    return found


def _of_all(ordered: bool) -> dict[str, Coefficient]:
    """Return the coefficients of all raters."""

    def alpha(scale: Scale) -> Coefficient:
        return lambda table, times: krippendorff_alpha(table, scale, times)

    found: dict[str, Coefficient] = {
        "percent": _percent_of_pairs,
        "fleiss_kappa": _fleiss,
        "alpha_nominal": alpha("nominal"),
    }
    if ordered:
        found |= {
            "alpha_ordinal": alpha("ordinal"),
            "alpha_interval": alpha("interval"),
            "mean_absolute_difference": _difference_of_pairs,
        }
    return found


def _of_repeats(ordered: bool) -> dict[str, Coefficient]:
    """Return the coefficients of one rater's repeats, each taken for a rater."""
    found = _of_all(ordered)
    del found["fleiss_kappa"]  # repeats are of different number
    if ordered:
        found["sd"] = _mean_deviation
    return found


def _percent_of_pairs(table: Floats, times: Floats) -> float | None:
    """Return the percentage of pairs of ratings of the same item that are the same, over all
    items: the mean over pairs of raters, weighed by the items that both rated.
    """
    m = (~np.isnan(table)).sum(axis=0)
    pairs = float((m * (m - 1) * times).sum())
    counts = counts_of(table)
    alike = float(((counts * (counts - 1)).sum(axis=1) * times).sum())
    return 100.0 * alike / pairs if pairs else None


def _difference_of_pairs(table: Floats, times: Floats) -> float | None:
    """Return the mean absolute difference of two ratings of the same item, as before.

    Of m sorted ratings the k-th, from 0, is added k times and subtracted m - 1 - k times.
    """
    m = (~np.isnan(table)).sum(axis=0)
    pairs = float((m * (m - 1) * times).sum()) / 2
    rank = np.arange(len(table))[:, None]
    added = np.where(rank < m, 2 * rank - (m - 1), 0) * times
    total = float((added * np.nan_to_num(np.sort(table, axis=0))).sum())  # NaN is sorted last
    return total / pairs if pairs else None


def _fleiss(table: Floats, times: Floats) -> float | None:
    """Return Fleiss's kappa of the items that all raters rated."""
    all_rated = ~np.isnan(table).any(axis=0)
    whole = table[:, all_rated]
    return fleiss_kappa(counts_of(whole), times[all_rated]) if whole.size else None


def _mean_deviation(table: Floats, times: Floats) -> float | None:
    """Return the mean, over items rated twice or more, of the standard deviation of the repeats."""
    twice = (~np.isnan(table)).sum(axis=0) >= 2
    table, times = table[:, twice], times[twice]
    if not table.size:
        return None
    return float((np.nanstd(table, axis=0, ddof=1) * times).sum() / times.sum())


def _estimate(
    table: Floats, coefficient: Coefficient, drawing: tuple[int, int], *what: str
) -> Estimate:
    """Return a coefficient with its interval over the items that at least two rated."""
    two, nothing = table[:, (~np.isnan(table)).sum(axis=0) >= 2], "no item has two ratings"
    if coefficient is _fleiss:
        two, nothing = table[:, ~np.isnan(table).any(axis=0)], "no item was rated by all raters"
    n = two.shape[1]
    value = coefficient(two, np.ones(n)) if n else None
    if value is None:
        why = "all of these ratings are the same" if n else nothing
        return Estimate(None, n, None, why)
    seed, replicates = drawing
    interval = item_interval(coefficient, two, generator(seed, "agree", *what), replicates)
    if isinstance(interval, str):
        return Estimate(value, n, None, interval)
    return Estimate(value, n, interval)


def _disputes(
    ratings: Ratings,
    units: Sequence[tuple[str, str]],
    raters: Sequence[str],
    first: Floats,
) -> list[Dispute]:
    """Return the items with different ratings, the farthest apart first."""
    found = []
    for place, (item, model) in enumerate(units):
        column = first[:, place]
        there = ~np.isnan(column)
        values = column[there]
        if not len(values) or (values == values[0]).all():
            continue
        distance = float(values.max() - values.min()) if ratings.ordered else float(
            len(set(values.tolist())) - 1
        )  # fmt: skip
        said = {rater: _named(ratings, column[i]) for i, rater in enumerate(raters) if there[i]}
        found.append((-distance, -float(values.std()), place, Dispute(item, model, distance, said)))
    return [dispute for *_, dispute in sorted(found, key=lambda row: row[:3])]


def _named(ratings: Ratings, value: float) -> str:
    return ratings.categories[int(value)] if ratings.categories else f"{value:g}"


def links_into(run: Path, disputes: Sequence[Dispute]) -> list[Dispute]:
    """Return disputes with links to the answers in a run's report, where it lists all answers.

    Raises:
        RunFolderError, OSError: the folder is not a run's.
    """
    folder = RunFolder(run)
    places: dict[tuple[str, str], int] = {}
    for number, sample in enumerate(folder.samples(), 1):
        places.setdefault((sample.id, sample.model or ""), number)
        places.setdefault((sample.id, ""), number)
        if number > SHOWN:  # the report lists a selection, under numbers of its own
            return list(disputes)
    found = []
    for dispute in disputes:
        number = places.get((dispute.item, dispute.model)) or places.get((dispute.item, ""), 0)
        link = f"{folder.report_path}#a{number}" if number else ""
        found.append(Dispute(dispute.item, dispute.model, dispute.distance, dispute.ratings, link))
    return found
