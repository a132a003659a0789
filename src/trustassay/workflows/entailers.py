"""Entailers side by side on labelled pairs: how well each divides them, and how long it takes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trustassay.calls.backends import Backends
from trustassay.calls.models import SampleModels
from trustassay.calls.opening import CallOptions, open_calls
from trustassay.capabilities import Entailer, Models
from trustassay.data.labelled import LabelledPair
from trustassay.errors import BackendError
from trustassay.event_loop import run_anywhere
from trustassay.statistics.calibration import balanced_accuracy, calibration_error
from trustassay.statistics.correlation import auroc, bootstrap_interval
from trustassay.statistics.randomness import generator

__all__ = ["Estimate", "MeasuredEntailer", "Passed", "measure_entailers"]

Floats = NDArray[np.float64]
NO_CACHE = CallOptions(cache=None)
THRESHOLD = 0.5
TOGETHER = 512
"""Pairs that are requested at once."""
NO_SCORE = -1.0
"""Stands for a pair that failed, and is left out before anything is computed."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure, ``None`` where it is not defined, with its 95 % interval."""

    value: float | None
    interval: tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class Passed:
    """How many supported pairs, and how many others, have a probability of 0.5 or more."""

    supported: int
    supported_passed: int
    other: int
    other_passed: int


@dataclass(frozen=True, slots=True)
class MeasuredEntailer:
    """What one entailer did; ``failed`` pairs count in no figure.

    seconds: of all its calls; replies that were stored before take none. kinds: in the order of
    the file. reason: of the first failure.
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

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return asdict(self)


def measure_entailers(
    pairs: Sequence[LabelledPair],
    entailers: Mapping[str, Entailer],
    *,
    seed: int = 0,
    options: CallOptions = NO_CACHE,
    replicates: int = 1000,
) -> list[MeasuredEntailer]:
    """Score all pairs with each entailer, one entailer after the other.

    Intervals are of the percentile bootstrap over pairs.

    Raises:
        BackendError: an entailer failed on every pair.
    """
    made = []
    for name, entailer in entailers.items():
        scored = run_anywhere(partial(_scored, pairs, entailer, options))
        made.append(_measured(name, pairs, scored, (seed, replicates)))
    return made


async def _scored(
    pairs: Sequence[LabelledPair], entailer: Entailer, options: CallOptions
) -> tuple[Floats, str, float]:
    """Return P(entailment) of each pair, the first failure, and the seconds that it took."""
    found = np.full(len(pairs), NO_SCORE)
    reason = ""
    begun = time.monotonic()
    async with open_calls(Backends.of(entail=entailer), options) as gatherers:
        models = cast(Models, SampleModels(gatherers))
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
                    found[place] = reply.entailment
    return found, reason, time.monotonic() - begun


def _measured(
    name: str,
    pairs: Sequence[LabelledPair],
    scored: tuple[Floats, str, float],
    resampling: tuple[int, int],
) -> MeasuredEntailer:
    chances, reason, seconds = scored
    there = chances != NO_SCORE
    if not there.any():
        raise BackendError(f"{name} failed on all {len(pairs):,} pairs; the first: {reason}")
    truth = np.array([pair.supported for pair in pairs])
    kinds = np.array([pair.kind for pair in pairs])
    given, true = chances[there], truth[there]

    def estimate(measure: Callable[[ArrayLike, ArrayLike], float | None], what: str) -> Estimate:
        seed, replicates = resampling
        rng = generator(seed, "entailers", what)
        return Estimate(
            measure(given, true), bootstrap_interval(measure, given, true, rng, replicates)
        )

    return MeasuredEntailer(
        name,
        len(pairs),
        int((~there).sum()),
        reason,
        estimate(auroc, "auc"),
        estimate(balanced_accuracy, "balanced accuracy"),
        estimate(calibration_error, "calibration error"),
        seconds,
        _passed(given, true),
        {
            kind: _passed(chances[there & (kinds == kind)], truth[there & (kinds == kind)])
            for kind in dict.fromkeys(pair.kind for pair in pairs if pair.kind)
        },
    )


def _passed(chances: Floats, truth: NDArray[np.bool_]) -> Passed:
    said = chances >= THRESHOLD
    return Passed(
        int(truth.sum()), int((said & truth).sum()), int((~truth).sum()), int((said & ~truth).sum())
    )
