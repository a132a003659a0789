"""Evaluators of grounded answers for LlamaIndex, by trustassay."""

from llama_index.evaluation.trust_eval.base import TrustScoreEvaluator
from llama_index.evaluation.trust_eval.evaluators import (
    BehaviouralTrustScoreEvaluator,
    ConsistencyEvaluator,
    FactCheckEvaluator,
    GroundedFaithfulnessEvaluator,
    GroundingEvaluator,
    HarmonicityEvaluator,
    PreferenceEvaluator,
    ReferenceEvaluator,
    RetrieverOrGeneratorEvaluator,
    RubricEvaluator,
    SemanticHarmonicityEvaluator,
    ToolUseEvaluator,
    TrustMetricEvaluator,
    UncertaintyEvaluator,
)
from llama_index.evaluation.trust_eval.handler import TrustEvaluationHandler
from llama_index.evaluation.trust_eval.material import example_questions
from llama_index.evaluation.trust_eval.offline import OfflineAnswerer

__all__ = [
    "BehaviouralTrustScoreEvaluator",
    "ConsistencyEvaluator",
    "FactCheckEvaluator",
    "GroundedFaithfulnessEvaluator",
    "GroundingEvaluator",
    "HarmonicityEvaluator",
    "OfflineAnswerer",
    "PreferenceEvaluator",
    "ReferenceEvaluator",
    "RetrieverOrGeneratorEvaluator",
    "RubricEvaluator",
    "SemanticHarmonicityEvaluator",
    "ToolUseEvaluator",
    "TrustEvaluationHandler",
    "TrustMetricEvaluator",
    "TrustScoreEvaluator",
    "UncertaintyEvaluator",
    "example_questions",
]
