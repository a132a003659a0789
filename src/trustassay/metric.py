"""The contract of a metric, what it returns, and how a metric is found by name."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, Self

from trustassay.capabilities import Models
from trustassay.sample import Problem, Sample
from trustassay.summaries import Mean, Quantile, Share, Statistic, Total, summarised
from trustassay.views import View

__all__ = [
    "Assessment",
    "Context",
    "Figure",
    "Inventory",
    "Mean",
    "Metric",
    "MetricInfo",
    "Need",
    "Pool",
    "Quantile",
    "Share",
    "Summary",
    "Total",
]

_OPTIONAL = frozenset({"usage", "fault"})
"""Fields of an assessment that are stored only where they say something."""


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
    """What a key of a summary means: for the report, the documentation and the terminal.

    ``statistic`` says how it is computed from the assessments; ``None`` where the metric's own
    :meth:`Metric.summarise` does so.
    """

    key: str
    explanation: str
    unit: str = "%"
    group: str = ""
    headline: bool = False
    statistic: Statistic | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form, what is shown of it."""
        names = ("key", "explanation", "unit", "group", "headline")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True)
class Summary:
    """The figures of one metric over a data set.

    ``values`` holds ``None`` for a figure that does not apply, with the reason in
    ``not_applicable``; ``intervals`` are 95 % confidence intervals, and ``without_interval`` says
    why a figure has none, mostly that the samples are too few; ``support`` is the number of
    samples behind a figure; ``settings`` are the options that made it. ``error`` says why there
    are no figures, where the metric failed to make them.
    """

    values: Mapping[str, float | int | None]
    n: int
    failed: int
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    support: Mapping[str, int] = field(default_factory=dict)
    not_applicable: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    without_interval: Mapping[str, str] = field(default_factory=dict)
    error: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form, as it stands in ``summary.json``; ``error`` if there is one."""
        names = [f.name for f in dataclasses.fields(self)]
        return {name: getattr(self, name) for name in names if name != "error" or self.error}


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


@dataclass(frozen=True, slots=True)
class Need:
    """What a metric asks of a run; what cannot be met is refused before anything starts.

    capability: a method of :class:`~trustassay.capabilities.Models`.
    role: which chat model is asked: ``model`` (the one under assessment), ``judge``, ``generator``,
    ``references``. many: several models may have the role, each under its own name.
    optional: the metric does without it where the run has none. default: who is loaded where nobody
    is named, in place of the capability's own default.
    """

    capability: str
    role: str = ""
    many: bool = False
    optional: bool = False
    default: str | None = None


class Pool(Protocol):
    """All samples that a metric may look at, in input order and at random access."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> Sample: ...

    def __iter__(self) -> Iterator[Sample]: ...

    def index(self, sample_id: str) -> int | None:
        """Return where the sample of an id stands; ``None`` where there is none."""
        ...

    async def filled(self, index: int, models: Models, /) -> Sample:
        """Return a sample with its references; those of a file of its own are asked for now.

        The run's own samples are filled already. What fails is missing.
        """
        ...


@dataclass(frozen=True, slots=True)
class Context:
    """What a metric is given to assess one sample.

    sample: with all that stages have filled in. models: whom it may ask.
    prepared: what :meth:`Metric.prepare` returned. seed: the run's.
    """

    sample: Sample
    models: Models
    prepared: Any = None
    seed: int = 0


