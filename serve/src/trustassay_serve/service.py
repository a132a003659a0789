"""The service behind its routes: an open scorer, and one gate that bounds what it accepts."""

import asyncio
import math
import re
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trustassay.errors import UsageError
from trustassay.metric import Assessment, Metric
from trustassay.runs.finished import one_line, reason_of
from trustassay.sample import Sample, SampleError
from trustassay.show.first_card import problem_of
from trustassay.text.limits import SHORT_PASSAGES, TextWork
from trustassay.workflows.scorer import Assay, Scorer

TOKEN_VARIABLE = "TRUSTASSAY_SERVE_TOKEN"
SHORTEST_TOKEN = 16
TOKEN = re.compile(r"[A-Za-z0-9._~+/=-]+", re.ASCII)
"""What an ``Authorization: Bearer`` header can carry (RFC 6750, section 2.1)."""


@dataclass(frozen=True)
class ServiceSettings:
    """How the service takes requests: the options of ``serve`` in ``options.csv``.

    tokens: a request needs one of them; without any, only this machine is served. Never shown.
    """

    tokens: tuple[str, ...] = field(default=(), repr=False)
    capacity: int = 1024
    largest_body: int = 4 * 1024**2
    per_minute: int = 6000
    connections: int = 2048
    slow_s: float = 10.0

    def __post_init__(self) -> None:
        for name in ("capacity", "largest_body", "per_minute", "connections"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name}: expected 1 or more, got {getattr(self, name)}")
        if not self.slow_s > 0:
            raise UsageError(f"slow_s: expected more than 0 seconds, got {self.slow_s:g}")


def read_tokens(text: str) -> tuple[str, ...]:
    """Return the tokens of the environment's variable; a comma stands between several.

    Raises:
        ValueError: one is too short, or cannot be sent in a header; the message does not show it.
    """
    result: Sequence[str] = [part.strip() for part in text.split(",") if part.strip()]
    for number, token in enumerate(result, 1):
        which = f"{TOKEN_VARIABLE}, token {number} of {len(result)}"
        if len(token) < SHORTEST_TOKEN:
            raise UsageError(f"{which}: expected {SHORTEST_TOKEN} characters or more")
        if not TOKEN.fullmatch(token):
            raise UsageError(f"{which}: expected letters, digits and ._~+/=- alone")
    return tuple(result)


Note = Callable[[Assay | None, float], None]
"""Hears of each finished sample, ``None`` if it was given up, and the seconds that it took."""
LONGEST_WAIT_S = 60
RECENT = 200
"""Finished samples from which the pace is known."""
CLOSING_WAIT_S = 5
"""After so long a client of a closing service may come again, to the one that takes its place."""


class BusyError(RuntimeError):
    """As many samples as allowed are in progress; nothing was accepted (HTTP 429)."""

    def __init__(self, message: str, retry_after_s: int) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class ClosingError(RuntimeError):
    """The service finishes what it accepted and takes nothing more (HTTP 503)."""

    retry_after_s = CLOSING_WAIT_S


