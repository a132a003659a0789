"""How far raters agree: each pair, all of them, each with themselves, and where they part."""

import itertools
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from trustassay.data.ratings import Ratings
from trustassay.errors import UsageError
from trustassay.progress import Progress
from trustassay.runs.counts import SHOWN, read_units
from trustassay.runs.folder import RunFolder
from trustassay.statistics import Floats, Places, intervals
from trustassay.statistics.agreement import (
    Scale,
    Weights,
    cohen_kappa,
    counts_of,
    fleiss_kappa,
    gwet_ac,
    intraclass,
    item_interval,
    krippendorff_alpha,
)
from trustassay.statistics.intervals import Estimate, Interval
from trustassay.statistics.resampling import cluster_numbers
from trustassay.workflows.json_form import JsonForm, as_json, fields_as_json
from trustassay.workflows.judges import Variances, variances


class Coefficient(NamedTuple):
    """A coefficient of ratings of shape (raters, items), of which each item counts so often, shape
    (items,); ``scale`` and ``fewest`` are those of
    :func:`~trustassay.statistics.agreement.item_interval`. complete: items count that all raters
    rated.
    """

    of: Callable[[Floats, Floats], float | None]
    scale: Scale | None = "nominal"
    complete: bool = False
    fewest: int = intervals.FEWEST


class Ratio(NamedTuple):
    """A mean that is a ratio of sums over items: of ratings of shape (raters, items) what each item
    adds above and below, shape (items,) each; ``bounds`` are those of the mean, if they are known.
    """

    of: Callable[[Floats], tuple[Floats, Floats]]
    bounds: Interval | None


Figure = Coefficient | Ratio
MOST_RATERS = 40
"""Raters up to which each pair is compared."""


@dataclass(frozen=True, slots=True)
class Dispute(JsonForm):
    """An item on which raters disagree: how far, and what each said."""

    item: str
    model: str
    distance: float
    ratings: Mapping[str, str]
    link: str = ""


@dataclass(frozen=True)
class Agreement:
    """What there is to say of a table of ratings; each group maps coefficients to estimates.

    levels: all of the scale, those that occur unless they are declared. overall: of all
    raters. pairs: of each pair of raters. judges: of each judge with all people. models: as
    overall, for each model. intra: of each rater with the repeats of their own. disputes: the
    farthest apart first. variance: where it comes from, of ratings that have an order.
    """

    items: int
    raters: Mapping[str, int]
    missing: int
    ordered: bool
    categories: Sequence[str]
    levels: Sequence[str]
    levels_declared: bool
    overall: Mapping[str, Estimate]
    pairs: Mapping[tuple[str, str], Mapping[str, Estimate]]
    judges: Mapping[str, Mapping[str, Estimate]] = field(default_factory=dict)
    models: Mapping[str, Mapping[str, Estimate]] = field(default_factory=dict)
    intra: Mapping[str, Mapping[str, Estimate]] = field(default_factory=dict)
    variance: Variances | None = None
    disputes: Sequence[Dispute] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        pairs = [
            {"first": one, "second": other, **as_json(group)}
            for (one, other), group in self.pairs.items()
        ]
        return fields_as_json(self) | {"pairs": pairs}


