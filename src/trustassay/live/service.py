"""The service behind the routes: an open scorer, and the limits on the samples that it accepts.

Every limit and every turn is that of a caller: the flow that
:class:`~trustassay.live.requests.AccessGuard` sets for a request.
"""

import asyncio
import math
import re
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from trustassay.core.fair_queue import CURRENT_FLOW
from trustassay.core.metric import Assessment, Metric
from trustassay.core.sample import Sample, SampleError
from trustassay.errors import UsageError
from trustassay.live.scorer import Assay, Scorer
from trustassay.report.review import problem_of
from trustassay.runs.counts import determine_outcome
from trustassay.runs.finished import describe_reason, one_line
from trustassay.text.limits import MAX_SHORT_PASSAGES_CHARACTERS, TextWork
from trustassay.text.numbers import amount

T = TypeVar("T")
TOKEN_VARIABLE = "TRUSTASSAY_SERVE_TOKEN"
MIN_TOKEN_CHARACTERS = 16
TOKEN = re.compile(r"[A-Za-z0-9._~+/=-]+", re.ASCII)
"""What an ``Authorization: Bearer`` header can carry (RFC 6750, section 2.1)."""
HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", re.ASCII)
"""The name of a header (RFC 9110, section 5.1)."""
PART_CHARACTERS = 8
"""Characters that take about as much work as one more key or entry of a record."""
MAX_MEASURED = 1_000_000
"""Characters from which records count as equally long: it is the limit of a sample's passages."""


