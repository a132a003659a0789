"""How a run is carried out."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trustassay.calls.opening import CallOptions
from trustassay.calls.spending import Budget, Prices
from trustassay.errors import UnknownNameError, did_you_mean
from trustassay.runs.calibrator import Calibrator
from trustassay.runs.stages import Filling

__all__ = ["RunOptions", "run_options"]


@dataclass(frozen=True)
class RunOptions:
    """How a run is carried out. Only ``fields``, ``limit``, ``seed``, ``pool`` and ``filling`` can
    change a result.

    concurrency: samples in progress at once, per metric; ``None`` for 256, or for twice the calls
        that an endpoint takes at once if that is more.
    report: write ``report.html`` at the end.
    progress: show it; ``None``: in a notebook alone.
    calls_from: a store of calls to start from.
    pool: a file of samples for metrics that use other samples; else the run's.
    command: the words on the command line that began the run, for messages.
    calibrator: one that will be applied to the run; other settings than its own are refused before
        any model is asked.
    filling: how missing fields are requested. calls: how models are called.
    """

    fields: Mapping[str, str] = field(default_factory=dict)
    limit: int | None = None
    seed: int = 0
    skip_bad: bool = False
    concurrency: int | None = None
    report: bool = True
    progress: bool | None = None
    calls_from: Path | None = None
    pool: str | os.PathLike[str] | None = None
    command: str | None = None
    calibrator: Calibrator | None = None
    filling: Filling = field(default_factory=Filling)
    calls: CallOptions = field(default_factory=CallOptions)

    def __post_init__(self) -> None:
        for option, least in (("concurrency", 1), ("limit", 1), ("seed", 0)):
            value = getattr(self, option)
            if value is not None and value < least:
                raise ValueError(f"{option}: expected {least} or more, got {value}")


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
