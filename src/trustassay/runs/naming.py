"""Default names of run folders."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from trustassay.data.source_files import is_standard_input, kept_input

__all__ = ["default_folder"]

HOME = "trustassay-runs"
STEM = 60
"""Characters of the input's name that are kept; a file system takes 255 bytes."""


def default_folder(source: Path | Sequence[Path], **settings: Any) -> Path:
    """Return the folder for these settings and this state of the input, one file or several.

    The same command finds its folder again; a file that was changed since gets a new one. What
    comes on standard input is known by its content.
    """
    paths = [source] if isinstance(source, Path) else source
    state = [part for path in paths for part in _state(path)]
    content = json.dumps([state, settings], sort_keys=True)
    digest = hashlib.blake2b(content.encode(), digest_size=4).hexdigest()
    names = ["stdin" if is_standard_input(path) else path.name.split(".")[0] for path in paths]
    stem = re.sub(r"[^\w.-]+", "_", "-".join(names))[:STEM] or "run"
    return Path(HOME) / f"{stem}-{digest}"


def _state(path: Path) -> list[str]:
    if is_standard_input(path):
        return [kept_input().digest]
    if not path.exists():
        return [str(path.resolve())]
    stat = path.stat()
    return [str(path.resolve()), str(stat.st_size), str(stat.st_mtime_ns)]
