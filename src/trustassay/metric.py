"""The contract of a metric, what it returns, and how a metric is found by name."""

from __future__ import annotations

import dataclasses
import difflib
import types
import typing
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import entry_points
from typing import Any, ClassVar, Self

from trustassay.capabilities import Models
from trustassay.sample import Problem, Sample

__all__ = [
    "Assessment",
    "AssessmentError",
    "Figure",
    "Inventory",
    "Metric",
    "Summary",
    "UnknownNameError",
    "did_you_mean",
    "metric_class",
    "metric_from_text",
    "metric_names",
]

ENTRY_POINT_GROUP = "trustassay.metrics"


_OPTIONAL = frozenset({"usage", "fault"})
"""Fields of an assessment that are stored only where they say something."""


class UnknownNameError(ValueError):
    """A name or an option that nothing here answers to; the message offers the nearest ones."""


class AssessmentError(RuntimeError):
    """Raised by a metric that cannot score a sample; the run notes the message and goes on.

    ``kind`` names what kept it, where that is to be counted: ``empty`` for answers without words.
    """

    def __init__(self, message: str, kind: str | None = None) -> None:
        super().__init__(message)
        self.kind = kind


@dataclass(frozen=True, slots=True)
class Assessment:
    """What one metric says of one sample.

    Either ``error`` is ``None`` and ``score`` lies in the metric's range, or ``error`` says why
    there is no score. A score of ``None`` without an error means that the method has nothing to
    say of this sample alone (``reason`` says why), while its ``parts``, the numbers that score and
    summary are made of, still count. ``calls`` counts the requests made to each
    capability, and ``usage`` for each chat model the calls and their tokens, whoever paid for them.
    ``fault`` is the kind of failure behind an error, where it is known: that of a
    :class:`~trustassay.capabilities.CallError`.
    """

    id: str
    metric: str
    score: float | None
    verdict: str | None = None
    reason: str = ""
    parts: Mapping[str, float] = field(default_factory=dict)
    evidence: Sequence[Mapping[str, Any]] = ()
    calls: Mapping[str, int] = field(default_factory=dict)
    usage: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    error: str | None = None
    fault: str | None = None

    @classmethod
    def failed(
        cls, sample_id: str, metric: str, error: str, fault: str | None = None
    ) -> Assessment:
        """Return the assessment of a sample that could not be scored."""
        return cls(sample_id, metric, None, error=error, fault=fault)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form, one line of ``assessments.jsonl``; usage and fault if there are."""
        named = {f: getattr(self, f) for f in self.__slots__}
        return {f: value for f, value in named.items() if value or f not in _OPTIONAL}

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> Assessment:
        """Read back what :meth:`to_dict` wrote."""
        return cls(**{f: raw[f] for f in cls.__slots__ if f in raw or f not in _OPTIONAL})


@dataclass(frozen=True, slots=True)
class Figure:
    """What a key of a summary means: for the report, the documentation and the terminal."""

    key: str
    explanation: str
    unit: str = "%"
    group: str = ""
    headline: bool = False


@dataclass(frozen=True)
class Summary:
    """The figures of one metric over a data set.

    ``values`` holds ``None`` for a figure that does not apply, with the reason in
    ``not_applicable``; ``intervals`` are 95 % confidence intervals, and ``without_interval`` says
    why a figure has none, mostly that the samples are too few; ``support`` is the number of
    samples behind a figure; ``settings`` are the options that made it.
    """

    values: Mapping[str, float | int | None]
    n: int
    failed: int
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    support: Mapping[str, int] = field(default_factory=dict)
    not_applicable: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    without_interval: Mapping[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form, as it stands in ``summary.json``."""
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}


@dataclass(slots=True)
class Inventory:
    """What the samples of a run bring, counted before the first is scored.

    ``sentence_answers`` counts samples whose gold answers mostly read as whole sentences.
    """

    samples: int = 0
    responses: int = 0
    answers: int = 0
    claims: int = 0
    documents: int = 0
    supports: int = 0
    labels: int = 0
    sentence_answers: int = 0

    def add(self, sample: Sample) -> None:
        """Count one more sample."""
        self.samples += 1
        self.responses += sample.answered
        self.answers += bool(sample.answers)
        self.claims += bool(sample.claims)
        self.documents += sample.documents is not None
        self.supports += sample.supports_known
        self.labels += sample.label is not None
        firsts = [aliases[0] for aliases in sample.answers if aliases]
        self.sentence_answers += 2 * sum(map(_reads_as_sentence, firsts)) > len(firsts) > 0


def _reads_as_sentence(text: str) -> bool:
    return len(text.split()) >= 5 and text.rstrip().endswith((".", "!", "?"))


class Metric(ABC):
    """One method. Subclass as a frozen dataclass whose fields are the options.

    A metric holds no client and no result: one instance scores many samples at once.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    needs: ClassVar[frozenset[str]]
    score_range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    lower_is_better: ClassVar[bool] = False
    reads_response: ClassVar[bool] = True
    """Whether a sample without a response gets one before it is assessed."""
    verdicts: ClassVar[Sequence[str]] = ()
    """The verdicts it may give, the one of trust first; each has its colour in the report."""
    figures: ClassVar[Mapping[str, Figure]]

    def resolved(self, inventory: Inventory) -> Self:  # noqa: ARG002
        """Return this metric with every ``auto`` option settled for the samples of a run."""
        return self

    def problems(self, sample: Sample) -> list[Problem]:  # noqa: ARG002
        """Return what keeps this metric from scoring ``sample``, before anything is started."""
        return []

    def problems_without_model(self, sample: Sample) -> list[Problem]:  # noqa: ARG002
        """Return what keeps it from scoring ``sample`` in a run that has no chat model to ask."""
        return []

    @abstractmethod
    async def assess(self, sample: Sample, models: Models) -> Assessment:
        """Score one sample.

        Raises:
            AssessmentError: the sample cannot be scored; any other error counts as such, too.
        """

    @abstractmethod
    def summarise(self, assessments: Collection[Assessment], *, seed: int = 0) -> Summary:
        """Return the figures of a data set; reads ``assessments`` once, in input order.

        ``seed`` is for figures that draw at random; those of the metrics here do not.
        """

    def settings(self) -> dict[str, Any]:
        """Return the options as JSON values; a function stands as its qualified name."""
        options = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}  # type: ignore[arg-type]
        return {
            name: _qualified_name(value) if callable(value) else value
            for name, value in options.items()
        }


def _qualified_name(function: Callable[..., Any]) -> str:
    named = function if hasattr(function, "__qualname__") else type(function)
    return f"{getattr(named, '__module__', 'builtins')}.{named.__qualname__}"


def metric_names() -> list[str]:
    """Return the names of all installed metrics."""
    return sorted(_entries())


def metric_class(name: str) -> type[Metric]:
    """Return the class of the metric that the entry points name so.

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
        raise UnknownNameError(f"entry point {name!r} of {ENTRY_POINT_GROUP} is no Metric class")
    return loaded


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


def did_you_mean(what: str, name: str, known: Iterable[str]) -> str:
    """Return "unknown WHAT 'NAME'" with the nearest known names, or all when none is near."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(names)}"
    return f"unknown {what} {name!r}; {hint}"


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
