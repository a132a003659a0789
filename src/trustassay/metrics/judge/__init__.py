"""Judges: how models rate answers on a rubric, how steadily, and how near to what was expected."""

from trustassay.metrics.judge.metric import Judge
from trustassay.metrics.judge.options import Level, Rubric, RubricError, read_rubric

__all__ = ["Judge", "Level", "Rubric", "RubricError", "read_rubric"]
