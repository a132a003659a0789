"""How scores are distributed: by verdict, model and domain, with ratings; memory is bounded."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trustassay.statistics.regression import Line, LineSums, Moments

BINS = 20
MOST_VERDICTS = 50
MOST_SERIES = 6
NO_VERDICT = "no verdict"
OTHER = "other"
FINE = 400
"""Bins that are counted; a drawing gathers them as it needs."""
MOST_KEPT = 200
"""Groups that are distinguished while counting; what comes later counts as others."""
MOST_SHOWN = 60
"""Groups that are drawn: ten models in three domains, as in the paper, and twice as many."""
LONGEST_NAME = 200
LARGEST_RATING = 1e100
"""A label beyond is not a rating: its square would not be a number any more."""
SHOWN_BINS = 40
RATED_BINS = 10
KEPT_ON_AXIS = 0.99


class Histogram:
    """Counts of per-sample scores in 20 equal bins, each split by verdict.

    Memory does not grow with the number of scores: of more than 50 different verdicts, later ones
    count as ``other``. A score outside the range counts in the bin at that end. ``verdicts`` come
    first, in their order, even without scores, so that each keeps its colour.
    """

    def __init__(self, low: float = 0.0, high: float = 1.0, verdicts: Sequence[str] = ()) -> None:
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise ValueError(f"a score range runs from low to high, got {low} to {high}")
        self.low = low
        self.high = high
        self.without_score = 0
        self.rows: dict[str, list[int]] = {name: [0] * BINS for name in verdicts}
        self._declared = tuple(verdicts)

    def add(self, score: float | None, verdict: str | None) -> None:
        """Count one assessment, failed ones and others without a score apart."""
        if score is None:
            self.without_score += 1
            return
        if not math.isfinite(score):
            raise ValueError(f"a score is a finite number, got {score}")
        name = verdict or NO_VERDICT
        if name not in self.rows and len(self.rows) >= MOST_VERDICTS:
            name = OTHER
        share = (score - self.low) / (self.high - self.low)
        place = min(BINS - 1, max(0, math.floor(share * BINS)))
        self.rows.setdefault(name, [0] * BINS)[place] += 1

    @property
    def counts(self) -> list[int]:
        """The number of scores in each bin."""
        return [sum(column) for column in zip([0] * BINS, *self.rows.values(), strict=True)]

    @property
    def verdicts(self) -> dict[str, int]:
        """The number of scores under each verdict: the declared ones, then by frequency."""
        totals = {name: sum(row) for name, row in self.rows.items()}
        others = [item for item in totals.items() if item[0] not in self._declared]
        declared = {name: totals[name] for name in self._declared}
        return declared | dict(sorted(others, key=lambda item: -item[1]))

    @property
    def n(self) -> int:
        """The number of scores."""
        return sum(map(sum, self.rows.values()))

    def edges(self, index: int) -> tuple[float, float]:
        """Return the lower and upper bound of a bin."""
        width = (self.high - self.low) / BINS
        return self.low + index * width, self.low + (index + 1) * width


class Series(NamedTuple):
    """One colour of a stacked histogram."""

    name: str
    counts: Sequence[int]
    total: int

    @classmethod
    def all_of(cls, histogram: Histogram) -> "list[Series]":
        """Return the verdicts as series, the rarest ones of more than six gathered as one."""
        names = list(histogram.verdicts)
        if len(names) > MOST_SERIES:
            names = [name for name in names if name != OTHER]
        own = names if len(names) <= MOST_SERIES else names[: MOST_SERIES - 1]
        rest = [row for name, row in histogram.rows.items() if name not in own]
        series = [cls(name, histogram.rows[name], sum(histogram.rows[name])) for name in own]
        if rest:
            counts = [sum(column) for column in zip(*rest, strict=True)]
            series.append(cls(OTHER, counts, sum(counts)))
        return series


class Name(NamedTuple):
    """What a group's samples share; ``None`` if they name none."""

    model: str | None
    domain: str | None


class RatedBin(NamedTuple):
    """The ratings of the samples whose score lies in one bin; ``error`` is that of the mean."""

    low: float
    high: float
    n: int
    mean: float
    error: float | None


