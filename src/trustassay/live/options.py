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
            "A figure to monitor: METRIC.failed or METRIC.not_answered (shares of all questions), "
            "METRIC.mean, METRIC.not_scored. May be given more than once. Default: failed "
            "(without it, the mean), not_answered and not_scored.",
            metavar="METRIC.FIGURE",
        ),
    ]
    at_most: Annotated[
        list[str],
        Flag(
            "--max",
            "Raise an alarm when a share is above this limit, from the first day on: "
            "faithfulness.failed=10%. May be given more than once.",
            metavar="FIGURE=SHARE%",
        ),
    ]
    by: Annotated[
        list[str],
        Flag(
            "--by",
            "Also monitor each value of this field separately. May be given more than once. "
            "Default: model, domain.",
            metavar="FIELD",
        ),
    ]
    baseline: Annotated[
        int,
        Flag(
            "--baseline",
            "The number of first days that later days are compared with. From 14 days on, each "
            "weekday has its own level.",
            metavar="DAYS",
            default=28,
            least=1,
        ),
    ]
    promise: Annotated[
        float,
        Flag(
            "--promise",
            "The highest allowed probability of a false alarm in a year of daily calls, over all "
            "figures together.",
            default=0.01,
            least=1e-6,
            most=0.5,
        ),
    ]
    unit: Annotated[
        Literal["day", "answer"],
        Flag(
            "--unit",
            "What varies at random. day: answers and whole days. answer: answers only, which "
            "finds changes earlier but raises false alarms if days differ by themselves.",
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
            "Test the judge: each run scores the same probes with the same answers, so a change "
            "comes from the judge. Each probe is compared with its first day.",
        ),
    ]


@dataclass(frozen=True)
class AlarmTargets:
    """Where alarms go besides the terminal."""

    webhook: Annotated[
        str,
        Flag(
            "--webhook",
            "Post each alarm as JSON to this address. If that fails, the next call tries again. A "
            "key in TRUSTASSAY_WEBHOOK_KEY is sent as a bearer token.",
            metavar="URL",
            default="",
        ),
    ]
    prometheus: Annotated[
        Path | None,
        Flag(
            "--prometheus",
            "Write figures and alarms to this file, for the textfile collector of Prometheus.",
            metavar="FILE",
            group=OUTPUT,
        ),
    ]
