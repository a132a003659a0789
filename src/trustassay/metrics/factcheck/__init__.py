"""Fact check: is the answer borne out by passages of a corpus, or contradicted by them?"""

from trustassay.metrics.factcheck.metric import FactCheck

__all__ = ["FactCheck"]
