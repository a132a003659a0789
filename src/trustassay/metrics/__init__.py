"""The methods, one folder each."""

from trustassay.metrics.grounding import Grounding

__all__ = ["Grounding"]
