"""Faults of the program itself: one line, a file with the traceback, and an exit status."""

from __future__ import annotations

from typing import NoReturn

import typer

from trustassay.show.terminal import INTERNAL, complain, one_line
from trustassay.tracebacks import keep_internal_error, place_of

__all__ = ["internal_error"]


def internal_error(error: Exception) -> NoReturn:
    """Say that the program is at fault and where its traceback is, and exit with status 70.

    The traceback is in the folder of the run that this process worked on, if there is one.
    """
    from trustassay.runs.folder import RunFolder

    kept = keep_internal_error(RunFolder.last_locked, error)
    where = f"; the traceback is in {kept}" if kept else "; its traceback could not be written"
    told = f"internal error, no fault of the input: {type(error).__name__} at {place_of(error)}"
    complain(one_line(f"trustassay: {told}{where}"))
    raise typer.Exit(INTERNAL)
