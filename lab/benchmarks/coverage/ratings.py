"""Populations of ratings: agreement, the variance of ratings, and how severe a judge is.

The raters of a population stay the same, but for :func:`other_raters`: there they are drawn anew
each time, and the truth is that of all raters.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lab.benchmarks.coverage.counting import POPULATION, Interval, Places, Study
from trustassay.core.assessment import Mean, compute_interval
from trustassay.input.ratings import Rating, Ratings
from trustassay.people.agree import (
    OF_ALL,
    OF_TWO,
    AgreementFigure,
    AgreementRatio,
    build_figures,
    estimate,
)
from trustassay.people.variance import RATERS, decompose_variances
from trustassay.statistics.variance import build_cells, percent_shares

__all__ = ["AGREEING", "RATED", "agreement", "other_raters", "severity", "variance"]

Floats = NDArray[np.float64]
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


RATED: Mapping[str, Raters] = {
    "agree well": Raters(1.0, 0.02, 0.05, 0.1),
    "agree somewhat": Raters(1.0, 0.1, 0.3, 0.5),
    "hardly agree": Raters(0.1, 0.3, 0.4, 0.8),
    "a fifth missing": Raters(1.0, 0.1, 0.3, 0.5, missing=0.2),
    "nearly all the top level": Raters(0.5, 0.05, 0.1, 0.2, (3.0, 3.0, 5.0), whole=True),
    "no rounding": Raters(1.0, 0.1, 0.3, 0.5, whole=False),
}


class Latent(NamedTuple):
    """Raters who see a hidden level of each answer with noise, and cut it into levels.

    answers: of each question, whose hidden levels correlate with .6.
    """

    raters: int
    noise: float
    cuts: tuple[float, ...]
    answers: int = 1

    def ratings(self) -> Floats:
        """Return ratings, shape (raters, questions, answers)."""
        rng = np.random.default_rng(1)
        hidden = rng.standard_normal((POPULATION, 1))
        if self.answers > 1:
            own = rng.standard_normal((POPULATION, self.answers))
            hidden = math.sqrt(0.6) * hidden + math.sqrt(0.4) * own
        noise = self.noise * rng.standard_normal((self.raters, *hidden.shape))
        offsets = np.linspace(-0.2, 0.2, self.raters)[:, None, None]
        return np.searchsorted(self.cuts, hidden + noise + offsets).astype(np.float64)


EVEN, TOP = (-1.2, -0.4, 0.4, 1.2), (-2.6, -2.2, -1.7, -1.1)
AGREEING: Mapping[str, Latent] = {
    "2 raters, 5 levels, agree well": Latent(2, 0.4, EVEN),
    "2 raters, 5 levels, hardly agree": Latent(2, 4.0, EVEN),
    "2 raters, 5 levels, most at the top": Latent(2, 0.6, TOP),
    "2 raters, 0/1, 58 %": Latent(2, 0.6, (-0.2,)),
    "2 raters, 0/1, 95 %": Latent(2, 0.5, (-1.8,)),
    "3 raters, 5 levels": Latent(3, 0.8, EVEN),
    "3 raters, 0/1, 90 %": Latent(3, 0.4, (-1.3,)),
    "2 raters, 5 levels, 5 answers a question": Latent(2, 0.8, EVEN, 5),
    "2 raters, 0/1, 81 %, 5 answers a question": Latent(2, 0.5, (-1.0,), 5),
}
PAIR = ("percent", "kappa", "kappa_quadratic", "ac1", "ac2", "mean_absolute_difference")
ALL = ("mean_kappa", "fleiss_kappa", "alpha_ordinal", "icc_single", "icc_mean")


def agreement(name: str) -> Study:
    """Return the study of figures of agreement."""
    made = AGREEING[name]
    table, levels = made.ratings(), tuple(map(float, range(len(made.cuts) + 1)))
    ratings = Ratings([], scale=levels)
    two, every = (build_figures(ratings, levels, of) for of in (OF_TWO, OF_ALL))
    keys = [key for key in PAIR if made.raters == 2 or key in every]
    keys += ALL[1:] if made.raters == 2 else ALL
    if len(levels) == 2:  # where the weights change nothing
        keys = [key for key in keys if key not in ("kappa_quadratic", "ac2", "alpha_ordinal")]
    figures = {key: (two | every)[key] for key in keys}

    def of(places: Places | slice) -> tuple[Floats, Places]:
        drawn = table[:, places].reshape(made.raters, -1)
        return drawn, np.arange(drawn.shape[1]) // made.answers

    def draw(places: Places) -> Mapping[str, Interval | None]:
        drawn, units = of(places)
        return {key: estimate(drawn, one, units).interval for key, one in figures.items()}

    truth = {key: figure_of(of(slice(None))[0], one) for key, one in figures.items()}
    return Study(name, truth, draw)


def figure_of(table: Floats, figure: AgreementFigure) -> float:
    if isinstance(figure, AgreementRatio):
        above, below = figure.of(table)
        return float(above.sum() / below.sum())
    value = figure.of(table, np.ones(table.shape[1]))
    assert value is not None
    return value


def severity(name: str) -> Study:
    """Return the study of how far below three judges' mean the first one rates."""
    table = AGREEING[name].ratings()
    lower = (table.mean(axis=0) - table[0]).reshape(POPULATION, -1)
    size, wide = lower.shape[1], len(AGREEING[name].cuts)

    def draw(places: Places) -> Mapping[str, Interval | None]:
        units = np.repeat(np.arange(len(places)), size) if size > 1 else np.full(len(places), -1)
        found = compute_interval(Mean(), lower[places].ravel(), units, (-wide, wide), "answers")
        return {"severity": None if isinstance(found, str) else found}

    return Study(name, {"severity": float(lower.mean())}, draw)


