"""Measures entailers on labelled pairs: how well each one separates them, and how fast it is."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import cast

import numpy as np

from trustassay.calls.backends import Backends
from trustassay.calls.client import CallOptions, SampleModels, open_calls
from trustassay.core.capabilities import Entailer, Models
from trustassay.core.event_loop import run_anywhere
from trustassay.core.json_form import JsonForm
from trustassay.errors import BackendError
from trustassay.input.labelled_pairs import LabelledPair
from trustassay.statistics import Bools, Floats, Places, calibration, resampling
from trustassay.statistics.auroc import auroc_interval
from trustassay.statistics.correlation import auroc, weighted_calibration_error

NO_CACHE = CallOptions(cache=None)
THRESHOLD = 0.5
MAX_CONCURRENT_PAIRS = 512
"""Pairs that are requested at the same time."""
NO_SCORE = -1.0
"""Marks a pair that failed; such pairs are removed before anything is computed."""
ENTAILED, NEUTRAL, CONTRADICTED = range(3)
"""Columns of the table of probabilities."""
MIN_DENOMINATOR = 1e-12
REPLICATES = 1000


@dataclass(frozen=True, slots=True)
class EntailerEstimate(JsonForm):
    """A figure with its 95 % interval."""

    value: float | None
    """``None`` where the figure is not defined."""
    interval: tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class PassedCounts(JsonForm):
    """How many pairs pass: their probability of entailment is 0.5 or more."""

    supported: int
    """Pairs whose hypothesis the premise supports."""
    supported_passed: int
    other: int
    """All other pairs."""
    other_passed: int


@dataclass(frozen=True, slots=True)
class ContradictionFigures(JsonForm):
    """How well contradicted statements are told apart from statements that the premise leaves
    open."""

    contradicted: int
    """The number of contradicted pairs."""
    not_stated: int
    """The number of pairs that are neither supported nor contradicted."""
    auc: EntailerEstimate
    """AUROC of P(contradiction) / (1 - P(entailment)) among these two kinds of pairs."""
    calibration_error: EntailerEstimate
    """Calibration error of P(contradiction) over these and the supported pairs."""
    passed: int
    """Contradicted pairs with P(contradiction) of 0.5 or more."""
    other_passed: int
    """All other pairs with P(contradiction) of 0.5 or more."""


@dataclass(frozen=True, slots=True)
class MeasuredEntailer(JsonForm):
    """The figures of one entailer."""

    name: str
    n: int
    """The number of pairs."""
    failed: int
    """Pairs that failed; they count in no figure."""
    reason: str
    """The error of the first pair that failed."""
    auc: EntailerEstimate
    balanced_accuracy: EntailerEstimate
    calibration_error: EntailerEstimate
    seconds: float
    """The time of all calls; cached replies take none."""
    passed: PassedCounts
    kinds: Mapping[str, PassedCounts]
    """The same counts by kind of pair, in the order of the file."""
    contradictions: ContradictionFigures | None
    """``None`` unless the file labels contradicted pairs as well as open ones."""


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

    Raises:
        BackendError: an entailer failed on all pairs.
    """
    measured = []
    for name, entailer in entailers.items():
        probabilities = run_anywhere(partial(_score_pairs, pairs, entailer, options))
        measured.append(_measure_entailer(name, pairs, probabilities, seed))
    return measured


async def _score_pairs(
    pairs: Sequence[LabelledPair], entailer: Entailer, options: CallOptions
) -> tuple[Floats, str, float]:
    """Return the three probabilities of each pair, the first failure, and the seconds it took."""
    result = np.full((len(pairs), 3), NO_SCORE)
    reason = ""
    start_s = time.monotonic()
    async with open_calls(Backends.of(entail=entailer), options) as client:
        # The same client as in a run, so that requests are batched and retried in the same way.
        models = cast(Models, SampleModels(client))
        # In blocks, so that a large file does not become one task for each pair at once.
        for start in range(0, len(pairs), MAX_CONCURRENT_PAIRS):
            block = pairs[start : start + MAX_CONCURRENT_PAIRS]
            # Failures are counted, so one broken pair must not cancel the others.
            replies = await asyncio.gather(
                *(models.entail(pair.premise, pair.hypothesis) for pair in block),
                return_exceptions=True,
            )
            for place, reply in enumerate(replies, start):
                if isinstance(reply, BackendError):
                    reason = reason or str(reply)
                # Anything but a backend's failure is a bug or an interruption.
                elif isinstance(reply, BaseException):
                    raise reply
                else:
                    result[place] = reply.entailment, reply.neutral, reply.contradiction
    return result, reason, time.monotonic() - start_s


