"""What changed between two runs that answered the same questions: figures and single answers."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from trustassay.errors import RunFolderError, UnknownNameError
from trustassay.metric import Assessment, Figure, Mean, Metric, MetricInfo, Quantile, Share
from trustassay.registry import metric_from_settings
from trustassay.report.text import amount
from trustassay.runs.folder import RunFolder
from trustassay.runs.hashing import hash64
from trustassay.statistics.comparison import Difference
from trustassay.statistics.intervals import FEWEST, FEWEST_FOR_MEANS
from trustassay.statistics.paired import drawn_counts, paired_difference
from trustassay.statistics.randomness import generator
from trustassay.summaries import Weighted, WeightedColumns
from trustassay.workflows.pairing import Pairing, SampleKeys

__all__ = [
    "AnswerChange",
    "AnswerChanges",
    "FigureChange",
    "Scored",
    "answer_changes",
    "better_of",
    "figure_changes",
    "read_scored",
    "why_not_resampled",
]

Floats = NDArray[np.float64]
Direction = Literal["higher", "lower", ""]
LISTED = 500
"""Changed answers of a kind that are read and listed; all are counted."""
SAME = 1e-9
"""A change of a score that is rounding."""


@dataclass(frozen=True)
class Scored:
    """What a metric said of all samples of a run, in input order.

    scores: NaN where there is none. failed: whether the sample could not be scored. verdicts: ""
    where there is none. weighted: the figures that can be resampled.
    """

    path: Path
    info: MetricInfo
    figures: Mapping[str, Figure]
    scores: Floats
    failed: NDArray[np.bool_]
    verdicts: Sequence[str]
    weighted: Weighted


@dataclass(frozen=True)
class FigureChange:
    """A figure of two runs over the answers that are paired and scored in both.

    better: whether more of it is better, "" where that is not said. difference: second less first.
    """

    key: str
    figure: Figure
    better: Direction
    first: float
    second: float
    difference: Difference

    @property
    def verdict(self) -> Literal["better", "worse", "changed", "no clear change", "unknown"]:
        """What the interval says of the change."""
        if self.difference.interval is None:
            return "unknown"
        low, high = self.difference.interval
        if low <= 0 <= high:
            return "no clear change"
        if not self.better:
            return "changed"
        return "better" if (low > 0) == (self.better == "higher") else "worse"

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        interval = self.difference.interval
        return {
            "first": self.first,
            "second": self.second,
            "change": self.difference.value,
            "interval": None if interval is None else list(interval),
            **({"without_interval": self.difference.without} if interval is None else {}),
            "better": self.better or None,
            "verdict": self.verdict,
        }


@dataclass(frozen=True)
class AnswerChange:
    """One question, and what a metric said of its answer in both runs."""

    question: str
    ids: tuple[str, str]
    responses: tuple[str, str]
    scores: tuple[float | None, float | None]
    verdicts: tuple[str, str]
    reasons: tuple[str, str]

    def in_words(self) -> str:
        """Say what was judged before and after, without the question and the reason."""

        def side(place: int) -> str:
            score = self.scores[place]
            words = [self.verdicts[place], "no score" if score is None else f"{score:.2f}"]
            return " ".join(filter(None, words))

        return f"{side(0)} → {side(1)}"

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        sides = [
            {"id": self.ids[i], "score": self.scores[i], "verdict": self.verdicts[i] or None}
            | {"reason": self.reasons[i]}
            for i in (0, 1)
        ]
        return {"question": self.question, "first": sides[0], "second": sides[1]}


@dataclass(frozen=True)
class AnswerChanges:
    """The answers whose score or verdict changed, the largest changes first.

    Of each kind :data:`LISTED` are held at most; the counts are those of all. other: another
    verdict, and no score in one of the runs. failed_now: scored in the first run, and failed in the
    second; failed: in either. same: all other pairs.
    """

    worse: Sequence[AnswerChange]
    better: Sequence[AnswerChange]
    other: Sequence[AnswerChange]
    counts: Mapping[str, int]

    def in_words(self) -> str:
        """Say how many answers changed, and how."""
        counts = self.counts
        words = f"{amount(counts['worse'], 'answer')} got worse, {counts['better']:,} better, "
        words += f"{counts['same']:,} stayed the same"
        if counts["other"]:
            words += f", {counts['other']:,} have another verdict, and no score in one of the runs"
        if counts["failed"]:
            words += f", {counts['failed']:,} failed in one of the runs"
            words += f" ({counts['failed_now']:,} in the second alone)"
        return words

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        lists = {"worse": self.worse, "better": self.better, "other": self.other}
        return {"counts": dict(self.counts)} | {
            name: [one.to_dict() for one in found] for name, found in lists.items()
        }


def better_of(figure: Figure, info: MetricInfo) -> Direction:
    """Return whether more of a figure is better, as it says itself or by its statistic."""
    statistic = figure.statistic
    if figure.better:
        return figure.better
    if isinstance(statistic, Mean | Quantile) and statistic.of == "score":
        return "lower" if info.lower_is_better else "higher"
    first = info.verdicts[0] if info.verdicts else None
    return "higher" if isinstance(statistic, Share) and statistic.verdict == first else ""


def read_scored(path: Path, run: Mapping[str, Any], info: MetricInfo, keys: SampleKeys) -> Scored:
    """Read the assessments of a metric once.

    Of a metric that is not installed only the mean is known, if it is that of its scores.

    Raises:
        RunFolderError: the assessments are damaged, or not those of the samples.
    """
    metric, folder = _metric(run, info), RunFolder(path)
    scores, failed, verdicts = array("d"), array("b"), []

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
            failed.append(one.error is not None)
            verdicts.append(one.verdict or "")
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
    bad = np.array(failed, dtype=np.bool_)
    return Scored(path, info, figures, np.array(scores), bad, verdicts, weighted)


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


def figure_changes(
    first: Scored,
    second: Scored,
    pairing: Pairing,
    keys: Sequence[str],
    seed: int = 0,
) -> dict[str, FigureChange]:
    """Return the changes of figures over the pairs that did not fail in either run.

    Questions are drawn with replacement, with all their answers in both runs; all figures are
    computed from the same draws. A key that cannot be resampled, or has no value over these
    pairs, is left out.
    """
    pairing = pairing.only(~(first.failed[pairing.first] | second.failed[pairing.second]))
    if not len(pairing.first):
        return {}
    sides = [first.weighted.at(pairing.first), second.weighted.at(pairing.second)]
    whole = [side.figures(np.ones((1, len(pairing.first)))) for side in sides]
    point = {
        key: (float(whole[0][key][0]), float(whole[1][key][0]))
        for key in keys
        if key in second.figures and all(key in one and not np.isnan(one[key][0]) for one in whole)
    }
    draws: dict[str, list[Floats]] = {key: [] for key in point}
    rng = generator(seed, "paired", first.info.name)
    for counts in drawn_counts(pairing.questions, rng):
        weights = counts[:, pairing.units]
        ones, others = (side.figures(weights) for side in sides)
        for key, found in draws.items():
            found.append(others[key] - ones[key])
    changes = {}
    for key, (before, after) in point.items():
        inputs = [side.inputs(key) for side in sides]
        differ = ~np.isclose(inputs[0], inputs[1], rtol=0, atol=SAME, equal_nan=True).all(axis=1)
        figure = second.figures[key]
        difference = paired_difference(
            after - before,
            np.concatenate(draws[key]),
            pairing.questions,
            len(np.unique(pairing.units[differ])),
            FEWEST_FOR_MEANS if isinstance(figure.statistic, Mean) else FEWEST,
        )
        better = better_of(figure, second.info)
        changes[key] = FigureChange(key, figure, better, before, after, difference)
    return changes


def why_not_resampled(pairing: Pairing, first: Scored, second: Scored) -> str:
    """Return why :func:`figure_changes` left a figure out that both summaries have."""
    if not len(pairing.first):
        return "the runs have no question in common"
    if (first.failed[pairing.first] | second.failed[pairing.second]).all():
        return "no pair was scored in both runs"
    return "it cannot be resampled, or has no value over the pairs"


def answer_changes(first: Scored, second: Scored, pairing: Pairing) -> AnswerChanges:
    """Return the pairs whose score or verdict changed, those that changed most first."""
    before, after = first.scores[pairing.first], second.scores[pairing.second]
    failed = (first.failed[pairing.first], second.failed[pairing.second])
    sign = -1.0 if first.info.lower_is_better else 1.0
    rise = sign * (after - before)
    scored = ~np.isnan(rise)
    verdicts = np.array(
        [
            first.verdicts[one] != second.verdicts[other]
            for one, other in zip(pairing.first, pairing.second, strict=True)
        ],
        dtype=np.bool_,
    )
    kinds = {
        "worse": scored & (rise < -SAME),
        "better": scored & (rise > SAME),
        "other": ~scored & verdicts & ~failed[0] & ~failed[1],
    }
    counts = {name: int(found.sum()) for name, found in kinds.items()}
    counts["failed_now"] = int((failed[1] & ~failed[0]).sum())
    counts["failed"] = int((failed[0] | failed[1]).sum())
    counts["same"] = len(before) - sum(counts[name] for name in (*kinds, "failed"))
    size = np.where(scored, -np.abs(rise), 0.0)
    chosen = {
        name: [place for place in np.argsort(size, kind="stable").tolist() if found[place]][:LISTED]
        for name, found in kinds.items()
    }
    wanted = [place for places in chosen.values() for place in places]
    told = [
        _told(side, {int(places[place]) for place in wanted})
        for side, places in ((first, pairing.first), (second, pairing.second))
    ]

    def change(place: int) -> AnswerChange:
        one, other = told[0][int(pairing.first[place])], told[1][int(pairing.second[place])]
        both = list(zip(one, other, strict=True))
        question, ids, responses, scores, found, reasons = both
        return AnswerChange(question[1], ids, responses, scores, found, reasons)

    lists = {name: [change(place) for place in places] for name, places in chosen.items()}
    return AnswerChanges(lists["worse"], lists["better"], lists["other"], counts)


def _told(side: Scored, places: set[int]) -> dict[int, tuple[Any, ...]]:
    """Return question, id, response, score, verdict and reason of samples, by their places."""
    folder = RunFolder(side.path)
    assessments = folder.assessments(side.info.name)
    found = {}
    for place, record in enumerate(folder.sample_records()):
        if place in places:
            one = assessments[place]
            found[place] = (
                str(record["question"]),
                one.id,
                str(record.get("response") or ""),
                one.score,
                one.verdict or "",
                one.reason,
            )
    return found
