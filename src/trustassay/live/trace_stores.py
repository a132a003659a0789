"""Langfuse and Phoenix: addresses and keys, reading of traces with their scores, and the requests
that send scores.

A score that is sent again replaces the earlier one. Langfuse keeps one score per (id, name, day),
so ids are built from the trace and the metric, and the time of the score is that of the trace.
Phoenix keeps one annotation per (span, name, identifier).
"""

import base64
import os
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, ClassVar, NamedTuple
from urllib.parse import quote, urlencode

from trustassay.backends.http import (
    EndpointAddress,
    HttpEndpoint,
    RefusalError,
    check_base,
    read_key,
)
from trustassay.calls.retry import Endpoint
from trustassay.core.capabilities import EndpointLimits
from trustassay.core.tracebacks import hide_key
from trustassay.errors import CallError, UsageError
from trustassay.input.recognising import reach
from trustassay.live.integrations.resident import IntegrationFinding
from trustassay.live.options import MAX_PAGES
from trustassay.text.numbers import amount

AT_ONCE = 8
"""The most requests in progress."""
PAGE = 500
"""Observations, spans or annotations that one request reads."""
SCORE_PAGE = 100
"""Scores that one request reads; Langfuse allows no more."""
IDS_AT_ONCE = 100
"""Traces or spans whose scores one request reads: their ids, of 32 characters or less, stand in its
address, which many servers limit to 8,192 characters."""
MAX_EMPTY_PAGES = 10
"""Pages without an entry, one after the other, after which a list is taken as one without end."""
SCORE_FIELDS = ("name", "value", "source", "annotator_kind", "result")
"""What is kept of a score or an annotation."""
IDENTIFIER = "trustassay"
"""The annotator's name in Phoenix: annotations of the same name by others stay."""
MAX_COMMENT_CHARACTERS = 10_000
"""The most characters of a comment."""
TRACES = ("trace_id", "traceId", "context.trace_id")
"""Fields with the trace of a record that is one of the trace's observations."""
TIMES = ("started", "timestamp", "startTime", "start_time", "createdAt")
"""Fields with the time at which a trace or an observation began; the first one counts."""

Request = tuple[str, dict[str, Any]]
"""A path, and the body that is posted there."""


class TraceTarget(NamedTuple):
    """A trace, or one observation of it, that is scored."""

    trace: str
    """The id of the trace."""
    span: str | None
    """The id of the observation, or of the root of a whole trace; ``None`` if it is not known."""
    is_whole_trace: bool
    """Whether the score is about the whole trace."""
    time: str | None
    """When it began, in ISO 8601 with an offset; ``None`` if it is not known."""

    @classmethod
    def of(cls, sample: Mapping[str, Any], field: str = "") -> "TraceTarget | None":
        """Return the target of a stored sample; ``None`` if no field names a trace.

        Args:
            sample: the sample.
            field: the field with the id of the trace, if it is not one of the usual ones.
        """
        fields = {**(sample.get("metadata") or {}), **sample}
        trace_ids = [fields[name] for name in ((field,) if field else TRACES) if fields.get(name)]
        sample_id, root = str(sample["id"]), fields.get("root_span") or None
        # A sample that was read from a file of spans is a whole trace, and has its id.
        if not trace_ids and not field and "root_span" in fields:
            trace_ids = [sample_id]
        if not trace_ids:
            return None
        trace = str(trace_ids[0])
        is_whole = "root_span" in fields or field != "" or sample_id == trace
        times = filter(None, (_to_iso_time(fields.get(name)) for name in TIMES))
        return cls(trace, root if is_whole else sample_id, is_whole, next(times, None))


def _to_iso_time(value: Any) -> str | None:
    """Return a time in ISO 8601 with an offset; exporters write such texts, or nanoseconds."""
    text = str(value or "").strip()
    try:
        if text.isdecimal():
            return datetime.fromtimestamp(int(text) / 1e9, UTC).isoformat()
        result = datetime.fromisoformat(text)
    except (ValueError, OverflowError, OSError):
        return None
    return (result if result.tzinfo else result.replace(tzinfo=UTC)).isoformat()


