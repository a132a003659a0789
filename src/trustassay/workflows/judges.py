"""People and judges, one question of variance: how much of it is the answer's, and how much not."""

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from trustassay.data.ratings import Rating, Ratings
from trustassay.errors import RunFolderError, UsageError
from trustassay.metrics.judge import Judge
from trustassay.metrics.judge.options import RubricError
from trustassay.metrics.judge.votes import VoteRow
from trustassay.registry import metric_from_settings
from trustassay.runs.folder import RunFolder
from trustassay.statistics import Floats, Places, variance
from trustassay.statistics.intervals import (
    FEWEST,
    Interval,
    jackknife_interval,
    too_few_units,
    unit_mean,
)
from trustassay.statistics.resampling import cluster_numbers
from trustassay.views import Rows
from trustassay.workflows.json_form import JsonForm, as_json, fields_as_json

JUDGES, PEOPLE, RATERS = "judges", "people", "raters"


@dataclass(frozen=True, slots=True)
class Component(JsonForm):
    """One part of the variance: what it comes to, 0 where the estimate lies below.

    share: of the sum of all parts, in %; ``None`` where all ratings are the same.
    """

    json_names = ("name", "variance", "estimate", "sd", "sd_interval", "share", "share_interval")
    name: str
    estimate: float
    share: float | None
    share_interval: Interval | None = None
    sd_interval: Interval | None = None

    @property
    def variance(self) -> float:
        """The estimate, which is not taken below 0."""
        return max(self.estimate, 0.0)

    @property
    def sd(self) -> float:
        """The standard deviation, in units of the ratings."""
        return math.sqrt(self.variance)


@dataclass(frozen=True, slots=True)
class Decomposition:
    """The variance of the ratings of one group of raters.

    repeated: answers that a rater rated more than once. components: none where ``why`` says what
    keeps them from being told apart. without: why there are no intervals.
    """

    group: str
    raters: int
    answers: int
    ratings: int
    repeated: int
    components: Sequence[Component] = ()
    why: str = ""
    without: str = ""

    def component(self, name: str) -> Component | None:
        """Return the component of this name, if these ratings tell it apart."""
        return next((one for one in self.components if one.name == name), None)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            **fields_as_json(self, "raters", "answers", "ratings"),
            "answers_rated_again": self.repeated,
            **fields_as_json(self, "components", "why", "without"),
        }


@dataclass(frozen=True, slots=True)
class Variances:
    """The decompositions of all groups, and what they say of judges and people.

    difference: the judges' standard deviation at a repeat less the people's, where both rated
    answers again, with its interval.
    """

    groups: Mapping[str, Decomposition] = field(default_factory=dict)
    difference: float | None = None
    difference_interval: Interval | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "groups": as_json(self.groups),
            "repeat_sd_difference": self.difference,
            "repeat_sd_difference_interval": self.difference_interval,
            "in_words": self.in_words(),
        }

    def in_words(self) -> str:
        """Answer in a sentence whether judges vary more or less than people."""
        judges, people = self.groups.get(JUDGES), self.groups.get(PEOPLE)
        if judges is None or people is None:
            (only,) = self.groups.values()
            return (
                f"{_again(only)} Only repeated ratings by both show whether judges vary more or "
                "less than people."
            )
        if self.difference is None:
            return (
                f"{_again(judges)} {_again(people)} So it is not known whether judges vary "
                "more or less than people."
            )
        one, other = (_spread(group) for group in (judges, people))
        message = (
            f"Asked again about the same answer, a judge differs from itself by a standard "
            f"deviation of {one}, a person from themselves by {other}: "
        )
        if self.difference_interval is None:
            reason = judges.without or people.without or "it is the same without any of the answers"
            return f"{message}whether they differ is not known: {reason}."
        low, high = self.difference_interval
        if low <= 0 <= high:
            verdict = "there is no significant difference"
        else:
            verdict = f"the judges vary {'more' if low > 0 else 'less'} than the people"
        return f"{message}{verdict} (difference {self.difference:+.2f}, {low:+.2f} to {high:+.2f})."


def _again(group: Decomposition) -> str:
    """Say how far one group differs from itself, or why that is not known."""
    own = "itself" if group.group == JUDGES else "themselves"
    who = {JUDGES: "a judge", PEOPLE: "a person"}.get(group.group, "a rater")
    if not group.repeated:
        return (
            f"No answer was rated twice by the same {who.removeprefix('a ')}, so how far {who} "
            f"differs from {own} is not known."
        )
    if group.component(variance.REPEAT) is None:
        return f"The variance of the {group.group} cannot be decomposed: {group.why}."
    return (
        f"Asked again about the same answer, {who} differs from {own} by a standard deviation of "
        f"{_spread(group)}."
    )


