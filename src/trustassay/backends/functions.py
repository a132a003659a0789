"""A plain Python function as a backend."""

from __future__ import annotations

import hashlib
import importlib
import inspect
import sys
from collections.abc import Callable, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from trustassay.capabilities import BatchLimits, Probabilities, Vectors
from trustassay.errors import BackendError, did_you_mean

__all__ = [
    "FunctionEmbedder",
    "FunctionEntailer",
    "FunctionSimilarity",
    "function_name",
    "imported",
    "of_type",
]

F = TypeVar("F", bound=Callable[..., Any])


class FunctionEntailer:
    """Wraps ``function(premise, hypothesis)`` as an entailer; it is called one pair at a time.

    The function returns a bool, a probability of entailment, or the three probabilities
    of entailment, neutral and contradiction.
    """

    limits = BatchLimits(items=32, tokens=None)

    def __init__(self, function: Callable[[str, str], Any], name: str | None = None) -> None:
        self._function = _plain(function, "an entailer")
        self.name = name or function_name(function)

    def scores(self, pairs: Sequence[tuple[str, str]]) -> Probabilities:
        """Return shape (n, 3): entailment, neutral, contradiction of n (premise, hypothesis).

        Raises:
            BackendError: the function returned a wrong type.
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
                f"{self.name} returned {value!r:.60}; expected a bool, a probability, or "
                "three probabilities"
            ) from None
        return entailment, neutral, contradiction


class FunctionEmbedder:
    """Wraps ``function(texts)``, which returns an array of shape (n, d), as an embedder."""

    def __init__(self, function: Callable[[list[str]], Any], name: str | None = None) -> None:
        self._function = _plain(function, "an embedder")
        self.name = name or function_name(function)

    def vectors(self, texts: Sequence[str]) -> Vectors:
        """Return unit vectors, shape (n, d).

        Raises:
            BackendError: the function returned something else than n vectors of finite numbers,
                or one of length 0.
        """
        words = f"{self.name}: expected {len(texts)} vectors of finite numbers"
        given = self._function(list(texts))
        try:
            found = np.asarray(given, dtype=float)
        except (TypeError, ValueError) as error:
            raise BackendError(f"{words}: {error}") from None
        if found.ndim != 2 or len(found) != len(texts) or not np.isfinite(found).all():
            raise BackendError(f"{words}, got an array of shape {found.shape}")
        lengths = np.linalg.norm(found, axis=1, keepdims=True)
        if not lengths.all():
            raise BackendError(f"{words}, none of length 0")
        return np.asarray(found / lengths, dtype=np.float32)


class FunctionSimilarity:
    """Wraps ``function(text, reference)`` as a similarity; it is called one pair at a time."""

    limits = BatchLimits(items=32, tokens=None)
    exact = True

    def __init__(self, function: Callable[[str, str], Any], name: str | None = None) -> None:
        self._function = _plain(function, "a similarity")
        self.name = name or function_name(function)

    def scores(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float64]:
        """Return shape (n,) for n (text, reference).

        Raises:
            BackendError: the function returned something else than a number.
        """
        return np.array([self._number(self._function(*pair)) for pair in pairs], dtype=float)

    def _number(self, value: Any) -> float:
        try:
            return float(value)
        except (TypeError, ValueError):
            raise BackendError(f"{self.name} returned {value!r:.60}; expected a number") from None


def _plain(function: F, what: str) -> F:
    """Return a function; raises :class:`BackendError` for what is none, and for a coroutine."""
    if not callable(function):
        raise BackendError(f"expected {what} (an object or a function), got {function!r:.60}")
    if inspect.iscoroutinefunction(function):
        raise BackendError(f"expected a plain function as {what}, got a coroutine function")
    return function


def function_name(function: Callable[..., Any]) -> str:
    """Return the name of a backend that is a function."""
    kind = function if hasattr(function, "__qualname__") else type(function)
    module = getattr(kind, "__module__", "builtins")
    return f"function:{module}.{kind.__qualname__}{_mark(function)}"


def _mark(function: Callable[..., Any]) -> str:
    """Return a mark of the code of a function without a name of its own, else nothing.

    Replies are stored under a backend's name, and all lambdas of a module share one. The plain
    values that a function was made with also count; objects do not.
    """
    code = getattr(function, "__code__", None)
    if code is None or "<" not in function.__qualname__:
        return ""
    held = [cell.cell_contents for cell in getattr(function, "__closure__", None) or ()]
    values = [*code.co_consts, *held, *(getattr(function, "__defaults__", None) or ())]
    constants = [v for v in values if isinstance(v, str | int | float | bytes | None)]
    content = repr((code.co_code, code.co_names, constants)).encode("utf-8", "surrogatepass")
    return "#" + hashlib.blake2b(content, digest_size=4).hexdigest()


def imported(path: str) -> Any:
    """Return the object that ``package.module:name`` names.

    Modules in the working folder are also found, as with ``python -m``.

    Raises:
        BackendError: there is none, or its module cannot be imported.
    """
    module, _, name = path.partition(":")
    if not (module and name) or module.startswith("."):
        raise BackendError(f"python:{path}: expected python:MODULE:FUNCTION")
    if not {"", str(Path.cwd())} & set(sys.path):
        sys.path.append(str(Path.cwd()))
    try:
        found = importlib.import_module(module)
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise BackendError(f"python:{path}: cannot import {module} ({reason})") from None
    try:
        return attrgetter(name)(found)
    except AttributeError:
        near = [known for known in dir(found) if not known.startswith("_")]
        raise BackendError(
            f"python:{path}: {did_you_mean(f'name in {module}', name, near)}"
        ) from None


def of_type(found: Any, kind: Any, words: str) -> Any:
    """Return an object that has a protocol's members; ``words`` say which, for the error."""
    if isinstance(found, type) or not isinstance(found, kind):
        raise BackendError(f"{words}, got {found!r:.60}")
    return found