class SecretHttp(HttpEndpoint):
    """An address that may refuse single traces, and whose secrets never appear in messages."""

    secrets: Sequence[str] = ()
    """Texts that are replaced in every message."""
    variables: str = ""
    """The variables that have the secrets; empty if the address names the one of its key."""

    def with_secrets(self, variables: str, secrets: Sequence[str]) -> "SecretHttp":
        """Set the secrets that the headers have, and the variables that they are from."""
        self.variables, self.secrets = variables, secrets
        return self

    def _describe_key(self) -> str:
        if self.variables and self.secrets:
            return f"it rejects the key in {self.variables}"
        return f"no key: {self.variables} is not set" if self.variables else super()._describe_key()

    def _redact(self, text: str) -> str:
        for secret in self.secrets:
            text = text.replace(secret, "[key]")
        return super()._redact(text)

    async def _send(
        self, method: str, path: str, data: bytes | None
    ) -> tuple[int, Mapping[str, str], str]:
        status, headers, text = await super()._send(method, path, data)
        # Collectors answer with an empty body, which is no JSON.
        return status, headers, text.strip() or "{}"  # as collectors answer

    def _error_of_status(self, status: int, text: str, headers: Mapping[str, str]) -> CallError:
        if status == 404 and "do not exist" in text:  # Phoenix, of a span
            return RefusalError(self._redact(f"404: {text[:200]}"), text)
        return super()._error_of_status(status, text, headers)


class TraceStore(ABC):
    """A store of traces that is reached over HTTP."""

    name: ClassVar[str]
    """Its name on the command line."""
    http: HttpEndpoint
    """The address, with its keys."""
    limits = EndpointLimits(concurrency=AT_ONCE, patience_s=60.0, timeout_s=60.0)
    max_pages: int = MAX_PAGES
    """Pages of one list after which reading ends with an error."""

    @property
    def address(self) -> str:
        """The name and the address of the store, without any key."""
        return f"{self.name} {self.http.address.base}"

    @abstractmethod
    def build_requests(
        self, target: TraceTarget, findings: Sequence[tuple[IntegrationFinding, str]]
    ) -> Sequence[Request]:
        """Build the requests that send findings with their comments; sent twice, they change
        nothing.

        Raises:
            UsageError: the store takes no scores for this kind of target.
        """

    @abstractmethod
    def listing(self, project: str, since: str, until: str) -> tuple[str, Mapping[str, str]]:
        """Return the path and the query that list the spans which began within a period."""

    async def pages(
        self, endpoint: Endpoint, project: str, since: str, until: str
    ) -> AsyncIterator[list[dict[str, Any]]]:
        """Yield pages of the spans that began within a period, as the store writes them.

        Raises:
            CallError: they cannot be read.
        """
        path, query = self.listing(project, since, until)
        async for page in self._read_list(endpoint, path, query, PAGE):
            yield page

    async def _read_list(
        self, endpoint: Endpoint, path: str, query: Mapping[str, Any], size: int
    ) -> AsyncIterator[list[dict[str, Any]]]:
        """Yield the pages of a list, ``size`` entries each; CallError if it does not end."""
        cursor, cursors, empty_pages, fault = "", set[str](), 0, ""
        for _ in range(self.max_pages):
            pairs = {**query, "limit": size, **({"cursor": cursor} if cursor else {})}
            params = urlencode(pairs, doseq=True)
            reply = await endpoint.call(lambda params=params: self.http.get(f"{path}?{params}"))  # type: ignore[misc]
            page = reply if isinstance(reply, dict) else {}
            if not isinstance(page.get("data"), list):
                message = f"{self.http.address.name}: the reply has no list `data`"
                raise CallError(message, "malformed")
            yield [entry for entry in page["data"] if isinstance(entry, dict)]
            meta = page["meta"] if isinstance(page.get("meta"), dict) else {}
            cursor = str(page.get("next_cursor") or meta.get("cursor") or "")
            if not cursor:
                return
            empty_pages = 0 if page["data"] else empty_pages + 1
            # A cursor that repeats would read the same pages for ever.
            if cursor in cursors:
                fault = "the server's list does not end: a page leads back to an earlier page"
            elif empty_pages == MAX_EMPTY_PAGES:
                fault = f"the server's list does not end: {MAX_EMPTY_PAGES} pages were empty"
            if fault:
                break
            cursors.add(cursor)
        message = (
            f"{fault}; report this to the server's owner"
            if fault
            else f"more than {amount(self.max_pages, 'page')}; narrow --since and --until, or "
            "raise --max-pages; if the list never ends, report this to the server's owner"
        )
        raise CallError(f"{self.http.address.name}: {path}: {message}", "malformed")


