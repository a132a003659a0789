"""Which of two answers to a question a judge prefers, asked in both orders."""

from trustassay.metrics.pairwise.metric import OTHER_MODEL, OTHER_RESPONSE, Pairwise

__all__ = ["OTHER_MODEL", "OTHER_RESPONSE", "Pairwise"]
