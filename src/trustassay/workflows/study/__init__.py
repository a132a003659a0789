"""Studies: the scores of runs against labels, with intervals, tests, baselines and costs."""

from trustassay.workflows.study.answers import Column, Cost
from trustassay.workflows.study.disagreement import RightWhereWrong
from trustassay.workflows.study.figures import Estimate, Test
from trustassay.workflows.study.labelling import Label
from trustassay.workflows.study.studying import (
    CEILING,
    CHANCE_ROW,
    RESAMPLES,
    LabelStudy,
    Study,
    study,
)

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
