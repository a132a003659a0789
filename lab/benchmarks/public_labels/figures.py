"""Figures of scored rows against labels, each beside the rules that read nothing.

All functions take rows and their scores and do no input or output. Intervals are of 95 %; they
resample, or are summed over, what rows share (``LabelledRow.cluster``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lab.benchmarks.public_labels.rows import LabelledRow
from lab.benchmarks.public_labels.scoring import ScoredAnswer, ScoredRow
from lab.benchmarks.public_labels.spans import SpanCounts, count_characters, score_spans
from trustassay.statistics.auroc import auroc_difference, auroc_interval
from trustassay.statistics.correlation import auroc
from trustassay.statistics.resampling import (
    cluster_numbers,
    cluster_weights,
    generator,
    resample_interval,
)

Json = dict[str, Any]
Floats = NDArray[np.float64]
Value = Callable[[Sequence[ScoredAnswer]], float | None]
RESAMPLES = 2000
MIN_ROWS = 15
"""Rows with a score below which there is no AUROC."""
MIN_SHARE_JUDGED = 0.1
"""Share of rows with a score below which a score has no AUROC."""


def lowest_score(answers: Sequence[ScoredAnswer]) -> float | None:
    """Return the lowest score of a row's answers; ``None`` if none was judged."""
    return min((answer.score for answer in answers if answer.score is not None), default=None)


def lowest_part(name: str) -> Value:
    """Return a function of the lowest value of a part."""

    def value(answers: Sequence[ScoredAnswer]) -> float | None:
        return min((a.parts[name] for a in answers if name in a.parts), default=None)

    return value


def fewer_unsupported(answers: Sequence[ScoredAnswer]) -> float | None:
    """Return minus the number of statements that are not supported."""
    counts = [a.parts["statements"] - a.parts["supported"] for a in answers if a.score is not None]
    return -sum(counts) if counts else None


VIEWS: Mapping[str, Mapping[str, Value]] = {
    "faithfulness": {
        "score": lowest_score,
        "support": lowest_part("support"),
        "order": lowest_part("order"),
        "weakest": lowest_part("weakest"),
        "fewer unsupported": fewer_unsupported,
    },
    "factcheck": {"score": lowest_score, "entailment": lowest_part("entailment")},
    "grounding": {"score": lowest_score},
    "tool_use": {"score": lowest_score},
    "reference": {"score": lowest_score, "token_recall": lowest_part("token_recall")},
    "judge": {"score": lowest_score},
}
"""By metric the scores that are compared with labels; higher means right."""


class LabelledScores(NamedTuple):
    """Rows of two kinds with a score each."""

    scores: Floats
    """NaN where a row was not judged."""
    right: NDArray[np.bool_]
    clusters: NDArray[np.int64]


def measure_auroc(data: LabelledScores, rule: Floats | None = None) -> Json | None:
    """Return an AUROC with its interval; ``None`` where too few rows were judged.

    A row that was not judged stands in the middle, at the median of the others: nothing is gained
    by judging only what is easy.

    Args:
        data: the rows.
        rule: scores of a trivial rule, which is compared on the same rows.
    """
    judged = ~np.isnan(data.scores)
    is_enough = judged.sum() >= MIN_ROWS and judged.mean() >= MIN_SHARE_JUDGED
    if not is_enough or len(set(data.right)) < 2:
        return None
    scores = np.where(judged, data.scores, np.median(data.scores[judged]))
    result: Json = {
        "value": _round(auroc(scores, data.right)),
        "interval": _round_interval(auroc_interval(scores, data.right, data.clusters)),
        "judged": int(judged.sum()),
        "rows": len(judged),
    }
    if rule is not None:
        test = auroc_difference(scores, rule, data.right, data.clusters)
        result["beyond the rule"] = {
            "value": _round(test.value),
            "interval": _round_interval(test.interval),
        }
    return result