def _ratings(table: Floats) -> list[Rating]:
    i, j, k = np.nonzero(~np.isnan(table))
    values = table[i, j, k].tolist()
    where = zip(i.tolist(), j.tolist(), k.tolist(), values, strict=True)
    return [Rating(f"i{a}", f"r{b}", value, repeat) for a, b, repeat, value in where]


def _shares(table: Floats) -> dict[str, float]:
    i, j, k = np.nonzero(~np.isnan(table))
    found = build_cells(i.tolist(), j.tolist(), table[i, j, k], table.shape[:2])
    parts = found.components()[0]
    told = dict(zip(found.names, percent_shares(parts).tolist(), strict=True))
    spreads = np.sqrt(np.maximum(parts, 0.0)).tolist()
    return told | {f"{name}, sd": sd for name, sd in zip(found.names, spreads, strict=True)}


def _intervals(table: Floats) -> dict[str, Interval | None]:
    group = decompose_variances(_ratings(table)).groups[RATERS]
    found = {one.name: one.share_interval for one in group.components}
    return found | {f"{one.name}, sd": one.sd_interval for one in group.components}


def variance(name: str) -> Study:
    """Return the study of shares of the variance, the raters being who they are."""
    table = RATED[name].table(POPULATION, np.random.default_rng(1))

    def draw(places: Places) -> Mapping[str, Interval | None]:
        return _intervals(table[places])

    return Study(name, _shares(table), draw)


def other_raters(name: str, m: int) -> Study:
    """Return the study of the same, with m raters drawn anew from all there could be."""
    raters = RATED[name]._replace(whole=False)
    parts = [raters.answer, raters.rater, raters.both, raters.repeat]
    names = [key for key in _shares(raters.table(9, np.random.default_rng(1))) if "sd" not in key]
    truth = dict(zip(names, percent_shares(parts), strict=True))

    def draw(places: Places) -> Mapping[str, Interval | None]:
        rng = np.random.default_rng(places)
        those = raters._replace(offsets=tuple(rng.normal(0, 1, m).tolist()))
        return _intervals(those.table(len(places), rng))

    return Study(f"{name}, {m} raters", {key: float(value) for key, value in truth.items()}, draw)
