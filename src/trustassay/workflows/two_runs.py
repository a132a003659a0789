"""Two finished runs, read to be compared: their settings, their pairs, and a metric's scores."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from trustassay.calls.backends import MODEL
from trustassay.errors import RunFolderError, UnknownNameError
from trustassay.metric import (
    Assessment,
    Figure,
    Mean,
    Metric,
    MetricInfo,
    Quantile,
    Share,
    badness_of,
)
from trustassay.registry import metric_from_settings
from trustassay.runs.folder import RunFolder
from trustassay.runs.hashing import hash64
from trustassay.runs.infos import ABOUT, metric_infos
from trustassay.summaries import Weighted, WeightedColumns
from trustassay.workflows.outcomes import FAILED, NOT_ASSESSABLE, SCORED
from trustassay.workflows.pairing import Pairing, SampleKeys, pair, read_keys

__all__ = [
    "Direction",
    "Scored",
    "better_of",
    "differing_settings",
    "finished_run",
    "headlines",
    "other_judges",
    "paired_runs",
    "read_scored",
]

Floats = NDArray[np.float64]
Direction = Literal["higher", "lower", ""]
_OF_INPUT = {"input", "samples", "skipped", "metrics", "backends", "command", ABOUT}
"""What run.json says of its input, or what is compared by itself."""


def finished_run(path: Path, otherwise: str = "") -> dict[str, Any]:
    """Return the settings of a run; ``otherwise`` says what a file may be given with.

    Raises:
        RunFolderError: it is a file, or holds no finished run.
    """
    if path.is_file():
        raise RunFolderError(f"{path}: is a file; expected a run's folder{otherwise}")
    folder = RunFolder(path)
    run = folder.read_run()
    if run is None:
        raise RunFolderError(f"{path}: holds no run; expected the folder of a run (score --out)")
    if folder.read_summary() is None:
        raise RunFolderError(f"{path}: the run is not finished; run its command again to finish it")
    return run


@dataclass(frozen=True)
class Scored:
    """What a metric said of all samples of a run, in input order.

    scores: NaN where there is none, as in badness (:func:`~trustassay.metric.badness_of`). failed:
    whether the sample could not be scored. verdicts: "" where there is none. outcomes: what became
    of each sample (:mod:`~trustassay.workflows.outcomes`). flagged: 1 for a scored answer that
    needs a look, 0 for another, NaN without a score; ``None`` where the metric draws no line.
    weighted: the figures that can be resampled.
    """

    path: Path
    info: MetricInfo
    figures: Mapping[str, Figure]
    scores: Floats
    failed: NDArray[np.bool_]
    verdicts: Sequence[str]
    outcomes: Sequence[str]
    flagged: Floats | None
    weighted: Weighted
    badness: Floats


def read_scored(path: Path, run: Mapping[str, Any], info: MetricInfo, keys: SampleKeys) -> Scored:
    """Read the assessments of a metric once.

    Of a metric that is not installed only the mean is known, if it is that of its scores.

    Raises:
        RunFolderError: the assessments are damaged, or not those of the samples.
    """
    metric, folder = _metric(run, info), RunFolder(path)
    scores, failed, verdicts, outcomes = array("d"), array("b"), list[str](), list[str]()
    badness = array("d")
    flagged = array("d") if metric is not None and metric.line else None

    def noting(assessments: Iterable[Assessment]) -> Iterator[Assessment]:
        for place, one in enumerate(assessments):
            if place >= len(keys.ids):
                raise RunFolderError(
                    f"{folder.samples_path}: {len(keys.ids):,} samples, but there is an assessment "
                    f"of {one.id!r} besides; run the run's command again"
                )
            if hash64(one.id) != keys.ids[place]:
                raise RunFolderError(
                    f"{folder.assessments_path}: the assessment of {one.id!r} belongs to no sample "
                    "in its place; run the run's command again"
                )
            scores.append(np.nan if one.score is None or one.error else one.score)
            bad = None if one.error else badness_of(info, one)
            badness.append(np.nan if bad is None else bad)
            failed.append(one.error is not None)
            verdicts.append(one.verdict or "")
            outcomes.append(_outcome(one))
            if flagged is not None:
                looked = metric is not None and metric.problem(one) is not None
                flagged.append(np.nan if outcomes[-1] != SCORED else float(looked))
            yield one

    stored = noting(folder.assessments_to_sum(info.name))
    if metric is None:
        weighted: Weighted = WeightedColumns.of({"mean": Mean()}, stored)
        figures = _mean_alone(path, info, weighted)
    else:
        figures, weighted = dict(metric.figures), metric.weighted(stored)
    if len(scores) != len(keys.ids):
        raise RunFolderError(
            f"{folder.assessments_path}: {len(scores):,} assessments of {info.name} of "
            f"{len(keys.ids):,} samples; run the run's command again"
        )
    return Scored(
        path,
        info,
        figures,
        np.array(scores),
        np.array(failed, dtype=np.bool_),
        verdicts,
        outcomes,
        None if flagged is None else np.array(flagged),
        weighted,
        np.array(badness),
    )


def _outcome(one: Assessment) -> str:
    if one.error is not None:
        return FAILED
    if one.score is not None:
        return SCORED
    return one.verdict or NOT_ASSESSABLE


def _metric(run: Mapping[str, Any], info: MetricInfo) -> Metric | None:
    try:
        return metric_from_settings(info.name, run["metrics"][info.name])
    except (UnknownNameError, TypeError, ValueError):
        return None


def _mean_alone(path: Path, info: MetricInfo, weighted: Weighted) -> dict[str, Figure]:
    told = (RunFolder(path).read_summary() or {})["metrics"].get(info.name, {})
    mean = told.get("values", {}).get("mean")
    own = weighted.figures(np.ones((1, len(weighted.inputs("mean")))))["mean"][0]
    if mean is None or abs(mean - own) > 1e-6:
        return {}
    return {"mean": Figure("mean", "mean score", "", headline=True, statistic=Mean())}


def better_of(figure: Figure, info: MetricInfo) -> Direction:
    """Return whether more of a figure is better, as it says itself or by its statistic."""
    statistic = figure.statistic
    if figure.better:
        return figure.better
    if isinstance(statistic, Mean | Quantile) and statistic.of == "score":
        return "lower" if info.lower_is_better else "higher"
    first = info.verdicts[0] if info.verdicts else None
    return "higher" if isinstance(statistic, Share) and statistic.verdict == first else ""


def paired_runs(
    paths: tuple[Path, Path],
    runs: tuple[Mapping[str, Any], Mapping[str, Any]],
    names: Sequence[str],
) -> tuple[Pairing, dict[str, tuple[Scored, Scored]]]:
    """Pair the answers of two runs, and read what metrics of both said of them.

    Raises:
        RunFolderError: samples or assessments are damaged.
        UnknownNameError: a run of an earlier version, and the metric is not installed.
    """
    folders = [RunFolder(path) for path in paths]
    keys = [read_keys(folder) for folder in folders]
    infos = [metric_infos(*both) for both in zip(folders, runs, strict=True)]
    found = {}
    for name in names:
        first, second = (read_scored(paths[i], runs[i], infos[i][name], keys[i]) for i in range(2))
        found[name] = (first, second)
    return pair(keys[0], keys[1]), found


def headlines(
    scored: tuple[Scored, Scored], wanted: Collection[str] = ()
) -> tuple[list[str], dict[str, str]]:
    """Return the headline figures, or those wanted, that have a value in both summaries, and of
    the others why not.
    """
    name = scored[0].info.name
    keys = list(wanted) or [key for key, one in scored[1].info.figures.items() if one.headline]
    there: list[str] = []
    absent: dict[str, str] = {}
    summaries = [
        (RunFolder(one.path).read_summary() or {})["metrics"].get(name, {}) for one in scored
    ]
    for key in keys:
        if not wanted and not any(key in one.get("values", {}) for one in summaries):
            continue  # of another setting of the metric
        for side, summary in zip(scored, summaries, strict=True):
            if summary.get("values", {}).get(key) is None:
                why = summary.get("not_applicable", {}).get(key, "it is not in the summary")
                absent.setdefault(key, f"{side.path}: {why}")
        if key not in absent:
            there.append(key)
    return there, absent


def other_judges(
    first: Mapping[str, Any], second: Mapping[str, Any], names: Sequence[str]
) -> list[str]:
    """Say which options of the metrics and which models that judge differ between two runs; the
    model under assessment and the seeds of the metrics do not count.
    """
    found = []
    for name in names:
        options = [run["metrics"][name] for run in (first, second)]
        for option in dict.fromkeys([*options[0], *options[1]]):
            values = [one.get(option) for one in options]
            if values[0] != values[1] and option != "seed":
                found.append(f"{name}: {option} was {values[0]}, then {values[1]}")
    for backend in sorted({*first["backends"], *second["backends"]} - {MODEL}):
        before, after = (run["backends"].get(backend) for run in (first, second))
        if before != after:
            found.append(f"the {backend} was {_words(before)}, then {_words(after)}")
    return found


def differing_settings(
    first: Mapping[str, Any], second: Mapping[str, Any], names: Sequence[str]
) -> list[str]:
    """Say which settings of two runs differ; the seeds of the metrics do not count."""
    found = other_judges(first, second, names)
    before, after = (run["backends"].get(MODEL) for run in (first, second))
    if before != after:
        found.append(f"the {MODEL} was {_words(before)}, then {_words(after)}")
    for name in sorted({*first, *second} - _OF_INPUT):
        before, after = first.get(name), second.get(name)
        if before != after:
            found.append(f"{name} was {_words(before)}, then {_words(after)}")
    return found


def _words(value: Any) -> str:
    if value is None:
        return "not set"
    if isinstance(value, Mapping):
        return ", ".join(f"{key}={one}" for key, one in value.items())
    return str(value)
