"""How often the intervals of ``agree`` hold the true coefficient or share of the variance.

    python -m benchmarks.ratings                         # the tables of docs/variance.md
    python -m benchmarks.ratings --draws 100 --only agreement

A population is 50,000 made-up answers with their ratings, whose coefficients and shares are the
true ones. Answers are drawn from it again and again, and looked at as ``agree`` does. The raters of
a population stay the same, but for the last table: there they are drawn anew each time, and the
truth is that of all raters.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.coverage import POPULATION, Interval, Places, Study, show
from trustassay.data.ratings import Rating
from trustassay.statistics.agreement import (
    bootstrap_interval,
    cohen_kappa,
    krippendorff_alpha,
)
from trustassay.statistics.variance import cells, shares
from trustassay.workflows.variance import RATERS, variances

Floats = NDArray[np.float64]
SIZES = (20, 50, 150)
REPLICATES = 200
"""A fifth of what ``agree`` draws, for time: the ends of intervals are somewhat less exact."""
LEVELS = 5


class Raters(NamedTuple):
    """What raters are like: variances of answers, raters, both together and repeats.

    offsets: of each rater from the others, in standard deviations of raters. missing: the share of
    ratings that are not there. repeats: ratings of each cell. whole: whether they are rounded to
    five levels.
    """

    answer: float
    rater: float
    both: float
    repeat: float
    offsets: tuple[float, ...] = (-1.0, 0.0, 1.0)
    missing: float = 0.0
    repeats: int = 2
    whole: bool = True

    def table(self, n: int, rng: np.random.Generator) -> Floats:
        """Return ratings, shape (answers, raters, repeats); NaN is missing."""
        m = len(self.offsets)
        level = 3 + rng.normal(0, self.answer**0.5, (n, 1, 1))
        own = self.rater**0.5 * np.array(self.offsets)[None, :, None]
        both = rng.normal(0, self.both**0.5, (n, m, 1))
        found = level + own + both + rng.normal(0, self.repeat**0.5, (n, m, self.repeats))
        if self.whole:
            found = np.clip(np.round(found), 1, LEVELS)
        found[rng.random(found.shape) < self.missing] = np.nan
        return np.asarray(found, dtype=np.float64)


POPULATIONS: Mapping[str, Raters] = {
    "agree well": Raters(1.0, 0.02, 0.05, 0.1),
    "agree somewhat": Raters(1.0, 0.1, 0.3, 0.5),
    "hardly agree": Raters(0.1, 0.3, 0.4, 0.8),
    "a fifth missing": Raters(1.0, 0.1, 0.3, 0.5, missing=0.2),
    "nearly all the top level": Raters(0.5, 0.05, 0.1, 0.2, (3.0, 3.0, 5.0), whole=True),
    "no rounding": Raters(1.0, 0.1, 0.3, 0.5, whole=False),
}


def agreement(name: str) -> Study:
    """Return the study of coefficients of the first ratings."""
    table = POPULATIONS[name].table(POPULATION, np.random.default_rng(1))[:, :, 0].T
    known = list(range(1, LEVELS + 1))
    figures: dict[str, Callable[[Floats], float | None]] = {
        "kappa": lambda t: cohen_kappa(t[0], t[1], "none", known),
        "kappa, quadratic": lambda t: cohen_kappa(t[0], t[1], "quadratic", known),
        "alpha, nominal": lambda t: krippendorff_alpha(t, "nominal"),
        "alpha, ordinal": lambda t: krippendorff_alpha(t, "ordinal"),
    }

    def draw(places: Places) -> Mapping[str, Interval | None]:
        drawn = table[:, places]
        rng = np.random.default_rng(places)
        found: dict[str, Interval | None] = {}
        for key, figure in figures.items():
            told = bootstrap_interval(
                lambda at, figure=figure: figure(drawn[:, at]),  # type: ignore[misc]
                len(places),
                rng,
                REPLICATES,
            )
            found[key] = None if isinstance(told, str) else told
        return found

    truth = {key: figure(table) for key, figure in figures.items()}
    return Study(name, {key: value for key, value in truth.items() if value is not None}, draw)


def _ratings(table: Floats) -> list[Rating]:
    i, j, k = np.nonzero(~np.isnan(table))
    values = table[i, j, k].tolist()
    where = zip(i.tolist(), j.tolist(), k.tolist(), values, strict=True)
    return [Rating(f"i{a}", f"r{b}", value, repeat) for a, b, repeat, value in where]


def _shares(table: Floats) -> dict[str, float]:
    i, j, k = np.nonzero(~np.isnan(table))
    found = cells(i.tolist(), j.tolist(), table[i, j, k], table.shape[:2])
    return dict(zip(found.names, shares(found.components()[0]).tolist(), strict=True))


def _intervals(table: Floats, seed: int) -> dict[str, Interval | None]:
    group = variances(_ratings(table), seed=seed, replicates=REPLICATES).groups[RATERS]
    return {one.name: one.share_interval for one in group.components}


def variance(name: str) -> Study:
    """Return the study of shares of the variance, the raters being who they are."""
    table = POPULATIONS[name].table(POPULATION, np.random.default_rng(1))

    def draw(places: Places) -> Mapping[str, Interval | None]:
        return _intervals(table[places], int(places[0]))

    return Study(name, _shares(table), draw)


def other_raters(name: str, m: int) -> Study:
    """Return the study of the same, with m raters drawn anew from all there could be."""
    raters = POPULATIONS[name]._replace(whole=False)
    parts = [raters.answer, raters.rater, raters.both, raters.repeat]
    truth = dict(
        zip(_shares(raters.table(9, np.random.default_rng(1))), shares(parts), strict=True)
    )

    def draw(places: Places) -> Mapping[str, Interval | None]:
        rng = np.random.default_rng(places)
        those = raters._replace(offsets=tuple(rng.normal(0, 1, m).tolist()))
        return _intervals(those.table(len(places), rng), int(places[0]))

    return Study(f"{name}, {m} raters", {key: float(value) for key, value in truth.items()}, draw)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--only", choices=["agreement", "variance", "others"])
    args = parser.parse_args()
    if args.only in (None, "variance"):
        show("Shares of the variance, in %", map(variance, POPULATIONS), SIZES, args.draws)
    if args.only in (None, "others"):
        studies = [other_raters("agree somewhat", m) for m in (3, 10)]
        show("The same, of other raters", studies, SIZES, args.draws)
    if args.only in (None, "agreement"):
        names = ("agree well", "hardly agree", "a fifth missing", "nearly all the top level")
        show("Coefficients of agreement", map(agreement, names), SIZES[:2], args.draws)


if __name__ == "__main__":
    main()
