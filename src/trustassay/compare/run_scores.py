"""Reads finished runs for comparison: the scores and outcomes that a metric gave each sample."""

import re
from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from trustassay.calls.backends import MODEL_ROLE
from trustassay.compare.pairing import RunPairing, SampleKeys, pair_samples, read_keys
from trustassay.core.assessment import Direction, WeightedColumns, WeightedFigures
from trustassay.core.metric import (
    Assessment,
    Figure,
    Mean,
    Metric,
    MetricInfo,
    Quantile,
    Share,
    compute_badness,
)
from trustassay.core.outcome import Outcome, OutcomeKind, Outcomes
from trustassay.errors import RunFolderError, UsageError, did_you_mean
from trustassay.runs.counts import determine_outcome, read_outcomes
from trustassay.runs.folder import (
    ABOUT,
    ENDED,
    STARTED,
    RunFolder,
    load_metrics,
    read_metric_infos,
    read_start,
)
from trustassay.runs.intake import WHY
from trustassay.runs.lines import hash64
from trustassay.statistics import Bools, Floats
from trustassay.text.numbers import amount, verb

# A date within a folder's name, such as run-2026-11-28-b; not part of a longer number.
_DAY = re.compile(r"(?<!\d)20\d\d-(?:0[1-9]|1[0-2])-(?:[0-2]\d|3[01])(?!\d)")


@dataclass(frozen=True)
class RunScores:
    """The scores and outcomes of one metric for all samples of a run, in input order."""

    path: Path
    info: MetricInfo
    figures: Mapping[str, Figure]
    """The metric's figures; of a metric that is not installed only the mean, if the summary has the
    mean of the scores."""
    scores: Floats
    """NaN where a sample has no score, shape (n,)."""
    badness: Floats
    """By :func:`~trustassay.core.metric.compute_badness`, NaN without a score, shape (n,)."""
    verdicts: Sequence[str]
    """Empty where a sample has no verdict."""
    kinds: Sequence[OutcomeKind]
    """The outcome of each sample."""
    reasons: Sequence[str]
    """Why each sample was not answered or not scored, else ""."""
    errors: Bools
    """Whether the sample could not be scored, shape (n,)."""
    outcomes: Outcomes
    """The shares of all questions."""
    weighted: WeightedFigures
    """The figures that can be resampled."""

    # A float array, so that means over questions can be taken directly.
    def indicate(self, kind: OutcomeKind) -> Floats:
        """Return 1 for each sample with this outcome, else 0, shape (n,)."""
        return np.array([kind_of_sample == kind for kind_of_sample in self.kinds], dtype=np.float64)


def read_finished_run(path: Path, otherwise: str = "") -> dict[str, Any]:
    """Read the settings of a finished run.

    Args:
        path: the run's folder.
        otherwise: for the error message, what else a file may be used with.

    Raises:
        RunFolderError: it is a file, or holds no finished run.
    """
    # The most frequent mistake is a file of answers in place of a run's folder.
    if path.is_file():
        raise RunFolderError(f"{path}: is a file; expected the folder of a run{otherwise}")
    folder = RunFolder(path)
    run = folder.read_run()
    if run is None:
        raise RunFolderError(f"{path}: holds no run; expected the folder of a run (score --out)")
    if folder.read_summary() is None:
        raise RunFolderError(f"{path}: the run is not finished; repeat its command to finish it")
    return run


def find_run_day(path: Path) -> str:
    """Return the day of a run; empty if neither its name nor its ``run.json`` has one."""
    start = read_start(read_finished_run(path))
    result = f"{start.date()}" if start else ""
    # The last date in the name counts, since a user may have appended it.
    for match in _DAY.findall(path.resolve().name):
        with suppress(ValueError):  # an impossible date, such as 2026-02-30
            result = f"{date.fromisoformat(match)}"
    return result


