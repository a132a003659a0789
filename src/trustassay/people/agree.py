"""``agree``: agreement of all raters, of each pair, of each rater with repeats, and the
disputes; as tables for the terminal, and as a page on the variance of ratings."""

import itertools
import math
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from markupsafe import Markup

from trustassay.core.json_form import JsonForm, as_json, fields_as_json
from trustassay.core.progress import Progress
from trustassay.errors import UsageError
from trustassay.input.labels import UnreadLabels
from trustassay.input.ratings import Ratings
from trustassay.people.variance import VarianceReport, decompose_variances
from trustassay.report import document
from trustassay.report.charts import interval_svg, stacked_svg
from trustassay.runs.counts import MAX_ANSWERS_SHOWN
from trustassay.runs.folder import RunFolder
from trustassay.runs.units import UNIT, read_units
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
from trustassay.text.numbers import amount, number


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
MAX_RATING_VALUES = 20
"""More different numbers than this are a score, unless the scale is declared."""


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


@dataclass(frozen=True, slots=True)
class JudgeDeviations(JsonForm):
    """How often the first rating of a judge is higher than, equal to or lower than one by people.

    An item that three people rated counts three times.
    """

    higher: int
    equal: int
    lower: int


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
    deviations: Mapping[str, JudgeDeviations] = field(default_factory=dict)
    """The direction in which each judge differs from people, of ratings that have an order."""
    models: Mapping[str, Mapping[str, Estimate]] = field(default_factory=dict)
    """Agreement of all raters on the answers of each model."""
    intra: Mapping[str, Mapping[str, Estimate]] = field(default_factory=dict)
    """Agreement of each rater with their own repeated ratings."""
    variance: VarianceReport | None = None
    """The sources of the variance, of ratings that have an order."""
    disputes: Sequence[RatingDispute] = ()
    """The disputed items, the largest distance first."""
    unread: UnreadLabels | None = None
    """Ratings that cannot be read, if there are any."""

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        pairs = [
            {"first": first_rater, "second": second_rater, **as_json(group)}
            for (first_rater, second_rater), group in self.pairs.items()
        ]
        return fields_as_json(self) | {"pairs": pairs}


def leave_out_scores(ratings: Ratings, source: Any) -> tuple[Ratings, list[str]]:
    """Leave out the raters whose numbers are scores; return the others, and a remark for each.

    Args:
        ratings: the ratings. source: what they were read from, for the remarks.

    Raises:
        UsageError: nothing else is left.
    """
    values: dict[str, set[float]] = {}
    for rating in ratings.ratings:
        values.setdefault(rating.rater, set()).add(rating.value)
    if ratings.categories or ratings.scale:
        return ratings, []
    name = source if isinstance(source, str | os.PathLike) else "FILE"
    scores = {rater: len(of) for rater, of in values.items() if len(of) > MAX_RATING_VALUES}
    remarks = [
        f"{rater}: left out as a score, with {count:,} different values"
        # Of a long table no column has this name.
        + (f"; to use it: trustassay calibrate {name} --score {rater}" if ratings.wide else "")
        for rater, count in scores.items()
    ]
    if len(scores) == len(values):
        raise UsageError(
            f"{'; '.join(remarks)}. No ratings are left to compare. If these are ratings, give "
            "their scale: --levels 0..100; or name a column of words: --rater COLUMN"
        )
    left = [rating for rating in ratings.ratings if rating.rater not in scores]
    return replace(ratings, ratings=left), remarks


