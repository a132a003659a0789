"""A plain Python function as a backend."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from trustassay.capabilities import BackendError, BatchLimits, Probabilities

__all__ = ["FunctionEntailer", "imported"]


class FunctionEntailer:
    """Wraps ``function(premise, hypothesis)`` as an entailer; it is called one pair at a time.

    The function returns a truth value, a probability of entailment, or the three probabilities
    of entailment, neutral and contradiction.
    """

    limits = BatchLimits(items=256, tokens=None)

    def __init__(self, function: Callable[[str, str], Any], name: str | None = None) -> None:
        if inspect.iscoroutinefunction(function):
            raise BackendError("an entailer function is a plain function, not a coroutine")
        self._function = function
        kind = function if hasattr(function, "__qualname__") else type(function)
        self.name = name or f"function:{kind.__module__}.{kind.__qualname__}"

    def scores(self, pairs: Sequence[tuple[str, str]]) -> Probabilities:
        """Return shape (n, 3): entailment, neutral, contradiction of n (premise, hypothesis).

        Raises:
            BackendError: the function returned something else than it should.
        """
        return np.array([self._row(self._function(*pair)) for pair in pairs]).reshape(-1, 3)

    def _row(self, value: Any) -> tuple[float, float, float]:
        try:
            if np.ndim(value) == 0:
                entailment = float(value)
                return entailment, 1 - entailment, 0.0
            entailment, neutral, contradiction = map(float, value)
        except (TypeError, ValueError):
            raise BackendError(
                f"{self.name} returned {value!r:.60}; expected a truth value, a probability, or "
                "three probabilities"
            ) from None
        return entailment, neutral, contradiction


def imported(path: str) -> Any:
    """Return the object that ``package.module:name`` names.

    Raises:
        BackendError: there is none.
    """
    module, _, name = path.partition(":")
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError):
        raise BackendError(f"python:{path}: expected python:MODULE:FUNCTION, found none") from None