def choose_metric(
    paths: Sequence[Path], runs: Sequence[Mapping[str, Any]], wanted: str | None
) -> str:
    """Return the metric to read from one run or two: the wanted one, else the only common one.

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
    # With one run, names_by_run[-1] is the same list, so all its metrics are common.
    common: list[str] = [name for name in names_by_run[0] if name in names_by_run[-1]]
    if not common:
        what = " and ".join(", ".join(names) or "none" for names in names_by_run)
        raise RunFolderError(
            f"the runs have no metric in common (they have {what}); score both with the same "
            "--metric"
        )
    if len(common) > 1:
        who = "the runs share" if len(paths) > 1 else f"{paths[0]}: the run has"
        raise UsageError(f"{who} {' and '.join(common)}; choose one with --metric")
    return common[0]


def read_scores(
    path: Path, run: Mapping[str, Any], name: str, keys: SampleKeys | None = None
) -> RunScores:
    """Read all assessments of a metric in a single pass.

    Args:
        path: the run's folder.
        run: its settings.
        name: the name of the metric.
        keys: the keys of the run's samples, where they are read already.

    Raises:
        RunFolderError: the assessments are damaged, or do not belong to the samples.
    """
    # metric is None where it is not installed here; its scores can be compared all the same.
    folder, metrics = RunFolder(path), load_metrics(run)
    metric, info = metrics.get(name), read_metric_infos(folder, run)[name]
    keys = read_keys(folder, run) if keys is None else keys
    # Arrays of numbers, filled while the file is streamed: a run may have millions of samples.
    scores, badness, errors = array("d"), array("d"), array("b")
    verdicts = list[str]()
    outcomes = list[Outcome]()

    # The figures consume the same stream, so the file is read and parsed once.
    def record_results(assessments: Iterable[Assessment]) -> Iterator[Assessment]:
        for place, assessment in enumerate(assessments):
            _check_matches_sample(folder, keys, place, assessment)
            failed = assessment.error is not None
            bad = None if failed else compute_badness(info, assessment)
            scores.append(np.nan if assessment.score is None or failed else assessment.score)
            badness.append(np.nan if bad is None else bad)
            errors.append(failed)
            verdicts.append(assessment.verdict or "")
            outcomes.append(determine_outcome(metric, assessment))
            yield assessment

    # Evidence is large and is not needed here, so it is parsed only on demand.
    stored = record_results(folder.assessments(name, evidence_later=True))
    # A metric that is not installed here cannot compute its own figures.
    if metric is None:
        weighted: WeightedFigures = WeightedColumns.of({"mean": Mean()}, stored)
        figures = _infer_mean_figure(path, info, weighted)
    else:
        figures = {key: _add_direction(metric, figure) for key, figure in metric.figures.items()}
        weighted = metric.build_weighted_figures(stored)
    # The stream is exhausted only now, so this check cannot come earlier.
    if len(scores) != len(keys.ids):
        raise RunFolderError(
            f"{folder.assessments_path}: {len(scores):,} assessments by {name} for "
            f"{len(keys.ids):,} samples; repeat the command of the run"
        )
    return RunScores(
        path=path,
        info=info,
        figures=figures,
        scores=np.array(scores),
        badness=np.array(badness),
        verdicts=verdicts,
        kinds=[outcome.kind for outcome in outcomes],
        reasons=[outcome.reason for outcome in outcomes],
        errors=np.array(errors, dtype=np.bool_),
        outcomes=read_outcomes(folder, metrics.values())[name],
        weighted=weighted,
    )


def _add_direction(metric: Metric, figure: Figure) -> Figure:
    """Add the better direction to a figure, where its metric declares it for the part."""
    statistic = figure.statistic
    # What the figure declares itself takes precedence; "score" follows the metric's own direction.
    if figure.better or not isinstance(statistic, Mean | Quantile) or statistic.of == "score":
        return figure
    return replace(figure, better=metric.direction_of(statistic.of) or "")


def _check_matches_sample(
    folder: RunFolder, keys: SampleKeys, place: int, assessment: Assessment
) -> None:
    if place >= len(keys.ids):
        raise RunFolderError(
            f"{folder.samples_path}: no sample {assessment.id!r} among {len(keys.ids):,}, "
            "although it has an assessment; repeat the command of the run"
        )
    if hash64(assessment.id) != keys.ids[place]:
        raise RunFolderError(
            f"{folder.assessments_path}: the assessment of {assessment.id!r} is out of order; "
            "repeat the command of the run"
        )


def _infer_mean_figure(
    path: Path, info: MetricInfo, weighted: WeightedFigures
) -> dict[str, Figure]:
    summary = (RunFolder(path).read_summary() or {})["metrics"].get(info.name, {})
    mean = summary.get("values", {}).get("mean")
    mean_of_scores = weighted.figures(np.ones((1, len(weighted.inputs("mean")))))["mean"][0]
    # The unknown metric may define "mean" in another way; then it is not recomputed.
    if mean is None or abs(mean - mean_of_scores) > 1e-6:
        return {}
    return {"mean": Figure("mean", "mean score", "", headline=True, statistic=Mean())}


def find_better_direction(figure: Figure, info: MetricInfo) -> Direction:
    """Return whether a higher or a lower value is better, as declared or by the statistic."""
    statistic = figure.statistic
    if figure.better:
        return figure.better
    if isinstance(statistic, Mean | Quantile) and statistic.of == "score":
        return "lower" if info.lower_is_better else "higher"
    # By convention the first verdict of a metric is the good one.
    first = info.verdicts[0] if info.verdicts else None
    return "higher" if isinstance(statistic, Share) and statistic.verdict == first else ""


@dataclass(frozen=True)
class PairedRuns:
    """Two runs with the pairs of their answers, and the scores of their common metrics."""

    keys: tuple[SampleKeys, SampleKeys]
    pairing: RunPairing
    scores: Mapping[str, tuple[RunScores, RunScores]]
    """The scores in the first and the second run, by metric."""


def read_pairs(
    paths: tuple[Path, Path],
    runs: tuple[Mapping[str, Any], Mapping[str, Any]],
    names: Sequence[str],
) -> PairedRuns:
    """Pair the answers of two runs, and read the scores that these metrics gave them."""
    keys = (read_keys(RunFolder(paths[0]), runs[0]), read_keys(RunFolder(paths[1]), runs[1]))
    scores = {}
    for name in names:
        first, second = (read_scores(paths[i], runs[i], name, keys[i]) for i in (0, 1))
        scores[name] = (first, second)
    return PairedRuns(keys, pair_samples(*keys), scores)


def choose_headline_figures(
    scores: tuple[RunScores, RunScores], wanted: Collection[str] = ()
) -> tuple[list[str], dict[str, str]]:
    """Choose the headline figures (or the wanted ones) that have a value in both summaries.

    Returns:
        Their keys, and for each of the other figures the reason why it has no value.
    """
    name = scores[0].info.name
    headlines = [key for key, figure in scores[1].info.figures.items() if figure.headline]
    keys = list(wanted) or headlines
    keys_with_values: list[str] = []
    absent: dict[str, str] = {}
    summaries = [
        (RunFolder(side.path).read_summary() or {})["metrics"].get(name, {}) for side in scores
    ]
    for key in keys:
        # A headline figure in neither summary is not worth a note.
        if not wanted and not any(key in summary.get("values", {}) for summary in summaries):
            continue  # of another setting of the metric
        for side, summary in zip(scores, summaries, strict=True):
            if summary.get("values", {}).get(key) is None:
                reason = summary.get("not_applicable", {}).get(key, "it is not in the summary")
                absent.setdefault(key, f"{side.path}: {reason}")
        if key not in absent:
            keys_with_values.append(key)
    return keys_with_values, absent


_SETTINGS_OF_INPUT = {"input", "samples", "skipped", "metrics", "backends", "command"}
_SETTINGS_OF_INPUT |= {ABOUT, STARTED, ENDED, WHY}
"""Settings in run.json that describe the input, that are compared separately, or that are
times or texts for people."""


def describe_changed_judges(
    first: Mapping[str, Any], second: Mapping[str, Any], names: Sequence[str]
) -> list[str]:
    """List the differences of two runs in the metrics' options (except seeds) and judging
    models."""
    result = []
    for name in names:
        options = [run["metrics"][name] for run in (first, second)]
        # dict.fromkeys keeps the order of the options and drops duplicates.
        for option in dict.fromkeys([*options[0], *options[1]]):
            values = [options_of_run.get(option) for options_of_run in options]
            if values[0] != values[1] and option != "seed":
                before, now = map(_format_setting, values)
                result.append(f"{name}: {option} changed: {before} → {now}")
    # The model under test is not a judge; it is compared with the settings.
    names = sorted({*first["backends"], *second["backends"]} - {MODEL_ROLE})
    return result + _describe_changed_values(first["backends"], second["backends"], names)


def describe_changed_settings(
    first: Mapping[str, Any], second: Mapping[str, Any], names: Sequence[str]
) -> list[str]:
    """List the settings in which two runs differ, except the seeds of the metrics."""
    return [
        *describe_changed_judges(first, second, names),
        *_describe_changed_values(first["backends"], second["backends"], [MODEL_ROLE]),
        *_describe_changed_values(first, second, sorted({*first, *second} - _SETTINGS_OF_INPUT)),
    ]


def _describe_changed_values(
    first: Mapping[str, Any], second: Mapping[str, Any], names: Sequence[str]
) -> list[str]:
    return [
        f"{name} changed: {_format_setting(first.get(name))} → {_format_setting(second.get(name))}"
        for name in names
        if first.get(name) != second.get(name)
    ]


def _format_setting(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key}={item}" for key, item in value.items())
    return "not set" if value is None else str(value)


def describe_skipped(path: Path) -> list[str]:
    """Describe how many faulty records of a run were skipped, in one line or none."""
    skipped = int((RunFolder(path).read_summary() or {}).get("skipped") or 0)
    if not skipped:
        return []
    return [
        f"{path}: {amount(skipped, 'unreadable record')} of the input "
        f"{verb(skipped, 'is', 'are')} excluded from all shares"
    ]


def describe_copies(paths: Sequence[Path]) -> list[str]:
    """Describe how many answers of each run are copies, and how many records were skipped."""
    phrases = {
        "repeated": "the same as another answer to the same question (a question counts once)",
        "copied": "copied word for word from a passage",
    }
    result = []
    for path in paths:
        summary = RunFolder(path).read_summary() or {}
        counts = summary.get("answers", {})
        result += describe_skipped(path)
        for name, what in phrases.items():
            if count := counts.get(name):
                are = verb(count, "is", "are")
                result.append(f"{path}: {amount(count, 'answer')} {are} {what}")
    return result
