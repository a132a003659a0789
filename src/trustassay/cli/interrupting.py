"""Handle Ctrl-C from the first moment of the process to its last.

1. Before a command starts, an interruption ends the process at once.
2. While a command works, it raises ``KeyboardInterrupt`` as usual.
3. Afterwards it ends the process at once again.

This module imports nothing that takes time, since it must be ready before everything else.
"""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import NoReturn

INTERRUPTED = 130
"""The exit status that shells expect: 128 plus the number of SIGINT."""


def begin() -> None:
    """Let an interruption end the process quietly, unless the process ignores interruptions."""
    # Under ``nohup`` or as a background job the signal is ignored; that must stay so.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)


@contextmanager
def at_work() -> Iterator[None]:
    """Let an interruption raise ``KeyboardInterrupt``, so that what is in progress is stored."""
    # Another program that imports this one has its own handler, or ``begin`` was not called.
    if signal.getsignal(signal.SIGINT) is not _leave:
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        # Nothing is left to store: a second Ctrl-C need not wait for the end of the program.
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def end(status: object) -> None:
    """End an interrupted process without waiting for its threads; else do nothing."""
    if status == INTERRUPTED:
        # A closed pipe, or a stream that is closed already.
        with suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(INTERRUPTED)


def _leave(_signal: int, _frame: FrameType | None) -> NoReturn:
    with suppress(OSError):
        # Not ``print``: the handler may run while standard error is in use.
        os.write(2, b"interrupted; nothing was started\n")
    os._exit(INTERRUPTED)
