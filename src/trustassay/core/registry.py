"""Metrics by name: entry points of installed packages, and classes in a user's own file.

``python:FILE.py:CLASS`` names a metric in a file. The file is executed because the user names it; a
file that only a run's folder names is never executed.
"""

import dataclasses
import hashlib
import math
import re
import sys
import traceback
import types
import typing
from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from trustassay.core.metric import ORIGIN, Metric
from trustassay.errors import UnknownNameError, UsageError, did_you_mean

ENTRY_POINT_GROUP = "trustassay.metrics"
FILE_PREFIX = "python:"
"""Prefix of the name of a metric in a file."""
# "python:my/metric.py:Echo" or "python:my/metric.py:Echo:k=3". The path ends at the first ".py:",
# so it may itself contain colons.
_FILE_SPEC = re.compile(r"python:(.+?\.py):(\w+)(?::(.*))?", re.DOTALL)
_loaded: dict[tuple[str, str], type[Metric]] = {}
"""The classes of files that were named in this process, by class name and digest of the content."""


def load_metric_class(name: str) -> type[Metric]:
    """Return the class of an installed metric.

    Raises:
        UnknownNameError: there is none of this name, with the nearest names, or it cannot be
            loaded.
    """
    entries = _read_entry_points()
    if name not in entries:
        raise UnknownNameError(did_you_mean("metric", name, entries))
    try:
        metric = entries[name]()
    # Any error: the entry point imports another package's code.
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise UnknownNameError(
            f"metric {name} is installed, but cannot be loaded ({reason})"
        ) from error
    if not (isinstance(metric, type) and issubclass(metric, Metric)):
        raise UnknownNameError(f"entry point {name!r} of {ENTRY_POINT_GROUP} is not a Metric class")
    return metric


@dataclasses.dataclass(frozen=True)
class MetricFile:
    """A class in a user's file, as ``python:FILE.py:CLASS``, with the file's content.

    It is pickled with the metric, so that a worker process does not need the file.
    """

    path: str
    """The file as the user named it."""
    class_name: str
    """The class in it."""
    content: bytes = dataclasses.field(repr=False)
    """The bytes of the file when it was read."""

    @classmethod
    def read(cls, path: str, class_name: str) -> "MetricFile":
        """Read the file without executing it.

        Raises:
            UnknownNameError: it cannot be read.
        """
        try:
            return cls(path, class_name, Path(path).read_bytes())
        except OSError as error:
            reason = "no such file" if isinstance(error, FileNotFoundError) else error.strerror
            raise UnknownNameError(
                f"metric {FILE_PREFIX}{path}:{class_name}: {path}: {reason}"
            ) from None

    def settings(self) -> dict[str, str]:
        """Return the description for ``run.json``."""
        digest = hashlib.sha256(self.content).hexdigest()
        return {"file": self.path, "class": self.class_name, "sha256": digest}

    def load(self) -> type[Metric]:
        """Execute the file, once per process, and return the class.

        Raises:
            UnknownNameError: it has no such class, or the class is no metric.
            UsageError: the file cannot be executed; the message names the line.
        """
        digest = self.settings()["sha256"]
        # By content, not by path: an edited file is a new metric, a moved one is the same.
        key = self.class_name, digest
        if key not in _loaded:
            result = self._check_class(self._execute(f"trustassay_metric_{digest[:16]}"))
            result.origin = self
            # pickle finds classes by module and name, and a worker has no module of this name.
            setattr(result, "__reduce__", _reduce_metric)  # noqa: B010
            _loaded[key] = result
        return _loaded[key]

    def _execute(self, name: str) -> types.ModuleType:
        """Execute the file as a module of this name, and return the module."""
        if name in sys.modules:
            return sys.modules[name]
        module = types.ModuleType(name)
        module.__file__ = self.path
        sys.modules[name] = module  # dataclasses and annotations look there
        try:
            exec(compile(self.content, self.path, "exec"), module.__dict__)
        except (Exception, SystemExit) as error:
            del sys.modules[name]
            frames = traceback.extract_tb(error.__traceback__)
            # Frames of libraries that the file calls are skipped: the user's own line is of use.
            lines = [frame.lineno for frame in frames if frame.filename == self.path]
            message: object = error
            # A syntax error has no frame in the file; it carries its line itself.
            if isinstance(error, SyntaxError) and error.filename == self.path:
                lines, message = [error.lineno], error.msg
            line_text = f", line {lines[-1]}" if lines else ""
            raise UsageError(
                f"metric {FILE_PREFIX}{self.path}:{self.class_name}: {self.path}{line_text}: "
                f"{type(error).__name__}: {message}"
            ) from error
        return module

    def _check_class(self, module: types.ModuleType) -> type[Metric]:
        """Return the named class, or raise UnknownNameError with what the contract demands."""
        subject = f"metric {FILE_PREFIX}{self.path}:{self.class_name}"
        # Classes that the file defines itself; the metrics that it imports are no candidates.
        class_names = {
            name
            for name, value in vars(module).items()
            if isinstance(value, type)
            and issubclass(value, Metric)
            and value.__module__ == module.__name__
        }
        result = getattr(module, self.class_name, None)
        if result is None:
            hint = did_you_mean(f"class in {self.path}", self.class_name, class_names)
            absent = f"{self.path} has no class {self.class_name}, and no other subclass of Metric"
            raise UnknownNameError(f"{subject}: {hint if class_names else absent}")
        if not (isinstance(result, type) and issubclass(result, Metric)):
            raise UnknownNameError(f"{subject}: is not a subclass of trustassay.Metric")
        if missing := sorted(result.__abstractmethods__):
            raise UnknownNameError(f"{subject}: does not define {', '.join(missing)}")
        if not dataclasses.is_dataclass(result):
            raise UnknownNameError(
                f"{subject}: expected a line @dataclass(frozen=True) above the class"
            )
        if not callable(result.needs):
            raise UnknownNameError(
                f"{subject}: expected a method needs(self), got {result.needs!r}"
            )
        for text in ("name", "title"):
            if not isinstance(getattr(result, text, None), str):
                raise UnknownNameError(f"{subject}: expected a class variable `{text}` with a text")
        # Results are stored by a metric's name, so one name must not have two meanings.
        if result.name in _read_entry_points():
            raise UnknownNameError(
                f"{subject}: the metric {result.name} is installed; choose another `name`"
            )
        return result


