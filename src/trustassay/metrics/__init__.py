"""The methods, one folder each."""

from trustassay.metrics.fewl import Fewl
from trustassay.metrics.grounding import Grounding
from trustassay.metrics.harmonicity import Harmonicity, SemanticHarmonicity

__all__ = ["Fewl", "Grounding", "Harmonicity", "SemanticHarmonicity"]
