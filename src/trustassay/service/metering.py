"""``GET /metrics`` for Prometheus: counts and times, and nothing of any sample."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from trustassay.errors import BackendError
from trustassay.service.app import Part
from trustassay.service.described import METRICS_PATHS
from trustassay.workflows.scorer import Assay

if TYPE_CHECKING:
    from trustassay.service.service import Service

__all__ = ["Meter"]

SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)


class Meter:
    """What the service counts, in a registry of its own."""

    def __init__(self) -> None:
        """Raise BackendError if the package is not installed."""
        try:
            import prometheus_client as prometheus
        except ImportError:
            words = "the service needs prometheus_client, which is not installed"
            raise BackendError(f"{words}: pip install 'trustassay[serve]'") from None
        self._text = prometheus.generate_latest
        self._type = prometheus.CONTENT_TYPE_LATEST
        self._registry = prometheus.CollectorRegistry()
        self._replies = prometheus.Counter(
            "trustassay_replies",
            "Replies, by the path of the route and the status.",
            ("path", "status"),
            registry=self._registry,
        )
        self._samples = prometheus.Counter(
            "trustassay_samples",
            "Samples accepted and ended: scored, failed (a metric gave no score), or given up.",
            ("outcome",),
            registry=self._registry,
        )
        self._verdicts = prometheus.Counter(
            "trustassay_verdicts",
            "What each metric found.",
            ("metric", "verdict"),
            registry=self._registry,
        )
        self._seconds = prometheus.Histogram(
            "trustassay_sample_seconds",
            "Seconds from accepting a sample to its result.",
            buckets=SECONDS,
            registry=self._registry,
        )
        self._in_progress = prometheus.Gauge(
            "trustassay_samples_in_progress",
            "Samples accepted and not finished.",
            registry=self._registry,
        )
        self._capacity = prometheus.Gauge(
            "trustassay_capacity",
            "Samples that are accepted at once.",
            registry=self._registry,
        )
        for outcome in ("scored", "failed", "given_up"):
            self._samples.labels(outcome)

    def count(self, path: str, status: int) -> None:
        """Count a reply."""
        self._replies.labels(path, str(status)).inc()

    def note(self, assay: Assay | None, seconds: float) -> None:
        """Count a finished sample, ``None`` if it was given up."""
        if assay is None:
            self._samples.labels("given_up").inc()
            return
        self._samples.labels("failed" if assay.errors else "scored").inc()
        self._seconds.observe(seconds)
        for name, found in assay.assessments.items():
            if found.error is None:
                self._verdicts.labels(name, found.verdict or "none").inc()

    def part(self, service: Service) -> Part:
        """Return the route that shows the metrics of a service."""
        self._in_progress.set_function(lambda: service.in_progress)
        self._capacity.set(service.settings.capacity)

        async def metrics(_request: Request) -> Response:
            return Response(self._text(self._registry), media_type=self._type)

        return Part([Route("/metrics", metrics)], METRICS_PATHS)
