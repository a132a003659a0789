"""The settings that a folder stores, and the check that it is reopened with the same."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from trustassay.errors import RunFolderError

__all__ = ["as_stored", "check_settings", "setting_changes"]


def as_stored(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``settings`` as they will be read back from ``run.json``."""
    stored: dict[str, Any] = json.loads(json.dumps(settings, default=str))
    return stored


def check_settings(
    folder: Path, before: Mapping[str, Any], now: Mapping[str, Any], what: str = "another run"
) -> None:
    """Check that a folder is reopened with the settings that it holds.

    Args:
        before: what is stored. now: what is asked for, as it would be stored.
        what: what the folder holds if they differ.

    Raises:
        RunFolderError: they differ; the message names each setting, its old and its new value.
    """
    if changes := list(setting_changes(before, now)):
        raise RunFolderError(
            f"{folder}: holds {what}; choose another folder, or use the same settings. "
            "Different: " + "; ".join(changes)
        )


def setting_changes(
    before: Mapping[str, Any], now: Mapping[str, Any], at: str = ""
) -> Iterator[str]:
    """Yield what differs between the settings of a stored run and those asked for."""
    for key in {**before, **now}:
        old, value = before.get(key), now.get(key)
        if isinstance(value, Mapping) and isinstance(old, Mapping):
            yield from setting_changes(old, value, f"{at}{key}.")
        elif old != value:
            yield f"{at}{key} was {old!r}, now {value!r}"
