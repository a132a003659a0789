"""The methods, one folder each."""

from trustassay.metrics.grounding import Grounding
from trustassay.metrics.harmonicity import Harmonicity, SemanticHarmonicity
from trustassay.metrics.reference import Reference

__all__ = ["Grounding", "Harmonicity", "Reference", "SemanticHarmonicity"]
