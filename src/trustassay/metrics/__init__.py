"""The methods, one folder each."""

from trustassay.metrics.consistency import Consistency
from trustassay.metrics.factcheck import FactCheck
from trustassay.metrics.fewl import Fewl
from trustassay.metrics.grounding import Grounding
from trustassay.metrics.harmonicity import Harmonicity, SemanticHarmonicity
from trustassay.metrics.judge import Judge
from trustassay.metrics.reference import Reference
from trustassay.metrics.trustscore import TrustScore

__all__ = [
    "Consistency",
    "FactCheck",
    "Fewl",
    "Grounding",
    "Harmonicity",
    "Judge",
    "Reference",
    "SemanticHarmonicity",
    "TrustScore",
]
