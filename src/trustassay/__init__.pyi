"""What trustassay offers, for type checkers; each name is imported when it is first used."""

from trustassay.api import Run, ascore, plan, rescore, score, scorer, watch
from trustassay.backends.resolve import embedder, entailer, similarity
from trustassay.calls.chat import Unanswered, UnansweredError, chat
from trustassay.calls.prices import Budget, Prices
from trustassay.core.metric import Assessment, Metric, Summary
from trustassay.core.sample import Document, Sample, SampleError
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
from trustassay.input.records import InputError
from trustassay.live.columns import Batch, batch
from trustassay.live.scorer import Assay, Scorer, ScorerClosedError
from trustassay.people.calibrate.command import calibrate
from trustassay.people.calibrate.result import Calibration
from trustassay.people.label.command import Labelling, label
from trustassay.people.study.command import Study, study
from trustassay.runs.answering import Answering
from trustassay.runs.finished import WorstAnswer
from trustassay.runs.intake import BadInputError

__all__ = [
    "Answering", "Assay", "Assessment", "AssessmentError", "BackendError", "BadInputError",
    "Batch", "Budget", "Calibration", "CallError", "Document", "FaultsError", "InputError",
    "Labelling", "Metric", "Prices", "Run", "RunFolderError", "Sample", "SampleError", "Scorer",
    "ScorerClosedError", "Study", "Summary", "Unanswered", "UnansweredError",
    "UnknownNameError", "UnparsedError", "UsageError", "WorstAnswer", "ascore",
    "batch", "calibrate", "chat", "embedder", "entailer", "label", "plan", "rescore", "score",
    "scorer", "similarity", "study", "watch",
]  # fmt: skip