def _reduce_metric(metric: Metric) -> tuple[Any, ...]:
    """Pickle a metric of a file together with the file's content."""
    return _rebuild_metric, (metric.origin, dict(metric.__dict__))


def _rebuild_metric(origin: MetricFile, state: Mapping[str, Any]) -> Metric:
    """Return the metric of a file from its pickled state."""
    metric = object.__new__(origin.load())
    metric.__dict__.update(state)
    return metric


def find_recorded_class(
    name: str, settings: Mapping[str, Any]
) -> tuple[type[Metric], dict[str, Any]]:
    """Return the class of a metric and its options, as a run recorded them.

    Raises:
        UnknownNameError: no such metric is installed, or it is a class of a file that the user
            has not named in this process.
    """
    origin = settings.get(ORIGIN)
    if not isinstance(origin, Mapping):
        return load_metric_class(name), dict(settings)
    result = _loaded.get((str(origin.get("class")), str(origin.get("sha256"))))
    if result is None:
        text = f"{FILE_PREFIX}{origin.get('file')}:{origin.get('class')}"
        raise UnknownNameError(
            f"metric {name} is a class in a file, which is not executed only because a run "
            f"names it; give --metric {text}"
        )
    return result, {key: value for key, value in settings.items() if key != ORIGIN}


def metric_from_settings(name: str, settings: Mapping[str, Any]) -> Metric:
    """Build a metric from the options that a run recorded.

    A function cannot be restored from its name, so its option keeps its default.

    Raises:
        UnknownNameError: as :func:`find_recorded_class`, or the metric no longer has an option.
    """
    cls, settings = find_recorded_class(name, settings)
    fields_by_name = {f.name: f for f in dataclasses.fields(cls)}  # type: ignore[arg-type]
    for key in settings:
        if key not in fields_by_name:
            raise UnknownNameError(did_you_mean(f"option of {name}", key, fields_by_name))
    try:
        return _build_metric(cls, settings)
    # The recorded value of a function is its name, which the metric refuses.
    except UsageError:
        hints = typing.get_type_hints(cls)
        plain = {k: v for k, v in settings.items() if "Callable" not in str(hints[k])}
        return _build_metric(cls, plain)


