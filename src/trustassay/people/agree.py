"""``agree``: agreement of all raters, of each pair, of each rater with repeats, and the
disputes."""

import itertools
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from trustassay.core.json_form import JsonForm, as_json, fields_as_json
from trustassay.core.progress import Progress
from trustassay.errors import UsageError
from trustassay.input.ratings import Ratings
from trustassay.people.judges import VarianceReport, decompose_variances
from trustassay.runs.counts import MAX_ANSWERS_SHOWN
from trustassay.runs.folder import RunFolder
from trustassay.runs.units import read_units
from trustassay.statistics import Floats, Places, intervals
from trustassay.statistics.agreement import (
    Scale,
    Weights,
    cohen_kappa,
    count_categories,
    fleiss_kappa,
    gwet_ac,
    intraclass,
    item_interval,
    krippendorff_alpha,
)
from trustassay.statistics.intervals import Estimate, Interval
from trustassay.statistics.resampling import cluster_numbers


class AgreementCoefficient(NamedTuple):
    """An agreement coefficient, and how its interval is computed."""

    of: Callable[[Floats, Floats], float | None]
    """Computes it from ratings, shape (raters, items), and the weight of each item, shape
    (items,)."""
    scale: Scale | None = "nominal"
    """As of :func:`~trustassay.statistics.agreement.item_interval`."""
    complete: bool = False
    """Whether only the items that all raters rated count."""
    fewest: int = intervals.MIN_UNITS
    """The number of items below which there is no interval."""


class AgreementRatio(NamedTuple):
    """A mean that is a ratio of two sums over items."""

    of: Callable[[Floats], tuple[Floats, Floats]]
    """Computes, from ratings of shape (raters, items), what each item adds to the numerator and to
    the denominator, shape (items,) each."""
    bounds: Interval | None
    """The smallest and largest possible mean, if they are known."""


AgreementFigure = AgreementCoefficient | AgreementRatio
MAX_COMPARED_RATERS = 40
"""More raters than this have too many pairs to compare."""


@dataclass(frozen=True, slots=True)
class RatingDispute(JsonForm):
    """An item on which raters disagree."""

    item: str
    model: str
    distance: float
    """The largest difference of two ratings; without an order, the number of other categories."""
    ratings: Mapping[str, str]
    """The rating of each rater, as text."""
    link: str = ""
    """The address of the answer in a run's report, if that lists it."""


@dataclass(frozen=True)
class RaterAgreement:
    """The agreement in a table of ratings; estimates are keyed by the name of the coefficient."""

    items: int
    raters: Mapping[str, int]
    """The number of items that each rater rated."""
    missing: int
    """Ratings that were skipped."""
    ordered: bool
    """Whether the ratings are numbers or ordered categories."""
    categories: Sequence[str]
    """The categories, where ratings are words."""
    levels: Sequence[str]
    """All levels of the scale; only those that occur, unless the scale is declared."""
    levels_declared: bool
    overall: Mapping[str, Estimate]
    """Agreement of all raters."""
    pairs: Mapping[tuple[str, str], Mapping[str, Estimate]]
    """Agreement of each pair of raters."""
    judges: Mapping[str, Mapping[str, Estimate]] = field(default_factory=dict)
    """Agreement of each judge with all people."""
    models: Mapping[str, Mapping[str, Estimate]] = field(default_factory=dict)
    """Agreement of all raters on the answers of each model."""
    intra: Mapping[str, Mapping[str, Estimate]] = field(default_factory=dict)
    """Agreement of each rater with their own repeated ratings."""
    variance: VarianceReport | None = None
    """The sources of the variance, of ratings that have an order."""
    disputes: Sequence[RatingDispute] = ()
    """The disputed items, the largest distance first."""

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        pairs = [
            {"first": first_rater, "second": second_rater, **as_json(group)}
            for (first_rater, second_rater), group in self.pairs.items()
        ]
        return fields_as_json(self) | {"pairs": pairs}


