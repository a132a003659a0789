"""The common part of the integrations: records in, scores from one open scorer, findings out.

All integrations of a process with equal settings share one scorer. The first record opens it and
the end of the process closes it, so models are loaded once and concurrent records are batched.
"""

import asyncio
import dataclasses
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import trustassay
from trustassay.api import build_metrics
from trustassay.core.metric import Assessment, Metric
from trustassay.core.sample import Sample, SampleError
from trustassay.live import open_scorers
from trustassay.live.open_scorers import close_all
from trustassay.live.scorer import Assay, ScorerClosedError, ThreadScorer
from trustassay.report.review import problem_of
from trustassay.runs.finished import describe_reason, one_line

__all__ = [
    "IntegrationFinding",
    "ResidentScorer",
    "build_record",
    "close_all",
    "finding_of",
    "findings_of_fault",
    "needs",
    "to_plain",
]


@contextmanager
def needs(module: str, package: str) -> Iterator[None]:
    """Wrap the imports of a tool; if the tool is missing, the error says what to install.

    Args:
        module: the module that is imported.
        package: the package to install.

    Raises:
        ImportError: the module is not installed. Other errors of an import are raised unchanged.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        # A module that the tool itself lacks is a broken installation, not a missing one.
        if (error.name or "").partition(".")[0] != module.partition(".")[0]:
            raise
        message = f"this integration needs {package}, which is not installed: pip install {package}"
        raise ImportError(message, name=module) from error


def build_record(inputs: Any, outputs: Any, gold: Any = None, **extra: Any) -> dict[str, Any]:
    """Build the record of a traced call; absent fields are left out.

    Args:
        inputs: the inputs: a text, a list of messages, or an object with fields of known names.
        outputs: the outputs, of the same forms. A whole conversation, without inputs, contains its
            own question.
        gold: the right answer, of the same forms.
        extra: further fields of the record (``context``, ``metadata``).
    """
    question_inputs = _find_conversation(outputs) if inputs is None else inputs
    question_inputs = (
        {"question": question_inputs} if isinstance(question_inputs, str) else question_inputs
    )
    result = {"inputs": question_inputs, "outputs": outputs, "reference_outputs": gold, **extra}
    return {name: value for name, value in result.items() if value is not None}


def _find_conversation(outputs: Any) -> Any:
    """Return the messages of outputs that are a conversation; ``None`` for anything else."""
    messages = outputs.get("messages") if isinstance(outputs, Mapping) else outputs
    if not isinstance(messages, list | tuple):
        return None
    texts = any(isinstance(message, str) for message in messages)
    # A list with plain texts is an answer, not a conversation.
    return None if texts else messages


def to_plain(value: Any) -> Any:
    """Return ``value`` with all objects in it turned into mappings.

    Objects are pydantic models, such as LangChain's messages and documents, and dataclasses.
    """
    if isinstance(value, Mapping):
        return {name: to_plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(item) for item in value]
    # A class has a `model_dump` as well, but no values.
    if not isinstance(value, type):
        if callable(dump := getattr(value, "model_dump", None)):
            return to_plain(dump())
        if dataclasses.is_dataclass(value):
            own_fields = dataclasses.fields(value)
            return {
                own_field.name: to_plain(getattr(value, own_field.name)) for own_field in own_fields
            }
    return value


@dataclass(frozen=True, slots=True)
class IntegrationFinding:
    """The result of one metric for a record."""

    metric: str
    """The name of the metric."""
    score: float | None
    """``None`` where the record could not be scored (see ``error``), and where the metric has no
    score for this kind of answer, as for a refusal that nobody can judge; never 0 instead."""
    reason: str = ""
    """The reason of the score, in one sentence."""
    verdict: str | None = None
    """The verdict in the metric's own words."""
    error: str | None = None
    """Why the record could not be scored."""
    passed: bool | None = None
    """Whether the answer is good by the metric's own line; ``None`` where it has no score, or the
    metric has no line."""
    lower_is_better: bool = False
    """Whether low scores are good."""
    faulty: bool = False
    """Whether the record itself is wrong: a field is missing or malformed."""
    parts: Mapping[str, float] = field(default_factory=dict)
    """The parts of the score, by name."""

    @property
    def comment(self) -> str:
        """A sentence for the score: its reason, or why there is no score."""
        if self.error is not None:
            return f"could not be scored: {self.error}"
        if self.score is None:
            return f"no score: {self.reason or self.verdict or 'the metric gives no reason'}"
        words = self.reason or self.verdict or ""
        if not self.lower_is_better:
            return words
        return f"{words} (low scores are good)" if words else "low scores are good"

    @property
    def about(self) -> dict[str, Any]:
        """The values that other tools store in addition to score and comment."""
        return {
            "verdict": self.verdict,
            "passed": self.passed,
            "lower_is_better": self.lower_is_better,
            "parts": dict(self.parts),
        }

    @property
    def details(self) -> dict[str, Any]:
        """The values of :attr:`about` that are not empty."""
        return {name: value for name, value in self.about.items() if value not in (None, {})}

    @property
    def as_langfuse(self) -> tuple[str, float | str, str]:
        """Name, value and type of Langfuse's score; a category where the metric has none."""
        if self.score is not None:
            return self.metric, self.score, "NUMERIC"
        category = "no score" if self.error is None else "failed"
        return f"{self.metric} not scored", category, "CATEGORICAL"

    def passes(self, threshold: float | None) -> bool | None:
        """Return whether the score is on the good side of ``threshold``; ``passed`` without one.

        A record that could not be scored does not pass.
        """
        if self.error is not None:
            return False
        if threshold is None or self.score is None:
            return self.passed
        # The threshold itself still passes, on both kinds of scales.
        return self.score <= threshold if self.lower_is_better else self.score >= threshold


