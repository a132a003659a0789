"""Sending the scores of a finished run to the traces that they are about, and reading traces.

Each answer that was sent has a line in a file of the run's folder. So a call that was stopped goes
on where it was, and another call sends only what has changed.
"""

import asyncio
import hashlib
import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from trustassay.backends.http import RefusalError
from trustassay.calls.retry import Endpoint
from trustassay.core.files import Appender, cut_unfinished, open_atomic
from trustassay.core.metric import MetricInfo
from trustassay.errors import CallError, RunFolderError, UsageError
from trustassay.input.journal import read_complete_lines
from trustassay.live.integrations.resident import IntegrationFinding, finding_of
from trustassay.live.trace_stores import MAX_COMMENT_CHARACTERS, Request, TraceStore, TraceTarget
from trustassay.runs.counts import read_rows
from trustassay.runs.folder import RunFolder, load_metrics
from trustassay.text.numbers import amount

JOURNAL = "pushed.jsonl"
"""The file of what was sent, in the run's folder."""
AT_A_TIME = 256
"""Answers whose requests are in memory together."""
LISTED = 20
"""The most refusals that are reported one by one."""


@dataclass
class PushResult:
    """The outcome of sending a run's scores."""

    sent: int = 0
    """Answers whose scores were sent."""
    unchanged: int = 0
    """Answers whose scores an earlier call has sent."""
    unscored: int = 0
    """Scores that failed, and are not sent."""
    refusals: int = 0
    """Answers that the store refused."""
    refused: list[str] = field(default_factory=list)
    """The first of these, with the reasons."""
    stopped: str = ""
    """Why the rest was not sent; empty if all was."""


class _PushItem(NamedTuple):
    """The requests for one answer."""

    sample: str
    """The id of its sample."""
    requests: Sequence[Request]
    """The requests that send its scores."""
    digest: str
    """Changes with the requests."""


class _PushJournal:
    """The record of what was sent to one store, in a file that grows by one line per answer."""

    def __init__(self, path: Path, address: str) -> None:
        self._address, self._known = address, dict[str, str]()
        # A crash may have left half a line: it is cut, and its answer is sent again.
        cut_unfinished(path)
        for _, content, _ in read_complete_lines(path) if path.exists() else ():
            if content.get("to") == address:
                self._known[str(content.get("id"))] = str(content.get("sha256"))
        self._file = Appender(path)
        self.close = self._file.close

    def has(self, item: _PushItem) -> bool:
        """Whether an item was sent with this content."""
        return self._known.get(item.sample) == item.digest

    def note(self, item: _PushItem) -> None:
        """Record that an item was sent."""
        line = {"to": self._address, "id": item.sample, "sha256": item.digest}
        self._file.append(json.dumps(line).encode() + b"\n")


async def push(
    folder: RunFolder, store: TraceStore, report_url: str = "", field: str = ""
) -> PushResult:
    """Send the scores of a run to ``store``, and return the outcome.

    Args:
        folder: the folder of the run.
        store: where the scores go.
        report_url: where the run's report can be seen; each comment links to its answer there.
        field: the field of the samples with the id of the trace, if it is not one of the usual.

    Raises:
        RunFolderError: the folder holds no finished run, a metric is not installed, or another
            process works there.
        UsageError: an answer names no trace; nothing was sent.
    """
    run, _ = folder.read_finished()
    metrics = list(load_metrics(run).values())
    if len(metrics) < len(run["metrics"]):
        lost = ", ".join(sorted(run["metrics"].keys() - {metric.name for metric in metrics}))
        raise RunFolderError(f"{folder.path}: was scored with {lost}, which is not installed here")
    result = PushResult()

    def items(*, counting: bool) -> Iterator[_PushItem]:
        for place, sample, assessments in read_rows(
            folder, [MetricInfo.of(metric) for metric in metrics]
        ):
            pairs = zip(metrics, assessments, strict=True)
            findings = [finding_of(metric, assessment) for metric, assessment in pairs]
            scored = [finding for finding in findings if finding.error is None]
            # The items are made twice (see below), and counted only the second time.
            result.unscored += (len(findings) - len(scored)) * counting
            with_comments = [
                (finding, _build_comment(finding, report_url, sample["id"])) for finding in scored
            ]
            requests = _build_requests(folder, place.number, sample, with_comments, store, field)
            if scored:
                yield _PushItem(sample["id"], requests, _hash_requests(requests))

    with folder.claim(), closing(_PushJournal(folder.path / JOURNAL, store.address)) as sent:
        for _ in items(counting=False):
            pass  # an answer without a trace raises here, before anything is sent
        endpoint = Endpoint(store.limits, name=store.name)
        remaining_items = items(counting=True)
        try:
            while not result.stopped and (part := list(islice(remaining_items, AT_A_TIME))):
                fresh = [item for item in part if not sent.has(item)]
                result.unchanged += len(part) - len(fresh)
                # The endpoint bounds the requests in progress; a batch only bounds the memory.
                await asyncio.gather(
                    *(_send(item, store, endpoint, sent, result) for item in fresh)
                )
        finally:
            await store.http.close()
    return result


