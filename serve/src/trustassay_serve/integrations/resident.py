"""What the doors for other tools share: records in, scores from one open scorer, results out.

All integrations of a process with equal settings share one scorer, opened by the first record and
closed at the end, so that models are loaded once and what is in progress is scored together."""

import asyncio
import dataclasses
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import trustassay
from trustassay.metric import Assessment, Metric
from trustassay.registry import metric_from_text
from trustassay.runs.finished import one_line, reason_of
from trustassay.sample import Sample, SampleError
from trustassay.show.first_card import problem_of
from trustassay.workflows import open_scorers
from trustassay.workflows.open_scorers import close_all
from trustassay.workflows.scorer import Assay, ScorerClosedError, ThreadScorer

__all__ = [
    "Finding",
    "ResidentScorer",
    "close_all",
    "finding_of",
    "needs",
    "refused",
    "simple",
    "traced",
]


@contextmanager
def needs(module: str, package: str) -> Iterator[None]:
    """Around the imports of a tool: say what to install where its ``module`` is missing.

    Raises:
        ImportError: it is not installed. Any other failure of an import is raised as it is.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != module.partition(".")[0]:
            raise
        message = f"this integration needs {package}, which is not installed: pip install {package}"
        raise ImportError(message, name=module) from error


def traced(inputs: Any, outputs: Any, gold: Any = None, **others: Any) -> dict[str, Any]:
    """Return the record of a call: what went in, what came out, what would have been right.

    Each is a text, a list of messages, or an object with fields of known names. A whole
    conversation as outputs, without inputs, brings its question along. ``others`` are fields beside
    them (``context``, ``metadata``). Absent ones are left out.
    """
    asked = _conversation(outputs) if inputs is None else inputs
    asked = {"question": asked} if isinstance(asked, str) else asked
    result = {"inputs": asked, "outputs": outputs, "reference_outputs": gold, **others}
    return {name: value for name, value in result.items() if value is not None}


def _conversation(outputs: Any) -> Any:
    messages = outputs.get("messages") if isinstance(outputs, Mapping) else outputs
    if not isinstance(messages, list | tuple):
        return None
    texts = any(isinstance(one, str) for one in messages)
    return None if texts else messages


def simple(value: Any) -> Any:
    """Return ``value`` with the objects in it as mappings: models of pydantic, as LangChain's
    messages and documents are, and dataclasses.
    """
    if isinstance(value, Mapping):
        return {name: simple(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [simple(one) for one in value]
    if not isinstance(value, type):
        if callable(dump := getattr(value, "model_dump", None)):
            return simple(dump())
        if dataclasses.is_dataclass(value):
            own = dataclasses.fields(value)
            return {one.name: simple(getattr(value, one.name)) for one in own}
    return value


@dataclass(frozen=True, slots=True)
class Finding:
    """What one metric found in a record.

    ``score`` is ``None`` where it could not be scored (``error`` says why), and where the metric
    has no score for such an answer, as for a refusal that nobody can judge: never 0 in its place.
    ``passed``: by the metric's own line the answer does not need a look; ``None`` where it has
    no score, or the metric draws no line. ``faulty`` tells that the record itself is at fault: a
    field is missing or wrong.
    """

    metric: str
    score: float | None
    reason: str = ""
    verdict: str | None = None
    error: str | None = None
    passed: bool | None = None
    lower_is_better: bool = False
    faulty: bool = False
    parts: Mapping[str, float] = field(default_factory=dict)

    @property
    def comment(self) -> str:
        """The sentence beside the score: why it is what it is, or why there is none."""
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
        """What other tools keep beside score and comment."""
        return {
            "verdict": self.verdict,
            "passed": self.passed,
            "lower_is_better": self.lower_is_better,
            "parts": dict(self.parts),
        }

    @property
    def as_langfuse(self) -> tuple[str, float | str, str]:
        """Name, value and type of Langfuse's score; a category where the metric has none."""
        if self.score is not None:
            return self.metric, self.score, "NUMERIC"
        why = "no score" if self.error is None else "failed"
        return f"{self.metric} not scored", why, "CATEGORICAL"

    def passes(self, threshold: float | None) -> bool | None:
        """Return whether the score is on the good side of ``threshold``, or ``passed`` without one.

        What could not be scored does not pass.
        """
        if self.error is not None:
            return False
        if threshold is None or self.score is None:
            return self.passed
        return self.score <= threshold if self.lower_is_better else self.score >= threshold


