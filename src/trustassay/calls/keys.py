"""Checks for missing keys: a service's own address answers nothing without a key."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from trustassay.calls.store import CACHE_FILE, CallStore
from trustassay.errors import BackendError

__all__ = ["check_keys", "has_replies", "shared_file"]


def check_keys(backends: Iterable[Any], stores: Iterable[Path | None]) -> None:
    """Raise :class:`BackendError` if a backend needs a key that is not set.

    A backend with replies in one of the files ``stores`` may need none, since all replies may be
    there.
    """
    paths = list(stores)
    for backend in backends:
        missing = getattr(backend, "missing_key", None)
        if missing and not any(has_replies(path, backend.name) for path in paths):
            raise BackendError(missing)


def shared_file(cache: Path | None) -> Path | None:
    """Return the file in the folder that runs share."""
    return cache and cache / CACHE_FILE


def has_replies(path: Path | None, name: str, capability: str | None = None) -> bool:
    """Return whether a file of calls holds some of a backend, of a capability or of any."""
    if path is None or not path.exists():
        return False
    store = CallStore(path)
    try:
        return any(
            backend == name and capability in (None, stored) for stored, backend in store.counts()
        )
    finally:
        store.close(alone=False)
