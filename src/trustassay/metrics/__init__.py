"""The methods, one folder each; a method is imported when it is first asked for."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trustassay.metrics.consistency import Consistency
    from trustassay.metrics.factcheck import FactCheck
    from trustassay.metrics.faithfulness import Faithfulness
    from trustassay.metrics.fewl import Fewl
    from trustassay.metrics.grounding import Grounding
    from trustassay.metrics.harmonicity import Harmonicity, SemanticHarmonicity
    from trustassay.metrics.judge import Judge
    from trustassay.metrics.rag import Rag
    from trustassay.metrics.reference import Reference
    from trustassay.metrics.tool_use import ToolUse
    from trustassay.metrics.trustscore import TrustScore
    from trustassay.metrics.uncertainty import Uncertainty

__all__ = [
    "Consistency", "FactCheck", "Faithfulness", "Fewl", "Grounding", "Harmonicity", "Judge",
    "Rag", "Reference", "SemanticHarmonicity", "ToolUse", "TrustScore", "Uncertainty",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Import the method asked for alone: a run of one does not wait for the libraries of others."""
    if name not in __all__:
        raise AttributeError(f"module 'trustassay.metrics' has no attribute {name!r}")
    home = {"SemanticHarmonicity": "harmonicity", "ToolUse": "tool_use"}.get(name, name.lower())
    return getattr(importlib.import_module(f"trustassay.metrics.{home}"), name)
