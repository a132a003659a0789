"""trustassay measures how far an answer written by a language model can be trusted."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trustassay.answering import Answering
    from trustassay.api import Run, ascore, score
    from trustassay.backends.resolve import embedder, entailer, similarity
    from trustassay.calls.spending import Budget, Prices
    from trustassay.metric import Assessment, Metric, Summary
    from trustassay.sample import Document, Sample
    from trustassay.workflows.chat import Unanswered, UnansweredError, chat
    from trustassay.workflows.study import Study, study

__all__ = [
    "Answering",
    "Assessment",
    "Budget",
    "Document",
    "Metric",
    "Prices",
    "Run",
    "Sample",
    "Study",
    "Summary",
    "Unanswered",
    "UnansweredError",
    "ascore",
    "chat",
    "embedder",
    "entailer",
    "score",
    "similarity",
    "study",
]

_HOMES = {
    "Answering": "answering",
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
    "Summary": "metric",
    "ascore": "api",
    "embedder": "backends.resolve",
    "entailer": "backends.resolve",
    "score": "api",
    "similarity": "backends.resolve",
    "Study": "workflows.study",
    "study": "workflows.study",
}


def __getattr__(name: str) -> Any:
    """Import a name when it is first used; this keeps ``trustassay --help`` fast."""
    if name not in _HOMES:
        raise AttributeError(f"module 'trustassay' has no attribute {name!r}")
    return getattr(importlib.import_module(f"trustassay.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
