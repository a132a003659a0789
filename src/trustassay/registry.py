"""Metrics by name: the entry points of all installed packages, and options after a name."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import entry_points
from typing import Any

from trustassay.errors import UnknownNameError, did_you_mean
from trustassay.metric import Metric

__all__ = ["metric_class", "metric_from_settings", "metric_from_text", "metric_names"]

ENTRY_POINT_GROUP = "trustassay.metrics"


def metric_names() -> list[str]:
    """Return the names of all installed metrics."""
    return sorted(_entries())


def metric_class(name: str) -> type[Metric]:
    """Return the metric class of this name among the entry points.

    Raises:
        UnknownNameError: there is none, with the nearest names, or it cannot be loaded.
    """
    entries = _entries()
    if name not in entries:
        raise UnknownNameError(did_you_mean("metric", name, entries))
    try:
        loaded = entries[name]()
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise UnknownNameError(
            f"metric {name} is installed, but cannot be loaded ({reason})"
        ) from error
    if not (isinstance(loaded, type) and issubclass(loaded, Metric)):
        raise UnknownNameError(f"entry point {name!r} of {ENTRY_POINT_GROUP} is not a Metric class")
    return loaded


def metric_from_settings(name: str, settings: Mapping[str, Any]) -> Metric:
    """Build a metric from the options that a run recorded; a function cannot be restored, and its
    option keeps its default.

    Raises:
        UnknownNameError: no such metric, or an option that it does not have any more.
    """
    cls = metric_class(name)
    known = {f.name: f for f in dataclasses.fields(cls)}  # type: ignore[arg-type]
    for key in settings:
        if key not in known:
            raise UnknownNameError(did_you_mean(f"option of {name}", key, known))
    try:
        return cls(**settings)
    except ValueError:  # a function stands there by its name
        hints = typing.get_type_hints(cls)
        plain = {k: v for k, v in settings.items() if "Callable" not in str(hints[k])}
        return cls(**plain)


def metric_from_text(text: str) -> Metric:
    """Build a metric from ``NAME`` or ``NAME:option=value,option=value``.

    Raises:
        UnknownNameError: no such metric or option; the message names the nearest known ones.
        ValueError: a value does not fit its option.
    """
    name, _, rest = text.partition(":")
    cls = metric_class(name)
    options: dict[str, Any] = {}
    hints = typing.get_type_hints(cls)
    known = {f.name: hints[f.name] for f in dataclasses.fields(cls)}  # type: ignore[arg-type]
    for setting in filter(None, rest.split(",")):
        key, separator, value = setting.partition("=")
        if key not in known:
            raise UnknownNameError(did_you_mean(f"option of {name}", key, known))
        if not separator:
            raise ValueError(f"{name}: option {key} needs a value, as in {key}=VALUE")
        options[key] = _converted(value, known[key], f"{name}: {key}")
    return cls(**options)


@cache
def _entries() -> dict[str, Callable[[], Any]]:
    return {entry.name: entry.load for entry in entry_points(group=ENTRY_POINT_GROUP)}


def _converted(text: str, hint: Any, where: str) -> Any:
    """Read ``text`` as the simplest type that ``hint`` allows."""
    kinds = typing.get_args(hint) if _is_union(hint) else (hint,)
    if type(None) in kinds and text.lower() == "none":
        return None
    if bool in kinds:
        if text.lower() in {"true", "yes", "on", "1"}:
            return True
        if text.lower() in {"false", "no", "off", "0"}:
            return False
        raise ValueError(f"{where}: expected yes or no, got {text!r}")
    for kind, expected in ((int, "a whole number"), (float, "a number")):
        if kind in kinds:
            try:
                return kind(text)
            except ValueError:
                raise ValueError(f"{where}: expected {expected}, got {text!r}") from None
    return text


def _is_union(hint: Any) -> bool:
    return typing.get_origin(hint) in (typing.Union, types.UnionType)