def _measure_entailer(
    name: str, pairs: Sequence[LabelledPair], scored: tuple[Floats, str, float], seed: int
) -> MeasuredEntailer:
    probabilities, reason, seconds = scored
    chances = probabilities[:, ENTAILED]
    has_score = chances != NO_SCORE
    # There is nothing to report; the first error is the most useful message.
    if not has_score.any():
        raise BackendError(
            f"{name} failed on all {len(pairs):,} pairs; the first failure: {reason}"
        )
    truth = np.array([pair.supported for pair in pairs])
    kinds = np.array([pair.kind for pair in pairs])
    scores, true = chances[has_score], truth[has_score]
    # Claims about one text succeed or fail together, so texts are resampled.
    premises = resampling.cluster_numbers([pair.premise for pair in pairs])
    # Files without this label leave the field empty, and get no such figures.
    is_labelled_contradiction = (
        np.array([pair.contradicted is not None for pair in pairs]) & has_score
    )
    is_contradicted = np.array([bool(pair.contradicted) for pair in pairs])
    return MeasuredEntailer(
        name=name,
        n=len(pairs),
        failed=int((~has_score).sum()),
        reason=reason,
        auc=_estimate_auc(scores, true, premises[has_score]),
        balanced_accuracy=EntailerEstimate(
            calibration.balanced_accuracy(scores, true),
            calibration.balanced_accuracy_interval(scores, true, premises[has_score]),
        ),
        calibration_error=_estimate_calibration_error(
            scores, true, premises[has_score], "calibration error", seed
        ),
        seconds=seconds,
        passed=_count_passed(scores, true),
        kinds={
            # Only pairs with a score count, also within a kind.
            kind: _count_passed(
                chances[has_score & (kinds == kind)], truth[has_score & (kinds == kind)]
            )
            for kind in dict.fromkeys(pair.kind for pair in pairs if pair.kind)
        },
        contradictions=_measure_contradictions(
            probabilities[is_labelled_contradiction],
            truth[is_labelled_contradiction],
            is_contradicted[is_labelled_contradiction],
            premises[is_labelled_contradiction],
            seed,
        ),
    )


def _measure_contradictions(
    chances: Floats, supported: Bools, is_contradicted: Bools, premises: Places, seed: int
) -> ContradictionFigures | None:
    unsupported = ~supported
    if (
        # Both kinds are needed, else nothing can be told apart.
        is_contradicted.all()
        or not is_contradicted.any()
        or not (unsupported & ~is_contradicted).any()
    ):
        return None
    contradiction, neutral = chances[unsupported, CONTRADICTED], chances[unsupported, NEUTRAL]
    # Given that the pair is not entailed, how likely is a contradiction?
    share = contradiction / np.maximum(contradiction + neutral, MIN_DENOMINATOR)
    is_called_contradicted = chances[:, CONTRADICTED] >= THRESHOLD
    return ContradictionFigures(
        int(is_contradicted.sum()),
        int((unsupported & ~is_contradicted).sum()),
        _estimate_auc(share, is_contradicted[unsupported], premises[unsupported]),
        _estimate_calibration_error(
            chances[:, CONTRADICTED], is_contradicted, premises, "contradiction error", seed
        ),
        int((is_called_contradicted & is_contradicted).sum()),
        int((is_called_contradicted & ~is_contradicted).sum()),
    )


def _estimate_auc(scores: Floats, true: Bools, units: Places) -> EntailerEstimate:
    # A text says why there is no interval; the JSON form only has null.
    interval = auroc_interval(scores, true, units)
    return EntailerEstimate(auroc(scores, true), None if isinstance(interval, str) else interval)


def _estimate_calibration_error(
    scores: Floats, true: Bools, premises: Places, what: str, seed: int
) -> EntailerEstimate:
    """Estimate the calibration error, with an interval over premises that is corrected for bias."""
    value = calibration.calibration_error(scores, true)
    # Numbers without gaps, since failed pairs were removed.
    clusters = np.unique(premises, return_inverse=True)[1]
    count = int(clusters.max(initial=-1)) + 1
    # Ask first whether there would be an interval: the resamples are slow.
    if value is None or isinstance(
        resampling.resample_interval([0.0, 1.0], count, biased=value), str
    ):
        return EntailerEstimate(value, None)
    figure = weighted_calibration_error(scores, true)
    rows = resampling.cluster_weights(
        clusters, resampling.generator(seed, "entailers", what), REPLICATES
    )
    drawn = np.concatenate([figure(weights) for weights in rows])
    result = resampling.resample_interval(drawn, count, biased=value)
    return EntailerEstimate(value, None if isinstance(result, str) else result)


def _count_passed(chances: Floats, truth: Bools) -> PassedCounts:
    is_passed = chances >= THRESHOLD
    return PassedCounts(
        int(truth.sum()),
        int((is_passed & truth).sum()),
        int((~truth).sum()),
        int((is_passed & ~truth).sum()),
    )
