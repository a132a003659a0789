"""Entailers side by side on labelled pairs: how well each divides them, and how long it takes."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import cast

import numpy as np

from trustassay.calls.backends import Backends
from trustassay.calls.client import CallOptions, SampleModels, open_calls
from trustassay.capabilities import Entailer, Models
from trustassay.data.labelled_pairs import LabelledPair
from trustassay.errors import BackendError
from trustassay.event_loop import run_anywhere
from trustassay.statistics import Bools, Floats, Places, calibration, resampling
from trustassay.statistics.auroc import auroc_interval
from trustassay.statistics.correlation import auroc, weighted_calibration_error
from trustassay.workflows.json_form import JsonForm

NO_CACHE = CallOptions(cache=None)
THRESHOLD = 0.5
TOGETHER = 512
"""Pairs that are requested at once."""
NO_SCORE = -1.0
"""Stands for a pair that failed, and is left out before anything is computed."""
ENTAILED, NEUTRAL, CONTRADICTED = range(3)
"""Columns of probabilities."""
TINY = 1e-12
REPLICATES = 1000


@dataclass(frozen=True, slots=True)
class Estimate(JsonForm):
    """A figure, ``None`` where it is not defined, with its 95 % interval."""

    value: float | None
    interval: tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class Passed(JsonForm):
    """How many supported pairs, and how many others, have a probability of 0.5 or more."""

    supported: int
    supported_passed: int
    other: int
    other_passed: int


@dataclass(frozen=True, slots=True)
class Contradictions(JsonForm):
    """How well contradicted statements are told from those that are not stated.

    auc: of P(contradiction) / (1 - P(entailment)) among them. calibration_error: of
    P(contradiction) over these and the supported pairs. passed and other_passed: how many of the
    contradicted, and of the other, pairs have a P(contradiction) of 0.5 or more.
    """

    contradicted: int
    not_stated: int
    auc: Estimate
    calibration_error: Estimate
    passed: int
    other_passed: int


@dataclass(frozen=True, slots=True)
class MeasuredEntailer(JsonForm):
    """What one entailer did; ``failed`` pairs count in no figure.

    seconds: of all its calls; replies that were stored before take none. kinds: in the order of
    the file. reason: of the first failure. contradictions: None unless the file has both labels.
    """

    name: str
    n: int
    failed: int
    reason: str
    auc: Estimate
    balanced_accuracy: Estimate
    calibration_error: Estimate
    seconds: float
    passed: Passed
    kinds: Mapping[str, Passed]
    contradictions: Contradictions | None


def measure_entailers(
    pairs: Sequence[LabelledPair],
    entailers: Mapping[str, Entailer],
    *,
    seed: int = 0,
    options: CallOptions = NO_CACHE,
) -> list[MeasuredEntailer]:
    """Score all pairs with each entailer, one entailer after the other.

    Pairs with the same premise are one unit. A calibration error has an interval, by the percentile
    bootstrap, from 1,000 units on.
    """
    made = []
    for name, entailer in entailers.items():
        scored = run_anywhere(partial(_scored, pairs, entailer, options))
        made.append(_measured(name, pairs, scored, seed))
    return made


async def _scored(
    pairs: Sequence[LabelledPair], entailer: Entailer, options: CallOptions
) -> tuple[Floats, str, float]:
    """Return the three probabilities of each pair, the first failure, and the seconds it took."""
    result = np.full((len(pairs), 3), NO_SCORE)
    reason = ""
    begun = time.monotonic()
    async with open_calls(Backends.of(entail=entailer), options) as client:
        models = cast(Models, SampleModels(client))
        for start in range(0, len(pairs), TOGETHER):
            block = pairs[start : start + TOGETHER]
            replies = await asyncio.gather(
                *(models.entail(one.premise, one.hypothesis) for one in block),
                return_exceptions=True,
            )
            for place, reply in enumerate(replies, start):
                if isinstance(reply, BackendError):
                    reason = reason or str(reply)
                elif isinstance(reply, BaseException):
                    raise reply
                else:
                    result[place] = reply.entailment, reply.neutral, reply.contradiction
    return result, reason, time.monotonic() - begun


def _measured(
    name: str, pairs: Sequence[LabelledPair], scored: tuple[Floats, str, float], seed: int
) -> MeasuredEntailer:
    every, reason, seconds = scored
    chances = every[:, ENTAILED]
    there = chances != NO_SCORE
    if not there.any():
        raise BackendError(f"{name} failed on all {len(pairs):,} pairs; the first: {reason}")
    truth = np.array([pair.supported for pair in pairs])
    kinds = np.array([pair.kind for pair in pairs])
    given, true = chances[there], truth[there]
    premises = resampling.cluster_numbers([pair.premise for pair in pairs])
    told = np.array([pair.contradicted is not None for pair in pairs]) & there
    denied = np.array([bool(pair.contradicted) for pair in pairs])
    return MeasuredEntailer(
        name,
        len(pairs),
        int((~there).sum()),
        reason,
        _auc(given, true, premises[there]),
        Estimate(
            calibration.balanced_accuracy(given, true),
            calibration.balanced_accuracy_interval(given, true, premises[there]),
        ),
        _calibration_error(given, true, premises[there], "calibration error", seed),
        seconds,
        _passed(given, true),
        {
            kind: _passed(chances[there & (kinds == kind)], truth[there & (kinds == kind)])
            for kind in dict.fromkeys(pair.kind for pair in pairs if pair.kind)
        },
        _contradictions(every[told], truth[told], denied[told], premises[told], seed),
    )


def _contradictions(
    chances: Floats, supported: Bools, denied: Bools, premises: Places, seed: int
) -> Contradictions | None:
    others = ~supported
    if denied.all() or not denied.any() or not (others & ~denied).any():
        return None
    against, beside = chances[others, CONTRADICTED], chances[others, NEUTRAL]
    share = against / np.maximum(against + beside, TINY)
    said = chances[:, CONTRADICTED] >= THRESHOLD
    return Contradictions(
        int(denied.sum()),
        int((others & ~denied).sum()),
        _auc(share, denied[others], premises[others]),
        _calibration_error(chances[:, CONTRADICTED], denied, premises, "contradiction error", seed),
        int((said & denied).sum()),
        int((said & ~denied).sum()),
    )


def _auc(given: Floats, true: Bools, units: Places) -> Estimate:
    interval = auroc_interval(given, true, units)
    return Estimate(auroc(given, true), None if isinstance(interval, str) else interval)


def _calibration_error(
    given: Floats, true: Bools, premises: Places, what: str, seed: int
) -> Estimate:
    """Return the calibration error; its interval, corrected for bias, over premises."""
    value = calibration.calibration_error(given, true)
    clusters = np.unique(premises, return_inverse=True)[1]
    count = int(clusters.max(initial=-1)) + 1
    if value is None or isinstance(resampling.interval_of([0.0, 1.0], count, biased=value), str):
        return Estimate(value, None)
    figure = weighted_calibration_error(given, true)
    rows = resampling.cluster_weights(
        clusters, resampling.generator(seed, "entailers", what), REPLICATES
    )
    drawn = np.concatenate([figure(weights) for weights in rows])
    result = resampling.interval_of(drawn, count, biased=value)
    return Estimate(value, None if isinstance(result, str) else result)


def _passed(chances: Floats, truth: Bools) -> Passed:
    said = chances >= THRESHOLD
    return Passed(
        int(truth.sum()), int((said & truth).sum()), int((~truth).sum()), int((said & ~truth).sum())
    )
