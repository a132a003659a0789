"""trustassay measures how far an answer written by a language model can be trusted."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trustassay.answering import Answering
    from trustassay.api import Run, ascore, plan, rescore, score, scorer, watch
    from trustassay.backends.resolve import embedder, entailer, similarity
    from trustassay.calls.prices import Budget, Prices
    from trustassay.columns import Batch, batch
    from trustassay.data.records import InputError
    from trustassay.errors import (
        AssessmentError,
        BackendError,
        CallError,
        FaultsError,
        RunFolderError,
        UnknownNameError,
        UnparsedError,
        UsageError,
    )
    from trustassay.metric import Assessment, Metric, Summary
    from trustassay.runs.finished import WorstAnswer
    from trustassay.runs.intake import BadInputError
    from trustassay.sample import Document, Sample, SampleError
    from trustassay.workflows.calibrate.command import Calibration, calibrate
    from trustassay.workflows.chat import Unanswered, UnansweredError, chat
    from trustassay.workflows.label.command import Labelling, label
    from trustassay.workflows.scorer import Assay, Scorer, ScorerClosedError
    from trustassay.workflows.study.command import Study, study
    from trustassay.workflows.watch import WatchOptions

__all__ = [
    "Answering", "Assay", "Assessment", "AssessmentError", "BackendError", "BadInputError",
    "Batch", "Budget", "Calibration", "CallError", "Document", "FaultsError", "InputError",
    "Labelling", "Metric", "Prices", "Run", "RunFolderError", "Sample", "SampleError", "Scorer",
    "ScorerClosedError", "Study", "Summary", "Unanswered", "UnansweredError",
    "UnknownNameError", "UnparsedError", "UsageError", "WatchOptions", "WorstAnswer", "ascore",
    "batch", "calibrate", "chat", "embedder", "entailer", "label", "plan", "rescore", "score",
    "scorer", "similarity", "study", "watch",
]  # fmt: skip

_HOMES = {
    name: module
    for module, names in {
        "trustassay.answering": "Answering",
        "trustassay.api": "Run ascore plan rescore score scorer watch",
        "trustassay.backends.resolve": "embedder entailer similarity",
        "trustassay.calls.prices": "Budget Prices",
        "trustassay.columns": "Batch batch",
        "trustassay.data.records": "InputError",
        "trustassay.errors": (
            "AssessmentError BackendError CallError FaultsError RunFolderError UnknownNameError "
            "UnparsedError UsageError"
        ),
        "trustassay.metric": "Assessment Metric Summary",
        "trustassay.runs.intake": "BadInputError",
        "trustassay.runs.finished": "WorstAnswer",
        "trustassay.sample": "Document Sample SampleError",
        "trustassay.workflows.calibrate.command": "Calibration calibrate",
        "trustassay.workflows.chat": "Unanswered UnansweredError chat",
        "trustassay.workflows.label.command": "Labelling label",
        "trustassay.workflows.scorer": "Assay Scorer ScorerClosedError",
        "trustassay.workflows.study.command": "Study study",
        "trustassay.workflows.watch": "WatchOptions",
    }.items()
    for name in names.split()
}


def __getattr__(name: str) -> Any:
    """Import a name when it is first used; this keeps ``trustassay --help`` fast."""
    if name not in _HOMES:
        raise AttributeError(f"module 'trustassay' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
