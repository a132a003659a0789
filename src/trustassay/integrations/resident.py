"""A scorer for tools that bring one record at a time: opened by the first, closed at the end.

All integrations of a process with equal settings share one, so that models are loaded once and
what is in progress is scored together.
"""

from __future__ import annotations

import asyncio
import dataclasses
import os
import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple

import trustassay
from trustassay.integrations.findings import Finding, findings_of, refused
from trustassay.integrations.records import simple
from trustassay.metric import Metric
from trustassay.registry import metric_from_text
from trustassay.sample import Sample, SampleError
from trustassay.workflows.scorer import Assay, OpenScorer, ScorerClosedError, ThreadScorer

__all__ = ["ResidentScorer", "close_all"]


class _Open(NamedTuple):
    """An open scorer; ``door`` keeps the objects of its key, which are told apart by identity."""

    scorer: ThreadScorer
    door: OpenScorer


_opened: dict[Any, _Open] = {}
_lock = threading.Lock()
_ended = False


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
                return self._found(scorer.score(_plain(record)))
            except ScorerClosedError:
                self._drop(scorer)
            except (SampleError, RecursionError) as error:
                return self._refused(error)

    async def ascore(self, record: Sample | Mapping[str, Any]) -> list[Finding]:
        """Do as :meth:`score` in an event loop of asyncio, which is not blocked."""
        while True:
            scorer = await asyncio.to_thread(self._open)
            try:
                return self._found(await asyncio.wrap_future(scorer.submit(_plain(record))))
            except ScorerClosedError:
                self._drop(scorer)
            except (SampleError, RecursionError) as error:
                return self._refused(error)

    def close(self) -> None:
        """Finish what was begun, and write the results of a folder (``out``).

        All integrations with these settings share the scorer; a later record opens it again.
        """
        with _lock:
            found = _opened.pop(self._key, None)
        if found is not None:
            found.scorer.close()

    def _open(self) -> ThreadScorer:
        with _lock:
            if _ended:
                raise ScorerClosedError("the process is ending; nothing more is scored")
            if self._key not in _opened:
                _opened[self._key] = _Open(self._door.__enter__(), self._door)
            return _opened[self._key].scorer

    def _drop(self, scorer: ThreadScorer) -> None:
        """Forget a scorer that was closed after it had been handed out."""
        with _lock:
            if self._key in _opened and _opened[self._key].scorer is scorer:
                del _opened[self._key]

    def _found(self, assay: Assay) -> list[Finding]:
        return findings_of(self.metrics, assay)

    def _refused(self, error: Exception) -> list[Finding]:
        deep = isinstance(error, RecursionError)
        return refused(self.metrics, "record: is nested too deeply" if deep else str(error))


def _plain(record: Sample | Mapping[str, Any]) -> Any:
    return record if isinstance(record, Sample) else simple(record)


def close_all() -> None:
    """Close every scorer of the process: what was begun is finished, folders are written."""
    with _lock:
        found = list(_opened.values())
        _opened.clear()
    with ExitStack() as closing:  # one that cannot write its folder leaves no other open
        for one in found:
            closing.callback(one.scorer.close)


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


def _end() -> None:
    global _ended  # noqa: PLW0603 - the process ends once
    _ended = True
    close_all()


def _begin_anew() -> None:
    """In a forked process: the threads of the scorers are not there."""
    global _lock  # noqa: PLW0603
    _lock = threading.Lock()
    _opened.clear()


# `atexit` comes too late: no thread can be started any more, and closing needs some.
threading._register_atexit(_end)  # type: ignore[attr-defined]
os.register_at_fork(after_in_child=_begin_anew)
