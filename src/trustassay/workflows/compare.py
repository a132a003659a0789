"""Two runs side by side: did the distribution of a metric's scores change?"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trustassay.calls.backends import MODEL
from trustassay.errors import RunFolderError, did_you_mean
from trustassay.metric import MetricInfo
from trustassay.report import Groups
from trustassay.report.text import amount
from trustassay.runs.folder import RunFolder
from trustassay.runs.hashing import hash64
from trustassay.runs.infos import metric_infos
from trustassay.statistics.comparison import (
    Difference,
    KolmogorovSmirnov,
    difference_of_means,
    difference_of_medians,
    difference_of_shares,
    kolmogorov_smirnov,
    mean_of_differences,
    sign_flip_p,
)
from trustassay.statistics.randomness import generator

__all__ = ["Comparison", "Side", "compare"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Side:
    """One of the two runs; ``scores`` are those of the samples that have one."""

    path: Path
    run: Mapping[str, Any]
    scores: Floats
    scored: NDArray[np.uint64]
    ids: NDArray[np.uint64]

    @property
    def without_score(self) -> int:
        """The number of samples that failed, or that the metric cannot score."""
        return len(self.ids) - len(self.scores)

    def share_below(self, bound: float) -> float:
        """Return the percentage of scores below a bound."""
        return 100.0 * float(np.mean(self.scores < bound))


@dataclass(frozen=True)
class Comparison:
    """What changed from the first run to the second.

    ``stable`` is the difference of the percentages below ``stable_below``, where the metric has
    such a bound. ``pairs`` counts the samples that both runs scored, ``paired`` is the mean of
    their differences and ``paired_p`` its p-value; all are 0 or ``None`` unless the runs hold the
    same ids. ``warnings`` say what else is different.
    """

    metric: MetricInfo
    first: Side
    second: Side
    stable_below: float | None
    mean: Difference
    median: Difference
    stable: Difference | None
    distribution: KolmogorovSmirnov
    pairs: int
    paired: Difference | None
    paired_p: float | None
    warnings: Sequence[str]

    @property
    def groups(self) -> Groups:
        """The scores of both runs, counted for a drawing."""
        groups = Groups(
            *self.metric.score_range,
            lower_is_better=self.metric.lower_is_better,
            stable_below=self.stable_below,
        )
        names = [side.path.name or str(side.path) for side in (self.first, self.second)]
        if names[0] == names[1]:
            names = [str(side.path) for side in (self.first, self.second)]
        if names[0] == names[1]:
            names = [f"{names[0]} (first)", f"{names[1]} (second)"]
        for name, side in zip(names, (self.first, self.second), strict=True):
            for score in side.scores.tolist():
                groups.add(name, None, score, None)
        return groups

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""

        def side(one: Side) -> dict[str, Any]:
            found = {
                "run": str(one.path),
                "scores": len(one.scores),
                "without_score": one.without_score,
                "mean": float(one.scores.mean()),
                "median": float(np.median(one.scores)),
            }
            if self.stable_below is not None:
                found["stable_share"] = one.share_below(self.stable_below)
            return found

        def change(one: Difference | None) -> dict[str, Any] | None:
            if one is None:
                return None
            if one.interval is None:
                return {"change": one.value, "interval": None, "without_interval": one.without}
            return {"change": one.value, "interval": list(one.interval)}

        return {
            "metric": self.metric.name,
            "stable_below": self.stable_below,
            "first": side(self.first),
            "second": side(self.second),
            "mean": change(self.mean),
            "median": change(self.median),
            "stable_share": change(self.stable),
            "kolmogorov_smirnov": self.distribution._asdict(),
            "pairs": self.pairs,
            "paired": self.paired and {**(change(self.paired) or {}), "p": self.paired_p},
            "warnings": list(self.warnings),
        }


def compare(
    first: Path,
    second: Path,
    *,
    metric: str | None = None,
    seed: int = 0,
    permutations: int = 1999,
) -> Comparison:
    """Compare the scores of a metric in two finished runs.

    Raises:
        RunFolderError: one is not a finished run, or lacks the metric, or two scores of it.
        ValueError: the runs share several metrics, and none is named.
        UnknownNameError: a run of an earlier version, and the metric is not installed.
    """
    settings = [_settings(path) for path in (first, second)]
    name = _common_metric((first, second), settings, metric)
    a, b = (_side(path, run, name) for path, run in zip((first, second), settings, strict=True))
    infos = [
        metric_infos(RunFolder(path), run)[name]
        for path, run in zip((first, second), settings, strict=True)
    ]
    bounds = [info.stable_below for info in infos]
    bound = bounds[0] if bounds[0] == bounds[1] else None

    def rng(purpose: str) -> np.random.Generator:
        return generator(seed, "compare", name, purpose)

    stable = None
    if bound is not None:
        stable = difference_of_shares(a.scores < bound, b.scores < bound)
    warnings = _warnings(name, a, b)
    pairs, paired, paired_p = 0, None, None
    if np.array_equal(a.ids, b.ids):
        changes = _paired(a, b)
        pairs = len(changes)
        if pairs > 1:
            lowest, highest = infos[0].score_range
            paired = mean_of_differences(changes, highest - lowest)
            paired_p = sign_flip_p(changes, rng("sign flips"), permutations)
    else:
        shared = len(np.intersect1d(a.ids, b.ids))
        warnings.append(
            f"the runs have different samples ({shared:,} ids are in both, of {len(a.ids):,} and "
            f"{len(b.ids):,}), so they are compared as independent samples"
        )
    return Comparison(
        metric=infos[0],
        first=a,
        second=b,
        stable_below=bound,
        mean=difference_of_means(a.scores, b.scores, infos[0].score_range),
        median=difference_of_medians(a.scores, b.scores),
        stable=stable,
        distribution=kolmogorov_smirnov(a.scores, b.scores, rng("permutations"), permutations),
        pairs=pairs,
        paired=paired,
        paired_p=paired_p,
        warnings=warnings,
    )


def _settings(path: Path) -> dict[str, Any]:
    if path.is_file():
        raise RunFolderError(
            f"{path}: is a file; expected a run's folder, or --judge, which compares answers"
        )
    folder = RunFolder(path)
    run = folder.read_run()
    if run is None:
        raise RunFolderError(f"{path}: holds no run")
    if folder.read_summary() is None:
        raise RunFolderError(f"{path}: the run is not finished; run its command again to finish it")
    return run


def _common_metric(
    paths: Sequence[Path], settings: Sequence[Mapping[str, Any]], wanted: str | None
) -> str:
    held = [list(run["metrics"]) for run in settings]
    if wanted is not None:
        for path, names in zip(paths, held, strict=True):
            if wanted not in names:
                raise RunFolderError(f"{path}: {did_you_mean('metric of this run', wanted, names)}")
        return wanted
    common: list[str] = [name for name in held[0] if name in held[1]]
    if not common:
        what = " and ".join(", ".join(names) or "none" for names in held)
        raise RunFolderError(f"the runs have no metric in common (they have {what})")
    if len(common) > 1:
        raise ValueError(f"the runs share {' and '.join(common)}; name one with --metric")
    return common[0]


def _side(path: Path, run: Mapping[str, Any], metric: str) -> Side:
    scores, scored, ids = array("d"), array("Q"), array("Q")
    for assessment in RunFolder(path).assessments(metric):
        place = hash64(assessment.id)
        ids.append(place)
        if assessment.score is not None:
            scores.append(assessment.score)
            scored.append(place)
    if not scores:
        raise RunFolderError(f"{path}: no sample has a score for {metric}")
    if len(scores) == 1:
        raise RunFolderError(
            f"{path}: only one sample has a score for {metric}; at least two are needed"
        )
    return Side(
        path,
        run,
        np.array(scores),
        np.array(scored, dtype=np.uint64),
        np.sort(np.array(ids, dtype=np.uint64)),
    )


def _paired(a: Side, b: Side) -> Floats:
    """Return the differences of the samples that both runs scored, in the order of the first."""
    _, in_a, in_b = np.intersect1d(a.scored, b.scored, return_indices=True)
    order = np.argsort(in_a)
    return np.asarray(b.scores[in_b[order]] - a.scores[in_a[order]])


def _warnings(name: str, a: Side, b: Side) -> list[str]:
    """Say what differs between the runs besides their answers."""
    found = []
    options = [side.run["metrics"][name] for side in (a, b)]
    for option in dict.fromkeys([*options[0], *options[1]]):
        values = [one.get(option) for one in options]
        if values[0] != values[1] and option != "seed":
            found.append(f"{name}: {option} was {values[0]}, then {values[1]}")
    names = {*a.run["backends"], *b.run["backends"]} - {MODEL}
    for backend in sorted(names):
        values = [side.run["backends"].get(backend) for side in (a, b)]
        if values[0] != values[1]:
            found.append(f"the {backend} was {values[0]}, then {values[1]}")
    return found + [
        f"{side.path}: {amount(side.without_score, 'sample')} without a score"
        for side in (a, b)
        if side.without_score
    ]