def metric_from_text(text: str) -> Metric:
    """Build a metric from ``NAME``, ``NAME:option=value,option=value`` or ``python:FILE.py:CLASS``.

    The latter may also be followed by a colon and options.

    Raises:
        UnknownNameError: no such metric or option; the message names the nearest known ones.
        UsageError: a value does not fit its option, or the file cannot be executed.
    """
    if text.startswith(FILE_PREFIX):
        match = _FILE_SPEC.fullmatch(text)
        if match is None:
            raise UnknownNameError(
                f"metric {text}: expected python:FILE.py:CLASS, and options as in "
                "python:FILE.py:CLASS:option=value"
            )
        cls, option_text = MetricFile.read(match[1], match[2]).load(), match[3] or ""
        name = cls.name
    else:
        name, _, option_text = text.partition(":")
        cls = load_metric_class(name)
    options: dict[str, Any] = {}
    hints = typing.get_type_hints(cls)
    option_types = {f.name: hints[f.name] for f in dataclasses.fields(cls)}  # type: ignore[arg-type]
    for setting in filter(None, option_text.split(",")):
        key, separator, value = setting.partition("=")
        if key not in option_types:
            raise UnknownNameError(did_you_mean(f"option of {name}", key, option_types))
        if not separator:
            raise UsageError(f"{name}: option {key} needs a value, as in {key}=VALUE")
        options[key] = _convert_value(value, option_types[key], f"{name}: {key}")
    return _build_metric(cls, options)


def _build_metric(cls: type[Metric], options: Mapping[str, Any]) -> Metric:
    """Build a metric; any ``ValueError`` of another package's metric counts as a wrong option."""
    try:
        return cls(**options)
    except UsageError:
        raise
    except ValueError as error:
        raise UsageError(f"metric {cls.name}: {error}") from error


def read_score(metric: Metric, option: str, raw: float | str) -> float:
    """Return a bound of a metric's scores.

    Args:
        metric: the metric. option: the name of the option, for messages.
        raw: a number or a text; with a per cent sign a percentage of the score's range.

    Raises:
        UsageError: it is not a finite number, or outside the range, so that it decides nothing.
    """
    low, high = metric.score_range
    text = str(raw).strip()
    try:
        value = float(text.removesuffix("%"))
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise UsageError(f"{option}: expected a number or a percentage, as in 80%, got {raw!r}")
    if text.endswith("%"):
        value = low + value / 100 * (high - low)
    if not low <= value <= high:
        percent = f"; {value:g} % of that range is {low + value / 100 * (high - low):g}"
        raise UsageError(
            f"{option}={text}: {metric.name} scores from {low:g} to {high:g}; expected a bound "
            f"in that range{percent if high < value <= 100 and not text.endswith('%') else ''}"
        )
    return value


@cache
def _read_entry_points() -> dict[str, Callable[[], Any]]:
    return {entry.name: entry.load for entry in entry_points(group=ENTRY_POINT_GROUP)}


def _convert_value(text: str, hint: Any, where: str) -> Any:
    """Convert ``text`` to the simplest type that the annotation ``hint`` allows."""
    is_union = typing.get_origin(hint) in (typing.Union, types.UnionType)
    kinds = typing.get_args(hint) if is_union else (hint,)
    if type(None) in kinds and text.lower() == "none":
        return None
    # Before the numbers: "1" is a switch here.
    if bool in kinds:
        if text.lower() in {"true", "yes", "on", "1"}:
            return True
        if text.lower() in {"false", "no", "off", "0"}:
            return False
        raise UsageError(f"{where}: expected yes or no, got {text!r}")
    literals = [
        w for k in kinds if typing.get_origin(k) is typing.Literal for w in typing.get_args(k)
    ]
    if text in literals:
        return text
    # int before float, so that "10" for `int | float` stays whole.
    for kind, expected in ((int, "a whole number"), (float, "a number")):
        if kind in kinds:
            try:
                return kind(text)
            except ValueError:
                alternatives = " or ".join([expected, *literals])
                raise UsageError(f"{where}: expected {alternatives}, got {text!r}") from None
    return text
