"""Finished runs, read to be compared: what a metric says of each sample."""

from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from trustassay.assessment import Direction, Weighted, WeightedColumns
from trustassay.calls.backends import MODEL
from trustassay.compare.pairing import Pairing, SampleKeys, pair_samples, read_keys
from trustassay.core.outcome import Outcome, OutcomeKind, Outcomes
from trustassay.errors import RunFolderError, UsageError, did_you_mean
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
from trustassay.runs.counts import read_outcomes
from trustassay.runs.folder import ABOUT, ENDED, STARTED, RunFolder, metric_infos, metrics_of
from trustassay.runs.lines import hash64
from trustassay.runs.outcomes import outcome_of
from trustassay.statistics import Bools, Floats
from trustassay.text.words import amount


@dataclass(frozen=True)
class RunScores:
    """What a metric said of all samples of a run, in input order."""

    path: Path
    info: MetricInfo
    figures: Mapping[str, Figure]
    """Of a metric that is not installed the mean alone, if it is that of its scores."""
    scores: Floats
    """NaN where there is none, shape (n,)."""
    badness: Floats
    """By :func:`~trustassay.metric.badness_of`, NaN without a score, shape (n,)."""
    verdicts: Sequence[str]
    """"" where there is none."""
    kinds: Sequence[OutcomeKind]
    """What became of each sample."""
    reasons: Sequence[str]
    """Why a sample is not answered or not scored, else ""."""
    errors: Bools
    """Whether the sample could not be scored, shape (n,)."""
    outcomes: Outcomes
    """The shares of all questions."""
    weighted: Weighted
    """The figures that can be resampled."""

    def has(self, kind: OutcomeKind) -> Floats:
        """Return 1 for each sample of this outcome, else 0, shape (n,)."""
        return np.array([one == kind for one in self.kinds], dtype=np.float64)


def read_finished_run(path: Path, otherwise: str = "") -> dict[str, Any]:
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


def choose_metric(
    paths: Sequence[Path], runs: Sequence[Mapping[str, Any]], wanted: str | None
) -> str:
    """Return the metric that is read of a run or of both: the wanted one, else the only one.

    Raises:
        RunFolderError: a run lacks it, or two runs have none in common.
        UsageError: there are several, and none is named.
    """
    names_by_run = [list(run["metrics"]) for run in runs]
    if wanted is not None:
        for path, names in zip(paths, names_by_run, strict=True):
            if wanted not in names:
                raise RunFolderError(f"{path}: {did_you_mean('metric of this run', wanted, names)}")
        return wanted
    common: list[str] = [name for name in names_by_run[0] if name in names_by_run[-1]]
    if not common:
        what = " and ".join(", ".join(names) or "none" for names in names_by_run)
        raise RunFolderError(f"the runs have no metric in common (they have {what})")
    if len(common) > 1:
        who = "the runs share" if len(paths) > 1 else f"{paths[0]}: the run has"
        raise UsageError(f"{who} {' and '.join(common)}; name one with --metric")
    return common[0]


def read_scores(
    path: Path, run: Mapping[str, Any], info: MetricInfo, keys: SampleKeys
) -> RunScores:
    """Read the assessments of a metric once.

    Raises:
        RunFolderError: the assessments are damaged, or not those of the samples.
    """
    folder, metric = RunFolder(path), metrics_of(run).get(info.name)
    scores, badness, errors = array("d"), array("d"), array("b")
    verdicts = list[str]()
    outcomes = list[Outcome]()

    def noting(assessments: Iterable[Assessment]) -> Iterator[Assessment]:
        for place, one in enumerate(assessments):
            _check_place(folder, keys, place, one)
            failed = one.error is not None
            bad = None if failed else badness_of(info, one)
            scores.append(np.nan if one.score is None or failed else one.score)
            badness.append(np.nan if bad is None else bad)
            errors.append(failed)
            verdicts.append(one.verdict or "")
            outcomes.append(outcome_of(metric, one))
            yield one

    stored = noting(folder.assessments(info.name, evidence_later=True))
    if metric is None:
        weighted: Weighted = WeightedColumns.of({"mean": Mean()}, stored)
        figures = _mean_alone(path, info, weighted)
    else:
        figures = {key: _with_direction(metric, one) for key, one in metric.figures.items()}
        weighted = metric.weighted(stored)
    if len(scores) != len(keys.ids):
        raise RunFolderError(
            f"{folder.assessments_path}: {len(scores):,} assessments of {info.name} of "
            f"{len(keys.ids):,} samples; run the run's command again"
        )
    return RunScores(
        path,
        info,
        figures,
        np.array(scores),
        np.array(badness),
        verdicts,
        [one.kind for one in outcomes],
        [one.reason for one in outcomes],
        np.array(errors, dtype=np.bool_),
        read_outcomes(folder, metrics_of(run).values())[info.name],
        weighted,
    )


def _with_direction(metric: Metric, figure: Figure) -> Figure:
    """Return a figure with the side that is better, where its metric says it of its part."""
    statistic = figure.statistic
    if figure.better or not isinstance(statistic, Mean | Quantile) or statistic.of == "score":
        return figure
    return replace(figure, better=metric.direction_of(statistic.of) or "")