@dataclass
class Group:
    """What is known of one group's scores and ratings; groups can be added together."""

    scores: Moments = field(default_factory=Moments)
    stable: Moments = field(default_factory=Moments)
    ratings: Moments = field(default_factory=Moments)
    stable_ratings: Moments = field(default_factory=Moments)
    sums: LineSums = field(default_factory=LineSums)
    counts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(FINE, np.int64))
    rated: list[Moments] | None = None

    @property
    def n(self) -> int:
        """The number of scores."""
        return self.scores.n

    @property
    def line(self) -> Line | None:
        """The least-squares line of rating over score."""
        return self.sums.line()

    def add(self, place: int, score: float, rating: float | None, *, stable: bool) -> None:
        """Count a score that falls into the fine bin ``place``."""
        self.counts[place] += 1
        self.scores.add(score)
        if stable:
            self.stable.add(score)
        if rating is not None and abs(rating) < LARGEST_RATING:
            self.ratings.add(rating)
            self.sums.add(score, rating)
            if self.rated is None:
                self.rated = [Moments() for _ in range(FINE)]
            self.rated[place].add(rating)
            if stable:
                self.stable_ratings.add(rating)

    def __add__(self, other: "Group") -> "Group":
        rated = self.rated or other.rated
        if self.rated and other.rated:
            rated = [a + b for a, b in zip(self.rated, other.rated, strict=True)]
        names = ("scores", "stable", "ratings", "stable_ratings", "sums", "counts")
        sums = {name: getattr(self, name) + getattr(other, name) for name in names}
        return Group(**sums, rated=rated)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form; what there is nothing to say of is left out."""
        parts = {"score": self.scores, "stable_score": self.stable, "rating": self.ratings}
        parts["stable_rating"] = self.stable_ratings
        result: dict[str, Any] = {
            name: {"n": one.n, "mean": one.mean, "error": one.error}
            for name, one in parts.items()
            if one.n
        }
        if line := self.line:
            result["line"] = {
                "slope": line.slope,
                "slope_interval": line.slope_interval,
                "intercept": line.intercept,
                "intercept_interval": line.intercept_interval,
            }
        return result


class Row(NamedTuple):
    """A group in a column; ``margin`` says that it holds all models."""

    model: str | None
    group: Group
    margin: bool = False


class Column(NamedTuple):
    """The groups of one domain, a margin first; ``margin`` says that it holds all domains."""

    domain: str | None
    rows: Sequence[Row]
    margin: bool = False


def _column(
    domain: str | None, cells: Mapping[Name, Group], whole: Group, *, margin: bool = False
) -> Column:
    rows = [Row(name.model, group) for name, group in cells.items()]
    if len(rows) > 1:
        rows.insert(0, Row(None, whole, margin=True))
    return Column(domain, rows, margin)


@dataclass(eq=False)
class Groups:
    """The scores of one metric by model and domain.

    low, high: the metric's range; scores beyond it count at its ends. lower_is_better: which end is
    the good one. stable_below: scores below it count as stable, where the metric has such a bound.
    domain_field: the name of the field that holds a sample's domain, to be told. others: of groups
    that came when there were too many.
    """

    low: float = 0.0
    high: float = 1.0
    _: KW_ONLY
    lower_is_better: bool = False
    stable_below: float | None = None
    domain_field: str = "domain"
    cells: dict[Name, Group] = field(default_factory=dict)
    others: Group = field(default_factory=Group)

    def add(self, model: str | None, domain: object, score: float, rating: float | None) -> None:
        """Count the score of one sample, and its rating if it has one."""
        name = Name(_short(model), _short(domain))
        group = self.cells.get(name)
        if group is None:
            group = self.others
            if len(self.cells) < MOST_KEPT:
                group = self.cells[name] = Group()
        share = (score - self.low) / (self.high - self.low)
        place = min(FINE - 1, max(0, math.floor(share * FINE + 1e-9)))
        stable = self.stable_below is not None and score < self.stable_below
        group.add(place, score, rating, stable=stable)

    @property
    def whole(self) -> Group:
        """All samples together."""
        return sum([*self.cells.values(), self.others], Group())

    @property
    def several(self) -> bool:
        """Whether there is more than one group."""
        return len(self.cells) > 1

    @property
    def worth_showing(self) -> bool:
        """Whether groups or ratings say more than the metric's own figures do."""
        return self.several or any(group.ratings.n for group in self.cells.values())

    @property
    def has_domains(self) -> bool:
        """Whether any sample names a domain."""
        return any(name.domain is not None for name in self.cells)

    def shown(self) -> dict[Name, Group]:
        """Return the largest groups, sixty at most, by domain, the models of each in the same
        order: the one with the best mean score first.
        """
        largest = sorted(self.cells.items(), key=lambda item: -item[1].n)[:MOST_SHOWN]
        models = {name.model: self._rank(self.model(name.model)) for name, _ in largest}
        sizes = {
            domain: -sum(group.n for name, group in largest if name.domain == domain)
            for domain in {name.domain for name, _ in largest}
        }

        def order(item: tuple[Name, Group]) -> tuple[int, str, float, str]:
            domain, model = item[0].domain, item[0].model
            return sizes[domain], domain or "", models[model], model or ""

        return dict(sorted(largest, key=order))

    def by_domain(self) -> dict[str | None, dict[Name, Group]]:
        """Return the shown groups by their domain."""
        result: dict[str | None, dict[Name, Group]] = {}
        for name, group in self.shown().items():
            result.setdefault(name.domain, {})[name] = group
        return result

    def models(self) -> dict[Name, Group]:
        """Return the models of the shown groups over all of their domains, best mean first."""
        names = dict.fromkeys(name.model for name in self.shown())
        result = {Name(model, None): self.model(model) for model in names}
        return dict(sorted(result.items(), key=lambda item: self._rank(item[1])))

    def columns(self) -> list[Column]:
        """Return the shown groups as Figure 1 of the paper has them: a column for each domain with
        all models first, and last the column of all domains. A margin of one group is left out.
        """
        domains = self.by_domain()
        result = [_column(one, cells, self.domain(one)) for one, cells in domains.items()]
        if len(domains) > 1:
            result.append(_column(None, self.models(), self.whole, margin=True))
        return result

    def domain(self, domain: str | None) -> Group:
        """Return all samples of a domain."""
        return sum((one for name, one in self.cells.items() if name.domain == domain), Group())

    def model(self, model: str | None) -> Group:
        """Return all samples of a model."""
        return sum((one for name, one in self.cells.items() if name.model == model), Group())

    def rest(self) -> tuple[int, bool, Group]:
        """Return the groups that are not shown: how many, whether there are more, and their sum."""
        shown = self.shown()
        left = [group for name, group in self.cells.items() if name not in shown]
        return len(left), bool(self.others.n), sum([*left, self.others], Group())

    def _rank(self, group: Group) -> float:
        return group.scores.mean if self.lower_is_better else -group.scores.mean

    def axis(self) -> int:
        """Return how many fine bins the drawings show, from the low end on.

        All, unless lower is better and 99 % of the scores lie in the first tenth, two tenths...
        """
        counts = self.whole.counts
        if not self.lower_is_better or not counts.sum():
            return FINE
        reached = np.cumsum(counts)[SHOWN_BINS - 1 :: SHOWN_BINS] >= KEPT_ON_AXIS * counts.sum()
        return SHOWN_BINS * (int(np.argmax(reached)) + 1)

    def value(self, place: float) -> float:
        """Return the score at the lower edge of a fine bin."""
        return self.low + (self.high - self.low) * place / FINE

    def rated_bins(self, group: Group) -> list[RatedBin]:
        """Return the ratings in ten bins of the axis, the last with all beyond; no empty ones."""
        if not group.rated:
            return []
        step = self.axis() // RATED_BINS
        result = []
        for number in range(RATED_BINS):
            last = number == RATED_BINS - 1
            places = group.rated[number * step : None if last else (number + 1) * step]
            one = sum(places, Moments())
            if one.n:
                edges = self.value(number * step), self.value((number + 1) * step)
                result.append(RatedBin(*edges, one.n, one.mean, one.error))
        return result

    def to_dict(self) -> dict[str, Any]:
        """Return the block of ``summary.json``: every group that was counted, largest first."""
        largest = sorted(self.cells.items(), key=lambda item: -item[1].n)
        result: dict[str, Any] = {"domain_field": self.domain_field}
        if self.stable_below is not None:
            result["stable_below"] = self.stable_below
        result["all"] = self.whole.to_dict()
        result["groups"] = [{**name._asdict(), **group.to_dict()} for name, group in largest]
        if self.others.n:
            result["others"] = self.others.to_dict()
        return result


def _short(name: object) -> str | None:
    if name is None or name == "":
        return None
    return (name if isinstance(name, str) else str(name))[:LONGEST_NAME]