class Service:
    """Scores samples of all routes with one scorer, within the settings' ``capacity``.

    Used inside the event loop in which the scorer was opened.
    """

    def __init__(
        self,
        scorer: Scorer,
        settings: ServiceSettings,
        note: Note = lambda assay, seconds: None,  # noqa: ARG005
    ) -> None:
        self.settings = settings
        self.scorer, self._note = scorer, note
        self._ended: deque[float] = deque(maxlen=RECENT)
        self.closing = False
        """Whether it takes nothing more."""

    def close(self) -> None:
        """Take nothing more; what was accepted is finished."""
        self.closing = True

    async def drained(self) -> None:
        """Wait until everything accepted is finished."""
        while self.scorer.in_progress:
            await asyncio.sleep(0.02)

    async def checked(self, record: Sample | Mapping[str, Any]) -> Sample:
        """Return the sample of a record in any layout that ``score`` reads; accept nothing.

        Raises:
            SampleError: with every fault of the record, each with its field (HTTP 422).
        """
        return await work_on(record)(self.scorer.check, record)

    async def score(self, record: Sample | Mapping[str, Any], *, late: bool = False) -> Assay:
        """Return what the metrics find in one sample; their failures are values in it.

        ``late``: also while closing, for a request that began before.

        Raises:
            SampleError: see :meth:`checked`.
            BusyError, ClosingError, ScorerClosedError: it was not accepted.
        """
        sample = await self.checked(record)
        self._admit(1, late=late)
        return await self.scorer.finished(self._begin(sample))

    def begin(
        self, samples: Sequence[Sample], *, late: bool = False
    ) -> list[asyncio.Task[Assay] | SampleError]:
        """Accept all of them, or none; the scorer waits for each, or gives it up.

        ``late``: also while closing, for what was taken before. In place of a sample whose id an
        earlier one in the folder has, its error.

        Raises:
            BusyError, ClosingError, ScorerClosedError: none was accepted.
        """
        self._admit(len(samples), late=late)
        result: list[asyncio.Task[Assay] | SampleError] = []
        for sample in samples:
            try:
                result.append(self._begin(sample))
            except SampleError as error:
                result.append(error)
        return result

    def verdict_of(self, assay: Assay) -> dict[str, Any]:
        """Return the JSON object of one result.

        ``needs_look``: whether a metric names a problem in the answer, or failed. For each metric
        the score, the verdict, the ``problem`` it names or ``null``, the ``reason`` in one
        sentence, the ``parts`` and the ``error``.
        """
        metrics = self.scorer.metrics_for(assay.sample)
        result = {one.name: _told(one, assay.assessments[one.name]) for one in metrics}
        return {
            "id": assay.sample.id,
            "needs_look": any(one["problem"] is not None for one in result.values()),
            "metrics": result,
        }

    def _begin(self, sample: Sample) -> asyncio.Task[Assay]:
        began = time.monotonic()

        def ended(task: asyncio.Task[Assay]) -> None:
            now = time.monotonic()
            self._ended.append(now)
            failed = task.cancelled() or task.exception() is not None
            self._note(None if failed else task.result(), now - began)

        task = self.scorer.begin(sample)
        task.add_done_callback(ended)
        return task

    def refuse_if_closing(self) -> None:
        """Raise ClosingError if it takes nothing more."""
        if self.closing:
            raise ClosingError("the service is closing; send this again later")

    def _admit(self, samples: int, *, late: bool = False) -> None:
        if not late:
            self.refuse_if_closing()
        capacity = self.settings.capacity
        if self.scorer.in_progress + samples > capacity:
            raise BusyError(
                f"{self.scorer.in_progress} samples are in progress, and the service accepts "
                f"{capacity} at once; send this again after the seconds of Retry-After",
                self.wait_s(samples),
            )

    def wait_s(self, samples: int) -> int:
        """Return in how many seconds there is probably room, by the pace of the last samples."""
        if len(self._ended) < 2:
            return 1
        pace = (self._ended[-1] - self._ended[0]) / (len(self._ended) - 1)
        too_many = self.scorer.in_progress + samples - self.settings.capacity
        return min(max(math.ceil(pace * too_many), 1), LONGEST_WAIT_S)


def work_on(record: Any) -> TextWork:
    """Return where a record is read."""
    texts = record.values() if isinstance(record, Mapping) else ()
    parts = (part for one in texts for part in (one if isinstance(one, list) else [one]))
    inner = (
        text for part in parts for text in (part.values() if isinstance(part, dict) else [part])
    )
    long = sum(len(text) for text in inner if isinstance(text, str)) > SHORT_PASSAGES
    return TextWork(long=long)


def _told(metric: Metric, assessment: Assessment) -> dict[str, Any]:
    problem = problem_of(metric, assessment)
    return {
        "score": assessment.score,
        "verdict": assessment.verdict,
        "problem": None if problem is None else one_line(problem),
        "reason": reason_of(metric, assessment),
        "parts": dict(assessment.parts),
        "error": assessment.error,
    }
