"""Options of ``trustassay monitor``: those that its state stores, and where alarms go."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from trustassay.runs.options import (
    INPUT,
    OUTPUT,
    Flag,
)

MAX_PAGES = 10_000
"""Pages of one list of a store of traces that are read by default, which are 5 million spans."""


@dataclass(frozen=True)
class Monitoring:
    """What is watched and promised: options of the command, which belong to the state."""

    figure: Annotated[
        list[str],
        Flag(
            "--figure",
            "What to watch: METRIC.failed and METRIC.not_answered (shares of all questions), "
            "METRIC.mean, METRIC.not_scored. May be given again. Default: what failed, or the "
            "mean, and what has no answer or score.",
            metavar="METRIC.FIGURE",
        ),
    ]
    at_most: Annotated[
        list[str],
        Flag(
            "--max",
            "A line for a share, watched from the first day on: faithfulness.failed=10%. May be "
            "given again.",
            metavar="FIGURE=SHARE%",
        ),
    ]
    by: Annotated[
        list[str],
        Flag(
            "--by",
            "Watch each value of a field by itself, too. May be given again. Default: model, "
            "domain.",
            metavar="FIELD",
        ),
    ]
    baseline: Annotated[
        int,
        Flag(
            "--baseline",
            "Days, the first ones, that later ones are compared with. From 14 on weekdays may "
            "differ.",
            metavar="DAYS",
            default=28,
            least=1,
        ),
    ]
    promise: Annotated[
        float,
        Flag(
            "--promise",
            "The probability of any false alarm in a year of daily looks, all figures together.",
            default=0.01,
            least=1e-6,
            most=0.5,
        ),
    ]
    unit: Annotated[
        Literal["day", "answer"],
        Flag(
            "--unit",
            "day: days differ by themselves, too. answer: only answers do; changes of a busy "
            "service are told earlier.",
            metavar="day|answer",
            group=INPUT,
            default="day",
            rare=True,
        ),
    ]
    fixed: Annotated[
        bool,
        Flag(
            "--fixed",
            "The runs are of the same probes with the same answers: a change is the judge's. Each "
            "probe is compared with its first day.",
        ),
    ]


@dataclass(frozen=True)
class AlarmTargets:
    """Where alarms go besides the terminal."""

    webhook: Annotated[
        str,
        Flag(
            "--webhook",
            "Post each alarm there as JSON, again at the next call if it fails. A key in "
            "TRUSTASSAY_WEBHOOK_KEY is sent as a bearer token.",
            metavar="URL",
            default="",
        ),
    ]
    prometheus: Annotated[
        Path | None,
        Flag(
            "--prometheus",
            "Write values and alarms for Prometheus's text file collector.",
            metavar="FILE",
            group=OUTPUT,
        ),
    ]