def measure_agreement(
    ratings: Ratings,
    *,
    machines: Collection[str] = (),
    units: Mapping[str, int] | None = None,
    each_answer: bool = False,
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
            of several models to one item belong together, too.
        each_answer: take each answer as independent instead.
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
        raise UsageError(
            f"nothing to compare: {raters[0]!r} is the only rater, and rated each item once"
        )
    unit_numbers = cluster_numbers(
        range(len(items)) if each_answer else [(units or {}).get(item, item) for item, _ in items]
    )

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
    # 5. Directions and the sources of variance, which only exist for ratings with an order.
    variance, deviations = None, {}
    if ratings.ordered:
        deviations = {raters[p]: _count_deviations(first[p], first[people]) for p in judges}
        numbers = {item: int(number) for (item, _), number in zip(items, unit_numbers, strict=True)}
        variance = decompose_variances(ratings.ratings, machines, units=numbers)
    return RaterAgreement(
        items=len(items),
        raters={rater: int((~np.isnan(first[place])).sum()) for place, rater in enumerate(raters)},
        missing=ratings.missing_count,
        ordered=ratings.ordered,
        categories=ratings.categories,
        levels=[_format_rating(ratings, level) for level in levels],
        levels_declared=bool(ratings.scale),
        overall=overall,
        pairs=by_pair,
        judges=by_judge,
        deviations=deviations,
        models=by_model,
        intra=intra,
        variance=variance,
        disputes=_list_disputes(ratings, items, raters, first),
        unread=ratings.unread,
    )


def _count_deviations(judge: Floats, people: Floats) -> JudgeDeviations:
    """Compare a judge's ratings, shape (items,), with those by people, shape (people, items)."""
    # A comparison with NaN is false, so missing ratings count nowhere.
    return JudgeDeviations(
        int((judge > people).sum()), int((judge == people).sum()), int((judge < people).sum())
    )


def describe_left_out(agreement: RaterAgreement) -> list[str]:
    """Describe how many ratings are missing, and which cannot be read."""
    result = [f"missing ratings: {agreement.missing:,}"] if agreement.missing else []
    if agreement.unread:
        result.append(agreement.unread.describe("ratings", "--levels lists all levels"))
    return result


def _build_cube(
    ratings: Ratings, items: Sequence[tuple[str, str]], raters: Sequence[str]
) -> Floats:
    """Return all ratings, shape (raters, items, repeats); NaN where there is none."""
    item_at = {item: place for place, item in enumerate(items)}
    rater_at = {rater: place for place, rater in enumerate(raters)}
    repeats = 1 + max(rating.repeat for rating in ratings.ratings)
    # Raters skip items, so most tables have holes.
    cube = np.full((len(raters), len(items), repeats), math.nan)
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
            cohen_kappa(first_ratings, second_ratings, weights, levels, times)
            for first_ratings, second_ratings in itertools.islice(
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
COEFFICIENT_TITLES: Mapping[str, str] = {
    "percent": "agreement, %",
    "kappa": "kappa",
    "mean_kappa": "Cohen's kappa, mean of pairs",
    "mean_kappa_quadratic": "quadratic kappa, mean of pairs",
    "ac1": "Gwet's AC1",
    "ac2": "AC2, quadratic",
    "icc_single": "ICC(A,1)",
    "icc_mean": "ICC(A,k)",
    "kappa_linear": "kappa, linear",
    "kappa_quadratic": "kappa, quadratic",
    "fleiss_kappa": "Fleiss's kappa",
    "alpha_nominal": "alpha, nominal",
    "alpha_ordinal": "alpha, ordinal",
    "alpha_interval": "alpha, interval",
    DISTANCE: "mean difference",
    "sd": "mean SD",
}
"""The column titles of all figures, by name."""


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
    rating_counts = (~np.isnan(table)).sum(axis=0)
    is_compared, reason_without_items = rating_counts >= 2, "no item has two ratings"
    # Fleiss' kappa and the intraclass correlation need the same number of ratings for every item.
    if isinstance(figure, AgreementCoefficient) and figure.complete:
        is_compared = rating_counts == len(table)
        reason_without_items = "no item was rated by all raters"
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
    return Estimate.of(value, n, interval or "all items have the same value")


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
    ratings: Ratings, items: Sequence[tuple[str, str]], raters: Sequence[str], first: Floats
) -> list[RatingDispute]:
    """List the items with different ratings, the largest distance first."""
    result = []
    for place, (item, model) in enumerate(items):
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
    for position, sample in enumerate(folder.samples(), 1):
        places.setdefault((sample.id, sample.model or ""), position)
        # A rating may leave out the model, and then refers to the first answer with its id.
        places.setdefault((sample.id, ""), position)
        # A longer run's report shows a selection with other numbers, so no link would be right.
        if position > MAX_ANSWERS_SHOWN:
            return list(disputes)
    result = []
    for dispute in disputes:
        position = places.get((dispute.item, dispute.model)) or places.get((dispute.item, ""), 0)
        link = f"{folder.report_path}#a{position}" if position else ""
        result.append(replace(dispute, link=link))
    return result


def read_unit_of_run(run: Path) -> str | None:
    """Return the unit with which a run was scored; ``None`` for the default, the question."""
    return (RunFolder(run).read_run() or {}).get(UNIT)


def read_units_of_items(run: Path, unit: str | None) -> dict[str, int]:
    """Return the number of the unit of each item that is an answer in a run.

    Empty where each unit has one answer, since items are then independent.

    Args:
        run: the folder. unit: as for :func:`~trustassay.runs.units.read_units`.
    """
    folder = RunFolder(run)
    units = read_units(folder, unit)
    if units is None:
        return {}
    numbered = zip(folder.sample_records(), units.tolist(), strict=True)
    return {record["id"]: unit for record, unit in numbered if unit >= 0}


VARIANCE_COLUMNS = ("variance", "standard deviation", "share, %", "95 % interval")
PERCENT_AXIS = ("0 %", "50 %", "100 %")


def build_overall_table(agreement: RaterAgreement) -> document.Table:
    """Build the table of all raters together."""
    rows = []
    for name, estimate in agreement.overall.items():
        cells = [_format_number(name, estimate.value), _format_ends(name, estimate)]
        rows.append(document.DocumentRow(COEFFICIENT_TITLES[name], [*cells, str(estimate.n)]))
    return document.Table("all raters", ("value", "95 % interval", "items"), rows)


def build_group_tables(agreement: RaterAgreement) -> Iterator[document.Table]:
    """Yield tables of pairs of raters, judges with people, models, repeated ratings, directions."""
    pairs = {f"{a} – {b}": group for (a, b), group in agreement.pairs.items()}
    for heading, estimates_by_group in (
        ("pair", pairs),
        ("judge and people", agreement.judges),
        ("model", agreement.models),
        ("repeats of a rater", agreement.intra),
    ):
        if estimates_by_group:
            yield _build_table(heading, estimates_by_group)
    if agreement.deviations:
        yield _build_deviation_table(agreement.deviations)


def _build_deviation_table(deviations: Mapping[str, JudgeDeviations]) -> document.Table:
    rows = [
        document.DocumentRow(judge, [str(counts.higher), str(counts.equal), str(counts.lower)])
        for judge, counts in deviations.items()
    ]
    return document.Table(
        "judge compared with people", ("judge higher", "equal", "judge lower"), rows
    )


def _build_table(
    heading: str, estimates_by_group: Mapping[str, Mapping[str, Estimate]]
) -> document.Table:
    # All groups of a table have the same figures and the same number of items.
    keys = list(next(iter(estimates_by_group.values())))
    rows = [
        document.DocumentRow(
            title,
            [*(_format_with_interval(key, group[key]) for key in keys), str(group[keys[0]].n)],
        )
        for title, group in estimates_by_group.items()
    ]
    return document.Table(heading, [*(COEFFICIENT_TITLES[key] for key in keys), "items"], rows)


def _format_with_interval(name: str, estimate: Estimate) -> str:
    value, ends = _format_number(name, estimate.value), _format_ends(name, estimate)
    return f"{value} ({ends})" if ends else value


def _format_ends(name: str, estimate: Estimate) -> str:
    return " to ".join(_format_number(name, end) for end in estimate.interval or ())


def _format_number(name: str, value: float | None) -> str:
    if value is None:
        return "undefined"
    return f"{value:.1f}" if name == "percent" else f"{value:.3f}"


def build_variance_table(variances: VarianceReport) -> document.Table:
    """Build the table of the variance components of all groups."""
    rows = [
        document.DocumentRow(
            f"{name}: {component.name}",
            [
                f"{component.variance:.3f}",
                f"{component.sd:.3f}",
                "undefined" if component.share is None else f"{component.share:.1f}",
                # An empty cell where there is no interval; the notes say why.
                "{:.1f} to {:.1f}".format(*component.share_interval)
                if component.share_interval
                else "",
            ],
        )
        for name, group in variances.groups.items()
        for component in group.components
    ]
    return document.Table("Component", VARIANCE_COLUMNS, rows, "All components")


def describe_variance(variances: VarianceReport) -> list[str]:
    """Describe what the table cannot show: what is unknown, and estimates below 0."""
    notes = []
    for name, group in variances.groups.items():
        if group.why:
            notes.append(f"{name}: the variance cannot be decomposed: {group.why}")
        if group.without:
            notes.append(f"{name}: no intervals: {group.without}")
        # With one rater, a strict rater cannot be told from weak answers.
        if group.raters == 1 and group.components:
            notes.append(
                f"{name}: a single rater, whose strictness cannot be separated from differences "
                "between answers"
            )
        if below := [component.name for component in group.components if component.estimate < 0]:
            notes.append(f"{name}: estimates below 0, set to 0: {', '.join(below)}")
    return notes


def build_document(
    agreement: RaterAgreement, source: str | None, run: Path | None
) -> document.PageDocument | None:
    """Build the page that draws the variance; ``None`` for categories, which have no variance."""
    if agreement.variance is None:
        return None
    facts = {"ratings": source} if source else {}
    facts |= {"run": str(run)} if run else {}
    facts |= {"answers": f"{agreement.items:,}"}
    facts |= {
        name: f"{amount(group.raters, 'rater')}, {amount(group.ratings, 'rating')}; "
        f"{amount(group.repeated, 'answer')} rated more than once"
        for name, group in agreement.variance.groups.items()
    }
    # Either a file of ratings, or a run whose judges voted, or both.
    of = Path(source) if source else run
    return document.PageDocument(
        "agree",
        f"{of.name if of else ''}: variance of ratings",
        facts,
        agreement.variance.in_words(),
        describe_variance(agreement.variance),
        [
            document.Section(
                "Where the variance of the ratings comes from",
                _build_variance_blocks(agreement.variance),
            )
        ],
    )


def _build_variance_blocks(variances: VarianceReport) -> list[document.Block]:
    """Build the blocks of the page: the shares of each group, and each share with its interval."""
    # Groups may lack a component; the colours have to agree all the same.
    names = list(
        dict.fromkeys(
            component.name for g in variances.groups.values() for component in g.components
        )
    )
    stacked, intervals = [], dict[str, list[document.Bar]]()
    for group, parts in variances.groups.items():
        shares = [(component.name, component.share or 0.0) for component in parts.components]
        if any(component.share is not None for component in parts.components):
            # One bar for each group, whose parts add up to 100 %.
            stacked.append(document.Bar(group, "", stacked_svg(shares, names, group)))
        for component in parts.components:
            # One panel for each component, so that groups can be compared within it.
            if component.share is not None and component.share_interval is not None:
                low, high = component.share_interval
                text = f"{number(component.share)} % ({number(low)} to {number(high)})"
                label = f"{group}, {component.name}: {text}"
                drawing = interval_svg((low / 100, high / 100), component.share / 100, label)
                intervals.setdefault(component.name, []).append(document.Bar(group, text, drawing))
    bars = document.Bars(stacked, PERCENT_AXIS if stacked else ())
    blocks: list[document.Block] = [
        document.Text(
            "Answer: differences between answers, which ratings should show. Rater: some raters "
            "give higher levels to all answers. Answer x rater: raters disagree about single "
            "answers. Repeat: a rater gives the same answer a different level the next time.",
            "note",
        ),
        document.Chart("Shares of the variance", "", [bars, document.Legend(names)]),
    ]
    if intervals:
        note = Markup(
            "Bar: 95 % interval over answers; {}the share. The intervals hold for other answers "
            "by these raters, not for other raters."
        ).format(document.MEAN)
        panels = [
            document.Chart(name, "", [document.Bars(bars_of_component, PERCENT_AXIS)])
            for name, bars_of_component in intervals.items()
        ]
        blocks.append(
            document.Chart("Each share with its interval", note, [document.Panels(panels)])
        )
    # The same numbers as a table, for readers who cannot see the drawing.
    if (table := build_variance_table(variances)).rows:
        blocks.append(table)
    return blocks
