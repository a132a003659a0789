"""trustassay measures how far an answer written by a language model can be trusted."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trustassay.answering import Answering
    from trustassay.backends.resolve import embedder, entailer, similarity
    from trustassay.engine.api import Run, ascore, score
    from trustassay.engine.chat import Unanswered, UnansweredError, chat
    from trustassay.engine.usage import Budget, Prices
    from trustassay.metric import Assessment, Metric, Summary
    from trustassay.sample import Document, Sample

__all__ = [
    "Answering",
    "Assessment",
    "Budget",
    "Document",
    "Metric",
    "Prices",
    "Run",
    "Sample",
    "Summary",
    "Unanswered",
    "UnansweredError",
    "ascore",
    "chat",
    "embedder",
    "entailer",
    "score",
    "similarity",
]

_HOMES = {
    "Answering": "answering",
    "Budget": "engine.usage",
    "Prices": "engine.usage",
    "Unanswered": "engine.chat",
    "UnansweredError": "engine.chat",
    "chat": "engine.chat",
    "Assessment": "metric",
    "Document": "sample",
    "Metric": "metric",
    "Run": "engine.api",
    "Sample": "sample",
    "Summary": "metric",
    "ascore": "engine.api",
    "embedder": "backends.resolve",
    "entailer": "backends.resolve",
    "score": "engine.api",
    "similarity": "backends.resolve",
}


def __getattr__(name: str) -> Any:
    """Import what is asked for, and only then; ``trustassay --help`` stays fast that way."""
    if name not in _HOMES:
        raise AttributeError(f"module 'trustassay' has no attribute {name!r}")
    return getattr(importlib.import_module(f"trustassay.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
