"""The figures of a data set: sums over answers, the bootstrap, and what does not apply."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from trustassay.metric import Assessment, Summary
from trustassay.metrics.grounding import maths
from trustassay.metrics.grounding.keys import FIGURES, LATER_NAMES
from trustassay.metrics.grounding.options import GroundingOptions
from trustassay.statistics.bootstrap import BootstrapSums, percentile_interval
from trustassay.statistics.randomness import generator

__all__ = ["summarise"]

Floats = NDArray[np.float64]

CHUNK = 4096
COUNTS = {
    "answered_num": "answered_ratio",
    "answerable_num": "answerable_ratio",
    "overlapped_num": "overlapped_ratio",
}


def summarise(
    metric: GroundingOptions, assessments: Collection[Assessment], *, seed: int
) -> Summary:
    """Return every key of Trust-Eval over ``assessments``, read once and in order."""
    correctness = None if metric.correctness in ("none", "auto") else metric.correctness
    keys, members = _layout(correctness)
    rng = generator(seed, "bootstrap", metric.name)
    bootstrap = BootstrapSums(len(assessments), 2 * len(keys), rng)
    unions = np.zeros(len(members), dtype=int)
    failed = 0
    for chunk in _chunks(assessments):
        scored = [a.parts for a in chunk if a.error is None]
        failed += len(chunk) - len(scored)
        rows = np.zeros((len(chunk), 2 * len(keys)))
        if scored:
            found = maths.terms(
                maths.part_table(scored), correctness, skip_blank=metric.rules.blank == "skip"
            )
            populations = np.array([found[key][1] for key in keys])
            values = np.array([found[key][0] for key in keys])
            rows[: len(scored), : len(keys)] = np.where(populations, values, 0.0).T
            rows[: len(scored), len(keys) :] = populations.T
            unions += [populations[list(m)].any(axis=0).sum() for m in members.values()]
        bootstrap.add(rows)
    bootstrap.finish()
    point = _figures(metric, correctness, keys, bootstrap.total)
    populated = [key for key, size in zip(keys, bootstrap.total[len(keys) :], strict=True) if size]
    spread = _figures(metric, correctness, keys, bootstrap.resampled, populated)
    support = dict(zip(members, map(int, unions), strict=True))
    return _summary(metric, point, spread, support, len(assessments), failed)


def _layout(correctness: str | None) -> tuple[list[str], dict[str, list[int]]]:
    """Return the averaged keys, and for every figure which of them it is made of, by position."""
    keys = list(maths.terms(maths.part_table([{}]), correctness, skip_blank=False))
    members = {key: {i} for i, key in enumerate(keys)}
    for key, (inputs, _) in maths.COMPOSITES.items():
        if all(name in members for name in inputs):
            members[key] = set().union(*(members[name] for name in inputs))
    if correctness:
        inputs = (maths.CORRECTNESS_F1[correctness], "macro_f1", "answered_citation_f1")
        members["trust_score"] = set().union(*(members[name] for name in inputs))
    return keys, {key: sorted(positions) for key, positions in members.items()}


def _chunks(assessments: Collection[Assessment]) -> Iterator[Sequence[Assessment]]:
    iterator = iter(assessments)
    while chunk := list(islice(iterator, CHUNK)):
        yield chunk


def _figures(
    metric: GroundingOptions,
    correctness: str | None,
    keys: Sequence[str],
    sums: Floats,
    populated: Collection[str] = (),
) -> dict[str, Floats]:
    """Return the figures for sums of shape (..., 2 K): K sums of terms, K sizes."""
    columns = np.moveaxis(sums, -1, 0)
    totals = dict(zip(keys, columns[: len(keys)], strict=True))
    sizes = dict(zip(keys, columns[len(keys) :], strict=True))
    found = maths.figures(
        totals,
        sizes,
        correctness,
        undefined_f1_zero=metric.rules.undefined_f1_zero,
        populated=populated,
    )
    found |= {name: totals[key] for name, key in COUNTS.items()}
    found["unanswerable_num"] = sizes["answerable_ratio"] - totals["answerable_ratio"]
    found["num_samples"] = sizes["answered_ratio"]
    found["invalid_citations"] = totals["invalid_citations"]
    return found


def _summary(
    metric: GroundingOptions,
    point: Mapping[str, Floats],
    spread: Mapping[str, Floats],
    support: Mapping[str, int],
    n: int,
    failed: int,
) -> Summary:
    values: dict[str, float | int | None] = {}
    intervals: dict[str, tuple[float, float]] = {}
    reasons: dict[str, str] = {}
    samples = int(point["num_samples"])
    for key in FIGURES:
        source = _FIRST_NAMES.get(key, key)
        if source not in point:
            continue
        reason = _not_applicable(source, support, float(point[source]))
        if reason:
            values[key], reasons[key] = None, reason
        elif key.endswith("_num") or key in ("num_samples", "invalid_citations"):
            values[key] = int(point[source])
        else:
            value = float(point[source])
            values[key] = round(value, 2) if key == "answered_ratio" else value
            interval = percentile_interval(spread[source])
            if interval and samples > 1:
                intervals[key] = interval
    if metric.correctness in ("none", "auto"):
        nothing = "correctness is none: there are no gold answers or claims to hold against"
        reasons["trust_score"] = nothing if samples else "no sample was scored"
        values = {"trust_score": None, **values}
    return Summary(
        values=values,
        n=n,
        failed=failed,
        intervals=intervals,
        support={key: _support(key, support, samples) for key in values},
        not_applicable=reasons,
        settings=metric.settings(),
    )


_FIRST_NAMES = {later: first for first, later in LATER_NAMES.items()}
_NEEDS_ANSWERABLE = frozenset(
    {"answerable_num", "unanswerable_num", "overlapped_num"}
    | {"reject_rec", "reject_prec", "reject_f1", "macro_avg", "macro_f1"}
    | {"answerable_rec", "answerable_prec", "answerable_f1", "trust_score"}
)


_COUNTS_OF_ALL = frozenset({"num_samples", "answered_num", "invalid_citations"})


def _not_applicable(key: str, support: Mapping[str, int], value: float) -> str | None:
    """Return why a figure has no value, in words, or ``None`` where it has one."""
    calibrated = key.startswith(("calib_", "parametric_", "qampari_"))
    if not support["answered_ratio"] and key not in _COUNTS_OF_ALL:
        return "no sample was scored"
    if (key in _NEEDS_ANSWERABLE or calibrated) and not support["answerable_ratio"]:
        return (
            "no sample says, by gold answers or by the documents' support flags, "
            "whether its documents hold an answer"
        )
    correct = next((k for k in support if k in _REGULAR), None)
    about_golds = calibrated or key == "trust_score" or key.endswith(_CORRECTNESS_ENDINGS)
    if about_golds and (correct is None or not support[correct]):
        return "no sample has gold answers or claims to be held against"
    if np.isnan(value):
        if key.startswith("qampari_"):
            return "no answer has a wrong list element"
        return "no response has a statement"
    return None


_REGULAR = ("regular_str_em", "regular_claims_nli", "regular_num_preds")
_CORRECTNESS_ENDINGS = ("_str_em", "_claims_nli", "_num_preds", *maths.LIST_KEYS)


def _support(key: str, support: Mapping[str, int], samples: int) -> int:
    """Return the number of samples that a figure is made of."""
    key = _FIRST_NAMES.get(key, key)
    if key in COUNTS or key == "unanswerable_num":
        return support[COUNTS.get(key, "answerable_ratio")]
    return support.get(key, samples)
