"""Harmonic robustness: does the answer stay put when the prompt is nudged without meaning?"""

from trustassay.metrics.harmonicity.metric import Harmonicity, SemanticHarmonicity

__all__ = ["Harmonicity", "SemanticHarmonicity"]