class Langfuse(TraceStore):
    """Scores in Langfuse, by ``POST /api/public/scores``."""

    name = "langfuse"

    def __init__(self, url: str) -> None:
        """Read the keys and the address.

        Raises:
            UsageError: a key is not set.
            BackendError: the address is malformed.
        """
        variables = ("LANGFUSE_PUBLIC_KEY", "LANGFUSE_SECRET_KEY")
        keys = [_read_needed_key(name) for name in variables]
        base = _choose_base(
            url, ("LANGFUSE_BASE_URL", "LANGFUSE_HOST"), "https://cloud.langfuse.com"
        )
        token = base64.b64encode(":".join(keys).encode()).decode()
        hide_key(token)
        http = SecretHttp(EndpointAddress(self.name, "scores", base, self.limits, "", {}, {}), "")
        http.with_secrets(" and ".join(variables), [keys[1], token])
        self.http = http.with_headers(Authorization=f"Basic {token}")

    def build_requests(
        self, target: TraceTarget, findings: Sequence[tuple[IntegrationFinding, str]]
    ) -> Sequence[Request]:
        """Build one request per score; a metric without a score gives a category."""
        result: list[Request] = []
        observation = None if target.is_whole_trace else target.span
        for finding, comment in findings:
            name, value, kind = finding.as_langfuse
            # The id replaces an earlier score of the same metric; the trace alone has no
            # observation.
            parts = [target.trace, observation, name]
            body = {
                "id": "-".join(part for part in parts if part),
                "traceId": target.trace,
                "observationId": observation,
                "name": name,
                "value": value,
                "dataType": kind,
                "comment": comment,
                "metadata": finding.details,
                "timestamp": target.time,
            }
            content = {key: field for key, field in body.items() if field is not None}
            result.append(("/api/public/scores", content))
        return result

    def listing(self, project: str, since: str, until: str) -> tuple[str, Mapping[str, str]]:  # noqa: ARG002
        """Return the path and the query that list observations."""
        query = {"fields": "core,basic,io,metadata,model,trace_context"}
        query |= {k: v for k, v in (("fromStartTime", since), ("toStartTime", until)) if v}
        return "/api/public/v2/observations", query

    async def pages(
        self, endpoint: Endpoint, project: str, since: str, until: str
    ) -> AsyncIterator[list[dict[str, Any]]]:
        """Yield the pages with scores at their observations, those of a trace at its root."""
        traces: set[str] = set()
        scores: dict[tuple[str, str], list[dict[str, Any]]] = {}
        earliest: dict[str, dict[str, Any]] = {}
        fault: CallError | None = None
        try:
            async for page in super().pages(endpoint, project, since, until):
                # By trace and not by time: people rate after the period.
                fresh = {str(span.get("traceId")) for span in page} - traces
                traces |= fresh
                for ids in _split_ids(fresh):
                    query = {"fields": "subject", "traceId": ",".join(ids)}
                    path = "/api/public/v3/scores"
                    async for entries in self._read_list(endpoint, path, query, SCORE_PAGE):
                        for entry in entries:
                            key = str(reach(entry, "subject.kind")), str(reach(entry, "subject.id"))
                            scores.setdefault(key, []).append(_keep_score(entry))
                yield [done for span in page for done in _add_scores(span, scores, earliest)]
        except CallError as error:
            # Raised below: the observations that wait for their root were read.
            fault = error
        # The root of these traces is elsewhere: their first observation stands for it.
        for trace, span in earliest.items():
            _attach(span, scores["trace", trace])
        yield list(earliest.values())
        if fault:
            raise fault


def _add_scores(
    span: dict[str, Any],
    scores: dict[tuple[str, str], list[dict[str, Any]]],
    earliest: dict[str, dict[str, Any]],
) -> Iterator[dict[str, Any]]:
    """Yield the spans that are complete with this one.

    Args:
        span: an observation; its scores are added.
        scores: those that are not yet added, by the kind and the id of what they are about.
        earliest: the first observations of traces with a score whose root was not read yet.
    """
    trace = str(span.get("traceId"))
    span.pop("scores", None)
    _attach(span, scores.pop(("observation", str(span.get("id"))), []))
    if ("trace", trace) not in scores:
        yield span
    elif not span.get("parentObservationId"):
        _attach(span, scores.pop(("trace", trace)))
        yield span
        if trace in earliest:
            yield earliest.pop(trace)
    else:
        # Roots may come after their children.
        pair = [span, earliest[trace]] if trace in earliest else [span]
        earliest[trace], *later = sorted(pair, key=lambda one: str(one.get("startTime")))
        yield from later


