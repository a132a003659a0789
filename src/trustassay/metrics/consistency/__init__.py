"""Behavioural consistency: does a model choose its own answer among others?"""

from trustassay.metrics.consistency.metric import Consistency

__all__ = ["Consistency"]
