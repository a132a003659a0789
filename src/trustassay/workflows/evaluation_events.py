"""Assessments as events of OpenTelemetry, sent to the provider that the user configured.

One event ``gen_ai.evaluation.result`` an assessment, with the attributes of OpenTelemetry's
semantic conventions for generative AI (status: development). No provider and no exporter is made.
"""

from __future__ import annotations

import time
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Literal

from trustassay.errors import BackendError, UsageError, install
from trustassay.metric import Assessment
from trustassay.progress import tell
from trustassay.sample import Sample

if TYPE_CHECKING:
    from opentelemetry.context import Context

EventsChoice = bool | Literal["explanations"]

EVENT = "gen_ai.evaluation.result"
TRACEPARENT = "traceparent"
"""Field of a record: the span that wrote the response, as W3C Trace Context spells it."""
RESPONSE_ID = ("gen_ai.response.id", "response_id")
"""Fields of a record that hold the id which the model's provider gave the response."""
LONGEST_ID = 256
OTHER = "_OTHER"
"""The conventions' word for an error of no known kind."""


class EvaluationEvents:
    """Sends an event for each assessment; a provider that fails costs events, never a score."""

    def __init__(self, *, explanations: bool = False) -> None:
        """Take the provider that is configured now; BackendError: there is none. explanations: also
        send the reason of each score, which may quote question, response and documents.
        """
        try:
            from opentelemetry import _logs
            from opentelemetry.sdk import _logs as _  # noqa: F401 - the API alone sends nothing
        except ImportError:
            raise BackendError(
                f"events of OpenTelemetry need its SDK: {install('opentelemetry')}"
            ) from None
        provider = _logs.get_logger_provider()
        if type(provider).__module__.startswith("opentelemetry._logs"):  # its own send nothing
            raise BackendError(
                "no logger provider of OpenTelemetry is configured, so events would go nowhere; "
                "call opentelemetry._logs.set_logger_provider first, or start the program with "
                "opentelemetry-instrument"
            )
        self._logger = provider.get_logger("trustassay", version("trustassay"))
        self._explanations = explanations
        self._has_failed = False

    @classmethod
    def of(cls, choice: EventsChoice) -> EvaluationEvents | None:
        """Return what an option asks for; ``None`` for ``False``.

        Raises:
            ValueError: it is no such option.
            BackendError: as of the constructor.
        """
        if choice not in (True, False, "explanations"):
            words = f"opentelemetry: expected True, False or 'explanations', got {choice!r:.60}"
            raise UsageError(words)
        return cls(explanations=choice == "explanations") if choice else None

    def send(self, sample: Sample, found: Assessment) -> None:
        """Send one assessment, below the span that the field ``traceparent`` names, if any."""
        try:
            self._logger.emit(
                event_name=EVENT,
                timestamp=time.time_ns(),
                context=_parent(sample),
                attributes=self._attributes(sample, found),
            )
        except Exception as error:
            if not self._has_failed:  # its text may hold a key of an exporter
                self._has_failed = True
                tell(f"OpenTelemetry fails to take events: {type(error).__name__}")

    def _attributes(self, sample: Sample, found: Assessment) -> dict[str, Any]:
        explanation = found.error or found.reason if self._explanations else None
        ids = [sample.metadata.get(name) for name in RESPONSE_ID]
        ids = [one for one in ids if isinstance(one, str) and 0 < len(one) <= LONGEST_ID]
        attributes = {
            "gen_ai.evaluation.name": found.metric,
            "gen_ai.evaluation.score.value": None if found.score is None else float(found.score),
            "gen_ai.evaluation.score.label": found.verdict,
            "gen_ai.evaluation.explanation": explanation or None,
            "gen_ai.response.id": ids[0] if ids else None,
            "error.type": None if found.error is None else found.fault or OTHER,
            "trustassay.sample.id": sample.id,
        }
        return {name: value for name, value in attributes.items() if value is not None}


def _parent(sample: Sample) -> Context | None:
    """Return the context of the span that wrote the response, if the sample names it."""
    named = sample.metadata.get(TRACEPARENT)
    if not isinstance(named, str):
        return None
    from opentelemetry.context import get_current
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    return TraceContextTextMapPropagator().extract({TRACEPARENT: named}, get_current())
