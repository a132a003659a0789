"""trustassay measures how far an answer written by a language model can be trusted."""

import importlib
from typing import Any

# Public names by the module that defines them. They are imported when they are first used: numpy,
# tokenizers and the report together take longer to import than `trustassay --help` may take.
_MODULES_OF_NAMES = {
    name: module
    for module, names in {
        "trustassay.runs.answering": "Answering",
        "trustassay.api": "Run ascore plan rescore score scorer watch",
        "trustassay.backends.resolve": "embedder entailer similarity",
        "trustassay.calls.prices": "Budget Prices",
        "trustassay.live.columns": "Batch batch",
        "trustassay.input.records": "InputError",
        "trustassay.errors": (
            "AssessmentError BackendError CallError FaultsError RunFolderError UnknownNameError "
            "UnparsedError UsageError"
        ),
        "trustassay.core.metric": "Assessment Metric Summary",
        "trustassay.runs.intake": "BadInputError",
        "trustassay.runs.finished": "WorstAnswer",
        "trustassay.core.sample": "Document Sample SampleError",
        "trustassay.people.calibrate.command": "calibrate",
        "trustassay.people.calibrate.result": "Calibration",
        "trustassay.calls.chat": "Unanswered UnansweredError chat",
        "trustassay.people.label.command": "Labelling label",
        "trustassay.live.scorer": "Assay Scorer ScorerClosedError",
        "trustassay.people.study.command": "Study study",
    }.items()
    for name in names.split()
}
# `__init__.pyi` gives type checkers what the dynamic import hides from them.
__all__ = [*sorted(_MODULES_OF_NAMES)]  # noqa: PLE0604 - their types: __init__.pyi


def __getattr__(name: str) -> Any:
    """Import a name when it is first used; this keeps ``trustassay --help`` fast."""
    if name not in _MODULES_OF_NAMES:
        raise AttributeError(f"module 'trustassay' has no attribute {name!r}")
    return getattr(importlib.import_module(_MODULES_OF_NAMES[name]), name)


def __dir__() -> list[str]:
    return __all__
