"""What trustassay offers, for type checkers; each name is imported when it is first used."""

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
