"""Variance of the ratings of people and judges: how much stems from the answers, how much not."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from trustassay.core.json_form import JsonForm, as_json, fields_as_json
from trustassay.input.ratings import Rating
from trustassay.statistics import Floats, Places, variance
from trustassay.statistics.intervals import (
    MIN_UNITS,
    Interval,
    jackknife_interval,
    reason_too_few_units,
    unit_mean,
)
from trustassay.statistics.resampling import cluster_numbers

JUDGES, PEOPLE, RATERS = "judges", "people", "raters"


@dataclass(frozen=True, slots=True)
class VarianceComponent(JsonForm):
    """One component of the variance of ratings."""

    json_names = ("name", "variance", "estimate", "sd", "sd_interval", "share", "share_interval")
    name: str
    estimate: float
    """The unbiased estimate, which may lie below 0."""
    share: float | None
    """Its part of the sum of all components, in per cent; ``None`` where all ratings are the
    same."""
    share_interval: Interval | None = None
    """The 95 % interval of ``share``."""
    sd_interval: Interval | None = None
    """The 95 % interval of the standard deviation."""

    @property
    def variance(self) -> float:
        """The estimate, at least 0."""
        return max(self.estimate, 0.0)

    @property
    def sd(self) -> float:
        """The standard deviation, in units of the ratings."""
        return math.sqrt(self.variance)


@dataclass(frozen=True, slots=True)
class VarianceDecomposition:
    """The variance of the ratings of one group of raters."""

    group: str
    """``judges``, ``people``, or ``raters`` where the two are not told apart."""
    raters: int
    """The number of raters."""
    answers: int
    """The number of rated answers."""
    ratings: int
    """The number of ratings."""
    repeated: int
    """Answers that a rater rated more than once."""
    components: Sequence[VarianceComponent] = ()
    """Empty where the components cannot be estimated."""
    why: str = ""
    """Why there are no components."""
    without: str = ""
    """Why there are no intervals."""

    def component(self, name: str) -> VarianceComponent | None:
        """Return the component of this name, if these ratings allow estimating it."""
        return next((component for component in self.components if component.name == name), None)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            **fields_as_json(self, "raters", "answers", "ratings"),
            "answers_rated_again": self.repeated,
            **fields_as_json(self, "components", "why", "without"),
        }


@dataclass(frozen=True, slots=True)
class VarianceReport:
    """The decompositions of all groups, and the comparison of judges with people."""

    groups: Mapping[str, VarianceDecomposition] = field(default_factory=dict)
    difference: float | None = None
    """The standard deviation of judges at a repeat minus that of people, where both rated answers
    again."""
    difference_interval: Interval | None = None
    """The 95 % interval of ``difference``."""

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "groups": as_json(self.groups),
            "repeat_sd_difference": self.difference,
            "repeat_sd_difference_interval": self.difference_interval,
            "in_words": self.in_words(),
        }

    def in_words(self) -> str:
        """Write whether judges vary more or less than people."""
        judges, people = self.groups.get(JUDGES), self.groups.get(PEOPLE)
        if judges is None or people is None:
            (only,) = self.groups.values()
            return (
                f"{_describe_repeats(only)} A comparison of judges with people needs repeated "
                "ratings by both."
            )
        if self.difference is None:
            return (
                f"{_describe_repeats(judges)} {_describe_repeats(people)} Whether judges vary more "
                "or less than people is therefore unknown."
            )
        spread_of_judges, spread_of_people = (_format_spread(group) for group in (judges, people))
        message = (
            "Standard deviation between repeated ratings of the same answer: "
            f"{spread_of_judges} for a judge, {spread_of_people} for a person; "
        )
        if self.difference_interval is None:
            reason = judges.without or people.without or "leaving out any answer does not change it"
            return f"{message}whether they differ is unknown: {reason}."
        low, high = self.difference_interval
        # The interval decides, not the sign of the difference.
        if low <= 0 <= high:
            verdict = "no significant difference"
        else:
            verdict = f"judges vary {'more' if low > 0 else 'less'} than people"
        return f"{message}{verdict} (difference {self.difference:+.2f}, {low:+.2f} to {high:+.2f})."


def _describe_repeats(group: VarianceDecomposition) -> str:
    """Describe how far repeated ratings of a group differ, or why that is unknown."""
    who = {JUDGES: "judge", PEOPLE: "person"}.get(group.group, "rater")
    if not group.repeated:
        return (
            f"No answer was rated twice by the same {who}, so the variation between repeated "
            "ratings is unknown."
        )
    if group.component(variance.REPEAT) is None:
        return f"The variance of the {group.group} cannot be decomposed: {group.why}."
    return (
        "Standard deviation between repeated ratings of the same answer: "
        f"{_format_spread(group)} for a {who}."
    )


def _format_spread(group: VarianceDecomposition) -> str:
    """Write the standard deviation at a repeat with its interval and its share."""
    result = group.component(variance.REPEAT)
    assert result is not None
    ends = result.sd_interval
    details = [] if ends is None else [f"{ends[0]:.2f} to {ends[1]:.2f}"]
    details += [] if result.share is None else [f"{result.share:.0f} % of the variance"]
    return f"{result.sd:.2f}" + (f" ({'; '.join(details)})" if details else "")


def decompose_variances(
    ratings: Sequence[Rating],
    machines: Collection[str] = (),
    *,
    units: Mapping[str, int] | None = None,
) -> VarianceReport:
    """Decompose the variance of ratings, separately for people and judges.

    Intervals are 95 % jackknife intervals over units: each unit is left out in turn, for both
    groups at once. The raters are fixed: the intervals do not cover what other raters would give.

    Args:
        ratings: at least one, of any number of raters; some may be missing or repeated.
        machines: the raters that are judges; without any, all raters are one group.
        units: the number of the unit of an item. Any other item is a unit by itself, together with
            all models' answers to it.
    """
    places: dict[tuple[str, str], int] = {}
    for rating in ratings:
        # The same number for an answer in all groups, so that units can be left out together.
        places.setdefault((rating.item, rating.model), len(places))
    # 1. Number the answers and the units that they belong to.
    unit_of_answer = cluster_numbers([(units or {}).get(item, item) for item, _ in places])
    # 2. Divide the ratings into people and judges.
    by_group: dict[str, list[Rating]] = {}
    for rating in ratings:
        group = (JUDGES if rating.rater in machines else PEOPLE) if machines else RATERS
        by_group.setdefault(group, []).append(rating)
    # 3. Decompose each group, and again with each unit left out.
    result, spreads = {}, {}
    for group, ratings_of_group in by_group.items():
        try:
            # Not every design can be decomposed, for instance one rating per answer.
            table = _build_cells(ratings_of_group, places)
        except variance.NotEstimableError as error:
            result[group] = _count_ratings(group, ratings_of_group, why=str(error))
            continue
        components_by_block, is_left_out = [], []
        for weights in variance.leave_one_out_weights(unit_of_answer):
            weights_of_rows = weights[:, table.rows]
            components_by_block.append(table.components(weights_of_rows))
            # A unit that this group did not rate leaves it unchanged, and must not count as a
            # replicate.
            is_left_out.append((weights_of_rows == 0).any(axis=1))
        components_without_units, units_of = (
            np.concatenate(components_by_block),
            unit_of_answer[table.rows],
        )
        result[group] = _decompose(
            group,
            ratings_of_group,
            table,
            components_without_units[np.concatenate(is_left_out)],
            units_of,
        )
        # For the comparison all units are kept: both groups must be left out together.
        if variance.REPEAT in table.names and not result[group].without:
            spreads[group] = np.sqrt(
                np.maximum(components_without_units[:, table.names.index(variance.REPEAT)], 0.0)
            )
    return _compare_groups(result, spreads)


def _build_cells(
    ratings: Sequence[Rating], places: Mapping[tuple[str, str], int]
) -> variance.RatingCells:
    raters = {
        rater: at for at, rater in enumerate(dict.fromkeys(rating.rater for rating in ratings))
    }
    result = variance.build_cells(
        [places[rating.item, rating.model] for rating in ratings],
        [raters[rating.rater] for rating in ratings],
        [rating.value for rating in ratings],
        (len(places), len(raters)),
    )
    # Raises NotEstimableError where the ratings cannot tell the components apart.
    result.components()
    return result


def _count_ratings(group: str, ratings: Sequence[Rating], **more: Any) -> VarianceDecomposition:
    repeated_answers = {(rating.item, rating.model) for rating in ratings if rating.repeat}
    answers = {(rating.item, rating.model) for rating in ratings}
    raters = {rating.rater for rating in ratings}
    return VarianceDecomposition(
        group, len(raters), len(answers), len(ratings), len(repeated_answers), **more
    )


def _decompose(
    group: str,
    ratings: Sequence[Rating],
    table: variance.RatingCells,
    components_without_units: Floats,
    units: Places,
) -> VarianceDecomposition:
    """Decompose the ratings of a group.

    ``components_without_units`` holds the components with each unit left out in turn, shape (units,
    components).
    """
    estimate = table.components()[0]
    part = variance.percent_shares(estimate)
    # The effective number of units: unequal sizes are worth less than their count.
    worth = unit_mean(np.zeros(len(units)), units).units
    without = (
        reason_too_few_units(len(units), len(np.unique(units)), worth, MIN_UNITS, "answers") or ""
    )
    # Shares of a total variance of 0 are not defined.
    if np.isnan(part).any():
        without = "all ratings are the same"
    # Leaving out a unit can remove the only answer that two raters share.
    elif not without and np.isnan(components_without_units).any():
        without = "too few answers were rated by two raters"
    components = []
    for at, name in enumerate(table.names):
        value, share = float(estimate[at]), None if np.isnan(part[at]) else float(part[at])
        intervals: tuple[Interval | None, Interval | None] = (None, None)
        if share is not None and not without:
            # Intervals on the logit and log scales stay within their bounds.
            within = jackknife_interval(
                share / 100, variance.percent_shares(components_without_units)[:, at] / 100, "logit"
            )
            # Estimates below 0 are taken as 0 in replicates as well.
            spread = np.sqrt(np.maximum(components_without_units[:, at], 0.0))
            intervals = (
                within and (100 * within[0], 100 * within[1]),
                jackknife_interval(math.sqrt(max(value, 0.0)), spread, "log"),
            )
        components.append(VarianceComponent(name, value, share, *intervals))
    return _count_ratings(group, ratings, components=components, without=without)


def _compare_groups(
    by_group: Mapping[str, VarianceDecomposition], spreads: Mapping[str, Floats]
) -> VarianceReport:
    """Compare the standard deviations of judges and people at a repeat."""
    judges, people = (
        by_group[group].component(variance.REPEAT) if group in by_group else None
        for group in (JUDGES, PEOPLE)
    )
    if judges is None or people is None:
        return VarianceReport(by_group)
    difference = judges.sd - people.sd
    # The difference is known, its uncertainty is not.
    if JUDGES not in spreads or PEOPLE not in spreads:
        return VarianceReport(by_group, difference)
    spread_without_units = spreads[JUDGES] - spreads[PEOPLE]
    return VarianceReport(
        by_group, difference, jackknife_interval(difference, spread_without_units)
    )
