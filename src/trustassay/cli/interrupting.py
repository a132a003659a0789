"""Ctrl-C from the first moment of the process to its last; imports nothing that takes time.

While nothing has begun, an interruption ends the process at once. While a command is at work it
raises ``KeyboardInterrupt`` as usual. After that it ends the process at once again.
"""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import NoReturn

INTERRUPTED = 130


def begin() -> None:
    """Let an interruption end the process quietly, unless the process ignores them."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)


@contextmanager
def at_work() -> Iterator[None]:
    """Let an interruption raise ``KeyboardInterrupt``, so that what is in progress is stored."""
    if signal.getsignal(signal.SIGINT) is not _leave:
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def end(status: object) -> None:
    """Leave an interrupted process without waiting for its threads; else do nothing."""
    if status == INTERRUPTED:
        with suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(INTERRUPTED)


def _leave(_signal: int, _frame: FrameType | None) -> NoReturn:
    with suppress(OSError):
        os.write(2, b"interrupted; nothing was started\n")
    os._exit(INTERRUPTED)
