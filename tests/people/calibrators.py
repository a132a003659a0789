"""Calibrators that are written without labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from trustassay.runs.calibrator import (
    CalibratedScore,
    Calibrator,
    LabelRecord,
    ScoreOrigin,
    ThresholdPromise,
    write_calibrator,
)
from trustassay.statistics.comparison import summarise_distribution
from trustassay.statistics.regression import Isotonic


def promise(above: float | None = 0.5, **others: Any) -> ThresholdPromise:
    """Return the promise of 10 % at most."""
    return ThresholdPromise(0.1, 0.95, above=above, **others)


def calibrator(
    path: Path,
    promises: Sequence[ThresholdPromise] = (promise(),),
    *,
    judges: Mapping[str, Sequence[str]] | None = None,
    by: str = "",
    sign: int = 1,
    group: str = "",
    origin: ScoreOrigin | None = None,
) -> Path:
    """Write a calibrator of ``jev``, or of a run's metric, with scores evenly from 0 to 1."""
    origin = origin or ScoreOrigin("table", judges=judges or {})
    scores = (np.arange(400) + 0.5) / 400
    write_calibrator(
        Calibrator(
            CalibratedScore(origin.metric or "jev", sign, origin),
            LabelRecord("human", 400, 300, "evenly drawn", group, "d1"),
            promises,
            [],
            Isotonic((-1.0, 0.0, 1.0), (0.1, 0.5, 0.9)),
            summarise_distribution(scores, np.arange(400)),
            by,
        ),
        path,
    )
    return path