def measure_agreement(
    ratings: Ratings,
    *,
    machines: Collection[str] = (),
    units: Mapping[str, int] | None = None,
    progress: bool = False,
) -> RaterAgreement:
    """Measure how far the raters agree, with 95 % intervals over items.

    Raters are compared by the first rating that each gave to an item. Categories without an order
    have coefficients of nominal data only.

    Args:
        ratings: the table of ratings.
        machines: the raters that are judges. Each is compared with all people, and the variance of
            judges and people is given separately.
        units: the numbers of items that belong together, such as answers to one question. Answers
            of several models to one item always belong together.
        progress: show a progress bar if the computation takes longer than a second.

    Raises:
        UsageError: there are too many raters to compare each pair, or nothing to compare.
    """
    items = list(dict.fromkeys((rating.item, rating.model) for rating in ratings.ratings))
    raters = list(dict.fromkeys(rating.rater for rating in ratings.ratings))
    if len(raters) > MAX_COMPARED_RATERS:
        raise UsageError(f"expected at most {MAX_COMPARED_RATERS} raters, got {len(raters):,}")
    # 1. The ratings as an array (raters, items, repeats); agreement is about first ratings.
    cube = _build_cube(ratings, items, raters)
    first = cube[:, :, 0]
    if len(raters) < 2 and cube.shape[2] < 2:
        raise UsageError(f"nothing to compare: all ratings are by {raters[0]!r}, each item once")
    unit_numbers = cluster_numbers([(units or {}).get(item, item) for item, _ in items])

    # 2. Which coefficients are computed for which groups of raters.
    levels = ratings.scale or np.unique(first[~np.isnan(first)]).tolist()
    figures_of_pair, figures_of_all, figures_of_repeats = (
        build_figures(ratings, levels, of) for of in (OF_TWO, OF_ALL, OF_REPEATS)
    )
    with_people = _build_figures_with_people(ratings, levels)
    models = sorted({model for _, model in items if model})
    # A single model would only repeat the overall figures.
    models = models if len(models) > 1 and len(raters) > 1 else []
    pairs = list(itertools.combinations(range(len(raters)), 2))
    # Raters with at least one repeated rating.
    repeated = [p for p in range(len(raters)) if (~np.isnan(cube[p, :, 1:])).any()]
    people = [p for p, rater in enumerate(raters) if rater not in machines]
    # Judges are compared with people, so without people there is nothing to compare.
    judges = [p for p, rater in enumerate(raters) if rater in machines] if people else []
    # 3. The number of coefficients, for the progress bar: some take seconds each.
    total = len(figures_of_all) * (len(models) + (len(raters) > 1)) + len(with_people) * len(judges)
    total += len(figures_of_pair) * len(pairs) + len(figures_of_repeats) * len(repeated)
    bar = Progress("coefficients", total, visible=progress, after_s=1.0)

    def estimates(
        table: Floats, figures: Mapping[str, AgreementFigure], units: Places = unit_numbers
    ) -> dict[str, Estimate]:
        result = {}
        for name, figure in figures.items():
            result[name] = estimate(table, figure, units)
            bar.step()
        return result

    # 4. All coefficients with their intervals.
    with bar:
        of_models = {model: np.array([at == model for _, at in items]) for model in models}
        by_model = {
            model: estimates(first[:, columns], figures_of_all, unit_numbers[columns])
            for model, columns in of_models.items()
        }
        overall = estimates(first, figures_of_all) if len(raters) > 1 else {}
        by_judge = {raters[p]: estimates(first[[p, *people]], with_people) for p in judges}
        by_pair = {
            (raters[i], raters[j]): estimates(first[[i, j]], figures_of_pair) for i, j in pairs
        }
        intra = {raters[place]: estimates(cube[place].T, figures_of_repeats) for place in repeated}
    # 5. The sources of variance, which only exist for ratings with an order.
    variance = None
    if ratings.ordered:
        numbers = {item: int(number) for (item, _), number in zip(items, unit_numbers, strict=True)}
        variance = decompose_variances(ratings.ratings, machines, units=numbers)
    return RaterAgreement(
        len(items),
        {rater: int((~np.isnan(first[place])).sum()) for place, rater in enumerate(raters)},
        ratings.missing_count,
        ratings.ordered,
        ratings.categories,
        [_format_rating(ratings, level) for level in levels],
        bool(ratings.scale),
        overall,
        by_pair,
        by_judge,
        by_model,
        intra,
        variance,
        _list_disputes(ratings, items, raters, first),
    )


