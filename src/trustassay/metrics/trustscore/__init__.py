"""TrustScore: does the model choose its own answer again, and do the facts support it?"""

from trustassay.metrics.trustscore.metric import TrustScore

__all__ = ["TrustScore"]
