"""Studies: the scores of runs compared with labels, with intervals, tests, baselines and costs."""

from trustassay.statistics.intervals import Estimate
from trustassay.workflows.study.answers import Column, Cost
from trustassay.workflows.study.command import (
    CEILING,
    CHANCE_ROW,
    RESAMPLES,
    LabelStudy,
    RightWhereWrong,
    Study,
    study,
)
from trustassay.workflows.study.figures import Test
from trustassay.workflows.study.labels import Label

__all__ = [
    "CEILING",
    "CHANCE_ROW",
    "RESAMPLES",
    "Column",
    "Cost",
    "Estimate",
    "Label",
    "LabelStudy",
    "RightWhereWrong",
    "Study",
    "Test",
    "study",
]
