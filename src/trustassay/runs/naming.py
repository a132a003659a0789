"""Default names of run folders."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

from trustassay.data.standard_input import is_standard_input, kept_input

__all__ = ["default_folder"]

HOME = "trustassay-runs"
STEM = 60
"""Characters of the input's name that are kept; a file system takes 255 bytes."""


def default_folder(source: Path, **settings: Any) -> Path:
    """Return the folder for these settings and this state of the input.

    The same command finds its folder again; a file that was changed since gets a new one. What
    comes on standard input is known by its content.
    """
    if piped := is_standard_input(source):
        state = [kept_input().digest]
    else:
        state = [str(source.resolve())]
        if source.exists():
            stat = source.stat()
            state += [str(stat.st_size), str(stat.st_mtime_ns)]
    content = json.dumps([state, settings], sort_keys=True)
    digest = hashlib.blake2b(content.encode(), digest_size=4).hexdigest()
    name = "stdin" if piped else source.name
    stem = re.sub(r"[^\w.-]+", "_", name.split(".")[0])[:STEM] or "run"
    return Path(HOME) / f"{stem}-{digest}"
