"""trustassay measures how far an answer written by a language model can be trusted."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trustassay.answering import Answering
    from trustassay.api import Run, ascore, score, scorer
    from trustassay.backends.resolve import embedder, entailer, similarity
    from trustassay.calls.spending import Budget, Prices
    from trustassay.metric import Assessment, Metric, Summary
    from trustassay.sample import Document, Sample, SampleError
    from trustassay.workflows.chat import Unanswered, UnansweredError, chat
    from trustassay.workflows.scorer import Assay, Scorer, ScorerClosedError

__all__ = [
    "Answering",
    "Assay",
    "Assessment",
    "Budget",
    "Document",
    "Metric",
    "Prices",
    "Run",
    "Sample",
    "SampleError",
    "Scorer",
    "ScorerClosedError",
    "Summary",
    "Unanswered",
    "UnansweredError",
    "ascore",
    "chat",
    "embedder",
    "entailer",
    "score",
    "scorer",
    "similarity",
]

_HOMES = {
    "Answering": "answering",
    "Assay": "workflows.scorer",
    "Budget": "calls.spending",
    "Prices": "calls.spending",
    "Unanswered": "workflows.chat",
    "UnansweredError": "workflows.chat",
    "chat": "workflows.chat",
    "Assessment": "metric",
    "Document": "sample",
    "Metric": "metric",
    "Run": "api",
    "Sample": "sample",
    "SampleError": "sample",
    "Scorer": "workflows.scorer",
    "ScorerClosedError": "workflows.scorer",
    "Summary": "metric",
    "ascore": "api",
    "embedder": "backends.resolve",
    "entailer": "backends.resolve",
    "score": "api",
    "scorer": "api",
    "similarity": "backends.resolve",
}


def __getattr__(name: str) -> Any:
    """Import a name when it is first used; this keeps ``trustassay --help`` fast."""
    if name not in _HOMES:
        raise AttributeError(f"module 'trustassay' has no attribute {name!r}")
    return getattr(importlib.import_module(f"trustassay.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
