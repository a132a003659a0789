"""Scorers that stay open in a process, one a key, so that models are loaded once."""

import os
import threading
from collections.abc import Hashable
from contextlib import ExitStack

from trustassay.workflows.scorer import OpenScorer, ScorerClosedError, ThreadScorer

_opened: dict[Hashable, tuple[ThreadScorer, OpenScorer]] = {}
"""Open scorers by key; the second one keeps objects that are told apart by identity."""
_lock = threading.Lock()
_ended = False


def opened(key: Hashable, door: OpenScorer) -> ThreadScorer:
    """Return the scorer of a key; the first call opens it.

    Raises:
        ValueError, BackendError, RunFolderError: it cannot be opened.
        ScorerClosedError: the process is ending.
    """
    with _lock:
        if _ended:
            raise ScorerClosedError("the process is ending; nothing more is scored")
        if key not in _opened:
            _opened[key] = door.__enter__(), door
        return _opened[key][0]


def forget(key: Hashable, scorer: ThreadScorer) -> None:
    """Let the next call of :func:`opened` open another one, unless it was done already."""
    with _lock:
        if key in _opened and _opened[key][0] is scorer:
            del _opened[key]


def close(key: Hashable) -> None:
    """Finish what the scorer of a key began, and close it; a later call opens it again."""
    with _lock:
        result = _opened.pop(key, None)
    if result is not None:
        result[0].close()


def close_all() -> None:
    """Close every scorer of the process: what was begun is finished, folders are written."""
    with _lock:
        result = list(_opened.values())
        _opened.clear()
    with ExitStack() as closing:  # one that cannot write its folder leaves no other open
        for scorer, _ in result:
            closing.callback(scorer.close)


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
