"""Reference: an answer compared with gold answers, by the measures that the field knows."""

from trustassay.metrics.reference.metric import Reference

__all__ = ["Reference"]
