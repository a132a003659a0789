"""Scorers that stay open for the whole process, one for each key, so that models load once."""

import os
import threading
from collections.abc import Hashable
from contextlib import ExitStack

from trustassay.live.scorer import OpenScorer, ScorerClosedError, ThreadScorer

_scorers_by_key: dict[Hashable, tuple[ThreadScorer, OpenScorer]] = {}
"""Open scorers by key. The opener is kept too: keys may contain the id() of objects that it holds,
and an id is only unique while its object is alive."""
_lock = threading.Lock()
_is_ending = False


def get_open_scorer(key: Hashable, door: OpenScorer) -> ThreadScorer:
    """Return the scorer of a key; the first call opens it.

    Raises:
        ValueError, BackendError, RunFolderError: it cannot be opened.
        ScorerClosedError: the process is ending.
    """
    with _lock:
        if _is_ending:
            raise ScorerClosedError("the process is ending, so no more records are scored")
        if key not in _scorers_by_key:
            _scorers_by_key[key] = door.__enter__(), door
        return _scorers_by_key[key][0]


def forget(key: Hashable, scorer: ThreadScorer) -> None:
    """Forget a scorer, so that the next :func:`get_open_scorer` opens another one.

    Does nothing if another thread has replaced it already.
    """
    with _lock:
        if key in _scorers_by_key and _scorers_by_key[key][0] is scorer:
            del _scorers_by_key[key]


def close(key: Hashable) -> None:
    """Close the scorer of a key when its samples are finished; a later call opens it again."""
    with _lock:
        # Closing can take long, so it happens outside the lock.
        result = _scorers_by_key.pop(key, None)
    if result is not None:
        result[0].close()


def close_all() -> None:
    """Close every scorer of the process: finish samples in progress and write folders."""
    with _lock:
        result = list(_scorers_by_key.values())
        _scorers_by_key.clear()
    # ExitStack runs every callback, even if a scorer fails to write its folder.
    with ExitStack() as closing:
        for scorer, _ in result:
            closing.callback(scorer.close)


def _close_at_exit() -> None:
    global _is_ending  # noqa: PLW0603 - the process ends once
    _is_ending = True
    close_all()


def _reset_after_fork() -> None:
    """Reset the state in a forked process, which has none of the scorers' threads."""
    global _lock  # noqa: PLW0603
    _lock = threading.Lock()
    _scorers_by_key.clear()


# `atexit` comes too late: no thread can be started any more, and closing needs some.
threading._register_atexit(_close_at_exit)  # type: ignore[attr-defined]
os.register_at_fork(after_in_child=_reset_after_fork)