def _spread(group: Decomposition) -> str:
    """Write the standard deviation at a repeat with its interval and its share."""
    result = group.component(variance.REPEAT)
    assert result is not None
    ends = result.sd_interval
    within = "" if ends is None else f" ({ends[0]:.2f} to {ends[1]:.2f})"
    of_all = "" if result.share is None else f", {result.share:.0f} % of the variance"
    return f"{result.sd:.2f}{within}{of_all}"


def variances(
    ratings: Sequence[Rating],
    machines: Collection[str] = (),
    *,
    units: Mapping[str, int] | None = None,
) -> Variances:
    """Take the variance of ratings apart, of people and judges each by themselves.

    Args:
        ratings: of any number of raters, missing and repeated ones as they come; one at least.
        machines: the raters that are judges; without any, all raters are one group.
        units: the number of the unit to which an item belongs; others are units by themselves, with
            all models' answers to them.

    Intervals are 95 % intervals over units, each of which is left out in turn, for both groups at
    once. The raters stay those that there are: what others would give, intervals do not say.
    """
    places: dict[tuple[str, str], int] = {}
    for one in ratings:
        places.setdefault((one.item, one.model), len(places))
    own_units = cluster_numbers([(units or {}).get(item, item) for item, _ in places])
    by_group: dict[str, list[Rating]] = {}
    for one in ratings:
        group = (JUDGES if one.rater in machines else PEOPLE) if machines else RATERS
        by_group.setdefault(group, []).append(one)
    result, spreads = {}, {}
    for group, own in by_group.items():
        try:
            table = _cells(own, places)
        except variance.NotEstimableError as error:
            result[group] = _counted(group, own, why=str(error))
            continue
        without, touched = [], []
        for weights in variance.weights_without(own_units):
            kept = weights[:, table.rows]
            without.append(table.components(kept))
            touched.append((kept == 0).any(axis=1))
        left, units_of = np.concatenate(without), own_units[table.rows]
        result[group] = _decomposed(group, own, table, left[np.concatenate(touched)], units_of)
        if variance.REPEAT in table.names and not result[group].without:
            spreads[group] = np.sqrt(np.maximum(left[:, table.names.index(variance.REPEAT)], 0.0))
    return _compared(result, spreads)


def _cells(own: Sequence[Rating], places: Mapping[tuple[str, str], int]) -> variance.Cells:
    raters = {rater: at for at, rater in enumerate(dict.fromkeys(one.rater for one in own))}
    result = variance.cells(
        [places[one.item, one.model] for one in own],
        [raters[one.rater] for one in own],
        [one.value for one in own],
        (len(places), len(raters)),
    )
    result.components()  # raises where the ratings do not tell them apart
    return result


def _counted(group: str, own: Sequence[Rating], **more: Any) -> Decomposition:
    again = {(one.item, one.model) for one in own if one.repeat}
    answers = {(one.item, one.model) for one in own}
    raters = {one.rater for one in own}
    return Decomposition(group, len(raters), len(answers), len(own), len(again), **more)


def _decomposed(
    group: str, own: Sequence[Rating], table: variance.Cells, left: Floats, units: Places
) -> Decomposition:
    """Decompose a group; ``left``: the components without each unit, shape (units, components)."""
    estimate = table.components()[0]
    part = variance.shares(estimate)
    worth = unit_mean(np.zeros(len(units)), units).units
    without = too_few_units(len(units), len(np.unique(units)), worth, FEWEST, "answers") or ""
    if np.isnan(part).any():
        without = "all ratings are the same"
    elif not without and np.isnan(left).any():
        without = "too few answers were rated by two raters"
    components = []
    for at, name in enumerate(table.names):
        value, share = float(estimate[at]), None if np.isnan(part[at]) else float(part[at])
        intervals: tuple[Interval | None, Interval | None] = (None, None)
        if share is not None and not without:
            within = jackknife_interval(share / 100, variance.shares(left)[:, at] / 100, "logit")
            spread = np.sqrt(np.maximum(left[:, at], 0.0))
            intervals = (
                within and (100 * within[0], 100 * within[1]),
                jackknife_interval(math.sqrt(max(value, 0.0)), spread, "log"),
            )
        components.append(Component(name, value, share, *intervals))
    return _counted(group, own, components=components, without=without)


def _compared(found: Mapping[str, Decomposition], spreads: Mapping[str, Floats]) -> Variances:
    """Add how far the judges' deviation at a repeat lies from the people's."""
    judges, people = (
        found[group].component(variance.REPEAT) if group in found else None
        for group in (JUDGES, PEOPLE)
    )
    if judges is None or people is None:
        return Variances(found)
    difference = judges.sd - people.sd
    if JUDGES not in spreads or PEOPLE not in spreads:
        return Variances(found, difference)
    left = spreads[JUDGES] - spreads[PEOPLE]
    return Variances(found, difference, jackknife_interval(difference, left))


METRIC = "judge"


