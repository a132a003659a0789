"""How sure the judge of a run is, in the terminal."""

from __future__ import annotations

import shutil
import textwrap
from pathlib import Path

from trustassay.cli.streams import one_line, say

__all__ = ["show_sureness"]


def show_sureness(run: Path) -> None:
    """Say how far the entailer of a run agrees with people, and where more is written of it.

    A run without an entailer has nothing to say.
    """
    from trustassay.runs.folder import RunFolder
    from trustassay.runs.report import judge_of

    folder = RunFolder(run)
    settings = folder.read_run()
    told = judge_of(settings, folder.read_summary()) if settings else None
    if told is None:
        return
    words = f"how sure is this judge? {told.sentence} See {told.page}. {told.way_out}"
    width = shutil.get_terminal_size().columns
    for line in textwrap.wrap(one_line(words), width, break_long_words=False):
        say(line)
