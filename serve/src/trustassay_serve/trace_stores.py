"""Langfuse and Phoenix: their addresses and keys, traces read from them, scores sent to them.

Langfuse keeps one score a (id, name, day), so ids are made of the trace and the metric, and the
score's time is that of the trace: what is sent again replaces what was sent before. Phoenix keeps
one annotation a (span, name, identifier).
"""

import base64
import os
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, ClassVar, NamedTuple
from urllib.parse import quote, urlencode

from trustassay.backends.http import Address, HttpEndpoint, RefusalError, checked_base
from trustassay.calls.retry import Endpoint
from trustassay.capabilities import EndpointLimits
from trustassay.errors import CallError, UsageError
from trustassay.tracebacks import hide
from trustassay_serve.integrations.resident import Finding

AT_ONCE = 8
"""Requests in progress."""
PAGE = 500
"""Observations, or spans, of one request."""
IDENTIFIER = "trustassay"
"""Who annotated, as Phoenix keeps it: another annotation of the same name stays."""
LONGEST_COMMENT = 10_000
TRACES = ("trace_id", "traceId", "context.trace_id")
"""Fields that name the trace of a record which is one of its observations."""
TIMES = ("started", "timestamp", "startTime", "start_time", "createdAt")

Request = tuple[str, dict[str, Any]]
"""A path, and the body that is posted there."""


class Target(NamedTuple):
    """What is scored: a trace, or one observation of it if it is not ``whole``.

    span: the observation, or the root of a whole trace, if it is known. time: when it began.
    """

    trace: str
    span: str | None
    whole: bool
    time: str | None

    @classmethod
    def of(cls, sample: Mapping[str, Any], field: str = "") -> "Target | None":
        """Return the target of a stored sample; ``None`` where nothing names a trace.

        ``field`` holds the trace's id, if it is not one of the usual ones.
        """
        known = {**(sample.get("metadata") or {}), **sample}
        named = [known[name] for name in ((field,) if field else TRACES) if known.get(name)]
        own, root = str(sample["id"]), known.get("root_span") or None
        if not named and not field and "root_span" in known:
            named = [own]
        if not named:
            return None
        trace = str(named[0])
        whole = "root_span" in known or field != "" or own == trace
        times = filter(None, (_time(known.get(name)) for name in TIMES))
        return cls(trace, root if whole else own, whole, next(times, None))


def _time(value: Any) -> str | None:
    """Return a time as ISO 8601 with its offset: exporters write such texts, or nanoseconds."""
    text = str(value or "").strip()
    try:
        if text.isdecimal():
            return datetime.fromtimestamp(int(text) / 1e9, UTC).isoformat()
        result = datetime.fromisoformat(text)
    except (ValueError, OverflowError, OSError):
        return None
    return (result if result.tzinfo else result.replace(tzinfo=UTC)).isoformat()


class SecretHttp(HttpEndpoint):
    """An address that may refuse one trace, and whose secrets are in no message."""

    secrets: Sequence[str] = ()

    def _redacted(self, text: str) -> str:
        for secret in self.secrets:
            text = text.replace(secret, "[key]")
        return super()._redacted(text)

    async def _sent(
        self, method: str, path: str, data: bytes | None
    ) -> tuple[int, Mapping[str, str], str]:
        status, headers, text = await super()._sent(method, path, data)
        return status, headers, text.strip() or "{}"  # as collectors answer

    def _fault(self, status: int, text: str, headers: Mapping[str, str]) -> CallError:
        if status == 404 and "do not exist" in text:  # Phoenix, of a span
            return RefusalError(self._redacted(f"404: {text[:200]}"), text)
        return super()._fault(status, text, headers)


class TraceStore(ABC):
    """A place that keeps traces, reached over HTTP."""

    name: ClassVar[str]
    http: HttpEndpoint
    limits = EndpointLimits(concurrency=AT_ONCE, patience_s=60.0, timeout_s=60.0)

    @property
    def address(self) -> str:
        """Which one it is; holds no key."""
        return f"{self.name} {self.http.address.base}"

    @abstractmethod
    def requests(
        self, target: Target, findings: Sequence[tuple[Finding, str]]
    ) -> Sequence[Request]:
        """Return what sends findings, each with its comment; equal ones change nothing again.

        Raises:
            UsageError: the store cannot have scores of such a target.
        """

    @abstractmethod
    def listing(self, project: str, since: str, until: str) -> tuple[str, Mapping[str, str]]:
        """Return the path and the query of the spans that began within a time."""

    async def pages(
        self, endpoint: Endpoint, project: str, since: str, until: str
    ) -> AsyncIterator[list[dict[str, Any]]]:
        """Yield the spans that began within a time, as the store writes them.

        Raises:
            CallError: they cannot be read.
        """
        path, query = self.listing(project, since, until)
        cursor = ""
        while True:
            asked = urlencode({**query, "limit": PAGE, **({"cursor": cursor} if cursor else {})})
            reply = await endpoint.call(lambda asked=asked: self.http.get(f"{path}?{asked}"))  # type: ignore[misc]
            told = reply if isinstance(reply, dict) else {}
            if not isinstance(told.get("data"), list):
                message = f"{self.http.address.name}: the reply has no list `data`"
                raise CallError(message, "malformed")
            yield [one for one in told["data"] if isinstance(one, dict)]
            meta = told["meta"] if isinstance(told.get("meta"), dict) else {}
            last, cursor = cursor, str(told.get("next_cursor") or meta.get("cursor") or "")
            if not cursor or cursor == last:
                return


