"""Judges: how models rate answers on a rubric, how steadily, and how near to what was expected."""

from trustassay.metrics.judge.metric import Judge
from trustassay.metrics.judge.options import Rubric, RubricError, RubricLevel, read_rubric

__all__ = ["Judge", "Rubric", "RubricError", "RubricLevel", "read_rubric"]
