"""The scores of a finished run, sent to the traces that they are about.

What was sent is kept in the run's folder, a line an answer, so that a stopped call goes on where it
was and another call sends only what changed.
"""

import asyncio
import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from trustassay.backends.http import RefusalError
from trustassay.calls.retry import Endpoint
from trustassay.data.journal import whole_lines
from trustassay.errors import CallError, RunFolderError, UsageError
from trustassay.files import Appender, cut_unfinished, whole
from trustassay.metric import MetricInfo
from trustassay.runs.counts import rows
from trustassay.runs.folder import RunFolder, metrics_of
from trustassay_serve.integrations.resident import Finding, finding_of
from trustassay_serve.trace_stores import LONGEST_COMMENT, Request, Target, TraceStore

JOURNAL = "pushed.jsonl"
AT_A_TIME = 256
"""Answers whose requests are held at once."""
LISTED = 20
"""Refusals that are listed each."""


@dataclass
class Pushed:
    """What became of a run's answers.

    sent, unchanged: how many. unscored: how many scores failed, and are not sent. refused: the
    first answers that the store does not take, and why, of ``refusals``. stopped: why the rest was
    not sent, empty if all was.
    """

    sent: int = 0
    unchanged: int = 0
    unscored: int = 0
    refusals: int = 0
    refused: list[str] = field(default_factory=list)
    stopped: str = ""


class _Item(NamedTuple):
    sample: str
    requests: Sequence[Request]
    digest: str


class _Sent:
    """What was sent to one store, in a file that grows by a line an answer."""

    def __init__(self, path: Path, address: str) -> None:
        self._address, self._known = address, dict[str, str]()
        cut_unfinished(path)
        for _, content, _ in whole_lines(path) if path.exists() else ():
            if content.get("to") == address:
                self._known[str(content.get("id"))] = str(content.get("sha256"))
        self._file = Appender(path)
        self.close = self._file.close

    def has(self, item: _Item) -> bool:
        """Whether it was sent as it is."""
        return self._known.get(item.sample) == item.digest

    def note(self, item: _Item) -> None:
        """Keep that it was sent."""
        line = {"to": self._address, "id": item.sample, "sha256": item.digest}
        self._file.append(json.dumps(line).encode() + b"\n")


async def push(
    folder: RunFolder, store: TraceStore, report_url: str = "", field: str = ""
) -> Pushed:
    """Send the scores of a run to ``store``, and return what became of them.

    Args:
        report_url: where the run's report can be seen; each comment links to its answer there.
        field: the samples' field with the id of the trace, if it is not found by itself.

    Raises:
        RunFolderError: the folder holds no finished run, a metric is not installed, or another
            process works there.
        UsageError: an answer names no trace; nothing was sent.
    """
    run, _ = folder.read_finished()
    metrics = list(metrics_of(run).values())
    if len(metrics) < len(run["metrics"]):
        lost = ", ".join(sorted(run["metrics"].keys() - {one.name for one in metrics}))
        raise RunFolderError(f"{folder.path}: scored with {lost}, which is not installed here")
    result = Pushed()

    def items(*, counting: bool) -> Iterator[_Item]:
        for place, sample, assessments in rows(folder, [MetricInfo.of(one) for one in metrics]):
            pairs = zip(metrics, assessments, strict=True)
            found = [finding_of(metric, one) for metric, one in pairs]
            scored = [one for one in found if one.error is None]
            result.unscored += (len(found) - len(scored)) * counting
            told = [(one, _comment(one, report_url, sample["id"])) for one in scored]
            requests = _requests(folder, place.number, sample, told, store, field)
            if scored:
                yield _Item(sample["id"], requests, _digest(requests))

    with folder.claimed(), closing(_Sent(folder.path / JOURNAL, store.address)) as sent:
        for _ in items(counting=False):
            pass  # what names no trace is told before anything is sent
        endpoint = Endpoint(store.limits, name=store.name)
        left = items(counting=True)
        try:
            while not result.stopped and (part := list(islice(left, AT_A_TIME))):
                fresh = [one for one in part if not sent.has(one)]
                result.unchanged += len(part) - len(fresh)
                await asyncio.gather(*(_send(one, store, endpoint, sent, result) for one in fresh))
        finally:
            await store.http.close()
    return result


async def _send(
    item: _Item, store: TraceStore, endpoint: Endpoint, sent: _Sent, result: Pushed
) -> None:
    try:
        for path, body in item.requests:
            await endpoint.call(lambda path=path, body=body: store.http.post(path, body))  # type: ignore[misc]
    except RefusalError as error:
        result.refusals += 1
        if len(result.refused) < LISTED:
            result.refused.append(f"{item.sample}: {error}")
    except CallError as error:
        result.stopped = result.stopped or str(error)
    else:
        sent.note(item)
        result.sent += 1


def _comment(found: Finding, report_url: str, sample_id: str) -> str:
    """Return the reason, and below it where the evidence can be seen."""
    link = f"\n{report_url}#id={quote(sample_id, safe='', errors='replace')}" if report_url else ""
    return found.comment[: LONGEST_COMMENT - len(link)] + link


def _requests(
    folder: RunFolder,
    number: int,
    sample: dict[str, Any],
    told: Sequence[tuple[Finding, str]],
    store: TraceStore,
    field: str,
) -> Sequence[Request]:
    where = f"{folder.samples_path}:{number + 1}: {sample['id']}"
    target = Target.of(sample, field)
    if target is None:
        expected = f"a field {field}" if field else "a trace, or a field named by --trace-field"
        raise UsageError(f"{where}: names no trace (expected {expected})")
    try:
        return store.requests(target, told)
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from None


def _digest(requests: Sequence[Request]) -> str:
    return hashlib.sha256(json.dumps(requests, sort_keys=True).encode()).hexdigest()


async def pull(store: TraceStore, path: Path, project: str, since: str, until: str) -> int:
    """Write the spans that a store has of a time, a line each; return how many there are.

    Raises:
        CallError: they cannot be read. The file is as it was.
        OSError: it cannot be written.
    """
    endpoint = Endpoint(store.limits, name=store.name)
    count = 0
    try:
        with whole(path) as file:
            async for page in store.pages(endpoint, project, since, until):
                count += len(page)
                file.write(b"".join(json.dumps(one).encode() + b"\n" for one in page))
    finally:
        await store.http.close()
    return count
