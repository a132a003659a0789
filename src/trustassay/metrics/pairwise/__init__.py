"""Which of two answers to a question a judge prefers, asked in both orders."""

from trustassay.metrics.pairwise.metric import Pairwise

__all__ = ["Pairwise"]
