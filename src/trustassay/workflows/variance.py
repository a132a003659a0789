"""People and judges, one question of variance: how much of it is the answer's, and how much not."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trustassay.data.ratings import Rating
from trustassay.statistics.bootstrap import expanded_interval
from trustassay.statistics.intervals import FEWEST, too_few
from trustassay.statistics.randomness import generator
from trustassay.statistics.variance import (
    REPEAT,
    Cells,
    NotEstimableError,
    cells,
    centred,
    drawn_weights,
    shares,
)

__all__ = ["JUDGES", "PEOPLE", "RATERS", "Component", "Decomposition", "Variances", "variances"]

Floats = NDArray[np.float64]
Interval = tuple[float, float]

JUDGES, PEOPLE, RATERS = "judges", "people", "raters"
LEAST_DRAWS = 0.9
"""Share of the draws that have to tell the components apart for an interval."""


@dataclass(frozen=True, slots=True)
class Component:
    """One part of the variance: what it comes to, 0 where the estimate lies below.

    share: of the sum of all parts, in %; ``None`` where all ratings are the same.
    """

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

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "name": self.name,
            "variance": self.variance,
            "estimate": self.estimate,
            "sd": self.sd,
            "sd_interval": self.sd_interval,
            "share": self.share,
            "share_interval": self.share_interval,
        }


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
            "raters": self.raters,
            "answers": self.answers,
            "ratings": self.ratings,
            "answers_rated_again": self.repeated,
            "components": [one.to_dict() for one in self.components],
            "why": self.why,
            "without": self.without,
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
            "groups": {name: one.to_dict() for name, one in self.groups.items()},
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
                f"{_again(only)} Whether judges vary more or less than people can be told only "
                "from repeated ratings by both."
            )
        if self.difference is None:
            return (
                f"{_again(judges)} {_again(people)} So it cannot be said whether judges vary "
                "more or less than people."
            )
        one, other = (_spread(group) for group in (judges, people))
        told = (
            f"Asked again about the same answer, a judge differs from itself by a standard "
            f"deviation of {one}, a person from themselves by {other}: "
        )
        if self.difference_interval is None:
            reason = judges.without or people.without
            return f"{told}whether they differ cannot be said: {reason}."
        low, high = self.difference_interval
        if low <= 0 <= high:
            verdict = "no difference can be told"
        else:
            verdict = f"the judges vary {'more' if low > 0 else 'less'} than the people"
        return f"{told}{verdict} (difference {self.difference:+.2f}, {low:+.2f} to {high:+.2f})."


def _again(group: Decomposition) -> str:
    """Say how far one group differs from itself, or why that is not known."""
    own = "itself" if group.group == JUDGES else "themselves"
    who = {JUDGES: "a judge", PEOPLE: "a person"}.get(group.group, "a rater")
    if not group.repeated:
        return (
            f"No answer was rated twice by the same {who.removeprefix('a ')}, so how far {who} "
            f"differs from {own} is not known."
        )
    if group.component(REPEAT) is None:
        return f"The variance of the {group.group} cannot be taken apart: {group.why}."
    return (
        f"Asked again about the same answer, {who} differs from {own} by a standard deviation of "
        f"{_spread(group)}."
    )


def _spread(group: Decomposition) -> str:
    """Write the standard deviation at a repeat with its interval and its share."""
    found = group.component(REPEAT)
    assert found is not None
    within = ""
    if found.sd_interval is not None:
        within = f" ({found.sd_interval[0]:.2f} to {found.sd_interval[1]:.2f})"
    of_all = "" if found.share is None else f", {found.share:.0f} % of the variance"
    return f"{found.sd:.2f}{within}{of_all}"


def variances(
    ratings: Sequence[Rating],
    machines: Collection[str] = (),
    *,
    seed: int = 0,
    replicates: int = 1000,
) -> Variances:
    """Take the variance of ratings apart, of people and judges each by themselves.

    Args:
        ratings: of any number of raters, missing and repeated ones as they come; one at least.
        machines: the raters that are judges; without any, all raters are one group.

    Intervals are 95 % bootstrap intervals over answers, the same draws for both groups. The raters
    stay those that there are: what others would give, intervals do not say.
    """
    places: dict[tuple[str, str], int] = {}
    for one in ratings:
        places.setdefault((one.item, one.model), len(places))
    by_group: dict[str, list[Rating]] = {}
    for one in ratings:
        group = (JUDGES if one.rater in machines else PEOPLE) if machines else RATERS
        by_group.setdefault(group, []).append(one)
    made: dict[str, Cells | str] = {}
    for group, own in by_group.items():
        try:
            made[group] = _cells(own, places)
        except NotEstimableError as error:
            made[group] = str(error)
    rng = generator(seed, "variance")
    drawn: dict[str, list[Floats]] = {group: [] for group in made}
    if any(not isinstance(one, str) for one in made.values()):
        for weights in drawn_weights(len(places), rng, replicates):
            for group, table in made.items():
                if not isinstance(table, str):
                    drawn[group].append(table.components(weights[:, table.rows]))
    found, spreads = {}, {}
    for group, own in by_group.items():
        draws = np.concatenate(drawn[group]) if drawn[group] else np.empty((0, 0))
        found[group], spreads[group] = _decomposed(group, own, made[group], draws)
    return _compared(found, spreads)


def _cells(own: Sequence[Rating], places: Mapping[tuple[str, str], int]) -> Cells:
    raters = {rater: at for at, rater in enumerate(dict.fromkeys(one.rater for one in own))}
    found = cells(
        [places[one.item, one.model] for one in own],
        [raters[one.rater] for one in own],
        [one.value for one in own],
        (len(places), len(raters)),
    )
    found.components()  # raises where the ratings do not tell them apart
    return found


def _decomposed(
    group: str, own: Sequence[Rating], table: Cells | str, drawn: Floats
) -> tuple[Decomposition, Floats | None]:
    """Return the decomposition of a group, and its draws of the deviation at a repeat."""
    again = {(one.item, one.model) for one in own if one.repeat}
    answers = len({(one.item, one.model) for one in own})
    told = (group, len({one.rater for one in own}), answers, len(own), len(again))
    if isinstance(table, str):
        return Decomposition(*told, why=table), None
    estimate = table.components()[0]
    part = shares(estimate)
    sound = ~np.isnan(drawn).any(axis=1)
    without = too_few("answers", answers, FEWEST) or ""
    if np.isnan(part).any():
        without = "all ratings are the same"
    elif not without and sound.mean() < LEAST_DRAWS:
        without = "too few answers were rated by two raters"
    if without:
        components = [
            Component(name, float(value), None if np.isnan(share) else float(share))
            for name, value, share in zip(table.names, estimate, part, strict=True)
        ]
        return Decomposition(*told, components, without=without), None
    moved = np.full(drawn.shape, np.nan)
    moved[sound] = centred(drawn[sound], estimate)
    of_sum, deviations = shares(moved), np.sqrt(np.maximum(moved, 0.0))
    components = [
        Component(
            name,
            float(estimate[at]),
            float(part[at]),
            expanded_interval(_finite(of_sum[:, at]), answers),
            expanded_interval(_finite(deviations[:, at]), answers),
        )
        for at, name in enumerate(table.names)
    ]
    spread = deviations[:, table.names.index(REPEAT)] if REPEAT in table.names else None
    return Decomposition(*told, components), spread


def _finite(values: Floats) -> Floats:
    return values[~np.isnan(values)]


def _compared(
    found: Mapping[str, Decomposition], spreads: Mapping[str, Floats | None]
) -> Variances:
    """Add how far the judges' deviation at a repeat lies from the people's."""
    judges, people = (
        found[group].component(REPEAT) if group in found else None for group in (JUDGES, PEOPLE)
    )
    if judges is None or people is None:
        return Variances(found)
    difference = judges.sd - people.sd
    one, other = spreads[JUDGES], spreads[PEOPLE]
    if one is None or other is None:
        return Variances(found, difference)
    n = min(found[JUDGES].answers, found[PEOPLE].answers)
    return Variances(found, difference, expanded_interval(_finite(one - other), n))