def _build_cube(
    ratings: Ratings, units: Sequence[tuple[str, str]], raters: Sequence[str]
) -> Floats:
    """Return all ratings, shape (raters, items, repeats); NaN where there is none."""
    item_at = {unit: place for place, unit in enumerate(units)}
    rater_at = {rater: place for place, rater in enumerate(raters)}
    repeats = 1 + max(rating.repeat for rating in ratings.ratings)
    # Raters skip items, so most tables have holes.
    cube = np.full((len(raters), len(units), repeats), math.nan)
    for rating in ratings.ratings:
        cube[rater_at[rating.rater], item_at[rating.item, rating.model], rating.repeat] = (
            rating.value
        )
    return cube


def _mean_kappa(
    weights: Weights, levels: Sequence[float], *, of_first: bool = False
) -> AgreementCoefficient:
    """Return the mean of Cohen's kappa over all pairs of raters (Light 1971).

    With ``of_first`` only the pairs of the first rater count.
    """

    def mean(table: Floats, times: Floats) -> float | None:
        pairs = itertools.combinations(table, 2)
        result = [
            cohen_kappa(kappa, second_ratings, weights, levels, times)
            for kappa, second_ratings in itertools.islice(
                pairs, len(table) - 1 if of_first else None
            )
        ]
        # Kappa is undefined where both raters used one category only.
        defined_kappas = [kappa for kappa in result if kappa is not None]
        return math.fsum(defined_kappas) / len(defined_kappas) if defined_kappas else None

    return AgreementCoefficient(mean, "nominal" if weights == "none" else "interval")


def _gwet_coefficient(weights: Weights, levels: Sequence[float]) -> AgreementCoefficient:
    fewest = intervals.MIN_UNITS if weights == "none" else intervals.MIN_UNITS_FOR_MEANS
    return AgreementCoefficient(
        lambda table, times: gwet_ac(table, weights, levels, times), None, fewest=fewest
    )


def _krippendorff_coefficient(scale: Scale) -> AgreementCoefficient:
    return AgreementCoefficient(lambda table, times: krippendorff_alpha(table, scale, times), scale)


def _intraclass_coefficient(which: int) -> AgreementCoefficient:
    def result(table: Floats, times: Floats) -> float | None:
        # level=None skips the parametric interval; `estimate` resamples items instead.
        correlation = intraclass(table, times, level=None)
        return None if correlation is None else float(correlation[which])  # type: ignore[arg-type]

    return AgreementCoefficient(result, "interval", complete=True)


def _count_equal_pairs(table: Floats) -> tuple[Floats, Floats]:
    """Return for each item 100 times the ordered pairs of equal ratings, and all ordered pairs."""
    m = (~np.isnan(table)).sum(axis=0)
    counts = count_categories(table)
    return 100.0 * (counts * (counts - 1)).sum(axis=1), (m * (m - 1)).astype(np.float64)


PERCENT_EQUAL = AgreementRatio(_count_equal_pairs, (0.0, 100.0))
FLEISS = AgreementCoefficient(
    lambda t, times: fleiss_kappa(count_categories(t), times), complete=True
)