def refused(metrics: Sequence[Metric], error: str) -> list[Finding]:
    """Return the findings of a record that no metric can score."""
    error = one_line(error)
    return [
        Finding(one.name, None, error=error, lower_is_better=one.lower_is_better, faulty=True)
        for one in metrics
    ]


def finding_of(metric: Metric, found: Assessment) -> Finding:
    """Return what a metric found."""
    unscored = found.error is not None or found.score is None
    return Finding(
        metric.name,
        None if unscored else found.score,
        "" if found.error is not None else reason_of(metric, found),
        found.verdict,
        None if found.error is None else one_line(found.error),
        None if unscored or not metric.line else problem_of(metric, found) is None,
        metric.lower_is_better,
        parts=dict(found.parts),
    )


_UNSCORED = (ScorerClosedError, SampleError, RecursionError)


class ResidentScorer:
    """Scores records of any tool, from any number of threads and event loops.

    Args:
        metrics: metrics, or their names with options as on the command line, one or several
            (``"faithfulness"``, ``["grounding:correctness=none", "reference"]``).
        options: everything else that :func:`trustassay.scorer` takes: backends, ``fields``,
            ``out``, ``budget``, ...

    Raises:
        UnknownNameError, ValueError: a name or an option is wrong; at once. What is missing besides
            (a backend, a key) is told by the first record.
    """

    def __init__(self, metrics: str | Metric | Sequence[str | Metric], /, **options: Any) -> None:
        several = [metrics] if isinstance(metrics, str | Metric) else metrics
        self.metrics = tuple(
            metric_from_text(one) if isinstance(one, str) else one for one in several
        )
        self._door = trustassay.scorer(metrics=self.metrics, **options)
        self._key = _key((self.metrics, options))

    def score(self, record: Sample | Mapping[str, Any]) -> list[Finding]:
        """Return what each metric found in a record, in the order of ``metrics``.

        A record may have any layout that :func:`trustassay.score` reads, and hold objects of
        pydantic and dataclasses. One that cannot be scored is a finding with an error, like every
        failure; nothing is raised but what is wrong with the settings.

        Raises:
            ValueError, BackendError, RunFolderError: the scorer cannot be opened.
            ScorerClosedError: the process is ending.
        """
        while True:
            scorer = self._open()
            try:
                return self._findings(scorer.score(_plain(record)))
            except _UNSCORED as error:
                if result := self._unscored(scorer, error):
                    return result

    async def ascore(self, record: Sample | Mapping[str, Any]) -> list[Finding]:
        """Do as :meth:`score` in an event loop of asyncio, which is not blocked."""
        while True:
            scorer = await asyncio.to_thread(self._open)
            try:
                return self._findings(await asyncio.wrap_future(scorer.submit(_plain(record))))
            except _UNSCORED as error:
                if result := self._unscored(scorer, error):
                    return result

    def close(self) -> None:
        """Finish what was begun, and write the results of a folder (``out``).

        All integrations with these settings share the scorer; a later record opens it again.
        """
        open_scorers.close(self._key)

    def _open(self) -> ThreadScorer:
        return open_scorers.opened(self._key, self._door)

    def _findings(self, assay: Assay) -> list[Finding]:
        return [finding_of(metric, assay[metric.name]) for metric in self.metrics]

    def _unscored(self, scorer: ThreadScorer, error: Exception) -> list[Finding]:
        """Return the findings of a record that no metric can score. None where the scorer was
        closed after it had been handed out: it is forgotten, and another one is to be opened.
        """
        if isinstance(error, ScorerClosedError):
            open_scorers.forget(self._key, scorer)
            return []
        words = str(error) if isinstance(error, SampleError) else "record: is nested too deeply"
        return refused(self.metrics, words)


def _plain(record: Sample | Mapping[str, Any]) -> Any:
    return record if isinstance(record, Sample) else simple(record)


def _key(value: Any) -> Any:
    """Return what is equal for equal settings: values by value, objects by identity."""
    if isinstance(value, Mapping):
        return tuple(sorted((str(name), _key(one)) for name, one in value.items()))
    if isinstance(value, list | tuple):
        return tuple(map(_key, value))
    if isinstance(value, Metric):
        own = {one.name: getattr(value, one.name) for one in dataclasses.fields(value)}  # type: ignore[arg-type]
        return (type(value), _key(own))
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if value is None or isinstance(value, str | int | float):
        return (type(value).__name__, value)
    return ("object", id(value))
