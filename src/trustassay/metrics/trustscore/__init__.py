"""TrustScore: does the model keep to its answer, and do the facts bear it out?"""

from trustassay.metrics.trustscore.metric import TrustScore

__all__ = ["TrustScore"]