async def _send(
    item: _PushItem, store: TraceStore, endpoint: Endpoint, sent: _PushJournal, result: PushResult
) -> None:
    """Send the requests of one answer, and add the outcome to ``result``."""
    try:
        for path, body in item.requests:
            await endpoint.call(lambda path=path, body=body: store.http.post(path, body))  # type: ignore[misc]
    # refused: this answer alone; any other error would meet the other answers as well
    except RefusalError as error:
        result.refusals += 1
        if len(result.refused) < LISTED:
            result.refused.append(f"{item.sample}: {error}")
    except CallError as error:
        result.stopped = result.stopped or str(error)
    else:
        sent.note(item)
        result.sent += 1


def _build_comment(finding: IntegrationFinding, report_url: str, sample_id: str) -> str:
    """Return the comment of a finding, and below it a link to the evidence."""
    link = f"\n{report_url}#id={quote(sample_id, safe='', errors='replace')}" if report_url else ""
    # A long comment is cut, never the link.
    return finding.comment[: MAX_COMMENT_CHARACTERS - len(link)] + link


def _build_requests(
    folder: RunFolder,
    number: int,
    sample: dict[str, Any],
    with_comments: Sequence[tuple[IntegrationFinding, str]],
    store: TraceStore,
    trace_field: str,
) -> Sequence[Request]:
    # The line of the sample, for the messages below.
    where = f"{folder.samples_path}:{number + 1}: {sample['id']}"
    target = TraceTarget.of(sample, trace_field)
    if target is None:
        expected = (
            f"a field {trace_field}"
            if trace_field
            else "a trace, or a field named by --trace-field"
        )
        raise UsageError(f"{where}: has no trace id (expected {expected})")
    try:
        return store.build_requests(target, with_comments)
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from None


def _hash_requests(requests: Sequence[Request]) -> str:
    return hashlib.sha256(json.dumps(requests, sort_keys=True).encode()).hexdigest()


async def pull(store: TraceStore, path: Path, project: str, since: str, until: str) -> int:
    """Write the spans of a period to a file, each with its scores; return how many there are.

    Args:
        store: the store.
        path: the file.
        project: the project; only Phoenix needs it.
        since, until: ISO 8601; empty for no bound.

    Raises:
        CallError: they cannot be read. The file is as it was; another one has the spans that were
            read before.
        OSError: it cannot be written.
    """
    endpoint = Endpoint(store.limits, name=store.name)
    count = 0
    try:
        # The file appears only when it is complete.
        with open_atomic(path, private=False) as file:
            try:
                async for page in store.pages(endpoint, project, since, until):
                    count += len(page)
                    file.write(b"".join(json.dumps(span).encode() + b"\n" for span in page))
            except CallError as error:
                if not count:
                    raise
                # Not .jsonl, so that no pattern of files takes it for a complete one.
                partial = path.with_name(f"{path.name}.partial")
                file.seek(0)
                with open_atomic(partial, private=False) as partial_file:
                    shutil.copyfileobj(file, partial_file)
                message = f"{error}\n{amount(count, 'span')} read before that: {partial}"
                raise CallError(message, error.kind) from None
    finally:
        await store.http.close()
    return count
