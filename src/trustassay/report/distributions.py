"""Distributions of scores by verdict, model and domain, with ratings, in bounded memory."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trustassay.report.review import NO_VERDICT, OTHER
from trustassay.statistics.regression import LineSums, Moments, RegressionLine

BINS = 20
"""Bins of the histogram of a metric."""
MOST_VERDICTS = 50
"""Verdicts that are distinguished; later ones count as ``OTHER``."""
MOST_SERIES = 6
"""Colours of a stacked histogram."""
FINE_BINS = 400
"""Bins that are counted; a drawing merges neighbouring ones."""
MAX_COUNTED_GROUPS = 200
"""Groups that are distinguished while counting; later ones count as others."""
MAX_DRAWN_GROUPS = 60
"""Groups that are drawn: ten models in three domains, as in the paper, and twice as many."""
LONGEST_NAME = 200
MAX_RATING = 1e100
"""Largest rating; the square of a larger number would overflow."""
SHOWN_BINS = 40
"""Bins of a drawn row, of which a short axis has a multiple."""
RATED_BINS = 10
"""Bins of the drawing of ratings by score."""
MIN_SHARE_ON_AXIS = 0.99
"""Share of the scores that a shortened axis has to show."""


class Histogram:
    """Counts of per-sample scores in 20 equal bins, each split by verdict.

    Memory does not grow with the number of scores: after 50 different verdicts, later ones count as
    ``other``. A score outside the range counts in the bin at that end. The declared ``verdicts``
    come first, in their order, even without scores, so that each keeps its colour.
    """

    def __init__(self, low: float = 0.0, high: float = 1.0, verdicts: Sequence[str] = ()) -> None:
        # Bins of an infinite or empty range have no width.
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise ValueError(f"a score range runs from low to high, got {low} to {high}")
        self.low = low
        self.high = high
        self.without_score = 0
        self.rows: dict[str, list[int]] = {name: [0] * BINS for name in verdicts}
        self._declared = tuple(verdicts)

    def add(self, score: float | None, verdict: str | None) -> None:
        """Count one assessment; those without a score are counted separately."""
        if score is None:
            self.without_score += 1
            return
        if not math.isfinite(score):
            raise ValueError(f"a score is a finite number, got {score}")
        name = verdict or NO_VERDICT
        # A metric of another package may have a verdict for each answer.
        if name not in self.rows and len(self.rows) >= MOST_VERDICTS:
            name = OTHER
        share = (score - self.low) / (self.high - self.low)
        # The upper end of the range belongs to the last bin.
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
        undeclared = [item for item in totals.items() if item[0] not in self._declared]
        declared = {name: totals[name] for name in self._declared}
        return declared | dict(sorted(undeclared, key=lambda item: -item[1]))

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
    """The verdict."""
    counts: Sequence[int]
    """The number of scores in each bin."""
    total: int
    """The number of all its scores."""

    @classmethod
    def all_of(cls, histogram: Histogram) -> "list[Series]":
        """Return the verdicts as series; of more than six, the rarest ones are merged into one."""
        names = list(histogram.verdicts)
        if len(names) > MOST_SERIES:
            # "other" from the counting joins the merged series, whatever its size.
            names = [name for name in names if name != OTHER]
        shown_names = names if len(names) <= MOST_SERIES else names[: MOST_SERIES - 1]
        other_rows = [row for name, row in histogram.rows.items() if name not in shown_names]
        series = [
            cls(name, histogram.rows[name], sum(histogram.rows[name])) for name in shown_names
        ]
        if other_rows:
            counts = [sum(column) for column in zip(*other_rows, strict=True)]
            series.append(cls(OTHER, counts, sum(counts)))
        return series


class Name(NamedTuple):
    """The key of a group of samples."""

    model: str | None
    """The model; ``None`` if the samples name none."""
    domain: str | None
    """The domain; ``None`` if the samples name none."""


class RatedBin(NamedTuple):
    """The ratings of the samples whose score lies in one bin."""

    low: float
    """The lower end of the bin."""
    high: float
    """The upper end of the bin."""
    n: int
    """The number of ratings."""
    mean: float
    """Their mean."""
    error: float | None
    """The standard error of the mean; ``None`` of a single rating."""
    at: float
    """The mean score, to the width of a fine bin: many scores may lie at one end of a bin."""


@dataclass
class ScoreGroup:
    """Sums of one group's scores and ratings; groups can be added."""

    scores: Moments = field(default_factory=Moments)
    """All scores."""
    stable: Moments = field(default_factory=Moments)
    """The scores of stable answers."""
    ratings: Moments = field(default_factory=Moments)
    """All ratings."""
    stable_ratings: Moments = field(default_factory=Moments)
    """The ratings of stable answers."""
    sums: LineSums = field(default_factory=LineSums)
    """Sums for the regression of rating on score."""
    counts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(FINE_BINS, np.int64))
    """The number of scores in each fine bin."""
    rated: list[Moments] | None = None
    """The ratings in each fine bin; ``None`` without a rating."""

    @property
    def n(self) -> int:
        """The number of scores."""
        return self.scores.n

    @property
    def line(self) -> RegressionLine | None:
        """The least-squares line of rating over score."""
        return self.sums.line()

    def add(self, place: int, score: float, rating: float | None, *, stable: bool) -> None:
        """Add a score that falls into the fine bin ``place``, and its rating."""
        self.counts[place] += 1
        self.scores.add(score)
        if stable:
            self.stable.add(score)
        if rating is not None and abs(rating) < MAX_RATING:
            self.ratings.add(rating)
            self.sums.add(score, rating)
            # Most runs have no ratings: the 400 bins are allocated on the first one.
            if self.rated is None:
                self.rated = [Moments() for _ in range(FINE_BINS)]
            self.rated[place].add(rating)
            if stable:
                self.stable_ratings.add(rating)

    def __add__(self, other: "ScoreGroup") -> "ScoreGroup":
        # Without ratings on one side those of the other are taken as they are.
        rated = self.rated or other.rated
        if self.rated and other.rated:
            rated = [a + b for a, b in zip(self.rated, other.rated, strict=True)]
        names = ("scores", "stable", "ratings", "stable_ratings", "sums", "counts")
        sums = {name: getattr(self, name) + getattr(other, name) for name in names}
        return ScoreGroup(**sums, rated=rated)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form; empty parts are left out."""
        parts = {"score": self.scores, "stable_score": self.stable, "rating": self.ratings}
        parts["stable_rating"] = self.stable_ratings
        result: dict[str, Any] = {
            name: {"n": moments.n, "mean": moments.mean, "error": moments.error}
            for name, moments in parts.items()
            if moments.n
        }
        if line := self.line:
            result["line"] = {
                "slope": line.slope,
                "slope_interval": line.slope_interval,
                "intercept": line.intercept,
                "intercept_interval": line.intercept_interval,
            }
        return result


class GroupRow(NamedTuple):
    """A group in a column."""

    model: str | None
    """The model; ``None`` for all models, or for samples that name none."""
    group: ScoreGroup
    """Its scores and ratings."""
    margin: bool = False
    """Whether it holds all models."""

    @property
    def title(self) -> str:
        """The model, or what it holds; empty for samples that name none."""
        return "all models" if self.margin else (self.model or "")


class GroupColumn(NamedTuple):
    """The groups of one domain."""

    domain: str | None
    """The domain; ``None`` for all domains, or for samples that name none."""
    rows: Sequence[GroupRow]
    """A row for each model, all models first."""
    margin: bool = False
    """Whether it holds all domains."""

    @property
    def title(self) -> str:
        """The domain, or what it holds; empty for samples that name none."""
        return "all domains" if self.margin else (self.domain or "")


def _build_column(
    domain: str | None,
    cells: Mapping[Name, ScoreGroup],
    margin_group: ScoreGroup,
    *,
    margin: bool = False,
) -> GroupColumn:
    rows = [GroupRow(name.model, group) for name, group in cells.items()]
    if len(rows) > 1:
        rows.insert(0, GroupRow(None, margin_group, margin=True))
    return GroupColumn(domain, rows, margin)


@dataclass(eq=False)
class ScoreGroups:
    """The scores of one metric by model and domain."""

    low: float = 0.0
    """The lower end of the metric's range; lower scores count there."""
    high: float = 1.0
    """The upper end of the metric's range; higher scores count there."""
    _: KW_ONLY
    lower_is_better: bool = False
    """Whether the lower end is the good one."""
    stable_below: float | None = None
    """Bound below which scores count as stable, where the metric has one."""
    domain_field: str = "domain"
    """The name of the field that holds a sample's domain."""
    cells: dict[Name, ScoreGroup] = field(default_factory=dict)
    """The groups by model and domain."""
    others: ScoreGroup = field(default_factory=ScoreGroup)
    """The samples of groups that came after the first :data:`MAX_COUNTED_GROUPS`."""

    def add(self, model: str | None, domain: object, score: float, rating: float | None) -> None:
        """Count the score of one sample, and its rating if it has one."""
        name = Name(_shorten(model), _shorten(domain))
        group = self.cells.get(name)
        if group is None:
            group = self.others
            # Bounded: a field with free text may be given as the domain.
            if len(self.cells) < MAX_COUNTED_GROUPS:
                group = self.cells[name] = ScoreGroup()
        share = (score - self.low) / (self.high - self.low)
        # The small term keeps a score of exactly k/400 in bin k in spite of rounding.
        place = min(FINE_BINS - 1, max(0, math.floor(share * FINE_BINS + 1e-9)))
        stable = self.stable_below is not None and score < self.stable_below
        group.add(place, score, rating, stable=stable)

    @property
    def whole(self) -> ScoreGroup:
        """All samples together."""
        return sum([*self.cells.values(), self.others], ScoreGroup())

    @property
    def several(self) -> bool:
        """Whether there is more than one group."""
        return len(self.cells) > 1

    @property
    def worth_showing(self) -> bool:
        """Whether there are groups or ratings beside the metric's own figures."""
        return self.several or any(group.ratings.n for group in self.cells.values())

    @property
    def has_domains(self) -> bool:
        """Whether any sample names a domain."""
        return any(name.domain is not None for name in self.cells)

    def shown(self) -> dict[Name, ScoreGroup]:
        """Return the largest groups, sixty at most, by domain.

        The models are in the same order in each domain, the one with the best mean score first.
        """
        # The largest first, then by domain size and by the rank of the model over all domains.
        largest = sorted(self.cells.items(), key=lambda item: -item[1].n)[:MAX_DRAWN_GROUPS]
        models = {name.model: self._rank(self.model(name.model)) for name, _ in largest}
        sizes = {
            domain: -sum(group.n for name, group in largest if name.domain == domain)
            for domain in {name.domain for name, _ in largest}
        }

        def order(item: tuple[Name, ScoreGroup]) -> tuple[int, str, float, str]:
            domain, model = item[0].domain, item[0].model
            return sizes[domain], domain or "", models[model], model or ""

        return dict(sorted(largest, key=order))

    def by_domain(self) -> dict[str | None, dict[Name, ScoreGroup]]:
        """Return the shown groups by their domain."""
        result: dict[str | None, dict[Name, ScoreGroup]] = {}
        for name, group in self.shown().items():
            result.setdefault(name.domain, {})[name] = group
        return result

    def models(self) -> dict[Name, ScoreGroup]:
        """Return the models of the shown groups over all of their domains, best mean first."""
        names = dict.fromkeys(name.model for name in self.shown())
        result = {Name(model, None): self.model(model) for model in names}
        return dict(sorted(result.items(), key=lambda item: self._rank(item[1])))

    def columns(self) -> list[GroupColumn]:
        """Return the drawn groups in columns, as in Figure 1 of the paper.

        There is a column for each domain with all models first, and last one of all domains. A
        margin over a single group is left out.
        """
        domains = self.by_domain()
        result = [
            _build_column(domain, cells, self.domain(domain)) for domain, cells in domains.items()
        ]
        if len(domains) > 1:
            result.append(_build_column(None, self.models(), self.whole, margin=True))
        return result

    def domain(self, domain: str | None) -> ScoreGroup:
        """Return all samples of a domain."""
        return sum(
            (group for name, group in self.cells.items() if name.domain == domain), ScoreGroup()
        )

    def model(self, model: str | None) -> ScoreGroup:
        """Return all samples of a model."""
        return sum(
            (group for name, group in self.cells.items() if name.model == model), ScoreGroup()
        )

    def rest(self) -> tuple[int, bool, ScoreGroup]:
        """Return the number of groups that are not drawn, whether there are more, and their sum."""
        drawn = self.shown()
        remaining = [group for name, group in self.cells.items() if name not in drawn]
        return len(remaining), bool(self.others.n), sum([*remaining, self.others], ScoreGroup())

    def _rank(self, group: ScoreGroup) -> float:
        return group.scores.mean if self.lower_is_better else -group.scores.mean

    def axis(self) -> int:
        """Return the number of fine bins on the axis of the drawings, from the low end.

        All, unless lower is better and 99 % of the scores lie in the first tenth, two tenths, ...
        """
        counts = self.whole.counts
        if not self.lower_is_better or not counts.sum():
            return FINE_BINS
        # Cumulative counts at each tenth of the range; argmax finds the first that is enough.
        is_enough = (
            np.cumsum(counts)[SHOWN_BINS - 1 :: SHOWN_BINS] >= MIN_SHARE_ON_AXIS * counts.sum()
        )
        return SHOWN_BINS * (int(np.argmax(is_enough)) + 1)

    def value(self, place: float) -> float:
        """Return the score at the lower edge of a fine bin."""
        return self.low + (self.high - self.low) * place / FINE_BINS

    def rated_bins(self, group: ScoreGroup) -> list[RatedBin]:
        """Return the ratings in ten bins of the axis, without empty ones; the last has no end."""
        if not group.rated:
            return []
        # A shortened axis has finer bins of ratings, too.
        step = self.axis() // RATED_BINS
        result = []
        for number in range(RATED_BINS):
            last = number == RATED_BINS - 1
            places = group.rated[number * step : None if last else (number + 1) * step]
            moments = sum(places, Moments())
            if moments.n:
                edges = self.value(number * step), self.value((number + 1) * step)
                counts = [one.n for one in places]
                # A fine bin of the lowest score counts as that score, as gamma 0.
                centre = float(np.average(np.arange(len(counts)), weights=counts))
                at = self.value(number * step + centre)
                result.append(RatedBin(*edges, moments.n, moments.mean, moments.error, at))
        return result

    def to_dict(self) -> dict[str, Any]:
        """Return the block of ``summary.json``: every group, the largest first."""
        largest = sorted(self.cells.items(), key=lambda item: -item[1].n)
        result: dict[str, Any] = {"domain_field": self.domain_field}
        if self.stable_below is not None:
            result["stable_below"] = self.stable_below
        result["all"] = self.whole.to_dict()
        result["groups"] = [{**name._asdict(), **group.to_dict()} for name, group in largest]
        if self.others.n:
            result["others"] = self.others.to_dict()
        return result


def _shorten(name: object) -> str | None:
    # An empty cell of a table is no name.
    if name is None or name == "":
        return None
    return (name if isinstance(name, str) else str(name))[:LONGEST_NAME]
