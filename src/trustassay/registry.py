"""Metrics by name: the entry points of all installed packages, and options after a name."""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import entry_points
from typing import Any

from trustassay.errors import UnknownNameError, UsageError, did_you_mean
from trustassay.metric import Metric

__all__ = ["metric_class", "metric_from_settings", "metric_from_text", "metric_names", "read_score"]

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
        return _built(cls, settings)
    except UsageError:  # a function stands there by its name
        hints = typing.get_type_hints(cls)
        plain = {k: v for k, v in settings.items() if "Callable" not in str(hints[k])}
        return _built(cls, plain)


def metric_from_text(text: str) -> Metric:
    """Build a metric from ``NAME`` or ``NAME:option=value,option=value``.

    Raises:
        UnknownNameError: no such metric or option; the message names the nearest known ones.
        UsageError: a value does not fit its option.
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
            raise UsageError(f"{name}: option {key} needs a value, as in {key}=VALUE")
        options[key] = _converted(value, known[key], f"{name}: {key}")
    return _built(cls, options)


def _built(cls: type[Metric], options: Mapping[str, Any]) -> Metric:
    """Build a metric; one of another package says by any ``ValueError`` that an option is wrong."""
    try:
        return cls(**options)
    except UsageError:
        raise
    except ValueError as error:
        raise UsageError(f"metric {cls.name}: {error}") from error


def read_score(metric: Metric, option: str, given: float | str) -> float:
    """Return a bound of a metric's scores.

    Args:
        option: what it was given for, for messages.
        given: a number, or a text; with a per cent sign it is a percentage of the score's range.

    Raises:
        UsageError: it is not a finite number, or not in the range, so that it decides nothing.
    """
    low, high = metric.score_range
    text = str(given).strip()
    try:
        value = float(text.removesuffix("%"))
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise UsageError(f"{option}: expected a number or a percentage, as in 80%, got {given!r}")
    if text.endswith("%"):
        value = low + value / 100 * (high - low)
    if not low <= value <= high:
        percent = f"; {value:g} % of that range is {low + value / 100 * (high - low):g}"
        raise UsageError(
            f"{option}={text}: {metric.name} scores from {low:g} to {high:g}, so the bound decides "
            f"nothing{percent if high < value <= 100 and not text.endswith('%') else ''}"
        )
    return value


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
        raise UsageError(f"{where}: expected yes or no, got {text!r}")
    for kind, expected in ((int, "a whole number"), (float, "a number")):
        if kind in kinds:
            try:
                return kind(text)
            except ValueError:
                raise UsageError(f"{where}: expected {expected}, got {text!r}") from None
    return text


def _is_union(hint: Any) -> bool:
    return typing.get_origin(hint) in (typing.Union, types.UnionType)