def votes_of(path: Path) -> Ratings | None:
    """Return the votes of the judges of a run, or ``None`` where it holds none.

    A judge is a rater, a later vote on the same answer a repeat, whichever text stood first. Levels
    that are words are categories in the order of their values.

    Raises:
        RunFolderError: the folder is not a run's, or the run's rubric cannot be read any more.
    """
    folder = RunFolder(path)
    run = folder.read_run()
    if run is None:
        raise RunFolderError(f"{path}: holds no run")
    if METRIC not in run["metrics"]:
        return None
    try:
        metric = metric_from_settings(METRIC, run["metrics"][METRIC])
    except (RubricError, OSError) as error:
        raise RunFolderError(f"{path}: the rubric of its judges cannot be read: {error}") from None
    if not isinstance(metric, Judge) or metric.by != "model":
        return None
    scale = metric.scale
    upwards = sorted(scale.values, key=scale.values.__getitem__)
    places = {
        label: float(label if scale.numeric else place) for place, label in enumerate(upwards)
    }
    models = {one["id"]: str(one.get("model") or "") for one in folder.sample_records()}
    result: list[Rating] = []
    for assessment in folder.assessments(METRIC):
        seen: Counter[str] = Counter()
        for vote in Rows(assessment.evidence, VoteRow).of(VoteRow):
            if vote.level is None:
                continue
            if vote.level not in places:
                raise RunFolderError(
                    f"{path}: {assessment.id!r} holds a vote for {vote.level[:40]!r}, which is not "
                    f"a level of the rubric {scale.name}; restore the rubric that it was judged by"
                )
            own = (assessment.id, vote.judge, places[vote.level], seen[vote.judge])
            result.append(Rating(*own, models.get(assessment.id, "")))
            seen[vote.judge] += 1
    if not result:
        return None
    categories = () if scale.numeric else tuple(upwards)
    return Ratings(result, categories, scale.ordinal, tuple(sorted(places.values())))


def joined(given: Ratings, votes: Ratings) -> Ratings:
    """Return ratings and votes together; an answer is the same where its id is.

    A rating or vote that names no model is of the answer with its id, whichever model wrote that.

    Raises:
        ValueError: a rater has the name of a judge, or words stand beside numbers or other words.
    """
    raters = {one.rater for one in given.ratings}
    if both := sorted(raters & {one.rater for one in votes.ratings}):
        raise UsageError(f"a rater and a judge have the same name {both[0][:60]!r}")
    if bool(given.categories) != bool(votes.categories):
        kinds = ("words", "numbers") if given.categories else ("numbers", "words")
        raise UsageError(f"the ratings are {kinds[0]}, and the judges' levels {kinds[1]}")
    categories = _together(given, votes) if given.categories else ()
    models: dict[str, set[str]] = {}
    for one in given.ratings:
        models.setdefault(one.item, set()).add(one.model)
    result = [replace(one, value=_moved(one.value, given, categories)) for one in given.ratings]
    for one in votes.ratings:
        model = one.model
        rated = models.get(one.item, {model})
        if model and model not in rated and "" in rated:
            model = ""
        elif not model and len(rated) == 1:
            (model,) = rated  # a sample without a model, of which annotate names the one asked
        result.append(replace(one, value=_moved(one.value, votes, categories), model=model))
    ordered = votes.ordered or (given.ordered and bool(given.categories))
    return Ratings(result, categories, ordered, _scale(given, votes, categories), given.missing)


def _scale(given: Ratings, votes: Ratings, categories: Sequence[str]) -> tuple[float, ...]:
    """Return all values of both scales; none where a rating is outside of what is known."""
    if given.categories:
        whole = given.scale or set(categories) <= {label.lower() for label in votes.categories}
        return tuple(map(float, range(len(categories)))) if whole else ()
    known = {*given.scale, *votes.scale}
    rated = {one.value for of in (given, votes) for one in of.ratings}
    return tuple(sorted(known)) if rated <= known else ()


def _together(given: Ratings, votes: Ratings) -> tuple[str, ...]:
    """Return the categories of the side that has an order, which then holds the other's."""
    levels = tuple(label.lower() for label in votes.categories)
    if given.ordered and not set(levels) <= set(given.categories):
        strange = next(level for level in levels if level not in given.categories)
        raise UsageError(f"the judges' level {strange!r} is not among the levels that were given")
    if given.ordered:
        return tuple(given.categories)
    if votes.ordered and not set(given.categories) <= set(levels):
        strange = next(word for word in given.categories if word not in levels)
        raise UsageError(f"the rating {strange[:40]!r} is not a level of the run's judges")
    if votes.ordered:
        return levels
    return tuple(dict.fromkeys((*levels, *given.categories)))


def _moved(value: float, of: Ratings, categories: Sequence[str]) -> float:
    """Return the place of a word among other categories; a number stays."""
    if not of.categories:
        return value
    return float(categories.index(of.categories[int(value)].lower()))