class Langfuse(TraceStore):
    """Scores of Langfuse, by ``POST /api/public/scores``."""

    name = "langfuse"

    def __init__(self, url: str) -> None:
        """Raises UsageError where a key is not set, BackendError where the address is none."""
        keys = [_key(name) for name in ("LANGFUSE_PUBLIC_KEY", "LANGFUSE_SECRET_KEY")]
        told = os.environ.get("LANGFUSE_BASE_URL") or os.environ.get("LANGFUSE_HOST")
        base = checked_base(url or told or "https://cloud.langfuse.com")
        token = base64.b64encode(":".join(keys).encode()).decode()
        hide(token)
        http = SecretHttp(Address(self.name, "scores", base, self.limits, "", {}, {}), "")
        http.secrets = [keys[1], token]
        self.http = http.with_headers(Authorization=f"Basic {token}")

    def requests(
        self, target: Target, findings: Sequence[tuple[Finding, str]]
    ) -> Sequence[Request]:
        """Return one request a score; a metric without one gives a category."""
        result: list[Request] = []
        observation = None if target.whole else target.span
        for found, comment in findings:
            name, value, kind = found.as_langfuse
            parts = [target.trace, observation, name]
            body = {
                "id": "-".join(one for one in parts if one),
                "traceId": target.trace,
                "observationId": observation,
                "name": name,
                "value": value,
                "dataType": kind,
                "comment": comment,
                "metadata": _about(found),
                "timestamp": target.time,
            }
            told = {key: field for key, field in body.items() if field is not None}
            result.append(("/api/public/scores", told))
        return result

    def listing(
        self,
        project: str,  # noqa: ARG002 - the keys are those of one
        since: str,
        until: str,
    ) -> tuple[str, Mapping[str, str]]:
        """Return where observations are."""
        query = {"fields": "core,basic,io,metadata,model,trace_context"}
        query |= {k: v for k, v in (("fromStartTime", since), ("toStartTime", until)) if v}
        return "/api/public/v2/observations", query


class Phoenix(TraceStore):
    """Annotations of Phoenix, by ``POST /v1/span_annotations``."""

    name = "phoenix"

    def __init__(self, url: str) -> None:
        """Raises UsageError where a key cannot be used, BackendError where the address is none."""
        told = os.environ.get("PHOENIX_COLLECTOR_ENDPOINT")
        base = checked_base(url or told or "http://localhost:6006").removesuffix("/v1/traces")
        key = "PHOENIX_API_KEY"
        address = Address(self.name, "annotations", base, self.limits, key, {}, {})
        self.http = SecretHttp(address, "Authorization", "Bearer ")

    def requests(
        self, target: Target, findings: Sequence[tuple[Finding, str]]
    ) -> Sequence[Request]:
        """Return one request, which Phoenix takes as a whole or not at all."""
        if target.span is None:
            raise UsageError("names no span (expected root_span, as of a file of spans)")
        data = [
            {
                "span_id": target.span,
                "name": found.metric,
                "annotator_kind": "CODE",
                "identifier": IDENTIFIER,
                "result": {
                    "score": found.score,
                    "label": found.verdict or ("no score" if found.score is None else None),
                    "explanation": comment,
                },
                "metadata": _about(found),
            }
            for found, comment in findings
        ]
        return [("/v1/span_annotations?sync=true", {"data": data})]

    def listing(self, project: str, since: str, until: str) -> tuple[str, Mapping[str, str]]:
        """Return where the spans of a project are."""
        query = {k: v for k, v in (("start_time", since), ("end_time", until)) if v}
        return f"/v1/projects/{quote(project, safe='')}/spans", query


STORES: Mapping[str, type[Langfuse] | type[Phoenix]] = {"langfuse": Langfuse, "phoenix": Phoenix}


def _key(name: str) -> str:
    """Return a key of the environment.

    Raises:
        UsageError: it is not set, or cannot be one.
    """
    key = os.environ.get(name, "").strip()
    hide(key)
    if not key:
        raise UsageError(f"the environment variable {name} is not set")
    if not (key.isascii() and key.isprintable()):
        raise UsageError(f"{name} is not a valid API key")
    return key


def _about(found: Finding) -> dict[str, Any]:
    return {name: value for name, value in found.about.items() if value not in (None, {})}