DISTANCE = "mean_absolute_difference"
NOMINAL = ("percent", "mean_kappa", "fleiss_kappa", "ac1", "alpha_nominal")
OF_TWO = ("percent", "kappa", "kappa_linear", "kappa_quadratic", "ac1", "ac2", DISTANCE)
OF_ALL = (*NOMINAL, "ac2", "alpha_ordinal", "alpha_interval", "icc_single", "icc_mean", DISTANCE)
OF_REPEATS = ("percent", "alpha_nominal", "alpha_ordinal", "alpha_interval", DISTANCE, "sd")
"""Figures of two raters, of all raters, and of one rater, whose repeats count as raters."""


def build_figures(
    ratings: Ratings, levels: Sequence[float], names: Sequence[str]
) -> dict[str, AgreementFigure]:
    """Build the figures of these names; without an order of categories, only those without one."""
    kappa = _mean_kappa("none", levels)
    width = ratings.scale[-1] - ratings.scale[0] if ratings.scale else None
    result: dict[str, AgreementFigure] = {
        "percent": PERCENT_EQUAL,
        "kappa": kappa,
        "mean_kappa": kappa,
        "fleiss_kappa": FLEISS,
        "ac1": _gwet_coefficient("none", levels),
        "alpha_nominal": _krippendorff_coefficient("nominal"),
    }
    if ratings.ordered:
        bounds = None if width is None else (0.0, width)
        # Two ratings at opposite ends deviate by width / sqrt(2), the largest possible deviation.
        of_sd = None if width is None else (0.0, width / math.sqrt(2))
        result |= {
            "kappa_linear": _mean_kappa("linear", levels),
            "kappa_quadratic": _mean_kappa("quadratic", levels),
            "ac2": _gwet_coefficient("quadratic", levels),
            "alpha_ordinal": _krippendorff_coefficient("ordinal"),
            "alpha_interval": _krippendorff_coefficient("interval"),
            "icc_single": _intraclass_coefficient(0),
            "icc_mean": _intraclass_coefficient(1),
            DISTANCE: AgreementRatio(_sum_pair_distances, bounds),
            # A plain mean over items: each adds its standard deviation to the numerator, 1 below.
            "sd": AgreementRatio(
                lambda table: (np.nanstd(table, axis=0, ddof=1), np.ones(table.shape[1])), of_sd
            ),
        }
    return {name: result[name] for name in names if name in result}


def _build_figures_with_people(
    ratings: Ratings, levels: Sequence[float]
) -> dict[str, AgreementFigure]:
    """Build the figures that compare a judge, whose ratings come first, with all people."""
    result: dict[str, AgreementFigure] = {"mean_kappa": _mean_kappa("none", levels, of_first=True)}
    if ratings.ordered:
        result["mean_kappa_quadratic"] = _mean_kappa("quadratic", levels, of_first=True)
    return result | {"fleiss_kappa": FLEISS}


def _sum_pair_distances(table: Floats) -> tuple[Floats, Floats]:
    """Return for each item the sum of absolute differences over its pairs, and the number of pairs.

    Of m sorted ratings, the k-th (from 0) is added k times and subtracted m - 1 - k times.
    """
    m = (~np.isnan(table)).sum(axis=0)
    rank = np.arange(len(table))[:, None]
    added = np.where(rank < m, 2 * rank - (m - 1), 0)
    # np.sort puts NaN last, where the factor is 0.
    total = (added * np.nan_to_num(np.sort(table, axis=0))).sum(axis=0)
    return total, m * (m - 1) / 2


