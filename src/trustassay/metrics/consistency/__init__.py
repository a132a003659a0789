"""Behavioural consistency: does a model keep to its answer when it may choose among others?"""

from trustassay.metrics.consistency.metric import Consistency

__all__ = ["Consistency"]