def agreement(
    ratings: Ratings,
    *,
    machines: Collection[str] = (),
    units: Mapping[str, int] | None = None,
    progress: bool = False,
) -> Agreement:
    """Return how far the raters agree, with 95 % intervals over items.

    Raters are compared by the first rating that each gave to an item. Without an order of
    categories only coefficients of nominal data are given. ``machines`` are the raters that are
    judges: each is compared with all people, and their variance is given beside that of people.
    ``units`` are the numbers of items that belong together, as answers to a question; the answers
    of several models to one item do in any case. With ``progress`` that of the coefficients is
    shown where they take longer than a second.

    Raises:
        ValueError: there are too many raters to compare each pair, or nothing to compare.
    """
    items = list(dict.fromkeys((one.item, one.model) for one in ratings.ratings))
    raters = list(dict.fromkeys(one.rater for one in ratings.ratings))
    if len(raters) > MOST_RATERS:
        raise UsageError(f"expected at most {MOST_RATERS} raters, got {len(raters):,}")
    cube = _cube(ratings, items, raters)
    first = cube[:, :, 0]
    if len(raters) < 2 and cube.shape[2] < 2:
        raise UsageError(f"nothing to compare: all ratings are by {raters[0]!r}, each item once")
    own = cluster_numbers([(units or {}).get(item, item) for item, _ in items])

    levels = ratings.scale or np.unique(first[~np.isnan(first)]).tolist()
    two, every, again = (figures(ratings, levels, of) for of in (OF_TWO, OF_ALL, OF_REPEATS))
    with_people = _with_people(ratings, levels)
    models = sorted({model for _, model in items if model})
    models = models if len(models) > 1 and len(raters) > 1 else []
    pairs = list(itertools.combinations(range(len(raters)), 2))
    repeated = [p for p in range(len(raters)) if (~np.isnan(cube[p, :, 1:])).any()]
    people = [p for p, rater in enumerate(raters) if rater not in machines]
    judges = [p for p, rater in enumerate(raters) if rater in machines] if people else []
    total = len(every) * (len(models) + (len(raters) > 1)) + len(with_people) * len(judges)
    total += len(two) * len(pairs) + len(again) * len(repeated)
    shown = Progress("coefficients", total, shown=progress, after_s=1.0)

    def estimates(
        table: Floats, figures: Mapping[str, Figure], units: Places = own
    ) -> dict[str, Estimate]:
        result = {}
        for name, figure in figures.items():
            result[name] = estimated(table, figure, units)
            shown.step()
        return result

    with shown:
        of_models = {model: np.array([at == model for _, at in items]) for model in models}
        by_model = {
            model: estimates(first[:, these], every, own[these])
            for model, these in of_models.items()
        }
        overall = estimates(first, every) if len(raters) > 1 else {}
        by_judge = {raters[one]: estimates(first[[one, *people]], with_people) for one in judges}
        by_pair = {(raters[i], raters[j]): estimates(first[[i, j]], two) for i, j in pairs}
        intra = {raters[place]: estimates(cube[place].T, again) for place in repeated}
    variance = None
    if ratings.ordered:
        numbers = {item: int(number) for (item, _), number in zip(items, own, strict=True)}
        variance = variances(ratings.ratings, machines, units=numbers)
    return Agreement(
        len(items),
        {rater: int((~np.isnan(first[place])).sum()) for place, rater in enumerate(raters)},
        ratings.missing,
        ratings.ordered,
        ratings.categories,
        [_named(ratings, one) for one in levels],
        bool(ratings.scale),
        overall,
        by_pair,
        by_judge,
        by_model,
        intra,
        variance,
        _disputes(ratings, items, raters, first),
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


def _kappas(weights: Weights, levels: Sequence[float], *, of_first: bool = False) -> Coefficient:
    """Return the mean of the Cohen's kappas of each two raters (Light 1971), or of the first."""

    def mean(table: Floats, times: Floats) -> float | None:
        pairs = itertools.combinations(table, 2)
        result = [
            cohen_kappa(one, other, weights, levels, times)
            for one, other in itertools.islice(pairs, len(table) - 1 if of_first else None)
        ]
        known = [one for one in result if one is not None]
        return math.fsum(known) / len(known) if known else None

    return Coefficient(mean, "nominal" if weights == "none" else "interval")


def _ac(weights: Weights, levels: Sequence[float]) -> Coefficient:
    fewest = intervals.FEWEST if weights == "none" else intervals.FEWEST_FOR_MEANS
    return Coefficient(
        lambda table, times: gwet_ac(table, weights, levels, times), None, fewest=fewest
    )


def _alpha(scale: Scale) -> Coefficient:
    return Coefficient(lambda table, times: krippendorff_alpha(table, scale, times), scale)


def _icc(which: int) -> Coefficient:
    def result(table: Floats, times: Floats) -> float | None:
        correlation = intraclass(table, times, level=None)  # estimated has intervals of its own
        return None if correlation is None else float(correlation[which])  # type: ignore[arg-type]

    return Coefficient(result, "interval", complete=True)


def _same_pairs(table: Floats) -> tuple[Floats, Floats]:
    """Return 100 times the equal pairs of ratings of each item, and all its pairs."""
    m = (~np.isnan(table)).sum(axis=0)
    counts = counts_of(table)
    return 100.0 * (counts * (counts - 1)).sum(axis=1), (m * (m - 1)).astype(np.float64)


PERCENT = Ratio(_same_pairs, (0.0, 100.0))
FLEISS = Coefficient(lambda t, times: fleiss_kappa(counts_of(t), times), complete=True)


DISTANCE = "mean_absolute_difference"
NOMINAL = ("percent", "mean_kappa", "fleiss_kappa", "ac1", "alpha_nominal")
OF_TWO = ("percent", "kappa", "kappa_linear", "kappa_quadratic", "ac1", "ac2", DISTANCE)
OF_ALL = (*NOMINAL, "ac2", "alpha_ordinal", "alpha_interval", "icc_single", "icc_mean", DISTANCE)
OF_REPEATS = ("percent", "alpha_nominal", "alpha_ordinal", "alpha_interval", DISTANCE, "sd")
"""The figures of two raters, of all raters, and of one rater's repeats, each taken for a rater."""


def figures(ratings: Ratings, levels: Sequence[float], names: Sequence[str]) -> dict[str, Figure]:
    """Return the figures of these names; of categories without an order, those that need none."""
    kappa = _kappas("none", levels)
    width = ratings.scale[-1] - ratings.scale[0] if ratings.scale else None
    result: dict[str, Figure] = {
        "percent": PERCENT,
        "kappa": kappa,
        "mean_kappa": kappa,
        "fleiss_kappa": FLEISS,
        "ac1": _ac("none", levels),
        "alpha_nominal": _alpha("nominal"),
    }
    if ratings.ordered:
        bounds = None if width is None else (0.0, width)
        of_sd = None if width is None else (0.0, width / math.sqrt(2))
        result |= {
            "kappa_linear": _kappas("linear", levels),
            "kappa_quadratic": _kappas("quadratic", levels),
            "ac2": _ac("quadratic", levels),
            "alpha_ordinal": _alpha("ordinal"),
            "alpha_interval": _alpha("interval"),
            "icc_single": _icc(0),
            "icc_mean": _icc(1),
            DISTANCE: Ratio(_distances_of_pairs, bounds),
            "sd": Ratio(  # the deviation of the repeats of each item, and 1
                lambda table: (np.nanstd(table, axis=0, ddof=1), np.ones(table.shape[1])), of_sd
            ),
        }
    return {name: result[name] for name in names if name in result}


def _with_people(ratings: Ratings, levels: Sequence[float]) -> dict[str, Figure]:
    """Return the figures of a judge, whose ratings come first, with all people."""
    result: dict[str, Figure] = {"mean_kappa": _kappas("none", levels, of_first=True)}
    if ratings.ordered:
        result["mean_kappa_quadratic"] = _kappas("quadratic", levels, of_first=True)
    return result | {"fleiss_kappa": FLEISS}


def _distances_of_pairs(table: Floats) -> tuple[Floats, Floats]:
    """Return the sums of the absolute differences of two ratings of each item, and all pairs.

    Of m sorted ratings the k-th, from 0, is added k times and subtracted m - 1 - k times.
    """
    m = (~np.isnan(table)).sum(axis=0)
    rank = np.arange(len(table))[:, None]
    added = np.where(rank < m, 2 * rank - (m - 1), 0)
    total = (added * np.nan_to_num(np.sort(table, axis=0))).sum(axis=0)  # NaN is sorted last
    return total, m * (m - 1) / 2


def estimated(table: Floats, figure: Figure, units: Places) -> Estimate:
    """Return a figure with its interval over the units of the items that at least two rated."""
    there, nothing = (~np.isnan(table)).sum(axis=0) >= 2, "no item has two ratings"
    if isinstance(figure, Coefficient) and figure.complete:
        there, nothing = ~np.isnan(table).any(axis=0), "no item was rated by all raters"
    rated, units = table[:, there], units[there]
    n = rated.shape[1]
    if not n:
        return Estimate(None, n, None, nothing)
    interval: Interval | str | None
    if isinstance(figure, Ratio):
        above, below = figure.of(rated)
        value: float | None = float(above.sum() / below.sum())
        interval = _ratio_interval(above, below, figure.bounds, units)
    else:
        value = figure.of(rated, np.ones(n))
        if value is None:
            return Estimate(None, n, None, "all of these ratings are the same")
        interval = item_interval(figure.of, rated, units, figure.scale, figure.fewest)
    return Estimate.of(value, n, interval or "all items are the same in it")


def _ratio_interval(
    above: Floats, below: Floats, bounds: Interval | None, units: Places
) -> Interval | str | None:
    """Return the interval of a ratio of sums over units, or why there is none."""
    sums = intervals.RowSums(2)
    sums.add(np.column_stack([above, below]), units)
    mean = sums.ratio(np.array([1.0, 0.0]), np.array([0.0, 1.0]))
    whole = bounds is not None and bool(np.isin(above / below, bounds).all())
    needed = intervals.FEWEST if whole else intervals.FEWEST_FOR_MEANS
    reason = intervals.too_few_units(len(above), sums.units, mean.units, needed, "items")
    return reason or intervals.bounded_interval(mean, bounds)


def _disputes(
    ratings: Ratings, units: Sequence[tuple[str, str]], raters: Sequence[str], first: Floats
) -> list[Dispute]:
    """Return the items with different ratings, the farthest apart first."""
    result = []
    for place, (item, model) in enumerate(units):
        column = first[:, place]
        there = ~np.isnan(column)
        values = column[there]
        if not len(values) or (values == values[0]).all():
            continue
        distance = float(np.ptp(values)) if ratings.ordered else float(len(np.unique(values)) - 1)
        said = {rater: _named(ratings, column[i]) for i, rater in enumerate(raters) if there[i]}
        result.append((-distance, -values.std(), place, Dispute(item, model, distance, said)))
    return [dispute for *_, dispute in sorted(result, key=lambda row: row[:3])]


def _named(ratings: Ratings, value: float) -> str:
    return ratings.categories[int(value)] if ratings.categories else f"{value:g}"


def links_into(run: Path, disputes: Sequence[Dispute]) -> list[Dispute]:
    """Return disputes with links to the answers in a run's report, where it lists all answers."""
    folder = RunFolder(run)
    places: dict[tuple[str, str], int] = {}
    for number, sample in enumerate(folder.samples(), 1):
        places.setdefault((sample.id, sample.model or ""), number)
        places.setdefault((sample.id, ""), number)
        if number > SHOWN:  # the report lists a selection, under numbers of its own
            return list(disputes)
    result = []
    for dispute in disputes:
        number = places.get((dispute.item, dispute.model)) or places.get((dispute.item, ""), 0)
        link = f"{folder.report_path}#a{number}" if number else ""
        result.append(replace(dispute, link=link))
    return result


def units_of_items(run: Path) -> dict[str, int]:
    """Return the number of the question of each item that is an answer in a run, where several are
    answers to it.
    """
    folder = RunFolder(run)
    units = read_units(folder)
    if units is None:
        return {}
    numbered = zip(folder.sample_records(), units.tolist(), strict=True)
    return {record["id"]: unit for record, unit in numbered if unit >= 0}
