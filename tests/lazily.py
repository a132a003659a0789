"""Large libraries that are imported when a test first needs them, and not to collect the tests."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

import pytest


class Lazily:
    """Stands for a module; its first use imports it."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("_"):  # pytest looks for its own marks on whatever stands in a file
            raise AttributeError(attribute)
        return getattr(importlib.import_module(self._name), attribute)


def needed(name: str, reason: str = "") -> Any:
    """Return a library, not imported yet; skip the test module where it is not installed."""
    package, *parts = name.split(".")
    found = importlib.util.find_spec(package)
    if found and found.origin is None and parts:  # a namespace that several libraries share
        found = importlib.util.find_spec(f"{package}.{parts[0]}")
    if found is None:
        pytest.skip(reason or f"{name} is not installed", allow_module_level=True)
    return Lazily(name)
