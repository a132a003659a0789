"""How a run is carried out."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trustassay.calls.budget import Budget
from trustassay.calls.client import CallOptions
from trustassay.calls.prices import Prices
from trustassay.errors import UnknownNameError, UsageError, did_you_mean
from trustassay.runs.calibrator import Calibrator
from trustassay.runs.stages import Filling
from trustassay.texts import LONGEST_ANSWER, TextLimits

__all__ = ["RunOptions", "run_options"]


WHY = "why"
"""Key in ``run.json`` of why the metric was chosen, where nobody named it."""


@dataclass(frozen=True)
class RunOptions:
    """How a run is carried out. Only ``fields``, ``limit``, ``longest_answer``, ``seed``,
    ``unit``, ``pool`` and ``filling`` can change a result.

    unit: what is independent in an interval: ``question`` (the default), ``answer``, or a field of
        the samples (:func:`~trustassay.runs.units.read_units`).
    longest_answer: characters up to which an answer is assessed, and passages in proportion
        (:class:`~trustassay.texts.TextLimits`).
    samples_at_once: how many are in progress at once, per metric; ``None`` for 256, or for twice
        the calls that an endpoint takes at once if that is more.
    report: write ``report.html`` at the end.
    progress: show it; ``None``: in a notebook alone.
    calls_from: a store of calls to start from.
    pool: a file of samples for metrics that use other samples; else the run's.
    command: the words on the command line that began the run, for messages.
    why: the metric was chosen, if nobody named it.
    calibrator: one that will be applied to the run; other settings than its own are refused before
        any model is asked.
    filling: how missing fields are requested. calls: how models are called.
    """

    fields: Mapping[str, str] = field(default_factory=dict)
    limit: int | None = None
    seed: int = 0
    unit: str | None = None
    skip_bad: bool = False
    longest_answer: int = LONGEST_ANSWER
    samples_at_once: int | None = None
    report: bool = True
    progress: bool | None = None
    calls_from: Path | None = None
    pool: str | os.PathLike[str] | None = None
    command: str | None = None
    why: str | None = None
    calibrator: Calibrator | None = None
    filling: Filling = field(default_factory=Filling)
    calls: CallOptions = field(default_factory=CallOptions)

    def __post_init__(self) -> None:
        bounds = {"samples_at_once": 1, "limit": 1, "longest_answer": 1, "seed": 0}
        for option, least in bounds.items():
            value = getattr(self, option)
            if value is not None and value < least:
                raise UsageError(f"{option}: expected {least} or more, got {value}")

    @property
    def limits(self) -> TextLimits:
        """How much text of a sample is assessed."""
        return TextLimits(self.longest_answer)


def run_options(**options: Any) -> RunOptions:
    """Return the options of a run from keywords, those of ``filling`` and ``calls`` among them.

    Raises:
        UnknownNameError: an option that does not exist.
        ValueError: a value that an option cannot have.
    """
    parts = {"filling": Filling, "calls": CallOptions}
    known = {f.name: "" for f in dataclasses.fields(RunOptions) if f.name not in parts}
    for part, kind in parts.items():
        known |= {f.name: part for f in dataclasses.fields(kind)}
    given: dict[str, dict[str, Any]] = {"": {}, **{part: {} for part in parts}}
    for name, value in options.items():
        if name not in known:
            raise UnknownNameError(did_you_mean("option", name, known))
        given[known[name]][name] = value
    if "budget" in options:
        given["calls"]["budget"] = Budget.of(options["budget"])
    if isinstance(options.get("cache"), str | os.PathLike):
        given["calls"]["cache"] = Path(options["cache"])
    if isinstance(prices := options.get("prices", Prices()), str | os.PathLike) or prices is None:
        given["calls"]["prices"] = Prices() if prices is None else Prices.read(prices)
    own = given.pop("")
    return RunOptions(**own, **{part: parts[part](**values) for part, values in given.items()})