@dataclass(frozen=True)
class ServiceSettings:
    """The limits of the service; all are options of ``trustassay serve``."""

    tokens: tuple[str, ...] = field(default=(), repr=False)
    """A request needs one of them; without any, only this machine is served. Never shown."""
    capacity: int = 4096
    """The most samples that are accepted and not finished; verdicts on answers do not count."""
    per_caller: int | None = None
    """The most of them of one caller, and the most verdicts that a caller waits for; ``None``: a
    quarter of ``capacity``."""
    caller_header: str = ""
    """The header that names the caller of a request without a token; empty: the address does."""
    largest_body: int = 4 * 1024**2
    """The most bytes of a request's body."""
    per_minute: int = 6000
    """The most requests of one caller in a minute."""
    connections: int = 2048
    """The most open connections."""
    slow_s: float = 10.0
    """Seconds in which a client must have sent a request."""

    def __post_init__(self) -> None:
        for name in ("capacity", "per_caller", "largest_body", "per_minute", "connections"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise UsageError(f"{name}: expected 1 or more, got {value}")
        if not self.slow_s > 0:
            raise UsageError(f"slow_s: expected more than 0 seconds, got {self.slow_s:g}")
        if self.caller_header and not HEADER_NAME.fullmatch(self.caller_header):
            raise UsageError(
                f"--caller-header: expected the name of a header, got {self.caller_header!r:.60}"
            )

    @property
    def share(self) -> int:
        """The most samples of one caller that are accepted and not finished."""
        return min(self.per_caller or max(self.capacity // 4, 1), self.capacity)


def read_tokens(text: str) -> tuple[str, ...]:
    """Return the tokens in the value of the environment variable, separated by commas.

    Raises:
        UsageError: a token is too short, or cannot be sent in a header; the message does not show
            it.
    """
    result: Sequence[str] = [part.strip() for part in text.split(",") if part.strip()]
    for number, token in enumerate(result, 1):
        which = f"{TOKEN_VARIABLE}, token {number} of {len(result)}"
        # A short token can be guessed within the allowed rate.
        if len(token) < MIN_TOKEN_CHARACTERS:
            raise UsageError(f"{which}: expected {MIN_TOKEN_CHARACTERS} characters or more")
        if not TOKEN.fullmatch(token):
            raise UsageError(f"{which}: expected only letters, digits and ._~+/=-")
    return tuple(result)


Note = Callable[[Assay | None, float], None]
"""Is called with each finished sample (``None`` if it was given up) and the seconds it took."""
MAX_WAIT_S = 60
"""The longest ``Retry-After`` of a busy service."""
SAMPLES_FOR_PACE = 200
"""Finished samples from which the pace is estimated."""
CLOSING_WAIT_S = 5
"""``Retry-After`` of a closing service: by then another process may have taken its place."""


class BusyError(RuntimeError):
    """The service is at its capacity; nothing of the request was accepted (HTTP 429)."""

    def __init__(self, message: str, retry_after_s: int) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class ClosingError(RuntimeError):
    """The service finishes what it has accepted, and accepts nothing more (HTTP 503)."""

    retry_after_s = CLOSING_WAIT_S


class Service:
    """Scores the samples of all routes with one scorer, within the capacity of the settings.

    It must be used in the event loop in which the scorer was opened.
    """

    def __init__(
        self,
        scorer: Scorer,
        settings: ServiceSettings,
        note: Note = lambda assay, seconds: None,  # noqa: ARG005
    ) -> None:
        self.settings = settings
        self.scorer, self._note = scorer, note
        self._ended: deque[float] = deque(maxlen=SAMPLES_FOR_PACE)
        self._in_progress_by_account: Counter[tuple[str, bool]] = Counter()
        self.samples_in_progress = 0
        """Samples of callers that are not finished; verdicts, and what an earlier process accepted,
        are not among them."""
        self.closing = False
        """Whether nothing more is accepted."""

    def close(self) -> None:
        """Accept nothing more; accepted samples are still finished."""
        self.closing = True

    async def drain(self) -> None:
        """Wait until everything accepted is finished."""
        # Polled, since several routes and the scorer itself begin and end samples.
        while self.scorer.in_progress:
            await asyncio.sleep(0.02)

    async def check(self, record: Sample | Mapping[str, Any]) -> Sample:
        """Return the sample of a record in any layout that ``score`` reads, without scoring it.

        Raises:
            SampleError: the record has faults; the error has all of them, with their fields (HTTP
                422).
        """
        return await choose_text_work(record)(self.scorer.check, record)

    async def score(self, record: Sample | Mapping[str, Any], *, late: bool = False) -> Assay:
        """Score one sample; failures of metrics are values in the result.

        Args:
            record: as for :meth:`check`.
            late: accept it also while closing, for a request that began before.

        Raises:
            SampleError: see :meth:`check`.
            BusyError, ClosingError, ScorerClosedError: it was not accepted.
        """
        sample = await self.check(record)
        self._admit(1, late=late)
        return await self.scorer.wait_for(self._begin(sample))

    def begin(
        self, samples: Sequence[Sample], *, late: bool = False
    ) -> list[asyncio.Task[Assay] | SampleError]:
        """Accept all samples, or none, and begin to score them.

        Args:
            samples: the samples.
            late: accept them also while closing, if they were taken before.

        Returns:
            The task of each sample, or the error of one whose id an earlier sample of the folder
            has with other content.

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

        ``needs_look`` says whether a metric names a problem in the answer, or failed. ``judged``
        says whether any metric judged it, as none does of a refusal. Each metric has its score, its
        verdict, the ``problem`` that it names or ``null``, the ``reason`` in one sentence, the
        ``parts`` and the ``error``.
        """
        # With their `auto` options settled, which may depend on the sample.
        metrics = self.scorer.metrics_for(assay.sample)
        result = {
            metric.name: _metric_json(metric, assay.assessments[metric.name]) for metric in metrics
        }
        return {
            "id": assay.sample.id,
            "needs_look": any(values["problem"] is not None for values in result.values()),
            "judged": any(
                determine_outcome(metric, assay.assessments[metric.name]).is_judged
                for metric in metrics
            ),
            "metrics": result,
        }

    def _begin(self, sample: Sample) -> asyncio.Task[Assay]:
        """Begin to score a sample, and note when it ends."""
        began = time.monotonic()
        flow = CURRENT_FLOW.get()
        account, counted = flow.account, int(not flow.is_verdict)

        def note_end(task: asyncio.Task[Assay]) -> None:
            now = time.monotonic()
            self._ended.append(now)
            self.samples_in_progress -= counted
            self._in_progress_by_account[account] -= 1
            if not self._in_progress_by_account[account]:
                del self._in_progress_by_account[account]
            # cancelled() first: exception() raises for a cancelled task
            failed = task.cancelled() or task.exception() is not None
            self._note(None if failed else task.result(), now - began)

        task = self.scorer.begin(sample)
        self._in_progress_by_account[account] += 1
        self.samples_in_progress += counted
        task.add_done_callback(note_end)
        return task

    def refuse_if_closing(self) -> None:
        """Raise ClosingError if nothing more is accepted."""
        if self.closing:
            raise ClosingError("the service is closing; send this request again later")

    def _admit(self, samples: int, *, late: bool = False) -> None:
        """Raise an error if this many samples cannot be accepted now."""
        if not late:
            self.refuse_if_closing()
        flow, share, capacity = CURRENT_FLOW.get(), self.settings.share, self.settings.capacity
        of_caller = self._in_progress_by_account[flow.account]
        later = "send this request again after the seconds in Retry-After"
        if (too_many := of_caller + samples - share) > 0:
            raise BusyError(
                f"this caller has {amount(of_caller, 'sample')} in progress, and at most "
                f"{share:,} are allowed per caller; {later}",
                self.estimate_wait_s(too_many),
            )
        # Somebody waits for an answer: full shares of other callers must not withhold it.
        if flow.is_verdict:
            return
        if (too_many := self.samples_in_progress + samples - capacity) > 0:
            raise BusyError(
                f"all callers have {amount(self.samples_in_progress, 'sample')} in progress, and "
                f"at most {capacity:,} are allowed; {later}",
                self.estimate_wait_s(too_many),
            )

    def estimate_wait_s(self, too_many: int) -> int:
        """Estimate the seconds in which this many samples of a caller end, from the last ones."""
        # no pace yet: try again soon
        if len(self._ended) < 2:
            return 1
        # seconds per finished sample, over the last ones; callers share what is finished
        pace = (self._ended[-1] - self._ended[0]) / (len(self._ended) - 1)
        callers = max(len(self._in_progress_by_account), 1)
        return min(max(math.ceil(pace * callers * too_many), 1), MAX_WAIT_S)


def choose_text_work(record: Any) -> TextWork:
    """Return how to read a record: a long one is read in a thread, a short one at once."""
    return choose_work_for(measure_record(record))


def measure_record(record: Any) -> int:
    """Return about how much work a record is, in characters, at most :data:`MAX_MEASURED`.

    Each of its parts counts as some characters, since many empty ones are work, too.
    """
    characters, values = 0, [record]
    # Without recursion, and bounded: this is done in the event loop.
    while values and characters < MAX_MEASURED:
        value = values.pop()
        if isinstance(value, str):
            characters += len(value)
        elif isinstance(value, Mapping | list):
            characters += PART_CHARACTERS * len(value)
            values += value.values() if isinstance(value, Mapping) else value
    return min(characters, MAX_MEASURED)


def choose_work_for(size: int) -> TextWork:
    """Return how to read a text or body of this size; see :func:`choose_text_work`."""
    return TextWork(size, long=size > MAX_SHORT_PASSAGES_CHARACTERS)


@asynccontextmanager
async def run_beside(work: Coroutine[Any, Any, T]) -> AsyncIterator[asyncio.Task[T]]:
    """Run ``work`` during the block; at the end of the block it is cancelled and has ended."""
    task = asyncio.create_task(work)
    try:
        yield task
    finally:
        task.cancel()
        # waits until the cancelled work has released what it holds
        await asyncio.gather(task, return_exceptions=True)


def _metric_json(metric: Metric, assessment: Assessment) -> dict[str, Any]:
    problem = problem_of(metric, assessment)
    return {
        "score": assessment.score,
        "verdict": assessment.verdict,
        # One line, since clients print it, and some log it.
        "problem": None if problem is None else one_line(problem),
        "reason": describe_reason(metric, assessment),
        "parts": dict(assessment.parts),
        "error": assessment.error,
    }