def _attach(span: dict[str, Any], scores: Sequence[dict[str, Any]]) -> None:
    if scores:
        span["scores"] = [*span.get("scores", ()), *scores]


class Phoenix(TraceStore):
    """Annotations in Phoenix, by ``POST /v1/span_annotations``."""

    name = "phoenix"

    def __init__(self, url: str) -> None:
        """Read the key and the address.

        Raises:
            UsageError: the key cannot be used.
            BackendError: the address is malformed.
        """
        base = _choose_base(url, ("PHOENIX_COLLECTOR_ENDPOINT",), "http://localhost:6006")
        # The variable may hold the address for exporters of traces, of which the API is the root.
        base = base.removesuffix("/v1/traces")
        key = "PHOENIX_API_KEY"
        address = EndpointAddress(self.name, "annotations", base, self.limits, key, {}, {})
        self.http = SecretHttp(address, "Authorization", "Bearer ")

    def build_requests(
        self, target: TraceTarget, findings: Sequence[tuple[IntegrationFinding, str]]
    ) -> Sequence[Request]:
        """Build one request for all findings; Phoenix accepts it completely or not at all."""
        if target.span is None:
            raise UsageError("has no span id (expected the field root_span, as in a file of spans)")
        data = [
            {
                "span_id": target.span,
                "name": finding.metric,
                "annotator_kind": "CODE",
                "identifier": IDENTIFIER,
                "result": {
                    "score": finding.score,
                    # An annotation without a score always gets a label.
                    "label": finding.verdict or ("no score" if finding.score is None else None),
                    "explanation": comment,
                },
                "metadata": finding.details,
            }
            for finding, comment in findings
        ]
        return [("/v1/span_annotations?sync=true", {"data": data})]

    def listing(self, project: str, since: str, until: str) -> tuple[str, Mapping[str, str]]:
        """Return the path and the query that list the spans of a project."""
        query = {k: v for k, v in (("start_time", since), ("end_time", until)) if v}
        return f"/v1/projects/{quote(project, safe='')}/spans", query

    async def pages(
        self, endpoint: Endpoint, project: str, since: str, until: str
    ) -> AsyncIterator[list[dict[str, Any]]]:
        """Yield the pages with annotations at their spans."""
        path = f"/v1/projects/{quote(project, safe='')}/span_annotations"
        async for page in super().pages(endpoint, project, since, until):
            spans = {str(reach(span, "context.span_id")): span for span in page}
            for span in page:
                span.pop("annotations", None)
            for ids in _split_ids(spans):
                async for entries in self._read_list(endpoint, path, {"span_ids": ids}, PAGE):
                    for entry in entries:
                        if (known_as := str(entry.get("span_id"))) in spans:
                            annotations = spans[known_as].setdefault("annotations", [])
                            annotations.append(_keep_score(entry))
            yield page


STORES: Mapping[str, type[Langfuse] | type[Phoenix]] = {"langfuse": Langfuse, "phoenix": Phoenix}


def _split_ids(ids: Iterable[str]) -> Iterator[list[str]]:
    in_order = sorted(ids)
    for start in range(0, len(in_order), IDS_AT_ONCE):
        yield in_order[start : start + IDS_AT_ONCE]


def _keep_score(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {name: entry[name] for name in SCORE_FIELDS if name in entry}


def _choose_base(url: str, variables: Sequence[str], default: str) -> str:
    """Return the address of ``--url``, else of the first variable that is set, else the default."""
    variable = next((name for name in variables if os.environ.get(name)), "")
    return check_base(url or os.environ.get(variable) or default, "--url" if url else variable)


def _read_needed_key(variable: str) -> str:
    """Return a key from an environment variable; UsageError if it is not set or cannot be one."""
    if key := read_key(variable):
        return key
    raise UsageError(f"the environment variable {variable} is not set")
