"""The methods, one folder each."""

from trustassay.metrics.grounding import Grounding
from trustassay.metrics.harmonicity import Harmonicity, SemanticHarmonicity
from trustassay.metrics.judge import Judge

__all__ = ["Grounding", "Harmonicity", "Judge", "SemanticHarmonicity"]