def measure_line(
    flagged: NDArray[np.bool_], right: NDArray[np.bool_], clusters: NDArray[np.int64]
) -> Json:
    """Return what the line of a metric flags: of right rows (false alarms), and of wrong ones."""
    weights = _draw_weights(clusters)
    every = np.ones((1, len(right)))

    def share(of_kind: NDArray[np.bool_], w: Floats) -> Floats:
        total = w @ of_kind.astype(float)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(w @ (of_kind & flagged).astype(float) / total)

    figures: Mapping[str, Callable[[Floats], Floats]] = {
        "false_alarms": lambda w: share(right, w),
        "caught": lambda w: share(~right, w),
        "balanced_accuracy": lambda w: (share(~right, w) + 1 - share(right, w)) / 2,
    }
    return {
        name: {
            "value": _round(float(figure(every)[0])),
            "interval": _round_interval(_interval_of(figure(weights), clusters)),
        }
        for name, figure in figures.items()
    }


def measure_spans(
    rows: Sequence[LabelledRow], marks: Mapping[str, Sequence[tuple[int, int]]]
) -> Json:
    """Return precision, recall and F1 of marked characters, over all characters of the rows.

    Args:
        rows: with the spans that people marked. marks: spans by the id of a row.
    """
    counts = np.array(
        [
            count_characters(marks.get(row.id, ()), row.spans, len(row.record["response"]))
            for row in rows
        ],
        dtype=np.float64,
    )
    clusters = cluster_numbers([row.cluster for row in rows])
    drawn = _draw_weights(clusters) @ counts
    resampled = np.array([score_spans(SpanCounts(*row)) for row in drawn])
    return {
        name: {
            "value": _round(value),
            "interval": _round_interval(_interval_of(resampled[:, place], clusters)),
        }
        for place, (name, value) in enumerate(
            score_spans(SpanCounts(*counts.sum(axis=0)))._asdict().items()
        )
    }


def measure_share(hits: Sequence[bool], clusters: Sequence[str]) -> Json:
    """Return a share of rows with its interval over clusters."""
    places = cluster_numbers(list(clusters))
    values = np.array(hits, dtype=np.float64)
    drawn = _draw_weights(places)
    return {
        "value": _round(float(values.mean())),
        "interval": _round_interval(_interval_of(drawn @ values / drawn.sum(axis=1), places)),
        "rows": len(values),
    }


def collect_scores(
    rows: Sequence[LabelledRow], scores: Mapping[str, ScoredRow], metric: str, value: Value
) -> Floats:
    """Return the score of each row, NaN where it was not judged."""
    numbers = [value(scores[row.id].of_metric(metric)) for row in rows]
    return np.array([np.nan if number is None else number for number in numbers])


def collect_flags(
    rows: Sequence[LabelledRow], scores: Mapping[str, ScoredRow], metric: str
) -> NDArray[np.bool_]:
    """Return whether any answer of each row needs a look."""
    return np.array([any(a.flagged for a in scores[row.id].of_metric(metric)) for row in rows])


def name_faulty_step(scored: ScoredRow) -> int:
    """Return the step of a log with the lowest support; the first step if no other was judged."""
    judged = [
        (answer.parts["support"], int(answer.sample.rpartition("-")[2]))
        for answer in scored.answers
        if "support" in answer.parts
    ]
    return min(judged, default=(0.0, 0))[1]


def _draw_weights(clusters: NDArray[np.int64]) -> Floats:
    rng = generator(0, "public labels")
    return np.concatenate(list(cluster_weights(clusters, rng, RESAMPLES)))


def _interval_of(drawn: Floats, clusters: NDArray[np.int64]) -> Any:
    return resample_interval(drawn, int(clusters.max()) + 1)


def _round(value: float | None) -> float | None:
    return None if value is None or np.isnan(value) else round(float(value), 3)


def _round_interval(interval: Any) -> Any:
    # A text says why there is no interval.
    if interval is None or isinstance(interval, str):
        return interval
    return [round(float(end), 3) for end in interval]