def _check_place(folder: RunFolder, keys: SampleKeys, place: int, one: Assessment) -> None:
    if place >= len(keys.ids):
        raise RunFolderError(
            f"{folder.samples_path}: {len(keys.ids):,} samples, but there is an assessment of "
            f"{one.id!r} besides; run the run's command again"
        )
    if hash64(one.id) != keys.ids[place]:
        raise RunFolderError(
            f"{folder.assessments_path}: the assessment of {one.id!r} belongs to no sample in its "
            "place; run the run's command again"
        )


def _mean_alone(path: Path, info: MetricInfo, weighted: Weighted) -> dict[str, Figure]:
    summary = (RunFolder(path).read_summary() or {})["metrics"].get(info.name, {})
    mean = summary.get("values", {}).get("mean")
    mean_of_scores = weighted.figures(np.ones((1, len(weighted.inputs("mean")))))["mean"][0]
    if mean is None or abs(mean - mean_of_scores) > 1e-6:
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


@dataclass(frozen=True)
class PairedRuns:
    """Two runs with the pairs of their answers, and what metrics of both say of them."""

    keys: tuple[SampleKeys, SampleKeys]
    pairing: Pairing
    scores: Mapping[str, tuple[RunScores, RunScores]]


def read_pairs(
    paths: tuple[Path, Path],
    runs: tuple[Mapping[str, Any], Mapping[str, Any]],
    names: Sequence[str],
) -> PairedRuns:
    """Pair the answers of two runs, and read what these metrics said of them."""
    folders = [RunFolder(path) for path in paths]
    keys = (read_keys(folders[0], runs[0]), read_keys(folders[1], runs[1]))
    infos = [metric_infos(*both) for both in zip(folders, runs, strict=True)]
    scores = {}
    for name in names:
        first, second = (read_scores(paths[i], runs[i], infos[i][name], keys[i]) for i in (0, 1))
        scores[name] = (first, second)
    return PairedRuns(keys, pair_samples(*keys), scores)


def headline_figures(
    scores: tuple[RunScores, RunScores], wanted: Collection[str] = ()
) -> tuple[list[str], dict[str, str]]:
    """Return the headline (or wanted) figures with a value in both summaries, else why not."""
    name = scores[0].info.name
    keys = list(wanted) or [key for key, one in scores[1].info.figures.items() if one.headline]
    there: list[str] = []
    absent: dict[str, str] = {}
    summaries = [
        (RunFolder(one.path).read_summary() or {})["metrics"].get(name, {}) for one in scores
    ]
    for key in keys:
        if not wanted and not any(key in one.get("values", {}) for one in summaries):
            continue  # of another setting of the metric
        for side, summary in zip(scores, summaries, strict=True):
            if summary.get("values", {}).get(key) is None:
                why = summary.get("not_applicable", {}).get(key, "it is not in the summary")
                absent.setdefault(key, f"{side.path}: {why}")
        if key not in absent:
            there.append(key)
    return there, absent


_OF_INPUT = {"input", "samples", "skipped", "metrics", "backends", "command"}
_OF_INPUT |= {ABOUT, STARTED, ENDED}
"""What run.json says of its input, what is compared by itself, and when it ran."""


def changed_judges(
    first: Mapping[str, Any], second: Mapping[str, Any], names: Sequence[str]
) -> list[str]:
    """Say which options of metrics but seeds, and which models that judge, two runs differ in."""
    result = []
    for name in names:
        options = [run["metrics"][name] for run in (first, second)]
        for option in dict.fromkeys([*options[0], *options[1]]):
            values = [one.get(option) for one in options]
            if values[0] != values[1] and option != "seed":
                result.append(f"{name}: {option} was {values[0]}, then {values[1]}")
    names = sorted({*first["backends"], *second["backends"]} - {MODEL})
    return result + _changed_values(first["backends"], second["backends"], names, "the ")


def changed_settings(
    first: Mapping[str, Any], second: Mapping[str, Any], names: Sequence[str]
) -> list[str]:
    """Say which settings of two runs differ; the seeds of the metrics do not count."""
    return [
        *changed_judges(first, second, names),
        *_changed_values(first["backends"], second["backends"], [MODEL], "the "),
        *_changed_values(first, second, sorted({*first, *second} - _OF_INPUT)),
    ]


def _changed_values(
    first: Mapping[str, Any], second: Mapping[str, Any], names: Sequence[str], article: str = ""
) -> list[str]:
    return [
        f"{article}{name} was {_in_words(first.get(name))}, then {_in_words(second.get(name))}"
        for name in names
        if first.get(name) != second.get(name)
    ]


def _in_words(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key}={one}" for key, one in value.items())
    return "not set" if value is None else str(value)


def copies_in_words(paths: Sequence[Path]) -> list[str]:
    """Say of how many answers a run counts copies: of another answer, or of a passage."""
    phrases = {
        "repeated": "the same as another answer to the same question; a question counts once",
        "copied": "copied word for word from a passage",
    }
    result = []
    for path in paths:
        summary = RunFolder(path).read_summary() or {}
        counts = summary.get("answers", {})
        if skipped := int(summary.get("skipped") or 0):
            result.append(
                f"{path}: {amount(skipped, 'record')} of the input could not be read and "
                f"{'is' if skipped == 1 else 'are'} in no share"
            )
        for name, what in phrases.items():
            if count := counts.get(name):
                verb = "is" if count == 1 else "are"
                result.append(f"{path}: {amount(count, 'answer')} {verb} {what}")
    return result
