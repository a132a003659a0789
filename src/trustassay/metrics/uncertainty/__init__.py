"""Uncertainty: what other replies to a question, and tokens' probabilities, say of an answer."""

from trustassay.metrics.uncertainty.metric import Uncertainty

__all__ = ["Uncertainty"]