def findings_of_fault(metrics: Sequence[Metric], error: str) -> list[IntegrationFinding]:
    """Return the findings of a record that no metric can score, with the error of each."""
    error = one_line(error)
    return [
        IntegrationFinding(
            metric.name, None, error=error, lower_is_better=metric.lower_is_better, faulty=True
        )
        for metric in metrics
    ]


def finding_of(metric: Metric, assessment: Assessment) -> IntegrationFinding:
    """Return the finding of an assessment."""
    unscored = assessment.error is not None or assessment.score is None
    return IntegrationFinding(
        metric.name,
        None if unscored else assessment.score,
        # A failed assessment has an error instead of a reason.
        "" if assessment.error is not None else describe_reason(metric, assessment),
        assessment.verdict,
        None if assessment.error is None else one_line(assessment.error),
        # Only a metric with a line can say that an answer is good.
        None if unscored or not metric.line else problem_of(metric, assessment) is None,
        metric.lower_is_better,
        parts=dict(assessment.parts),
    )


_UNSCORED = (ScorerClosedError, SampleError, RecursionError)


class ResidentScorer:
    """Scores records of any tool, from any number of threads and event loops.

    Args:
        metrics: metrics, or their names with options as on the command line, one or several
            (``"faithfulness"``, ``["grounding:correctness=none", "reference"]``).
        options: all other options of :func:`trustassay.scorer`: backends, ``fields``, ``out``,
            ``budget``, ...

    Raises:
        UnknownNameError, ValueError: a name or an option is wrong. A missing backend or key is
            reported only by the first record.
    """

    def __init__(self, metrics: str | Metric | Sequence[str | Metric], /, **options: Any) -> None:
        self.metrics = tuple(build_metrics(metrics))
        self._door = trustassay.scorer(metrics=self.metrics, **options)
        self._key = _key((self.metrics, options))

    def score(self, record: Sample | Mapping[str, Any]) -> list[IntegrationFinding]:
        """Return the finding of each metric for a record, in the order of ``metrics``.

        A record may have any layout that :func:`trustassay.score` reads, and contain pydantic
        models and dataclasses. A record that cannot be scored gives findings with an error; only
        wrong settings are raised.

        Raises:
            ValueError, BackendError, RunFolderError: the scorer cannot be opened.
            ScorerClosedError: the process is ending.
        """
        # Another integration with the same settings may close the scorer between opening and use:
        # then it is opened again.
        while True:
            scorer = self._open()
            try:
                return self._build_findings(scorer.score(_to_record(record)))
            except _UNSCORED as error:
                if result := self._handle_unscored(scorer, error):
                    return result

    async def ascore(self, record: Sample | Mapping[str, Any]) -> list[IntegrationFinding]:
        """Do the same as :meth:`score` without blocking asyncio's event loop."""
        while True:
            # Opening loads models, so it must not run in the loop.
            scorer = await asyncio.to_thread(self._open)
            try:
                return self._build_findings(
                    await asyncio.wrap_future(scorer.submit(_to_record(record)))
                )
            except _UNSCORED as error:
                if result := self._handle_unscored(scorer, error):
                    return result

    def close(self) -> None:
        """Finish the records in progress, and write the results to the folder (``out``), if any.

        All integrations with these settings share the scorer; a later record opens it again.
        """
        open_scorers.close(self._key)

    def _open(self) -> ThreadScorer:
        return open_scorers.get_open_scorer(self._key, self._door)

    def _build_findings(self, assay: Assay) -> list[IntegrationFinding]:
        return [finding_of(metric, assay[metric.name]) for metric in self.metrics]

    def _handle_unscored(self, scorer: ThreadScorer, error: Exception) -> list[IntegrationFinding]:
        """Return the findings of a record that could not be scored.

        The list is empty if the scorer was closed after it had been handed out. Then it is
        forgotten, and the caller opens another one.
        """
        if isinstance(error, ScorerClosedError):
            # Forgotten only if it is still this one: another thread may have opened a new one
            # already.
            open_scorers.forget(self._key, scorer)
            return []
        # A RecursionError has no message for a person.
        message = str(error) if isinstance(error, SampleError) else "record: is nested too deeply"
        return findings_of_fault(self.metrics, message)


def _to_record(record: Sample | Mapping[str, Any]) -> Any:
    return record if isinstance(record, Sample) else to_plain(record)


def _key(value: Any) -> Any:
    """Return a key that is equal for equal settings: values by value, objects by identity."""
    if isinstance(value, Mapping):
        return tuple(sorted((str(name), _key(item)) for name, item in value.items()))
    if isinstance(value, list | tuple):
        return tuple(map(_key, value))
    if isinstance(value, Metric):
        metric_fields = {item.name: getattr(value, item.name) for item in dataclasses.fields(value)}  # type: ignore[arg-type]
        return (type(value), _key(metric_fields))
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if value is None or isinstance(value, str | int | float):
        # with the type, since True == 1 == 1.0 in Python
        return (type(value).__name__, value)
    return ("object", id(value))
