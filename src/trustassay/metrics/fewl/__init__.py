"""FEWL: how far do models of known or unknown skill agree with an answer, without a gold one?"""

from trustassay.metrics.fewl.metric import Fewl

__all__ = ["Fewl"]