def estimate(table: Floats, figure: AgreementFigure, units: Places) -> Estimate:
    """Estimate a figure with its interval over units, from items that at least two raters rated."""
    is_compared, reason_without_items = (
        (~np.isnan(table)).sum(axis=0) >= 2,
        "no item has two ratings",
    )
    # Fleiss' kappa and the intraclass correlation need the same number of ratings for every item.
    if isinstance(figure, AgreementCoefficient) and figure.complete:
        is_compared, reason_without_items = (
            ~np.isnan(table).any(axis=0),
            "no item was rated by all raters",
        )
    rated, units = table[:, is_compared], units[is_compared]
    n = rated.shape[1]
    if not n:
        return Estimate(None, n, None, reason_without_items)
    interval: Interval | str | None
    if isinstance(figure, AgreementRatio):
        above, below = figure.of(rated)
        value: float | None = float(above.sum() / below.sum())
        interval = _ratio_interval(above, below, figure.bounds, units)
    else:
        value = figure.of(rated, np.ones(n))
        if value is None:
            # Without variation the expected agreement is 1, and a coefficient is 0/0.
            return Estimate(None, n, None, "all of these ratings are the same")
        interval = item_interval(figure.of, rated, units, figure.scale, figure.fewest)
    return Estimate.of(value, n, interval or "all items are the same in it")


def _ratio_interval(
    above: Floats, below: Floats, bounds: Interval | None, units: Places
) -> Interval | str | None:
    """Return the interval of a ratio of sums over units, or the reason why there is none."""
    sums = intervals.RowSums(2)
    sums.add(np.column_stack([above, below]), units)
    mean = sums.ratio(np.array([1.0, 0.0]), np.array([0.0, 1.0]))
    all_at_bounds = bounds is not None and bool(np.isin(above / below, bounds).all())
    # Values that are all 0 or 1 are a share, whose interval holds with fewer items than that of a
    # mean.
    needed = intervals.MIN_UNITS if all_at_bounds else intervals.MIN_UNITS_FOR_MEANS
    reason = intervals.reason_too_few_units(len(above), sums.units, mean.units, needed, "items")
    return reason or intervals.interval_within_bounds(mean, bounds)


def _list_disputes(
    ratings: Ratings, units: Sequence[tuple[str, str]], raters: Sequence[str], first: Floats
) -> list[RatingDispute]:
    """List the items with different ratings, the largest distance first."""
    result = []
    for place, (item, model) in enumerate(units):
        column = first[:, place]
        has_rating = ~np.isnan(column)
        values = column[has_rating]
        if not len(values) or (values == values[0]).all():
            continue
        distance = float(np.ptp(values)) if ratings.ordered else float(len(np.unique(values)) - 1)
        rating_by_rater = {
            rater: _format_rating(ratings, column[i])
            for i, rater in enumerate(raters)
            if has_rating[i]
        }
        result.append(
            # Sorted by distance, then spread, then the order of the file.
            (-distance, -values.std(), place, RatingDispute(item, model, distance, rating_by_rater))
        )
    return [dispute for *_, dispute in sorted(result, key=lambda row: row[:3])]


def _format_rating(ratings: Ratings, value: float) -> str:
    return ratings.categories[int(value)] if ratings.categories else f"{value:g}"


def add_report_links(run: Path, disputes: Sequence[RatingDispute]) -> list[RatingDispute]:
    """Add links into a run's report to the disputes, where the report lists all answers."""
    folder = RunFolder(run)
    places: dict[tuple[str, str], int] = {}
    for number, sample in enumerate(folder.samples(), 1):
        places.setdefault((sample.id, sample.model or ""), number)
        # A rating may leave out the model, and then refers to the first answer with its id.
        places.setdefault((sample.id, ""), number)
        # A longer run's report shows a selection with other numbers, so no link would be right.
        if number > MAX_ANSWERS_SHOWN:
            return list(disputes)
    result = []
    for dispute in disputes:
        number = places.get((dispute.item, dispute.model)) or places.get((dispute.item, ""), 0)
        link = f"{folder.report_path}#a{number}" if number else ""
        result.append(replace(dispute, link=link))
    return result


def read_units_of_items(run: Path) -> dict[str, int]:
    """Return the number of the question of each item that is an answer in a run.

    Empty where each question has one answer, since items are then independent.
    """
    folder = RunFolder(run)
    units = read_units(folder)
    if units is None:
        return {}
    numbered = zip(folder.sample_records(), units.tolist(), strict=True)
    return {record["id"]: unit for record, unit in numbered if unit >= 0}