class Metric(ABC):
    """One method. Subclass as a frozen dataclass whose fields are the options.

    A metric holds no client and no result: one instance scores many samples at once. What it says
    of itself (``score_range``, ``verdicts``, ...) is read from the instance, so that options can
    change it: a constant is a class variable, anything else a property or a field.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    reads_response: ClassVar[bool] = True
    """Whether a sample without a response gets one before it is assessed."""
    pool: ClassVar[bool] = False
    """Whether :meth:`prepare` is called, with all samples, before the first is assessed."""

    evidence_template: ClassVar[str | None] = None
    """File beside the metric's module, in Jinja's language, that draws the evidence of an answer in
    the report, from ``view``, ``assessment`` and ``sample``; without one it is listed as it is."""

    @property
    def fills(self) -> tuple[str, ...]:
        """Fields that are filled before scoring where they are missing and the run has what it
        takes: ``references``, ``wrong_answers``, ``corrected_answers``, ``documents``.
        """
        return ()

    @property
    def filling(self) -> Mapping[str, int]:
        """How many of what it fills it wants, where the run does not say: ``wrong_answers`` for
        the pairs of one call, ``references`` for the different answers of each model to one call.
        """
        return {}

    @property
    def score_range(self) -> tuple[float, float]:
        """The least and the largest score."""
        return 0.0, 1.0

    @property
    def lower_is_better(self) -> bool:
        """Whether a low score is good."""
        return False

    @property
    def verdicts(self) -> Sequence[str]:
        """The verdicts it may give, the one of trust first; each has its colour in the report."""
        return ()

    @property
    def stable_below(self) -> float | None:
        """The score from which an answer is no longer stable, where the metric has such a bound."""
        return None

    @property
    def figures(self) -> Mapping[str, Figure]:
        """What the keys of its summary mean, in the order in which they are shown."""
        return {}

    @abstractmethod
    def needs(self) -> Sequence[Need]:
        """Return what the metric asks of a run."""

    def resolved(self, inventory: Inventory) -> Self:  # noqa: ARG002
        """Return this metric with every ``auto`` option settled for the samples of a run."""
        return self

    def problems(self, sample: Sample) -> list[Problem]:  # noqa: ARG002
        """Return what keeps this metric from scoring ``sample``, before anything is started."""
        return []

    def problems_without_model(self, sample: Sample) -> list[Problem]:  # noqa: ARG002
        """Return what keeps it from scoring ``sample`` in a run that has no chat model to ask."""
        return []

    async def prepare(self, pool: Pool, models: Models) -> Any:  # noqa: ARG002
        """Return what :meth:`assess` finds in ``context.prepared``; called once in a process.

        Its calls are stored, planned and taken up again like all others. A failure fails all
        samples of the metric.
        """
        return None

    @abstractmethod
    async def assess(self, context: Context) -> Assessment:
        """Score one sample.

        Raises:
            AssessmentError: the sample cannot be scored; any other error counts as such, too.
        """

    def summarise(
        self,
        assessments: Collection[Assessment],
        *,
        seed: int = 0,  # noqa: ARG002 - for those that draw
    ) -> Summary:
        """Return the figures of a data set; reads ``assessments`` once, in input order.

        Those that are declared with a statistic. A metric that has formulas of its own writes this
        method itself.
        """
        statistics = {key: f.statistic for key, f in self.figures.items() if f.statistic}
        found = summarised(statistics, assessments, self.score_range)
        return Summary(
            found.values,
            found.n,
            found.failed,
            found.intervals,
            found.support,
            found.not_applicable,
            self.settings(),
            found.without_interval,
        )

    def problem(self, assessment: Assessment) -> str | None:  # noqa: ARG002
        """Return what a reader should look at in an assessment, in one sentence, if anything.

        A failure is a problem anyway; this is about what was scored.
        """
        return None

    def view(self, sample: Sample, assessment: Assessment) -> View:  # noqa: ARG002
        """Return what the report needs to know of an assessment's evidence, which stands as data
        where there is no template.
        """
        return View()

    def settings(self) -> dict[str, Any]:
        """Return the options as JSON values; a function stands as its qualified name."""
        options = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}  # type: ignore[arg-type]
        return {
            name: _qualified_name(value) if callable(value) else value
            for name, value in options.items()
        }


@dataclass(frozen=True)
class MetricInfo:
    """What a metric says of itself with its options, as it stands in ``run.json``.

    Reports and comparisons read it from there, also where the metric is not installed.
    """

    name: str
    title: str
    score_range: tuple[float, float] = (0.0, 1.0)
    lower_is_better: bool = False
    verdicts: tuple[str, ...] = ()
    stable_below: float | None = None
    figures: Mapping[str, Figure] = field(default_factory=dict)

    @classmethod
    def of(cls, metric: Metric) -> MetricInfo:
        """Return what a metric says of itself."""
        low, high = metric.score_range
        return cls(
            metric.name,
            metric.title,
            (float(low), float(high)),
            metric.lower_is_better,
            tuple(metric.verdicts),
            metric.stable_below,
            dict(metric.figures),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        figures = {key: figure.to_dict() for key, figure in self.figures.items()}
        return {
            **{f.name: getattr(self, f.name) for f in dataclasses.fields(self)},
            "figures": figures,
        }

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> MetricInfo:
        """Read back what :meth:`to_dict` wrote; raises ``TypeError`` or ``KeyError`` for others."""
        low, high = raw["score_range"]
        figures = {key: Figure(**figure) for key, figure in raw["figures"].items()}
        rest = {"score_range": (low, high), "verdicts": tuple(raw["verdicts"]), "figures": figures}
        return cls(**{**raw, **rest})


def _qualified_name(function: Callable[..., Any]) -> str:
    named = function if hasattr(function, "__qualname__") else type(function)
    return f"{getattr(named, '__module__', 'builtins')}.{named.__qualname__}"
