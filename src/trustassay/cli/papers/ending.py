"""The last lines and exit status of commands that work on every sample of a file."""

from __future__ import annotations

from collections.abc import Mapping

import typer

from trustassay.cli.common import FAILURES_SHOWN
from trustassay.report.terminal import complain, one_line


def end_if_stopped(stopped: str | None) -> None:
    """If work on a file was stopped, say how to continue it and end with status 1."""
    if stopped is not None:
        complain(f"stopped: {stopped}; run the same command again to continue")
        raise typer.Exit(1)


def show_failed(failed: Mapping[str, str], written: int) -> None:
    """Show the first samples that have no record; end with status 1 if no record was written."""
    for sample_id, error in list(failed.items())[:FAILURES_SHOWN]:
        complain(one_line(f"  {sample_id}: {error}"))
    if failed:
        complain(f"failed: {len(failed):,}")
        # Some failures are counted and shown; a file without any record is an error.
        if not written:
            raise typer.Exit(1)
