"""The figures of a data set: means, shares and quantiles of the scores."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from trustassay.metric import Assessment, Figure, Metric, Summary
from trustassay.statistics.bootstrap import (
    BootstrapSums,
    percentile_interval,
    resampled_quantiles,
)
from trustassay.statistics.randomness import generator

__all__ = ["FIGURES", "SEMANTIC_FIGURES", "summarise"]


def _figures(*rows: tuple[str, str, str, bool]) -> dict[str, Figure]:
    return {key: Figure(key, words, unit, headline=main) for key, words, unit, main in rows}


FIGURES: Mapping[str, Figure] = _figures(
    ("mean", "mean gamma, the sine of the angle that the answers move by; 0 is stable", "", True),
    ("median", "median of gamma", "", True),
    ("p90", "gamma that nine in ten answers stay below", "", False),
    ("stable_share", "answers whose gamma is below stable_below", "%", True),
    ("stable_mean", "mean gamma of those", "", False),
    ("angle_degrees", "mean angle between the original answer and the others", "°", True),
    ("gamma_length", "mean distance of the answer's vector from the others' mean", "", False),
    ("pairwise_distance", "mean cosine distance between any two answers of a question", "", False),
    ("perturbations", "perturbed prompts asked for each question", "", False),
    ("refused", "perturbed prompts that the endpoint refused", "", False),
    ("empty", "perturbed prompts that were answered without a word", "", False),
    ("cut", "answers that were cut at max_tokens", "", False),
    ("unseen", "perturbed prompts that the endpoint may have stripped", "", False),
)
SEMANTIC_FIGURES: Mapping[str, Figure] = _figures(
    ("mean", "mean divergence of what the answers say; 0 says the same", "", True),
    ("median", "median of the divergence", "", True),
    ("p90", "divergence that nine in ten answers stay below", "", False),
    ("stable_share", "answers whose divergence is below stable_below", "%", True),
    ("stable_mean", "mean divergence of those", "", False),
    ("entails_others", "mean probability that the original answer entails another", "", False),
    ("entailed_by_others", "mean probability that another entails the original", "", False),
    ("perturbations", "perturbed prompts asked for each question", "", False),
    ("refused", "perturbed prompts that the endpoint refused", "", False),
    ("empty", "perturbed prompts that were answered without a word", "", False),
    ("cut", "answers that were cut at max_tokens", "", False),
    ("unseen", "perturbed prompts that the endpoint may have stripped", "", False),
)
_COUNTED = frozenset({"refused", "empty", "cut", "unseen"})
_QUANTILES = {"median": 0.5, "p90": 0.9}


def summarise(
    metric: Metric,
    assessments: Collection[Assessment],
    figures: Mapping[str, Figure],
    *,
    seed: int,
) -> Summary:
    """Return the figures over the scored samples, read once and in order.

    A figure of a single sample has no interval: one sample says nothing of how others scatter.
    """
    averaged = [key for key in figures if key not in {"mean", "stable_mean", *_QUANTILES}]
    rng = generator(seed, "bootstrap", metric.name)
    bootstrap = BootstrapSums(len(assessments), len(averaged) + 4, rng)
    scores = []
    for assessment in assessments:
        row = np.zeros(len(averaged) + 4)
        if assessment.error is None and assessment.score is not None:
            scores.append(assessment.score)
            stable = assessment.verdict == "stable"
            parts = {**assessment.parts, "stable_share": 100.0 * stable}
            row[:4] = 1, assessment.score, stable, assessment.score * stable
            row[4:] = [parts.get(key, 0) for key in averaged]
        bootstrap.add(row[None])
    bootstrap.finish()
    n = len(scores)
    point = _means(bootstrap.total[None], averaged)
    spread = _means(bootstrap.resampled, averaged)
    values: dict[str, float | int | None] = {}
    intervals: dict[str, tuple[float, float]] = {}
    absent: dict[str, str] = {}
    stable_n = int(bootstrap.total[2])
    for key in figures:
        if n == 0 or (key == "stable_mean" and stable_n == 0):
            values[key] = None
            absent[key] = "no sample was scored" if n == 0 else "no answer is stable"
        elif key in _QUANTILES:
            values[key] = float(np.quantile(scores, _QUANTILES[key]))
            interval = percentile_interval(resampled_quantiles(scores, _QUANTILES[key], rng))
            assert interval
            intervals[key] = interval
        elif key in _COUNTED:
            values[key] = round(float(point[key][0]) * n)
        else:
            values[key] = float(point[key][0])
            interval = percentile_interval(spread[key])
            if interval and key != "perturbations":
                intervals[key] = interval
    support = {key: stable_n if key == "stable_mean" else n for key in figures}
    intervals = {key: one for key, one in intervals.items() if support[key] > 1}
    failed = len(assessments) - n
    return Summary(values, len(assessments), failed, intervals, support, absent, metric.settings())


def _means(sums: np.ndarray, averaged: list[str]) -> dict[str, np.ndarray]:
    """Return the figures of rows of sums; NaN where a resample holds no sample for one."""
    with np.errstate(invalid="ignore", divide="ignore"):
        found = {"mean": sums[:, 1] / sums[:, 0], "stable_mean": sums[:, 3] / sums[:, 2]}
        return found | {key: sums[:, 4 + i] / sums[:, 0] for i, key in enumerate(averaged)}
